"""The tools that only look at what is kept, and the one that begins an empty conversation."""

from __future__ import annotations

from mcp_types import CallToolResult, ContentBlock, TextContent

from webui.mcp_door.answers import (
    ConversationFacts,
    ConversationList,
    NewConversation,
    OnePicture,
    PictureList,
    conversation_facts,
    picture_facts,
)
from webui.mcp_door.arguments import (
    GetPictureArguments,
    ListConversationsArguments,
    ListPicturesArguments,
    NoArguments,
)
from webui.mcp_door.callers import Call
from webui.mcp_door.telling import as_result, picture_content, picture_line, picture_link


async def list_pictures(call: Call, asked: ListPicturesArguments) -> CallToolResult:
    """Return the newest pictures of a conversation, with links and without previews."""
    conversation = await call.studio.conversations.get(asked.conversation_id, call.caller.owner)
    newest = conversation.pictures[-asked.limit :]
    facts = tuple(picture_facts(conversation.id, picture) for picture in newest)
    answer = PictureList(conversation_id=conversation.id, total=len(conversation.pictures), pictures=facts)
    lines = [f"{picture_line(one)}{f'. {one.alt}' if one.alt else ''}" for one in facts]
    content: list[ContentBlock] = [TextContent(text="\n".join(lines) or "This conversation has no pictures yet.")]
    return as_result([*content, *(picture_link(conversation.id, picture) for picture in newest)], answer)


async def get_picture(call: Call, asked: GetPictureArguments) -> CallToolResult:
    """Return a picture to look at, and what is known of it."""
    conversation = await call.studio.conversations.get(asked.conversation_id, call.caller.owner)
    picture = conversation.picture(asked.handle)
    facts = picture_facts(conversation.id, picture)
    shown = await picture_content(call, conversation.id, picture, asked.edge_px)
    told = TextContent(text="\n\n".join(part for part in (picture_line(facts), facts.alt) if part))
    return as_result([told, *shown], OnePicture(conversation_id=conversation.id, picture=facts))


async def list_conversations(call: Call, asked: ListConversationsArguments) -> CallToolResult:
    """Return the conversations, or those that hold all words of a query."""
    facts: tuple[ConversationFacts, ...]
    if asked.query.strip():
        found = await call.studio.conversations.search(asked.query, call.caller.owner, asked.limit)
        facts = tuple(conversation_facts(one.info, one.excerpt) for one in found)
    else:
        infos = await call.studio.conversations.list(call.caller.owner, asked.limit)
        facts = tuple(conversation_facts(info) for info in infos)
    lines = [f"{one.id}: {one.title or 'Untitled'} ({one.picture_count} pictures)" for one in facts]
    text = "\n".join(lines) or "There is no such conversation yet."
    return as_result([TextContent(text=text)], ConversationList(conversations=facts))


async def new_conversation(call: Call, _asked: NoArguments) -> CallToolResult:
    """Begin a conversation without a turn."""
    conversation = await call.studio.conversations.create(call.caller.owner)
    text = f"The conversation {conversation.id} is there."
    return as_result([TextContent(text=text)], NewConversation(conversation_id=conversation.id))
