"""The studio on a port, from the flags to its orderly shutdown."""

from __future__ import annotations

import errno
import gc
import inspect
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import webbrowser
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from secrets import token_urlsafe
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, cast

from webui.cli.parser import CommandFailed
from webui.deployment import CAP_TURN_USD, TURNS_AT_ONCE, TURNS_PER_VISITOR, Deployment

if TYPE_CHECKING:
    from agent import Settings

# Seconds for threads that are still running when everything else has ended.
_THREADS_S = 3.0
_HEARD_WITHIN_S = 1.0
# A visitor needs a few open files at once; macOS allows a program 256 by default.
_OPEN_FILES = 8192


def check_port(host: str, port: int) -> None:
    """Try to bind the port, so that a port in use is reported before the heavy imports. Raises CommandFailed."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            if os.name == "posix":
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except PermissionError:
        raise CommandFailed(f"port {port} needs more rights than yours; choose one above 1023 with --port.") from None
    # A name such as `a..b` cannot even be written as one of a host.
    except (OSError, UnicodeError) as error:
        if isinstance(error, socket.gaierror | UnicodeError) or error.errno == errno.EADDRNOTAVAIL:
            raise CommandFailed(f"the host {host} is not an address of this machine.") from None
        raise CommandFailed(f"port {port} on {host} is in use; choose another one with --port.") from None


def prepare(settings: Settings) -> None:
    """Set up the log, and create the home. Raises CommandFailed when it is not writable."""
    prepare_log(settings)
    home = settings.home
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home):
            pass
    except (FileExistsError, NotADirectoryError):
        raise CommandFailed(f"the home folder {home} is a file; name a folder with --home.") from None
    except OSError as error:
        raise CommandFailed(f"the home folder {home} cannot be written ({error.strerror or error}).") from None


def _allow_open_files() -> None:
    if sys.platform == "win32":
        return
    import resource

    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if most == resource.RLIM_INFINITY else min(_OPEN_FILES, most)
    if now != resource.RLIM_INFINITY and now < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def prepare_log(settings: Settings) -> None:
    """Send the log to the terminal, and redact keys in it, whoever logs."""
    from agent import RedactingFilter, secrets_of
    from webui.http.sessions import StoredKey

    # The stored key may change before the next line.
    secrets, kept = secrets_of(settings), StoredKey(settings.home, is_silent=True)
    redacting = RedactingFilter(lambda: (*secrets, *filter(None, [kept.read()])))
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(redacting)
    # The server adds a handler to its loggers after this.
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        logging.getLogger(name).addFilter(redacting)


def open_studio(flags: Namespace, settings: Settings, space: Callable[[], Deployment] | None = None) -> int:
    """Serve the page until the process is told to end; return the exit code. `space` returns the deployment of a Space,
    and is called once Gradio may be imported.

    Raises CommandFailed when the home, or a temporary file, cannot be written, and AivistaError when the records cannot
    be opened.
    """
    prepare(settings)
    _allow_open_files()
    signals = _Signals()
    try:
        folder = tempfile.mkdtemp(prefix="aivista-")
    except OSError as error:
        raise CommandFailed(
            f"no temporary file can be written ({error.strerror or error}); name a folder for them in TMPDIR."
        ) from None
    try:
        _prepare_gradio(folder)
        _serve(flags, settings, signals, space)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _end_soon()
    return 0


class _Signals:
    """Whether the process was told to end, and whether it was told so again."""

    def __init__(self) -> None:
        self.ended, self.hurried = threading.Event(), threading.Event()
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), self._receive)

    def _receive(self, _number: int, _frame: FrameType | None) -> None:
        (self.hurried if self.ended.is_set() else self.ended).set()


def _prepare_gradio(folder: str) -> None:
    """Set the environment that Gradio reads when it is imported: nothing is sent from this machine, and uploads go
    through a private folder. Of the user's own variables for Gradio only the share server is kept: others would serve
    files, or never end.

    The upload folder is not under the studio's home: Gradio would refuse to show an upload from a blocked folder. The
    working directory becomes an empty one, because Gradio serves files from there when a handler names them.
    """
    for name in [name for name in os.environ if name.startswith("GRADIO_") and name != "GRADIO_SHARE_SERVER_ADDRESS"]:
        del os.environ[name]
    os.environ.update(
        GRADIO_ANALYTICS_ENABLED="False",
        GRADIO_TEMP_DIR=os.path.join(folder, "uploads"),
        HF_HUB_OFFLINE="1",
        HF_HUB_DISABLE_TELEMETRY="1",
    )
    for name in ("NO_PROXY", "no_proxy"):
        # No proxy may stand between Gradio's start-up check and our own port.
        os.environ[name] = ",".join(part for part in (os.environ.get(name), "127.0.0.1,localhost,::1") if part)
    for name in ("uploads", "empty"):
        os.mkdir(os.path.join(folder, name), 0o700)
    os.chdir(os.path.join(folder, "empty"))


def import_gradio() -> None:
    """Import Gradio (6.x) without two parts that only cost time here, half of its import: the package `mcp`, for a
    server of its own that is never started, and stub files for editors, which it generates anew at each start for
    all of its classes."""
    if "gradio" in sys.modules:
        return
    getfile = inspect.getfile

    def file_of(one: Any) -> str:
        if isinstance(one, type) and one.__module__.startswith("gradio."):
            raise OSError("no stub file is wanted")
        return getfile(one)

    # Python treats None as a module that cannot be imported.
    mcp = sys.modules.setdefault("mcp", cast("ModuleType", None))
    inspect.getfile = cast("Any", file_of)
    try:
        import_module("gradio")
    finally:
        inspect.getfile = getfile
        if mcp is None:
            del sys.modules["mcp"]


@contextmanager
def _garbage_collector_off() -> Iterator[None]:
    """Disable garbage collection while the program is loaded: there is hardly any garbage, and the collections would
    take a quarter of every start. Objects that exist afterwards are never scanned again."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def deployment_of(flags: Namespace, settings: Settings) -> Deployment | None:
    """Return the deployment of a studio that others can reach: by a link or a proxy, or because it listens on other
    interfaces; None where only the operator can come."""
    from agent import Sponsor, TurnLimits
    from webui.http.hosts import LOOPBACK

    is_reached = flags.share or settings.is_public or flags.host not in LOOPBACK
    if flags.single_user or not is_reached:
        return None
    spend = flags.visitors_spend
    sponsor = None if spend is None else Sponsor(cap_day_usd=spend, cap_turn_usd=min(CAP_TURN_USD, spend))
    limits = TurnLimits(turns_at_once=TURNS_AT_ONCE, turns_per_visitor=TURNS_PER_VISITOR)
    return Deployment(frozenset(flags.domain), limits, sponsor)


