"""What the agent asks back in the page's own words, with ways to answer; and what it says when someone went back."""

from __future__ import annotations

from html import escape
from typing import assert_never

from agent import Question, TargetChanged
from webui.cards import View, button
from webui.icons import icon
from webui.panels.painter import choose_button_html
from webui.words import Words

_EXAMPLES = ("wish.fox_text", "wish.poster_text", "wish.city_text")


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


def asked(view: View, question: Question, subject: str, newest: str) -> str:
    """Return the question with ways to answer it: examples that fill the composer, or what to press.

    `newest` is the handle of the conversation's newest picture, or empty where it has none.
    """
    said = f"<p>{escape(question_sentence(view.words, question, subject))}</p>"
    picture = subject if newest and subject.startswith("#") else newest
    return f'<div class="ask">{said}{_help(view, question, picture)}</div>'


def _help(view: View, question: Question, picture: str) -> str:
    words = view.words
    match question:
        case "empty":
            chips = "".join(button("say", words(key), style="example", arg=words(key)) for key in _EXAMPLES)
            return f'<div class="examples" role="group" aria-label="{escape(words("question.examples"))}">{chips}</div>'
        case "not_painted":
            paints = button("paint_now", words("question.paint_now"), "brush", "line", price=view.turn_price)
            return f'<div class="examples">{paints}</div>'
        case "unsure":
            return _hint(words("question.unsure_hint"), "lightbulb")
        case "which_part" | "no_mask" if not picture:
            hint = _hint(words("question.no_picture_hint"), "image-up")
            return f'{hint}<div class="examples">{choose_button_html(words)}</div>'
        case "which_part":
            mark = button("edit", words("question.edit_this", handle=picture), "pencil", "line", arg=picture)
            return f'{_hint(words("question.which_part_hint"), "lightbulb")}<div class="examples">{mark}</div>'
        case "no_mask":
            opens = button("view", words("question.open_this", handle=picture), "brush", "line", arg=picture)
            return f'{_hint(words("question.no_mask_hint"), "lightbulb")}<div class="examples">{opens}</div>'
        case _:
            assert_never(question)


def _hint(text: str, icon_name: str) -> str:
    return f'<p class="hint">{icon(icon_name, 15)}{escape(text)}</p>'
