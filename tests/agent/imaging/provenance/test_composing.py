from __future__ import annotations

from datetime import UTC, datetime

from pydantic import SecretStr

from agent import (
    EXACT_ADJUSTMENT,
    AdjustmentChange,
    ChangeKind,
    EditKind,
    EditRecord,
    EditVerdict,
    Fact,
    ImageOrigin,
    ImagePart,
    Margins,
    Picture,
    PromptMessage,
    Receipt,
    Reference,
    ReferenceMode,
    Role,
    Source,
    StyleUse,
    TextPart,
    TurnSettings,
)
from tests.adapters.recipes import (
    ParentDigest,
    RecipeMargins,
    RecipeSource,
    SourceType,
    embed,
    read_recipe,
    recipe_of,
    to_json,
)
from tests.agent.imaging.provenance.samples import PNGS
from tests.support.cases import each_case

NOW = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
UPLOADED, GENERATED, EDITED = ImageOrigin.UPLOADED, ImageOrigin.GENERATED, ImageOrigin.EDITED


def part(number: int, origin: ImageOrigin = GENERATED) -> ImagePart:
    return ImagePart(
        digest=f"{number:064x}", md5="0" * 32, mime_type="image/png", size_bytes=1, origin=origin, width=48, height=32
    )


def receipt(model: str = "gemini-flash-image", **changes: object) -> Receipt:
    words = {"prompt": "A quokka at a kiosk.", "user_text": "a quokka please", "mime_type": "image/png"}
    asked = {"asked_aspect_ratio": "16:9", "asked_resolution": None, "width": 48, "height": 32}
    return Receipt.model_validate({"model": model, "model_label": "Gemini Flash Image", **words, **asked, **changes})


def edit(kind: EditKind = "mask", verdict: EditVerdict = "good", margins: Margins | None = None) -> EditRecord:
    return EditRecord(
        kind=kind, verdict=verdict, reason="", base=part(90), mask=part(91), raw=part(92), margins=margins
    )


def picture(
    number: int,
    origin: ImageOrigin = GENERATED,
    parents: tuple[str, ...] = (),
    told: Receipt | None = None,
    edited: EditRecord | None = None,
) -> Picture:
    return Picture(
        handle=f"#{number}",
        image=part(number, origin),
        turn_id="turn-secret-id",
        created_at=NOW,
        parents=parents,
        receipt=told,
        edit=edited,
        call="picture:1.0.0.1",
        answer=PromptMessage(role=Role.MODEL, parts=(TextPart(text="", thought_signature=b"signature"),)),
    )


PHOTO = picture(1, UPLOADED)
MADE = picture(2, told=receipt())


def adjusted(number: int, base: str) -> Picture:
    changes = (AdjustmentChange(kind=ChangeKind.BRIGHTER, amount=20),)
    return picture(number, EDITED, (base,), receipt(EXACT_ADJUSTMENT, prompt="", changes=changes))


def sketched(number: int, *parents: str) -> Picture:
    return picture(number, parents=parents, told=receipt("sketch", is_sketch=True))


def masked(number: int, base: str, verdict: EditVerdict = "good") -> Picture:
    return picture(number, EDITED, (base,), receipt(), edit(verdict=verdict))


def test_a_recipe_tells_all_that_making_it_again_needs() -> None:
    told = receipt(
        references=(Reference(handle="#1", role="subject"), Reference(handle="#7", role="style")),
        styles=(StyleUse(name="Ukiyo-e", similarity=0.9),),
        facts=(Fact(item="small", source="https://example.org"),),
        sources=(Source(title="Quokka", url="https://example.org/q"),),
        price_usd=0.04,
        seconds=12.5,
    )
    settings = TurnSettings(image_model="pro", aspect_ratio="16:9", number_of_images=3, allow_search=True)
    one = picture(3, parents=("#1",), told=told)
    found = recipe_of(
        one,
        settings,
        (PHOTO, MADE),
        pixels_digest="d" * 64,
        conversation_title="Kiosk",
        reference_mode=ReferenceMode.LAST_GENERATED,
    )
    assert (found.words, found.prompt, found.model_label) == (
        "a quokka please",
        "A quokka at a kiosk.",
        "Gemini Flash Image",
    )
    assert found.parents == (
        ParentDigest(handle="#1", digest=PHOTO.image.digest, role="subject"),
        ParentDigest(handle="#7", digest="", role="style"),
    )
    assert found.settings is not None
    assert found.settings.model_dump() == {
        "text_model": "flash",
        "image_model": "pro",
        "aspect_ratio": "16:9",
        "resolution": None,
        "number_of_images": 3,
        "allow_search": True,
        "search_policy": "llm_only",
        "reference_mode": "LAST_GENERATED",
    }
    assert (found.price_usd, found.seconds, found.created_at) == (0.04, 12.5, NOW)
    assert (found.file_digest, found.pixels_digest) == (one.image.digest, "d" * 64)
    assert (found.handle, found.conversation_title) == ("#3", "Kiosk")
    assert found.sources == (RecipeSource(title="Quokka", url="https://example.org/q"),)
    assert (found.source_type, found.made_with_ai) == (SourceType.TRAINED, True)
    assert read_recipe(embed(PNGS["png"], "image/png", found)) == found


