"""The studio on a port, from the flags to its orderly end."""

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

# How long threads that are still at work may take when everything else has ended.
_THREADS_S = 3.0
_HEARD_WITHIN_S = 1.0
# A visitor needs a few files open at once; macOS gives a program 256 unasked.
_OPEN_FILES = 8192


def check_port(host: str, port: int) -> None:
    """Try to take the port, so that a port in use is known before the heavy imports. Raises CommandFailed."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            if os.name == "posix":
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except PermissionError:
        raise CommandFailed(f"port {port} needs more rights than yours; choose one above 1023 with --port.") from None
    except OSError as error:
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            raise CommandFailed(f"the host {host} is not an address of this machine.") from None
        raise CommandFailed(f"port {port} on {host} is in use; choose another one with --port.") from None


def prepare(settings: Settings) -> None:
    """Prepare the log, and make the home. Raises CommandFailed when that cannot be written."""
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
    """Send the log to the terminal, with no key in it, whoever writes to it."""
    from agent import RedactingFilter, secrets_of
    from webui.http.sessions import StoredKey

    # The key that is kept may be another one by the next line of the log.
    secrets, kept = secrets_of(settings), StoredKey(settings.home, is_silent=True)
    redacting = RedactingFilter(lambda: (*secrets, *filter(None, [kept.read()])))
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(redacting)
    # The server gives its loggers a handler of their own, later than this.
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        logging.getLogger(name).addFilter(redacting)


def open_studio(flags: Namespace, settings: Settings, space: Callable[[], Deployment] | None = None) -> int:
    """Serve the page until the process is told to end; return the exit code. `space` returns the Space
    that it serves, once Gradio may be imported.

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
    """That the process was told to end, and that it was told so once more."""

    def __init__(self) -> None:
        self.ended, self.hurried = threading.Event(), threading.Event()
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), self._receive)

    def _receive(self, _number: int, _frame: FrameType | None) -> None:
        (self.hurried if self.ended.is_set() else self.ended).set()


def _prepare_gradio(folder: str) -> None:
    """Set what Gradio reads when it is imported: nothing leaves this machine, uploads pass through a private folder. Of
    what the environment tells it, only by which server it shares holds: more would serve files, or never end.

    That folder is not under the studio's home: Gradio would refuse to show an upload from a blocked folder. The working
    directory becomes an empty one, because Gradio serves files from there when a handler names them.
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
        # A proxy must not stand between Gradio's start-up check and our own port.
        os.environ[name] = ",".join(part for part in (os.environ.get(name), "127.0.0.1,localhost,::1") if part)
    for name in ("uploads", "empty"):
        os.mkdir(os.path.join(folder, name), 0o700)
    os.chdir(os.path.join(folder, "empty"))


def import_gradio() -> None:
    """Import Gradio (6.x) without what only costs time here, half of what its import takes: the package `mcp`, for a
    server of its own that is never started, and a stub file for editors, which it works out anew at each start for
    every class of its own that has a file."""
    if "gradio" in sys.modules:
        return
    getfile = inspect.getfile

    def file_of(one: Any) -> str:
        if isinstance(one, type) and one.__module__.startswith("gradio."):
            raise OSError("no stub file is wanted")
        return getfile(one)

    # Python takes None for a module that cannot be imported.
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
    """Look for no garbage while the program is loaded: hardly any is made, and each look is at all there is, a quarter
    of every start. What is there at the end of it stays, and is never looked at."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def deployment_of(flags: Namespace, settings: Settings) -> Deployment | None:
    """Return the place of a studio that others reach: by a link or a proxy, or because it listens on more than this
    machine; None where whoever comes is the operator."""
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
    # A public link gets a password unless it shall have none.
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
        # A signal that comes together with another, such as of a child that ended, may be heard by another thread, and
        # does not wake this one.
        while not signals.ended.wait(_HEARD_WITHIN_S):
            pass
    finally:
        server.close(signals.hurried)


def _end_soon() -> None:
    """Have the process end even where a thread of it does not: Python would wait for a name that is looked up, or for a
    file that is decoded, as long as that takes. All is closed and on record by now."""

    def end() -> None:
        time.sleep(_THREADS_S)
        left = {thread for thread in threading.enumerate() if not thread.daemon} - {threading.main_thread()}
        names = ", ".join(thread.name for thread in left)
        logging.getLogger(__name__).warning("ended without waiting for %s", names)
        os._exit(0)

    threading.Thread(target=end, daemon=True).start()
