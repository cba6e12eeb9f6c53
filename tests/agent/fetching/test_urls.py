"""Addresses as they are read, which of them are public, and the letters in which a page is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import ToolArgumentError
from tests.adapters.fetcher import MAX_URL_CHARACTERS, decoded, is_public, normalized, resolve_link, web_url
from tests.support.cases import each_case
from tests.support.tables import table


def test_a_network_that_is_not_public_is_refused_from_its_first_address_to_its_last() -> None:
    told = table("web_addresses")
    networks = told["edges_v4"] | told["edges_v6"]
    open_ones = {name: [is_public(address) for address in addresses] for name, addresses in networks.items()}
    assert {name: found for name, found in open_ones.items() if found != [False, False, True]} == {}


def test_what_leads_to_a_private_place_or_is_no_address_is_refused() -> None:
    addresses = table("web_addresses")["private"]
    assert [address for address in addresses if is_public(address)] == []


def test_what_a_cloud_tells_its_machines_is_out_of_reach() -> None:
    addresses = table("web_addresses")["clouds"]
    assert [cloud for cloud, address in addresses if is_public(address)] == []


def test_an_address_of_the_public_internet_passes() -> None:
    assert all(map(is_public, ("8.8.8.8", "93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8")))


@each_case(("written", "spelled"), table("web_addresses")["spellings"])
def test_an_address_has_one_spelling(written: str, spelled: str) -> None:
    assert normalized(written) == normalized(spelled) == spelled


def test_addresses_that_a_server_can_tell_apart_stay_apart_and_what_may_not_be_asked_for_has_no_spelling() -> None:
    different = ["http://a.org/a", "http://a.org/%61", "http://a.org/A", "http://a.org/a?", "http://a.org/a/"]
    assert len({normalized(url) for url in different}) == len(different)
    assert normalized("ftp://example.org/") == ""


def test_a_link_is_followed_from_where_it_stands_and_checked_as_an_address_is() -> None:
    start = web_url("http://example.org/b/a")
    assert [one for one in table("web_addresses")["followed"] if "b" not in str(resolve_link(start, one))] == []
    for location in table("web_addresses")["not_followed"]:
        with pytest.raises(ToolArgumentError):
            resolve_link(web_url("http://example.org/"), location)


def test_the_length_holds_for_what_is_sent() -> None:
    start = "http://a.org/"
    assert web_url(start + "a" * (MAX_URL_CHARACTERS - len(start)))
    for rest in ("a" * (MAX_URL_CHARACTERS - len(start) + 1), "狐" * 400):
        with pytest.raises(ToolArgumentError, match="more than 2048"):
            web_url(start + rest)


def test_every_port_but_zero_may_be_allowed() -> None:
    assert str(web_url("http://a.org:8443/", ports=None)) == "http://a.org:8443/"
    for port in (0, 65536, 99999):
        with pytest.raises(ToolArgumentError):
            web_url(f"http://a.org:{port}/", ports=None)


@given(st.text(max_size=80))
def test_any_text_is_an_address_in_ascii_or_refused(text: str) -> None:
    for url in (text, f"http://{text}", f"http://a.org/{text}"):
        spelled = normalized(url)
        assert spelled.isascii()
        assert normalized(spelled) == spelled


FOX = "狐狸跳过了那只懒狗。"


@each_case(("charset", "codec", "text"), table("web_addresses")["charsets"])
def test_what_the_server_says_is_how_it_is_read(charset: str, codec: str, text: str) -> None:
    assert decoded(text.encode(codec), charset, is_markup=False) == text


NAMED = [
    '<meta charset="gbk">',
    "<meta http-equiv=Content-Type content='text/html; charset=gb2312'>",
    "<?xml version='1.0' encoding='GBK'?>",
]


def test_a_byte_order_mark_knows_best_then_the_page_itself_and_without_a_word_it_is_tried() -> None:
    for mark in ("utf-8-sig", "utf-16"):
        assert decoded(FOX.encode(mark), "iso-8859-1", is_markup=False) == FOX
    for head in NAMED:
        page = head + FOX
        for data, charset in (
            (page.encode("gbk"), ""),
            (page.encode("gbk"), "no-such-thing"),
            (page.encode(), "utf-8"),
        ):
            assert decoded(data, charset, is_markup=True) == page
    page = f"<meta charset=utf-16>{FOX}"
    assert decoded(page.encode(), "", is_markup=True) == page, "what is read as ASCII is not in UTF-16"
    untold = ((FOX, "utf-8"), (FOX, "gb2312"), ("naïve café, “schön”", "cp1252"), ("plain", "ascii"))
    assert [text for text, codec in untold if decoded(text.encode(codec), "", is_markup=False) != text] == []


def test_a_codec_that_no_page_is_written_in_is_not_used_and_what_cannot_be_read_is_marked() -> None:
    for charset in ("utf-7", "punycode", "unicode_escape", "idna", "rot13", "zlib", "base64"):
        assert decoded(b"+ADw-a\\u0041", charset, is_markup=True) == "+ADw-a\\u0041"
    assert decoded(b"a\xff\xfeb", "utf-8", is_markup=False) == "a\ufffd\ufffdb"
    for codec in ("utf-8", "gb2312"):
        assert decoded(FOX.encode(codec)[:-1], "", is_markup=False) == FOX[:-1]
