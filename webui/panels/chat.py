"""The middle: the top bar, the thread, and the first page in the thread's place."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from pydantic import JsonValue

from agent import Conversation, LostRecords
from webui.cards import button
from webui.features.viewer.receipt import price
from webui.icons import icon
from webui.panels.bell import bell_html
from webui.render import Article
from webui.shell.patches import Patch
from webui.shell.templates import render
from webui.words import Words

# So many turns come with a conversation; those before them when somebody scrolls up.
TURNS_AT_ONCE = 12


def log_html(articles: Sequence[Article] = (), earlier: str = "", *, is_live: bool = False) -> str:
    """Return the thread's own element. Only its script changes it, by what `thread_told` and the stream of a turn
    tell."""
    inside = earlier + "".join(one.html for one in articles)
    live = " data-live" if is_live else ""
    return f'<div id="log" role="log" aria-live="off" tabindex="0"><div id="thread"{live}>{inside}</div></div>'


def newest(articles: Sequence[Article]) -> Sequence[Article]:
    """Return those that come with a conversation."""
    return articles[-TURNS_AT_ONCE:]


def earlier_html(words: Words) -> str:
    """Return the way to the turns before those that are there; it is pressed by itself when it comes into sight."""
    label = escape(words("thread.earlier"))
    return f'<button type="button" class="b line" id="earlier" data-thread="earlier">{label}</button>'


def thread_told(
    words: Words,
    conversation_id: str,
    articles: Sequence[Article],
    *,
    followed: str = "",
    is_answer: bool = False,
) -> dict[str, JsonValue]:
    """Return a conversation's thread for the page's script: the newest turns in their order, whether there are more,
    the one that is at work and to be `followed`, and whether this `is_answer` to what the page has sent."""
    shown = newest(articles)
    return {
        "at": time.monotonic_ns(),
        "conversation": conversation_id,
        "turns": [one.id for one in shown],
        "patches": [
            Patch(id=one.id, html=one.html, parent="thread").model_dump(exclude_defaults=True) for one in shown
        ],
        "earlier": earlier_html(words) if len(articles) > len(shown) else "",
        "followed": followed,
        "is_answer": is_answer,
    }


def top_html(
    words: Words,
    conversation: Conversation | None,
    *,
    is_sketch: bool,
    spent_usd: float | None = None,
    opened_at: int = 0,
) -> str:
    """Return the top bar: the title, how many pictures, what it cost, whether this is sketch mode, and the menu.

    Without `spent_usd` the cost is that of the branch that is shown. `opened_at` is a stamp, another one whenever a
    conversation is opened: by it the page tells one that was opened from a new one that got its name.
    """
    title = conversation.title if conversation else ""
    facts = [words("top.sketch")] if is_sketch else []
    if conversation and conversation.pictures:
        facts.append(words.counted("top.pictures", len(conversation.pictures)))
    spent = conversation.price_usd if conversation and spent_usd is None else spent_usd
    if spent:
        facts.append(price(words, spent))
    menu = ""
    if conversation and conversation.title:
        of_it = {"id": conversation.id, "title": conversation.title, "is_pinned": conversation.is_pinned}
        menu = render("conversations/this.html", words, **of_it)
    where = escape(conversation.id) if conversation else "new"
    shown = escape(title or words("top.untitled"))
    opened = f' data-opened="{opened_at}"' if opened_at else ""
    version = f' data-version="{conversation.version}"' if conversation else ""
    return (
        f"{button('rail', words('rail.show'), 'panel-left', 'icon show-rail', bare=True)}"
        f'<h1 dir="auto" data-conversation="{where}" data-language="{words.language}"{version}{opened}>{shown}</h1>'
        f'<h2 class="heard">{escape(words("builtin.thread"))}</h2>'
        f'<span class="sub">{escape(" · ".join(facts))}</span><span class="grow"></span>'
        f"{menu}{bell_html(words)}{button('styles', words('styles.title'), 'palette', 'styles-open')}"
        f"{button('stage', words('top.stage'), 'panel-right', 'icon', bare=True)}"
    )


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
    words: Words,
    *,
    is_sketch: bool,
    is_kept: bool = True,
    is_shared: bool = False,
    lost: LostRecords | None = None,
) -> str:
    """Return the first page: without a key how to add one, the question, and wishes.

    Where nothing costs anything a wish runs at once; else it fills the composer, where its price is seen before Send.
    Without `is_kept` it also says that nothing made here outlives a restart. Where the studio `is_shared`, a script
    shows what is said to a browser without cookies. Of records that were `lost` it says where they are, and what to go
    back to.
    """
    banner = ""
    if is_sketch:
        banner = (
            f'<div class="banner" role="status">{icon("key-round", 18)}<p><b>{escape(words("welcome.key_title"))}</b>'
            f"{escape(words('welcome.key_text'))}</p>{button('settings', words('welcome.add_key'), '', 'solid')}</div>"
        )
    wishes = "".join(_wish(words, name, runs=is_sketch) for name in _WISHES)
    if is_shared:
        tab = f'<a href="./" target="_blank" rel="noopener">{escape(words("welcome.own_tab"))}</a>'
        said = f"<p>{escape(words('welcome.no_cookie'))} {tab}</p>"
        banner += f'<div class="banner no-cookie" role="status">{icon("info", 18)}{said}</div>'
    if lost is not None:
        said = f"<p><b>{escape(words('welcome.lost_title'))}</b>{escape(lost_sentence(words, lost))}</p>"
        banner = f'<div class="banner" role="alert">{icon("circle-alert", 18)}{said}</div>'
    unkept = "" if is_kept else f'<p class="unkept">{escape(words("welcome.unkept"))}</p>'
    how = words("welcome.runs" if is_sketch else "welcome.fills")
    return (
        f'<div class="welcome">{banner}<h2>{escape(words("welcome.hello"))}</h2>'
        f'<p class="lead">{escape(words("welcome.lead"))}<span>{escape(how)}</span></p>'
        f'<div class="wishes">{wishes}</div>{unkept}</div>'
    )


def lost_sentence(words: Words, lost: LostRecords) -> str:
    """Return where the records that could not be read are now, and how to go back to a backup."""
    if lost.newest_backup_at is None:
        return words("welcome.lost_without_backup", name=lost.name)
    newest = lost.newest_backup_at.astimezone().strftime("%Y-%m-%d %H:%M")
    return words.counted("welcome.lost", lost.backup_count, name=lost.name, newest=newest)


def _wish(words: Words, name: str, *, runs: bool) -> str:
    picture, needs_picture = _WISHES[name]
    text = escape(words(f"wish.{name}_text"))
    act = f'data-act="try_wish" data-arg="{name}"' if runs else f'data-act="say" data-arg="{text}"'
    sample = f"<em>{escape(words('wish.sample'))}</em>" if runs and needs_picture else ""
    hint = words("wish.run" if runs else "wish.fill")
    sign = icon("play" if runs else "corner-down-left", 15)
    return (
        f'<button type="button" class="wish wish-{name}" {act}><i>{icon(picture, 22)}</i>'
        f"<span><b>{escape(words(f'wish.{name}'))}</b><small>{text}{sample}</small></span>"
        f'<span class="does" title="{escape(hint)}">{sign}<span class="sr">{escape(hint)}</span></span></button>'
    )
