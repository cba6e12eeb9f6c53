"""Pictures of every kind and recipes of every shape for the tests of provenance."""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import strategies as st
from PIL import Image, ImageCms, ImageFilter
from PIL.Image import Image as Picture

from agent import ChangeKind, SearchPolicy
from tests.adapters.recipes import (
    ParentDigest,
    Recipe,
    RecipeChange,
    RecipeFact,
    RecipeMargins,
    RecipeSettings,
    RecipeSource,
    RecipeStyle,
    SourceType,
)
from tests.support.pixels import encoded, png_chunk, png_with_header

PROMPT = "Photorealistic quokka beside a kiosk.\nSoft light, 35 mm."
# Made once: a profile says when.
SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def recipe(**changes: object) -> Recipe:
    """Return a full recipe with these fields changed."""
    told: dict[str, object] = {
        "words": "a quokka & its <friend> at the kiosk, 一只短尾矮袋鼠 🦘",
        "prompt": PROMPT,
        "model": "gemini-pro-image",
        "model_label": "Gemini Pro Image",
        "asked_aspect_ratio": "16:9",
        "asked_resolution": "2K",
        "width": 48,
        "height": 32,
        "settings": RecipeSettings(image_model="pro", aspect_ratio="16:9", number_of_images=2, allow_search=True),
        "parents": (ParentDigest(handle="#1", digest="a" * 64, role="subject"), ParentDigest(handle="#2")),
        "styles": (RecipeStyle(name="Ukiyo-e", similarity=0.91),),
        "facts": (RecipeFact(item="Quokkas live on Rottnest", source="https://example.org/quokka"),),
        "sources": (RecipeSource(title="Rottnest", url="https://example.org/rottnest?a=1&b=2"),),
        "price_usd": 0.134,
        "seconds": 17.25,
        "created_at": datetime(2026, 11, 20, 9, 30, 5, tzinfo=UTC),
        "file_digest": "c" * 64,
        "handle": "#3b",
        "conversation_title": "Kiosk",
        "source_type": SourceType.TRAINED,
        "made_with_ai": True,
    }
    return Recipe.model_validate(told | changes)


def recipes() -> st.SearchStrategy[Recipe]:
    """Return a strategy for recipes with any text in them, also such that no file could hold as it is."""
    text = st.one_of(
        st.text(max_size=60), st.text(st.characters(), max_size=20), st.just("]]>&lt;\r\n\t\0\ud800\uffff")
    )
    amount = st.floats(0, 1e6, allow_nan=False)
    zones = st.integers(-14, 14).map(lambda hours: timezone(timedelta(hours=hours)))
    span = (datetime(1900, 1, 1), datetime(2200, 1, 1))
    told: dict[str, st.SearchStrategy[object]] = {
        **dict.fromkeys(("words", "prompt", "model", "model_label", "handle", "conversation_title"), text),
        **{"price_usd": amount, "seconds": amount, "width": st.integers(0, 1_000_000)},
        "created_at": st.datetimes(*span) | st.datetimes(*span, timezones=zones),
        "parents": st.lists(st.builds(ParentDigest, handle=text, role=text), max_size=3),
        "styles": st.lists(st.builds(RecipeStyle, name=text, similarity=amount), max_size=2),
        "facts": st.lists(st.builds(RecipeFact, item=text, source=text), max_size=2),
        "sources": st.lists(st.builds(RecipeSource, title=text, url=text.map("https://a.example/".__add__))),
        "changes": st.lists(st.builds(RecipeChange, kind=st.sampled_from(ChangeKind), ratio=text), max_size=2),
        "edit": st.sampled_from([None, "mask", "expansion", "kept_part", "adjustment"]),
        "margins": st.none() | st.builds(RecipeMargins, left=st.integers(0, 999), bottom=st.integers(0, 999)),
        "settings": st.none()
        | st.builds(RecipeSettings, aspect_ratio=text, search_policy=st.sampled_from(SearchPolicy)),
        "source_type": st.none() | st.sampled_from(SourceType),
    }
    return st.fixed_dictionaries({}, optional=told).map(lambda changes: recipe(**changes))


def scene(mode: str = "RGB", size: tuple[int, int] = (48, 32)) -> Picture:
    """Return a picture with something in every channel, smooth enough for a JPEG."""
    channels = len(Image.new(mode, (1, 1)).getbands())
    noise = random.Random(7).randbytes(size[0] * size[1] * channels)
    picture = Image.frombytes({1: "L", 2: "LA", 3: "RGB", 4: mode if channels == 4 else "RGBA"}[channels], size, noise)
    return picture if mode in ("LA",) else picture.filter(ImageFilter.GaussianBlur(1))


