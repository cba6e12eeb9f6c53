"""What is sent ahead waits for its owner, for a while, in a room of limited size."""

from __future__ import annotations

import pytest

from tests.support.api import data_url, png
from tests.support.tables import table
from webui.api.calls import KEPT_S, MOST_BYTES_OF_ONE_OWNER, Uploads, data_of
from webui.api.problems import RefusalCode, Refused


def test_an_upload_waits_for_its_owner_alone_for_an_hour_and_where_there_is_no_room_the_oldest_goes_first() -> None:
    now_s, third = 0.0, b"x" * (MOST_BYTES_OF_ONE_OWNER // 3)
    shelf = Uploads(clock=lambda: now_s)
    his, until_s = shelf.put("ben", "a.png", b"b")
    hers = [shelf.put("anna", "", third)[0] for _ in range(4)]

    def refusal(owner: str, upload: str) -> RefusalCode | None:
        try:
            shelf.read(owner, upload)
        except Refused as caught:
            return caught.code
        return None

    gone = RefusalCode.UPLOAD_GONE
    assert [refusal("anna", one) for one in (*hers, his)] == [gone, None, None, None, gone]
    assert (shelf.read("ben", his), shelf.read("anna", hers[1])[1] == third) == (("a.png", b"b"), True)
    assert until_s == KEPT_S
    now_s = KEPT_S
    assert refusal("ben", his) is gone


def test_a_data_url_is_the_bytes_in_it_and_an_address_that_would_have_to_be_fetched_is_refused() -> None:
    assert data_of(data_url(png())) == png()
    assert data_of("DATA:IMAGE/SVG+XML;charset=utf-8;base64,PHN2Zy8+") == b"<svg/>"
    for url in table("api_requests")["no_data_urls"]:
        with pytest.raises(Refused) as caught:
            data_of(url)
        assert caught.value.code is RefusalCode.DATA_URLS_ONLY, url
