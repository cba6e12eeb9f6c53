"""Read by rules what the user wants: draw something, edit a picture, be asked a question, or just talk.

The style of a request, and whether it is for a new sketch or an existing picture, is determined afterwards; a short
request can be expanded with details that the sketch painter supports.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias

from agent import wording
from agent.adjusting import Adjustment, read_adjustment
from agent.pictures import handles_in, without_handles
from agent.providers.sketch.instructions import Instructions, read_instructions
from agent.providers.sketch.operations import Operation, Restyle
from agent.providers.sketch.phrases import blank_quoted, find_count, find_ratio, find_shape, fold, has_words
from agent.providers.sketch.subjects import FIRST_TAKE, Retake, Take, find_style, find_subject, read_retake
from agent.providers.sketch.vocabulary import FIGURES, MOODS, PLACES, find, is_known, sentences
from agent.style_look import StyleLook

MAX_CHARACTERS = 4000


class Reason(StrEnum):
    """The reason why the planner asks a question."""

    EMPTY = "empty"
    PICTURE_ONLY = "picture_only"
    NO_PICTURE = "no_picture"
    NO_SUBJECT = "no_subject"
    SHAPE = "shape"
    SIZE = "size"
    TEXT = "text"
    UNCLEAR = "unclear"


class Topic(StrEnum):
    """The topic of a reply without a picture."""

    GREETING = "greeting"
    THANKS = "thanks"
    ABILITIES = "abilities"
    QUESTION = "question"
    SEARCH = "search"
    BEYOND = "beyond"
    NEVER_PAINTED = "never_painted"
    MASK = "mask"
    BEYOND_EDGES = "beyond_edges"


@dataclass(frozen=True)
class Draw:
    """A request for a new picture. `description` is the request without polite words.

    Ratio and count are set only when the text gives them. `retaken` is the picture whose request is painted again, as
    its `take`; `was_changed` says that this picture had been edited since.
    """

    subject: str
    description: str
    style: str = ""
    aspect_ratio: str | None = None
    number_of_images: int | None = None
    handles: tuple[str, ...] = ()
    take: Take = FIRST_TAKE
    retaken: str = ""
    was_changed: bool = False


@dataclass(frozen=True)
class Edit:
    """Pixel operations on a picture, in order. `left_out` are clauses that need a model with vision."""

    operations: tuple[Operation, ...]
    left_out: tuple[str, ...] = ()
    aspect_ratio: str | None = None
    number_of_images: int | None = None
    handles: tuple[str, ...] = ()


@dataclass(frozen=True)
class AskBack:
    """Something is missing, so the user is asked a question."""

    reason: Reason


@dataclass(frozen=True)
class Talk:
    """The answer is text only."""

    topic: Topic


Intent: TypeAlias = Draw | Edit | AskBack | Talk


def _says(name: str, words: str) -> re.Match[str] | None:
    return wording.pattern(f"intent.{name}").search(words)


def understand(text: str, has_pictures: bool) -> Intent | Retake:
    """Return what the user wants. `has_pictures` says whether the message or the history contains a picture."""
    text = text[:MAX_CHARACTERS]
    if not has_words(text):
        return AskBack(Reason.PICTURE_ONLY if has_pictures and not text.strip() else Reason.EMPTY)
    exact = read_adjustment(text)
    if exact is not None:
        return _edit(text, Instructions((exact,)), has_pictures)
    retake = read_retake(text)
    if retake is not None:
        return retake if has_pictures or retake.handles else AskBack(Reason.NO_SUBJECT)
    folded = fold(blank_quoted(text)).strip()
    for topic in (Topic.ABILITIES, Topic.SEARCH):
        if _says(topic, folded):
            return Talk(topic)
    instructions = read_instructions(text)
    if _wants_drawing(folded, instructions):
        return read_drawing(text)
    return _edit_or_talk(text, folded, instructions, has_pictures)


def _wants_drawing(folded: str, instructions: Instructions) -> bool:
    """Whether the text asks for a new picture rather than an edit."""
    strong, weak = _says("draw", folded), _says("make", folded)
    if not strong and not weak:
        return False
    asks_for_edit = bool(instructions.operations or instructions.missing or instructions.left_out)
    target = _says("target", folded)
    if not asks_for_edit or not (target or handles_in(folded)):
        # The thing to make may be only an operation ("make a sepia version", "create a square crop").
        return not (not strong and asks_for_edit and _says("only_edits", folded))
    is_led_by_target = target is not None and strong is not None and target.start() < strong.start()
    return bool(strong) and not _says("version", folded) and not is_led_by_target


def _edit_or_talk(text: str, folded: str, instructions: Instructions, has_pictures: bool) -> Intent:
    handles = handles_in(text)
    has_some = has_pictures or bool(handles)
    is_about_picture = bool(_says("target", folded) or handles)
    asks = _says("question", folded) and not _says("how_to", folded)
    if asks or (_says("ends_as_question", folded) and instructions == Instructions(())):
        return Talk(Topic.QUESTION)
    if instructions.operations and (is_about_picture or not _describes(folded, instructions)):
        return _edit(text, instructions, has_pictures)
    if instructions.missing:
        return AskBack(Reason(instructions.missing) if has_some else Reason.NO_PICTURE)
    if len(folded) <= (12 if wording.is_chinese(folded) else 40):
        for topic in (Topic.GREETING, Topic.THANKS):
            if _says(topic, folded):
                return Talk(topic)
    if (instructions.left_out or (has_some and _says("altered", folded))) and not _is_noun_phrase(folded):
        return Talk(Topic.BEYOND) if has_some else AskBack(Reason.NO_PICTURE)
    return read_drawing(text) if _names_a_thing(folded, is_about_picture) else AskBack(Reason.UNCLEAR)


def _describes(folded: str, instructions: Instructions) -> bool:
    """Whether the text describes a picture, though some words could be adjustments: "warm colours, autumn forest"."""
    is_thing = bool((instructions.left_out or instructions.unread) and re.match(r"an?\s+\w+er\b", folded))
    return is_thing or instructions.unread > len(instructions.operations) or _is_noun_phrase(folded)


def _edit(text: str, instructions: Instructions, has_pictures: bool) -> Intent:
    handles = handles_in(text)
    if not has_pictures and not handles:
        return AskBack(Reason.NO_PICTURE)
    folded = fold(blank_quoted(text))
    turns = any(isinstance(operation, Adjustment) and operation.rotate for operation in instructions.operations)
    return Edit(
        operations=instructions.operations,
        left_out=instructions.left_out,
        # A turn changes the ratio that was named.
        aspect_ratio=None if turns else _named(find_ratio(folded)),
        number_of_images=find_count(folded),
        handles=handles,
    )


def read_drawing(text: str) -> Draw | AskBack:
    """Return the request for a new picture in the text, even if the text could also mean something else."""
    folded = fold(blank_quoted(text))
    subject, description = find_subject(text)
    if not subject:
        return AskBack(Reason.NO_SUBJECT)
    return Draw(
        subject=subject,
        description=description,
        style=find_style(folded),
        aspect_ratio=_named(find_shape(without_handles(folded))),
        number_of_images=find_count(folded),
        handles=handles_in(text),
    )


def _named(ratio: tuple[int, int] | None) -> str | None:
    return f"{ratio[0]}:{ratio[1]}" if ratio else None


def _is_noun_phrase(folded: str) -> bool:
    """Whether the text begins like a thing ("a black and white cat"), not like a change ("a bit darker")."""
    begins = (
        (wording.pattern(f"intent.{name}", one).match(folded) for name in ("thing", "change"))
        for one in wording.LANGUAGES
    )
    return any(thing and not change for thing, change in begins)


def _names_a_thing(folded: str, is_about_picture: bool) -> bool:
    """Whether the bare words can be drawn as they are ("a red fox in the snow", "雪中的红狐")."""
    if _is_noun_phrase(folded) and not wording.pattern("intent.target").match(folded):
        return True
    if is_about_picture or _says("speaker", folded) or _says("vague", folded):
        return False
    words, characters = (re.findall(one, folded) for one in (r"[a-zà-ɏ'\-]+", r"[\u4e00-\u9fff]"))
    return is_known(folded) or len(words) >= 2 or len(characters) >= 2


# ---- styles


@dataclass(frozen=True)
class FoundLook:
    """A style that a text asks for: its name in both languages, how it is drawn, and the words that name it.

    `words` is empty when the style was described.
    """

    name: str
    chinese_name: str
    look: StyleLook
    words: str = ""


FindLook: TypeAlias = Callable[[str], FoundLook | None]


def in_style(intent: Intent | Retake, text: str, found: FoundLook | None, *, has_pictures: bool) -> Intent | Retake:
    """Return the request with the style that its text asks for: for a sketch, or as an operation on a picture."""
    if found is None and isinstance(intent, Draw):
        # Even an unknown style counts after a phrase such as "in the style of".
        match = wording.pattern("intent.in_the_style_of", flags=re.IGNORECASE).search(text)
        asked = next((group for group in match.groups() if group), "").strip() if match else ""
        return replace(intent, style=asked or intent.style)
    if found is None or isinstance(intent, Retake):
        return intent
    is_all = _is_all_there_is(text, found)
    if isinstance(intent, Draw):
        if is_all:
            return _restyle(text, found) if has_pictures else AskBack(Reason.NO_SUBJECT)
        return replace(intent, style=found.name)
    if not has_pictures and not handles_in(text):
        return intent
    if isinstance(intent, Edit):
        # An exact operation needs no approximating style too: "black and white" is also a style.
        if not intent.left_out and not all(map(_is_pixelating, intent.operations)):
            return intent
        kept = tuple(one for one in intent.operations if not _is_pixelating(one))
        left_out = tuple(clause for clause in intent.left_out if not found.words or found.words not in fold(clause))
        return replace(intent, operations=(*kept, _operation(found)), left_out=left_out)
    is_of_a_picture = is_all or bool(_says("target", fold(text)) or handles_in(text))
    can_be_one = isinstance(intent, AskBack) or intent == Talk(Topic.BEYOND)
    return _restyle(text, found) if is_of_a_picture and can_be_one else intent


def _restyle(text: str, found: FoundLook) -> Edit:
    return Edit((_operation(found),), handles=handles_in(text))


def _operation(found: FoundLook) -> Restyle:
    return Restyle(found.name, found.chinese_name, found.look)


def _is_all_there_is(text: str, found: FoundLook) -> bool:
    """Whether the request is nothing but the style's name and the words around it."""
    folded = fold(text)
    if not found.words or found.words not in folded:
        return False
    rest = folded.replace(found.words, " ", 1)
    for handle in handles_in(text):
        rest = rest.replace(handle, " ")
    return not re.search(r"\w", wording.pattern("intent.around_style").sub(" ", rest))


def _is_pixelating(operation: Operation) -> bool:
    return isinstance(operation, Adjustment) and bool(operation.pixelate)


# ---- expanding a request

# Places without daylight.
_OWN_LIGHT = frozenset({"space", "abstract"})
_END = re.compile(r"[\s.。!！,，;；]*$")


def expand_description(text: str) -> str:
    """Return the request with a place and a light added where it names none.

    It is unchanged when it does not ask for a drawing, or has both.
    """
    if not isinstance(understand(text, has_pictures=False), Draw):
        return text
    chinese = wording.is_chinese(text)
    phrases = sentences("fuller", in_chinese=chinese)
    added: list[str] = []
    place = find(PLACES, text)
    if place is None:
        usual = sentences("usual_places", in_chinese=chinese)
        added.append(usual.get(find(FIGURES, text) or "", phrases["anywhere"]))
        place = find(PLACES, added[0])
    if find(MOODS, text) is None and place not in _OWN_LIGHT:
        added.append(phrases["light"])
    return phrases["comma"].join([_END.sub("", text), *added]) if added else text
