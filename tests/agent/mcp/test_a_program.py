"""Tools of a real program of the official SDK: offered, called in a turn, and what they answer taken as data."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path

import pytest
from PIL import Image

from agent import ConsentAsked, Settings, Step, ThoughtLog, TurnDone, TurnPaused
from tests.adapters.scripted import calls, says
from tests.mcp_server import desk
from tests.support.mcp_turns import meeting
from tests.support.scenes import of_type, only, png, words
from tests.support.tool_calls import call
from tests.support.turns import decide, newest

CANARY = "canary-7f3a91c2d4"


async def test_its_tools_stand_beside_our_own_and_answer_in_a_turn_also_what_went_wrong(settings: Settings) -> None:
    async with meeting(settings, {"desk": desk()}) as met:
        events = await met.turn(calls(call("desk_weigh", "w1", thing="egg")), says("Three grams."))
        assert {"desk_weigh", "desk_write_note", "view_image"} <= met.tools
        told = next(tool for tool in met.asked.tools if tool.name == "desk_weigh")
        answer, state = met.answer, met.state("desk")
        # What a server says of itself is put before no model.
        assert "mallory" not in repr(met.asked).lower()
    async with meeting(settings, {"desk": desk()}) as met:
        refused = await met.turn(calls(call("desk_refuse")), says("I see."))
        refusal = met.answer
    assert told.description == "The tool weigh of the server desk. Weigh a thing and tell its grams."
    assert told.parameters["required"] == ["thing"]
    assert words(events) == "Three grams."
    assert (answer.call_id, answer.is_error) == ("w1", False)
    assert json.loads(str(answer.content["text"])) == {"grams": 3}
    assert (answer.content["untrusted"], answer.content["source"]) == (True, "mcp:desk")
    lines = [one.parameters for one in of_type(events, ThoughtLog) if one.step is Step.TOOL]
    assert lines == [{"name": "weigh", "object": "egg", "server": "desk"}]
    assert (state.tools, state.problem) == (6, None)
    assert isinstance(refused[-1], TurnDone)
    assert (refusal.is_error, refusal.content["untrusted"]) == (True, True)
    assert "the drawer is locked" in str(refusal.content["error"])


async def test_a_tool_that_does_not_say_it_only_reads_asks_with_its_exact_arguments(
    settings: Settings, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    async with meeting(settings, {"desk": desk("--notes", str(notes), trusted=True)}) as met:
        events = await met.turn(calls(call("desk_write_note", text="all I know")))
        (ask,) = only(events, ConsentAsked).asks
        assert isinstance(events[-1], TurnPaused)
        assert not notes.exists()
        waiting = await newest(met.studio, met.conversation_id)
        met.lines[:] = [says("Written.")]
        events = await decide(met.studio, met.conversation_id, waiting.id, run=True)
    assert (ask.tool, ask.reason) == ("desk_write_note", "may_change_something")
    assert json.loads(ask.arguments) == {"text": "all I know"}
    assert words(events) == "Written."
    assert notes.read_text() == "all I know\n"


async def test_a_program_gets_its_own_variables_and_none_of_ours(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", CANARY)
    inherited = {"PATH": "/usr/bin:/bin", "HOME": str(Path.home())}
    server = desk(env={"DESK_DRAWER": "upper"})
    async with meeting(settings, {"desk": server}, mcp_inherited=inherited) as met:
        await met.turn(calls(call("desk_tell_environment")), says("So many."))
        told = json.loads(str(met.answer.content["text"]))
    # Python itself sets what is beside them.
    assert {name: told[name] for name in told if name not in ("LC_CTYPE", "__CF_USER_TEXT_ENCODING")} == {
        **inherited,
        "DESK_DRAWER": "upper",
    }


async def test_a_secret_of_its_own_that_it_sends_back_is_seen_by_nobody(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with meeting(settings, {"desk": desk(env={"DESK_TOKEN": CANARY})}) as met:
        events = await met.turn(calls(call("desk_tell_environment")), says("So many."))
        turn = await newest(met.studio, met.conversation_id)
        report = await met.studio.turns.report(met.conversation_id, turn.id)
        asked = repr(met.scene.provider.asked)
    assert "[secret]" in asked
    files = [path for path in settings.home.rglob("*") if path.is_file()]
    shown = [asked, repr(events), json.dumps(report), caplog.text, repr(met.studio.settings)]
    assert [one for one in shown if CANARY in one] == []
    assert [path for path in files if CANARY.encode() in path.read_bytes()] == []


async def test_pictures_are_looked_at_before_they_are_kept_and_files_come_as_words(
    settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "drawing.png").write_bytes(png(40, 30, "blue"))
    async with meeting(settings, {"desk": desk("--picture", str(tmp_path / "drawing.png"))}) as met:
        await met.turn(calls(call("desk_draw")), says("Blue."))
        (part,) = met.answer.images
        with Image.open(io.BytesIO(await met.scene.provider.store.read(part))) as shown:
            assert (shown.format, shown.size, shown.getpixel((5, 5))) == ("PNG", (40, 30), (0, 0, 255))
        content = met.answer.content
    text, left_out = str(content["text"]), content["left_out"]
    assert "two drawings" in text
    assert "file:///paper.txt\na paper" in text
    assert "https://desk.example/more" in text
    assert isinstance(left_out, list)
    assert len(left_out) == 2
    assert "SVG" in str(left_out[0])
    assert "audio/midi" in str(left_out[1])
