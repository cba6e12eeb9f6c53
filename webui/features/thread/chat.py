"""The middle: the top bar, the thread, and the first page in the thread's place."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup
from pydantic import JsonValue

from agent import Conversation, LostRecords
from webui.features.thread.render import Article
from webui.features.viewer.receipt import price
from webui.shell.patches import Patch
from webui.shell.templates import render
from webui.words import Words

# So many turns come with a conversation; those before them when somebody scrolls up.
TURNS_AT_ONCE = 12


def log_html(
    conversation: Conversation | None, articles: Sequence[Article], earlier: str | Markup = "", *, is_live: bool = False
) -> Markup:
    """Return the thread's own element. Only its script changes it, by what `thread_told` and the stream of a turn
    tell."""
    live = Markup(" data-live") if is_live else ""
    shown = Markup(
        '<div id="log" role="log" aria-live="off" tabindex="0"><div id="thread" data-version="{}"{}>{}{}</div></div>'
    )
    return shown.format(_version(conversation), live, earlier, Markup().join(one.html for one in articles))


def _version(conversation: Conversation | None) -> int | str:
    return conversation.version if conversation is not None else ""


def newest(articles: Sequence[Article]) -> Sequence[Article]:
    """Return those that come with a conversation."""
    return articles[-TURNS_AT_ONCE:]


def earlier_html(words: Words) -> Markup:
    """Return the way to the turns before those that are there; it is pressed by itself when it comes into sight."""
    shown = Markup('<button type="button" class="b line" id="earlier" data-thread="earlier">{}</button>')
    return shown.format(words("thread.earlier"))


def thread_told(
    words: Words,
    conversation: Conversation | None,
    articles: Sequence[Article],
    *,
    followed: str = "",
    is_answer: bool = False,
) -> dict[str, JsonValue]:
    """Return a conversation's thread for the page's script: which version of it this is, the newest turns in their
    order, whether there are more, the one that is at work and to be `followed`, and whether this `is_answer` to what
    the page has sent."""
    shown = newest(articles)
    return {
        "at": time.monotonic_ns(),
        "conversation": conversation.id if conversation is not None else "",
        "version": _version(conversation),
        "turns": [one.id for one in shown],
        "patches": [
            Patch(id=one.id, html=one.html, parent="thread").model_dump(exclude_defaults=True) for one in shown
        ],
        "earlier": earlier_html(words) if len(articles) > len(shown) else "",
        "followed": followed,
        "is_answer": is_answer,
    }


def top_html(
    words: Words, conversation: Conversation | None, *, is_sketch: bool, spent_usd: float = 0.0, opened_at: int = 0
) -> Markup:
    """Return the top bar: the title, how many pictures, what it cost, whether this is sketch mode, and the menu.

    `opened_at` is a stamp, another one whenever a conversation is opened.
    """
    facts = [words("top.sketch")] if is_sketch else []
    if conversation and conversation.pictures:
        facts.append(words.counted("top.pictures", len(conversation.pictures)))
    if spent_usd:
        facts.append(price(words, spent_usd))
    return render("thread/top.html", words, conversation=conversation, facts=facts, opened_at=opened_at)


# What the first page begins with: the icon of each wish, and whether it is about a picture that is there already.
_WISHES = {
    "fox": ("paintbrush", False),
    "poster": ("coffee", False),
    "city": ("sunset", False),
    "photo": ("sun", True),
    "crop": ("crop", True),
    "letters": ("type", True),
}


@dataclass(frozen=True)
class Wish:
    """An example of the first page: its words, and whether a picture must come along."""

    text: str
    needs_picture: bool


def wish_of(words: Words, name: str) -> Wish | None:
    """Return the example of that name in the visitor's words, or None when there is none."""
    return Wish(words(f"wish.{name}_text"), _WISHES[name][1]) if name in _WISHES else None


def welcome_html(
    words: Words, *, is_sketch: bool, is_kept: bool = True, is_shared: bool = False, lost: LostRecords | None = None
) -> Markup:
    """Return the first page: without a key how to add one, the question, and wishes.

    Without `is_kept` it also says that nothing made here outlives a restart. Where the studio `is_shared`, a script
    shows what is said to a browser without cookies. Of records that were `lost` it says where they are, and what to go
    back to.
    """
    return render(
        "thread/welcome.html",
        words,
        is_sketch=is_sketch,
        is_kept=is_kept,
        is_shared=is_shared,
        lost=lost_sentence(words, lost) if lost is not None else "",
        wishes=[(name, *of_it) for name, of_it in _WISHES.items()],
    )


def lost_sentence(words: Words, lost: LostRecords) -> str:
    """Return where the records that could not be read are now, and how to go back to a backup."""
    if lost.newest_backup_at is None:
        return words("welcome.lost_without_backup", name=lost.name)
    newest = lost.newest_backup_at.astimezone().strftime("%Y-%m-%d %H:%M")
    return words.counted("welcome.lost", lost.backup_count, name=lost.name, newest=newest)
