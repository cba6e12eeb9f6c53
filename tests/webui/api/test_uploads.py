"""What is sent ahead waits for its owner, for a while, in a room of limited size."""

from __future__ import annotations

import pytest

from tests.support.api import data_url, png
from tests.support.tables import table
from webui.api.problems import RefusalCode, Refused
from webui.api.uploads import KEPT_S, MOST_BYTES_OF_ONE_OWNER, UploadShelf, data_of


def test_an_upload_is_there_for_an_hour_and_for_its_owner_alone() -> None:
    now_s = 0.0
    shelf = UploadShelf(clock=lambda: now_s)
    upload_id, until_s = shelf.put("anna", "a.png", b"a")
    assert until_s == KEPT_S
    assert shelf.read("anna", upload_id) == ("a.png", b"a")
    with pytest.raises(Refused) as caught:
        shelf.get("ben", upload_id)
    assert caught.value.code is RefusalCode.UPLOAD_GONE
    now_s = KEPT_S
    with pytest.raises(Refused):
        shelf.get("anna", upload_id)


def test_when_there_is_no_room_the_owners_oldest_goes_first() -> None:
    shelf, third = UploadShelf(), b"x" * (MOST_BYTES_OF_ONE_OWNER // 3)
    his = shelf.put("ben", "", b"b")[0]
    hers = [shelf.put("anna", "", third)[0] for _ in range(4)]
    with pytest.raises(Refused):
        shelf.get("anna", hers[0])
    assert [shelf.get("anna", one).data == third for one in hers[1:]] == [True] * 3
    assert shelf.get("ben", his).data == b"b"


def test_a_data_url_is_the_bytes_in_it_and_an_address_that_would_have_to_be_fetched_is_refused() -> None:
    assert data_of(data_url(png())) == png()
    assert data_of("DATA:IMAGE/SVG+XML;charset=utf-8;base64,PHN2Zy8+") == b"<svg/>"
    for url in table("api_requests")["no_data_urls"]:
        with pytest.raises(Refused) as caught:
            data_of(url)
        assert caught.value.code is RefusalCode.DATA_URLS_ONLY, url
