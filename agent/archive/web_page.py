"""A page in HTML that stands by itself: one file beside the pictures, no script, nothing fetched from anywhere.

Every text is escaped; the page's own policy would stop what got through.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from html import escape
from typing import assert_never

from agent.archive.plain_text import visible, web_address
from agent.archive.readable import Block, Code, Facts, Heading, Links, Note, Page, Said, Shown

_STYLE = """
:root { color-scheme: light dark; --paper: #fbfaf7; --ink: #23211d; --quiet: #6b675e; --line: #dedad0;
  --said: #efece4; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #191816; --ink: #ebe8e0; --quiet: #a09b90; --line: #38352f; --said: #262421; }
}
body { margin: 0 auto; max-width: 46rem; padding: 2rem 1rem 4rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, "Noto Sans SC", sans-serif; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; }
h2, h3 { margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: .75rem; font-size: .9rem;
  color: var(--quiet); }
.note, figcaption { color: var(--quiet); font-size: .875rem; }
.said { white-space: pre-wrap; overflow-wrap: anywhere; margin: .75rem 0; }
.said b { display: block; font-size: .8rem; color: var(--quiet); }
.person { background: var(--said); border-radius: .6rem; padding: .6rem .9rem; }
figure { margin: 1rem 0; }
img { max-width: 100%; height: auto; border-radius: .4rem; border: 1px solid var(--line); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; font-size: .875rem; }
dt { color: var(--quiet); }
dd { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
pre { background: var(--said); border-radius: .4rem; padding: .6rem .9rem; overflow-x: auto; font-size: .85rem; }
a { color: inherit; overflow-wrap: anywhere; }
""".strip()
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
# A page that is opened from a folder has no origin: its pictures are `file:`.
_POLICY = f"default-src 'none'; img-src 'self' file:; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'"
_POLICY_ALONE = _POLICY.replace("'self' file:", "data:")


def web_page(page: Page, *, is_alone: bool = False) -> str:
    """Return the page, which ends with a line break; one that stands alone holds its pictures itself."""
    return _document(page, "\n".join(map(_block, page.blocks)), _POLICY_ALONE if is_alone else _POLICY)


def index_page(page: Page, entries: Iterable[tuple[str, str, str]]) -> str:
    """Return a page that leads to others: their address, title and what else to say of each, after its own blocks."""
    rows = "\n".join(
        f'<li><a href="{escape(address)}">{_text(title)}</a> <span class="note">{_text(more)}</span></li>'
        for address, title, more in entries
    )
    listed = f"\n<ul>\n{rows}\n</ul>" if rows else ""
    return _document(page, "\n".join(map(_block, page.blocks)) + listed, _POLICY)


def _document(page: Page, body: str, policy: str) -> str:
    return f"""<!doctype html>
<html lang="{escape(page.language)}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(policy, quote=True)}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_text(" ".join(page.title.split()))}</title>
<style>{_STYLE}</style>
</head>
<body>
{body}
</body>
</html>
"""


def _block(block: Block) -> str:
    match block:
        case Heading():
            return f"<h{block.level}>{_text(block.text)}</h{block.level}>"
        case Said():
            kind = "said person" if block.is_person else "said"
            return f'<div class="{kind}"><b>{_text(block.speaker)}</b>{_text(block.text.strip())}</div>'
        case Note():
            return f'<p class="note">{_text(block.text)}</p>'
        case Shown():
            picture = f'<img src="{_text(block.address or "")}" alt="{_text(block.alt)}" loading="lazy">'
            return f"<figure>{picture}<figcaption>{_text(block.caption)}</figcaption></figure>"
        case Facts():
            rows = "".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in block.rows)
            return f"<dl>{rows}</dl>"
        case Links():
            rows = "".join(f"<li>{_link(source.title, source.url)}</li>" for source in block.sources)
            return f'<p class="note">{_text(block.title)}</p><ul>{rows}</ul>'
        case Code():
            return f"<pre><code>{_text(block.text)}</code></pre>"
        case _:
            assert_never(block)


def _link(title: str, address: str) -> str:
    url = web_address(address)
    if url is None:
        return _text(title or address)
    return f'<a href="{escape(url)}" rel="noopener noreferrer nofollow">{_text(title or url)}</a>'


def _text(text: str) -> str:
    return escape(visible(text))
