"""The types that a checkpoint of a turn may hold: what the state is made of, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from agent import conversation, errors, events, library, messages, pictures, requests, settings
from agent.imaging import arguments, contract
from agent.providers import catalogue
from agent.tools import trust
from agent.workflow import state

_MODULES = (
    *(conversation, errors, events, library, messages, pictures, requests, settings),
    *(arguments, contract, catalogue, trust, state),
)


def _types() -> Iterator[type]:
    for module in _MODULES:
        for one in vars(module).values():
            if isinstance(one, type) and one.__module__ == module.__name__:
                yield one


VALUES: tuple[type, ...] = tuple(_types())
