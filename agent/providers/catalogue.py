"""The one list of models: names, what each obeys, what each costs. The data is `catalogue.toml` beside this file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import date
from enum import StrEnum
from importlib import resources

from pydantic import Field

from agent.errors import SettingsError
from agent.messages import TokenUsage, Value


class ModelRole(StrEnum):
    """What a model is used for. An operator overrides the name with `AIVISTA_MODEL_<ROLE>`."""

    FLASH = "flash"
    THINKING = "thinking"
    IMAGE_FLASH = "image_flash"
    IMAGE_PRO = "image_pro"
    EMBEDDING = "embedding"


class Prices(Value):
    """US dollars per million tokens by kind, from a day on; a search costs per query executed."""

    since: date
    prompt: float = 0.0
    cached: float = 0.0
    output: float = 0.0
    image: float = 0.0
    search_query: float = 0.0


class ModelEntry(Value):
    """What the studio knows of one model.

    `sizes` maps each resolution the model takes to its pixels per aspect ratio, width first; a model without sizes
    gets no resolution. `max_references` counts pictures in one request, of which at most `max_characters` are people.
    `prices` are in order of their day.
    """

    id: str
    role: ModelRole
    provider: str
    label: str
    aspect_ratios: tuple[str, ...] = ()
    sizes: dict[str, dict[str, tuple[int, int]]] = Field(default_factory=dict)
    max_references: int = 0
    max_objects: int = 0
    max_characters: int = 0
    thinking_levels: tuple[str, ...] = ()
    thinking_level: str | None = None
    has_grounding: bool = False
    has_image_search: bool = False
    has_image_tool_results: bool = False
    typical_seconds: float = 0.0
    prices: tuple[Prices, ...] = ()

    @property
    def resolutions(self) -> tuple[str, ...]:
        """The resolutions the model takes, smallest first."""
        return tuple(self.sizes)

    def pixels(self, aspect_ratio: str, resolution: str | None) -> tuple[int, int] | None:
        """Return width and height the model delivers for the setting, or None when the catalogue does not know."""
        chosen = resolution or next(iter(self.sizes), None)
        return self.sizes.get(chosen or "", {}).get(aspect_ratio)

    def price_usd(self, usage: TokenUsage, on: date) -> float:
        """Return what the tokens cost at the prices of that day."""
        prices = self._prices_on(on)
        fresh = max(0, usage.prompt_tokens - usage.cached_tokens) + usage.tool_tokens
        per_million = (
            fresh * prices.prompt
            + usage.cached_tokens * prices.cached
            + (usage.output_tokens + usage.thought_tokens) * prices.output
            + usage.image_tokens * prices.image
        )
        return per_million / 1_000_000 + usage.search_queries * prices.search_query

    def _prices_on(self, on: date) -> Prices:
        valid = [prices for prices in self.prices if prices.since <= on]
        # Before the first known day the first known prices are a better guess than nothing.
        return (valid[-1:] or list(self.prices[:1]) or [Prices(since=on)])[0]


class Catalogue(Value):
    """The models of the studio, by role, for one provider at a time."""

    entries: tuple[ModelEntry, ...]

    def model(self, role: ModelRole, provider: str) -> ModelEntry:
        """Return the model that plays the role at the provider. Raises SettingsError when there is none."""
        for entry in self.entries:
            if entry.role is role and entry.provider == provider:
                return entry
        raise SettingsError(override_variable(role), "", f"the catalogue has no {role} model for {provider}")

    def by_id(self, model_id: str) -> ModelEntry | None:
        """Return the model with this id, or None."""
        return next((entry for entry in self.entries if entry.id == model_id), None)


def override_variable(role: ModelRole) -> str:
    """Return the environment variable that names another model for the role."""
    return f"AIVISTA_MODEL_{role.value.upper()}"


def load_catalogue(overrides: Mapping[str, str] | None = None) -> Catalogue:
    """Return the catalogue with the operator's names in place: the first entry of a role is the default.

    `overrides` maps a role (`image_pro`) to a model id. An id the catalogue knows brings its own capabilities and
    prices; another one takes those of the role's default.

    Raises SettingsError for a role that does not exist.
    """
    text = resources.files("agent.providers").joinpath("catalogue.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    tables: dict[str, dict[str, dict[str, tuple[int, int]]]] = data["sizes"]
    entries = [_entry(row, tables) for row in data["model"]]
    for name, model_id in (overrides or {}).items():
        try:
            role = ModelRole(name)
        except ValueError:
            raise SettingsError(f"AIVISTA_MODEL_{name.upper()}", model_id, "there is no such role") from None
        known = next((entry for entry in entries if entry.id == model_id), None)
        like = known or next(entry for entry in entries if entry.role is role and entry.provider == "gemini")
        entries.insert(0, like.model_copy(update={"id": model_id, "role": role}))
    return Catalogue(entries=tuple(entries))


def _entry(row: dict[str, object], tables: dict[str, dict[str, dict[str, tuple[int, int]]]]) -> ModelEntry:
    fields = dict(row)
    table = tables[str(fields.pop("size_table"))] if "size_table" in fields else {}
    ratios = fields.get("aspect_ratios", ())
    chosen = fields.pop("resolutions", ())
    assert isinstance(chosen, list | tuple)
    assert isinstance(ratios, list | tuple)
    fields["sizes"] = {size: {ratio: table[size][ratio] for ratio in ratios if ratio in table[size]} for size in chosen}
    return ModelEntry.model_validate(fields)
