"""The preview of sliders: the same pixels that an adjustment gives, small, for the owner, a few at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message

from agent.adjusting import Adjustment
from agent.adjusting.applying import apply_adjustment
from agent.studio import StoredPicture
from tests.support.cases import each_case
from tests.support.kept_pictures import KeptPictures, decoded, kept_pictures, png, visitor
from webui.picture_work import PER_VISITOR, Workbench
from webui.previews import EDGE_PX, SETTINGS, SmallCopies, adjusted, preview_routes, read_query
from webui.sessions import COOKIE, Sessions


def photo(width: int = 300, height: int = 200) -> Image.Image:
    across = Image.linear_gradient("L").rotate(90).resize((width, height))
    down = Image.linear_gradient("L").resize((width, height))
    return Image.merge("RGB", (across, down, Image.new("L", (width, height), 90)))


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[KeptPictures]:
    async with kept_pictures(tmp_path) as records:
        yield records


@pytest.mark.parametrize("name", SETTINGS)
def test_every_slider_can_be_asked_for(name: str) -> None:
    assert read_query(QueryParams({name: "-35"})) == Adjustment.model_validate({name: -35})


@each_case(
    "query",
    [
        "brightness=101",
        "brightness=-101",
        "brightness=1.5",
        "brightness=",
        "brightness=+5",
        "brightness=%205",
        "brightness=٥",
        "brightness=5&brightness=6",
        "size=5",
        "rotate=90",
        "crop=1:1",
    ],
)
def test_anything_but_whole_amounts_in_bounds_is_refused(query: str) -> None:
    assert read_query(QueryParams(query)) is None


def test_no_amount_at_all_is_the_picture_as_it_is() -> None:
    assert read_query(QueryParams("")) == Adjustment()


async def test_the_preview_shows_what_applying_gives(kept: KeptPictures) -> None:
    ours = Sessions(b"s" * 32)
    where = await kept.keep(png(photo()))
    async with visitor(preview_routes(lambda: kept, ours), ours, ours.new_cookie()) as browser:
        answer = await browser.get(f"/aivista/preview/{where}/1?brightness=30&contrast=-20&saturation=40&warmth=25")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "image/jpeg"
    assert answer.headers["cache-control"] == "private, max-age=86400, immutable"
    wanted = Adjustment(brightness=30, contrast=-20, saturation=40, warmth=25)
    exact = decoded(apply_adjustment(png(photo()), wanted).data)
    shown = decoded(answer.content)
    assert shown.size == exact.size == (300, 200)
    far = np.abs(np.asarray(shown).astype(int) - np.asarray(exact).astype(int))
    assert far.mean() < 2
    unchanged = np.abs(np.asarray(photo()).astype(int) - np.asarray(exact).astype(int))
    assert unchanged.mean() > 10


async def test_a_large_picture_is_decoded_once_for_many_previews(kept: KeptPictures) -> None:
    class Counting(KeptPictures):
        async def picture(self, conversation_id: str, handle: str, owner: str = "local") -> StoredPicture:
            reads.append(handle)
            return await super().picture(conversation_id, handle, owner)

    reads: list[str] = []
    ours = Sessions(b"s" * 32)
    where = await kept.keep(png(photo(2000, 500)))
    source = Counting(kept.store, kept.images)
    async with visitor(preview_routes(lambda: source, ours), ours, ours.new_cookie()) as browser:
        sizes = {
            decoded((await browser.get(f"/aivista/preview/{where}/1?warmth={amount}")).content).size
            for amount in (10, 20, 30)
        }
    assert sizes == {(EDGE_PX, EDGE_PX // 4)}
    assert reads == ["#1"]


async def test_nobody_else_gets_a_preview_not_even_of_a_copy_that_is_kept(kept: KeptPictures) -> None:
    ours = Sessions(b"s" * 32, is_shared=True)
    one, two = ours.new_cookie(), ours.new_cookie()
    where = await kept.keep(png(photo()), owner=ours.owner(ours.token_of(one)))
    routes = preview_routes(lambda: kept, ours)
    for cookie, status in ((one, 200), (two, 404), (None, 403), ("forged.0123", 403)):
        async with visitor(routes, ours, cookie) as browser:
            answer = await browser.get(f"/aivista/preview/{where}/1?warmth=5")
        assert answer.status_code == status
        assert answer.headers["content-type"].startswith("image/" if status == 200 else "text/")


@pytest.mark.parametrize(("path", "status"), [("1?warmth=500", 400), ("9?warmth=5", 404), ("2?warmth=5", 422)])
async def test_what_cannot_be_previewed_is_refused(kept: KeptPictures, path: str, status: int) -> None:
    ours = Sessions(b"s" * 32)
    where = await kept.keep(png(photo()), b"no picture at all")
    async with visitor(preview_routes(lambda: kept, ours), ours, ours.new_cookie()) as browser:
        assert (await browser.get(f"/aivista/preview/{where}/{path}")).status_code == status


async def test_a_visitor_has_a_few_at_work_and_others_are_not_held_up(kept: KeptPictures) -> None:
    class Held(KeptPictures):
        async def picture(self, conversation_id: str, handle: str, owner: str = "local") -> StoredPicture:
            await gate.wait()
            return await super().picture(conversation_id, handle, owner)

    gate = asyncio.Event()
    ours = Sessions(b"s" * 32)
    where = await kept.keep(png(photo()))
    routes = preview_routes(lambda: Held(kept.store, kept.images), ours)
    async with (
        visitor(routes, ours, ours.new_cookie()) as busy,
        visitor(routes, ours, ours.new_cookie()) as patient,
    ):
        address = f"/aivista/preview/{where}/1?warmth="
        asked = {asyncio.create_task(busy.get(f"{address}{amount}")) for amount in range(PER_VISITOR + 1)}
        done, working = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        other = asyncio.create_task(patient.get(f"{address}50"))
        assert [one.result().status_code for one in done] == [429]
        gate.set()
        assert [(await one).status_code for one in working] == [200] * PER_VISITOR
        assert (await other).status_code == 200
        assert (await busy.get(f"{address}99")).status_code == 200


async def test_what_a_browser_gave_up_before_its_turn_is_not_worked_out() -> None:
    async def work(owner: str) -> Response:
        worked.append(owner)
        return Response(b"")

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    worked: list[str] = []
    ours = Sessions(b"s" * 32)
    cookie = f"{COOKIE}={ours.new_cookie()}".encode()
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": [(b"cookie", cookie)]}
    answer = await Workbench(places=1).answer(Request(scope, receive), ours, work)
    assert answer.status_code == 499
    assert worked == []


def test_a_clear_picture_stays_clear() -> None:
    glass = Image.new("RGBA", (40, 30), (200, 100, 50, 90))
    data, mime_type = adjusted(png(glass), Adjustment(brightness=20))
    assert mime_type == "image/webp"
    alpha = decoded(data).getchannel("A").getextrema()
    assert alpha == (90, 90)


@pytest.mark.parametrize(("mode", "level"), [("L", 60), ("I;16", 60 * 257), ("RGB", (60, 60, 60))])
def test_every_kind_of_opaque_picture_becomes_a_jpeg(mode: str, level: int | tuple[int, int, int]) -> None:
    data, mime_type = adjusted(png(Image.new(mode, (40, 30), level)), Adjustment())
    assert mime_type == "image/jpeg"
    assert decoded(data).convert("L").getpixel((20, 15)) == pytest.approx(60, abs=2)


def test_the_oldest_copies_leave_first_and_one_too_large_is_not_kept() -> None:
    copies = SmallCopies(most_bytes=10)
    copies.keep("a", b"12345")
    copies.keep("b", b"1234")
    assert copies.find("a") == b"12345"
    copies.keep("c", b"123")
    assert copies.find("b") is None
    assert copies.find("a") is not None
    copies.keep("d", b"x" * 11)
    assert copies.find("d") is None
