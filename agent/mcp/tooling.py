"""A server's tool as one of ours: what of its calls waits for the person's click, and how a call is answered."""

from __future__ import annotations

from agent.mcp.answers import answer_of, source_of
from agent.mcp.connection import CallFailed, Connection
from agent.mcp.offers import Offer
from agent.mcp.pins import Pins
from agent.tools.base import Arguments, Reason, Tool, ToolAnswer, ToolContext


def tool_of(offer: Offer, connection: Connection, pins: Pins) -> Tool:
    """Return the tool. Its calls wait for a click when it is not what it was when it was seen first or allowed last;
    when it does not say that it only reads; and, of a server that is not trusted, once the turn is tainted."""

    async def rule(arguments: Arguments, context: ToolContext) -> Reason | None:
        if pins.is_changed(offer.server, offer.tool, offer.fingerprint):
            await pins.ask(offer.server, offer.tool, offer.fingerprint)
            return "was_changed"
        if not offer.is_read_only:
            return "may_change_something"
        is_doubtful = context.trust.is_tainted and not connection.server.trusted
        return "may_change_something" if is_doubtful else None

    async def answer(arguments: Arguments, context: ToolContext) -> ToolAnswer:
        # Between the question and the click the server may have become another one.
        if not await pins.allow(offer.server, offer.tool, offer.fingerprint):
            return _failed(offer, f"{offer.declaration.name} has changed since the person was asked. Call it again.")
        try:
            result = await connection.call(offer.tool, arguments)
        except CallFailed as failure:
            return _failed(offer, str(failure))
        return await answer_of(result, offer.server, context.images, connection.server.secrets)

    return Tool(offer.declaration, answer, rule, server=offer.server, own_name=offer.tool)


def away_tool_of(offer: Offer, connection: Connection) -> Tool:
    """Return the tool of a server that is not connected now: a model may call it still, as it did before."""

    async def answer(arguments: Arguments, context: ToolContext) -> ToolAnswer:
        return _failed(offer, f"The server {connection.name} is away. Go on without it.")

    return Tool(offer.declaration, answer, server=offer.server, own_name=offer.tool, is_offered=False)


def _failed(offer: Offer, sentence: str) -> ToolAnswer:
    # What an error says may be the server's words.
    return ToolAnswer({"error": sentence}, source=source_of(offer.server))
