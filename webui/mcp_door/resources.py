"""Pictures and receipts as MCP resources: listed, the newest first, and read."""

from __future__ import annotations

import base64

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    BlobResourceContents,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from agent import AivistaError, GalleryItem, GalleryQuery, Studio
from webui.mcp_door.addresses import PICTURES, RECEIPTS, picture_uri, read_uri, receipt_uri
from webui.mcp_door.callers import Caller
from webui.mcp_door.following import WORDS

_ON_A_PAGE = 50
_JSON = "application/json"


def templates() -> ListResourceTemplatesResult:
    """Return how the addresses are put together."""
    return ListResourceTemplatesResult(
        resource_templates=[
            ResourceTemplate(
                name="picture",
                title="A picture as it was made",
                description="The original bytes of a picture; the handle is written without its #.",
                uri_template=PICTURES,
            ),
            ResourceTemplate(
                name="receipt",
                title="The receipt of a picture",
                description="Asked against got: the prompt as sent, model, references, facts, tokens and price.",
                uri_template=RECEIPTS,
                mime_type=_JSON,
            ),
        ]
    )


async def listed(studio: Studio, caller: Caller, cursor: str | None) -> ListResourcesResult:
    """Return a page of the newest pictures of all conversations, each with its receipt."""
    page = await studio.gallery.page(caller.owner, GalleryQuery(after=cursor, limit=_ON_A_PAGE))
    resources = [one for item in page.items for one in _of(item)]
    return ListResourcesResult(resources=resources, next_cursor=page.next)


async def read(studio: Studio, caller: Caller, uri: str) -> ReadResourceResult:
    """Return a picture's bytes, or its receipt. Raises MCPError for an address without one."""
    address = read_uri(uri)
    if address is None:
        raise _missing(uri, "This is no address of a picture or a receipt.")
    try:
        if not address.is_receipt:
            stored = await studio.picture(address.conversation_id, address.handle, caller.owner)
            blob = base64.b64encode(stored.data).decode("ascii")
            return ReadResourceResult(contents=[BlobResourceContents(uri=uri, mime_type=stored.mime_type, blob=blob)])
        conversation = await studio.conversations.get(address.conversation_id, caller.owner)
        receipt = conversation.picture(address.handle).receipt
    except AivistaError as error:
        raise _missing(uri, WORDS.error(error.info)) from error
    if receipt is None:
        raise _missing(uri, "This picture was not made here, so it has no receipt.")
    text = receipt.model_dump_json(indent=2)
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=_JSON, text=text)])


def _of(item: GalleryItem) -> list[Resource]:
    picture, place = item.picture, f"{item.conversation_title or 'Untitled'} {item.picture.handle}"
    found = [
        Resource(
            uri=picture_uri(item.conversation_id, picture.handle),
            name=place,
            description=picture.alt or None,
            mime_type=picture.image.mime_type,
            size=picture.image.size_bytes,
        )
    ]
    if picture.receipt is not None:
        address = receipt_uri(item.conversation_id, picture.handle)
        found.append(Resource(uri=address, name=f"{place}, receipt", mime_type=_JSON))
    return found


def _missing(uri: str, sentence: str) -> MCPError:
    return MCPError(INVALID_PARAMS, sentence, {"uri": uri})
