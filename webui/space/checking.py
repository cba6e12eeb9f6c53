"""The check of a Space: build it, install it as a Space would, start it with a Space's variables, and use it once."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from webui.space.building import Project, build
from webui.space.driving import Fault, drive
from webui.space.requirements import LOCK, added_by_gradio_sdk, read_lock
from webui.space.spacefile import Spacefile, SpaceProblem
from webui.space.starting import EVERYWHERE

_INSTALL_S = 1800
_START_S = 120
_END_S = 30
_SPACE_ID = "aivista-check/studio"
HOST = "aivista-check-studio.hf.space"


@dataclass(frozen=True)
class Steps:
    """Says each step of the check with its seconds, and remembers whether all went well."""

    say: Callable[[str], None]

    def __call__(self, name: str, work: Callable[[], str]) -> bool:
        started = time.monotonic()
        try:
            said = work()
        except Fault as fault:
            self.say(f"{name}: {fault}")
            return False
        self.say(f"{name}: {said or 'fine'} ({time.monotonic() - started:.1f} s)")
        return True


def check(project: Project, folder: Path, *, is_installed_afresh: bool, say: Callable[[str], None]) -> bool:
    """Check the Space in a folder of its own; return whether all is well. Each step says how it went.

    Without `is_installed_afresh` the packages of this very environment serve.
    """
    built = build(project, folder / "space", os.environ)
    say(f"build: {len(built.files)} files, {built.size_bytes / 1e6:.1f} MB")
    step = Steps(say)
    python = Path(sys.executable)
    if is_installed_afresh:
        # Sought before anything takes long.
        maker = _python_of(project.spacefile)
        python = folder / "environment" / ("Scripts" if os.name == "nt" else "bin") / "python"
        gradio = next(
            pin.version for pin in read_lock((project.root / LOCK).read_text("utf-8")) if pin.name == "gradio"
        )
        if not step("install", lambda: _install(project.spacefile, maker, python, built.folder, gradio)):
            return False
    with SpaceProcess(python, built.folder, project.spacefile, folder) as space:
        return (
            step("start", space.wait)
            and step("use", lambda: drive(space.url, HOST, is_kept=False))
            and step("end", space.end)
        )


def _python_of(spacefile: Spacefile) -> str:
    """Return a Python of the Space's minor version. Raises SpaceProblem when this machine has none."""
    wanted = Version(spacefile.runs_on.python).release[:2]
    if sys.version_info[:2] == wanted:
        return sys.executable
    name = f"python{wanted[0]}.{wanted[1]}"
    if (found := shutil.which(name)) is None:
        raise SpaceProblem(f"the Space runs on Python {spacefile.runs_on.python}, and there is no {name} here.")
    return found


def _install(spacefile: Spacefile, maker: str, python: Path, folder: Path, gradio: str) -> str:
    _run([maker, "-m", "venv", "--clear", str(python.parents[1])], "the environment cannot be made")
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    added = added_by_gradio_sdk(gradio) if spacefile.runs_on.sdk == "gradio" else []
    wanted = ["-r", str(folder / "requirements.txt"), *added]
    _run([*pip, "install", "--quiet", *wanted], "requirements.txt cannot be installed")
    _run([*pip, "check"], "what was installed does not fit together")
    listed = _run([*pip, "list", "--format=freeze"], "pip cannot list what is there")
    return f"{len(listed.splitlines())} packages"


def _run(command: Sequence[str], otherwise: str) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_S, check=False)
    if ended.returncode != 0:
        said = (ended.stderr.strip() or ended.stdout.strip()).splitlines()
        raise Fault(f"{otherwise}: {said[-1] if said else f'exit code {ended.returncode}'}")
    return ended.stdout


class SpaceProcess:
    """`app.py` with the variables of a Space, for as long as a `with` block lasts.

    Its HOME cannot be written where that can be had, as on a Space whose image belongs to another user.
    """

    def __init__(self, python: Path, space: Path, spacefile: Spacefile, folder: Path) -> None:
        self._command = [str(python), "app.py"]
        self._space = space
        self._spacefile = spacefile
        self._folder = folder
        self._port = _free_port()

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> SpaceProcess:
        self._home = self._folder / "home"
        self._home.mkdir(exist_ok=True)
        self._home.chmod(0o500)
        self._log = (self._folder / "log").open("w+", encoding="utf-8")
        environment = space_environment(self._spacefile, self._home, self._port)
        self._process = subprocess.Popen(
            self._command, cwd=self._space, env=environment, stdout=self._log, stderr=subprocess.STDOUT
        )
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._log.close()
        self._home.chmod(0o700)

    @property
    def said(self) -> str:
        """What the process wrote so far."""
        self._log.seek(0)
        return self._log.read()

    def wait(self) -> str:
        """Wait until the port is taken, as Hugging Face does. Raises Fault when the program ends before."""
        until = time.monotonic() + _START_S
        while time.monotonic() < until:
            if self._process.poll() is not None:
                lines = self.said.strip().splitlines()
                raise Fault(f"app.py ended: {lines[-1] if lines else f'exit code {self._process.returncode}'}")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    return ""
            time.sleep(0.05)
        raise Fault(f"app.py took more than {_START_S} s")

    def end(self) -> str:
        """End it as Hugging Face does. Raises Fault when it does not end well."""
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            raise Fault("it does not end when it is told to") from None
        if code != 0 or "Traceback" in self.said:
            raise Fault(f"it ended with exit code {code}: {self.said.strip().splitlines()[-1:]}")
        return ""


def space_environment(spacefile: Spacefile, home: Path, port: int) -> dict[str, str]:
    """Return the variables that a Space runs with, without secrets: they are the Space's own."""
    owner, _, name = _SPACE_ID.partition("/")
    kept = {key: os.environ[key] for key in ("PATH", "LANG", "TMPDIR", "SYSTEMROOT") if key in os.environ}
    common = {
        "HOME": str(home),
        "PYTHONUNBUFFERED": "1",
        "SPACE_ID": _SPACE_ID,
        "SPACE_HOST": HOST,
        "SPACE_AUTHOR_NAME": owner,
        "SPACE_REPO_NAME": name,
        "SPACE_TITLE": spacefile.title,
        "CPU_CORES": "2",
        "MEMORY": "16Gi",
    }
    if spacefile.runs_on.sdk == "docker":
        by_sdk = {"PORT": str(port)}
    else:
        by_sdk = {
            "SYSTEM": "spaces",
            "GRADIO_ALLOW_FLAGGING": "never",
            "GRADIO_NUM_PORTS": "1",
            "GRADIO_SERVER_NAME": EVERYWHERE,
            "GRADIO_SERVER_PORT": str(port),
            "GRADIO_THEME": "huggingface",
        }
    return {**kept, **spacefile.variables, **common, **by_sdk}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
