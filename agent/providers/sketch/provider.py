"""The built-in provider without key, network or weights: rules plan, pixel operations edit, a painter sketches."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from agent import wording
from agent.adjusting import Adjustment
from agent.adjusting.applying import MIME_TYPE, encoded
from agent.errors import DesignRuleBroken, ErrorCode, RequestRefused
from agent.messages import CompletionChunk, ImageOrigin, ImagePart, PromptMessage, Role, TextPart, TokenUsage
from agent.pictures import handles_in
from agent.pixels import Raster, open_picture, pixels_of
from agent.providers.base import PLAIN, ChatOptions, ImageRequest, PictureBytes, ToolDeclaration
from agent.providers.catalogue import ModelEntry
from agent.providers.sketch.areas import read_area_intent
from agent.providers.sketch.instructions import cropped_to
from agent.providers.sketch.intent import (
    AskBack,
    Draw,
    Edit,
    FindLook,
    FoundLook,
    Intent,
    Reason,
    Talk,
    Topic,
    in_style,
    read_drawing,
    understand,
)
from agent.providers.sketch.operations import Erase, Operation
from agent.providers.sketch.phrases import has_words, nearest_shape
from agent.providers.sketch.planning import (
    base_picture,
    has_pictures,
    image_call,
    is_to_grow,
    last_prompt,
    marked_picture,
    masked_pictures,
    newest_is_upload,
    paint_again,
    person_text,
    starts_anew,
    take_of,
    tool_problem,
)
from agent.providers.sketch.replies import closing, fill_form, reply
from agent.providers.sketch.subjects import Retake, Take
from agent.wording.requests import read_expansion

_DONE = "STOP"
_DEFAULT_RATIO = "16:9"
_DEFAULT_SIZE = (1376, 768)
_TOKENS_A_PICTURE = 258
# The default request when a picture is to grow and the user says nothing about it.
_CONTINUE, _CONTINUE_ZH = "extend it", "向外延伸"
# Hardly any English sentence contains none of these words.
_ENGLISH = re.compile(
    r"\b(?:an?|am|and|are|can|do|i|in|is|it|like|make|me|my|no|of|on|ok|please|so|that|the|this|to|want|what|yes|you)\b",
    re.IGNORECASE,
)
_PIECES = re.compile(r"[\u3400-\u9fff]{1,2}[^\w\s]*\s*|[^\s\u3400-\u9fff]+\s*|\s+")


class SketchProvider:
    """A text and an image model in one, with the same protocols as every other provider.

    `pace_s` is the pause between streamed words in seconds, so that an answer reads like a model's. `find_look` returns
    the style that a text asks for and how it is drawn; without it, no style is known.
    """

    def __init__(self, pictures: PictureBytes, *, pace_s: float = 0.0, find_look: FindLook | None = None) -> None:
        self._pictures = pictures
        self._find_look = find_look
        self._pace_s = pace_s

    async def stream(
        self,
        model: ModelEntry,
        messages: Sequence[PromptMessage],
        tools: Sequence[ToolDeclaration] = (),
        options: ChatOptions = PLAIN,
    ) -> AsyncIterator[CompletionChunk]:
        """Stream a sentence word by word, then a call of `generate_image` when the user asks for a picture."""
        if options.google_search and tools:
            raise DesignRuleBroken(ErrorCode.DESIGN_RULE_BROKEN, rule="google_search and functions in one request")
        prompt = last_prompt(messages)
        text = said = person_text(prompt)
        if is_to_grow(prompt) and (grown := read_expansion(text)) is not None:
            # The edges to extend are marked already; the rest says what to paint there.
            text = grown.rest
        if options.response_schema is not None:
            answer, intent = json.dumps(fill_form(options.response_schema, text), ensure_ascii=False), None
        else:
            found = await self._found(text)
            intent = _planned(prompt, text, messages, found)
            answer = self._sentence(intent, messages, said)
        for match in _PIECES.finditer(answer):
            yield CompletionChunk(part=TextPart(text=match[0]))
            if self._pace_s:
                await asyncio.sleep(self._pace_s)
        if isinstance(intent, Draw | Edit):
            words = text or (_CONTINUE_ZH if wording.is_chinese(said) else _CONTINUE)
            masked = masked_pictures(prompt)
            # The request is made once for each picture that has a mask.
            requests = [replace(intent, handles=(handle,)) for handle in masked] if len(masked) > 1 else [intent]
            for one in requests:
                call = image_call(one, words, tools, is_upload=newest_is_upload(messages))
                if call is not None:
                    yield CompletionChunk(part=call)
        yield CompletionChunk(usage=_usage(messages, answer), finish_reason=_DONE)

    async def generate(self, request: ImageRequest) -> AsyncIterator[CompletionChunk]:
        """Make one picture: the operations of the last prompt on its first picture, else a sketch of its words.

        With a mask, the operations change only the masked area. The picture is stored before its chunk is yielded.
        Raises RequestRefused when the base picture cannot be read, and when a mask comes with a request that cannot be
        done inside it.
        """
        data, origin = await self._made(request)
        yield CompletionChunk(part=await self._pictures.write(data, MIME_TYPE, origin))
        yield CompletionChunk(usage=_usage(request.messages, ""), finish_reason=_DONE)

    def embedder(self, model: ModelEntry) -> None:
        """Return None: it has no embedding model."""

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""

    async def _made(self, request: ImageRequest) -> tuple[bytes, ImageOrigin]:
        prompt = last_prompt(request.messages)
        text = person_text(prompt)
        if request.mask is not None:
            inside = read_area_intent(text)
            # The planner does not request this, but the user may have edited its plan.
            if not prompt.images or not isinstance(inside, Edit):
                raise RequestRefused(ErrorCode.PART_NOT_SUPPORTED, model=request.model.label)
            return await self._changed(prompt.images[0], inside, request), ImageOrigin.EDITED
        take, found = take_of(prompt), await self._found(text)
        base = base_picture(request.messages, handles_in(text))
        # Only a prompt for a new painting has a take mark.
        intent: Intent | Retake = read_drawing(text)
        if not take.mark:
            intent = in_style(understand(text, base is not None), text, found, has_pictures=base is not None)
        if base is not None and isinstance(intent, Edit):
            return await self._changed(base, intent, request), ImageOrigin.EDITED
        take = replace(take, number=take.number + request.take - 1)
        ratio = request.aspect_ratio or _DEFAULT_RATIO
        size = request.model.pixels(ratio, request.resolution) or request.model.pixels(ratio, None) or _DEFAULT_SIZE
        painted = await asyncio.to_thread(_sketched, intent, text, size, take, found)
        return painted, ImageOrigin.GENERATED

    async def _changed(self, base: ImagePart, intent: Edit, request: ImageRequest) -> bytes:
        source, name = await self._pictures.read(base), base.handle or base.digest[:8]
        mask = await self._pictures.read(request.mask) if request.mask is not None else None
        return await asyncio.to_thread(_edited, source, name, intent.operations, request, mask)

    async def _found(self, text: str) -> FoundLook | None:
        """Return the style that the text asks for, or None when there is none or it is unknown."""
        return await asyncio.to_thread(self._find_look, text) if self._find_look is not None else None

    def _sentence(self, intent: Intent | None, messages: Sequence[PromptMessage], text: str) -> str:
        if intent is None:
            return closing(tool_problem(messages[-1]), in_chinese=wording.is_chinese(text))
        if intent == AskBack(Reason.UNCLEAR) and not (wording.is_chinese(text) or _ENGLISH.search(text)):
            # Gibberish has no language: it is answered in the language of the previous message.
            texts = [person_text(message) for message in messages if message.role is Role.PROMPT]
            text = texts[-2] if len(texts) > 1 else ""
        return reply(intent, in_chinese=wording.is_chinese(text))


def _planned(
    prompt: PromptMessage, text: str, messages: Sequence[PromptMessage], found: FoundLook | None
) -> Intent | None:
    """Return what the newest message asks for, with the marked picture; None once a tool has answered."""
    if messages and messages[-1].role is Role.TOOL:
        return None
    marked = marked_picture(prompt)
    if masked_pictures(prompt) or is_to_grow(prompt):
        return _planned_area(text, marked, is_to_grow=is_to_grow(prompt))
    is_anew = starts_anew(prompt) and not handles_in(text)
    has_some = bool(marked) or (not is_anew and has_pictures(messages))
    intent = in_style(understand(text, has_some), text, found, has_pictures=has_some)
    if marked and isinstance(intent, Edit | Retake):
        intent = replace(intent, handles=tuple(dict.fromkeys((marked, *intent.handles))))
    if isinstance(intent, Retake):
        intent = paint_again(intent, messages, is_upload=newest_is_upload(messages))
    return intent


def _planned_area(text: str, marked: str, *, is_to_grow: bool) -> Intent:
    """Return what the text asks for inside a mask, or beyond the edges, of the marked picture."""
    if is_to_grow and not has_words(text):
        return Edit((Erase(),), handles=(marked,))
    intent = read_area_intent(text)
    if is_to_grow and (intent == Talk(Topic.MASK) or (isinstance(intent, Edit) and Erase() not in intent.operations)):
        return Talk(Topic.BEYOND_EDGES)
    return replace(intent, handles=(marked,)) if isinstance(intent, Edit) else intent


def _usage(messages: Sequence[PromptMessage], answer: str) -> TokenUsage:
    """Return an estimate from lengths: one token per Chinese character, a quarter per Latin one."""
    pictures = sum(len(message.images) for message in messages)
    prompt = sum(_tokens(message.text) for message in messages) + pictures * _TOKENS_A_PICTURE
    return TokenUsage(prompt_tokens=prompt, output_tokens=_tokens(answer))


def _tokens(text: str) -> int:
    chinese = sum("\u3400" <= char <= "\u9fff" for char in text)
    return chinese + math.ceil((len(text) - chinese) / 4)


def _sketched(intent: Intent | Retake, text: str, size: tuple[int, int], take: Take, found: FoundLook | None) -> bytes:
    # This import loads NumPy.
    from agent.providers.sketch.painter import paint

    caption, style = " ".join(text.split())[:120], ""
    if isinstance(intent, Draw):
        text, caption, style = intent.description, intent.subject, intent.style
    painted = paint(
        text, caption, style, size, take.number, is_variation=take.is_variation, look=found.look if found else None
    )
    return encoded(Raster(pixels_of(painted))).data


def _edited(
    source: bytes, name: str, operations: tuple[Operation, ...], request: ImageRequest, mask: bytes | None
) -> bytes:
    # These imports load OpenCV, which most requests do not need.
    from agent.providers.sketch.effects import apply, area_of

    opened = open_picture(source, name)
    size = (opened.width, opened.height)
    if mask is not None:
        return encoded(apply(opened, operations, area_of(mask, *size))).data
    return encoded(apply(opened, _with_lock(operations, size, request))).data


def _with_lock(
    operations: tuple[Operation, ...], size: tuple[int, int], request: ImageRequest
) -> tuple[Operation, ...]:
    """Return the operations, with a crop to the requested ratio if it is not the picture's own.

    Without a choice, an edit requests the ratio nearest to the picture's: then nothing is cropped.
    """
    asked = request.aspect_ratio
    if asked is None or asked == nearest_shape(*size, request.model.aspect_ratios):
        return operations
    width, _, height = asked.partition(":")
    sizes = (one.resize for one in operations if isinstance(one, Adjustment) and one.resize)
    has_size = any(one.width or one.height for one in sizes)
    if has_size or not (width.isdigit() and height.isdigit()):
        return operations
    lock = cropped_to(int(width), int(height))
    if not any(isinstance(one, Adjustment) and one.crop for one in operations):
        return (*operations, lock)
    return tuple(
        one.model_copy(update={"crop": lock.crop}) if isinstance(one, Adjustment) and one.crop else one
        for one in operations
    )
