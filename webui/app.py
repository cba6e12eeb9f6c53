"""Wiring: the studio, the page and our own routes in one server that ends when it is told to."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import Future, wait
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.middleware import Middleware

from agent import MAX_UPLOAD_MEGABYTES, AivistaError, Settings, Studio
from webui.api import api_mounts
from webui.deployment import Deployment
from webui.features.all import FEATURES
from webui.features.viewer.image_routes import media_routes
from webui.http.gate import PageGate
from webui.http.hosts import LOOPBACK, Guard, Health, HostRules, is_address
from webui.http.root_path import RootPath
from webui.http.sessions import open_sessions
from webui.http.sign_in import AccessPolicy, Accounts, SignIn
from webui.page import build_page
from webui.page_assets import aivista_theme, asset_routes
from webui.shell.actions import action_routes
from webui.shell.document import Document

SKETCH_PACE_S = 0.02
_STREAMS_S = 1.0
_STUDIO_S = 10.0
_THREAD_S = 0.5
# Seconds between two looks at whether the shutdown was hurried, or the thread has ended.
_GLANCE_S = 0.1


@dataclass(frozen=True)
class LaunchOptions:
    """How the server is reached: address, port, the fixed language if any, whether a share link is asked for.

    `deployment` is set when others can reach the studio; each visitor has a space of their own then. `password` is
    asked of everybody but the operator before anything is shown. `names` are the host names of a studio that only its
    operator uses; a deployment has its own. `root_path` is where a proxy shows the studio, empty or such as `/studio`.
    """

    host: str = "127.0.0.1"
    port: int = 7860
    language: str | None = None
    is_shared: bool = False
    deployment: Deployment | None = None
    password: str = ""
    names: frozenset[str] = frozenset()
    root_path: str = ""


def as_reached(settings: Settings, options: LaunchOptions) -> Settings:
    """Return the settings with `is_public` set where others than the operator can reach the page. Where visitors pay
    for themselves, the operator's keys are not lent."""
    deployment = options.deployment
    if deployment is None and options.host in LOOPBACK and not (options.is_shared or options.names):
        return settings
    changed = {"is_public": True, "lends_keys": deployment is None or deployment.sponsor is not None}
    return settings.model_copy(update=changed)


