"""A strict Hub on this machine: the part of Hugging Face's HTTP API that a Space is pushed through."""

from __future__ import annotations

from tests.hub_server.server import HubServer, Space

__all__ = ["HubServer", "Space"]
