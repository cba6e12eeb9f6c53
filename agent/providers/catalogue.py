"""The catalogue of models: names, capabilities and prices. The data is `catalogue.toml` beside this file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from datetime import date
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator

from agent.errors import SettingsError
from agent.messages import TokenUsage, Value
from agent.pictures import MAX_MEGAPIXELS, MAX_SIDE_PX
from agent.settings import OpenAISettings, Settings


class ModelRole(StrEnum):
    """The use of a model. An operator sets another model id with `AIVISTA_MODEL_<ROLE>`."""

    FLASH = "flash"
    THINKING = "thinking"
    IMAGE_FLASH = "image_flash"
    IMAGE_PRO = "image_pro"
    EMBEDDING = "embedding"


TEXT_ROLES = (ModelRole.FLASH, ModelRole.THINKING)
IMAGE_ROLES = (ModelRole.IMAGE_FLASH, ModelRole.IMAGE_PRO)
_USUAL_RESOLUTION = "1K"

SizeTables = dict[str, dict[str, dict[str, tuple[int, int]]]]


class JsonMode(StrEnum):
    """How a text model can be forced to return JSON: by a schema, as any JSON object, or not at all."""

    SCHEMA = "schema"
    OBJECT = "object"
    NONE = "none"


class Prices(Value):
    """US dollars per million tokens by kind, valid from a day on; a search costs per executed query."""

    since: date
    prompt: float = 0.0
    cached: float = 0.0
    output: float = 0.0
    image: float = 0.0
    search_query: float = 0.0


class ModelEntry(Value):
    """The studio's data about one model.

    `sizes` maps each supported resolution to its pixels per aspect ratio, width first; a model without sizes is sent no
    resolution. `max_references` limits the pictures in one request, of which at most `max_characters` are people.
    `prices` are in order of their day; a picture is estimated at its `picture_tokens` by resolution, and when the
    resolution does not determine the tokens, at most at `most_picture_tokens`.

    `is_free`: it costs nothing (a model without prices may cost anything). `is_sketch`: it draws by rules. For image
    models, `works_on_originals`: it changes the original pixels, instead of looking at a copy. `takes_masks`: it keeps
    to a mask by itself. `keeps_shape`: an edited picture keeps its shape. `is_reviewed`: a model can judge its
    pictures.

    `takes_keys`: it needs a key, which a user may bring and test. `has_own_server`: the operator's server runs it.
    `stands_for_any`: on such a server, the template for models without a description.

    Models differ most behind OpenAI's API. For text models, `has_vision`: it sees pictures. `has_tools`: it takes
    functions. `returns_thoughts`: its thoughts are sent back with its calls. `has_stream_usage`: it counts tokens when
    asked. `limit_field`: the field for the output limit. For image models, `has_edits`: it edits pictures, sent in the
    form field `image_field`. `has_response_format`: it must be told to return the picture itself. `size_field`: it is
    sent a `size` in pixels, the `aspect_ratio`, or (empty) neither.
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
    has_vision: bool = True
    has_tools: bool = True
    json_mode: JsonMode = JsonMode.SCHEMA
    returns_thoughts: bool = False
    has_stream_usage: bool = True
    limit_field: str = "max_tokens"
    has_edits: bool = True
    has_response_format: bool = False
    image_field: str = "image[]"
    size_field: Literal["size", "aspect_ratio", ""] = "size"
    is_free: bool = False
    is_reviewed: bool = True
    has_own_server: bool = False
    is_sketch: bool = False
    keeps_shape: bool = False
    stands_for_any: bool = False
    takes_keys: bool = False
    takes_masks: bool = False
    works_on_originals: bool = False
    typical_seconds: float = 0.0
    picture_tokens: dict[str, int] = Field(default_factory=dict)
    most_picture_tokens: int | None = None
    prices: tuple[Prices, ...] = ()

    @field_validator("sizes")
    @classmethod
    def _can_be_read(cls, sizes: dict[str, dict[str, tuple[int, int]]]) -> dict[str, dict[str, tuple[int, int]]]:
        # A larger picture would be paid for, and then every decoder would refuse it.
        for resolution, by_ratio in sizes.items():
            for width, height in by_ratio.values():
                if width * height > MAX_MEGAPIXELS * 1_000_000 or max(width, height) > MAX_SIDE_PX:
                    raise ValueError(
                        f"{resolution} has pictures of {width}×{height}; at most {MAX_MEGAPIXELS} megapixels and "
                        f"{MAX_SIDE_PX} pixels a side can be read"
                    )
        return sizes

    @property
    def resolutions(self) -> tuple[str, ...]:
        """The resolutions that the model supports, smallest first."""
        return tuple(self.sizes)

    @property
    def default_resolution(self) -> str | None:
        """The resolution when none is chosen; None when the model has none."""
        return _USUAL_RESOLUTION if _USUAL_RESOLUTION in self.sizes else next(iter(self.sizes), None)

    def tokens_of_picture(self, resolution: str | None) -> int:
        """Return the tokens counted for a picture of the resolution, or of the default one."""
        counts = self.picture_tokens
        usual = counts.get(_USUAL_RESOLUTION, 0)
        return counts.get(resolution or self.default_resolution or "", usual)

    def pixels(self, aspect_ratio: str, resolution: str | None) -> tuple[int, int] | None:
        """Return the width and height that the model delivers for the setting, or None when unknown."""
        chosen = resolution or next(iter(self.sizes), None)
        return self.sizes.get(chosen or "", {}).get(aspect_ratio)

    def price_usd(self, usage: TokenUsage, on: date) -> float:
        """Return the cost of the usage at the prices of that day."""
        valid = [prices for prices in self.prices if prices.since <= on]
        # Before the first known day, the first known prices are a better guess than nothing.
        prices = (valid[-1:] or list(self.prices[:1]) or [Prices(since=on)])[0]
        fresh = max(0, usage.prompt_tokens - usage.cached_tokens) + usage.tool_tokens
        per_million = (
            fresh * prices.prompt
            + usage.cached_tokens * prices.cached
            + (usage.output_tokens + usage.thought_tokens) * prices.output
            + usage.image_tokens * prices.image
        )
        return per_million / 1_000_000 + usage.search_queries * prices.search_query


