"""What is left to a child once it has given up the rest, asked from its inside: as a script that broke out would."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.adapters.sandbox import FOLDER

PROBE = """
import errno, json, mmap, os, resource, signal, socket, sys
sys.path.append(sys.argv[1])
import child, seccomp

ours = os.getpid()
inherited = os.dup(1)
attempts = {
    "open": lambda: os.open("/etc/passwd", os.O_RDONLY),
    "create": lambda: os.open("/tmp/left-behind", os.O_CREAT | os.O_WRONLY),
    "listdir": lambda: os.listdir("/"),
    "stat": lambda: os.stat("/"),
    "unlink": lambda: os.unlink("/tmp/nothing"),
    "socket": lambda: socket.socket(),
    "socket pair": lambda: socket.socketpair(),
    "pipe": lambda: os.pipe(),
    "fork": lambda: os.fork(),
    "exec": lambda: os.execv("/bin/true", ["true"]),
    "kill": lambda: os.kill(ours, signal.SIGTERM),
    "kill the parent": lambda: os.kill(os.getppid(), 0),
    "read": lambda: os.read(0, 1),
    "write elsewhere": lambda: os.write(inherited, b"x"),
    "write to stderr": lambda: os.write(2, b"x"),
    "chdir": lambda: os.chdir("/"),
    "change its priority": lambda: os.nice(1),
    "more memory": lambda: resource.setrlimit(resource.RLIMIT_AS, (-1, -1)),
    "machine code": lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC),
    "plain memory": lambda: mmap.mmap(-1, 4096).close(),
    "random bytes": lambda: os.urandom(8),
}
child.protect(1.0, 64 << 20)
why = seccomp.install() if sys.argv[2] == "filtered" else "not asked for"
outcome = {}
for name in sys.argv[3:] or attempts:
    attempt = attempts[name]
    try:
        attempt()
        outcome[name] = "done"
    except OSError as error:
        outcome[name] = errno.errorcode[error.errno]
    except ValueError as error:
        outcome[name] = str(error)
os.write(1, json.dumps({"why": why, "outcome": outcome}).encode())
os._exit(0)
"""


def said(code: str, *arguments: str) -> str:
    """Return what a bare Python says that runs this code beside the child's own."""
    command = [sys.executable, "-I", "-S", "-c", code, str(FOLDER), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={}, timeout=60, check=True).stdout.strip()


def probed(how: str, *attempts: str) -> tuple[str, dict[str, str]]:
    """Return why there is no filter, and how these attempts went, or all of them."""
    told = json.loads(said(PROBE, how, *attempts))
    return told["why"], told["outcome"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="seccomp is of Linux")
def test_under_seccomp_it_can_compute_and_answer_and_nothing_else() -> None:
    why, outcome = probed("filtered")
    if why:
        pytest.skip(why)
    allowed = {name for name, how in outcome.items() if how == "done"}
    assert allowed == {"plain memory", "random bytes"}
    refused = {name: how for name, how in outcome.items() if how not in {"done", "EPERM"}}
    # Python says this one in words of its own.
    assert refused.keys() <= {"more memory"}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
def test_without_seccomp_its_limits_still_keep_it_from_files_and_the_network() -> None:
    attempts = ("open", "create", "listdir", "socket", "socket pair", "pipe")
    _, outcome = probed("unfiltered", *attempts)
    assert outcome == dict.fromkeys(attempts, "EMFILE")


def test_it_imports_nothing_of_the_project_and_nothing_slow() -> None:
    code = (
        "import sys; sys.path.append(sys.argv[1]); import child, seccomp, json; print(json.dumps(sorted(sys.modules)))"
    )
    loaded = set(json.loads(said(code)))
    assert not {name for name in loaded if name.partition(".")[0] in {"agent", "webui", "pydantic"}}
    assert not loaded & {"asyncio", "dataclasses", "inspect", "subprocess", "threading", "typing"}


def test_a_kernel_without_filters_is_told_and_is_no_error() -> None:
    code = (
        "import os, sys; sys.path.append(sys.argv[1]); import seccomp;"
        "os.uname = lambda: type('Name', (), {'machine': 'pdp11'}); print(seccomp.install())"
    )
    assert said(code) == (
        "no filter is known for pdp11" if sys.platform.startswith("linux") else f"{sys.platform} has no seccomp"
    )