def _serve(flags: Namespace, settings: Settings, signals: _Signals, space: Callable[[], Deployment] | None) -> None:
    # A public link gets a password unless it is told to have none.
    password = "" if flags.no_password else flags.password or (token_urlsafe(9) if flags.share else "")
    with _garbage_collector_off():
        import_gradio()
        from webui.app import LaunchOptions, Server

        deployment = space() if space is not None else deployment_of(flags, settings)
        options = LaunchOptions(
            host=flags.host,
            port=flags.port,
            language=flags.lang,
            is_shared=flags.share,
            deployment=deployment,
            password=password,
            names=frozenset(flags.domain if flags.single_user else ()),
            root_path=flags.root_path,
        )
        server = Server(settings, options)
    try:
        url = server.start()
        print(f"Aivista is open at {url}", flush=True)
        if flags.share:
            server.share()
            if server.share_failure:
                problem = f"no share link could be had ({server.share_failure}); the page is local only."
                print(f"aivista: {problem}", file=sys.stderr)
            else:
                print(f"Shared at {server.share_url}", flush=True)
        if deployment is not None and space is None:
            print(f"Open it as yourself, with all that is yours: {server.operator_url}", flush=True)
        if password and password != flags.password:
            print(f"Visitors sign in with the password {password}", flush=True)
        has_display = (
            sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        )
        if sys.stdout.isatty() and has_display:
            webbrowser.open(url if deployment is None else server.operator_url)
        # A signal that arrives together with another one, such as SIGCHLD, may be delivered to another thread, and does
        # not wake this one.
        while not signals.ended.wait(_HEARD_WITHIN_S):
            pass
    finally:
        server.close(signals.hurried)


def _end_soon() -> None:
    """End the process even while a thread is busy: Python would wait for a DNS lookup, or for a file that is
    decoded, as long as that takes. Everything is closed and recorded by now."""

    def end() -> None:
        time.sleep(_THREADS_S)
        left = {thread for thread in threading.enumerate() if not thread.daemon} - {threading.main_thread()}
        names = ", ".join(thread.name for thread in left)
        logging.getLogger(__name__).warning("ended without waiting for %s", names)
        os._exit(0)

    threading.Thread(target=end, daemon=True).start()
