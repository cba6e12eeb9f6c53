"""`aivista token`: who may use the HTTP API, told at the terminal."""

from __future__ import annotations

from pathlib import Path

from webui.api.auth import TokenFile, TokenNameRefused

__all__ = ["TokenNameRefused", "look_after"]


def look_after(home: Path, action: str, name: str | None) -> int:
    """Make, list or remove tokens; return the exit code. A studio that runs knows of it at once.

    Raises TokenNameRefused, StorageFailure.
    """
    file = TokenFile(home)
    if action == "list":
        for one in file.hashes():
            print(one)
        return 0
    if name is None:
        raise TokenNameRefused(f"name whose token it is: aivista token {action} NAME")
    if action == "new":
        print(file.new(name))
        return 0
    if not file.remove(name):
        raise TokenNameRefused(f"there is no token named {name}")
    print(f"The token of {name} is removed.")
    return 0
