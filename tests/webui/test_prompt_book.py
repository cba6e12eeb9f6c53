"""The prompt gallery says the same in both languages, and each wish can be sent as it is."""

from __future__ import annotations

import re

import pytest

from tests.adapters.webui import LANGUAGES, Prompt, prompt_groups

GROUPS = {language: prompt_groups(language) for language in LANGUAGES}
PROMPTS = {language: [one for group in groups for one in group.prompts] for language, groups in GROUPS.items()}


def test_there_are_as_many_prompts_in_every_language_and_group() -> None:
    shapes = {language: [(one.id, len(one.prompts)) for one in groups] for language, groups in GROUPS.items()}
    assert shapes["en"] == shapes["zh-CN"]
    assert (len(GROUPS["en"]), len(PROMPTS["en"])) == (6, 24)


def test_chinese_prompts_are_chinese_and_english_ones_are_not() -> None:
    cjk = re.compile(r"[\u4e00-\u9fff]")
    assert all(cjk.search(one.text) and cjk.search(one.title) for one in PROMPTS["zh-CN"])
    assert not any(cjk.search(one.text + one.title) for one in PROMPTS["en"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_prompt_comes_twice_and_each_has_a_place_to_fill_in_and_says_it_without_brackets(language: str) -> None:
    for name in ("title", "text"):
        found = [getattr(one, name) for one in PROMPTS[language]]
        assert len(set(found)) == len(found)
    for one in PROMPTS[language]:
        assert one.blank is not None, one.title
        first, last = one.blank
        assert f"[{one.plain[first:last]}]" in one.text
        assert not re.search(r"[\[\]]", one.plain)
    plain = Prompt(group="g", title="t", text="a red fox")
    assert (plain.plain, plain.blank) == ("a red fox", None), "one without a place is sent as it stands"
