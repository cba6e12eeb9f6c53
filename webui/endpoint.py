"""The one public endpoint, `/chat`: a turn streamed as JSON to scripts that use gradio_client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.errors import ErrorInfo, RequestRefused
from agent.events import TurnFailed, TurnStopped
from agent.studio import TurnRequest
from webui.cards import step_sentence
from webui.live import LiveTurn, advance_all
from webui.pacing import batches
from webui.panels.composer import Chosen
from webui.screen import Screen
from webui.sessions import Visitor


@dataclass(frozen=True)
class ChatEndpoint:
    """Runs a turn for a script.

    Every answer is `{"conversation", "text", "status", "pictures", "error", "done"}`; the last has `done` true. Each
    picture is `{"handle", "url", "width", "height"}`, its URL signed for a day. `error` is null, or `{"code",
    "message", "can_retry"}`.
    """

    screen: Screen

    async def chat(
        self, visitor: Visitor, base_url: str, message: dict[str, Any] | None, chosen: Chosen, conversation_id: str
    ) -> AsyncIterator[dict[str, Any]]:
        """Stream one turn; without a conversation a new one begins."""
        studio = self.screen.studio()
        try:
            conversation = (
                await studio.conversation(conversation_id, visitor.owner)
                if conversation_id
                else await studio.new_conversation(visitor.owner)
            )
        except RequestRefused as error:
            yield _answer(conversation_id, error=_error(visitor, error.info), is_done=True)
            return
        request = TurnRequest(
            text=str((message or {}).get("text") or ""),
            images=[Path(str(file)) for file in (message or {}).get("files") or []],
            settings=chosen.turn_settings(),
        )
        live, key = LiveTurn(request.text), self.screen.sessions.key(visitor)
        events = studio.run_turn(conversation.id, request, owner=visitor.owner, key=key)
        async for batch in batches(events):
            live = advance_all(live, batch)
            yield self._state(visitor, base_url, conversation.id, live)

    def _state(self, visitor: Visitor, base_url: str, conversation_id: str, live: LiveTurn) -> dict[str, Any]:
        pictures = [
            {
                "handle": picture.handle,
                "url": self._url(visitor, base_url, conversation_id, picture.handle.lstrip("#")),
                "width": picture.image.width,
                "height": picture.image.height,
            }
            for picture in live.pictures
        ]
        error = _error(visitor, live.ending.error) if isinstance(live.ending, TurnFailed) else None
        status = step_sentence(visitor.words, live.step) if live.step else ""
        if isinstance(live.ending, TurnStopped):
            status = visitor.words("stopped.text")
        return _answer(conversation_id, live.answer, status, pictures, error, is_done=live.ending is not None)

    def _url(self, visitor: Visitor, base_url: str, conversation_id: str, name: str) -> str:
        query = self.screen.sessions.link_query(visitor.owner, conversation_id, name)
        return f"{base_url.rstrip('/')}/media/{conversation_id}/{name}?{query}"


def _answer(
    conversation_id: str,
    text: str = "",
    status: str = "",
    pictures: list[dict[str, Any]] | None = None,
    error: dict[str, Any] | None = None,
    *,
    is_done: bool,
) -> dict[str, Any]:
    return {
        "conversation": conversation_id,
        "text": text,
        "status": status,
        "pictures": pictures or [],
        "error": error,
        "done": is_done,
    }


def _error(visitor: Visitor, info: ErrorInfo) -> dict[str, Any]:
    return {"code": info.code.value, "message": visitor.words.error(info), "can_retry": info.can_retry}
