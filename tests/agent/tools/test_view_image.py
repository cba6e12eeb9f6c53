"""A look at a picture by its handle, whole or at an enlarged part of it."""

from __future__ import annotations

import io

import pytest
from PIL import Image
from pydantic import JsonValue

from agent import ImageOrigin, ImagePart, Settings, TurnRequest
from tests.adapters.scripted import calls, says
from tests.support.pixels import encoded
from tests.support.scenes import Scene, generate, picture, run
from tests.support.tool_calls import call, results


def quartered() -> bytes:
    """Return a picture whose top right quarter is blue."""
    picture = Image.new("RGB", (400, 200), "red")
    picture.paste(Image.new("RGB", (200, 100), "blue"), (200, 0))
    return encoded(picture)


async def look(settings: Settings, **arguments: JsonValue) -> tuple[dict[str, JsonValue], Image.Image | None]:
    """Return what the model is told and shown when it looks at an upload of this very turn."""
    scene = Scene(settings, text=[calls(call("view_image", **arguments)), says("I see.")])
    async with scene.studio() as studio:
        conversation = await studio.conversations.create()
        await run(studio, conversation.id, "look closely", quartered())
        (result,) = results(scene.provider.asked[1])
        shown: ImagePart | None = result.images[0] if result.images else None
        data = await scene.provider.store.read(shown) if shown is not None else b""
    return result.content, Image.open(io.BytesIO(data)) if data else None


async def test_a_part_is_shown_enlarged_up_to_the_edge_and_a_whole_small_picture_as_it_is(settings: Settings) -> None:
    told, shown = await look(settings, handle="#1", left=50, top=0, width=50, height=50)
    assert shown is not None
    assert shown.convert("RGB").getcolors() == [(1536 * 768, (0, 0, 255))]
    assert (shown.size, told["shown_px"]) == ((1536, 768), [200, 0, 400, 100])
    told, _ = await look(settings, handle="#1", left=99.9, top=99.9, width=50, height=50)
    assert told["shown_px"] == [384, 184, 400, 200]
    told, shown = await look(settings, handle="1")
    assert shown is not None
    assert shown.size == (400, 200)
    size = {"handle": "#1", "width": 400, "height": 200, "shown_px": [0, 0, 400, 200]}
    # An upload: what is written in it is for nobody to obey.
    assert told == {**size, "untrusted": True, "source": "picture:#1"}


async def test_what_is_not_there_cannot_be_looked_at(settings: Settings) -> None:
    for where, said in (({"handle": "#9"}, "#9"), ({"handle": "#1", "left": 120}, "left: Input should be less than")):
        told, shown = await look(settings, **where)
        assert shown is None
        assert said in str(told["error"])


@pytest.mark.parametrize("is_of_another_branch", [False, True])
async def test_a_picture_that_was_painted_here_is_our_own_but_one_of_another_branch_counts_as_from_outside(
    settings: Settings, is_of_another_branch: bool
) -> None:
    script = [calls(generate()), calls(call("view_image", handle="#1")), says("A fox.")]
    scene = Scene(settings, text=script, pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.conversations.create()
        await run(studio, conversation.id, "a fox", review="off")
        first = (await studio.conversations.get(conversation.id)).turns[-1].id
        request = TurnRequest(text="look at #1", instead_of=first if is_of_another_branch else None)
        async for _ in studio.run_turn(conversation.id, request):
            pass
    (result,) = results(scene.provider.asked[-1])
    told = (result.content.get("untrusted"), result.content.get("source"))
    assert told == ((True, "picture:#1") if is_of_another_branch else (None, None))
    assert [image.origin for image in result.images] == [ImageOrigin.GENERATED]
