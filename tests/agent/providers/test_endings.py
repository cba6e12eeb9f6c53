"""Every way an answer can end, over real HTTP through the real SDKs: code, who must act, retry or not, charged or not.

A row names what is served, and what comes of it for an answer in words and for a picture. Where a row has one outcome
it is that of both. The last tests hold that the tables miss nothing that the SDKs know.
"""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractContextManager, ExitStack, aclosing, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import openai
import pytest
from google.genai import errors, types
from pydantic import SecretStr

from agent.errors import Actor, AivistaError, Charge, ErrorInfo
from agent.messages import CompletionChunk, PromptMessage, Role, TextPart
from tests import openai_server as openai_wire
from tests.adapters.catalogue import ModelEntry, ModelRole, load_catalogue
from tests.adapters.providers import TEXT_ENDS, Asked, Endpoint, GeminiProvider, OpenAIProvider, as_ours, failure_of
from tests.adapters.scripted import ImageRequest
from tests.openai_server import OpenAIServer
from tests.support import broken_servers as broken
from tests.support.cases import each_case
from tests.support.openai import openai_settings
from tests.support.shelf import Shelf
from tests.wire_server import (
    Answer,
    Blocked,
    Cut,
    Empty,
    Events,
    Finish,
    Garbage,
    GeminiServer,
    Hold,
    HttpError,
    MalformedCall,
    MidStreamError,
    PictureAnswer,
    Text,
    TextOnly,
    error_body,
    key_body,
    quota_body,
)
from tests.wire_server.refusals import bad_key, retired_model, unknown_model

# The SDK warns of values that it does not know; they are here on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:OF_NEXT_YEAR is not a valid")

KEY = "AIzaSyNobodysKeyForTheTests00000000002"
FLASH = load_catalogue().model(ModelRole.FLASH, "gemini")
PAINTER = load_catalogue().model(ModelRole.IMAGE_FLASH, "gemini")
# How long a server may be silent: shorter than any patience where that is what is served, else longer than any test.
SHORT_S, LONG_S = 0.4, 60.0

# Whether sending the very same again can help.
AGAIN, NOT_AGAIN = True, False
# Whether the provider charges for the call: nothing, what the answer used (and counts), nobody knows.
FREE, PAID, PERHAPS = Charge.NO, Charge.YES, Charge.MAYBE
YOU, KEY_OWNER, POLICY, PROVIDER = Actor.YOU, Actor.KEY, Actor.POLICY, Actor.PROVIDER
NETWORK, OPERATOR, US = Actor.NETWORK, Actor.OPERATOR, Actor.US


class End(NamedTuple):
    """What came of a call."""

    code: str
    who: Actor
    again: bool
    charged: Charge


GOOD: End | None = None
Broken = Callable[[], AbstractContextManager[str]]


class Row(NamedTuple):
    """What is served, and what comes of it for words and for a picture."""

    name: str
    served: Any
    words: End | None
    picture: End | None


NOT_SERVED = End("not served", Actor.US, again=False, charged=Charge.NO)
_SAME = NOT_SERVED._replace(code="as for words")


def row(name: str, served: Any, words: End | None, picture: End | None = _SAME) -> Row:
    return Row(name, served, words, words if picture is _SAME else picture)


def shape(**body: Any) -> Events:
    """An answer in one event, of whatever shape, without any count of tokens."""
    return Events([body])


def page(status: int, title: str) -> HttpError:
    """A web page in the place of the API's answer."""
    text = f"<!DOCTYPE html><html><head><title>{title}</title><style>p {{}}</style></head><p>{title}</p></html>"
    return HttpError(status, body=text.encode(), headers={"content-type": "text/html; charset=utf-8"})


def failed(status: int, message: str, kind: str = "") -> HttpError:
    """An error of the API's own, of this kind."""
    body = error_body(status, message)
    if kind:
        body["error"]["status"] = kind
    return HttpError(status, body=body)


EMPTY = End("empty_answer", PROVIDER, AGAIN, PAID)
EMPTY_UNCOUNTED = End("empty_answer", PROVIDER, AGAIN, PERHAPS)
UNKNOWN = End("unknown_reason", PROVIDER, AGAIN, PAID)
UNREADABLE = End("answer_unreadable", PROVIDER, AGAIN, PERHAPS)
CUT = End("stream_cut", NETWORK, AGAIN, PERHAPS)
ANSWER_BLOCKED = End("answer_blocked", POLICY, NOT_AGAIN, PAID)
PICTURE_BLOCKED = End("picture_blocked", POLICY, NOT_AGAIN, PAID)
RECITATION = End("picture_recitation", POLICY, NOT_AGAIN, PAID)
PROMPT_BLOCKED = End("prompt_blocked", POLICY, NOT_AGAIN, PAID)
NO_PICTURE = End("no_picture", PROVIDER, AGAIN, PAID)
TOO_LONG = End("answer_too_long", PROVIDER, AGAIN, PAID)
GARBLED = End("malformed_call", PROVIDER, AGAIN, PAID)
REJECTED = End("request_rejected", US, NOT_AGAIN, FREE)
WRONG_ADDRESS = End("wrong_address", OPERATOR, NOT_AGAIN, FREE)
REDIRECTED = End("redirected", OPERATOR, NOT_AGAIN, FREE)
NOT_FOUND = End("model_not_found", OPERATOR, NOT_AGAIN, FREE)
UNFIT = End("model_unfit", OPERATOR, NOT_AGAIN, FREE)
KEY_INVALID = End("key_invalid", KEY_OWNER, NOT_AGAIN, FREE)
KEY_FORBIDDEN = End("key_forbidden", KEY_OWNER, NOT_AGAIN, FREE)
RESTRICTED = End("key_restricted", KEY_OWNER, NOT_AGAIN, FREE)
NO_BILLING = End("billing_required", KEY_OWNER, NOT_AGAIN, FREE)
SIGNATURE = End("signature_rejected", PROVIDER, AGAIN, FREE)
TOO_LARGE = End("request_too_large", YOU, NOT_AGAIN, FREE)
CONTEXT = End("context_too_long", YOU, NOT_AGAIN, FREE)
BAD_PICTURE = End("picture_rejected", YOU, AGAIN, FREE)
LIMITED = End("rate_limited", PROVIDER, AGAIN, FREE)
SLOW_DOWN = End("slow_down", PROVIDER, AGAIN, FREE)
OVERLOADED = End("overloaded", PROVIDER, AGAIN, FREE)
FAILED = End("provider_error", PROVIDER, AGAIN, PERHAPS)
GAVE_UP = End("provider_gave_up", PROVIDER, AGAIN, PERHAPS)
SILENT = End("provider_timeout", PROVIDER, AGAIN, PERHAPS)
UNREACHABLE = End("connection_failed", NETWORK, AGAIN, FREE)
PROXY = End("proxy_failed", NETWORK, NOT_AGAIN, FREE)

