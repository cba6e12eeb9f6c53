"""A file that says how it was made: the card over the composer, and all it says as a receipt on the stage.

What a file says is somebody's data: every word of it is escaped here, and none of it becomes an address or a button.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from agent import ForeignRecipe, FoundRecipe, Recipe, RecipeRefusal, ReferenceRole, RefusedRecipe, Source
from webui.cards import source_links
from webui.features.viewer.receipt import changes_text, price
from webui.icons import icon
from webui.words import Words

_WORDS_ON_CARD = 160


def card_html(words: Words, found: FoundRecipe, *, is_known: bool = False) -> str:
    """Return the card for what a file says; `is_known` when the picture it tells of is one of the visitor's own."""
    match found:
        case Recipe():
            branch = words("recipe.open_known") if is_known else words("recipe.branch")
            buttons = _button("restore", words("recipe.restore"), "rotate-ccw", "solid")
            buttons += _button("branch", branch, "git-fork", "line", words("recipe.branch_title"))
            return _card(words, _line(words, found), buttons + _read(words))
        case ForeignRecipe():
            said = words("recipe.foreign")
            if found.prompt:
                said = words("recipe.foreign_said", words=_shortened(found.prompt))
            take = _button("take_prompt", words("recipe.take_prompt"), "rotate-ccw", "line") if found.prompt else ""
            return _card(words, said, take + _read(words))
        case RefusedRecipe():
            return _card(words, refused_sentence(words, found), "")
        case None:
            return ""


def refused_sentence(words: Words, refused: RefusedRecipe) -> str:
    """Return why a recipe that is there is not read."""
    return words("recipe.newer") if refused.reason is RecipeRefusal.NEWER else words("recipe.damaged")


def recipe_html(words: Words, found: FoundRecipe) -> str:
    """Return all that a file says, for the stage."""
    match found:
        case Recipe():
            rows, lead = _rows(words, found), words("recipe.lead")
        case ForeignRecipe():
            rows, lead = _foreign_rows(words, found), words("recipe.foreign_lead")
        case _:
            return ""
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in rows if value)
    return (
        f'<div class="cv-bar"><b>{escape(words("recipe.title"))}</b></div><div class="cv-scroll">'
        f'<p class="recipe-lead">{escape(lead)}</p><section class="receipt whole"><dl>{listed}</dl></section></div>'
    )


def _line(words: Words, recipe: Recipe) -> str:
    """Return what the picture is in one sentence: the words, the model, what was asked."""
    said = _shortened(recipe.words or recipe.prompt)
    facts = words("recipe.join").join(
        part for part in (_model(words, recipe), recipe.asked_aspect_ratio, recipe.asked_resolution) if part
    )
    told = words("recipe.quoted", words=said) if said else ""
    listed = words("recipe.join").join(part for part in (told, facts) if part)
    return words("recipe.found", recipe=listed or f"{recipe.width}×{recipe.height}")


def _model(words: Words, recipe: Recipe) -> str:
    if recipe.edit == "adjustment":
        return words("receipt.exact")
    return words("composer.sketch") if recipe.is_sketch else recipe.model_label or recipe.model


def _shortened(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _WORDS_ON_CARD else f"{plain[: _WORDS_ON_CARD - 1].rstrip()}…"


def _card(words: Words, sentence: str, buttons: str) -> str:
    label = escape(words("recipe.close"))
    return (
        f'<div class="recipe" role="status">{icon("scroll-text", 16)}<p>{escape(sentence)}</p>'
        f'<button type="button" class="b icon" data-recipe="close" aria-label="{label}" title="{label}">'
        f"{icon('x', 15)}</button>{f'<div>{buttons}</div>' if buttons else ''}</div>"
    )


def _button(act: str, label: str, icon_name: str, style: str, title: str = "") -> str:
    named = f' title="{escape(title)}"' if title else ""
    return (
        f'<button type="button" class="b {style}" data-recipe="{act}"{named}>{icon(icon_name, 15)}'
        f"<span>{escape(label)}</span></button>"
    )


def _read(words: Words) -> str:
    return _button("read", words("recipe.read"), "book-open", "line")


def _rows(words: Words, recipe: Recipe) -> list[tuple[str, str]]:
    asked = " ".join(part for part in (recipe.asked_resolution, recipe.asked_aspect_ratio) if part)
    got = f"{recipe.width}×{recipe.height}" if recipe.width and recipe.height else ""
    web = [Source(title=source.title, url=source.url) for source in recipe.sources]
    styles = "; ".join(style.name for style in recipe.styles)
    made = recipe.created_at.strftime("%Y-%m-%d %H:%M UTC")
    return [
        (words("receipt.words"), _said(recipe.words)),
        (words("receipt.prompt"), _said(recipe.prompt)),
        (words("receipt.changes"), escape(changes_text(words, recipe.changes))),
        (words("receipt.model"), escape(_model(words, recipe))),
        (words("receipt.got"), escape(" → ".join(part for part in (asked, got) if part))),
        (words("receipt.references"), _parents(words, recipe)),
        (words("receipt.styles"), escape(styles)),
        (words("receipt.facts"), "<br>".join(escape(f"{one.item} {one.source}".strip()) for one in recipe.facts)),
        (words("receipt.sources"), source_links(web)),
        (words("receipt.price"), escape(price(words, recipe.price_usd)) if recipe.prompt else ""),
        (words("receipt.time"), _seconds(words, recipe.seconds)),
        (words("recipe.made_at"), escape(made)),
        (words("recipe.from"), escape(" · ".join(part for part in (recipe.conversation_title, recipe.handle) if part))),
        (words("recipe.note"), escape(_notes(words, recipe))),
    ]


def _parents(words: Words, recipe: Recipe) -> str:
    known = set(ReferenceRole)
    named = (
        f"{one.handle} {words(f'role.{one.role}') if one.role in known else one.role}".strip() for one in recipe.parents
    )
    return " · ".join(escape(one) for one in named)


def _notes(words: Words, recipe: Recipe) -> str:
    told: Sequence[tuple[bool, str]] = (
        (recipe.made_with_ai, words("recipe.with_ai")),
        (recipe.is_shortened, words("recipe.shortened")),
    )
    return " ".join(sentence for is_so, sentence in told if is_so)


def _seconds(words: Words, seconds: float) -> str:
    return escape(words("receipt.seconds", seconds=f"{seconds:.1f}")) if seconds else ""


def _foreign_rows(words: Words, foreign: ForeignRecipe) -> list[tuple[str, str]]:
    return [
        (words("receipt.prompt"), _said(foreign.prompt)),
        (words("recipe.negative"), _said(foreign.negative_prompt)),
        (words("receipt.model"), escape(foreign.model)),
        (words("recipe.seed"), escape(foreign.seed)),
        (words("recipe.steps"), escape(foreign.steps)),
        (words("recipe.cfg_scale"), escape(foreign.cfg_scale)),
        (words("recipe.sampler"), escape(foreign.sampler)),
        (words("recipe.size"), escape(foreign.size)),
        (words("recipe.raw"), _said(foreign.raw)),
    ]


def _said(text: str) -> str:
    return f"<span class='said'>{escape(text)}</span>" if text.strip() else ""
