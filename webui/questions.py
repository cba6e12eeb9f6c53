"""What the agent asks back in the page's own words, with ways to answer."""

from __future__ import annotations

from html import escape
from typing import assert_never

from agent.plans import Question
from webui.cards import button
from webui.icons import icon
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
        case _:
            assert_never(question)


def asked(words: Words, question: Question, subject: str) -> str:
    """Return the question with examples that fill the composer, or with a hint how to answer."""
    said = f"<p>{escape(question_sentence(words, question, subject))}</p>"
    return f'<div class="ask">{said}{_help(words, question)}</div>'


def _help(words: Words, question: Question) -> str:
    match question:
        case "empty":
            chips = "".join(button("say", words(key), style="example", arg=words(key)) for key in _EXAMPLES)
            return f'<div class="examples" role="group" aria-label="{escape(words("question.examples"))}">{chips}</div>'
        case "unsure":
            return f'<p class="hint">{icon("lightbulb", 15)}{escape(words("question.unsure_hint"))}</p>'
        case "which_part":
            return f'<p class="hint">{icon("pencil", 15)}{escape(words("question.which_part_hint"))}</p>'
        case _:
            assert_never(question)
