"""A conversation of twenty turns with uploads, generations, edits, a search and a model switch: no rule is broken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agent import EXACT_ADJUSTMENT, PictureReady, Step, ThoughtLog, TurnDone, TurnState
from tests.behaviour.conftest import OpenTalk
from tests.behaviour.talk import Talk
from tests.support.gemini import paint, search
from tests.support.scenes import of_type, png
from tests.wire_server import Answer, Call, Finish, PictureAnswer, Search, Text, WireRequest

FACTS = {"facts": [{"item": "The tower is 330 m high.", "source": "tower.example"}], "prompt_draft": "the tower"}
FOUND = Search(FACTS, sources=[("tower.example", "https://redirect.example/tower")])
DONE = Text("Done.", chunks=4)
PICTURE = PictureAnswer(width=320, height=180, signature_bytes=4096)


@dataclass(frozen=True)
class Said:
    """One turn of the script: what the person does, what the model answers, and which pictures come of it; `refused` of
    them do not come, whichever those are."""

    text: str
    plan: Sequence[Answer]
    makes: Sequence[str] = ()
    uploads: Sequence[bytes] = ()
    refused: int = 0
    chosen: dict[str, Any] = field(default_factory=dict)


PRO = {"text_model": "thinking", "image_model": "pro", "resolution": "2K"}
HEIGHT = paint("the tower, its height as the headline")
SCRIPT = [
    Said("Hello, what can you do?", [Text("I paint what you say.", chunks=4)]),
    Said("Draw a red fox in the snow.", [paint("a red fox in the snow")], ["#1"]),
    Said("Make it dusk.", [paint("the same, darker", handles=["#1"])], ["#1b"]),
    Said("What is on this photo?", [Text("A green field.", chunks=4)], uploads=[png(80, 60, "green")]),
    Said("Put the fox into my photo.", [paint("the fox on the field", handles=["#2", "#1b"])], ["#2b"]),
    Said("Two other takes, square.", [paint("a fox", number_of_images=2, aspect_ratio="1:1")], ["#3", "#4"]),
    Said("Think about a poster with me.", [Text("Which headline?", chunks=4)], chosen=PRO),
    Said("Slow mornings. Paint it.", [paint("a poster reading Slow mornings", model="pro")], ["#5"], chosen=PRO),
    Said("One with the height of the tower.", [search(), FOUND, HEIGHT], ["#6"], chosen=PRO | {"allow_search": True}),
    Said("The headline larger.", [paint("a larger headline", reference_mode="LAST_GENERATED")], ["#6b"], chosen=PRO),
    Said("The fox again, at night.", [paint("at night")], ["#1c"], chosen=PRO | {"editing": "#1b"}),
    Said("Which colour had my photo?", []),
    Said(
        "Combine these two.",
        [paint("both together", reference_mode="USER_UPLOADED_ONLY")],
        ["#9"],
        [png(50, 50, "blue"), png(60, 50, "yellow")],
    ),
    Said("Like the last three.", [paint("like these", reference_mode="LAST_N", reference_count=3)], ["#10"]),
    Said("A collage of all my photos.", [paint("a collage", reference_mode="ALL_USER_UPLOADED")], ["#11"]),
    Said("The poster once more, in blue.", [paint("in blue", handles=["#6b"])], ["#6c"]),
    Said("Change picture 99.", [paint("no", handles=["#99"]), paint("changed", handles=["#11"])], ["#11b"]),
    Said("Three foxes.", [paint("one too many", number_of_images=3)], ["#12", "#13", "#14"], refused=1),
    Said("Thank you!", [Text("With pleasure.", chunks=4)]),
    Said("The first fox, lighter.", [paint("lighter", handles=["#1"])], ["#1d"]),
]


def looks_again(request: WireRequest) -> Answer:
    """Have the picture shown that was last spoken of, then answer."""
    if request.function_responses:
        return Text("Green.")
    return Call("get_history_image", {"image_id": request.text.split("[Picture:history_")[-1][:32]})


async def test_twenty_turns_run_against_a_strict_server_with_no_rule_broken(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        talk.models.on_text(looks_again)
        talk.models.on_image(lambda _: PICTURE)
        for said in SCRIPT:
            refusal = [PICTURE, Finish("IMAGE_SAFETY")] if said.refused else None
            turn = await talk.say(said.text, *said.uploads, plan=said.plan, image=refusal, **said.chosen)
            assert isinstance(turn.events[-1], TurnDone), (said.text, turn.events[-1])
            made = {picture.handle for picture in turn.pictures}
            assert made <= set(said.makes), said.text
            assert len(made) == len(said.makes) - said.refused, said.text
        kept, sent = await talk.kept(), list(talk.models.requests)
    async with open_talk(talk) as later:
        assert await later.kept() == kept
    # The text model sees each upload in full when it comes, and the one it asks for, never again by itself.
    shown = [picture for request in sent if request.kind == "text" for picture in request.pictures]
    assert len(shown) <= sum(len(said.uploads) for said in SCRIPT) + 3
    # A picture of this model goes back in a model turn; after the switch of models the same one stands in a prompt.
    replayed = {one.model for one in sent if one.kind == "image" and "model" in [role for role, _ in one.blobs]}
    assert replayed == {"gemini-nano-banana-2.1", "gemini-3-pro-image"}
    receipt = kept.picture("#6").receipt
    assert receipt is not None
    assert (len(kept.turns), receipt.facts[0].source) == (20, "https://redirect.example/tower")


SKETCH: list[tuple[str, list[bytes], int]] = [
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


async def test_twenty_turns_run_on_sketch_without_a_key(sketch: Talk) -> None:
    for text, uploads, pictures in SKETCH:
        turn = await sketch.say(text, *uploads)
        assert isinstance(turn.events[-1], TurnDone), (text, turn.events[-1])
        is_exact = any(line.step is Step.ADJUSTED for line in of_type(turn.events, ThoughtLog))
        assert is_exact or turn.words, text
        assert len(of_type(turn.events, PictureReady)) == pictures, text
    kept = await sketch.kept()
    assert all(turn.state is TurnState.DONE for turn in kept.turns)
    receipts = [picture.receipt for picture in kept.pictures if picture.receipt]
    assert {receipt.is_sketch for receipt in receipts} == {True, False}
    assert all(receipt.is_sketch or receipt.model == EXACT_ADJUSTMENT for receipt in receipts)
    assert sum(turn.price_usd for turn in kept.turns) == 0
