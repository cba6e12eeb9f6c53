"""The process that has done a studio's imports: it forks a studio for every request, or a program that uses one."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import gc
import json
import os
import select
import signal
import socket
import struct
import sys
import threading
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NoReturn

from webui.cli.serve import import_gradio

_REQUEST_BYTES = 1 << 18
# A process's id, then its exit code.
NUMBER = struct.Struct("i")
# At this signal a fork writes the stack of each of its threads to its standard error.
STACKS = signal.SIGQUIT
# What a studio imports when it is first asked for a picture, a file or a style. LanceDB itself is not among it: it
# starts threads, and a fork has none of them. What it stands on takes longer, and starts none that a fork would miss.
_AT_THE_FIRST_TURN = (
    *("agent.workflow.scheduler", "agent.providers.gemini", "agent.storage.conversations", "agent.storage.disk_cache"),
    *("agent.adjusting.toning", "agent.mcp.servers", "agent.storage.housekeeping", "agent.storage.gallery"),
    *("PIL.ImageCms", "markdown_it", "uvicorn", "pandas", "pyarrow.dataset", "lance_namespace"),
)


def main(requests: int) -> int:
    """Import what a studio needs, then fork one for every request that comes in on a socket, until that is closed.

    In a fork it is the command that runs, or the code that was sent instead, and its exit code that it ends with.
    """
    _import_all()
    request = _Forks(socket.socket(fileno=requests)).serve()
    if request is not None:
        _end(_run(request))
    return 0


def _run(request: Mapping[str, Any]) -> int:
    arguments: list[str] = request["arguments"]
    if code := request["code"]:
        sys.argv = ["-c", *arguments]
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
        return 0
    from webui.cli import main as command

    sys.argv = ["webui", *arguments]
    return command(arguments)


def _end(code: int) -> NoReturn:
    """End as Python does: once its threads have, and what is to be done at the end is done. Taking all that was
    imported apart takes a third of a second more, of a processor."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _import_all() -> None:
    # A look for garbage is at all there is, and nothing of what is imported is any.
    gc.disable()
    import_gradio()
    import_module("webui.app")
    for name in _AT_THE_FIRST_TURN:
        import_module(name)
    from agent.providers.sketch.intent import understand
    from agent.storage.styles import find_curated
    from webui.shell.templates import environment

    # What is read once for each process, all styles above all: most of what a first turn takes.
    find_curated("a fox")
    understand("draw a red fox", False)
    for name in environment().list_templates(["html"]):
        environment().get_template(name)
    # What a fork never looks at is never copied.
    gc.freeze()
    gc.enable()


class _Forks:
    """The studios that run, each with the pipe on which its end is told."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._running: dict[int, int] = {}
        self._woken, self._wakes = os.pipe()
        os.set_blocking(self._wakes, False)

    def serve(self) -> Mapping[str, Any] | None:
        """Return what was asked in a fork, None in the process itself when nobody can ask any more."""
        # A handler of Python's own is needed for the pipe to be written to.
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._wakes)
        while True:
            asked = self._requests.fileno()
            ready, _, _ = select.select([asked, self._woken], [], [])
            if self._woken in ready:
                os.read(self._woken, 4096)
                self._tell_ends()
            if asked in ready:
                message, handles, _, _ = socket.recv_fds(self._requests, _REQUEST_BYTES, 4)
                if not message:
                    return None
                pid = os.fork()
                if pid == 0:
                    request: dict[str, Any] = json.loads(message)
                    self._begin(request, *handles)
                    return request
                self._keep(pid, *handles)

    def _keep(self, pid: int, stdin: int, stdout: int, errors: int, status: int) -> None:
        for handle in (stdin, stdout, errors):
            os.close(handle)
        self._running[pid] = status
        os.write(status, NUMBER.pack(pid))

    def _tell_ends(self) -> None:
        while self._running:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            handle = self._running.pop(pid)
            # Whoever asked may be gone.
            with contextlib.suppress(BrokenPipeError):
                os.write(handle, NUMBER.pack(os.waitstatus_to_exitcode(status)))
            os.close(handle)

    def _begin(self, request: Mapping[str, Any], stdin: int, stdout: int, errors: int, status: int) -> None:
        """Make the fork what a process of its own would be."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        os.dup2(errors, 2)
        # For who waits for its end in vain.
        faulthandler.register(STACKS)
        self._requests.close()
        for handle in (stdin, stdout, errors, status, self._woken, self._wakes, *self._running.values()):
            os.close(handle)
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
