"""Tools of a real program of the official SDK: offered, called in a turn, and what they answer taken as data."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from pydantic import SecretStr

from agent import ConsentAsked, Settings, Step, ThoughtLog, TurnDone, TurnPaused
from tests.adapters.models import calls, says
from tests.adapters.tools import HttpServer
from tests.mcp_server import desk, desk_at_an_address, rogue
from tests.support.mcp_turns import meeting
from tests.support.scenes import of_type, only, png, words
from tests.support.tool_calls import call, results
from tests.support.turns import decide, newest
from tests.support.waiting import until

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


KEY = "canary-55d0e2b7"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with desk_at_an_address("--key", KEY) as url:
        yield url


def far(address: str, key: str = KEY, **fields: object) -> HttpServer:
    headers = {"Authorization": SecretStr(f"Bearer {key}")}
    return HttpServer.model_validate({"url": address, "headers": headers, "allow_local": True, **fields})


@pytest.mark.parametrize("is_in_one_piece", [False, True])
async def test_its_tools_are_called_and_an_answer_too_long_ends_nothing(
    settings: Settings, is_in_one_piece: bool
) -> None:
    one_piece = ("--json",) if is_in_one_piece else ()
    with desk_at_an_address(*one_piece, "--key", KEY) as address:
        async with meeting(settings, {"far": far(address, trusted=True)}) as met:
            lines = [calls(call("far_weigh", thing="egg")), calls(call("far_flood", megabytes=20))]
            events = await met.turn(*lines, calls(call("far_weigh", thing="stone")), says("Five."))
            answers = [one.content for asked in met.scene.provider.asked[-3:] for one in results(asked)]
            assert met.state("far").problem is None
    assert words(events) == "Five."
    assert '"grams": 3' in str(answers[0]["text"])
    assert "longer than 16 MB" in str(answers[1]["error"])
    assert '"grams": 5' in str(answers[2]["text"])


async def test_what_keeps_from_a_server_is_said_and_the_turn_goes_on(
    settings: Settings, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    servers = {
        "locked": far(address, "canary-wrong-1"),
        "unreachable": far("http://127.0.0.1:9/mcp"),
        # 127.0.0.1, in a form that the file's own check takes for a name.
        "address_refused": HttpServer(url="http://2130706433/mcp"),
    }
    async with meeting(settings, dict(servers), is_awaited=False) as met:
        for problem in servers:
            await met.until_it_says(problem, problem)
        assert isinstance((await met.turn(says("Hello.")))[-1], TurnDone)
    assert "canary" not in caplog.text


async def test_a_public_studio_dials_no_address_of_its_own_machine(settings: Settings, address: str) -> None:
    async with meeting(settings, {"far": far(address)}, is_awaited=False, is_public=True) as met:
        assert met.state("far").problem == "not_when_public"


ACT = "rogue_act"


async def test_a_changed_description_asks_and_what_is_allowed_is_known_from_then_on(settings: Settings) -> None:
    async with meeting(settings, {"rogue": rogue("--description", "Old.", trusted=True)}) as met:
        events = await met.turn(calls(call(ACT, how="well")), says("Good."))
        assert isinstance(events[-1], TurnDone)
    async with meeting(settings, {"rogue": rogue("--description", "New.", trusted=True)}) as met:
        events = await met.turn(calls(call(ACT, how="well")))
        (ask,) = only(events, ConsentAsked).asks
        assert (ask.tool, ask.reason) == (ACT, "was_changed")
        waiting = await newest(met.studio, met.conversation_id)
        met.lines[:] = [says("Good.")]
        assert words(await decide(met.studio, met.conversation_id, waiting.id, run=True)) == "Good."
        events = await met.turn(calls(call(ACT, how="well")), says("Good."))
        assert isinstance(events[-1], TurnDone)


async def test_a_server_that_becomes_another_after_the_first_call_asks_at_the_second(settings: Settings) -> None:
    async with meeting(settings, {"rogue": rogue("--description", "Old.", trusted=True)}) as met:
        await met.turn(calls(call(ACT, how="be another")), says("Good."))

        # Its list is read again in the background, as soon as it says that it has another one.
        async def is_another() -> bool:
            await met.turn(says("Hello."))
            return any("Mallory" in tool.description for tool in met.asked.tools)

        await until(is_another)
        events = await met.turn(calls(call(ACT, how="well")))
    assert [ask.reason for ask in only(events, ConsentAsked).asks] == ["was_changed"]


async def test_a_tool_that_changes_between_the_question_and_the_click_does_not_run(settings: Settings) -> None:
    async with meeting(settings, {"rogue": rogue("--description", "Old.")}):
        pass
    async with meeting(settings, {"rogue": rogue("--description", "New.")}) as met:
        await met.turn(calls(call(ACT, how="well")))
        waiting = await newest(met.studio, met.conversation_id)
        conversation_id = met.conversation_id
    async with meeting(settings, {"rogue": rogue("--description", "Newest.")}) as met:
        met.lines[:] = [says("Then again.")]
        await decide(met.studio, conversation_id, waiting.id, run=True)
        (answer,) = results(met.asked)
    assert "has changed since the person was asked" in str(answer.content["error"])


async def test_an_untrusted_server_asks_once_something_from_outside_is_there_also_in_every_later_turn(
    settings: Settings,
) -> None:
    async with meeting(settings, {"rogue": rogue()}) as met:
        at_once = await met.turn(calls(call(ACT, how="well")), calls(call(ACT, how="well again")))
    async with meeting(settings, {"rogue": rogue()}) as met:
        await met.turn(calls(call(ACT, how="well")), says("Good."))
        await met.turn(says("You are welcome."), text="thanks")
        later = await met.turn(calls(call(ACT, how="well again")))
    for events in (at_once, later):
        (ask,) = only(events, ConsentAsked).asks
        assert ask.reason == "may_change_something"
        assert "well again" in ask.arguments


async def test_a_trusted_server_that_only_reads_asks_nothing(settings: Settings) -> None:
    async with meeting(settings, {"rogue": rogue(trusted=True)}) as met:
        again = [calls(call(ACT, how=f"well {number}")) for number in range(3)]
        events = await met.turn(*again, says("Good."))
    assert isinstance(events[-1], TurnDone)
    used = [one.parameters["name"] for one in events if isinstance(one, ThoughtLog) and one.step is Step.TOOL]
    assert used == ["act"] * 3
