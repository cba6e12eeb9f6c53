"""How long until the page is served, beside a bare Gradio page, each in a fresh process and in turn."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from tests.bench.measuring import Figure, compared

_BARE = """
import sys, gradio as gr
with gr.Blocks(analytics_enabled=False) as demo:
    gr.Chatbot(); gr.MultimodalTextbox(); gr.Dropdown(["a"]); gr.Dropdown(["b"]); gr.Checkbox()
demo.launch(server_port=int(sys.argv[1]), quiet=True)
"""
_PATIENCE_S = 120


def start_figure(runs: int) -> Figure:
    """Return the seconds from the start of the process to the first answer of the page."""
    bare, ours = [], []
    for number in range(runs + 1):
        one = _seconds_to_page([sys.executable, "-c", _BARE])
        other = _seconds_to_page([sys.executable, "-m", "webui", "--port"])
        if number:
            bare.append(one)
            ours.append(other)
    return compared("start to the first page served", bare, ours, "≤ 1.2x", 1, " s")


def _seconds_to_page(command: list[str]) -> float:
    port = _free_port()
    with tempfile.TemporaryDirectory() as home:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")},
            "AIVISTA_HOME": home,
            "GRADIO_ANALYTICS_ENABLED": "False",
            "HF_HUB_OFFLINE": "1",
        }
        started_s = time.perf_counter()
        quiet = subprocess.DEVNULL
        process = subprocess.Popen([*command, str(port)], env=environment, stdout=quiet, stderr=quiet)
        try:
            _wait_for(f"http://127.0.0.1:{port}/", process)
            return time.perf_counter() - started_s
        finally:
            process.terminate()
            process.wait(10)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline_s and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5) as page:
                page.read()
            return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.02)
    raise RuntimeError(f"no page at {url}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
