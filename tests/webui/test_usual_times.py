"""How long a picture usually takes: from the person's own, else from the catalogue, else nothing is said."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from agent.errors import ErrorCode, StorageFailure
from agent.events import PaintingStarted
from agent.pictures import Receipt
from agent.providers.catalogue import load_catalogue
from agent.storage.gallery_values import GalleryItem, GalleryPage, GalleryQuery
from tests.support.galleries import receipt
from tests.support.page_values import picture
from webui.usual_times import Usual, usual_of, usual_time

CATALOGUE = load_catalogue()


def took(seconds: float, width: int = 1376, height: int = 768, model: str = "Flash") -> Receipt:
    update = {"seconds": seconds, "width": width, "height": height}
    return receipt("a fox", model=model).model_copy(update=update)


class Shelf:
    """The owner's pictures, the newest first; anybody else's are not there."""

    def __init__(self, *receipts: Receipt, is_broken: bool = False) -> None:
        self._receipts: Sequence[Receipt] = receipts
        self._is_broken = is_broken

    async def page(self, owner: str, query: GalleryQuery) -> GalleryPage:
        if self._is_broken:
            raise StorageFailure(ErrorCode.STORAGE_BROKEN)
        of_model = [one for one in self._receipts if one.model_label == query.model and owner == "local"]
        items = (
            GalleryItem(
                id=number,
                conversation_id="c1",
                conversation_title="",
                picture=picture(f"#{number}").model_copy(update={"receipt": one}),
            )
            for number, one in enumerate(of_model[: query.limit], 1)
        )
        return GalleryPage(items=tuple(items))


def asked(model: str = "Flash", width: int = 1376, height: int = 768) -> PaintingStarted:
    return PaintingStarted(count=1, width=width, height=height, model_label=model)


async def usual(
    shelf: Shelf, painting: PaintingStarted, provider: str = "gemini", elapsed_s: float = 2
) -> Usual | None:
    return await usual_time(shelf, CATALOGUE, "local", provider, painting, elapsed_s)


async def test_ones_own_pictures_of_that_model_and_size_tell_and_what_went_before_is_added() -> None:
    shelf = Shelf(took(20), took(90, 5504, 3072), took(3, model="Pro"), took(10), took(15))
    assert await usual(shelf, asked()) == Usual(17, is_own=True)
    assert await usual(shelf, asked(width=5504, height=3072)) == Usual(92, is_own=True)


async def test_pictures_of_the_same_turn_tell_nothing_of_those_that_are_still_painted() -> None:
    found = await usual_time(Shelf(took(0.2)), CATALOGUE, "local", "gemini", asked(), 2, picture("#1").turn_id)
    assert found == await usual(Shelf(), asked())
    assert found is not None


async def test_of_two_models_side_by_side_the_slower_one_counts() -> None:
    shelf = Shelf(took(20), took(31, model="Pro"))
    assert await usual(shelf, asked("Flash + Pro")) == Usual(33, is_own=True)


@pytest.mark.parametrize("shelf", [Shelf(), Shelf(took(90, 5504, 3072)), Shelf(took(0)), Shelf(is_broken=True)])
async def test_before_there_is_one_the_catalogue_tells_of_a_single_picture(shelf: Shelf) -> None:
    published = next(one for one in CATALOGUE.entries if one.provider == "gemini" and one.role == "image_flash")
    assert await usual(shelf, asked()) == Usual(published.typical_seconds, is_own=False, begun_s=2)


async def test_nothing_is_said_where_nothing_tells_or_nobody_would_wait() -> None:
    assert await usual(Shelf(), asked("Sketch"), provider="sketch") is None
    assert await usual(Shelf(took(0.4, model="Sketch")), asked("Sketch"), "sketch", elapsed_s=0.2) is None


def test_the_newest_ones_count_and_one_that_took_long_does_not_tip_the_scales() -> None:
    assert usual_of([took(10), took(11), took(300)], 1376 * 768) == 11
    assert usual_of([took(10)] * 12 + [took(99)] * 40, 1376 * 768) == 10
    assert usual_of([], 1376 * 768) is None
