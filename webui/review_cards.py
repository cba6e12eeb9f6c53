"""What a look at a picture found, folded under it, and the attempts that a better one took the place of."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from agent.pictures import Picture
from agent.reviews import ChecklistItem, Review
from webui.cards import THUMB_EDGE_PX, View, tag
from webui.icons import icon
from webui.words import Words


def score_text(words: Words, review: Review) -> str:
    """Return the score as a person reads it, or that there is none."""
    return words("review.none") if review.score is None else f"{review.score:.0%}"


def folded_review(view: View, picture: Picture) -> str:
    """Return the review under a picture: score and how much of the wish is met, which unfolds; empty without one."""
    review = picture.review
    if review is None:
        return ""
    rows = review_rows(view.words, review)
    head = f"{score_badge(view.words, review)}<span>{escape(_tally(view.words, review))}</span>"
    if not rows:
        return f'<p class="review">{head}</p>'
    return (
        f'<details class="review"><summary>{head}{icon("chevron-down", 14)}</summary><div class="found">{rows}</div>'
        "</details>"
    )


def score_badge(words: Words, review: Review) -> str:
    """Return the score as a small badge: its colour says what its icon and its number say, too."""
    if review.score is None:
        tone, name = "unseen", "circle-dashed"
    else:
        tone, name = ("passed", "circle-check") if review.has_passed else ("short", "triangle-alert")
    title = words("review.title") if review.score is None else words("review.score", score=score_text(words, review))
    return f'<b class="score {tone}" title="{escape(title)}">{icon(name, 13)}{escape(score_text(words, review))}</b>'


def review_rows(words: Words, review: Review) -> str:
    """Return everything a review found: the checklist, the lettering, what was said, what to change, who looked."""
    items = "".join(_item(words, item) for item in review.checklist)
    checklist = f'<ul class="checks">{items}</ul>' if items else ""
    suggestions = "".join(f"<li>{escape(text)}</li>" for text in review.suggestions)
    rows = [
        (words("review.lettering"), f"<q>{escape(review.lettering)}</q>" if review.lettering else ""),
        (words("review.feedback"), escape(review.feedback)),
        (words("review.suggestions"), f"<ul>{suggestions}</ul>" if suggestions else ""),
    ]
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in rows if value)
    if not checklist and not listed:
        return ""
    by = words("review.by", model=review.model_label) if review.model_label else words("review.by_studio")
    return f'{checklist}{f"<dl>{listed}</dl>" if listed else ""}<p class="by">{escape(by)}</p>'


def _tally(words: Words, review: Review) -> str:
    """Return how many of the wishes are met; without a checklist the one sentence of the review."""
    if review.checklist:
        met = sum(item.is_met for item in review.checklist)
        return words("review.tally", met=met, count=len(review.checklist))
    return review.feedback


def _item(words: Words, item: ChecklistItem) -> str:
    name = words(f"check.{item.check}") if item.check else item.wish
    sign, label = ("check", words("review.met")) if item.is_met else ("x", words("review.not_met"))
    why = f" <small>{escape(item.why)}</small>" if item.why else ""
    return (
        f'<li class="{"met" if item.is_met else "missed"}"><span role="img" aria-label="{escape(label)}">'
        f"{icon(sign, 15)}</span><span>{escape(name)}{why}</span></li>"
    )


def earlier_attempts(view: View, pictures: Sequence[Picture]) -> str:
    """Return the folded attempts that a review sent back, each with its score; empty when there were none."""
    if not pictures:
        return ""
    head = escape(view.words.counted("review.earlier", len(pictures)))
    cells = "".join(_attempt(view, picture) for picture in pictures)
    return (
        f'<details class="earlier"><summary>{icon("chevron-right", 15)}<span>{head}</span></summary>'
        f'<div class="tries">{cells}</div></details>'
    )


def _attempt(view: View, picture: Picture) -> str:
    handle = picture.handle
    name = escape(view.words("action.open", handle=handle))
    badge = score_badge(view.words, picture.review) if picture.review is not None else ""
    return (
        f'<figure><button type="button" class="try" data-act="view" data-arg="{escape(handle)}" title="{name}" '
        f'aria-label="{name}"><img src="{view.url(handle, THUMB_EDGE_PX)}" alt="" loading="lazy">{tag(handle)}</button>'
        f"<figcaption>{badge}</figcaption></figure>"
    )