def _in_address(host: str) -> str:
    """Return a host as it is written in a URL: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


def host_rules(options: LaunchOptions) -> HostRules:
    """Return which hosts a request may name. A studio that only its operator uses answers to no name but those given
    here."""
    deployment, is_loopback = options.deployment, options.host in LOOPBACK
    if deployment is None:
        # A bare address does not go into the names: a name listed there is allowed on any port.
        own = set() if is_address(options.host) else {options.host.lower()}
        return HostRules(is_loopback, {*LOOPBACK, *own, *options.names}, is_named=True)
    return HostRules(
        is_loopback, {*LOOPBACK, *deployment.names}, is_named=bool(deployment.names), embedders=deployment.embedders
    )


class Server:
    """The studio behind its page, running in a thread of its own from `start` to `close`."""

    def __init__(self, settings: Settings, options: LaunchOptions) -> None:
        self.options = options
        self.share_url: str | None = None
        self.share_failure = ""
        self._failure: AivistaError | None = None
        self._settings = settings = as_reached(settings, options)
        deployment = options.deployment
        self._studio = Studio(
            settings,
            sketch_pace_s=SKETCH_PACE_S,
            limits=deployment.limits if deployment is not None else None,
            sponsor=deployment.sponsor if deployment is not None else None,
        )
        self._open = AsyncExitStack()
        self._closing = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._rules = host_rules(options)
        issuer = deployment.issuer if deployment is not None else None
        self._sessions = open_sessions(
            settings, is_shared=deployment is not None, language=options.language, has_accounts=issuer is not None
        )
        self._accounts = Accounts(issuer, self._sessions, self._studio.hand_over) if issuer is not None else None
        self._way_in = AccessPolicy(self._sessions, options.password, is_behind_proxy=settings.is_behind_proxy)
        is_kept = deployment is None or deployment.is_kept
        self._page, self._screen = build_page(
            lambda: self._studio, self._studio.catalogue, self._sessions, is_kept=is_kept
        )

    def start(self) -> str:
        """Serve the page and return its local address.

        Raises AivistaError when the studio's records cannot be opened.
        """
        # A limit of turns, not of users: a turn mostly waits for a model.
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
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.options.host, self.options.host)  # noqa: S104
        return f"http://{_in_address(host)}:{self.options.port}{self.options.root_path}"

    @property
    def operator_url(self) -> str:
        """The local address that makes a browser the operator's."""
        return f"{self.url}{self._way_in.operator_path}"

    def _launch(self) -> None:
        _wait_for_server()
        self._page.launch(
            server_name=_in_address(self.options.host),
            server_port=self.options.port,
            share=False,
            prevent_thread_lock=True,
            quiet=True,
            show_error=False,
            run_history=False,
            enable_monitoring=False,
            ssr_mode=False,
            footer_links=[],
            max_file_size=f"{MAX_UPLOAD_MEGABYTES}mb",
            allowed_paths=[],
            blocked_paths=[str(self._settings.home)],
            strict_cors=True,
            state_session_capacity=200,
            max_threads=16,
            theme=aivista_theme(),
            app_kwargs=self._app_kwargs(),
        )

    def _app_kwargs(self) -> dict[str, Any]:
        return {
            "lifespan": self._lifespan,
            "routes": [
                *asset_routes(),
                *action_routes(FEATURES, self._screen),
                *media_routes(lambda: self._studio, self._sessions),
                *([self._accounts.mount()] if self._accounts is not None else []),
                *api_mounts(
                    lambda: self._studio,
                    self._sessions,
                    self._settings,
                    self.options.language,
                    has_password=bool(self.options.password),
                ),
            ],
            "middleware": [
                Middleware(RootPath, root_path=self.options.root_path, is_trusted=self._settings.is_behind_proxy),
                Middleware(Health, rules=self._rules, not_ready=lambda: self._studio.not_ready()),
                Middleware(Guard, rules=self._rules, sessions=self._sessions),
                Middleware(SignIn, way_in=self._way_in),
                Middleware(Document, screen=self._screen),
                Middleware(
                    PageGate,
                    sessions=self._sessions,
                    config=self._page.get_config_file,
                    folder=lambda: Path(self._page.app.uploaded_file_dir),
                    is_behind_proxy=self._settings.is_behind_proxy,
                ),
            ],
            "docs_url": None,
            "redoc_url": None,
            "openapi_url": None,
        }

    @asynccontextmanager
    async def _lifespan(self, _app: object) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        try:
            await self._open.enter_async_context(self._studio)
            self._studio.start_housekeeping()
        except AivistaError as error:
            # The server only reports that it did not start; `start` says why.
            self._failure = error
            _silence_server_log()
            raise
        try:
            yield
        finally:
            await self._close_studio()

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
            # Whatever fails in the tunnel (no network, no binary), the local page stays up.
            self.share_failure = " ".join(str(error).split()) or type(error).__name__
        else:
            self._rules.names.add(urlsplit(self.share_url).hostname or "")

    def close(self, hurried: threading.Event | None = None) -> None:
        """Give running turns their time to finish, record the others, and end streams, studio and server.

        Meanwhile the studio reports that it is closing and takes no new turns. Once `hurried` is set, it waits no
        longer.
        """
        server, loop, grace_s = getattr(self._page, "server", None), self._loop, self._settings.grace_s
        if server is None or loop is None or not loop.is_running():
            return
        run = partial(_run_on, loop, server.thread)
        # First the turns: the studio refuses new ones, and the server keeps answering.
        finishing = run(self._studio.wind_down(grace_s), grace_s + _STUDIO_S, hurried)
        if not finishing.done():
            # Cancelling a turn makes it record itself on its way out.
            finishing.cancel()
            run(self._studio.wind_down(0), _STUDIO_S)
        if self.share_url is not None:
            tunneling: Any = import_module("gradio.tunneling")
            for tunnel in tunneling.CURRENT_TUNNELS:
                tunnel.kill()
        # Ending the loop cancels the server's own tasks, which it would log as errors.
        _silence_server_log()
        # Then the streams: new connections are refused, and open ones have a moment to send their last events. An open
        # page keeps an endless stream, which the event ends. When the last stream has ended, the server closes the
        # studio by itself.
        loop.call_soon_threadsafe(self._page.app.stop_event.set)
        server.should_exit = True
        server.thread.join(timeout=_STREAMS_S)
        # Then the studio, and the streams that are still open are cut.
        if server.thread.is_alive():
            run(self._close_studio(), _STUDIO_S)
        server.force_exit = True
        server.thread.join(timeout=_THREAD_S)

    async def _close_studio(self) -> None:
        """Close the studio once, whoever calls this first: `close`, or the server at its end."""
        async with self._closing:
            await self._open.aclose()


def _wait_for_server() -> None:
    """Make Gradio (6.x) wait for its server until it serves or has ended. By itself, Gradio says after five seconds
    that the port is taken; a studio may need longer to upgrade its records, or on a slow disk."""
    http_server: Any = import_module("gradio.http_server")

    def run_in_thread(server: Any) -> None:
        server.thread = threading.Thread(target=server.run, daemon=True)
        server.thread.start()
        while not server.started:
            server.thread.join(0.01)
            if not server.thread.is_alive():
                raise http_server.ServerFailedToStartError("the server has ended before it served")

    http_server.Server.run_in_thread = run_in_thread


def _silence_server_log() -> None:
    logging.getLogger("uvicorn.error").disabled = True


def _run_on(
    loop: asyncio.AbstractEventLoop,
    thread: threading.Thread,
    work: Coroutine[Any, Any, None],
    most_s: float,
    hurried: threading.Event | None = None,
) -> Future[None]:
    """Run work on the loop of another thread, and wait until it is done, the time is over, or `hurried` is set. If the
    thread has ended, the work never completes."""
    begun, until = asyncio.run_coroutine_threadsafe(work, loop), time.monotonic() + most_s
    while thread.is_alive() and time.monotonic() < until:
        if wait([begun], _GLANCE_S).done or (hurried is not None and hurried.is_set()):
            break
    return begun
