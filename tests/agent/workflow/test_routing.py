"""Which node serves which call, and when the answers go into the history."""

from __future__ import annotations

from agent.messages import PromptMessage, Role, ToolCallPart, ToolResultPart
from agent.workflow.routing import next_target, settle
from agent.workflow.state import first_progress
from tests.support.cases import each_case


def call(name: str) -> ToolCallPart:
    return ToolCallPart(name=name)


def result(name: str) -> ToolResultPart:
    return ToolResultPart(name=name)


@each_case(
    ("names", "answered", "target"),
    [
        ([], [], "presenter"),
        (["generate_image"], [], "retriever"),
        (["web_search"], [], "searcher"),
        (["get_history_image"], [], "tools"),
        (["never_heard_of"], [], "tools"),
        (["generate_image", "web_search", "get_history_image"], [], "searcher"),
        (["generate_image", "web_search", "get_history_image"], [1], "tools"),
        (["generate_image", "web_search", "get_history_image"], [1, 2], "retriever"),
        (["web_search"], [0], "planner"),
    ],
)
def test_searches_come_first_then_tools_and_pictures_last(names: list[str], answered: list[int], target: str) -> None:
    assert next_target([call(name) for name in names], answered) == target


def test_answers_go_back_together_and_in_the_order_of_the_calls() -> None:
    state = first_progress(PromptMessage(role=Role.PROMPT, parts=()))
    state["calls"] = [call("a"), call("web_search")]
    target, update = settle(state, {1: result("web_search")})
    assert target == "tools"
    assert "messages" not in update
    state["answers"] = update["answers"]
    target, update = settle(state, {0: result("a")})
    assert target == "planner"
    [message] = update["messages"]
    assert message.role is Role.TOOL
    assert message.parts == (result("a"), result("web_search"))
    assert update["calls"] == []
