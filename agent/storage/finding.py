"""What a search in the conversations finds: the conversation, and the piece of it in which the words stand. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pydantic import JsonValue, TypeAdapter

from agent.conversation import ConversationInfo
from agent.messages import Value
from agent.storage.word_index import excerpt_of, found_in, words_of

_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)

Place = Literal["title", "said", "answered", "prompt"]


class ConversationHit(Value):
    """A conversation in which all words of a query stand.

    `excerpt` is a piece of its title, of what the person said or the agent answered, or of a picture's prompt
    (`place`); `marks` say where in it the words stand, start and end of each. `turn_id` is that of the turn, which may
    be of a branch that is not shown; None for the title.
    """

    info: ConversationInfo
    place: Place
    excerpt: str
    marks: tuple[tuple[int, int], ...] = ()
    turn_id: str | None = None


class Passage(NamedTuple):
    """A text of a conversation that can be found."""

    place: Place
    text: str
    turn_id: str | None = None


@dataclass(frozen=True)
class Wording:
    """The words of one conversation as its rows hold them: of each turn its id, text and components, oldest first; of
    each picture the id of its turn and its receipt."""

    id: str
    title: str
    turns: Sequence[tuple[str, str, str]]
    pictures: Sequence[tuple[str, str | None]]

    def passages(self) -> Iterator[Passage]:
        """Yield every text, the title first, then those of the newest turn."""
        yield Passage("title", self.title)
        for turn_id, text, components in reversed(self.turns):
            yield Passage("said", text, turn_id)
            for written in dict.fromkeys(_prompts(turn_id, self.pictures)):
                yield Passage("prompt", written, turn_id)
            yield from _shown(turn_id, components)


def split_words(wording: Wording) -> str:
    """Return the words of a conversation as they go into the full-text table."""
    return words_of("\n".join(dict.fromkeys(passage.text for passage in wording.passages() if passage.text)))


def as_found(info: ConversationInfo, wording: Wording, query: str) -> ConversationHit:
    """Return what is shown of a conversation that was found: its passage that holds most of the query's words."""
    best = _best(wording.passages(), query)
    excerpt = excerpt_of(best.text, query)
    return ConversationHit(info=info, place=best.place, excerpt=excerpt.text, marks=excerpt.marks, turn_id=best.turn_id)


def _best(passages: Iterable[Passage], query: str) -> Passage:
    best, most = Passage("title", ""), -1
    for passage in passages:
        count = found_in(passage.text, query)
        if count > most:
            best, most = passage, count
    return best


def _prompts(turn_id: str, pictures: Iterable[tuple[str, str | None]]) -> Iterator[str]:
    for made_in, receipt in pictures:
        if made_in == turn_id and receipt:
            yield _text(_JSON.validate_json(receipt), "prompt")


def _shown(turn_id: str, components: str) -> Iterator[Passage]:
    """Yield what the agent said in the turn, and the prompts of plans, which may never have been painted."""
    listed = _JSON.validate_json(components)
    for one in listed if isinstance(listed, list) else ():
        if not isinstance(one, dict):
            continue
        if one.get("type") == "agent_message":
            yield Passage("answered", _text(one, "text"), turn_id)
        plans = one.get("plans")
        for plan in plans if isinstance(plans, list) else ():
            yield Passage("prompt", _text(plan, "prompt"), turn_id)


def _text(value: JsonValue, name: str) -> str:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""
