"""An OpenID Connect issuer of the tests' own, as strict as Hugging Face's."""

from __future__ import annotations

from tests.issuer_server.server import CLIENT_ID, CLIENT_SECRET, IssuerServer

__all__ = ["CLIENT_ID", "CLIENT_SECRET", "IssuerServer"]
