"""What a look at a picture found, folded under it: asked and seen. And the attempts that a better one replaced."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from agent import ChecklistItem, Picture, Review
from webui.cards import THUMB_EDGE_PX, View, tag
from webui.icons import icon
from webui.words import Words


def review_text(words: Words, review: Review) -> str:
    """Return what a look came to: of what was asked for and looked at, how much is there. Never a score."""
    looked = review.looked_at
    if _is_studios_own(review):
        names = dict.fromkeys(words(f"check.{item.check}") for item in review.checklist if item.check)
        return words("review.checked", names=words("did.join").join(names))
    if review.score is None:
        return words("review.none")
    if not looked:
        return words("review.title")
    return words("review.of", met=sum(item.is_met is True for item in looked), count=len(looked))


def folded_review(view: View, picture: Picture) -> str:
    """Return the review under a picture, which unfolds: how much of what was asked for is there; empty without one."""
    review = picture.review
    if review is None:
        return ""
    words, rows = view.words, review_rows(view.words, review)
    head = f"{review_badge(words, review)}<span>{escape(_tally(words, review))}</span>"
    if not rows:
        return f'<p class="review">{head}</p>'
    return (
        f'<details class="review"><summary>{head}{icon("chevron-down", 14)}</summary><div class="found">{rows}</div>'
        "</details>"
    )


def review_badge(words: Words, review: Review) -> str:
    """Return what a look came to as a small badge: its colour says what its icon and its words say, too."""
    if review.score is None or _is_studios_own(review):
        tone, name = "unseen", "circle-dashed"
    else:
        tone, name = ("short", "triangle-alert") if review.has_shortcomings else ("passed", "circle-check")
    return (
        f'<b class="score {tone}" title="{escape(words("review.title"))}">{icon(name, 13)}'
        f"{escape(review_text(words, review))}</b>"
    )


def review_rows(words: Words, review: Review) -> str:
    """Return all that a review found: asked and seen, the lettering, what was said, what to change, who looked."""
    items = "".join(_item(words, item) for item in review.checklist)
    checklist = f'<ul class="checks">{items}</ul>' if items else ""
    suggestions = "".join(f"<li>{escape(text)}</li>" for text in review.suggestions)
    rows = [
        (words("review.lettering"), f"<q>{escape(review.lettering)}</q>" if review.lettering else ""),
        (words("review.feedback"), "" if _is_studios_own(review) else escape(review.feedback)),
        (words("review.suggestions"), f"<ul>{suggestions}</ul>" if suggestions else ""),
    ]
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in rows if value)
    if not checklist and not listed:
        return ""
    by = words("review.by", model=review.model_label) if review.model_label else ""
    if _is_studios_own(review):
        by = words("review.by_studio")
    who = f'<p class="by">{escape(by)}</p>' if by else ""
    return f"{checklist}{f'<dl>{listed}</dl>' if listed else ''}{who}"


def _is_studios_own(review: Review) -> bool:
    """Whether no model looked: the first records hold such checks of ratio, size and lettering with a score."""
    return not review.model_label and bool(review.checklist) and all(item.check for item in review.checklist)


def _tally(words: Words, review: Review) -> str:
    """Return what stands beside the badge: what was not looked at, or the one sentence of a review without a list."""
    if _is_studios_own(review):
        return ""
    unseen = len(review.checklist) - len(review.looked_at)
    if review.looked_at:
        parts = [words("review.as_asked"), words.counted("review.unseen", unseen) if unseen else ""]
        return words("did.join").join(part for part in parts if part)
    return review.feedback


def _item(words: Words, item: ChecklistItem) -> str:
    """Return a row: what was asked for in the person's words, and what is seen of it."""
    name = words(f"check.{item.check}") if item.check else item.wish
    sign, label, look = {
        True: ("check", words("review.met"), "met"),
        False: ("x", words("review.not_met"), "missed"),
        None: ("circle-dashed", words("review.not_looked"), "unlooked"),
    }[item.is_met]
    kind = f"<i>{escape(words(f'asked.{item.kind}'))}</i> " if item.kind else ""
    quoted = escape(name) if item.check else f"<q>{escape(name)}</q>"
    seen = item.why or (words("review.not_looked") if item.is_met is None else "")
    why = f" <small>{escape(seen)}</small>" if seen else ""
    return (
        f'<li class="{look}"><span role="img" aria-label="{escape(label)}">{icon(sign, 15)}</span>'
        f"<span>{kind}{quoted}{why}</span></li>"
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
    badge = review_badge(view.words, picture.review) if picture.review is not None else ""
    return (
        f'<figure><button type="button" class="try" data-act="view" data-arg="{escape(handle)}" title="{name}" '
        f'aria-label="{name}"><img src="{view.url(handle, THUMB_EDGE_PX)}" alt="" loading="lazy">{tag(handle)}</button>'
        f"<figcaption>{badge}</figcaption></figure>"
    )
