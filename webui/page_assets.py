"""The look of the page, and its static files: our stylesheets, our scripts, and Gradio's files. Browsers may cache them
for ever, because the name of each contains its digest.

Tokens of colour, type and shape become CSS custom properties (`--av-*`) for light and dark. The variables of Gradio's
theme only refer to them, so that `.dark` on the body switches Gradio's components and our own HTML together.
"""

from __future__ import annotations

import hashlib
import json
from asyncio import to_thread
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from urllib.parse import quote

import brotli
import gradio as gr
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webui.features.shortcuts import script_table
from webui.shell.templates import icon

# Relative to the page: behind a proxy it may have a prefix.
PLACE = "aivista/page/"
# In the order of the cascade: first what all share, last the rules for narrow pages, touch and print.
STYLES = (
    "shell/frame",
    *(f"features/{name}/{name}" for name in ("conversations", "thread", "composer", "viewer", "settings", "styles")),
    *(f"features/{name}/{name}" for name in ("gallery", "recipes", "tree", "files", "trace", "shortcuts")),
    "shell/shell",
)
# One block for each subject. The blocks after the first use it.
SCRIPTS = (
    *("shell/shell", "features/composer/sending", "features/composer/composer", "features/thread/thread"),
    *("features/styles/styles", "features/settings/settings", "features/viewer/painter", "features/viewer/viewer"),
    *(f"features/{name}/{name}" for name in ("gallery", "conversations", "recipes", "tree", "files", "trace")),
    "shell/studio",
)
# These rules cannot be nested, as all others are.
_KEYFRAMES = """\
@keyframes sweep { from { background-position: 100% 0; } to { background-position: -50% 0; } }
@keyframes beat { 50% { opacity: .3; } }
@keyframes appear { from { opacity: 0; } to { opacity: 1; } }"""
_FOREVER = "public, max-age=31536000, immutable"
# The folder of Gradio 6.31's front end.
GRADIOS = resources.files("gradio").joinpath("templates", "frontend", "assets")
_MEDIA_TYPES = {
    **{"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"},
    **{ending: f"font/{ending}" for ending in ("woff", "woff2", "ttf")},
}
# name: (light, dark)
COLOURS: dict[str, tuple[str, str]] = {
    "bg": ("#FAFAF8", "#141413"),
    "rail": ("#F3F3F0", "#0F0F0E"),
    "surface": ("#FFFFFF", "#1D1D1B"),
    "sunken": ("#F0F0EC", "#232321"),
    "press": ("#E5E5E0", "#2E2E2B"),
    "lift": ("#FFFFFF", "#383835"),
    "stage": ("#E8E8E4", "#0B0B0A"),
    "line": ("#E2E2DD", "#2C2C29"),
    "edge": ("#8C8C85", "#6F6F69"),
    "text": ("#1B1B19", "#EDEDE9"),
    "text-2": ("#52524D", "#B7B7B0"),
    "text-3": ("#686862", "#96968F"),
    "ink": ("#1B1B19", "#EDEDE9"),
    "on-ink": ("#FFFFFF", "#161615"),
    "accent": ("#0A6B5D", "#4FCBB4"),
    "accent-soft": ("#DFF0EB", "#12312B"),
    "on-accent": ("#FFFFFF", "#06211C"),
    "mask": ("#FF2E63", "#FF4D79"),
    "ok": ("#1C6F3B", "#6FCF8E"),
    "warn": ("#7F5200", "#E6B455"),
    "warn-soft": ("#FBF2DE", "#2E2513"),
    "danger": ("#AE2530", "#FF8F88"),
    "danger-soft": ("#FBEBEA", "#341A19"),
}

SANS = (
    '-apple-system, BlinkMacSystemFont, "Segoe UI Variable Text", "Segoe UI", Roboto, Inter, "Noto Sans", '
    '"Liberation Sans", "PingFang SC", "Hiragino Sans GB", "Microsoft YaHei UI", "Microsoft YaHei", '
    '"Noto Sans CJK SC", "Noto Sans SC", sans-serif'
)
MONO = 'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", "Noto Sans CJK SC", monospace'

SHAPE: dict[str, str] = {
    "r-1": "6px",
    "r-2": "8px",
    "r-3": "12px",
    "r-4": "16px",
    "shadow-1": "0 1px 2px rgb(20 20 15/.05)",
    "shadow-2": "0 1px 2px rgb(20 20 15/.05), 0 4px 16px rgb(20 20 15/.06)",
    "shadow-3": "0 2px 6px rgb(20 20 15/.08), 0 16px 48px rgb(20 20 15/.18)",
    "fast": "120ms",
    "slow": "220ms",
    "ease": "cubic-bezier(.2,.7,.2,1)",
    "sans": SANS,
    "mono": MONO,
}


@dataclass(frozen=True)
class Asset:
    """A static file: its address, content and media type."""

    path: str
    data: bytes
    media_type: str

    @cached_property
    def packed(self) -> bytes:
        """The content compressed with Brotli. Level 9 takes ten times as long for a hundredth of the size."""
        return brotli.compress(self.data, quality=7)


