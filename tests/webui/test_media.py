"""Pictures over HTTP: a signed link opens one in any browser."""

from __future__ import annotations

from pathlib import Path

import httpx
from starlette.applications import Starlette

from agent.settings import Settings
from agent.studio import Studio, TurnRequest
from webui.media import media_routes
from webui.sessions import COOKIE, Sessions


async def test_a_signed_link_opens_its_picture_in_a_browser_that_has_another_visitors_cookie(tmp_path: Path) -> None:
    sessions = Sessions(b"s" * 32, is_shared=True)
    async with Studio(Settings(home=tmp_path)) as studio:
        conversation = await studio.new_conversation("one")
        async for _ in studio.run_turn(conversation.id, TurnRequest("draw a boat"), owner="one"):
            pass
        app = Starlette(routes=media_routes(lambda: studio, sessions))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1", cookies={COOKIE: sessions.new_cookie()}
        ) as other:
            address = f"/media/{conversation.id}/1"
            assert (await other.get(address)).status_code == 404
            link = f"{address}?{sessions.link_query('one', conversation.id, '1')}"
            assert (await other.get(link)).headers["content-type"] == "image/png"
            assert (await other.get(link.replace("sig=", "sig=0"))).status_code == 404
