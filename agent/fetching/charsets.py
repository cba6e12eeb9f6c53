"""Bytes of a page as text, by the character sets that the web names."""

from __future__ import annotations

import codecs
import re

_HEAD_BYTES = 1024

# By the labels of the WHATWG Encoding Standard that pages use. A list, since Python also knows codecs of which a page
# must not choose: punycode, utf-7 and unicode_escape among them.
_CODECS = {
    label: codec
    for codec, labels in {
        "utf-8": "utf-8 utf8 unicode-1-1-utf-8",
        "utf-16-le": "utf-16 utf-16le unicode",
        "utf-16-be": "utf-16be",
        "gb18030": "gb2312 gbk gb18030 gb_2312-80 x-gbk cp936 chinese",
        "big5hkscs": "big5 big5-hkscs cn-big5 x-x-big5",
        "cp1252": "iso-8859-1 iso8859-1 latin1 latin-1 ascii us-ascii windows-1252 cp1252 ansi_x3.4-1968",
        "cp1250": "windows-1250 cp1250",
        "cp1251": "windows-1251 cp1251",
        "cp1253": "windows-1253 cp1253",
        "cp1254": "windows-1254 cp1254 iso-8859-9 latin5",
        "cp1255": "windows-1255 cp1255",
        "cp1256": "windows-1256 cp1256",
        "cp1257": "windows-1257 cp1257",
        "cp1258": "windows-1258 cp1258",
        "cp874": "windows-874 tis-620 iso-8859-11",
        "cp932": "shift_jis shift-jis sjis x-sjis windows-31j ms_kanji",
        "euc_jp": "euc-jp x-euc-jp",
        "iso2022_jp": "iso-2022-jp",
        "cp949": "euc-kr ks_c_5601-1987 korean windows-949",
        "koi8_r": "koi8-r koi8",
        "koi8_u": "koi8-u",
        "mac_roman": "macintosh x-mac-roman",
        "iso8859_2": "iso-8859-2 latin2",
        "iso8859_3": "iso-8859-3",
        "iso8859_4": "iso-8859-4",
        "iso8859_5": "iso-8859-5",
        "iso8859_6": "iso-8859-6",
        "iso8859_7": "iso-8859-7",
        "iso8859_8": "iso-8859-8",
        "iso8859_10": "iso-8859-10",
        "iso8859_13": "iso-8859-13",
        "iso8859_14": "iso-8859-14",
        "iso8859_15": "iso-8859-15 latin-9",
        "iso8859_16": "iso-8859-16",
    }.items()
    for label in labels.split()
}
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_NAMED_INSIDE = re.compile(rb"<(?:meta|\?xml)\b[^>]*?(?:charset|encoding)\s*=\s*[\"']?([\w.:-]{1,40})", re.I)
# No two letters of a Western text stand above 0xA0 side by side as often as these pairs must, and UTF-8 goes first.
_GUESSES = ("utf-8", "gb2312")
_LAST_RESORT = "cp1252"


def decoded(data: bytes, charset: str, *, is_markup: bool) -> str:
    """Return the text of a page, whatever cannot be read in it as U+FFFD.

    Its character set is told, first found first, by a byte order mark, by `charset` (what the server said), by the
    page itself where it is markup, and else by trying: UTF-8, GB 2312, and Windows-1252, which fits everything.
    A character that was cut off at the end is left out.
    """
    for mark, codec in _MARKS:
        if data.startswith(mark):
            return _read(data[len(mark) :], codec, "replace")
    named = _CODECS.get(charset) or (_named_inside(data) if is_markup else None)
    if named:
        return _read(data, named, "replace")
    for codec in _GUESSES:
        try:
            return _read(data, codec, "strict")
        except UnicodeDecodeError:
            continue
    return _read(data, _LAST_RESORT, "replace")


def _named_inside(data: bytes) -> str | None:
    found = _NAMED_INSIDE.search(data[:_HEAD_BYTES])
    codec = _CODECS.get(found[1].decode("ascii").lower()) if found else None
    # It was just read as ASCII, so UTF-16 it is not.
    return "utf-8" if codec and codec.startswith("utf-16") else codec


def _read(data: bytes, codec: str, errors: str) -> str:
    # Not final: what is cut in the middle of a character ends before it.
    return codecs.getincrementaldecoder(codec)(errors).decode(data)