@cache
def stylesheet() -> Asset:
    """Return all styles, nested in a selector that outranks Gradio's own."""
    sheets = "\n".join(_read(f"{name}.css") for name in STYLES)
    names = ("globe", "list-checks", "scan-eye", "x", "lock", "copy", "check", "image-off", "star")
    masks = "".join(f"--av-{name}:url({icon_url(name)});" for name in names)
    chevron, full = icon_url("chevron-down", "#808079"), icon_url("star").replace(quote('fill="none"'), "")
    style = (
        f":root{{{masks}--av-chevron:url({chevron});--av-star-full:url({full})}}\n{tokens_css()}{_KEYFRAMES}\n"
        f"html:root:root:root {{\n{sheets}\n}}"
    )
    return _asset(style, "css")


@cache
def script() -> Asset:
    """Return all scripts."""
    table = json.dumps(script_table(), ensure_ascii=False)
    # A script that throws is reported as usual, and does not stop the others.
    each = (f"try {{\n{_read(f'{name}.js')}\n}} catch (error) {{ reportError(error); }}" for name in SCRIPTS[1:])
    code = ("(() => {", f"window.aivista = {{ shortcuts: {table} }};", _read(f"{SCRIPTS[0]}.js"), *each, "})();")
    return _asset("\n".join(code), "js")


@cache
def favicon_url() -> str:
    """Return the page's icon as a quoted data URL."""
    return as_data_url(_read("shell/favicon.svg"))


def asset_routes() -> list[Route]:
    """Return the routes of the files. After an update, a page opened before it does not find its files any more.

    Each file is read and compressed once. Gradio would do so for every visitor, for the dozens of files of a first
    page. All files together are 24 MB.
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
    """Return an icon as a quoted data URL, for masks and backgrounds of inputs."""
    drawn = str(icon(name, 24)).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return as_data_url(drawn.replace("currentColor", colour))


def as_data_url(svg: str) -> str:
    """Return a drawing as a quoted data URL, for CSS and attributes."""
    return f'"data:image/svg+xml,{quote(svg)}"'


def _read(name: str) -> str:
    """Return a file of this package."""
    return resources.files("webui").joinpath(*name.split("/")).read_text(encoding="utf-8")


def _asset(text: str, ending: str) -> Asset:
    data = text.encode()
    digest = hashlib.sha256(data).hexdigest()[:16]
    return Asset(f"{PLACE}studio-{digest}.{ending}", data, _MEDIA_TYPES[ending])


def tokens_css() -> str:
    """Return the tokens as custom properties: for light on the root, and for `.dark` on screens."""
    light = "".join(f"--av-{name}:{pair[0]};" for name, pair in COLOURS.items())
    dark = "".join(f"--av-{name}:{pair[1]};" for name, pair in COLOURS.items())
    shape = "".join(f"--av-{name}:{value};" for name, value in SHAPE.items())
    return f":root{{color-scheme:light;{light}{shape}}}\n@media not print{{.dark{{color-scheme:dark;{dark}}}}}\n"


# The variables of Gradio that its parts of our page use: the name of one of our tokens, or a value after "=".
_POINTERS: dict[str, str] = {
    "body_background_fill": "bg",
    "body_text_color": "text",
    "body_text_color_subdued": "text-2",
    "background_fill_primary": "surface",
    "background_fill_secondary": "bg",
    "border_color_primary": "line",
    "block_background_fill": "=transparent",
    "block_border_color": "line",
    "block_border_width": "=0px",
    "block_title_text_color": "text-2",
    "block_shadow": "=none",
    "input_background_fill": "surface",
    "input_background_fill_focus": "surface",
    "input_border_color_focus": "accent",
    "input_border_width": "=1px",
    "input_placeholder_color": "text-3",
    "input_shadow": "=none",
    "input_shadow_focus": "=0 0 0 3px color-mix(in srgb, var(--av-accent) 22%, transparent)",
    "button_primary_text_color": "on-ink",
    "button_secondary_background_fill": "surface",
    "button_secondary_background_fill_hover": "sunken",
    "checkbox_background_color_selected": "accent",
    "checkbox_border_color_selected": "accent",
    "checkbox_label_background_fill": "=transparent",
    "checkbox_label_background_fill_selected": "accent-soft",
    "checkbox_label_text_color_selected": "text",
    "checkbox_label_border_color": "line",
    "checkbox_label_border_color_selected": "accent",
}


def aivista_theme() -> gr.themes.Base:
    """Return the Gradio theme; every colour in it is one of our tokens."""
    theme = gr.themes.Base(
        primary_hue=gr.themes.colors.teal,
        neutral_hue=gr.themes.colors.stone,
        spacing_size=gr.themes.sizes.spacing_sm,
        radius_size=gr.themes.sizes.radius_md,
        text_size=gr.themes.sizes.text_sm,
        font=[SANS],
        font_mono=[MONO],
    )
    values: dict[str, str] = {}
    for name, pointer in _POINTERS.items():
        value = pointer[1:] if pointer.startswith("=") else f"var(--av-{pointer})"
        values[name] = values[f"{name}_dark"] = value
    theme.set(**values, block_radius="12px", input_radius="8px", container_radius="12px")
    return theme