FINISHES: dict[str, Row] = {
    one.name: one
    for one in (
        row("FINISH_REASON_UNSPECIFIED", None, EMPTY),
        row("STOP", None, EMPTY),
        row("MAX_TOKENS", None, TOO_LONG),
        row("CONTINUATION", None, TOO_LONG),
        row("SAFETY", None, ANSWER_BLOCKED, PICTURE_BLOCKED),
        row("RECITATION", None, ANSWER_BLOCKED, RECITATION),
        row("BLOCKLIST", None, ANSWER_BLOCKED, PICTURE_BLOCKED),
        row("PROHIBITED_CONTENT", None, ANSWER_BLOCKED, PICTURE_BLOCKED),
        row("SPII", None, ANSWER_BLOCKED, PICTURE_BLOCKED),
        row("MODEL_ARMOR", None, ANSWER_BLOCKED, PICTURE_BLOCKED),
        row("ESCALATION", None, ANSWER_BLOCKED, PICTURE_BLOCKED),
        row("PUP_LIMITED_DISABLED", None, End("account_limited", KEY_OWNER, NOT_AGAIN, PAID)),
        row("LANGUAGE", None, End("language_unsupported", YOU, NOT_AGAIN, PAID)),
        row("OTHER", None, UNKNOWN),
        row("MALFORMED_FUNCTION_CALL", None, GARBLED),
        row("MALFORMED_RESPONSE", None, GARBLED),
        row("UNEXPECTED_TOOL_CALL", None, GARBLED),
        row("TOO_MANY_TOOL_CALLS", None, End("tool_loop", PROVIDER, AGAIN, PAID)),
        row("MISSING_THOUGHT_SIGNATURE", None, End("signature_rejected", PROVIDER, AGAIN, PAID)),
        row("IMAGE_SAFETY", None, PICTURE_BLOCKED),
        row("IMAGE_PROHIBITED_CONTENT", None, PICTURE_BLOCKED),
        row("IMAGE_RECITATION", None, RECITATION),
        row("IMAGE_OTHER", None, NO_PICTURE),
        row("NO_IMAGE", None, NO_PICTURE),
        row("OF_NEXT_YEAR", None, UNKNOWN),
    )
}
BLOCKS = [reason.value for reason in types.BlockedReason] + ["OF_NEXT_YEAR"]

