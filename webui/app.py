"""Wiring: the studio, the page and our own routes in one server that ends when it is told to."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from starlette.middleware import Middleware

from agent.errors import AivistaError
from agent.settings import Settings
from agent.studio import Studio
from webui.api.mounting import api_mounts
from webui.differences import difference_routes
from webui.exports import export_routes
from webui.file_routes import file_routes
from webui.gallery_routes import gallery_routes
from webui.guard import LOOPBACK, Guard, HostRules
from webui.media import media_routes
from webui.page import build_page, head_html
from webui.previews import preview_routes
from webui.reports import report_routes
from webui.sessions import open_sessions
from webui.space.limited import LimitedStudio
from webui.space.place import Place
from webui.theme import aivista_theme
from webui.trace_routes import trace_routes

SKETCH_PACE_S = 0.02
_CLOSE_S = 1.6


@dataclass(frozen=True)
class LaunchOptions:
    """How the server is reached: address, port, the fixed language if any, whether a share link is asked for, and the
    public place it serves, if any."""

    host: str = "127.0.0.1"
    port: int = 7860
    language: str | None = None
    is_shared: bool = False
    place: Place | None = None


def as_reached(settings: Settings, options: LaunchOptions) -> Settings:
    """Return the settings with `is_public` set where others than the operator can reach the page."""
    is_public = options.is_shared or options.host not in LOOPBACK
    return settings.model_copy(update={"is_public": True}) if is_public else settings


def _studio_of(settings: Settings, place: Place | None) -> Studio:
    if place is None:
        return Studio(settings, sketch_pace_s=SKETCH_PACE_S)
    return LimitedStudio(settings, place.limits, place.pays, sketch_pace_s=SKETCH_PACE_S)


def _host_rules(options: LaunchOptions) -> HostRules:
    place, is_loopback = options.place, options.host in LOOPBACK
    if place is None:
        return HostRules(is_loopback)
    return HostRules(is_loopback, {*LOOPBACK, *place.names}, is_named=bool(place.names), embedders=place.embedders)


class Server:
    """The studio behind its page, running in a thread of its own from `start` to `close`."""

    def __init__(self, settings: Settings, options: LaunchOptions) -> None:
        self.options = options
        self.password = secrets.token_urlsafe(9) if options.is_shared else ""
        self.share_url: str | None = None
        self.share_failure = ""
        self._failure: AivistaError | None = None
        settings = as_reached(settings, options)
        self._settings = settings
        self._studio = _studio_of(settings, options.place)
        self._open = AsyncExitStack()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._rules = _host_rules(options)
        is_shared = options.is_shared or options.place is not None
        self._sessions = open_sessions(settings, is_shared=is_shared, language=options.language)
        is_kept = options.place is None or options.place.is_kept
        self._page = build_page(lambda: self._studio, self._studio.catalogue, self._sessions, is_kept=is_kept)

    def start(self) -> str:
        """Serve the page and return its local address.

        Raises AivistaError when the studio's records cannot be opened.
        """
        # A limit of turns, not of people: each turn mostly waits for a model.
        self._page.queue(max_size=256, default_concurrency_limit=16)
        try:
            self._launch()
        except Exception:
            if self._failure is not None:
                raise self._failure from None
            raise
        return self.url

    @property
    def url(self) -> str:
        """The local address of the page."""
        host = "127.0.0.1" if self.options.host in ("0.0.0.0", "::") else self.options.host  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host else host}:{self.options.port}"

    def _launch(self) -> None:
        self._page.launch(
            server_name=self.options.host,
            server_port=self.options.port,
            share=False,
            auth=("aivista", self.password) if self.password else None,
            prevent_thread_lock=True,
            quiet=True,
            show_error=False,
            run_history=False,
            enable_monitoring=False,
            ssr_mode=False,
            footer_links=[],
            max_file_size="20mb",
            allowed_paths=[],
            blocked_paths=[str(self._settings.home)],
            strict_cors=True,
            state_session_capacity=200,
            max_threads=16,
            theme=aivista_theme(),
            head=head_html(),
            app_kwargs=self._app_kwargs(),
        )

    def _app_kwargs(self) -> dict[str, Any]:
        return {
            "lifespan": self._lifespan,
            "routes": [
                *media_routes(lambda: self._studio, self._sessions),
                *export_routes(lambda: self._studio, self._sessions),
                *gallery_routes(lambda: self._studio, self._sessions),
                *file_routes(lambda: self._studio, self._sessions),
                *report_routes(lambda: self._studio, self._sessions),
                *trace_routes(lambda: self._studio, self._sessions),
                *difference_routes(lambda: self._studio, self._sessions),
                *preview_routes(lambda: self._studio, self._sessions),
                *api_mounts(lambda: self._studio, self._sessions, self._settings, self.options.language),
            ],
            "middleware": [Middleware(Guard, rules=self._rules, sessions=self._sessions)],
            "docs_url": None,
            "redoc_url": None,
            "openapi_url": None,
        }

    @asynccontextmanager
    async def _lifespan(self, _app: object) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        try:
            await self._open.enter_async_context(self._studio)
        except AivistaError as error:
            # The server can only say that it did not start; `start` says why.
            self._failure = error
            _silence_server_log()
            raise
        try:
            yield
        finally:
            await self._open.aclose()

    def share(self) -> None:
        """Open the public link: `share_url` when it stands, else `share_failure` says why there is none."""
        from gradio import networking

        try:
            self.share_url = networking.setup_tunnel(
                local_host=self.options.host,
                local_port=self.options.port,
                share_token=self._page.share_token,
                share_server_address=None,
                share_server_tls_certificate=None,
            ).replace("http://", "https://")
        except Exception as error:
            # Whatever goes wrong with the tunnel (no network, no binary), the local page stands.
            self.share_failure = " ".join(str(error).split()) or type(error).__name__
        else:
            self._rules.names.add(urlsplit(self.share_url).hostname or "")

    def close(self) -> None:
        """Put running turns on record, close the studio, and end the server without waiting for open streams."""
        if self._loop is not None and self._loop.is_running():
            closing = asyncio.run_coroutine_threadsafe(self._open.aclose(), self._loop)
            try:
                closing.result(timeout=_CLOSE_S)
            except TimeoutError:
                closing.cancel()
        self._close_tunnels()
        server = getattr(self._page, "server", None)
        if server is not None:
            # An open page keeps an endless stream; waiting for it would take until the page is closed.
            # That end cancels the server's own tasks, which it would report as errors.
            _silence_server_log()
            server.should_exit = server.force_exit = True
            server.thread.join(timeout=0.3)

    def _close_tunnels(self) -> None:
        if self.share_url is None:
            return
        tunneling: Any = import_module("gradio.tunneling")
        for tunnel in tunneling.CURRENT_TUNNELS:
            tunnel.kill()


def _silence_server_log() -> None:
    logging.getLogger("uvicorn.error").disabled = True
