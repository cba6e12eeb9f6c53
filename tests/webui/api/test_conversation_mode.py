"""Conversation mode from end to end, on the sketch model: conversations, turns, pictures, files, trace."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from tests.support.api import begun, data_url, names, png, sent, served, stream, words

CONVERSATIONS = "/api/v1/conversations"
QUIET = {"review": "off"}


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with served(tmp_path) as one, one.client() as client:
        yield client


async def test_a_turn_streams_words_steps_and_a_picture_and_ends_with_done(client: httpx.AsyncClient) -> None:
    settings = {**QUIET, "aspect_ratio": "3:2"}
    events = await sent(client, await begun(client), "a red fox in the snow", settings=settings)
    assert (names(events)[0], names(events)[-1]) == ("started", "done")
    assert {"thought_log", "text", "image", "gen_ui_component"} <= set(names(events))
    numbers = [int(one.id.rpartition("-")[2]) for one in events]
    assert numbers == sorted(numbers)
    assert len({one.id for one in events}) > 5
    [image] = [one.data for one in events if one.event == "image"]
    done = events[-1].data
    assert (done["state"], done["turn_id"]) == ("done", events[0].data["turn_id"])
    components = [one.data["type"] for one in events if one.event == "gen_ui_component"]
    assert components.count("smart_canvas") == 1
    fetched = await client.get(image["url"])
    with Image.open(io.BytesIO(fetched.content)) as picture:
        assert picture.size == (image["width"], image["height"])
    assert fetched.headers["content-security-policy"] == "default-src 'none'; sandbox"
    small = await client.get(image["thumbnail_url"], params={"edge_px": 64})
    with Image.open(io.BytesIO(small.content)) as picture:
        assert (picture.format, max(picture.size)) == ("WEBP", 64)
    receipt = (await client.get(f"{image['url']}/receipt")).json()
    assert (receipt["asked_aspect_ratio"], receipt["user_text"]) == ("3:2", "a red fox in the snow")
    for form in ("recipe", "clean"):
        assert (await client.get(image["url"], params={"form": form})).content.startswith(b"\x89PNG")


async def test_the_same_request_begins_one_conversation_and_leaves_its_title(client: httpx.AsyncClient) -> None:
    asked = {"title": "Foxes", "request_id": "r1"}
    first = (await client.post(CONVERSATIONS, json=asked)).json()
    await client.patch(f"{CONVERSATIONS}/{first['id']}", json={"title": "Owls"})
    again = await client.post(CONVERSATIONS, json=asked)
    assert (again.status_code, again.json()["id"], again.json()["title"]) == (201, first["id"], "Owls")
    assert (await client.post(CONVERSATIONS, json=asked | {"request_id": ""})).status_code == 422


async def test_conversations_are_named_pinned_searched_deleted_and_brought_back(client: httpx.AsyncClient) -> None:
    async def listed(**asked: str) -> list[str]:
        return [one["id"] for one in (await client.get(CONVERSATIONS, params=asked)).json()["conversations"]]

    first, second, third = [await begun(client, title) for title in ("Foxes", "Owls", "Hens")]
    changed = await client.patch(f"{CONVERSATIONS}/{first}", json={"title": "Red foxes", "is_pinned": True})
    assert (changed.json()["title"], changed.json()["is_pinned"]) == ("Red foxes", True)
    assert (await listed(), await listed(query="owls")) == ([first, third, second], [second])
    assert (await client.delete(f"/api/v1/trash/{first}")).status_code == 404, "it is not in the trash"
    assert (await client.delete(f"{CONVERSATIONS}/{first}")).status_code == 204
    gone = await client.get(f"{CONVERSATIONS}/{first}")
    assert (gone.status_code, gone.json()["code"]) == (404, "conversation_not_found")
    [deleted] = (await client.get("/api/v1/trash")).json()["conversations"]
    assert (deleted["id"], deleted["title"], deleted["picture_count"]) == (first, "Red foxes", 0)
    moments = [datetime.fromisoformat(deleted[name]) for name in ("deleted_at", "kept_until")]
    assert moments[1] - moments[0] == timedelta(days=30)
    assert (await client.post(f"{CONVERSATIONS}/{first}/undelete")).json()["title"] == "Red foxes"
    for one in (first, second):
        await client.delete(f"{CONVERSATIONS}/{one}")
    assert (await client.delete(f"/api/v1/trash/{first}")).status_code == 204
    assert (await client.post(f"{CONVERSATIONS}/{first}/undelete")).status_code == 404
    assert (await client.delete("/api/v1/trash")).json() == {"removed": 1}
    assert (await client.get("/api/v1/trash")).json() == {"conversations": []}
    assert await listed() == [third]


async def test_a_turn_is_read_back_with_its_trace_its_cost_and_in_the_gallery(client: httpx.AsyncClient) -> None:
    conversation = await begun(client)
    path = f"{CONVERSATIONS}/{conversation}"

    async def got(address: str, **asked: Any) -> Any:
        return (await client.get(address, params=asked)).json()

    events = await sent(client, conversation, "a lighthouse at dusk", settings=QUIET)
    turn_id = events[0].data["turn_id"]
    turn = await got(f"{path}/turns/{turn_id}")
    assert (turn["state"], turn["text"], turn["pictures"]) == ("done", "a lighthouse at dusk", ["#1"])
    assert turn["answer"] == words(events).strip()
    whole, listed = await got(path), await got(f"{path}/pictures")
    assert (whole["is_running"], [one["id"] for one in whole["turns"]]) == (False, [turn_id])
    assert [one["handle"] for one in (*whole["pictures"], *listed["pictures"])] == ["#1", "#1"]
    steps = (await got(f"{path}/turns/{turn_id}/trace"))["steps"]
    assert {"model", "node"} <= {step["kind"] for step in steps}
    assert (await got(f"{path}/trace"))["steps"] == steps
    usage = await got("/api/v1/usage", conversation_id=conversation)
    assert usage["conversation"]["total_tokens"] == usage["day"]["total_tokens"]
    shown = [(one["conversation_id"], one["picture"]["handle"]) for one in (await got("/api/v1/gallery"))["items"]]
    assert shown == [(conversation, "#1")]
    found = await got("/api/v1/gallery", words="lighthouse", limit=5)
    assert (found["found"], found["items"][0]["match"]["found_by"]) == (1, ["words"])
    assert (await got("/api/v1/gallery", words="zeppelin"))["items"] == []
    assert (await got("/api/v1/gallery/facets"))["total"] == 1


async def test_going_back_is_told_and_the_conversation_names_the_picture_to_change(client: httpx.AsyncClient) -> None:
    conversation = await begun(client)
    photo = (await client.post("/api/v1/uploads", files={"file": ("sea.png", png("steelblue", (64, 64)))})).json()
    await sent(client, conversation, "make it warmer", images=[photo["id"]])
    before = (await client.get(f"{CONVERSATIONS}/{conversation}")).json()
    events = await sent(client, conversation, "undo that")
    after = (await client.get(f"{CONVERSATIONS}/{conversation}")).json()
    assert (before["edit_target"], after["edit_target"]) == ("#1b", "#1")
    assert words(events) == "Undone. Your next words change #1 again."
    [note] = [one.data for one in events if one.event == "gen_ui_component" and one.data["type"] == "target_note"]
    assert (note["change"]["move"], note["change"]["handle"]) == ("undo", "#1")
    assert [one.event for one in events if one.event == "image"] == []


async def test_a_picture_is_sent_ahead_in_an_address_or_a_form_and_edited_in_a_mask(client: httpx.AsyncClient) -> None:
    photo, mask = png("steelblue", (256, 256)), Image.new("L", (256, 256))
    mask.paste(255, (96, 96, 160, 160))
    sink = io.BytesIO()
    mask.save(sink, "PNG")
    upload = (await client.post("/api/v1/uploads", files={"file": ("sea.png", photo)})).json()
    assert (upload["width"], upload["height"]) == (256, 256)
    painted = await client.post("/api/v1/uploads", files={"file": ("mask.png", sink.getvalue())}, data={"kind": "mask"})
    area = {"handle": "upload:1", "image": painted.json()["id"]}
    plan = {**QUIET, "confirm": True}
    planned = await sent(client, await begun(client), "make it red", images=[upload["id"]], mask=area, settings=plan)
    assert planned[0].data["uploads"] == ["#1"]
    assert planned[-2].data["plans"][0]["editing"] == "#1"
    form = {"request": json.dumps({"text": "make it red", "mask": {"handle": "upload:1"}, "settings": QUIET})}
    files = [("images", ("sea.png", photo)), ("mask", ("mask.png", sink.getvalue()))]
    conversation = await begun(client)
    events = await stream(client, "POST", f"{CONVERSATIONS}/{conversation}/turns", data=form, files=files)
    [image] = [one.data for one in events if one.event == "image"]
    assert (image["parents"], image["edit"]["changed_outside"]) == (["#1"], 0)
    events = await sent(client, conversation, "what is this?", images=[data_url(photo)], settings=plan)
    assert events[0].data["uploads"] == ["#2"]
    # Several masks: one from the form's file, one that was sent ahead.
    both = [{"handle": "#1"}, {"handle": "#2", "image": painted.json()["id"]}]
    form = {"request": json.dumps({"text": "make it darker", "masks": both, "settings": QUIET})}
    events = await stream(
        client, "POST", f"{CONVERSATIONS}/{conversation}/turns", data=form, files=[("mask", ("m.png", sink.getvalue()))]
    )
    made = [one.data for one in events if one.event == "image"]
    assert [(one["parents"], one["edit"]["changed_outside"]) for one in made] == [(["#1"], 0), (["#2"], 0)]


async def test_a_plan_waits_and_is_run_or_dropped(client: httpx.AsyncClient) -> None:
    conversation = await begun(client)
    settings = {**QUIET, "confirm": True}
    events = await sent(client, conversation, "a red fox", settings=settings)
    assert names(events)[-2:] == ["plan", "done"]
    assert events[-1].data["state"] == "waiting"
    turn = f"{CONVERSATIONS}/{conversation}/turns/{events[0].data['turn_id']}"
    edit = {"call": events[-2].data["plans"][0]["call"], "aspect_ratio": "16:9"}
    run = await stream(client, "POST", f"{turn}/decision", json={"run": True, "edits": [edit]})
    assert (run[0].event, run[0].data["goes_on"], run[-1].data["state"]) == ("started", True, "done")
    [image] = [one.data for one in run if one.event == "image"]
    assert image["receipt"]["asked_aspect_ratio"] == "16:9"
    again = await client.post(f"{turn}/decision", json={"run": True})
    assert (again.status_code, again.json()["code"]) == (409, "plan_gone")
    both = await stream(client, "GET", f"{turn}/events")
    assert names(both).count("done") == 2
    assert both == events + run
    other = await sent(client, conversation, "an owl", settings=settings)
    dropped = f"{CONVERSATIONS}/{conversation}/turns/{other[0].data['turn_id']}/decision"
    assert (await stream(client, "POST", dropped, json={"run": False}))[-1].event == "done"
    assert [one["handle"] for one in (await client.get(f"{CONVERSATIONS}/{conversation}/pictures")).json()["pictures"]]


async def test_files_are_written_read_guarded_by_their_version_and_deleted(client: httpx.AsyncClient) -> None:
    files = f"{CONVERSATIONS}/{await begun(client)}/files"
    written = await client.put(f"{files}/notes/plan.md", content="# Plan", headers={"If-None-Match": "*"})
    assert (written.status_code, written.json()["name"]) == (200, "notes/plan.md")
    read = await client.get(f"{files}/notes/plan.md")
    assert (read.text, read.headers["content-type"]) == ("# Plan", "application/octet-stream")
    assert read.headers["content-disposition"].startswith("attachment")
    taken = await client.put(f"{files}/notes/plan.md", content="x", headers={"If-None-Match": "*"})
    assert taken.status_code == 409
    stale = await client.put(f"{files}/notes/plan.md", content="x", headers={"If-Match": '"999"'})
    assert (stale.status_code, stale.json()["code"]) == (409, "file_changed")
    forgotten = await client.put(f"{files}/notes/plan.md")
    assert (forgotten.status_code, (await client.get(f"{files}/notes/plan.md")).text) == (422, "# Plan")
    fresh = await client.put(f"{files}/notes/plan.md", content="y", headers={"If-Match": read.headers["etag"]})
    assert fresh.status_code == 200
    assert [one["name"] for one in (await client.get(files)).json()["files"]] == ["notes/plan.md"]
    assert (await client.delete(f"{files}/notes/plan.md")).status_code == 204
    assert (await client.get(f"{files}/notes/plan.md")).status_code == 404
    for name in ("../up.txt", "%2e%2e/up.txt", "a//b", "/etc/passwd", "CON%00"):
        refused = await client.put(f"{files}/{name}", content="x")
        assert refused.status_code in (400, 404, 405, 422), name


async def test_the_library_is_searched_and_grown(client: httpx.AsyncClient) -> None:
    matches = (await client.get("/api/v1/styles/search", params={"words": "a fox in ukiyo-e style"})).json()["matches"]
    assert matches[0]["similarity"] >= 0.6
    style_id = matches[0]["style"]["id"]
    assert (await client.get(f"/api/v1/styles/{style_id}")).json()["id"] == style_id
    draft = {"name": {"en": "Grandma's quilt"}, "phrases": ["patchwork of faded cotton"]}
    added = await client.post("/api/v1/styles", json=draft)
    assert (added.status_code, added.json()["is_own"]) == (201, True)
    own = f"/api/v1/styles/{added.json()['id']}"
    changed = await client.put(own, json={**draft, "phrases": ["patchwork of wool"]})
    assert changed.json()["phrases"] == ["patchwork of wool"]
    assert added.json()["id"] in {one["id"] for one in (await client.get("/api/v1/styles")).json()["styles"]}
    assert (await client.delete(own)).status_code == 204
    assert (await client.get(own)).json()["code"] == "style_not_found"


async def test_with_no_picture_to_change_the_words_make_a_new_one(client: httpx.AsyncClient) -> None:
    conversation = await begun(client)
    await sent(client, conversation, "a red fox", settings=QUIET)
    wishes = [("make it black and white", None, ["#1"]), ("make a black and white fox", "none", [])]
    for words_said, editing, parents in wishes:
        events = await sent(client, conversation, words_said, settings=QUIET, editing=editing)
        [made] = [one.data for one in events if one.event == "image"]
        picture = (await client.get(f"{CONVERSATIONS}/{conversation}/pictures")).json()["pictures"][-1]
        turn = (await client.get(f"{CONVERSATIONS}/{conversation}")).json()["turns"][-1]
        assert (picture["handle"], picture["parents"], turn["editing"]) == (made["handle"], parents, editing)


async def test_turns_are_read_in_pages(client: httpx.AsyncClient) -> None:
    conversation = await begun(client)
    for said in ("a red fox", "a blue owl"):
        await sent(client, conversation, said, settings=QUIET)
    url, whole = f"{CONVERSATIONS}/{conversation}/turns", (await client.get(f"{CONVERSATIONS}/{conversation}")).json()
    newest = (await client.get(url, params={"limit": 1})).json()
    oldest = (await client.get(url, params={"limit": 1, "before": newest["earlier"]})).json()
    assert [*oldest["turns"], *newest["turns"]] == whole["turns"]
    assert [*oldest["pictures"], *newest["pictures"]] == whole["pictures"]
    assert (oldest["earlier"], (await client.get(url)).json()["turns"]) == (None, whole["turns"])
    for asked, status in (({"before": "nothing"}, 404), ({"limit": 0}, 422), ({"limit": 201}, 422)):
        assert (await client.get(url, params=asked)).status_code == status


async def test_null_is_the_same_as_left_out_and_an_unknown_file_of_a_form_is_refused(client: httpx.AsyncClient) -> None:
    conversation = await begun(client)
    nulls = dict.fromkeys(("images", "mask", "expand", "editing", "references", "roles", "request_id"))
    settings = dict.fromkeys(("text_model", "image_model", "allow_search", "review", "confirm"))
    assert names(await sent(client, conversation, "a red fox", **nulls, settings=settings))[-1] == "done"
    form: list[tuple[str, Any]] = [("request", (None, '{"text": "a fox"}')), ("depth", ("a.png", png()))]
    answer = await client.post(f"{CONVERSATIONS}/{conversation}/turns", files=form)
    assert answer.status_code == 422
    assert "depth: Extra inputs are not permitted" in answer.json()["detail"]