class Catalogue(Value):
    """The models of the studio, by role and provider."""

    entries: tuple[ModelEntry, ...]

    @property
    def resolutions(self) -> tuple[str, ...]:
        """Every resolution that some model supports, each once."""
        return tuple(dict.fromkeys(size for entry in self.entries for size in entry.resolutions))

    def model(self, role: ModelRole, provider: str) -> ModelEntry:
        """Return the provider's model for the role; the sketch model when the provider has no image model.

        Raises SettingsError when there is none.
        """
        of_role = [entry for entry in self.entries if entry.role is role]
        own = [entry for entry in of_role if entry.provider == provider]
        stand_ins = [entry for entry in of_role if entry.is_sketch] if role in IMAGE_ROLES else []
        for entry in (*own, *stand_ins):
            return entry
        raise SettingsError(override_variable(role), "", f"the catalogue has no {role} model for {provider}")

    def keyed(self, role: ModelRole) -> ModelEntry:
        """Return the model for the role that works with a user's key."""
        return next(entry for entry in self.entries if entry.role is role and entry.takes_keys)

    def by_id(self, model_id: str) -> ModelEntry | None:
        """Return the model with this id, or None."""
        return next((entry for entry in self.entries if entry.id == model_id), None)


def override_variable(role: ModelRole) -> str:
    """Return the environment variable that sets another model for the role."""
    return f"AIVISTA_MODEL_{role.value.upper()}"


def catalogue_of(settings: Settings) -> Catalogue:
    """Return the catalogue for the operator's settings. Raises SettingsError naming the unusable setting."""
    return load_catalogue(settings.model_overrides, own=settings.catalogue_file, openai=settings.openai)


