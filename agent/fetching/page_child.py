"""The child process that converts one page: a web page to Markdown, a PDF to text.

`page_reader.py` runs this file as a program; nothing imports it.

Its input is one line of JSON (`kind`, `url`, `paths`, `max_characters`, `max_pages`, `memory_bytes`, `cpu_s`), followed
by the page. Its output is JSON: either `text`, `title`, `links` and `is_truncated`, or `problem`.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from typing import Any
from urllib.parse import urljoin

_MOST_LINKS = 1000
_MOST_URL_CHARACTERS = 2048
_LINK_TEXT_CHARACTERS = 120
# When the extraction gives less text than this, the page is a list, a form or an app, and its full text is more useful.
_SHORT_TEXT = 200
_NOT_TEXT = ("script", "style", "noscript", "template", "svg", "head", "iframe", "object")
_BLOCKS = (
    *("address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "figcaption", "figure", "footer"),
    *("form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "option", "p", "pre"),
    *("section", "table", "td", "th", "tr", "ul"),
)


def confine(memory_bytes: int, cpu_s: int) -> None:
    """Limit memory, CPU time, file writes and new processes, where the system supports it."""
    try:
        import resource
    except ImportError:
        return
    limits = {"AS": memory_bytes, "CPU": cpu_s, "FSIZE": 0, "CORE": 0, "NPROC": 0}
    for name, limit in limits.items():
        # Each limit may fail separately: macOS has RLIMIT_AS but rejects it.
        with contextlib.suppress(AttributeError, ValueError, OSError):
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (limit, limit))


def read_html(data: bytes, job: dict[str, Any]) -> dict[str, Any]:
    """Return a page's main text as Markdown with links, or all its text when there is little main text."""
    import trafilatura

    page = data.decode("utf-8")
    # trafilatura does not recognise a page that has no "html" in its first characters.
    tree: Any = trafilatura.load_html(page if "html" in page[:50].lower() else f"<html>{page}")
    if tree is None:
        return {}
    title = tree.find(".//title")
    links = links_of(tree, job["url"])
    text = trafilatura.extract(tree, output_format="markdown", include_comments=False, include_links=True) or ""
    if len(text) < _SHORT_TEXT:
        text = max(text, words_of(tree), key=len)
    return {"text": text, "title": "" if title is None else one_line(title.text_content()), "links": links}


def links_of(tree: Any, url: str) -> list[tuple[str, str]]:
    """Return the addresses and texts of the first links of a page. In the tree, every link becomes absolute.

    A link within the page (`#top`), to anything but http or https, or with a malformed address loses its `href`.
    """
    stated = tree.find(".//base[@href]")
    base = "" if stated is None else joined(url, stated.get("href"))
    # A base of a megabyte would be copied into every link.
    base = base if 0 < len(base) <= _MOST_URL_CHARACTERS else url
    links: list[tuple[str, str]] = []
    for anchor in tree.iter("a", "area"):
        href = (anchor.get("href") or "").strip()
        leads = "" if href.startswith("#") else joined(base, href)
        if not leads.lower().startswith(("http://", "https://")):
            anchor.attrib.pop("href", None)
            continue
        anchor.set("href", leads)
        if len(links) < _MOST_LINKS and len(leads) <= _MOST_URL_CHARACTERS:
            links.append((leads, one_line(anchor.text_content())[:_LINK_TEXT_CHARACTERS]))
    return links


def joined(base: str, address: str) -> str:
    """Return the absolute form of an address on a page, or "" for a malformed one."""
    try:
        return urljoin(base, address.strip())
    except ValueError:
        return ""


def words_of(tree: Any) -> str:
    """Return the full text of a page, with one line per block. The tree is modified and cannot be used afterwards."""
    for element in list(tree.iter(*_NOT_TEXT)):
        if element.getparent() is not None:
            element.drop_tree()
    for element in tree.iter(*_BLOCKS):
        element.text = "\n" + (element.text or "")
        element.tail = "\n" + (element.tail or "")
    lines = (one_line(line) for line in tree.text_content().splitlines())
    return "\n".join(line for line in lines if line)


def one_line(text: str) -> str:
    """Return the text with every run of white space replaced by one space."""
    return " ".join(text.split())


def read_pdf(data: bytes, job: dict[str, Any]) -> dict[str, Any]:
    """Return the text of a PDF, with pages separated by blank lines, and the addresses in its link annotations."""
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        return {"problem": "the PDF is locked with a password"}
    pages: list[str] = []
    links: list[tuple[str, str]] = []
    for page in reader.pages[: job["max_pages"]]:
        pages.append(page.extract_text().strip())
        links += annotated(page)
        if sum(map(len, pages)) > job["max_characters"]:
            break
    # The title is optional: a broken one must not prevent the text from being returned.
    title = ""
    with contextlib.suppress(Exception):
        information = reader.metadata
        title = one_line(str(information.title or "")) if information is not None else ""
    text = "\n\n".join(page for page in pages if page)
    return {"text": text, "title": title, "links": links[:_MOST_LINKS], "is_truncated": len(pages) < len(reader.pages)}


def annotated(page: Any) -> list[tuple[str, str]]:
    """Return the addresses in a page's link annotations; broken and too long ones are skipped."""
    found: list[tuple[str, str]] = []
    with contextlib.suppress(Exception):
        for annotation in (page.get("/Annots") or [])[:_MOST_LINKS]:
            with contextlib.suppress(Exception):
                address = str(annotation.get_object()["/A"]["/URI"])
                if len(address) <= _MOST_URL_CHARACTERS:
                    found.append((address, ""))
    return found


def main() -> None:
    """Read the job and the page, and write the answer."""
    output = os.dup(1)
    # Output printed by a library must not get into the answer.
    os.dup2(2, 1)
    job = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read()
    confine(job["memory_bytes"], job["cpu_s"])
    sys.path.extend(job["paths"])
    read = {"html": read_html, "pdf": read_pdf}[job["kind"]]
    try:
        answer = read(data, job)
    except ImportError:
        # An installation error, not the page's fault: the parent learns of it from the exit status.
        raise
    except MemoryError:
        answer = {"problem": "it takes too much memory"}
    except Exception:
        # Any other error is caused by a broken page, and its message may contain text of the page, so it is dropped.
        answer = {"problem": "it is broken"}
    answer["text"] = str(answer.get("text", ""))[: job["max_characters"] + 1]
    with open(output, "wb") as file:
        file.write(json.dumps(answer).encode("ascii"))
    # Skip the normal exit: freeing the objects of a large page would only take time.
    os._exit(0)


if __name__ == "__main__":
    main()
