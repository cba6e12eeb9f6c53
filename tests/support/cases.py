"""Many cases of one claim as one test: it goes through all of them, and names each that is wrong."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any

import pytest

# What `pytest.param` returns.
ParameterSet = type(pytest.param())
# Characters of a value that is told of a case.
_LONGEST = 80


def each_case(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Have a test called for each of the cases, as by `pytest.mark.parametrize`, within one run of its fixtures.

    Use it where a case changes nothing that the next one sees. A second one above it takes every combination.
    """
    called = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else names
    told = list(cases)
    assert told, "there is no case"

    def decorate(test: Callable[..., Any]) -> Any:
        within = getattr(test, "all_cases", [{}])
        every = [one | inner for one in _named(called, told) for inner in within]
        test = getattr(test, "of_one_case", test)

        def within_case(subtests: pytest.Subtests, case: dict[str, Any]) -> AbstractContextManager[None]:
            return subtests.test(**{name: _short(value) for name, value in case.items()})

        @wraps(test)
        def run(subtests: pytest.Subtests, **fixtures: Any) -> None:
            for case in every:
                with within_case(subtests, case):
                    test(**case, **fixtures)

        @wraps(test)
        async def run_async(subtests: pytest.Subtests, **fixtures: Any) -> None:
            for case in every:
                with within_case(subtests, case):
                    await test(**case, **fixtures)

        made: Any = run_async if inspect.iscoroutinefunction(test) else run
        parameters = [one for one in inspect.signature(test).parameters.values() if one.name not in every[0]]
        asked = inspect.Parameter("subtests", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        made.__signature__ = inspect.Signature([asked, *parameters])
        made.all_cases, made.of_one_case = every, test
        return made

    return decorate


def _named(names: tuple[str, ...], cases: list[Any]) -> Iterator[dict[str, Any]]:
    for case in cases:
        # Cases with a name of their own, of which the name is dropped: what differs is told.
        values = case.values if isinstance(case, ParameterSet) else case if len(names) > 1 else (case,)
        yield dict(zip(names, values, strict=True))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
