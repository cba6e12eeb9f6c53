"""The thread's pictures are offered in the sizes they are shown in, and fetched when they come near."""

from __future__ import annotations

import re

from tests.support.cases import each_case
from tests.support.page_values import picture
from webui.cards import View
from webui.thumbnails import thread_picture
from webui.words import load_words

VIEW = View(load_words("en"), "c1")


def offered(width: int, height: int, *, is_in_sheet: bool = False) -> dict[str, str]:
    """Return what is offered: the address of each width, as `672w`."""
    one = picture("#1")
    sized = one.model_copy(update={"image": one.image.model_copy(update={"width": width, "height": height})})
    html = thread_picture(VIEW, sized, "a <fox>", is_in_sheet=is_in_sheet)
    assert 'alt="a &lt;fox&gt;"' in html
    assert 'loading="lazy"' in html
    [sources] = re.findall(r'srcset="([^"]+)"', html)
    return {width: address for address, width in (source.split(" ") for source in sources.split(", "))}


@each_case(
    ("width", "height", "widths"),
    [
        (2048, 1024, ["336w", "672w", "1344w"]),
        (1024, 2048, ["168w", "336w", "672w"]),
        (1000, 1000, ["336w", "672w", "1000w"]),
        (600, 300, ["336w", "600w"]),
        (64, 36, ["64w"]),
        (1, 4000, ["1w"]),
    ],
)
def test_widths_are_those_of_the_files_and_none_is_larger_than_the_picture(
    width: int, height: int, widths: list[str]
) -> None:
    assert list(dict.fromkeys(offered(width, height))) == widths


def test_a_frame_of_a_sheet_asks_for_less_than_a_picture_alone() -> None:
    one = picture("#1")
    alone, among = (thread_picture(VIEW, one, "", is_in_sheet=sheet) for sheet in (False, True))
    assert "672px" in alone
    assert "330px" in among