def turned(orientation: int = 6) -> bytes:
    """Return EXIF that says nothing but which way up the picture is."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif.tobytes()


def _frames() -> dict[str, object]:
    frames = [Image.new("RGBA", (48, 32), colour) for colour in ("red", (0, 255, 0, 128), "blue")]
    return {"save_all": True, "append_images": frames, "duration": 40, "loop": 2}


def every_frame(data: bytes) -> list[tuple[object, ...]]:
    """Return mode, size, pixels and palette of every frame."""
    found: list[tuple[object, ...]] = []
    with Image.open(io.BytesIO(data)) as picture:
        for number in range(getattr(picture, "n_frames", 1)):
            picture.seek(number)
            picture.load()
            shown = (picture.getpalette("RGBA"), picture.info.get("transparency"), picture.info.get("icc_profile"))
            found.append((picture.mode, picture.size, picture.tobytes(), shown))
    return found


def with_chunks(data: bytes, *chunks: bytes) -> bytes:
    """Return the PNG with these chunks after its first."""
    return data[:33] + b"".join(chunks) + data[33:]


def png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield kind and body of every chunk of a PNG, each checked against its sum."""
    place = 8
    while place < len(data):
        length = int.from_bytes(data[place : place + 4], "big")
        kind, body = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        assert png_chunk(kind, body) == data[place : place + 12 + length]
        yield kind, body
        place += 12 + length


def jpeg_segment(marker: int, body: bytes) -> bytes:
    """Return a segment of a JPEG."""
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def webp_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield kind and body of every chunk of a WebP whose stated length is right."""
    assert data[:4] + data[8:12] == b"RIFFWEBP"
    assert int.from_bytes(data[4:8], "little") == len(data) - 8
    place = 12
    while place < len(data):
        length = int.from_bytes(data[place + 4 : place + 8], "little")
        yield data[place : place + 4], data[place + 8 : place + 8 + length]
        place += 8 + length + length % 2
    assert place == len(data)


def webp_of(*chunks: tuple[bytes, bytes]) -> bytes:
    """Return a WebP of these chunks."""
    body = b"WEBP" + b"".join(
        kind + struct.pack("<I", len(body)) + body + bytes(len(body) % 2) for kind, body in chunks
    )
    return b"RIFF" + struct.pack("<I", len(body)) + body


PNGS = {
    "png": encoded(scene(), "PNG"),
    "grey png": encoded(scene("L"), "PNG"),
    "png with alpha": encoded(scene("RGBA"), "PNG"),
    "grey png with alpha": encoded(scene("LA"), "PNG"),
    "deep grey png": encoded(Image.frombytes("I;16", (48, 32), random.Random(3).randbytes(48 * 32 * 2)), "PNG"),
    "deep colour png": png_with_header(
        48, 32, 16, 2, b"".join(b"\0" + random.Random(row).randbytes(48 * 6) for row in range(32))
    ),
    "palette png": encoded(scene().convert("P"), "PNG"),
    "transparent palette png": encoded(scene("RGBA").quantize(16), "PNG", transparency=3),
    "png with profile": encoded(scene(), "PNG", icc_profile=SRGB, dpi=(72, 72)),
    "turned png": encoded(scene(), "PNG", exif=turned()),
    "animated png": encoded(scene("RGBA"), "PNG", **_frames()),
}
JPEGS = {
    "jpeg": encoded(scene(), "JPEG"),
    "grey jpeg": encoded(scene("L"), "JPEG"),
    "progressive jpeg": encoded(scene(), "JPEG", progressive=True, quality=95, subsampling=0),
    "jpeg with restarts": encoded(scene(), "JPEG", restart_marker_rows=1),
    "turned jpeg": encoded(scene(), "JPEG", exif=turned()),
    "jpeg with profile": encoded(scene(), "JPEG", icc_profile=SRGB, progressive=True),
    "cmyk jpeg": encoded(scene("CMYK"), "JPEG"),
}
WEBPS = {
    "lossy webp": encoded(scene(), "WEBP", quality=70),
    "lossless webp": encoded(scene(), "WEBP", lossless=True),
    "lossy webp with alpha": encoded(scene("RGBA"), "WEBP", quality=70),
    "lossless webp with alpha": encoded(scene("RGBA"), "WEBP", lossless=True),
    "webp with profile": encoded(scene(), "WEBP", icc_profile=SRGB),
    "turned webp": encoded(scene(), "WEBP", exif=turned()),
    "odd webp": encoded(scene(size=(31, 17)), "WEBP", lossless=True),
    "animated webp": encoded(scene("RGBA"), "WEBP", **_frames()),
}
FILES = {
    **{name: ("image/png", data) for name, data in PNGS.items()},
    **{name: ("image/jpeg", data) for name, data in JPEGS.items()},
    **{name: ("image/webp", data) for name, data in WEBPS.items()},
}
