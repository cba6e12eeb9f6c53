"""A conversation of twenty turns with uploads, generations, edits, a search and a model switch: no rule is broken."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import SecretStr

from agent.conversation import Conversation, TurnState
from agent.events import PictureReady, Step, ThoughtLog, TurnDone, TurnEvent
from agent.pictures import EXACT_ADJUSTMENT
from agent.settings import Settings
from agent.studio import Studio
from tests.support.scenes import of_type, png, run, words
from tests.wire_server import Answer, Call, Finish, GeminiServer, PictureAnswer, Search, Text, WireRequest

FACTS = {"facts": [{"item": "The tower is 330 m high.", "source": "tower.example"}], "prompt_draft": "the tower"}


@dataclass(frozen=True)
class Said:
    """One turn of the script: what the person does, what the model calls, and which pictures come of it; `refused` of
    them do not come, whichever those are."""

    text: str
    calls: Sequence[Call] = ()
    answer: str = "Done."
    uploads: Sequence[bytes] = ()
    makes: Sequence[str] = ()
    refused: int = 0
    editing: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)


def paint(prompt: str, **arguments: Any) -> Call:
    return Call("generate_image", {"prompt": prompt, "confidence": 0.9, **arguments}, text_before="Here it comes.")


PRO = {"text_model": "thinking", "image_model": "pro", "resolution": "2K", "review": "off"}

SCRIPT = [
    Said("Hello, what can you do?", answer="I paint what you say."),
    Said("Draw a red fox in the snow.", [paint("a red fox in the snow")], makes=["#1"]),
    Said("Make it dusk.", [paint("the same, darker", handles=["#1"])], makes=["#1b"]),
    Said("What is on this photo?", answer="A green field.", uploads=[png(80, 60, "green")]),
    Said("Put the fox into my photo.", [paint("the fox on the field", handles=["#2", "#1b"])], makes=["#2b"]),
    Said("Two other takes, square.", [paint("a fox", number_of_images=2, aspect_ratio="1:1")], makes=["#3", "#4"]),
    Said("Think about a poster with me.", answer="Which headline?", settings=PRO),
    Said(
        "Slow mornings. Paint it.", [paint("a poster reading Slow mornings", model="pro")], makes=["#5"], settings=PRO
    ),
    Said(
        "A poster with the height of the tower.",
        [Call("web_search", {"query": "How high is the tower?"}), paint("the tower, its height as the headline")],
        makes=["#6"],
        settings={**PRO, "allow_search": True},
    ),
    Said(
        "The headline larger.",
        [paint("a larger headline", reference_mode="LAST_GENERATED")],
        makes=["#6b"],
        settings=PRO,
    ),
    Said("The fox again, at night.", [paint("at night")], makes=["#1c"], editing="#1b", settings=PRO),
    Said("Which colour had my photo?", [Call("get_history_image", {"image_id": "MD5"})], answer="Green."),
    Said(
        "Combine these two.",
        [paint("both together", reference_mode="USER_UPLOADED_ONLY")],
        uploads=[png(50, 50, "blue"), png(60, 50, "yellow")],
        makes=["#9"],
    ),
    Said(
        "Something like the last three.",
        [paint("like these", reference_mode="LAST_N", reference_count=3)],
        makes=["#10"],
    ),
    Said("A collage of all my photos.", [paint("a collage", reference_mode="ALL_USER_UPLOADED")], makes=["#11"]),
    Said("The poster once more, in blue.", [paint("in blue", handles=["#6b"])], makes=["#6c"]),
    Said("Change picture 99.", [paint("changed", handles=["#99"]), paint("changed", handles=["#11"])], makes=["#11b"]),
    Said(
        "Three foxes.", [paint("three foxes, one too many", number_of_images=3)], makes=["#12", "#13", "#14"], refused=1
    ),
    Said("Thank you!", answer="With pleasure."),
    Said("The first fox, lighter.", [paint("lighter", handles=["#1"])], makes=["#1d"]),
]


class Brain:
    """A model that answers as the script says; one picture of the three foxes is refused."""

    def __init__(self) -> None:
        self.turn: Said = SCRIPT[0]
        self._called = 0
        self._foxes = 0

    def begin(self, turn: Said) -> None:
        self.turn, self._called = turn, 0

    def text(self, request: WireRequest) -> Answer:
        if request.has_search:
            return Search(FACTS, sources=[("tower.example", "https://redirect.example/tower")])
        if self._called >= len(self.turn.calls):
            return Text(self.turn.answer, chunks=4)
        call = self.turn.calls[self._called]
        self._called += 1
        if call.name == "get_history_image":
            md5 = request.text.split("[Picture:history_")[-1][:32]
            return Call(call.name, {"image_id": md5})
        return call

    def picture(self, request: WireRequest) -> Answer:
        if "one too many" in request.prompt:
            self._foxes += 1
            if self._foxes == 2:
                return Finish("IMAGE_SAFETY")
        return PictureAnswer(signature_bytes=4096)


async def play(studio: Studio, conversation_id: str, turn: Said) -> list[TurnEvent]:
    return await run(studio, conversation_id, turn.text, *turn.uploads, editing=turn.editing, **turn.settings)


async def test_twenty_turns_run_against_a_strict_server_with_no_rule_broken(settings: Settings) -> None:
    brain = Brain()
    with GeminiServer() as server:
        server.on_text(brain.text)
        server.on_image(brain.picture)
        gemini = settings.model_copy(
            update={"gemini_api_key": SecretStr("AIzaTwentyTurns"), "gemini_base_url": server.url}
        )
        async with Studio(gemini) as studio:
            conversation = await studio.new_conversation()
            for turn in SCRIPT:
                brain.begin(turn)
                events = await play(studio, conversation.id, turn)
                assert isinstance(events[-1], TurnDone), (turn.text, events[-1])
                made = {event.picture.handle for event in of_type(events, PictureReady)}
                assert made <= set(turn.makes), turn.text
                assert len(made) == len(turn.makes) - turn.refused, turn.text
            kept = await studio.conversation(conversation.id)
        async with Studio(gemini) as later:
            assert await later.conversation(conversation.id) == kept
        assert server.violations == []
        sent = server.requests
    _assert_pictures_were_sent_once(sent)
    _assert_signatures_went_back(sent)
    assert len(kept.turns) == 20
    assert _receipt_of(kept, "#6").facts[0].source == "https://redirect.example/tower"


def _assert_pictures_were_sent_once(sent: Sequence[WireRequest]) -> None:
    """The text model sees each picture in full when it comes and when it asks for it, never again by itself."""
    shown = [picture for request in sent if request.kind == "text" for picture in request.pictures]
    uploads = [one for turn in SCRIPT for one in turn.uploads]
    assert len(shown) <= len(uploads) + 3  # each upload once per call of its own turn, and the one asked for


def _assert_signatures_went_back(sent: Sequence[WireRequest]) -> None:
    """A picture of this model goes back in a model turn; after the switch of models the same one stands in a prompt."""
    replayed = [request.model for request in sent if ("model", True) in _image_blobs(request)]
    assert "gemini-nano-banana-2.1" in replayed
    assert "gemini-3-pro-image" in replayed


def _image_blobs(request: WireRequest) -> set[tuple[str, bool]]:
    return {(role, request.kind == "image") for role, _ in request.blobs}


def _receipt_of(conversation: Conversation, handle: str) -> Any:
    receipt = conversation.picture(handle).receipt
    assert receipt is not None
    return receipt


SKETCH = [
    ("hello", [], 0),
    ("draw a red fox in the snow", [], 1),
    ("make it darker", [], 1),
    ("what can you do?", [], 0),
    ("make this warmer", [png(80, 60, "green")], 1),
    ("rotate it left", [], 1),
    ("画一座雪山", [], 1),
    ("再亮一点", [], 1),
    ("加上文字“你好”", [], 1),
    ("search the web for the height of the tower", [], 0),
    ("paint a lighthouse at night, square", [], 1),
    ("crop it to 16:9", [], 1),
    ("grayscale", [], 1),
    ("turn #1 into sepia", [], 1),
    ("blur it a bit and flip it", [], 1),
    ("draw two pictures of a cat", [], 2),
    ("thank you", [], 0),
    ("sharpen this", [png(50, 50, "blue")], 1),
    ("more contrast and cooler", [], 1),
    ("resize to 640x480", [], 1),
]


async def test_twenty_turns_run_on_sketch_without_a_key(settings: Settings) -> None:
    async with Studio(settings) as studio:
        conversation = await studio.new_conversation()
        for text, uploads, pictures in SKETCH:
            events = await run(studio, conversation.id, text, *uploads)
            assert isinstance(events[-1], TurnDone), (text, events[-1])
            is_exact = any(line.step is Step.ADJUSTED for line in of_type(events, ThoughtLog))
            assert is_exact or words(events), text
            assert len(of_type(events, PictureReady)) == pictures, text
        kept = await studio.conversation(conversation.id)
    assert all(turn.state is TurnState.DONE for turn in kept.turns)
    receipts = [picture.receipt for picture in kept.pictures if picture.receipt]
    assert {receipt.is_sketch for receipt in receipts} == {True, False}
    assert all(receipt.is_sketch or receipt.model == EXACT_ADJUSTMENT for receipt in receipts)
    assert sum(turn.price_usd for turn in kept.turns) == 0
    assert json.loads(kept.model_dump_json())["turns"][0]["text"] == "hello"