def test_a_recipe_names_no_turn_no_call_and_no_signature_and_secrets_are_blacked_out() -> None:
    text = to_json(recipe_of(MADE, TurnSettings(), ()))
    assert not [name for name in ("turn-secret-id", "picture:1", "signature", "c2lnbmF0dXJl") if name in text]
    key = "AIza" + "Q" * 35
    words = f"key {key} and hunter2-of-mine, see /home/maria/pictures/cat.png"
    told = receipt(user_text=words, prompt=words, facts=(Fact(item=words, source=words),))
    secrets = (SecretStr("hunter2-of-mine"),)
    found = recipe_of(picture(1, told=told), None, conversation_title=words, secrets=secrets)
    assert "[secret]" in found.words
    assert not [hidden for hidden in (key, "hunter2", "maria") if hidden in to_json(found)]


@each_case(
    ("one", "source"),
    [
        (PHOTO, None),
        (MADE, SourceType.TRAINED),
        (picture(3, parents=("#1",), told=receipt()), SourceType.TRAINED),
        (masked(3, "#1"), SourceType.COMPOSITE),
        (masked(3, "#2"), SourceType.TRAINED),
        (masked(3, "#1", "unsure"), SourceType.COMPOSITE),
        (masked(3, "#1", "refused"), SourceType.TRAINED),
        (masked(3, "#99"), SourceType.COMPOSITE),
        (masked(3, "#11"), SourceType.COMPOSITE),
        (masked(3, "#12"), SourceType.TRAINED),
        (masked(3, "#13"), SourceType.COMPOSITE),
        (masked(3, "#14"), SourceType.COMPOSITE),
        (adjusted(3, "#1"), None),
        (adjusted(3, "#2"), SourceType.TRAINED),
        (adjusted(3, "#13"), SourceType.COMPOSITE),
        (adjusted(3, "#99"), None),
        (adjusted(3, "#3"), None),
        (sketched(3), SourceType.ALGORITHMIC),
        (sketched(3, "#1"), None),
        (sketched(3, "#2"), SourceType.TRAINED),
        (adjusted(3, "#14"), SourceType.ALGORITHMIC),
        (masked(3, "#15"), SourceType.COMPOSITE),
    ],
)
def test_what_the_pixels_come_from_is_told_by_the_pictures_above(one: Picture, source: SourceType | None) -> None:
    ring = masked(15, "#16"), masked(16, "#15")
    above = (PHOTO, MADE, adjusted(11, "#1"), adjusted(12, "#2"), masked(13, "#1"), sketched(14), *ring, one)
    found = recipe_of(one, TurnSettings(), above)
    assert found.source_type is source
    assert found.made_with_ai is (source in (SourceType.TRAINED, SourceType.COMPOSITE))


def test_an_edit_is_told_with_its_kind() -> None:
    assert recipe_of(masked(3, "#1"), None).edit == "mask"
    assert recipe_of(masked(3, "#1", "refused"), None).edit is None
    wider = picture(3, EDITED, ("#1",), receipt(), edit("expansion", margins=Margins(left=10, top=4)))
    assert recipe_of(wider, None).edit == "expansion"
    assert recipe_of(wider, None).margins == RecipeMargins(left=10, top=4)
    exact = recipe_of(adjusted(3, "#1"), None)
    assert exact.edit == "adjustment"
    assert [(change.kind, change.amount) for change in exact.changes] == [(ChangeKind.BRIGHTER, 20)]