GEMINI: list[Row] = [
    *(one._replace(name=f"finish {name}", served=Finish(name, "because")) for name, one in FINISHES.items()),
    *(row(f"block {reason}", Blocked(reason, "because"), PROMPT_BLOCKED) for reason in BLOCKS),
    # HTTP 200 that does not say how it ended.
    row("no event at all", Events([]), EMPTY_UNCOUNTED),
    row("an empty object", shape(), EMPTY_UNCOUNTED),
    row("no candidates", shape(candidates=[]), EMPTY_UNCOUNTED),
    row("candidates of null", shape(candidates=None), EMPTY_UNCOUNTED),
    row("an empty candidate", shape(candidates=[{}]), EMPTY_UNCOUNTED),
    row("an empty content", shape(candidates=[{"content": {}}]), EMPTY_UNCOUNTED),
    row("parts of null", shape(candidates=[{"content": {"role": "model", "parts": None}}]), EMPTY_UNCOUNTED),
    row("an empty part", shape(candidates=[{"content": {"parts": [{}]}}]), EMPTY_UNCOUNTED),
    row("only a count", shape(usageMetadata={"promptTokenCount": 3}), EMPTY),
    row("feedback without a reason", shape(promptFeedback={}), EMPTY_UNCOUNTED),
    row(
        "feedback with only a message",
        shape(promptFeedback={"blockReasonMessage": "We are sorry."}),
        End("unknown_reason", PROVIDER, AGAIN, PERHAPS),
    ),
    row(
        "only a message",
        shape(candidates=[{"finishMessage": "Model failed."}]),
        End("unknown_reason", PROVIDER, AGAIN, PERHAPS),
    ),
    row(
        "words without an end",
        shape(candidates=[{"content": {"parts": [{"text": "Once"}]}}]),
        End("answer_unfinished", PROVIDER, AGAIN, PERHAPS),
    ),
    # HTTP 200 that cannot be read.
    row("content that is a text", shape(candidates=[{"content": "Hello"}]), UNREADABLE),
    row("candidates that are texts", shape(candidates=["Hello"]), EMPTY_UNCOUNTED),
    row("a finish reason that is a number", shape(candidates=[{"finishReason": 3}]), UNREADABLE),
    row("a list", Events([["Hello"]]), EMPTY_UNCOUNTED),
    row("a number", Events([7]), UNREADABLE),
    row("half of JSON", Events([b'{"candidates": [{']), UNREADABLE),
    row("no JSON", Garbage(), UNREADABLE),
    row("no JSON after a while", Garbage(after_chunks=2), UNREADABLE),
    # HTTP 200 that ends well, but brings nothing of use.
    row("nothing said", Empty(), EMPTY),
    row("an empty part at the end", Empty(has_empty_part=True), EMPTY),
    row("a garbled call", MalformedCall(), GARBLED),
    row("cut at its length", Text("Once", finish_reason="MAX_TOKENS"), TOO_LONG),
    row("words", Text("Here you are."), GOOD, End("text_instead_of_picture", PROVIDER, AGAIN, PAID)),
    row("words for a reason of next year", Text("Here.", finish_reason="OF_NEXT_YEAR"), GOOD, UNKNOWN),
    row("a picture", PictureAnswer(width=64, height=36), NOT_SERVED, GOOD),
    row("words of a painter", TextOnly("I'd rather not."), GOOD, End("text_instead_of_picture", PROVIDER, AGAIN, PAID)),
    # The connection.
    row("cut at once", Cut(after_chunks=0), CUT),
    row("cut in the middle", Cut(after_chunks=2), CUT),
    row("silence", Hold(Text("late")), SILENT),
    row("silence in the middle", Hold(Text("One two three", chunks=3), after_chunks=2), SILENT),
    row("nobody listens", broken.refusing, UNREACHABLE),
    row("no such host", broken.unknown_host, UNREACHABLE),
    row("closed without an answer", broken.closing, CUT),
    row("reset in the middle", broken.resetting, CUT),
    row("not HTTP", partial(broken.speaking, broken.NOT_HTTP), UNREADABLE),
    row("packed wrongly", partial(broken.speaking, broken.BAD_GZIP), UNREADABLE),
    row("a certificate nobody trusts", broken.untrusted, End("certificate_failed", NETWORK, NOT_AGAIN, FREE)),
    row("no TLS", broken.unencrypted, End("tls_failed", NETWORK, NOT_AGAIN, FREE)),
    # An event of the stream tells an error: the model had begun.
    row("503 in the stream", MidStreamError(2, 503), End("overloaded", PROVIDER, AGAIN, PERHAPS)),
    row("503 first in the stream", Events([error_body(503, "busy")]), End("overloaded", PROVIDER, AGAIN, PERHAPS)),
    row("500 in the stream", MidStreamError(2, 500), FAILED),
    row("499 in the stream", MidStreamError(2, 499, "The operation was cancelled."), FAILED),
    row(
        "429 in the stream",
        Events([quota_body("minute", retry_s=34.0)]),
        End("rate_limited", PROVIDER, AGAIN, PERHAPS),
    ),
    row(
        "an error without a code",
        Events([{"error": {"message": "We are sorry."}}]),
        End("unknown_reason", PROVIDER, AGAIN, PERHAPS),
    ),
    row("an error that is a text", Events([{"error": "no"}]), End("unknown_reason", PROVIDER, AGAIN, PERHAPS)),
    # 400
    row("400 a bad key", HttpError(400, body=bad_key().body), KEY_INVALID),
    row(
        "400 an expired key",
        failed(400, "API key expired. Please renew the API key."),
        End("key_expired", KEY_OWNER, NOT_AGAIN, FREE),
    ),
    row(
        "400 a region",
        failed(400, "User location is not supported for the API use.", "FAILED_PRECONDITION"),
        End("region_unsupported", KEY_OWNER, NOT_AGAIN, FREE),
    ),
    row(
        "400 billing",
        failed(400, "Free tier is not available. Please enable billing on your project.", "FAILED_PRECONDITION"),
        NO_BILLING,
    ),
    row("400 a signature", failed(400, "Corrupted thought signature."), SIGNATURE),
    row(
        "400 no signature",
        failed(400, "Image part is missing a thought_signature in content position 2, part position 1."),
        SIGNATURE,
    ),
    row(
        "400 too many tokens",
        failed(400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
        CONTEXT,
    ),
    row("400 too many bytes", failed(400, "Request payload size exceeds the limit: 104857600 bytes."), TOO_LARGE),
    row("400 a bad picture", failed(400, "Provided image is not valid"), BAD_PICTURE),
    row("400 a picture not read", failed(400, "Unable to process input image. Please retry or report"), BAD_PICTURE),
    row("400 no functions", failed(400, "Function calling is not enabled for this model"), UNFIT),
    row("400 no thinking", failed(400, "Thinking is not enabled for models/gemini-2.5-flash-image"), UNFIT),
    row("400 one candidate", failed(400, "Multiple candidates is not enabled for this model"), UNFIT),
    row(
        "400 results",
        failed(400, "Please ensure that the number of function response parts is equal to the number of calls."),
        REJECTED,
    ),
    row("400 something else", failed(400, "* contents: bad"), REJECTED),
    row("400 no text", HttpError(400, body=b"\xff\xfe no text"), REJECTED),
    row("400 a list", HttpError(400, body=b'["a", "b"]'), REJECTED),
    row("400 a page", page(400, "Bad Request"), WRONG_ADDRESS),
    # 401, 403
    row("401", failed(401, "Request had invalid authentication credentials."), KEY_INVALID),
    row("401 without words", HttpError(401, body=b""), KEY_INVALID),
    row("401 a page", page(401, "Sign in"), WRONG_ADDRESS),
    row("403", failed(403, "The caller does not have permission"), KEY_FORBIDDEN),
    row(
        "403 a leaked key",
        failed(403, "Your API key was reported as leaked. Please use another API key."),
        End("key_leaked", KEY_OWNER, NOT_AGAIN, FREE),
    ),
    row("403 a referrer", HttpError(403, body=key_body("API_KEY_HTTP_REFERRER_BLOCKED", "no")), RESTRICTED),
    row("403 an address", HttpError(403, body=key_body("API_KEY_IP_ADDRESS_BLOCKED", "no")), RESTRICTED),
    row("403 an Android app", HttpError(403, body=key_body("API_KEY_ANDROID_APP_BLOCKED", "no")), RESTRICTED),
    row("403 an iOS app", HttpError(403, body=key_body("API_KEY_IOS_APP_BLOCKED", "no")), RESTRICTED),
    row(
        "403 another API",
        HttpError(403, body=key_body("API_KEY_SERVICE_BLOCKED", "no")),
        End("key_without_api", KEY_OWNER, NOT_AGAIN, FREE),
    ),
    row(
        "403 turned off",
        HttpError(403, body=key_body("SERVICE_DISABLED", "no")),
        End("api_disabled", KEY_OWNER, NOT_AGAIN, FREE),
    ),
    row(
        "403 suspended",
        HttpError(403, body=key_body("CONSUMER_SUSPENDED", "no")),
        End("key_suspended", KEY_OWNER, NOT_AGAIN, FREE),
    ),
    row("403 no billing", HttpError(403, body=key_body("BILLING_DISABLED", "no")), NO_BILLING),
    row("403 cached content", failed(403, "CachedContent not found (or permission denied)"), REJECTED),
    row("403 a file", failed(403, "You do not have permission to access the File abc or it may not exist."), REJECTED),
    row("403 a page", page(403, "Access denied by your organization"), WRONG_ADDRESS),
    # 404
    row("404 a model", HttpError(404, body=unknown_model("x", "v1beta", "generateContent").body), NOT_FOUND),
    row("404 a retired model", HttpError(404, body=retired_model("x").body), NOT_FOUND),
    row("404 cached content", failed(404, "Cached content not found: cachedContents/abc"), REJECTED),
    row("404 something", failed(404, "Requested entity was not found."), REJECTED),
    row("404 a page", page(404, "Error 404 (Not Found)!!1"), WRONG_ADDRESS),
    row("404 another server's", HttpError(404, body={"detail": "Not Found"}), WRONG_ADDRESS),
    row("404 without words", HttpError(404, body=b""), WRONG_ADDRESS),
    row("405 another server's", HttpError(405, body={"detail": "Method Not Allowed"}), WRONG_ADDRESS),
    # Other statuses
    row("301", HttpError(301, body=b"", headers={"location": "https://example.org/"}), REDIRECTED),
    row("302", HttpError(302, body=b"", headers={"location": "/sign-in"}), REDIRECTED),
    row("307", HttpError(307, body=b"", headers={"location": "https://example.org/v1beta"}), REDIRECTED),
    row("200 a page", page(200, "Welcome to the guest network"), WRONG_ADDRESS),
    row("402", failed(402, "Payment required"), REJECTED),
    row("407", failed(407, "Proxy Authentication Required"), PROXY),
    row("408", failed(408, "Request timeout"), GAVE_UP),
    row("409", failed(409, "The operation was aborted.", "ABORTED"), FAILED),
    row("413", page(413, "Request Entity Too Large"), TOO_LARGE),
    row("415", failed(415, "Unsupported media type"), REJECTED),
    row("431", failed(431, "Request header fields too large"), REJECTED),
    row("429 a minute", HttpError(429, body=quota_body("minute", retry_s=34.0)), LIMITED),
    row("429 a header", HttpError(429, "slow down", headers={"Retry-After": "7"}), LIMITED),
    row(
        "429 a date",
        HttpError(
            429,
            "slow down",
            headers={"Date": "Mon, 23 Nov 2026 10:00:00 GMT", "Retry-After": "Mon, 23 Nov 2026 10:00:04 GMT"},
        ),
        LIMITED,
    ),
    row("429 no hint", failed(429, "Resource has been exhausted (e.g. check quota)."), SLOW_DOWN),
    row("429 a page", page(429, "Too many requests"), SLOW_DOWN),
    row(
        "429 a day",
        HttpError(429, body=quota_body("day", limit=100)),
        End("quota_exhausted", KEY_OWNER, NOT_AGAIN, FREE),
    ),
    row("429 limit 0", HttpError(429, body=quota_body("day", limit=0)), NO_BILLING),
    row(
        "429 credits",
        failed(429, "Your prepayment credits are depleted."),
        End("credits_used_up", KEY_OWNER, NOT_AGAIN, FREE),
    ),
    row("499", failed(499, "The operation was cancelled."), FAILED),
    row("500", HttpError(500), FAILED),
    row("500 a text for an error", HttpError(500, body=b'{"error": "a string"}'), FAILED),
    row("500 a page", page(500, "Error 500 (Server Error)!!1"), FAILED),
    row("501", HttpError(501, "Not implemented"), FAILED),
    row("502", page(502, "Bad Gateway"), FAILED),
    row("503", HttpError(503), OVERLOADED),
    row("503 a page", page(503, "Service Unavailable"), OVERLOADED),
    row("504", failed(504, "Deadline expired before operation could complete."), GAVE_UP),
    row("504 a page", page(504, "Gateway Timeout"), GAVE_UP),
    row("529", failed(529, "Overloaded"), OVERLOADED),
]


async def ending(chunks: AsyncIterator[CompletionChunk]) -> ErrorInfo | None:
    """Return how a call ended, whichever way it says so."""
    last: ErrorInfo | None = None
    try:
        async for chunk in chunks:
            last = chunk.error
    except AivistaError as error:
        return error.info
    return last


def outcome(info: ErrorInfo | None) -> End | None:
    return End(info.code.value, info.actor, info.can_retry, info.charged) if info is not None else None


def prompt() -> PromptMessage:
    return PromptMessage(role=Role.PROMPT, parts=(TextPart(text="a fox"),))


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


async def asked_of_gemini(served: Any, *, for_picture: bool) -> ErrorInfo | None:
    with ExitStack() as stack:
        if isinstance(served, Answer):
            server = stack.enter_context(GeminiServer())
            server.on_image(served)
            server.on_text(served)
            url = server.url
        else:
            url = stack.enter_context(served())
        patience_s = SHORT_S if isinstance(served, Hold) else LONG_S
        provider = GeminiProvider(KEY, Shelf(), base_url=url, text_timeout_s=patience_s, image_timeout_s=patience_s)
        request = ImageRequest(model=PAINTER, messages=(prompt(),))
        call = provider.generate(request) if for_picture else provider.stream(FLASH, [prompt()])
        async with aclosing(call) as chunks:
            info = await ending(chunks)
        await provider.aclose()
        if isinstance(served, Answer):
            assert len(server.requests) == 1, "nothing is tried twice here"
        return info


def rows(table: list[Row]) -> list[Any]:
    """Return each row once for words and once for a picture."""
    return [
        pytest.param(one.served, one.picture if for_picture else one.words, for_picture, id=f"{one.name}, {kind}")
        for one in table
        for kind, for_picture in (("words", False), ("picture", True))
        if (one.picture if for_picture else one.words) is not NOT_SERVED
    ]


@each_case(("served", "expected", "for_picture"), rows(GEMINI))
async def test_gemini(served: Any, expected: End | None, for_picture: bool) -> None:
    info = await asked_of_gemini(served, for_picture=for_picture)
    assert outcome(info) == expected
    if info is not None:
        assert "?" not in info.message
        assert KEY not in info.model_dump_json()


# The same for a server of OpenAI's API. What it calls a stream is one only for words.


def event(delta: dict[str, Any], finish_reason: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}], **more}


