"""`python -m tests.golden.record VERSION` writes what this version keeps: a home, two archives, pictures with a recipe.

To be run once for a version of the database, before the next one changes it: later versions must read all of it.
"""

from __future__ import annotations

import asyncio
import io
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from agent import Decision, Mask, Settings, Studio, TurnRequest, TurnSettings
from tests.adapters.records import GalleryQuery
from tests.golden.test_turns import paint, review, sent_back
from tests.support.gemini import on_gemini
from tests.support.pixels import encoded
from tests.wire_server import Blocked, Call, GeminiServer, PictureAnswer, Search, Text

_FOLDER = Path(__file__).parent
_SMALL = (64, 36)


def main() -> None:
    """Write the files of this version."""
    version = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_record(Path(folder) / "home", version))


async def _record(home: Path, version: str) -> None:
    with GeminiServer() as server:
        async with Studio(on_gemini(Settings(home=home), server.url)) as studio:
            fox, cup = await _conversations(studio, server)
            await _keep(await studio.archive.export_conversation(fox, "local"), f"archives/conversation-{version}.zip")
            await _keep(await studio.archive.export_library("local"), f"archives/library-{version}.zip")
            for handle, kind in (("#1", "jpg"), ("#1b", "png"), ("#2", "webp")):
                file = await studio.recipes.with_recipe(fox, handle, "local")
                _write(f"pictures/recipe-{version}.{kind}", file.data)
            await studio.conversations.delete(cup)
        assert server.violations == []
    _write(f"homes/{version}.zip", _packed(home))


async def _conversations(studio: Studio, server: GeminiServer) -> tuple[str, str]:
    """Hold two conversations with one of everything in them; return their ids."""
    fox = (await studio.conversations.create()).id

    async def say(text: str, conversation: str = fox, **more: Any) -> str:
        settings = TurnSettings(**more.pop("settings", {"review": "off"}))
        turn_id = ""
        async for event in studio.run_turn(conversation, TurnRequest(text=text, settings=settings, **more)):
            turn_id = getattr(event, "turn_id", turn_id)
        return turn_id

    server.on_text(Text("A fox is a small dog that thinks like a cat."))
    await say("what is a fox?")
    server.on_text(
        paint("A red fox in the snow, style of ukiyo-e", style="ukiyo-e"), review(0.4, "The tail is cut off.")
    )
    server.on_text(review(0.9, "As asked."))
    server.on_image(PictureAnswer(*_SMALL), PictureAnswer(*_SMALL, mime="image/png"))
    await say("draw a red fox in the snow", settings={"review": "always"})
    # By rules, without a model.
    await say("warmer", editing="#1")
    server.on_text(paint("A red scarf", handles=["#3"]))
    server.on_image(sent_back)
    # Something to align by that packs well.
    tiles = np.random.default_rng(1).integers(0, 2, (24, 24, 1), np.uint8) * np.array([90, 60, 30], np.uint8) + 80
    garden, mask = Image.fromarray(np.kron(tiles, np.ones((16, 16, 1), np.uint8))), Image.new("L", (384, 384), 0)
    mask.paste(255, (100, 100, 200, 200))
    await say(
        "a red scarf here", images=[("garden.webp", _saved(garden, "WEBP"))], mask=Mask(_saved(mask, "PNG"), "upload:1")
    )
    fact = {"item": "The tower is 330 m high.", "source": "towers.example"}
    server.on_text(
        Call("web_search", {"query": "How high is the tower?"}),
        Search({"facts": [fact], "prompt_draft": ""}, sources=[("towers.example", "https://redirect.example/1")]),
        Text("It is 330 m high."),
    )
    asked = await say("how high is the tower?", settings={"allow_search": True})
    server.on_text(Call("write_file", {"name": "note.md", "content": "# Foxes\n"}), Text("Noted."))
    await say("keep a note", instead_of=asked)
    server.on_text(paint("A fox that nobody may see"))
    server.on_image(Blocked("PROHIBITED_CONTENT"))
    await say("another fox")
    server.on_text(paint("Two foxes"))
    await say("two foxes", settings={"confirm": True})
    await studio.conversations.rename(fox, "The fox")
    await studio.conversations.pin(fox, True)
    first = (await studio.gallery.page("local", GalleryQuery())).items[-1].id
    await studio.gallery.star("local", [first], True)
    await studio.gallery.tag("local", [first], "foxes")
    style = {"name": {"en": "My own ink"}, "phrases": ["black ink on wet paper"], "aliases": {"en": ["own ink"]}}
    await studio.styles.add(style)

    cup = (await studio.conversations.create()).id
    server.on_text(paint("一只红色的杯子"))
    planned = await say("画一只红色的杯子", cup, settings={"confirm": True})
    server.on_image(PictureAnswer(*_SMALL))
    async for _ in studio.decide(cup, planned, Decision(run=True)):
        pass
    return fox, cup


async def _keep(exported: Any, name: str) -> None:
    _write(name, exported.path.read_bytes())
    exported.remove()


def _write(name: str, data: bytes) -> None:
    path = _FOLDER / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    print(f"{name}: {len(data)} bytes")


def _saved(image: Image.Image, kind: str) -> bytes:
    return encoded(image, kind)


def _packed(home: Path) -> bytes:
    """Return the home as a zip, without what is made anew when it is missing."""
    for made_anew in ("cache", "styles.lance", "gallery.lance"):
        shutil.rmtree(home / made_anew, ignore_errors=True)
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(home.rglob("*")):
            if path.is_file():
                packed.write(path, path.relative_to(home).as_posix())
    return sink.getvalue()


if __name__ == "__main__":
    main()
