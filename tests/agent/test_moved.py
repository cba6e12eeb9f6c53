"""Modules of earlier versions: what checkpoints and scripts name in them is found where it stands now."""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path
from typing import Any

import pytest

from agent import (
    AskedItem,
    AskedKind,
    ConsentCard,
    Decision,
    ErrorCode,
    GalleryQuery,
    MatchKind,
    Plan,
    PlanCard,
    Review,
    Settings,
    Studio,
    StyleDraft,
    TurnRequest,
)
from tests.adapters.records import MOVED, kept_of_an_earlier_version

PLAN = Plan(call=0, prompt="a fox", model="flash", model_label="Flash", aspect_ratio="1:1")


OF_BEFORE = (
    ("agent.components", PlanCard(plans=(PLAN,), state="run")),
    ("agent.components", ConsentCard(asks=())),
    ("agent.plans", PLAN),
    ("agent.plans", Decision(run=True)),
    ("agent.reviews", Review(score=0.5)),
    ("agent.reviews", AskedItem(quote="a fox", kind=AskedKind.SUBJECT)),
    ("agent.error_codes", ErrorCode.DISK_FULL),
    ("agent.storage.style_values", MatchKind.ALIAS),
)


@pytest.mark.parametrize(("module", "value"), OF_BEFORE)
async def test_what_a_checkpoint_of_an_earlier_version_holds_is_read(module: str, value: Any, tmp_path: Path) -> None:
    kept = await kept_of_an_earlier_version(tmp_path, value, module)
    assert (kept, type(kept)) == (value, type(value))


@pytest.mark.parametrize(
    ("module", "name", "now"),
    [
        ("agent.components", "PlanCard", PlanCard),
        ("agent.plans", "Plan", Plan),
        ("agent.plans", "Decision", Decision),
        ("agent.error_codes", "ErrorCode", ErrorCode),
        ("agent.storage.style_values", "StyleDraft", StyleDraft),
    ],
)
def test_a_script_of_an_earlier_version_goes_on_and_is_warned(module: str, name: str, now: type) -> None:
    scope: dict[str, Any] = {}
    with pytest.warns(DeprecationWarning, match=rf"{module}\.{name} is {now.__module__}\.{name} now") as warned:
        exec(f"from {module} import {name}", scope)
    assert scope[name] is now
    assert [one.filename for one in warned] == ["<string>"]


def test_every_module_of_before_is_found_and_has_no_name_that_it_never_had() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for module in MOVED:
            old = importlib.import_module(module)
            assert not hasattr(old, "nothing")
            assert not hasattr(old, "__path__")


async def test_a_method_that_moved_is_found_by_its_old_name_which_says_where_it_is(tmp_path: Path) -> None:
    async with Studio(Settings(home=tmp_path)) as studio:
        script: Any = studio
        with pytest.warns(DeprecationWarning, match=r"use `studio\.conversations\.create`"):
            conversation = await script.new_conversation()
        async for _ in studio.run_turn(conversation.id, TurnRequest(text="draw a fox")):
            pass
        with pytest.warns(DeprecationWarning, match=r"use `studio\.conversations\.list`"):
            listed = await studio.conversations()
        with pytest.warns(DeprecationWarning, match=r"use `studio\.gallery\.page`"):
            page = await script.gallery_page("local", GalleryQuery())
        assert ([one.id for one in listed], len(page.items)) == ([conversation.id], 1)
        with pytest.raises(AttributeError, match="no_such_thing"):
            assert script.no_such_thing
        for name in (
            *("conversation", "rename_conversation", "trash", "is_running", "request_of", "report", "estimate"),
            *("keep_only", "workspace", "fuller_wish", "keep_house"),
        ):
            with pytest.warns(DeprecationWarning, match=r"use `studio\."):
                assert callable(getattr(studio, name))