NO_PICTURE_UNCOUNTED = End("no_picture", PROVIDER, AGAIN, PERHAPS)
WRONG_PATH = End("wrong_path", OPERATOR, NOT_AGAIN, FREE)
BROKEN_PICTURE = End("broken_picture", PROVIDER, AGAIN, PAID)

OPENAI_FINISHES: dict[str, End | None] = {
    "stop": GOOD,
    "tool_calls": GOOD,
    "function_call": GOOD,
    "of_next_year": GOOD,
    "length": TOO_LONG,
    "content_filter": ANSWER_BLOCKED,
    "insufficient_system_resource": End("overloaded", PROVIDER, AGAIN, PAID),
    "error": UNKNOWN,
}


UNCODED: list[dict[str, Any]] = [
    {"error": {"message": "oh"}},
    {"error": "oh"},
    {"object": "error", "message": "oh"},
]


def http(status: int, message: str = "no", *, code: str | None = None, body: Any = None, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return openai_wire.HttpError(status, message, code, body, named)


def web_page(status: int) -> Any:
    return http(status, body=b"<!DOCTYPE html><html><p>Log in</p></html>", content_type="text/html")


OPENAI: list[Row] = [
    *(
        row(f"finish {name}", openai_wire.Text("Once", finish_reason=name), end, NOT_SERVED)
        for name, end in OPENAI_FINISHES.items()
    ),
    row("nothing said", openai_wire.Text(" "), EMPTY, NOT_SERVED),
    row("only thoughts", openai_wire.Text("", thoughts="Hm."), EMPTY, NOT_SERVED),
    row("no event at all", openai_wire.Events([]), EMPTY_UNCOUNTED, NOT_SERVED),
    row("an empty object", openai_wire.Events([{}]), EMPTY_UNCOUNTED, NOT_SERVED),
    row("no choices", openai_wire.Events([{"choices": []}]), EMPTY_UNCOUNTED, NOT_SERVED),
    row("choices of null", openai_wire.Events([{"choices": None}]), EMPTY_UNCOUNTED, NOT_SERVED),
    row("an empty choice", openai_wire.Events([{"choices": [{}]}]), EMPTY_UNCOUNTED, NOT_SERVED),
    row("a delta of null", openai_wire.Events([{"choices": [{"delta": None}]}]), EMPTY_UNCOUNTED, NOT_SERVED),
    row("choices that are texts", openai_wire.Events([{"choices": ["Hello"]}]), EMPTY_UNCOUNTED, NOT_SERVED),
    row(
        "words without an end",
        openai_wire.Events([event({"content": "Once"})]),
        End("answer_unfinished", PROVIDER, AGAIN, PERHAPS),
        NOT_SERVED,
    ),
    row(
        "cut in its length, uncounted",
        openai_wire.Events([event({"content": "Once"}, "length")]),
        End("answer_too_long", PROVIDER, AGAIN, PERHAPS),
        NOT_SERVED,
    ),
    row("a garbled call", openai_wire.Calls([openai_wire.Call("look", raw='{"at": no}')]), GARBLED, NOT_SERVED),
    row("half of JSON", openai_wire.Events([b"{oops"]), UNREADABLE, NOT_SERVED),
    row("a list", openai_wire.Events([b"[1]"]), UNREADABLE, NOT_SERVED),
    row("no text", openai_wire.Events([b"\xff\xfe"]), UNREADABLE, NOT_SERVED),
    row("cut at once", openai_wire.Cut(0), CUT),
    row("cut in the middle", openai_wire.Cut(2), CUT, NOT_SERVED),
    row("silence", openai_wire.Hold(openai_wire.Text("late")), SILENT),
    row("silence in the middle", openai_wire.Hold(openai_wire.Text("late"), 2), SILENT, NOT_SERVED),
    row("nobody listens", broken.refusing, UNREACHABLE),
    row("no such host", broken.unknown_host, UNREACHABLE),
    row("closed without an answer", broken.closing, CUT),
    row("reset in the middle", broken.resetting, CUT),
    row("not HTTP", partial(broken.speaking, broken.NOT_HTTP), UNREADABLE),
    row("packed wrongly", partial(broken.speaking, broken.BAD_GZIP), UNREADABLE),
    row("a certificate nobody trusts", broken.untrusted, End("certificate_failed", NETWORK, NOT_AGAIN, FREE)),
    row("no TLS", broken.unencrypted, End("tls_failed", NETWORK, NOT_AGAIN, FREE)),
    row(
        "503 in the stream",
        openai_wire.MidStreamError(2, {"error": {"message": "busy", "code": 503}}),
        End("overloaded", PROVIDER, AGAIN, PERHAPS),
        NOT_SERVED,
    ),
    *(
        row(
            f"an error without a code {number}",
            openai_wire.MidStreamError(2, told),
            End("unknown_reason", PROVIDER, AGAIN, PERHAPS),
            NOT_SERVED,
        )
        for number, told in enumerate(UNCODED)
    ),
    # Of a picture
    row("no data", openai_wire.Raw({"created": 1, "data": []}), NOT_SERVED, NO_PICTURE_UNCOUNTED),
    row("data of null", openai_wire.Raw({"data": None}), NOT_SERVED, NO_PICTURE_UNCOUNTED),
    row("an empty picture object", openai_wire.Raw({"data": [{}]}), NOT_SERVED, NO_PICTURE_UNCOUNTED),
    row(
        "no data, counted",
        openai_wire.Raw({"data": [], "usage": {"input_tokens": 3, "output_tokens": 4}}),
        NOT_SERVED,
        NO_PICTURE,
    ),
    row(
        "no picture",
        openai_wire.Raw({"data": [{"b64_json": "aGVsbG8="}]}),
        NOT_SERVED,
        End("broken_picture", PROVIDER, AGAIN, PERHAPS),
    ),
    row(
        "no base64",
        openai_wire.Raw({"data": [{"b64_json": "!"}]}),
        NOT_SERVED,
        End("broken_picture", PROVIDER, AGAIN, PERHAPS),
    ),
    row("its file elsewhere", openai_wire.PictureAt("https://example.org/one.png"), NOT_SERVED, NO_PICTURE_UNCOUNTED),
    row("a picture", openai_wire.Picture(), NOT_SERVED, GOOD),
    row("an answer that is a list", openai_wire.Raw(b"[1]"), NOT_SERVED, UNREADABLE),
    row("an answer that is no JSON", openai_wire.Raw(b"{oops"), NOT_SERVED, UNREADABLE),
    # Statuses
    row("200 a page", web_page(200), WRONG_ADDRESS),
    row("200 no stream", openai_wire.Raw({"choices": []}), End("wrong_path", OPERATOR, NOT_AGAIN, PERHAPS), NOT_SERVED),
    row("307", http(307, location="https://example.org/"), REDIRECTED),
    row("400", http(400, "messages: bad"), REJECTED),
    row("400 a bad key", http(400, code="invalid_api_key"), KEY_INVALID),
    row(
        "400 a policy",
        http(400, code="content_policy_violation"),
        PROMPT_BLOCKED._replace(charged=FREE),
        PICTURE_BLOCKED._replace(charged=FREE),
    ),
    row(
        "400 a filter",
        http(400, code="content_filter"),
        PROMPT_BLOCKED._replace(charged=FREE),
        PICTURE_BLOCKED._replace(charged=FREE),
    ),
    row("400 too many tokens", http(400, "too long", code="context_length_exceeded"), CONTEXT),
    row("400 a bad picture", http(400, "no", code="invalid_image"), BAD_PICTURE),
    row("400 no text", http(400, body=b"\xff\xfe no text"), REJECTED),
    row("400 a list", http(400, body=b'["a", "b"]'), REJECTED),
    row("401", http(401), KEY_INVALID),
    row("401 a page", web_page(401), WRONG_ADDRESS),
    row("402", http(402, "Insufficient Balance"), NO_BILLING),
    row("403", http(403), KEY_FORBIDDEN),
    row("403 a page", web_page(403), WRONG_ADDRESS),
    row("404 a model", http(404, 'model "talker" not found, try pulling it'), NOT_FOUND),
    row("404 a model by its code", http(404, "gone", code="model_not_found"), NOT_FOUND),
    row("404 another server's", http(404, body={"detail": "Not Found"}), WRONG_PATH),
    row("404 a text", http(404, body=b"404 page not found"), WRONG_PATH),
    row("404 a page", web_page(404), WRONG_ADDRESS),
    row("405", http(405, body={"detail": "Method Not Allowed"}), WRONG_PATH),
    row("407", http(407), PROXY),
    row("408", http(408), GAVE_UP),
    row("409", http(409), FAILED),
    row("413", web_page(413), TOO_LARGE),
    row("422", http(422, body={"detail": [{"msg": "bad"}]}), REJECTED),
    row("429", http(429, "slow down"), SLOW_DOWN),
    row("429 a header", http(429, "slow down", retry_after="7"), LIMITED),
    row("429 milliseconds", http(429, "slow down", retry_after_ms="1500"), LIMITED),
    row("429 a date", http(429, "slow down", retry_after="Mon, 23 Nov 2026 10:00:04 GMT"), LIMITED),
    row("429 in words", http(429, "Rate limit reached. Please try again in 20.5s."), LIMITED),
    row("429 no quota", http(429, code="insufficient_quota"), NO_BILLING),
    row("499", http(499), FAILED),
    row("500", http(500), FAILED),
    row("500 a text for an error", http(500, body={"error": "a string"}), FAILED),
    row("502 a page", web_page(502), FAILED),
    row("503", http(503), OVERLOADED),
    row("504", http(504), GAVE_UP),
    row("529", http(529), OVERLOADED),
]


async def asked_of_openai(served: Any, *, for_picture: bool) -> ErrorInfo | None:
    with ExitStack() as stack:
        server = stack.enter_context(OpenAIServer(key=KEY))
        fields: dict[str, Any] = {}
        if isinstance(served, openai_wire.Answer):
            server.on_picture(served)
            server.on_chat(served)
        else:
            fields = {"base_url": f"{stack.enter_context(served())}/v1"}
        settings = openai_settings(server, key=KEY, **fields)
        models = load_catalogue(openai=settings)
        talker, painter = (models.model(role, "openai") for role in (ModelRole.FLASH, ModelRole.IMAGE_FLASH))
        patience_s = SHORT_S if isinstance(served, openai_wire.Hold) else LONG_S
        provider = OpenAIProvider(settings, Shelf(), text_timeout_s=patience_s, image_timeout_s=patience_s)
        request = ImageRequest(model=painter, messages=(prompt(),))
        call = provider.generate(request) if for_picture else provider.stream(talker, [prompt()])
        async with aclosing(call) as chunks:
            info = await ending(chunks)
        await provider.aclose()
        if isinstance(served, openai_wire.Answer):
            assert len(server.chats) + len(server.pictures) == 1, "nothing is tried twice here"
        return info


@each_case(("served", "expected", "for_picture"), rows(OPENAI))
async def test_a_server_of_openais_api(served: Any, expected: End | None, for_picture: bool) -> None:
    info = await asked_of_openai(served, for_picture=for_picture)
    assert outcome(info) == expected
    if info is not None:
        assert "?" not in info.message
        assert "Google" not in info.message
        assert KEY not in info.model_dump_json()


# A proxy between the studio and the server.


@pytest.mark.parametrize("status", [b"403 Forbidden", b"407 Proxy Authentication Required", b"502 Bad Gateway"])
async def test_a_proxy_that_lets_nothing_through(status: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with broken.speaking(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\n\r\n") as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        elsewhere = partial(nullcontext, "https://models.example.org")
        assert outcome(await asked_of_gemini(elsewhere, for_picture=False)) == PROXY
        assert outcome(await asked_of_openai(elsewhere, for_picture=False)) == PROXY


async def test_a_proxy_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with broken.refusing() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        elsewhere = partial(nullcontext, "https://models.example.org")
        assert outcome(await asked_of_gemini(elsewhere, for_picture=True)) == UNREACHABLE


# Exceptions that no server of ours can bring about, each by its class: what it means whenever it is raised.

HTTP_EXCEPTIONS: dict[str, End] = {
    "CloseError": CUT,
    "ConnectError": UNREACHABLE,
    "ConnectTimeout": UNREACHABLE,
    "DecodingError": UNREADABLE,
    "HTTPError": CUT,
    "HTTPStatusError": CUT,
    "InvalidURL": End("bad_setting", OPERATOR, NOT_AGAIN, FREE),
    "LocalProtocolError": End("design_rule_broken", US, NOT_AGAIN, FREE),
    "NetworkError": CUT,
    "PoolTimeout": UNREACHABLE,
    "ProtocolError": CUT,
    "ProxyError": PROXY,
    "ReadError": CUT,
    "ReadTimeout": SILENT,
    "RemoteProtocolError": UNREADABLE,
    "RequestError": CUT,
    "TimeoutException": CUT,
    "TooManyRedirects": CUT,
    "TransportError": CUT,
    "UnsupportedProtocol": End("bad_setting", OPERATOR, NOT_AGAIN, FREE),
    "WriteError": End("sending_failed", NETWORK, AGAIN, FREE),
    "WriteTimeout": End("sending_failed", NETWORK, AGAIN, FREE),
}
# Of those that read a response that is not there, or twice: mistakes of whoever uses the client, never of the network.
MISUSES = {
    *("CookieConflict", "RequestNotRead", "ResponseNotRead", "StreamClosed", "StreamConsumed", "StreamError"),
    "SSEError",
}
# Before anything was answered the SDK itself is at fault; afterwards what came is.
SDK_EXCEPTIONS = {
    "APIError",
    "ClientError",
    "ServerError",
    "UnknownFunctionCallArgumentError",
    "UnsupportedFunctionError",
    "FunctionInvocationError",
    "UnknownApiResponseError",
    "ContinuationInterruptedError",
    "ExperimentalWarning",
}
OPENAI_EXCEPTIONS: dict[str, End] = {
    "APIConnectionError": CUT,
    "APIError": End("unknown_reason", PROVIDER, AGAIN, PERHAPS),
    "APIResponseValidationError": UNREADABLE,
    "APIStatusError": REJECTED,
    "APITimeoutError": CUT,
    "AuthenticationError": KEY_INVALID,
    "BadRequestError": REJECTED,
    "ConflictError": FAILED,
    "ContentFilterFinishReasonError": UNREADABLE,
    "InternalServerError": FAILED,
    "InvalidWebhookSignatureError": UNREADABLE,
    "LengthFinishReasonError": UNREADABLE,
    "NotFoundError": WRONG_PATH,
    "OAuthError": REJECTED,
    "OpenAIError": UNREADABLE,
    "PermissionDeniedError": KEY_FORBIDDEN,
    "RateLimitError": SLOW_DOWN,
    "UnprocessableEntityError": REJECTED,
    "WebSocketConnectionClosedError": UNREADABLE,
    "WebSocketQueueFullError": UNREADABLE,
}
STATUS_OF = {
    "APIStatusError": 418,
    "AuthenticationError": 401,
    "BadRequestError": 400,
    "ConflictError": 409,
    "InternalServerError": 500,
    "NotFoundError": 404,
    "OAuthError": 400,
    "PermissionDeniedError": 403,
    "RateLimitError": 429,
    "UnprocessableEntityError": 422,
}


def exceptions_of(module: Any) -> dict[str, type[Exception]]:
    return {
        name: one
        for name, one in inspect.getmembers(module, inspect.isclass)
        if issubclass(one, Exception) and not name.startswith("_")
    }


def asked(model: ModelEntry = FLASH) -> Asked:
    endpoint = Endpoint(
        base_url="https://models.example.org",
        service="models.example.org",
        api="API",
        key=SecretStr(KEY),
        url_variable="THE_URL",
        key_variable="THE_KEY",
    )
    return Asked(endpoint, model, "THE_MODEL", 60.0, [SecretStr(KEY)], "/chat/completions")


def test_the_tables_miss_no_exception_of_the_http_client() -> None:
    assert set(exceptions_of(httpx2)) == {*HTTP_EXCEPTIONS, *MISUSES}


def misread(found: Iterable[tuple[str, ErrorInfo, End]]) -> list[tuple[str, ErrorInfo]]:
    """Return the exceptions that are read as something else than they mean, or with the key in them."""
    return [(name, info) for name, info, end in found if outcome(info) != end or KEY in info.model_dump_json()]


def test_every_exception_of_the_http_client_has_its_meaning() -> None:
    found = []
    for name, expected in HTTP_EXCEPTIONS.items():
        error = exceptions_of(httpx2)[name].__new__(exceptions_of(httpx2)[name], f"no {KEY}")
        Exception.__init__(error, f"no {KEY}")
        found.append((name, failure_of(error, asked(), has_response=True).info, expected))
        found.append((name, as_ours(error, asked()).info, expected))
    assert misread(found) == []


def test_the_tables_miss_no_exception_of_googles_sdk() -> None:
    assert set(exceptions_of(errors)) == SDK_EXCEPTIONS


def test_what_googles_sdk_trips_over_is_told_by_whether_anything_was_answered() -> None:
    found = []
    for name in sorted(SDK_EXCEPTIONS - {"APIError", "ClientError", "ServerError"}):
        error = exceptions_of(errors)[name](f"no {KEY}")
        found.append((name, failure_of(error, asked(), has_response=True).info, UNREADABLE))
        found.append((name, failure_of(error, asked(), has_response=False).info, End("not_sent", US, AGAIN, FREE)))
    assert misread(found) == []


def test_the_tables_miss_no_exception_of_openais_sdk() -> None:
    assert set(exceptions_of(openai)) == set(OPENAI_EXCEPTIONS)


def test_every_exception_of_openais_sdk_has_its_meaning() -> None:
    request, found = httpx2.Request("POST", "https://models.example.org"), []
    for name, expected in OPENAI_EXCEPTIONS.items():
        kind = exceptions_of(openai)[name]
        error = kind.__new__(kind)
        Exception.__init__(error, f"no {KEY}")
        response = httpx2.Response(STATUS_OF.get(name, 200), request=request)
        for field, value in {
            "message": f"no {KEY}",
            "body": None,
            "code": None,
            "type": None,
            "response": response,
            "status_code": response.status_code,
        }.items():
            setattr(error, field, value)
        found.append((name, as_ours(error, asked()).info, expected))
    assert misread(found) == []


def test_the_tables_miss_no_end_that_googles_sdk_knows() -> None:
    assert set(FINISHES) == {reason.value for reason in types.FinishReason} | {"OF_NEXT_YEAR"}


def test_the_tables_miss_no_end_of_a_server_of_openais_api() -> None:
    assert set(OPENAI_FINISHES) == {*TEXT_ENDS, "of_next_year"}


async def test_aiohttp_is_never_used_even_where_it_is_installed(tmp_path: Path) -> None:
    """Google's SDK takes it whenever it can be imported, and asks twice by itself when a connection breaks."""
    stand_in = tmp_path / "aiohttp"
    stand_in.mkdir()
    (stand_in / "__init__.py").write_text(
        "import types\n"
        "class ClientSession:\n    def __init__(self, *a, **k): raise SystemExit('aiohttp was used')\n"
        "def __getattr__(name):\n    return type(name, (Exception,), {})\n"
    )
    program = """
import asyncio, sys
from tests.agent.providers.test_endings import FLASH, Shelf, prompt
from agent.providers.gemini import GeminiProvider
import google.genai._api_client as sdk
assert sdk.has_aiohttp

async def main(url):
    provider = GeminiProvider("AIzaSyNobodysKey", Shelf(), base_url=url)
    said = [chunk.part.text async for chunk in provider.stream(FLASH, [prompt()]) if chunk.part is not None]
    await provider.aclose()
    print("".join(said))

asyncio.run(main(sys.argv[1]))
"""
    with GeminiServer() as server:
        server.on_text(Text("Here I am."))
        ran = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", program, server.url],
            cwd=Path(__file__).parents[3],
            env={"PYTHONPATH": f"{tmp_path}:.", "PATH": ""},
            capture_output=True,
            text=True,
            check=False,
        )
    assert (ran.stdout.strip(), ran.returncode) == ("Here I am.", 0), ran.stderr


# The words of what is told.


async def test_what_ends_for_an_unknown_reason_is_told_in_the_providers_own_words() -> None:
    message = "Model failed to generate content due to internal error."
    for for_picture in (False, True):
        info = await asked_of_gemini(Finish("OTHER", message), for_picture=for_picture)
        assert info is not None
        assert f"for an unknown reason (OTHER: {message})" in info.message
        assert "policy" not in info.message


async def test_a_refusal_keeps_the_providers_own_words() -> None:
    message = "The model output could not be generated. Support code: 42876398."
    info = await asked_of_gemini(Finish("IMAGE_SAFETY", message), for_picture=True)
    assert info is not None
    assert (info.parameters["reason"], info.provider_detail) == ("IMAGE_SAFETY", message)


async def test_a_wrong_address_is_told_with_its_variable_and_the_words_of_the_page() -> None:
    info = await asked_of_gemini(page(404, "Not here &amp; not there"), for_picture=False)
    assert info is not None
    assert "GOOGLE_GEMINI_BASE_URL" in info.message
    assert "AIVISTA_MODEL" not in info.message
    assert "<" not in info.provider_detail
    assert "Not here & not there" in info.provider_detail


async def test_an_answer_given_up_at_once_names_no_time_that_nobody_waited() -> None:
    for served in (failed(504, "Deadline expired before operation could complete."), failed(408, "Request timeout")):
        info = await asked_of_gemini(served, for_picture=True)
        assert info is not None
        assert float(str(info.parameters["seconds"])) < LONG_S
        assert f"{LONG_S:g} s" not in info.message


@each_case(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": "2.2"}, 3),
        ({"Date": "Mon, 23 Nov 2026 10:00:00 GMT", "Retry-After": "Mon, 23 Nov 2026 10:00:04 GMT"}, 4),
        # The server's own clock counts, whatever ours says.
        ({"Date": "Thu, 01 Jan 2015 10:00:00 GMT", "Retry-After": "Thu, 01 Jan 2015 10:05:00 GMT"}, 300),
        ({"Date": "Mon, 23 Nov 2026 10:00:00 GMT", "Retry-After": "Mon, 23 Nov 2026 09:00:00 GMT"}, 1),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-5"}, None),
        ({}, None),
    ],
)
@each_case("status", [429, 503])
async def test_both_apis_say_when_to_come_back(status: int, headers: dict[str, str], seconds: int | None) -> None:
    infos = [
        await asked_of_gemini(HttpError(status, "busy", headers=headers), for_picture=False),
        await asked_of_openai(openai_wire.HttpError(status, "busy", headers=headers), for_picture=False),
    ]
    for info in infos:
        assert info is not None
        assert info.parameters.get("seconds") == seconds
