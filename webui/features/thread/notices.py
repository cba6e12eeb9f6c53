"""What the page says when a turn did not end well or the agent asks back, with the ways on. Calm where the person can
act."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from markupsafe import Markup

from agent import Actor, Charge, ErrorCode, ErrorInfo, Question, TargetChanged
from webui.shell.templates import render
from webui.view import View
from webui.words import Words

_HEAD_ICONS = {
    Actor.POLICY: "shield-alert",
    Actor.KEY: "key-round",
    Actor.NETWORK: "wifi-off",
    Actor.YOU: "circle-alert",
}
# Those who act when a call of a model failed: of such a one it is told whether it was charged.
_OF_A_CALL = frozenset({Actor.KEY, Actor.POLICY, Actor.PROVIDER, Actor.NETWORK})
# What the provider gives as its reason, in words that say something.
_REASONS = {
    "SAFETY": "reason.safety",
    "IMAGE_SAFETY": "reason.safety",
    "PROHIBITED_CONTENT": "reason.prohibited",
    "IMAGE_PROHIBITED_CONTENT": "reason.prohibited",
    "BLOCKLIST": "reason.blocklist",
    "SPII": "reason.personal",
    "RECITATION": "reason.recitation",
    "IMAGE_RECITATION": "reason.recitation",
    "JAILBREAK": "reason.jailbreak",
    "NO_IMAGE": "reason.no_image",
    "IMAGE_OTHER": "reason.other",
    "OTHER": "reason.other",
}
KEYS_PAGE = "aistudio.google.com/apikey"
_BILLING = "ai.studio/projects"
_CREDENTIALS = "console.cloud.google.com/apis/credentials"
# Where a person goes on after a failure that lies with their key.
_PLACES = {
    ErrorCode.KEY_INVALID: KEYS_PAGE,
    ErrorCode.KEY_MISSING: KEYS_PAGE,
    ErrorCode.KEY_EXPIRED: KEYS_PAGE,
    ErrorCode.KEY_LEAKED: KEYS_PAGE,
    ErrorCode.KEY_SUSPENDED: KEYS_PAGE,
    ErrorCode.ACCOUNT_LIMITED: KEYS_PAGE,
    ErrorCode.KEY_FORBIDDEN: KEYS_PAGE,
    ErrorCode.BILLING_REQUIRED: _BILLING,
    ErrorCode.CREDITS_USED_UP: _BILLING,
    ErrorCode.QUOTA_EXHAUSTED: "ai.dev/rate-limit",
    ErrorCode.KEY_RESTRICTED: _CREDENTIALS,
    ErrorCode.KEY_WITHOUT_API: _CREDENTIALS,
    ErrorCode.API_DISABLED: "console.cloud.google.com/apis/library/generativelanguage.googleapis.com",
    ErrorCode.REGION_UNSUPPORTED: "ai.google.dev/gemini-api/docs/available-regions",
    ErrorCode.MODEL_NOT_OFFERED: "ai.google.dev/gemini-api/docs/models",
}
_EXAMPLES = ("wish.fox_text", "wish.poster_text", "wish.city_text")


def next_step(words: Words, code: ErrorCode) -> Markup:
    """Return a link to where the person can act, its address as its words; nothing where there is no such place."""
    return place_link(words, _PLACES[code]) if code in _PLACES else Markup()


def place_link(words: Words, place: str) -> Markup:
    """Return a link to an address that is written without its scheme."""
    return render("thread/place.html", words, place=place)


def failure(view: View, error: ErrorInfo, turn_id: str, rewordings: Sequence[str] = ()) -> Markup:
    """Return the card of a failed turn: who refused, who must act, why, whether the same can help, and the ways on.

    `rewordings` are other wishes, each of which a click puts into the composer. Without `turn_id` nothing was stored:
    the words are back in the composer and there is nothing to retry.
    """
    words, is_unknown, is_key = view.words, error.code is ErrorCode.CALL_UNKNOWN, error.actor is Actor.KEY
    # Nobody failed where an answer never came: the person decides whether it is asked for again.
    actor = error.code.value if is_unknown else error.actor.value
    refused_by = words(f"failure.refused_{error.refused}", **error.sentence_parameters) if error.refused else ""
    is_charge_told = error.actor in _OF_A_CALL or error.charged is not Charge.NO
    again = ""
    if turn_id and not is_unknown:
        # Whether sending the very same message again can help.
        again = "failure.again_refused" if error.refused else "failure.again_same"
        again = "failure.again_helps" if error.can_retry else again
    return view.render(
        "thread/failure.html",
        error=error,
        turn_id=turn_id,
        rewordings=rewordings,
        who=words(f"failure.who_{actor}"),
        head_icon=_HEAD_ICONS.get(error.actor, "circle-alert"),
        title=words(f"failure.title_refused_{error.refused}" if error.refused else f"failure.title_{actor}"),
        refused=refused_by,
        why=_why(words, error),
        place=next_step(words, error.code),
        again=again,
        charged=words(f"failure.charged_{error.charged.value}") if is_charge_told else "",
        is_calm=is_unknown or error.actor in (Actor.YOU, Actor.KEY),
        is_key=is_key,
        download=_picture_to_keep(view, error),
        # The likeliest way on is first and filled.
        retry_style="solid" if error.can_retry and not rewordings and not is_key else "line",
    )


def question_sentence(words: Words, question: Question, subject: str) -> str:
    """Return the question in a sentence."""
    match question:
        case "empty":
            return words("question.empty")
        case "unsure":
            return words("question.unsure_of", subject=subject) if subject else words("question.unsure")
        case "which_part":
            return words("question.which_part_of", subject=subject) if subject else words("question.which_part")
        case "no_mask":
            return words("question.no_mask")
        case "not_painted":
            return words("question.not_painted")
        case _:
            assert_never(question)


def target_sentence(words: Words, change: TargetChanged) -> str:
    """Return which picture the person's next words change, after they went back or forward."""
    if change.missing:
        return words("target.missing", name=change.missing, handle=change.handle or "–")
    if not change.handle:
        return words("target.none")
    if not change.has_moved:
        return words(f"target.{change.move}_nothing", handle=change.handle)
    return words(f"target.{change.move}", handle=change.handle)


def asked(view: View, question: Question, subject: str, newest: str) -> Markup:
    """Return the question with ways to answer it: examples that fill the composer, or what to press.

    `newest` is the handle of the conversation's newest picture, or empty where it has none.
    """
    picture = subject if newest and subject.startswith("#") else newest
    sentence = question_sentence(view.words, question, subject)
    return view.render(
        "thread/question.html", question=question, sentence=sentence, picture=picture, examples=_EXAMPLES
    )


def _why(words: Words, error: ErrorInfo) -> str:
    """Return the sentence of a failure, with the provider's reason in words beside its code."""
    reason = str(error.parameters.get("reason", ""))
    if reason not in _REASONS:
        return words.error(error)
    told = words("reason.with_code", reason=words(_REASONS[reason]), code=reason)
    return words.error(error.model_copy(update={"parameters": {**error.parameters, "reason": told}}))


def _picture_to_keep(view: View, error: ErrorInfo) -> str:
    """Return the address of a picture that was paid for and that the full disk does not take."""
    digest, handle = error.parameters.get("digest"), error.parameters.get("handle")
    if error.code is ErrorCode.PICTURE_NOT_RECORDED and digest:
        return view.unrecorded_url(str(digest))
    if error.code is ErrorCode.PICTURE_NOT_SAVED and handle:
        return view.url(str(handle), is_download=True, kind="clean")
    return ""
