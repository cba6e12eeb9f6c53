"""Rules of generationConfig and safetySettings: what each model takes, and what no model takes any more."""

from __future__ import annotations

from tests.wire_server.fields import snake
from tests.wire_server.models import Kind, WireModel
from tests.wire_server.refusals import Json, Refused
from tests.wire_server.tool_rules import check_schema

# Deprecated for Gemini 3 and later: the API ignores or refuses them, the design never sends them.
_SAMPLING = ("temperature", "topP", "topK")
_SCHEMAS = ("responseSchema", "responseJsonSchema", "_responseJsonSchema")
_CATEGORIES = frozenset(
    "HARM_CATEGORY_" + name
    for name in [
        "HARASSMENT",
        "HATE_SPEECH",
        "SEXUALLY_EXPLICIT",
        "DANGEROUS_CONTENT",
        "CIVIC_INTEGRITY",
        "IMAGE_HATE",
        "IMAGE_DANGEROUS_CONTENT",
        "IMAGE_HARASSMENT",
        "IMAGE_SEXUALLY_EXPLICIT",
    ]
)
_THRESHOLDS = frozenset({"BLOCK_LOW_AND_ABOVE", "BLOCK_MEDIUM_AND_ABOVE", "BLOCK_ONLY_HIGH", "BLOCK_NONE", "OFF"})


def check_config(body: Json, model: WireModel) -> None:
    """Refuse a setting the model does not have, and one out of its range."""
    config: Json = body.get("generationConfig", {})
    for name in _SAMPLING:
        if name in config:
            raise Refused("deprecated_setting", f"{snake(name)} is not supported for this model")
    if "candidateCount" in config:
        raise Refused("candidate_count", "Multiple candidates is not enabled for this model")
    _check_thinking(config.get("thinkingConfig", {}), model)
    _check_output(config, model)
    if "imageConfig" in config or model.kind is Kind.IMAGE:
        _check_image(config, model)
    for setting in body.get("safetySettings", []):
        if setting.get("category") not in _CATEGORIES or setting.get("threshold") not in _THRESHOLDS:
            raise Refused("safety_setting", "Invalid value at 'safety_settings'")


def _check_thinking(config: Json, model: WireModel) -> None:
    if not config:
        return
    if "thinkingBudget" in config:
        raise Refused("deprecated_setting", "thinking_budget is not supported for this model: use thinking_level")
    if not model.thinking_levels:
        raise Refused("thinking", f"Thinking is not enabled for models/{model.name}")
    level = config.get("thinkingLevel", "").upper()
    if level and level not in model.thinking_levels:
        raise Refused("thinking", f"Thinking level {level} is not supported for this model.")


def _check_output(config: Json, model: WireModel) -> None:
    modalities = {str(name).upper() for name in config.get("responseModalities", [])}
    if "IMAGE" in modalities and model.kind is Kind.TEXT:
        raise Refused("modalities", "Model does not support the requested response modalities: image")
    if modalities - {"TEXT", "IMAGE"}:
        raise Refused("modalities", "Model does not support the requested response modalities")
    schemas = [config[name] for name in _SCHEMAS if name in config]
    mime_type = config.get("responseMimeType", "text/plain")
    if model.kind is Kind.IMAGE and (schemas or mime_type != "text/plain"):
        raise Refused("schema_on_image_model", "JSON mode is not enabled for this model")
    if schemas and mime_type != "application/json":
        sentence = "* GenerateContentRequest.generation_config.response_schema: only allowed for `application/json`\n"
        raise Refused("schema", sentence)
    for schema in schemas:
        check_schema(schema, "GenerateContentRequest.generation_config.response_schema")


def _check_image(config: Json, model: WireModel) -> None:
    asked: Json = config.get("imageConfig", {})
    if model.kind is Kind.TEXT:
        raise Refused("image_config", "Image generation is not enabled for this model")
    if "IMAGE" not in {str(name).upper() for name in config.get("responseModalities", [])}:
        raise Refused("modalities", "The response modalities of an image model must contain IMAGE")
    ratio, size = asked.get("aspectRatio"), asked.get("imageSize")
    if ratio is not None and ratio not in model.ratios:
        raise Refused("image_config", f"Invalid aspect_ratio {ratio}: use one of {', '.join(sorted(model.ratios))}")
    if size is not None and size not in model.sizes:
        sizes = ", ".join(sorted(model.sizes)) or "none"
        raise Refused("image_config", f"Invalid image_size {size}: this model has {sizes}")
