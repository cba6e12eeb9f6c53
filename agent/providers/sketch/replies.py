"""The sentences of the sketch planner, in English or Chinese, and how it fills a JSON form."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from agent.adjusting import A_BIT, MUCH, PLAIN, AdjustmentChange, ChangeKind, describe
from agent.providers.sketch.intent import AskBack, Draw, Edit, Intent, Talk
from agent.providers.sketch.operations import AddText, Erase, Fill, Operation, Recolour, Restyle
from agent.providers.sketch.vocabulary import sentences

_DEGREES = {PLAIN: "plain", A_BIT: "a_bit", MUCH: "much"}
# Their texts contain the number themselves.
_TURNS = (ChangeKind.TURNED_LEFT, ChangeKind.TURNED_RIGHT)
_SIZES = (ChangeKind.RESIZED_WIDE, ChangeKind.RESIZED_HIGH, ChangeKind.SCALED)


def reply(intent: Intent, *, in_chinese: bool) -> str:
    """Return the planner's sentence for a request."""
    match intent:
        case Talk(topic):
            return sentences("topics", in_chinese=in_chinese)[topic]
        case AskBack(reason):
            return sentences("questions", in_chinese=in_chinese)[reason]
        case Draw():
            return _about_drawing(intent, sentences("drawing", in_chinese=in_chinese))
        case Edit():
            return _about_edit(intent, in_chinese=in_chinese)


def closing(problem: str, *, in_chinese: bool) -> str:
    """Return the sentence after a tool's result; `problem` is its error, empty on success."""
    return sentences("closing", in_chinese=in_chinese)["failed" if problem else "done"].format(problem=problem)


def _about_drawing(intent: Draw, phrases: Mapping[str, str]) -> str:
    count = intent.number_of_images or 1
    key = "many" if count > 1 else "one"
    if intent.retaken:
        key += ("_variation" if intent.take.is_variation else "_take") + ("s" if count > 1 else "")
    sentence = phrases[key].format(count=count, picture=intent.retaken, subject=intent.subject)
    return sentence + (phrases["from_the_first"] if intent.retaken and intent.was_changed else "")


def _about_edit(intent: Edit, *, in_chinese: bool) -> str:
    phrases = sentences("editing", in_chinese=in_chinese)
    parts = [part for operation in intent.operations for part in _described(operation, in_chinese=in_chinese)]
    handle = intent.handles[0] if intent.handles else ""
    sentence = phrases["handle" if handle else "picture"].format(handle=handle, changes=phrases["comma"].join(parts))
    return sentence + (phrases["left_out"].format(words=intent.left_out[0]) if intent.left_out else "")


def _described(operation: Operation, *, in_chinese: bool) -> list[str]:
    phrases = sentences("editing", in_chinese=in_chinese)
    match operation:
        case AddText(text):
            return [phrases["with_words"].format(words=text)]
        case Restyle(name, chinese_name):
            return [phrases["restyled"].format(name=name, chinese_name=chinese_name)]
        case Recolour():
            return [phrases["recoloured"]]
        case Erase():
            return [phrases["erased"]]
        case Fill(kind):
            return [sentences("patterns", in_chinese=in_chinese)[kind]]
        case _:
            return [_changed(change, in_chinese=in_chinese) for change in describe(operation)]


def _changed(change: AdjustmentChange, *, in_chinese: bool) -> str:
    key = "turned_round" if change.amount == 180 else change.kind
    words = sentences("changes", in_chinese=in_chinese)[key].format(amount=change.amount, ratio=change.ratio)
    amount = round(change.amount)
    if not change.amount or change.kind in (*_TURNS, *_SIZES):
        return words
    # In everyday words when there are some for the amount, else as a number.
    degree = sentences("degrees", in_chinese=in_chinese)[_DEGREES.get(amount, "number")]
    return degree.format(change=words, amount=amount)


# ---- forms

_MAX_DEPTH = 12
_TITLES = {"title", "prompt", "prompt_draft", "subject", "query", "name", "summary"}
_MAX_TITLE_CHARACTERS = 60


def fill_form(schema: dict[str, JsonValue], text: str) -> JsonValue:
    """Return a value for the schema: `text` for a title or prompt, else the smallest allowed value."""
    return _fill(schema, text, "", schema.get("$defs") or schema.get("definitions"), 0)


def _fill(schema: JsonValue, text: str, name: str, definitions: JsonValue, depth: int) -> JsonValue:
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return None
    chosen = _resolved(schema, definitions)
    if "const" in chosen:
        return chosen["const"]
    options = chosen.get("enum")
    if isinstance(options, list) and options:
        return options[0]
    kind = _kind(chosen)
    if kind == "object":
        properties = chosen.get("properties")
        members = properties.items() if isinstance(properties, dict) else ()
        return {member: _fill(inner, text, member, definitions, depth + 1) for member, inner in members}
    if kind == "array":
        count = chosen.get("minItems")
        items = chosen.get("items")
        return [_fill(items, text, name, definitions, depth + 1) for _ in range(count if isinstance(count, int) else 0)]
    if kind in {"integer", "number"}:
        least = chosen.get("minimum")
        return least if isinstance(least, int | float) else 0
    return {"boolean": False, "null": None}.get(kind, _words(chosen, text, name))


def _words(schema: dict[str, JsonValue], text: str, name: str) -> str:
    words = " ".join(text.split())[:_MAX_TITLE_CHARACTERS] if name in _TITLES else ""
    longest, shortest = schema.get("maxLength"), schema.get("minLength")
    if isinstance(longest, int):
        words = words[:longest]
    return words.ljust(shortest, "-") if isinstance(shortest, int) else words


def _resolved(schema: dict[str, JsonValue], definitions: JsonValue) -> dict[str, JsonValue]:
    reference = schema.get("$ref")
    if isinstance(reference, str) and isinstance(definitions, dict):
        found = definitions.get(reference.rsplit("/", 1)[-1])
        return found if isinstance(found, dict) else {}
    for word in ("anyOf", "oneOf", "allOf"):
        choices = schema.get(word)
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            return _resolved(choices[0], definitions)
    return schema


def _kind(schema: dict[str, JsonValue]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0] if kind else None
    if isinstance(kind, str):
        return kind.lower()
    return "object" if "properties" in schema else "string"
