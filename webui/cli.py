"""The command `aivista`: flags are read and checked before anything heavy is imported."""

from __future__ import annotations

import argparse
import gc
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module, metadata
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, NoReturn, cast

from webui import cli_mcp, cli_space, cli_visitors

if TYPE_CHECKING:
    from agent import Settings
    from webui.app import Server
    from webui.space.place import Place

_LANGUAGES = ("en", "zh-CN")
# How long threads that are still at work may take when everything else has ended.
_THREADS_S = 3.0


class Unusable(Exception):
    """A flag or a place that cannot be used, in one sentence for the person at the terminal."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One sentence and exit code 2, without the usage in front."""
        self.exit(2, f"aivista: {message}. See aivista --help.\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the studio until it is told to end; return the exit code: 0, or 2 when it cannot start.

    `gc` and `check` look after what is kept instead; they return 1 when something was found that a person must see to.
    """
    flags = read_flags(argv)
    try:
        if flags.command == "space":
            return _keep_space(flags)
        home = _usable_home(flags.home)
        if flags.command == "token":
            return _look_after_tokens(flags, home)
        if flags.command == "mcp":
            return _serve_mcp(flags, home)
        if flags.command is not None:
            return _keep_house(flags, home)
        _check_port(flags.host, flags.port)
        return _run(flags, home)
    except Unusable as problem:
        print(f"aivista: {problem}", file=sys.stderr)
        return 2


def read_flags(argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the flags; those that cannot be used end the program with one sentence."""
    parser = _Parser(prog="aivista", description="A chat studio for pictures: talk, and the picture comes.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", default=7860, type=_port, help="port to listen on (default: %(default)s)")
    parser.add_argument("--home", metavar="FOLDER", help="where everything is kept (default: your user-data folder)")
    parser.add_argument("--lang", choices=_LANGUAGES, help="language of the page (default: the browser's)")
    parser.add_argument("--share", action="store_true", help="open a public link, protected by a password")
    cli_visitors.add_flags(parser, os.environ)
    parser.add_argument(
        "--api-token",
        action="append",
        default=[],
        metavar="NAME:TOKEN",
        help="a token of the HTTP API and who has it; may be given several times (default: none is needed here)",
    )
    parser.add_argument("--version", action="version", version=f"aivista {_version()}")
    _add_commands(parser)
    return parser.parse_args(argv)


def _add_commands(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="instead of opening the studio")
    cli_space.add_commands(commands)
    gc = commands.add_parser(
        "gc",
        help="remove for good what was deleted 30 days ago, and files that nothing names",
        description="Remove for good what was deleted 30 days ago, and files that nothing names. Safe while a studio "
        "runs. Exit code 0: done; 1: something could not be removed, or a dry run found something; 2: it cannot run.",
    )
    gc.add_argument("--dry-run", action="store_true", help="tell what would be removed, and remove nothing")
    check = commands.add_parser(
        "check",
        help="look for damage in what is kept, and change nothing",
        description="Look for damage in what is kept, and change nothing: the database, every picture, the indexes. "
        "Exit code 0: all is well; 1: something is damaged or missing; 2: it cannot run.",
    )
    backup = commands.add_parser(
        "backup",
        help="back up the database, and verify the backup",
        description="Back up the database, verify the backup, and remove old ones: the newest three stay, one for each "
        "of the last seven days and one for each of the last four weeks. Safe while a studio runs, which does the same "
        "once a day. Exit code 0: done; 2: it cannot be done.",
    )
    backup.add_argument("--to", metavar="FOLDER", type=Path, help="another folder than backups in the studio's own")
    restore = commands.add_parser(
        "restore",
        help="list the backups, or go back to one",
        description="List the backups, or go back to one. Pictures that only the newer database knows are kept; that "
        "database is set aside. End the studio first. Exit code 0: done; 2: it cannot be done.",
    )
    restore.add_argument("name", nargs="?", help="the backup, as it is listed; without it they are listed")
    restore.add_argument("--from", dest="folder", metavar="FOLDER", type=Path, help="where the backups are")
    token = commands.add_parser(
        "token",
        help="make, list or remove tokens of the HTTP API",
        description="Make, list or remove tokens of the HTTP API. A new one is shown once; the studio keeps its hash. "
        "Exit code 0: done; 2: it cannot be done.",
    )
    token.add_argument("action", choices=("new", "list", "remove"))
    token.add_argument("name", nargs="?", help="who has it; what is made with it belongs to that name")
    for command in (gc, check, backup, restore, token, cli_mcp.add_command(commands)):
        # Before the command it is given to the studio: that one must not be overwritten by none here.
        command.add_argument("--home", metavar="FOLDER", default=argparse.SUPPRESS, help="where everything is kept")


def _version() -> str:
    try:
        return metadata.version("aivista")
    except metadata.PackageNotFoundError:
        return "0 (not installed)"


def _port(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: use a number from 1 to 65535")
    return int(text)


def _usable_home(flag: str | None) -> Path | None:
    """Return the folder of the flag, made and writable; None leaves it to the environment."""
    if flag is None:
        return None
    if not flag.strip():
        raise Unusable("--home is empty; name a folder.")
    return Path(os.path.expanduser(flag)).absolute()


def _prepare_home(home: Path) -> None:
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home):
            pass
    except (FileExistsError, NotADirectoryError):
        raise Unusable(f"the home folder {home} is a file; name a folder with --home.") from None
    except OSError as error:
        raise Unusable(f"the home folder {home} cannot be written ({error.strerror or error}).") from None


def _check_port(host: str, port: int) -> None:
    """Try to take the port, so that a port in use is known before the heavy imports."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError:
        raise Unusable(f"the host {host} is not an address of this machine.") from None
    with socket.socket(family, kind, protocol) as probe:
        if os.name == "posix":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except PermissionError:
            raise Unusable(f"port {port} needs more rights than yours; choose one above 1023 with --port.") from None
        except OSError as error:
            if "assign" in str(error).lower():
                raise Unusable(f"the host {host} is not an address of this machine.") from None
            raise Unusable(f"port {port} on {host} is in use; choose another one with --port.") from None


def _run(flags: argparse.Namespace, home: Path | None) -> int:
    from agent import Settings, SettingsError, catalogue_of

    try:
        settings = Settings.from_env(_environment(flags), home=home)
        catalogue_of(settings)
    except SettingsError as error:
        raise Unusable(str(error)) from None
    return open_studio(flags, settings)


def open_studio(flags: argparse.Namespace, settings: Settings, place: Place | None = None) -> int:
    """Serve the page until the process is told to end; return the exit code. `place` is the public place it serves.

    Raises Unusable when the home cannot be written, or the records cannot be opened.
    """
    from agent import AivistaError

    _prepare_log(settings)
    _prepare_home(settings.home)
    signals = _Signals()
    _listen_for_the_end(signals)
    transit = tempfile.mkdtemp(prefix="aivista-")
    try:
        _prepare_gradio(transit)
        code = _serve(flags, settings, signals, place)
    except AivistaError as error:
        raise Unusable(str(error)) from None
    finally:
        shutil.rmtree(transit, ignore_errors=True)
    _end_soon(code)
    return code


def _end_soon(code: int) -> None:
    """Have the process end even where a thread of it does not: Python would wait for a name that is looked up, or for a
    file that is decoded, as long as that takes. All is closed and on record by now."""

    def end() -> None:
        time.sleep(_THREADS_S)
        left = {thread for thread in threading.enumerate() if not thread.daemon} - {threading.main_thread()}
        names = ", ".join(thread.name for thread in left)
        logging.getLogger(__name__).warning("ended without waiting for %s", names)
        os._exit(code)

    threading.Thread(target=end, daemon=True).start()


def _keep_space(flags: argparse.Namespace) -> int:
    from webui.space.spacefile import SpaceProblem

    try:
        return cli_space.run(flags)
    except SpaceProblem as problem:
        raise Unusable(str(problem)) from None


def _environment(flags: argparse.Namespace) -> dict[str, str]:
    """Return the environment with the tokens that were given as flags."""
    tokens = [*filter(None, [os.environ.get("AIVISTA_API_TOKENS", "")]), *flags.api_token]
    return {**os.environ, "AIVISTA_API_TOKENS": ",".join(tokens)}


def _look_after_tokens(flags: argparse.Namespace, home: Path | None) -> int:
    from agent import AivistaError, Settings, SettingsError

    try:
        settings = Settings.from_env(os.environ, home=home)
    except SettingsError as error:
        raise Unusable(str(error)) from None
    from webui import cli_tokens

    _prepare_home(settings.home)
    try:
        return cli_tokens.look_after(settings.home, flags.action, flags.name)
    except (AivistaError, cli_tokens.TokenNameRefused) as error:
        raise Unusable(str(error)) from None


def _serve_mcp(flags: argparse.Namespace, home: Path | None) -> int:
    from agent import AivistaError, Settings, SettingsError, catalogue_of

    if flags.http is not None:
        _check_port(*flags.http)
    try:
        settings = Settings.from_env(_environment(flags), home=home)
        catalogue_of(settings)
    except SettingsError as error:
        raise Unusable(str(error)) from None
    _prepare_log(settings)
    _prepare_home(settings.home)
    try:
        return cli_mcp.serve(flags, settings)
    except (AivistaError, cli_mcp.McpProblem) as error:
        raise Unusable(str(error)) from None


def _keep_house(flags: argparse.Namespace, home: Path | None) -> int:
    from agent import AivistaError, Settings, SettingsError

    try:
        settings = Settings.from_env(os.environ, home=home)
    except SettingsError as error:
        raise Unusable(str(error)) from None
    _prepare_log(settings)
    from webui import cli_housekeeping

    if not settings.home.is_dir():
        raise Unusable(f"there is no folder {settings.home}; name the studio's with --home.")
    try:
        match flags.command:
            case "check":
                return cli_housekeeping.check(settings.home)
            case "backup":
                return cli_housekeeping.backup(settings.home, flags.to)
            case "restore":
                return cli_housekeeping.restore(settings.home, flags.folder, flags.name)
        return cli_housekeeping.gc(settings.home, is_dry_run=flags.dry_run)
    except AivistaError as error:
        raise Unusable(str(error)) from None


def _prepare_log(settings: Settings) -> None:
    """Send the log to the terminal, with no key in it, whoever writes to it."""
    from agent import RedactingFilter, secrets_of
    from webui.kept_key import KeptKey

    # The key that is kept may be another one by the next line of the log.
    secrets, kept = secrets_of(settings), KeptKey(settings.home)
    redacting = RedactingFilter(lambda: (*secrets, *filter(None, [kept.read()])))
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(redacting)
    # The server gives its loggers a handler of their own, later than this.
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        logging.getLogger(name).addFilter(redacting)


@dataclass(frozen=True)
class _Signals:
    """That the process was told to end, and that it was told so once more."""

    ended: threading.Event = field(default_factory=threading.Event)
    hurried: threading.Event = field(default_factory=threading.Event)


def _listen_for_the_end(signals: _Signals) -> None:
    def end(_number: int, _frame: FrameType | None) -> None:
        (signals.hurried if signals.ended.is_set() else signals.ended).set()

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), end)


def _prepare_gradio(transit: str) -> None:
    """Set what Gradio reads when it is imported: nothing leaves this machine, uploads pass through a private folder.

    That folder is not under the studio's home: Gradio would refuse to show an upload from a blocked folder. The working
    directory becomes an empty one, because Gradio serves files from there when a handler names them.
    """
    os.environ.update(
        GRADIO_ANALYTICS_ENABLED="False",
        GRADIO_TEMP_DIR=os.path.join(transit, "uploads"),
        HF_HUB_OFFLINE="1",
        HF_HUB_DISABLE_TELEMETRY="1",
    )
    for name in ("GRADIO_ALLOWED_PATHS", "GRADIO_LOCAL_DEV_MODE", "GRADIO_SHARE", "GRADIO_ROOT_PATH"):
        os.environ.pop(name, None)
    for name in ("NO_PROXY", "no_proxy"):
        # A proxy must not stand between Gradio's start-up check and our own port.
        os.environ[name] = ",".join(part for part in (os.environ.get(name), "127.0.0.1,localhost,::1") if part)
    for folder in ("uploads", "empty"):
        os.mkdir(os.path.join(transit, folder), 0o700)
    os.chdir(os.path.join(transit, "empty"))


def _import_gradio() -> None:
    """Import Gradio without the package `mcp`, which it would read for a server of its own that is never started here:
    half a second of every start."""
    if "mcp" in sys.modules:
        return
    # Python takes None for a module that cannot be imported.
    sys.modules["mcp"] = cast("ModuleType", None)
    try:
        import_module("gradio")
    finally:
        del sys.modules["mcp"]


@contextmanager
def _nothing_to_collect() -> Iterator[None]:
    """Look for no garbage while the program is loaded: hardly any is made, and each look is at all there is, a quarter
    of every start. What is there at the end of it stays, and is never looked at."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _serve(flags: argparse.Namespace, settings: Settings, signals: _Signals, place: Place | None) -> int:
    is_space = place is not None
    with _nothing_to_collect():
        _import_gradio()
        from webui.app import LaunchOptions, Server

        place = place or cli_visitors.place_of(flags, settings)
        password = cli_visitors.password_of(flags)
        names = cli_visitors.names_of(flags)
        options = LaunchOptions(
            flags.host, flags.port, flags.lang, flags.share, place, password, names, flags.root_path
        )
        server = Server(settings, options)
    try:
        url = server.start()
        print(f"Aivista is open at {url}", flush=True)
        if flags.share:
            _share(server)
        if place is not None and not is_space:
            print(f"Open it as yourself, with all that is yours: {server.operator_url}", flush=True)
        if password != (flags.password or ""):
            print(f"Visitors sign in with the password {password}", flush=True)
        if sys.stdout.isatty() and _has_display():
            webbrowser.open(url if place is None else server.operator_url)
        signals.ended.wait()
    finally:
        server.close(signals.hurried)
    return 0


def _share(server: Server) -> None:
    server.share()
    if server.share_failure:
        print(f"aivista: no share link could be had ({server.share_failure}); the page is local only.", file=sys.stderr)
    else:
        print(f"Shared at {server.share_url}", flush=True)


def _has_display() -> bool:
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
