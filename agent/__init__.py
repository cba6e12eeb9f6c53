"""Aivista without a screen. Everything above it imports its names from here; `__init__.pyi` lists them.

A module is loaded when one of its names is first asked for: values stay cheap to import.
"""

from __future__ import annotations

import logging
import os

import lazy_loader

from agent import moved
from agent.proxies import mend_proxies

# Here, because whoever reads the proxies may be imported next.
for _sentence in mend_proxies(os.environ):
    logging.getLogger(__name__).warning("aivista: %s", _sentence)

# LangGraph runs nothing where one of these stands, which LangChain has given up.
for _name in ("LANGCHAIN_TRACING", "LANGCHAIN_HANDLER"):
    os.environ.pop(_name, None)

moved.keep_old_modules()

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
