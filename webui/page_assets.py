"""The files of the page, which browsers keep, since the name of each tells what is in it: one of our styles, one of our
scripts, and Gradio's."""

from __future__ import annotations

import hashlib
import json
from asyncio import to_thread
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from urllib.parse import quote

import brotli
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webui.icons import icon
from webui.shortcuts import script_table
from webui.theme import tokens_css

# Below the page, wherever that stands: behind a proxy it may have a prefix.
PLACE = "aivista/page/"
# In the order of the cascade: what all share first, and last what a narrow page, a finger and paper change.
STYLES = (
    "shell/frame",
    *(f"features/{name}/{name}" for name in ("conversations", "thread", "composer", "viewer", "settings", "styles")),
    *(f"features/{name}/{name}" for name in ("gallery", "recipes", "tree", "files", "trace", "shortcuts")),
    "shell/shell",
)
# In each, a block for each subject.
SCRIPTS = (
    *("shell/keys", "shell/shell", "shell/page"),
    *(f"features/composer/{name}" for name in ("attachments", "sending", "chips", "composer")),
    *("features/thread/turns", "features/thread/thread"),
    *("features/styles/styles", "features/settings/settings"),
    *(f"features/viewer/{name}" for name in ("painter", "mask", "viewer")),
    *(f"features/{name}/{name}" for name in ("gallery", "conversations", "recipes", "tree", "files", "trace")),
    "shell/studio",
)
_FOREVER = "public, max-age=31536000, immutable"
# Where Gradio 6.31 has the files of its app.
GRADIOS = resources.files("gradio").joinpath("templates", "frontend", "assets")
_MEDIA_TYPES = {
    **{"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"},
    **{ending: f"font/{ending}" for ending in ("woff", "woff2", "ttf")},
}


@dataclass(frozen=True)
class Asset:
    """A file of the page: its address, what it holds, and its media type."""

    path: str
    data: bytes
    media_type: str

    @cached_property
    def packed(self) -> bytes:
        """The file in Brotli. Level 9 takes ten times as long for a hundredth of the size."""
        return brotli.compress(self.data, quality=7)


@cache
def stylesheet() -> Asset:
    """Return all styles. They are nested in a selector that outranks Gradio's own."""
    sheets = "\n".join(_read(f"{name}.css") for name in STYLES)
    names = ("globe", "list-checks", "scan-eye", "x", "lock", "copy", "check", "image-off", "star")
    masks = "".join(f"--av-{name}:url({icon_url(name)});" for name in names)
    chevron, full = icon_url("chevron-down", "#808079"), icon_url("star").replace(quote('fill="none"'), "")
    style = (
        f":root{{{masks}--av-chevron:url({chevron});--av-star-full:url({full})}}\n{tokens_css()}{_read('shell/motion.css')}\n"
        f"html:root:root:root {{\n{sheets}\n}}"
    )
    return _asset(style, "css", "text/css")


@cache
def script() -> Asset:
    """Return all scripts."""
    table = json.dumps(script_table(), ensure_ascii=False)
    # One that fails is reported as before, and takes none of the others along.
    each = (f"try {{\n{_read(f'{name}.js')}\n}} catch (error) {{ reportError(error); }}" for name in SCRIPTS)
    code = ("(() => {", f"window.aivista = {{ shortcuts: {table} }};", _read("shell/helpers.js"), *each, "})();")
    return _asset("\n".join(code), "js", "text/javascript")


@cache
def favicon_url() -> str:
    """Return the page's icon as a quoted data URL."""
    return as_data_url(_read("shell/favicon.svg"))


def asset_routes() -> list[Route]:
    """Return the routes of the files. A page that was opened before an update finds those of its time gone.

    Each is read and packed once. Gradio would do so for every visitor, with dozens of files for a first page. All that
    can be asked for are 24 MB.
    """

    async def ours(request: Request) -> Response:
        asked = f"{PLACE}{request.path_params['name']}"
        return await _answer(request, next((one for one in (stylesheet(), script()) if one.path == asked), None))

    async def gradios(request: Request) -> Response:
        name = request.path_params["name"]
        return await _answer(request, _of_gradio(name) if name in _names_of_gradio() else None)

    return [Route(f"/{PLACE}{{name}}", ours), Route("/assets/{name}", gradios)]


async def _answer(request: Request, asset: Asset | None) -> Response:
    if asset is None:
        return Response(status_code=404)
    headers, body = {"Cache-Control": _FOREVER, "Vary": "Accept-Encoding"}, asset.data
    if "br" in request.headers.get("accept-encoding", "") and not asset.media_type.startswith("font/"):
        headers["Content-Encoding"] = "br"
        body = asset.packed if "packed" in vars(asset) else await to_thread(lambda: asset.packed)
    return Response(body, media_type=asset.media_type, headers=headers)


@cache
def _names_of_gradio() -> frozenset[str]:
    return frozenset(one.name for one in GRADIOS.iterdir() if one.name.rpartition(".")[2] in _MEDIA_TYPES)


@cache
def _of_gradio(name: str) -> Asset:
    return Asset(f"assets/{name}", GRADIOS.joinpath(name).read_bytes(), _MEDIA_TYPES[name.rpartition(".")[2]])


def icon_url(name: str, colour: str = "currentColor") -> str:
    """Return an icon as a quoted data URL, for the masks and grounds of real inputs."""
    drawn = str(icon(name, 24)).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return as_data_url(drawn.replace("currentColor", colour))


def as_data_url(svg: str) -> str:
    """Return a drawing as a quoted data URL, for CSS and attributes."""
    return f'"data:image/svg+xml,{quote(svg)}"'


def _read(name: str) -> str:
    """Return a file of this package."""
    return resources.files("webui").joinpath(*name.split("/")).read_text(encoding="utf-8")


def _asset(text: str, ending: str, media_type: str) -> Asset:
    data = text.encode()
    digest = hashlib.sha256(data).hexdigest()[:16]
    return Asset(f"{PLACE}studio-{digest}.{ending}", data, media_type)
