"""What kind of page an answer is, by its declared type and its first bytes, and whether that can be read."""

from __future__ import annotations

import re

from agent.errors import ErrorCode, ToolArgumentError

HTML = "text/html"
PDF = "application/pdf"
_XHTML = "application/xhtml+xml"
_HEAD_BYTES = 1024
_TEXT = re.compile(r"text/[\w.+-]+|application/(?:json|xml|[\w.-]+\+(?:json|xml))", re.ASCII)
_LOOKS_LIKE_HTML = re.compile(rb"\s*(?:<!--.*?-->\s*)?<(?:!doctype\s+html|html|head|body|title|meta)\b", re.I | re.S)
# The only words of a foreign type that are repeated: what is said of a page must not be said by the page.
_NAMED_KINDS = frozenset({"image", "audio", "video", "font"})


def unreadable(name: str, problem: str) -> ToolArgumentError:
    """Return what is raised for an answer that cannot be read."""
    return ToolArgumentError(ErrorCode.PAGE_UNREADABLE, name=name, problem=problem)


def readable_type(declared: str, data: bytes, name: str) -> str:
    """Return the media type of an answer, in lower case and without parameters; an answer without one is looked at.

    Text of every kind, JSON, XML and PDF can be read. Raises ToolArgumentError for other types, and for what calls
    itself one of these and is not. `name` is for the sentence.
    """
    head = data[:_HEAD_BYTES]
    stated = declared.partition(";")[0].strip().lower()
    media_type = stated or _looked_at(head)
    if media_type == PDF:
        if b"%PDF-" not in head:
            raise unreadable(name, "it calls itself a PDF and is none")
        return PDF
    if not _TEXT.fullmatch(media_type):
        kind = media_type.partition("/")[0]
        raise unreadable(name, f"it is not text but {kind}" if kind in _NAMED_KINDS else "it is not text")
    if b"\0" in head:
        raise unreadable(name, "it is binary")
    return media_type


def is_html(media_type: str) -> bool:
    """Return whether the type is that of a web page."""
    return media_type in {HTML, _XHTML}


def is_markup(media_type: str) -> bool:
    """Return whether a document of the type can name its character set itself."""
    return is_html(media_type) or media_type.endswith(("/xml", "+xml"))


def charset_of(declared: str) -> str:
    """Return the character set that a Content-Type names, in lower case, or ""."""
    found = re.search(r";\s*charset\s*=\s*[\"']?([\w.:-]{1,40})", declared, re.ASCII | re.IGNORECASE)
    return found[1].lower() if found else ""


def _looked_at(head: bytes) -> str:
    if head.startswith(b"%PDF-"):
        return PDF
    if _LOOKS_LIKE_HTML.match(head.removeprefix(b"\xef\xbb\xbf")):
        return HTML
    return "application/xml" if head.lstrip().startswith(b"<?xml") else "text/plain"
