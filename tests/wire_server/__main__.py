"""`python -m tests.wire_server --port 0` prints the server's URL and serves until it is told to end."""

from __future__ import annotations

import argparse
import importlib
import signal

from tests.wire_server.server import Brain, GeminiServer


def main() -> None:
    """Serve until Ctrl+C or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m tests.wire_server")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--sizes-only", action="store_true", help="keep the sizes of requests, not their bodies")
    parser.add_argument("--text-brain", type=_brain, metavar="module:function")
    parser.add_argument("--image-brain", type=_brain, metavar="module:function")
    given = parser.parse_args()
    # Waited for, not handled: a handler can be interrupted by the next signal, and threads inherit what is blocked.
    endings = (signal.SIGINT, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_BLOCK, endings)
    with GeminiServer(
        port=given.port, keeps_bodies=not given.sizes_only, text=given.text_brain, image=given.image_brain
    ) as server:
        print(server.url, flush=True)
        signal.sigwait(endings)


def _brain(name: str) -> Brain:
    module, _, function = name.partition(":")
    brain: Brain = getattr(importlib.import_module(module), function)
    return brain


if __name__ == "__main__":
    main()
