"""What a turn can cost at most, reckoned before it is sent from all that is known then."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from agent.conversation import Conversation
from agent.imaging.contract import declaration
from agent.prompts import prompt
from agent.providers.catalogue import Catalogue
from agent.settings import TurnSettings
from agent.spending import Estimate, estimate
from agent.tools.base import Tool
from agent.worst_case import declared_tokens, message_tokens

# An earlier picture stands in the history as a line of text, and in the listing of all pictures as another one.
_LINE_TOKENS = 60
# As many messages as the window holds, and no turn without one.
_MOST_TURNS = _MOST_MESSAGES = 50
# The functions that are no tool, and all tools of the studio where nobody has loaded them yet.
_SEARCH_TOKENS, _TOOLS_TOKENS = 200, 1900
_RULES = ("planner", "search_allowed", "search_both", "search_by_painter")


def context_tokens(
    catalogue: Catalogue, provider: str, tools: Iterable[Tool] | None, conversation: Conversation | None
) -> int:
    """Return the most that the planner is given beside the message: instructions, functions, and the history."""
    declared = [declaration(catalogue, provider, may_ground=True)]
    declared += [tool.declaration for tool in tools or () if tool.is_offered]
    tokens = (
        declared_tokens("".join(map(prompt, _RULES)), declared)
        + _SEARCH_TOKENS
        + (_TOOLS_TOKENS if tools is None else 0)
    )
    if conversation is None:
        return tokens
    said = [message for turn in conversation.turns[-_MOST_TURNS:] for message in turn.messages]
    history = message_tokens(said[-_MOST_MESSAGES:], _LINE_TOKENS)
    return tokens + history + _LINE_TOKENS * len(conversation.pictures)


def turn_estimate(
    catalogue: Catalogue,
    provider: str,
    tools: Iterable[Tool] | None,
    conversation: Conversation | None,
    settings: TurnSettings,
    on: date,
    *,
    text: str,
    characters: int,
    pictures: int,
    masks: int,
) -> Estimate:
    """Return what a turn of the conversation is likely to cost, and its maximum.

    `pictures` come with the message or are marked beside it; one of the conversation may be shown to the painter
    unmarked. Without `tools` the studio's own are counted.
    """
    may_show = 1 if conversation is not None and conversation.pictures and not pictures else 0
    return estimate(
        catalogue,
        provider,
        settings,
        on,
        characters=characters,
        shown=pictures,
        shown_unmarked=2 * may_show,
        masks=masks,
        text=text,
        context_tokens=context_tokens(catalogue, provider, tools, conversation),
    )
