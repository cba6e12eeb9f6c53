from __future__ import annotations

import pytest

from tests.adapters.fetcher import decoded
from tests.support.cases import each_case
from tests.support.tables import table

FOX = "狐狸跳过了那只懒狗。"


@each_case(("charset", "codec", "text"), table("web_addresses")["charsets"])
def test_what_the_server_says_is_how_it_is_read(charset: str, codec: str, text: str) -> None:
    assert decoded(text.encode(codec), charset, is_markup=False) == text


@pytest.mark.parametrize("mark", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_knows_best(mark: str) -> None:
    assert decoded(FOX.encode(mark), "iso-8859-1", is_markup=False) == FOX


@pytest.mark.parametrize(
    "head",
    [
        '<meta charset="gbk">',
        "<meta http-equiv=Content-Type content='text/html; charset=gb2312'>",
        "<?xml version='1.0' encoding='GBK'?>",
    ],
)
def test_a_page_can_name_its_own(head: str) -> None:
    page = head + FOX
    assert decoded(page.encode("gbk"), "", is_markup=True) == page
    assert decoded(page.encode("gbk"), "no-such-thing", is_markup=True) == page
    assert decoded(page.encode("utf-8"), "utf-8", is_markup=True) == page


def test_a_page_that_is_read_as_ascii_is_not_in_utf_16() -> None:
    page = f"<meta charset=utf-16>{FOX}"
    assert decoded(page.encode(), "", is_markup=True) == page


@pytest.mark.parametrize(
    ("text", "codec"),
    [(FOX, "utf-8"), (FOX, "gb2312"), ("naïve café, “schön”", "cp1252"), ("plain", "ascii")],
)
def test_without_a_word_it_is_tried(text: str, codec: str) -> None:
    assert decoded(text.encode(codec), "", is_markup=False) == text


@each_case("charset", ["utf-7", "punycode", "unicode_escape", "idna", "rot13", "zlib", "base64"])
def test_a_codec_that_no_page_is_written_in_is_not_used(charset: str) -> None:
    assert decoded(b"+ADw-a\\u0041", charset, is_markup=True) == "+ADw-a\\u0041"


def test_what_cannot_be_read_is_marked_and_what_was_cut_is_left_out() -> None:
    assert decoded(b"a\xff\xfeb", "utf-8", is_markup=False) == "a\ufffd\ufffdb"
    assert decoded(FOX.encode()[:-1], "", is_markup=False) == FOX[:-1]
    assert decoded(FOX.encode("gb2312")[:-1], "", is_markup=False) == FOX[:-1]
