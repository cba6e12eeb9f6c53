"""The page's own styles and scripts: one file of each, which a browser keeps, under a name that tells what is in it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webui.icons import icon
from webui.shortcuts import script_table
from webui.theme import tokens_css

# Below the page, wherever that stands: behind a proxy it may have a prefix.
PLACE = "aivista/page/"
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


@dataclass(frozen=True)
class Asset:
    """A file of the page: its address, what it holds, and its media type."""

    path: str
    data: bytes
    media_type: str


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
    """Return the route of the files. A page that was opened before an update finds those of its time gone."""

    async def answer(request: Request) -> Response:
        asked = f"{PLACE}{request.path_params['name']}"
        found = next((one for one in (stylesheet(), script()) if one.path == asked), None)
        if found is None:
            return Response(status_code=404)
        return Response(found.data, media_type=found.media_type, headers={"Cache-Control": _FOREVER})

    return [Route(f"/{PLACE}{{name}}", answer, methods=["GET"])]


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
