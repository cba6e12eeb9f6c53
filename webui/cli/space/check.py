"""Checks a built Space: starts it with a Space's variables, uses it once over HTTP, and ends it as Hugging Face
does."""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx2
from PIL import Image

from webui.cli.parser import CommandFailed
from webui.cli.space.build import BuiltSpace
from webui.cli.space.run import EMBEDDERS, EVERYWHERE
from webui.cli.space.spacefile import Spacefile

_START_S = 120
_ANSWER_S = 60
_END_S = 30
_PROMPT = "Draw a red fox in the snow, watercolour"
_OWNER, _NAME = "aivista-check", "studio"
_HOST = f"{_OWNER}-{_NAME}.hf.space"


def check(built: BuiltSpace, folder: Path) -> bool:
    """Start a built Space in this environment, use it once and end it; return whether all is well. Each step is
    printed with its duration. `folder` holds its data and its HOME."""
    home, log = folder / "home", folder / "log"
    # On a Space the image belongs to another user, so that HOME is not writable.
    home.mkdir(mode=0o500)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "app.py"],
            cwd=built.folder,
            env=space_environment(built.spacefile, home, port),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    steps = {
        "start": partial(_wait, process, port, log),
        "use": partial(_use, f"http://127.0.0.1:{port}"),
        "end": partial(_end, process, home, log),
    }
    try:
        for name, step in steps.items():
            started = time.monotonic()
            done = step()
            print(f"{name}: {done} ({time.monotonic() - started:.1f} s)", flush=True)
    except CommandFailed as fault:
        print(f"{name}: {fault}", flush=True)
        return False
    finally:
        process.kill()
        process.wait()
    return True


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> str:
    """Wait until the port is open, as Hugging Face does. Raises CommandFailed when it never is."""
    until = time.monotonic() + _START_S
    while time.monotonic() < until:
        if (code := process.poll()) is not None:
            raise CommandFailed(f"app.py ended: {_last_line(log) or f'exit code {code}'}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return "fine"
        time.sleep(0.05)
    raise CommandFailed(f"app.py took more than {_START_S} s")


def _use(url: str) -> str:
    """Request the page as Hugging Face's proxy does, be refused as a stranger, and have a picture painted; return
    what was done. Raises CommandFailed at the first unexpected answer."""
    proxied = {"Host": _HOST, "X-Forwarded-Proto": "https", "X-Forwarded-Host": _HOST}
    page = httpx2.get(url, headers=proxied, timeout=_ANSWER_S)
    _require(page.status_code == 200, f"the page answers with {page.status_code}")
    for mark in ("HttpOnly", "SameSite=None", "Secure", "Partitioned"):
        _require(mark in page.headers.get("set-cookie", ""), f"the cookie is not marked {mark}")
    policy = page.headers.get("content-security-policy", "")
    _require(all(site in policy for site in EMBEDDERS), "Hugging Face may not show the page inside of its own")
    _require("http://127.0.0.1" not in page.text, "the page names an address of this machine")
    status = httpx2.get(url, headers={"Host": "elsewhere.example"}, timeout=_ANSWER_S).status_code
    _require(status == 403, f"a foreign host name is answered with {status}")
    gradio_client: Any = import_module("gradio_client")
    client = gradio_client.Client(url, verbose=False)
    try:
        answer = client.predict(message={"text": _PROMPT, "files": []}, api_name="/chat")
    finally:
        client.close()
    _require(bool(answer["done"]) and not answer["error"], f"the turn failed: {answer['error']}")
    _require(len(answer["pictures"]) == 1, f"{len(answer['pictures'])} pictures came instead of one")
    got = httpx2.get(answer["pictures"][0]["url"], timeout=_ANSWER_S)
    _require(got.status_code == 200, f"the picture's link answers with {got.status_code}")
    with Image.open(io.BytesIO(got.content)) as picture:
        picture.load()
        return f"the page, a stranger, a picture of {picture.width} × {picture.height} pixels"


def _end(process: subprocess.Popen[bytes], home: Path, log: Path) -> str:
    """End the process as Hugging Face does. Raises CommandFailed when it does not end well, or wrote to HOME."""
    process.send_signal(signal.SIGTERM)
    try:
        code = process.wait(_END_S)
    except subprocess.TimeoutExpired:
        raise CommandFailed("it does not end when it is told to") from None
    is_quiet = "Traceback" not in log.read_text("utf-8")
    _require(code == 0 and is_quiet, f"it ended with exit code {code}: {_last_line(log)}")
    _require(not any(home.iterdir()), "it writes to HOME, which cannot be written on a Space")
    return "fine"


def _last_line(log: Path) -> str:
    return (log.read_text("utf-8").strip().splitlines() or [""])[-1]


def _require(is_so: bool, otherwise: str) -> None:
    if not is_so:
        raise CommandFailed(otherwise)


def space_environment(spacefile: Spacefile, home: Path, port: int) -> dict[str, str]:
    """Return the variables of a Space without its secrets, which belong to the Space."""
    kept = {key: os.environ[key] for key in ("PATH", "LANG", "TMPDIR", "SYSTEMROOT") if key in os.environ}
    common = {
        "HOME": str(home),
        "PYTHONUNBUFFERED": "1",
        "SPACE_ID": f"{_OWNER}/{_NAME}",
        "SPACE_HOST": _HOST,
        "SPACE_AUTHOR_NAME": _OWNER,
        "SPACE_REPO_NAME": _NAME,
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
