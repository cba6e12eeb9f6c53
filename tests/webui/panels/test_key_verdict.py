"""What the page says of a key: which is in use, what its test found, who must act, and where."""

from __future__ import annotations

import re
from html import unescape

from pydantic import SecretStr

from agent.errors import ErrorCode, ErrorInfo
from agent.providers.catalogue import ModelRole
from agent.providers.key_check import KeyDiagnosis, ModelStanding
from tests.support.cases import each_case
from webui.panels.key_verdict import state_html, verdict_html
from webui.words import LANGUAGES, load_words

WORDS = load_words("en")
SESSION, KEPT = SecretStr("AIzaOfTheSession4f2c"), SecretStr("AIzaOfThisMachine9a1b")
LABELS = {
    ModelRole.FLASH: "Flash",
    ModelRole.THINKING: "Thinking",
    ModelRole.IMAGE_FLASH: "Flash",
    ModelRole.IMAGE_PRO: "Pro",
}


def standings(*, is_tried: bool = True, **problems: ErrorCode) -> tuple[ModelStanding, ...]:
    found = []
    for role, label in LABELS.items():
        code = problems.get(role.value)
        problem = ErrorInfo(code=code, parameters={"model": label}) if code is not None else None
        one = ModelStanding(role=role, model_id=f"gemini-{role}", label=label, problem=problem, is_tried=is_tried)
        found.append(one)
    return tuple(found)


def plain(html: str) -> list[str]:
    """Return the lines of a verdict as a reader has them."""
    return [
        unescape(" ".join(re.sub(r"<[^>]+>", " ", one).split())) for one in re.findall(r"<li.*?</li>", html, re.DOTALL)
    ]


def test_a_whole_key_has_a_line_for_itself_and_one_for_each_kind_of_model() -> None:
    assert plain(verdict_html(WORDS, KeyDiagnosis(models=standings()))) == [
        "Google accepts the key.",
        "Words: Flash, Thinking Tried: works.",
        "Pictures: Flash, Pro Tried: works.",
    ]


def test_what_was_only_listed_is_not_said_to_work() -> None:
    shown = verdict_html(WORDS, KeyDiagnosis(models=standings(is_tried=False)))
    assert "Offered to this key." in shown
    assert "works" not in shown


def test_models_that_fail_alike_are_told_together_with_who_must_act_and_where() -> None:
    code = ErrorCode.BILLING_REQUIRED
    shown = verdict_html(WORDS, KeyDiagnosis(models=standings(image_flash=code, image_pro=code)))
    lines = plain(shown)
    assert len(lines) == 3
    assert lines[2].startswith("Pictures: Flash, Pro Your key has no quota for Flash, Pro. Please turn on billing")
    assert lines[2].endswith("Who must act You, in the account your key belongs to.")
    assert '<a href="https://ai.studio/projects" target="_blank"' in shown


def test_one_model_of_two_that_fails_is_told_apart() -> None:
    lines = plain(verdict_html(WORDS, KeyDiagnosis(models=standings(image_pro=ErrorCode.QUOTA_EXHAUSTED))))
    assert lines[2] == "Pictures: Flash Tried: works."
    assert lines[3].startswith("Pictures: Pro Today's quota of your key for Pro is used up.")


@each_case("language", LANGUAGES)
@each_case(
    "code",
    [
        *(ErrorCode.KEY_INVALID, ErrorCode.KEY_EXPIRED, ErrorCode.KEY_LEAKED, ErrorCode.KEY_SUSPENDED),
        *(ErrorCode.KEY_RESTRICTED, ErrorCode.KEY_WITHOUT_API, ErrorCode.API_DISABLED, ErrorCode.CREDITS_USED_UP),
        *(ErrorCode.REGION_UNSUPPORTED, ErrorCode.CONNECTION_FAILED, ErrorCode.PROXY_FAILED),
        ErrorCode.CERTIFICATE_FAILED,
    ],
)
def test_what_is_wrong_with_the_key_or_the_way_is_one_line_in_plain_words(language: str, code: ErrorCode) -> None:
    words, info = load_words(language), ErrorInfo(code=code)
    shown = verdict_html(words, KeyDiagnosis(problem=info))
    [line] = plain(shown)
    assert f'data-code="{code}"' in shown
    assert words.error(info) in line
    assert words(f"failure.who_{info.actor}") in line
    assert "?" not in line
    assert code.value not in line


def test_the_key_of_the_session_goes_first_then_that_of_the_machine_then_the_environments() -> None:
    both = state_html(WORDS, SESSION, KEPT, has_operator_key=True)
    assert plain(both) == [
        "Key …4f2c, of this session, is in use. It goes before the one kept on this machine (…9a1b). "
        "It goes before the key in the studio's environment."
    ]
    assert plain(state_html(WORDS, None, KEPT, has_operator_key=False)) == [
        "Key …9a1b, kept on this machine, is in use."
    ]
    assert "own key is in use, from its environment" in state_html(WORDS, None, None, has_operator_key=True)
    assert "draws sketches" in state_html(WORDS, None, None, has_operator_key=False)
    for secret in ("OfTheSession", "OfThisMachine"):
        assert secret not in both


def test_a_key_of_a_few_characters_shows_none_of_them() -> None:
    assert "abc" not in state_html(WORDS, SecretStr("abcd"), None, has_operator_key=False)


def test_a_model_server_of_the_operators_is_named_instead_of_sketches() -> None:
    shown = state_html(WORDS, None, None, has_operator_key=False, has_own_server=True)
    assert "model server" in shown
    assert "draws sketches" not in shown