def load_catalogue(
    overrides: Mapping[str, str] | None = None, *, own: Path | None = None, openai: OpenAISettings | None = None
) -> Catalogue:
    """Return the catalogue with the operator's choices: the first entry of a role is the default.

    `overrides` maps a role (`image_pro`) to a model id. A known id keeps its own capabilities and prices; an unknown
    one gets those of the role's default. `own` is a file with the operator's models, which come first. The models of
    `openai` fill every role of that provider.

    Raises SettingsError for an unknown role and for an unusable file.
    """
    bundled = tomllib.loads(resources.files("agent.providers").joinpath("catalogue.toml").read_text(encoding="utf-8"))
    entries = _entries(bundled, bundled)
    if own is not None:
        entries = [*_read_own(own, bundled), *entries]
    if openai is not None:
        entries = _with_openai(entries, openai)
    for name, model_id in (overrides or {}).items():
        try:
            role = ModelRole(name)
        except ValueError:
            raise SettingsError(f"AIVISTA_MODEL_{name.upper()}", model_id, "there is no such role") from None
        known = next((entry for entry in entries if entry.id == model_id), None)
        like = known or next(entry for entry in entries if entry.role is role and entry.takes_keys)
        entries.insert(0, like.model_copy(update={"id": model_id, "role": role}))
    return Catalogue(entries=tuple(entries))


def _with_openai(entries: list[ModelEntry], openai: OpenAISettings) -> list[ModelEntry]:
    names = dict.fromkeys(TEXT_ROLES, openai.text_model) | dict.fromkeys(IMAGE_ROLES, openai.image_model)
    others = [entry for entry in entries if not entry.has_own_server]
    mine = [entry for entry in entries if entry.has_own_server]
    chosen = [_named(mine, role, name) for role, name in names.items() if name is not None]
    # Without an own image model, the provider must have none at all, so that the sketch model is used.
    known = mine if openai.image_model is not None else [entry for entry in mine if entry.role not in IMAGE_ROLES]
    return [*chosen, *known, *others]


def _named(entries: Iterable[ModelEntry], role: ModelRole, model_id: str) -> ModelEntry:
    """Return the model for the role: the known entry, perhaps of a similar role, else one from the template."""
    roles = TEXT_ROLES if role in TEXT_ROLES else IMAGE_ROLES
    kind = sorted((entry for entry in entries if entry.role in roles), key=lambda entry: entry.role is not role)
    for entry in kind:
        if entry.id == model_id:
            return entry.model_copy(update={"role": role})
    unknown = next(entry for entry in kind if entry.stands_for_any)
    name = {"id": model_id, "label": model_id.rpartition("/")[2][:40], "stands_for_any": False}
    return unknown.model_copy(update={**name, "role": role})


def _read_own(path: Path, bundled: Mapping[str, Any]) -> list[ModelEntry]:
    try:
        return _entries(tomllib.loads(path.read_text(encoding="utf-8")), bundled)
    except OSError as error:
        problem = f"it cannot be read ({error.strerror or error})"
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        problem = f"it is not TOML ({error})"
    except ValidationError as error:
        first = error.errors()[0]
        problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except KeyError as error:
        problem = f"there is no {error}"
    except (TypeError, AttributeError, AssertionError):
        problem = "it must hold [[model]] tables like those of catalogue.toml"
    raise SettingsError("AIVISTA_CATALOGUE", path, problem)


def _entries(data: Mapping[str, Any], bundled: Mapping[str, Any]) -> list[ModelEntry]:
    tables = bundled["sizes"] | data.get("sizes", {})
    return [_entry(row, tables, bundled["providers"]) for row in data.get("model", ())]


def _entry(row: dict[str, object], tables: SizeTables, providers: Mapping[str, dict[str, object]]) -> ModelEntry:
    """Return the model of a row; fields that it lacks come from its provider's defaults."""
    fields = providers.get(str(row.get("provider")), {}) | row
    if "size_table" in fields:
        table = tables[str(fields.pop("size_table"))]
        ratios = fields.get("aspect_ratios", ())
        chosen = fields.pop("resolutions", tuple(table))
        assert isinstance(chosen, list | tuple)
        assert isinstance(ratios, list | tuple)
        fields["sizes"] = {
            size: {ratio: table[size][ratio] for ratio in ratios if ratio in table[size]} for size in chosen
        }
    return ModelEntry.model_validate(fields)
