"""The one way in: a parsed body is judged against every rule of its method."""

from __future__ import annotations

from tests.wire_server import generation_rules, picture_rules, signature_rules, tool_rules, turn_rules
from tests.wire_server.fields import normalized
from tests.wire_server.models import WireModel
from tests.wire_server.refusals import Json, Refused
from tests.wire_server.request import WireRequest
from tests.wire_server.signatures import Ledger

_SHAPES = {
    "generateContent": "GenerateContentRequest",
    "streamGenerateContent": "GenerateContentRequest",
    "countTokens": "CountTokensRequest",
    "embedContent": "EmbedContentRequest",
    "batchEmbedContents": "BatchEmbedContentsRequest",
}


def normal_body(method: str, body: object) -> Json:
    """Return the body in camelCase. Raises Refused on a field the method does not have."""
    return normalized(body, _SHAPES[method])


def check(request: WireRequest, ledger: Ledger) -> list[str]:
    """Refuse what the API refuses; return the design rules broken by what the API would have taken."""
    if request.method in ("embedContent", "batchEmbedContents"):
        check_embedding(request.normal, request.known_model)
        return []
    body = request.normal
    if request.method == "countTokens":
        body = body.get("generateContentRequest") or body
    turn_rules.check_contents(body.get("contents", []))
    turn_rules.check_system(body.get("systemInstruction"))
    notes = tool_rules.check_tools(body, request.known_model)
    generation_rules.check_config(body, request.known_model)
    picture_rules.check_pictures(body.get("contents", []), request.known_model)
    signature_rules.check_signatures(body.get("contents", []), request.known_model, ledger)
    return notes


def check_embedding(body: Json, model: WireModel) -> None:
    """Refuse texts without text, another model's name inside, and a length of vector the model does not have."""
    requests = body.get("requests") if "requests" in body else [body]
    if not requests:
        raise Refused("empty_contents", "* BatchEmbedContentsRequest.requests: requests must not be empty\n")
    for entry in requests:
        if entry.get("model", f"models/{model.name}") != f"models/{model.name}":
            raise Refused("embedding", "The model of every request must be the model of the batch.")
        if not any(part.get("text") or "inlineData" in part for part in entry.get("content", {}).get("parts", [])):
            raise Refused("empty_contents", "* EmbedContentRequest.content: contents is not specified\n")
        if not 1 <= entry.get("outputDimensionality", model.dimensions) <= model.dimensions:
            raise Refused("embedding", f"output_dimensionality must be between 1 and {model.dimensions}")
