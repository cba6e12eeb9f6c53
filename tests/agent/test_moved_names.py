"""Scripts of before: what `Studio` could do stands on its parts now, and is found by its old name as well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent import GalleryQuery, Settings, Studio, TurnRequest


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
