"""Rules of the pictures sent: their type, that they can be read, and how many a model looks at."""

from __future__ import annotations

from collections.abc import Iterator

from tests.wire_server.models import MAX_PICTURES, Kind, WireModel
from tests.wire_server.pictures import look_at
from tests.wire_server.refusals import Json, Refused
from tests.wire_server.signatures import decoded

_PICTURES = frozenset({"image/png", "image/jpeg", "image/webp"})
# Taken by the API, not opened here.
_UNOPENED = frozenset(
    {"image/heic", "image/heif", "application/pdf", "text/plain", "video/mp4", "audio/wav", "audio/mp3"}
)
_IN_RESULTS = _PICTURES | {"application/pdf", "text/plain"}
_UNREADABLE = (
    "Unable to process input image. Please retry or report in "
    "https://developers.generativeai.google/guide/troubleshooting"
)


def check_pictures(contents: list[Json], model: WireModel) -> None:
    """Refuse data that is not what it says, and more pictures than an image model takes."""
    count = 0
    for blob, is_in_result in _blobs(contents):
        mime_type = blob.get("mimeType", "")
        taken = _IN_RESULTS if is_in_result else _PICTURES | _UNOPENED
        if mime_type not in taken:
            raise Refused("mime_type", f"Unsupported MIME type: {mime_type}")
        if mime_type in _PICTURES:
            count += 1
            _check_picture(blob)
        elif decoded(blob.get("data", "")) is None:
            raise Refused("base64", "Invalid value at 'inline_data.data' (TYPE_BYTES), Base64 decoding failed")
    if model.kind is Kind.IMAGE and count > MAX_PICTURES:
        raise Refused("too_many_pictures", f"This model takes at most {MAX_PICTURES} images, {count} were sent")


def _check_picture(blob: Json) -> None:
    data = blob.get("data", "")
    if decoded(data) is None:
        raise Refused("base64", "Invalid value at 'inline_data.data' (TYPE_BYTES), Base64 decoding failed")
    facts = look_at(data)
    if facts is None:
        raise Refused("unreadable_picture", _UNREADABLE)
    if facts.mime_type != blob["mimeType"]:
        raise Refused("mime_type", "Provided image is not valid")


def _blobs(contents: list[Json]) -> Iterator[tuple[Json, bool]]:
    for content in contents:
        for part in content["parts"]:
            if "inlineData" in part:
                yield part["inlineData"], False
            for answer in part.get("functionResponse", {}).get("parts", []):
                if "inlineData" in answer:
                    yield answer["inlineData"], True
