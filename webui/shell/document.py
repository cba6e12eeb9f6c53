"""The document of the page: our own HTML around Gradio's inputs, complete for its visitor before any script has run.

Gradio builds its app from a configuration in the document, which is the same for everybody. We ask Gradio for its own
document, take the configuration and the addresses of its script and styles from it, and write the visitor's values of
the inputs into the configuration, so that Gradio need not draw them twice.

The texts that scripts write are part of the document: a script calls `aivista.translate("key")` for a key of the
section [script]. Texts that Gradio writes in English only are replaced on the page: an exact text by its translation, a
text about a file or a queue by the words it contains.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from functools import cache
from html import escape

import orjson
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent import MAX_UPLOAD_MEGABYTES, AivistaError
from webui.features.composer import PANEL, ChosenSettings
from webui.features.conversations import first_rows
from webui.features.gallery import gallery_html
from webui.features.thread.render import log_html
from webui.features.viewer.painter import MAX_EDGE_PX, MAX_FEATHER_PX, MAX_GROWTH, MIN_FEATHER_PX
from webui.http.sessions import Visitor
from webui.page_assets import GRADIOS, favicon_url, script, stylesheet
from webui.screen import Screen, Updates
from webui.shell.templates import render
from webui.words import Words

# By then a page has its styles and scripts, and no user has finished a sentence.
_DRAWN_AFTER_S = 2.0
_AGAIN_S = 5
# The parts of Gradio 6.31's document that are used.
_GRADIO = re.compile(
    r'<base href="(?P<base>[^"]*)".*?'
    r"window\.gradio_config = (?P<config>.*?);</script>"
    r"<script>window\.gradio_api_info = (?P<api_info>.*?);</script>.*?"
    r'(?P<script><script type="module"[^>]*></script>)\s*(?P<style><link rel="stylesheet"[^>]*>)',
    re.DOTALL,
)
# Gradio 6.31's own English, by our keys: names of controls, and texts of its notices.
NAMES: dict[str, str] = {
    "Upload a file": "builtin.attach",
    "File thumbnail": "builtin.thumbnail",
    "Remove file": "builtin.remove",
    "Uploading": "builtin.uploading",
    "Uploaded files": "builtin.uploaded",
    "Multimedia input field": "builtin.message",
    "Click to upload or drop files": "builtin.attach",
    "File upload": "builtin.attach",
    "Submit": "builtin.send",
    "Stop": "builtin.stop",
    "Close": "action.close",
    "Error": "builtin.error",
    "Warning": "builtin.warning",
    "Info": "builtin.info",
    "Connection Lost": "builtin.lost",
    "Connection to the server was lost. Attempting reconnection...": "builtin.lost_text",
    "Connection errored out.": "script.cut",
    "This application is currently busy. Please try again.": "builtin.busy",
}
# A notice is recognised by these words, whatever else it says.
PARTS: dict[str, str] = {
    "Invalid file type": "builtin.wrong_type",
    "maximum allowed size": "builtin.too_large",
    "Queue is full": "builtin.busy",
    "Failed to fetch": "script.cut",
    "NetworkError": "script.cut",
    "Could not parse server response": "script.cut",
}
NEW = "new"


class Document:
    """ASGI middleware that answers `GET /` with our document instead of Gradio's. If the document cannot be built,
    the answer is a sentence that says why. A document of another version of Gradio raises ValueError."""

    def __init__(self, app: ASGIApp, screen: Screen) -> None:
        self.app = app
        self.screen = screen
        self._has_served = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or (scope["method"], scope["path"]) != ("GET", "/"):
            await self.app(scope, receive, send)
            return
        start: Message = {}
        pieces: list[bytes] = []

        async def held(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
                return
            pieces.append(message.get("body", b""))
            if message.get("more_body"):
                return
            if start["status"] == 200:
                answer = await self._answer(Request(scope), b"".join(pieces).decode())
                await answer(scope, receive, send)
            else:
                await send(start)
                await send({"type": "http.response.body", "body": b"".join(pieces)})
            self._warm_up_once()

        await self.app(scope, receive, held)

    def _warm_up_once(self) -> None:
        """Have the studio load what its first turn needs, after the first page was sent and drawn."""
        if not self._has_served:
            self._has_served = True
            asyncio.get_running_loop().call_later(_DRAWN_AFTER_S, self.screen.studio().warm_up)

    async def _answer(self, request: Request, gradio: str) -> Response:
        visitor = self.screen.sessions.visitor(request)
        # It belongs to this visitor and this moment: no cache may reuse it.
        headers = {"cache-control": "no-store"}
        try:
            updates = await filled(self.screen, visitor, request.query_params.get("c", ""))
        except AivistaError as error:
            # The browser asks again by itself.
            headers |= {"refresh": str(_AGAIN_S), "retry-after": str(_AGAIN_S)}
            return PlainTextResponse(visitor.words.error(error.info), 503, headers)
        body = document(gradio, visitor, updates)
        # Compressed, it is a sixth of the size.
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers |= {"content-encoding": "gzip", "vary": "Accept-Encoding"}
            body = gzip.compress(body, compresslevel=4, mtime=0)
        return HTMLResponse(body, headers=headers)


def document(gradio: str, visitor: Visitor, updates: Updates) -> bytes:
    """Return the document with these updates. Raises ValueError for a document of another version of Gradio."""
    found = _GRADIO.search(gradio)
    if found is None:
        raise ValueError("this version of Gradio is not known")
    config, later = orjson.loads(found["config"]), {}
    for one in config["components"]:
        part = one["props"].get("elem_id")
        told = updates.get(part, {})
        one["props"].update(told if isinstance(told, dict) else {"value": told})
        # Gradio loads and draws visible components at once: those of the settings panel come when the page is idle.
        if part in PANEL and one["props"]["visible"]:
            one["props"]["visible"], later[part] = False, {"visible": True}
    kinds = frozenset(one["type"] for one in config["components"] if one["props"].get("visible", True))
    page = render(
        "document.html",
        visitor.words,
        gradio=found.groupdict(),
        config=config,
        later=later,
        ahead=files_ahead(kinds),
        gallery=gallery_html(visitor.words),
        script_words=script_words_html(visitor.words),
        painting={
            "longest_px": MAX_EDGE_PX,
            "growth": int(MAX_GROWTH),
            "least_feather_px": MIN_FEATHER_PX,
            "most_feather_px": MAX_FEATHER_PX,
        },
        boxes={part: html for part, html in updates.items() if isinstance(html, str)},
        favicon=favicon_url(),
        stylesheet=stylesheet().path,
        script=script().path,
    )
    # Half of a surrogate pair, which only a program writes, cannot be encoded.
    return page.encode("utf-8", "replace")


@cache
def files_ahead(kinds: frozenset[str]) -> list[str]:
    """Return the names of the files that Gradio's app loads to draw these kinds of components. By itself it requests
    them in four rounds, each named by the files of the one before.

    Gradio 6.31: the document names one script, which loads the app, which loads the blocks; a table in the core names
    the files of each kind.
    """
    files = [*_preloads_of("index-", r"import\(`\./Index-"), *_preloads_of("Index-", r"import\(`\./Blocks-")]
    for kind in sorted(kinds):
        files += _preloads_of("core-", rf"\b{kind}:\{{.*?component:")
    return [one for one in dict.fromkeys(files) if not one.startswith("index-")]


def _preloads_of(name: str, place: str) -> list[str]:
    """Return the files that a script of Gradio preloads at a place in it; empty where there is no such place."""
    for file in GRADIOS.iterdir():
        if file.name.startswith(name) and file.name.endswith(".js"):
            text = file.read_text(encoding="utf-8")
            found = re.search(rf"{place}.*?__vite__mapDeps\(\[([\d,]+)\]", text)
            if found:
                names = text.partition("m.f=[")[2].partition("]")[0].split(",")
                return [names[int(at)].strip('"').removeprefix("./") for at in found[1].split(",")]
    return []


def script_words_html(words: Words) -> str:
    """Return a hidden element with all of these texts, for the page's scripts."""
    script = {key.removeprefix("script."): text for key, text in words.table.items() if key.startswith("script.")}
    names = {theirs: words(key) for theirs, key in NAMES.items()}
    parts = {theirs: words(key, limit=MAX_UPLOAD_MEGABYTES) for theirs, key in PARTS.items()}
    told = {"script": script, "names": names, "parts": parts}
    data = "".join(f' data-{name}="{escape(json.dumps(table, ensure_ascii=False))}"' for name, table in told.items())
    return f'<i id="words" hidden{data}></i>'


async def filled(screen: Screen, visitor: Visitor, name: str) -> Updates:
    """Return all updates of the document: the conversation named in its address, else the newest, else a new one."""
    conversation = await screen.conversation(visitor, name)
    if conversation is None and name != NEW:
        conversation = await screen.newest(visitor)
    # What comes with the page needs no script to be seen.
    articles = screen.articles(visitor, conversation)
    rows, foot = await first_rows(screen, visitor)
    return {
        **screen.chips(visitor, ChosenSettings()),
        "rail-rows": rows,
        "rail-foot": foot,
        **await screen.opened(visitor, conversation),
        **await screen.chips_of(visitor, conversation),
        "chat": log_html(visitor.words, conversation, articles, is_live=screen.at_work(conversation) is not None),
    }
