"""A file that says how it was made: the card over the composer, and all it says as a receipt on the stage.

What a file says is somebody's data: none of it becomes an address or a button.
"""

from __future__ import annotations

from markupsafe import Markup

from agent import ForeignRecipe, FoundRecipe, Recipe, RecipeRefusal, ReferenceRole, RefusedRecipe
from webui.features.viewer.receipt import changes_text, price
from webui.shell.templates import render
from webui.words import Words

_WORDS_ON_CARD = 160


def card_html(words: Words, found: FoundRecipe, *, is_known: bool = False) -> Markup:
    """Return the card for what a file says; `is_known` when the picture it tells of is one of the visitor's own."""
    match found:
        case Recipe():
            said = _line(words, found)
        case ForeignRecipe():
            shown = _shortened(found.prompt)
            said = words("recipe.foreign_said", words=shown) if found.prompt else words("recipe.foreign")
        case RefusedRecipe():
            said = refused_sentence(words, found)
        case None:
            return Markup()
    kind = "own" if isinstance(found, Recipe) else "foreign" if isinstance(found, ForeignRecipe) else ""
    has_prompt = isinstance(found, ForeignRecipe) and bool(found.prompt)
    return render("recipes/card.html", words, said=said, kind=kind, is_known=is_known, has_prompt=has_prompt)


def refused_sentence(words: Words, refused: RefusedRecipe) -> str:
    """Return why a recipe that is there is not read."""
    return words("recipe.newer") if refused.reason is RecipeRefusal.NEWER else words("recipe.damaged")


def recipe_html(words: Words, found: FoundRecipe) -> Markup:
    """Return all that a file says, for the stage."""
    match found:
        case Recipe():
            own = _own(words, found)
            return render("recipes/whole.html", words, recipe=found, foreign=None, lead=words("recipe.lead"), **own)
        case ForeignRecipe():
            return render("recipes/whole.html", words, foreign=found, lead=words("recipe.foreign_lead"))
        case _:
            return Markup()


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


def _own(words: Words, recipe: Recipe) -> dict[str, object]:
    """Return what is said of a recipe of ours beside what stands in it."""
    known = set(ReferenceRole)
    roles = [words(f"role.{one.role}") if one.role in known else one.role for one in recipe.parents]
    asked = " ".join(part for part in (recipe.asked_resolution, recipe.asked_aspect_ratio) if part)
    got = f"{recipe.width}×{recipe.height}" if recipe.width and recipe.height else ""
    notes = ((recipe.made_with_ai, "recipe.with_ai"), (recipe.is_shortened, "recipe.shortened"))
    return {
        "changes": changes_text(words, recipe.changes),
        "model": _model(words, recipe),
        "got": " → ".join(part for part in (asked, got) if part),
        "parents": " · ".join(f"{one.handle} {role}".strip() for one, role in zip(recipe.parents, roles, strict=True)),
        "price": price(words, recipe.price_usd) if recipe.prompt else "",
        "time": words("receipt.seconds", seconds=f"{recipe.seconds:.1f}") if recipe.seconds else "",
        "notes": " ".join(words(key) for is_so, key in notes if is_so),
    }
