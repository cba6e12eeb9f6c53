"""The page's own styles and scripts: one file of each, which a browser keeps, under a name that tells what is in it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from webui.icons import icon
from webui.shortcuts import script_table
from webui.theme import tokens_css
from webui.words import LANGUAGES, load_words

# Below the page, wherever that stands: behind a proxy it may have a prefix.
PLACE = "aivista/page/"
STYLES = (
    *(
        "frame",
        "controls",
        "features/conversations/conversations",
        "features/thread/thread",
        "features/thread/markdown",
        "cards",
        "composer",
        "features/viewer/stage",
        "features/settings/settings",
        "narrow",
    ),
    *(
        "shell/shell",
        "features/styles/styles",
        "painter",
        "features/viewer/compare",
        "sheet",
        "tabs",
        "branches",
        "spend",
    ),
    "features/gallery/gallery",
    *("recipes", "features/tree/tree", "features/files/files", "features/trace/trace", "features/shortcuts/shortcuts"),
    *("account", "waiting", "key", "refusal"),
    *("aids", "features/prompts/prompts", "features/suggestions/suggestions", "drop"),
    *("touch", "features/viewer/viewer", "print"),
)
# Of these Gradio itself reads what the first one says, before it draws anything.
_AT_ONCE = "language"
SCRIPTS = (
    *("script_words", "keys", "shell/shell", "dialogs", "drawer", "announce"),
    *(
        "answers",
        "uploads",
        "ready",
        "sending",
        "drop_anywhere",
        "composer_chips",
        "composer_aids",
        "features/presets/presets",
        "features/prompts/prompts",
        "features/suggestions/suggestions",
        "attached",
        "drafts",
    ),
    *(
        "cards",
        "consent",
        "features/styles/styles",
        "features/settings/settings",
        "painter_pixels",
        "painter",
        "painter_hands",
        "painter_draft",
        "painter_drop",
    ),
    *("features/viewer/compare", "adjust", "sheet", "tabs", "features/viewer/viewer", "features/thread/thread", "told"),
    *("features/gallery/gallery", "features/gallery/choosing"),
    *("features/conversations/conversations", "branches"),
    *("recipes", "features/tree/tree", "features/files/editor", "features/files/files", "features/trace/trace"),
    *("recall", "cost", "models", "studio", "history", "lost"),
)
_FOREVER = "public, max-age=31536000, immutable"
# Gradio draws at once what it has: without its styles nothing of it is shown. A page whose styles never come is shown
# bare rather than not at all.
_UNTIL_STYLED = (
    "@keyframes av-bare{to{visibility:visible}}gradio-app{visibility:hidden;animation:av-bare 0s 5s forwards}"
)


@dataclass(frozen=True)
class Asset:
    """A file of the page: its address, what it holds, its media type, and what a browser takes it for."""

    path: str
    data: bytes
    media_type: str
    kind: str


@cache
def stylesheet() -> Asset:
    """Return all styles. They are nested in a selector that outranks Gradio's own."""
    sheets = "\n".join(_read(f"{name}.css") for name in STYLES)
    names = ("globe", "list-checks", "scan-eye", "x", "lock", "copy", "check", "image-off", "star")
    masks = "".join(f"--av-{name}:url({icon_url(name)});" for name in names)
    chevron, full = icon_url("chevron-down", "#808079"), icon_url("star").replace(quote('fill="none"'), "")
    shown = "gradio-app{visibility:visible;animation:none}"
    style = (
        f":root{{{masks}--av-chevron:url({chevron});--av-star-full:url({full})}}\n{tokens_css()}{_read('motion.css')}\n"
        f"html:root:root:root {{\n{sheets}\n{shown}\n}}"
    )
    return _asset(style, "css", "text/css", "style")


@cache
def script() -> Asset:
    """Return all scripts but the one that has to be there first."""
    table = json.dumps(script_table(), ensure_ascii=False)
    # One that fails is reported as before, and takes none of the others along.
    each = (f"try {{\n{_read(f'{name}.js')}\n}} catch (error) {{ reportError(error); }}" for name in SCRIPTS)
    # What a page says that Python has not filled: its other words come with the fill.
    unfilled = {
        one: {name: load_words(one).table[f"unfilled.{name}"] for name in ("failed", "refused", "silent")}
        for one in LANGUAGES
    }
    told = json.dumps(unfilled, ensure_ascii=False)
    code = (f"window.aivistaShortcuts = {table};", f"window.aivistaUnfilled = {told};", *each)
    return _asset("\n".join(code), "js", "text/javascript", "script")


def head_html(language: str | None = None) -> str:
    """Return what goes into the page's head: the language that the operator fixed, if any, and where the rest lies.

    It is short: Gradio sends it within the page's configuration, and takes it apart before it draws anything.
    """
    favicon = as_data_url(_read("favicon.svg"))
    viewport = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    fixed = f'<meta name="aivista-language" content="{language}">' if language else ""
    return (
        f'{viewport}{fixed}<link rel="icon" type="image/svg+xml" href={favicon}><style>{_UNTIL_STYLED}</style>'
        f'<link rel="stylesheet" href="{stylesheet().path}"><script>{_read(f"{_AT_ONCE}.js")}</script>'
        f'<script src="{script().path}"></script>'
    )


def asset_routes() -> list[Route]:
    """Return the route of the files. A page that was opened before an update finds those of its time gone."""

    async def answer(request: Request) -> Response:
        asked = f"{PLACE}{request.path_params['name']}"
        found = next((one for one in (stylesheet(), script()) if one.path == asked), None)
        if found is None:
            return Response(status_code=404)
        return Response(found.data, media_type=found.media_type, headers={"Cache-Control": _FOREVER})

    return [Route(f"/{PLACE}{{name}}", answer, methods=["GET"])]


class Preloads:
    """ASGI middleware around the page: a browser hears of its files with the first byte, not when Gradio gets there."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/":
            await self.app(scope, receive, send)
            return

        async def with_files(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 200:
                for one in (stylesheet(), script()):
                    MutableHeaders(raw=message["headers"]).append("link", f"<{one.path}>; rel=preload; as={one.kind}")
            await send(message)

        await self.app(scope, receive, with_files)


def icon_url(name: str, colour: str = "currentColor") -> str:
    """Return an icon as a quoted data URL, for the masks and grounds of real inputs."""
    drawn = icon(name, 24).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return as_data_url(drawn.replace("currentColor", colour))


def as_data_url(svg: str) -> str:
    """Return a drawing as a quoted data URL, for CSS and attributes."""
    return f'"data:image/svg+xml,{quote(svg)}"'


def _read(name: str) -> str:
    """Return a file of `assets`, or of the folder that its name begins with."""
    place = name if "/" in name else f"assets/{name}"
    return resources.files("webui").joinpath(*place.split("/")).read_text(encoding="utf-8")


def _asset(text: str, ending: str, media_type: str, kind: str) -> Asset:
    data = text.encode()
    digest = hashlib.sha256(data).hexdigest()[:16]
    return Asset(f"{PLACE}studio-{digest}.{ending}", data, media_type, kind)
