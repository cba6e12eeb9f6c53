from __future__ import annotations

from tests.adapters.fetcher import decoded
from tests.support.cases import each_case
from tests.support.tables import table

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
