"""An opened step of the trace as HTML: what went in, what came out, how often it was tried.

Every word in it came from a person, a model or a web page: all of it is escaped, nothing of it is a link or is fetched.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, TypeAlias

from pydantic import JsonValue

from agent import ErrorInfo, StepKind, TokenUsage, TraceStep
from webui.cards import View
from webui.panels.trace import copy_button, dollars, node_name, took, trace_url
from webui.words import Words

Json: TypeAlias = dict[str, JsonValue]

THUMB_EDGE_PX = 192
# A longer text is folded, and of a long history the newest messages are unfolded.
_SHOWN_CHARACTERS = 600
_SHOWN_MESSAGES = 2
_ROLES = {"model": "trace.role_model", "tool": "trace.role_tool"}
_SETTINGS = ("aspect_ratio", "resolution", "use_grounding", "take", "google_search", "thinking_level", "call_id")


def details_html(view: View, step: TraceStep, handles: Mapping[str, str]) -> str:
    """Return all of a step; `handles` are the pictures of the conversation by their digests."""
    words, told = view.words, _Teller(view, handles)
    parts = [f"<dl>{_facts(words, step)}</dl>"]
    if step.is_left_out:
        parts.append(_note(words("trace.left_out")))
    if step.cuts:
        parts.append(_note(words.counted("trace.cuts", step.cuts)))
    sent, came = told.sent(step), told.came(step)
    if sent:
        parts.append(f"<h4>{escape(words('trace.went_in'))}</h4>{sent}")
    if came:
        parts.append(f"<h4>{escape(words('trace.came_out'))}</h4>{came}")
    address = trace_url(view.conversation_id, step.turn_id, step.number)
    parts.append(f'<div class="trc-acts">{copy_button(words, words("trace.copy_step"), address)}</div>')
    return "".join(parts)


def _facts(words: Words, step: TraceStep) -> str:
    model = f"{escape(step.model_label)} <code>{escape(step.model)}</code>" if step.model else ""
    began = words("trace.began_text", at=took(words, step.at_s), node=node_name(words, step.node))
    rows = {
        "trace.model": model,
        "trace.began": escape(began if step.kind is not StepKind.NODE else took(words, step.at_s)),
        "trace.time": escape(took(words, step.seconds)),
        "trace.tries": _tries(words, step),
        "trace.tokens": escape(_tokens(words, step.usage)),
        "trace.price": dollars(step.price_usd) if step.kind is StepKind.MODEL else "",
        "trace.finish": escape(step.finish_reason),
        "trace.led": escape(node_name(words, step.led_to)) if step.led_to else "",
        "trace.error": _error(words, step.error) if step.error is not None else "",
    }
    return "".join(f"<dt>{escape(words(key))}</dt><dd>{value}</dd>" for key, value in rows.items() if value)


def _tries(words: Words, step: TraceStep) -> str:
    if step.kind is not StepKind.MODEL or not step.attempts:
        return ""
    waits = "".join(
        f"<li>{_error(words, retry.error)} {escape(words('trace.waited', time=took(words, retry.pause_s)))}</li>"
        for retry in step.retries
    )
    return f"{step.attempts}{f'<ol>{waits}</ol>' if waits else ''}"


def _error(words: Words, error: ErrorInfo) -> str:
    detail = f'<span class="trc-detail">{escape(error.provider_detail)}</span>' if error.provider_detail else ""
    return f'<em class="bad">{escape(words.error(error))}</em> <code>{escape(error.code.value)}</code>{detail}'


def _tokens(words: Words, usage: TokenUsage) -> str:
    if not usage.total_tokens:
        return ""
    kinds = (
        (usage.prompt_tokens + usage.tool_tokens, "trace.tokens_in"),
        (usage.cached_tokens, "trace.tokens_cached"),
        (usage.output_tokens, "trace.tokens_out"),
        (usage.thought_tokens, "trace.tokens_thought"),
        (usage.image_tokens, "trace.tokens_image"),
        (usage.search_queries, "trace.searches"),
    )
    return " · ".join(words.counted(key, count) for count, key in kinds if count)


class _Teller:
    """Tells contents as HTML; pictures that the conversation has are shown, of others the digest stands there."""

    def __init__(self, view: View, handles: Mapping[str, str]) -> None:
        self._view = view
        self._words = view.words
        self._handles = handles

    def sent(self, step: TraceStep) -> str:
        sent = step.sent
        chips = [f"<code>{escape(name)}: {escape(_plain(sent[name]))}</code>" for name in _SETTINGS if sent.get(name)]
        parts = [f'<p class="trc-chips">{"".join(chips)}</p>' if chips else ""]
        tools = sent.get("tools")
        if isinstance(tools, list) and tools:
            names = "".join(f"<code>{escape(str(name))}</code>" for name in tools)
            parts.append(self._block("trace.tools_declared", f'<p class="trc-chips">{names}</p>'))
        if isinstance(system := sent.get("system"), str):
            parts.append(self._folded(self._words("trace.system"), _text(system), len(system)))
        if isinstance(schema := sent.get("response_schema"), dict):
            parts.append(self._folded(self._words("trace.schema"), _json(schema), len(_plain(schema))))
        if isinstance(mask := sent.get("mask"), dict):
            parts.append(self._block("trace.mask", self._picture(mask)))
        if isinstance(arguments := sent.get("arguments"), dict):
            parts.append(self._long(_plain(arguments)))
        if isinstance(texts := sent.get("texts"), list):
            parts.append(self._long("\n".join(map(str, texts))))
        if isinstance(messages := sent.get("messages"), list):
            asked = [one for one in messages if isinstance(one, dict)]
            # What the painter is asked is the agent's prompt, whoever spoke first.
            parts.append(self._messages(asked, "trace.role_prompt" if step.asks_for == "words" else "trace.role_asked"))
        return "".join(parts)

    def came(self, step: TraceStep) -> str:
        came = step.came
        if isinstance(parts := came.get("parts"), list):
            return "".join(self._part(part) for part in parts if isinstance(part, dict))
        if "vectors" in came:
            return _note(self._words("trace.vectors", count=came["vectors"], dimension=came.get("dimension", 0)))
        if isinstance(content := came.get("content"), dict):
            return self._long(_plain(content)) + self._pictures(came.get("images"))
        return ""

    def _messages(self, messages: Sequence[Json], asking: str) -> str:
        told = [self._message(message, asking) for message in messages]
        past = told[:-_SHOWN_MESSAGES]
        if not past:
            return "".join(told)
        label = self._words.counted("trace.earlier", len(past))
        return f"{self._fold(label, ''.join(past))}{''.join(told[len(past) :])}"

    def _message(self, message: Json, asking: str) -> str:
        parts = message.get("parts")
        shown = "".join(self._part(one) for one in parts if isinstance(one, dict)) if isinstance(parts, list) else ""
        key = _ROLES.get(str(message.get("role")), asking)
        return f'<div class="trc-message"><h5>{escape(self._words(key))}</h5>{shown}</div>'

    def _part(self, part: Json) -> str:
        signature = self._signature(part)
        match part.get("type"):
            case "text" if part.get("is_thought"):
                text = str(part.get("text", ""))
                return self._folded(self._words("trace.thinking"), _text(text), len(text))
            case "text":
                text = str(part.get("text", ""))
                return (self._long(text) if text else "") + signature
            case "image":
                return self._picture(part) + signature
            case "tool_call":
                name = f"<code>{escape(str(part.get('name')))}</code>"
                return self._block("trace.calls_tool", self._long(_plain(part.get("arguments"))), name) + signature
            case "tool_result":
                name = f"<code>{escape(str(part.get('name')))}</code>"
                shown = self._long(_plain(part.get("content"))) + self._pictures(part.get("images"))
                return self._block("trace.tool_result", shown, name)
            case _:
                return self._long(_plain(part))

    def _pictures(self, images: JsonValue) -> str:
        if not isinstance(images, list):
            return ""
        return "".join(self._picture(image) for image in images if isinstance(image, dict))

    def _picture(self, image: Json) -> str:
        digest = str(image.get("digest", ""))
        handle = self._handles.get(digest, "")
        about = str(image.get("mime_type", ""))
        # Not known of a picture that has just come: nobody had looked into it when it was put on record.
        if image.get("width") and image.get("height"):
            about += f" · {image['width']}×{image['height']}"
        if not handle:
            return f'<p class="trc-ref"><code>{escape(digest[:12])}…</code> {escape(about)}</p>'
        name = escape(self._words("action.open", handle=handle))
        return (
            f'<button type="button" class="trc-pic" data-act="view" data-arg="{escape(handle)}" title="{name}" '
            f'aria-label="{name}"><img src="{self._view.url(handle, THUMB_EDGE_PX)}" alt="" loading="lazy">'
            f"<span><b>{escape(handle)}</b> {escape(about)}</span></button>"
        )

    def _signature(self, part: Json) -> str:
        length = part.get("thought_signature_bytes")
        if not isinstance(length, int):
            return ""
        return f'<p class="trc-ref">{escape(self._words("trace.signature", count=f"{length:,}"))}</p>'

    def _long(self, text: str) -> str:
        """Return a text as it is; of a long one the beginning, which unfolds."""
        if len(text) <= _SHOWN_CHARACTERS:
            return _text(text)
        more, less = self._words("trace.show_all", count=f"{len(text):,}"), self._words("trace.show_less")
        return (
            f'<details class="trc-long"><summary>{_text(text[:_SHOWN_CHARACTERS])}<span class="trc-more">'
            f"<b>{escape(more)}</b><i>{escape(less)}</i></span></summary>{_text(text)}</details>"
        )

    def _folded(self, label: str, shown: str, characters: int) -> str:
        return self._fold(f"{label} · {self._words('trace.characters', count=f'{characters:,}')}", shown)

    @staticmethod
    def _fold(label: str, shown: str) -> str:
        return f'<details class="trc-fold"><summary>{escape(label)}</summary>{shown}</details>'

    def _block(self, key: str, shown: str, name: str = "") -> str:
        return f'<div class="trc-part"><h5>{escape(self._words(key))} {name}</h5>{shown}</div>'


def _text(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"


def _json(value: Any) -> str:
    return _text(_plain(value))


def _note(sentence: str) -> str:
    return f'<p class="trc-ref">{escape(sentence)}</p>'


def _plain(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
