"""The programs around a studio: the flags of its command, and what a page's visitor is known by."""

from __future__ import annotations

from webui.cli.parser import read_flags
from webui.http.hosts import ALIVE
from webui.http.sessions import COOKIE
