"""Names of servers' tools: legal everywhere, each its own, the same whoever else is there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.mcp import offered_name
from tests.wire_server.tool_rules import _NAME

OURS = frozenset({"view_image", "web_search"})


def test_a_plain_name_follows_the_servers_and_another_one_is_made_legal_and_never_one_of_ours() -> None:
    assert offered_name("files", "read_file", OURS) == "files_read_file"
    assert offered_name("my-files", "read_file", OURS) == "my_files_read_file"
    for tool in ("read.file", "read-file", "读", "x" * 80, "", "a b"):
        name = offered_name("files", tool, OURS)
        assert _NAME.fullmatch(name)
        assert name.startswith("files")
        assert name != offered_name("files", f"{tool}.", OURS)
    assert offered_name("view", "image", OURS) not in OURS
    assert offered_name("web", "search", OURS).startswith("web_search_")


@given(st.text(max_size=100), st.text(max_size=100))
def test_no_two_tools_of_a_server_have_one_name(one: str, other: str) -> None:
    names = offered_name("s", one, OURS), offered_name("s", other, OURS)
    assert (names[0] == names[1]) is (one == other)
    assert all(_NAME.fullmatch(name) for name in names)
