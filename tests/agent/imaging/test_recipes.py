"""Recipes: what they tell of a picture, how they go into its file and out of it, and how they lead back to it."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from pydantic import SecretStr

from agent import (
    EXACT_ADJUSTMENT,
    AdjustmentChange,
    ChangeKind,
    EditKind,
    EditRecord,
    EditVerdict,
    ErrorCode,
    Fact,
    ImageOrigin,
    ImagePart,
    Margins,
    Picture,
    PromptMessage,
    Receipt,
    Reference,
    ReferenceMode,
    RequestRefused,
    Role,
    Source,
    StyleUse,
    TextPart,
    TurnSettings,
)
from tests.adapters.recipes import (
    LONG_TEXT_CHARACTERS,
    MAX_RECIPE_BYTES,
    ParentDigest,
    Recipe,
    RecipeMargins,
    RecipeService,
    RecipeSource,
    SourceType,
    clean,
    embed,
    has_credentials,
    read_recipe,
    recipe_of,
    to_json,
)
from tests.adapters.records import Records
from tests.agent.imaging.recipe_samples import (
    FILES,
    JPEGS,
    PNGS,
    PROMPT,
    WEBPS,
    every_frame,
    jpeg_segment,
    png_chunks,
    recipe,
    recipes,
    scene,
    webp_chunks,
    webp_of,
    with_chunks,
)
from tests.support.cases import each_case
from tests.support.galleries import Filled, filled
from tests.support.pixels import encoded, png_chunk
from tests.support.refusals import refusal

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
    settings = TurnSettings(
        image_model="pro",
        aspect_ratio="16:9",
        number_of_images=3,
        allow_search=True,
        reference_mode=ReferenceMode.LAST_GENERATED,
    )
    one = picture(3, parents=("#1",), told=told)
    found = recipe_of(one, settings, (PHOTO, MADE), conversation_title="Kiosk")
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
    assert found.file_digest == one.image.digest
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


FOREIGN_XMP = b"""<?xpacket begin="\xef\xbb\xbf" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/"><r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<r:Description r:about="u&amp;1" xmlns:p="http://ns.adobe.com/photoshop/1.0/" p:Credit="Made elsewhere">
<i:DigitalSourceType xmlns:i="http://iptc.org/std/Iptc4xmpExt/2008-02-29/">http://foreign.example/</i:DigitalSourceType>
</r:Description></r:RDF></x:xmpmeta>
<?xpacket end="w"?>"""


def shown(data: bytes) -> Image.Image:
    picture = Image.open(io.BytesIO(data))
    picture.load()
    return picture


def ours_in(data: bytes) -> Recipe:
    found = read_recipe(data)
    assert isinstance(found, Recipe)
    return found


@each_case("name", FILES)
def test_what_is_embedded_is_read_back_and_no_pixel_changes(name: str) -> None:
    mime_type, data = FILES[name]
    told = embed(data, mime_type, recipe())
    assert told != data
    assert read_recipe(told) == recipe()
    assert every_frame(told) == every_frame(data)
    shown(told).getexif()
    if "animated" not in name:
        # Another decoder sees the same pixels, too, to the last bit.
        before, after = (cv2.imdecode(np.frombuffer(one, np.uint8), cv2.IMREAD_UNCHANGED) for one in (data, told))
        assert before is not None
        assert before.dtype == (np.uint16 if "deep" in name else np.uint8)
        np.testing.assert_array_equal(after, before)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(told=recipes(), name=st.sampled_from(sorted(FILES)))
def test_any_recipe_is_read_back_as_it_was_written(told: Recipe, name: str) -> None:
    mime_type, data = FILES[name]
    assert read_recipe(embed(data, mime_type, told)) == told


@pytest.mark.parametrize("name", ["png", "jpeg", "webp"])
def test_others_find_the_prompt_where_they_look_for_it(name: str) -> None:
    mime_type, data = FILES[{"webp": "lossy webp"}.get(name, name)]
    picture = shown(embed(data, mime_type, recipe()))
    if name == "png":
        text = picture.info["parameters"]
    else:
        comment = picture.getexif().get_ifd(0x8769)[0x9286]
        assert comment[:8] == b"UNICODE\0"
        text = comment[8:].decode("utf-16-be")
    assert text.startswith(f"{PROMPT}\nSize: 48x32, Model: Gemini Pro Image, ")
    assert "Steps" not in text


@each_case("form", ["JPEG", "WEBP"])
def test_exif_of_a_camera_and_the_comment_of_another_program_stay_as_they_are(form: str) -> None:
    camera, program = Image.Exif(), Image.Exif()
    camera[0x010F], camera[0x0112] = "Leica", 3
    program.get_ifd(0x8769)[0x9286] = b"UNICODE\0" + "their prompt\nSteps: 20, Seed: 1, Size: 8x8".encode("utf-16-be")
    for exif in (camera, program):
        data = encoded(scene(), form, exif=exif.tobytes())
        told = embed(data, f"image/{form.lower()}", recipe())
        assert shown(told).info["exif"] == shown(data).info["exif"]
        assert exif is program or (told.index(b"Leica") < told.index(b"xmpmeta") and read_recipe(told) == recipe())
    theirs = png_chunk(b"tEXt", b"parameters\0their prompt\nSteps: 20, Sampler: Euler, Seed: 1")
    told = embed(with_chunks(PNGS["png"], theirs), "image/png", recipe())
    assert (told.count(b"parameters"), theirs in told, read_recipe(told)) == (1, True, recipe())


def _with_xmp(kind: str, packet: bytes) -> bytes:
    if kind == "image/png":
        return with_chunks(PNGS["png"], png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + packet))
    if kind == "image/jpeg":
        segment = jpeg_segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + packet)
        return JPEGS["jpeg"][:2] + segment + JPEGS["jpeg"][2:]
    chunks = dict(webp_chunks(WEBPS["webp with profile"]))
    chunks[b"VP8X"] = bytes([chunks[b"VP8X"][0] | 4]) + chunks[b"VP8X"][1:]
    return webp_of(*chunks.items(), (b"XMP ", packet))


def _parts_of(packet: bytes) -> list[str]:
    """Return what each program told, in one spelling."""
    return [ElementTree.canonicalize(ElementTree.tostring(one)) for one in ElementTree.fromstring(packet)[0]]


def _xmp_of(data: bytes) -> bytes:
    packet = shown(data).info.get("xmp")
    assert isinstance(packet, bytes)
    return packet


@pytest.mark.parametrize("mime_type", ["image/png", "image/jpeg", "image/webp"])
def test_what_another_program_said_in_xmp_stays_and_is_not_said_twice(mime_type: str) -> None:
    data = _with_xmp(mime_type, FOREIGN_XMP)
    told = embed(embed(data, mime_type, recipe(handle="#1")), mime_type, recipe())
    packet = _xmp_of(told)
    theirs, _ = _parts_of(packet)
    assert [theirs] == _parts_of(FOREIGN_XMP)
    assert packet.startswith(b"<?xpacket begin=")
    assert packet.endswith(b'<?xpacket end="w"?>')
    assert packet.count(b"DigitalSourceType") == 2
    assert packet.count(b"Credit") == 1
    assert packet.count(b'about="u&amp;1"') == 2
    assert read_recipe(told) == recipe()


@each_case("packet", [b"no xml", b'<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>', b"<x/>", b"\xff\xfe<\0"])
@each_case("mime_type", ["image/png", "image/jpeg", "image/webp"])
def test_a_packet_that_cannot_be_read_gives_way(mime_type: str, packet: bytes) -> None:
    told = embed(_with_xmp(mime_type, packet), mime_type, recipe())
    assert read_recipe(told) == recipe()
    assert b"DOCTYPE" not in told


def test_search_engines_and_agencies_are_told_what_made_it_but_not_of_an_upload() -> None:
    packet = _xmp_of(embed(JPEGS["jpeg"], "image/jpeg", recipe())).decode()
    assert "DigitalSourceType>http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia<" in packet
    assert "<dc:source>https://example.org/rottnest?a=1&amp;b=2</dc:source>" in packet
    assert "<photoshop:Credit>Made with Gemini Pro Image</photoshop:Credit>" in packet
    edited = recipe(source_type="compositeWithTrainedAlgorithmicMedia", edit="mask")
    assert b"/compositeWithTrainedAlgorithmicMedia<" in _xmp_of(embed(JPEGS["jpeg"], "image/jpeg", edited))
    upload = Recipe(created_at=recipe().created_at, handle="#1")
    told = embed(PNGS["png"], "image/png", upload)
    assert read_recipe(told) == upload
    assert not [word for word in (b"DigitalSourceType", b"Credit", b"parameters") if word in told]


def test_content_credentials_and_all_else_stay_where_they_are() -> None:
    manifest = png_chunk(b"caBX", b"\0\0\0\x20jumb manifest")
    comment = png_chunk(b"tEXt", b"Comment\0hello")
    data = with_chunks(PNGS["png"], manifest, comment)
    told = embed(data, "image/png", recipe())
    assert has_credentials(data)
    assert has_credentials(told)
    assert told[:33] + manifest + comment == told[: 33 + len(manifest) + len(comment)]
    segment = jpeg_segment(0xEB, b"JP\0\1\0\0\0\1\0\0\0\x40jumb\0\0\0\x1ejumdc2pa manifest")
    jpeg = JPEGS["jpeg"][:2] + segment + JPEGS["jpeg"][2:]
    assert has_credentials(jpeg)
    assert segment in embed(jpeg, "image/jpeg", recipe())
    webp = webp_of(*webp_chunks(WEBPS["webp with profile"]), (b"C2PA", b"manifest"))
    assert has_credentials(webp)
    assert list(webp_chunks(embed(webp, "image/webp", recipe())))[-1] == (b"C2PA", b"manifest")
    assert not any(has_credentials(data) for _, data in FILES.values())


def test_what_follows_a_pictures_end_stays_also_a_second_picture_and_a_kind_that_carries_none_is_unchanged() -> None:
    for mime_type, data in (FILES["png"], FILES["jpeg"], FILES["lossy webp"]):
        assert embed(data + b"tail", mime_type, recipe()).endswith(b"tail")
    data = encoded(scene(), "MPO", save_all=True, append_images=[scene("L").convert("RGB")])
    told = embed(data, "image/jpeg", recipe())
    assert len(every_frame(data)) == 2
    assert (every_frame(told), read_recipe(told)) == (every_frame(data), recipe())
    for form in ("GIF", "AVIF"):
        data = encoded(scene(), form)
        assert (embed(data, f"image/{form.lower()}", recipe()), read_recipe(data)) == (data, None)


def test_the_longest_recipe_is_read_and_a_jpeg_without_room_carries_a_shorter_one_and_says_so() -> None:
    long = recipe(words="長" * LONG_TEXT_CHARACTERS, prompt="&" * LONG_TEXT_CHARACTERS)
    worst = recipe(
        words="&" * 99_999,
        prompt="\U0001f998" * 99_999,
        facts=[{"item": "&" * 999, "source": "&" * 999}] * 99,
        sources=[{"title": "&" * 999, "url": "https://" + "&" * 9999}] * 99,
        styles=[{"name": "&" * 999}] * 99,
        parents=[{"handle": "&" * 99, "digest": "a" * 64, "role": "&" * 99}] * 99,
    )
    assert len(to_json(worst).encode()) < MAX_RECIPE_BYTES
    for told in (long, worst):
        for name in ("png", "lossy webp", "lossless webp"):
            mime_type, data = FILES[name]
            assert read_recipe(embed(data, mime_type, told)) == told
    assert ours_in(embed(JPEGS["jpeg"], "image/jpeg", worst)).is_shortened
    found = ours_in(embed(JPEGS["jpeg"], "image/jpeg", long))
    assert found.is_shortened
    assert len(found.words) >= 1000
    assert long.words.startswith(found.words)
    bare = {"words": "", "prompt": "", "is_shortened": False}
    assert found.model_copy(update=bare) == long.model_copy(update=bare)


TRACES = ("quokka", "Photorealistic", "aivista", "Aivista", "parameters", "xmpmeta", "短尾", "Rottnest", "Gemini")


def traces(data: bytes) -> list[str]:
    codes = ("utf-8", "utf-16-le", "utf-16-be")
    return [word for word in (*TRACES, "secret place") if any(word.encode(code) in data for code in codes)]


def orientation(data: bytes) -> int:
    with Image.open(io.BytesIO(data)) as picture:
        return int(picture.getexif().get(0x0112, 1))


@each_case("name", FILES)
def test_a_clean_copy_has_no_trace_of_the_recipe_and_the_same_pixels(name: str) -> None:
    mime_type, data = FILES[name]
    told = embed(data, mime_type, recipe())
    assert traces(told)
    bare = clean(told, mime_type)
    assert traces(bare) == []
    assert read_recipe(bare) is None
    assert every_frame(bare) == every_frame(data)
    assert bare == clean(data, mime_type)
    assert len(bare) <= len(data)
    assert orientation(bare) == orientation(data)


@each_case("orientation_told", range(1, 9))
@each_case("form", ["PNG", "JPEG", "WEBP"])
def test_of_a_cameras_exif_only_the_way_up_stays(form: str, orientation_told: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation_told
    exif[0x010F] = "secret place"
    exif.get_ifd(0x8825)[2] = (48.0, 12.0, 30.5)
    exif.get_ifd(0x8769)[0x9286] = b"ASCII\0\0\0secret place"
    data = encoded(scene(), form, exif=exif.tobytes(), icc_profile=None)
    bare = clean(data, f"image/{form.lower()}")
    assert traces(data)
    assert traces(bare) == []
    assert orientation(bare) == orientation_told
    with Image.open(io.BytesIO(bare)) as picture:
        assert set(picture.getexif()) == ({0x0112} if orientation_told != 1 else set())
    assert every_frame(bare) == every_frame(data)


def test_a_png_loses_every_text_its_time_and_its_credentials() -> None:
    chunks = {
        b"tEXt": b"Comment\0secret place",
        b"zTXt": b"prompt\0\0secret place",
        b"iTXt": b"XML:com.adobe.xmp\0\0\0\0\0secret place",
        b"tIME": bytes(7),
        b"caBX": b"jumb secret place",
        b"prVt": b"secret place",
    }
    dirty = with_chunks(PNGS["png with profile"], *map(png_chunk, chunks, chunks.values())) + b"secret place"
    bare = clean(dirty, "image/png")
    assert bare == PNGS["png with profile"]
    assert [kind for kind, _ in png_chunks(bare)] == [b"IHDR", b"iCCP", b"pHYs", b"IDAT", b"IEND"]


def test_a_jpeg_loses_every_remark_its_preview_and_its_credentials_and_gets_an_end_if_it_has_none() -> None:
    data = JPEGS["jpeg with profile"]
    remarks = {
        0xE0: b"JFIF\0\1\1\0\0\1\0\1\2\1secret",
        0xFE: b"secret place",
        0xED: b"Photoshop 3.0\0secret place",
        0xEB: b"JP\0\1\0\0\0\1\0\0\0\x40jumb\0\0\0\x1ejumdc2pa secret place",
        0xE2: b"FPXR\0secret place",
        0xE1: b"http://ns.adobe.com/xmp/extension/\0secret place",
    }
    scan = data.index(b"\xff\xda", data.index(b"\xff\xda") + 2)
    within = data[20:scan] + jpeg_segment(0xFE, b"secret place") + data[scan:]
    dirty = data[:2] + b"".join(map(jpeg_segment, remarks, remarks.values())) + within + b"secret place" + data
    assert every_frame(dirty)[0][:3] == every_frame(data)[0][:3]
    bare = clean(dirty, "image/jpeg")
    assert (traces(bare), has_credentials(bare)) == ([], False)
    assert bare == data
    assert clean(JPEGS["jpeg"][:-2], "image/jpeg") == JPEGS["jpeg"]


def test_a_webp_loses_what_is_not_its_pixels_and_its_extended_header() -> None:
    data = WEBPS["webp with profile"]
    dirty = webp_of(*webp_chunks(data), (b"C2PA", b"secret place"), (b"note", b"secret place")) + b"secret place"
    assert clean(dirty, "image/webp") == data
    plain = WEBPS["lossy webp"]
    assert [kind for kind, _ in webp_chunks(clean(embed(plain, "image/webp", recipe()), "image/webp"))] == [b"VP8 "]


@each_case("kind", ["gif", "avif", "heic", "png", "jpeg", "webp"])
@each_case("data", [b"", b"GIF89a", PNGS["png"][:-20], JPEGS["jpeg"][:100], WEBPS["lossy webp"][:-9]])
def test_what_cannot_be_taken_apart_is_never_called_clean(kind: str, data: bytes) -> None:
    with pytest.raises(RequestRefused) as caught:
        clean(data, f"image/{kind}")
    assert caught.value.code is ErrorCode.PICTURE_UNREADABLE


@pytest.fixture
async def records(tmp_path: Path) -> AsyncIterator[Filled]:
    async with filled(tmp_path) as records:
        yield records


def desk_of(records: Filled) -> RecipeService:
    return RecipeService(records.store.conversations, records.images)


async def test_a_picture_taken_away_tells_its_recipe_and_shows_the_same_pixels(records: Filled) -> None:
    conversation = await records.conversation(title="Autumn")
    await records.add(conversation, "a fox, painted", words="draw a fox")
    desk = desk_of(records)
    original = await desk.original(conversation, "#1", "local")
    carrying = await desk.with_recipe(conversation, "#1", "local")
    recipe = ours_in(carrying.data)
    assert (recipe.words, recipe.prompt, recipe.conversation_title) == ("draw a fox", "a fox, painted", "Autumn")
    assert recipe.settings is not None
    assert recipe.settings.image_model == "pro"
    assert recipe.file_digest == original.picture.image.digest
    assert every_frame(carrying.data) == every_frame(original.data)
    assert read_recipe(original.data) is None


async def test_a_recipe_leads_back_to_its_picture_else_to_what_it_was_made_from(records: Filled) -> None:
    conversation = await records.conversation()
    await records.add(conversation)
    base = await records.add(conversation, prompt=None)
    await records.add(conversation, details={"parents": ("#2",)})
    desk = desk_of(records)
    recipe = ours_in((await desk.with_recipe(conversation, "#3", "local")).data)
    assert await desk.find("local", recipe) == (conversation, "#3")
    elsewhere = recipe.model_copy(update={"file_digest": "f" * 64})
    assert await desk.find("local", elsewhere) == (conversation, "#2")
    await records.gallery.delete("local", [base])
    assert await desk.find("local", elsewhere) is None


async def test_a_kept_shortfall_stays_kept(records: Filled) -> None:
    conversation = await records.conversation()
    await records.add(conversation)
    await desk_of(records).keep_shortfall(conversation, "#1", "local")
    assert (await records.store.conversations.get(conversation, "local")).picture("#1").shortfall_kept
    anew = Records(records.home, records.images)
    await anew.open()
    assert (await anew.conversations.get(conversation, "local")).picture("#1").shortfall_kept
    await anew.aclose()
    with pytest.raises(RequestRefused):
        await desk_of(records).keep_shortfall(conversation, "#9", "local")


async def test_what_cannot_be_taken_apart_is_not_called_clean_and_its_turn_is_found(records: Filled) -> None:
    conversation = await records.conversation(turn_id="t-first")
    await records.add(conversation, data=b"\x89PNG\r\n\x1a\nbroken")
    desk = desk_of(records)
    assert await refusal(desk.clean(conversation, "#1", "local")) is ErrorCode.PICTURE_UNREADABLE
    # With its recipe it is to be had all the same, as it is.
    assert (await desk.with_recipe(conversation, "#1", "local")).data == b"\x89PNG\r\n\x1a\nbroken"
    turn = await desk.turn_of(conversation, "#1", "local")
    assert turn is not None
    assert turn.id == "t-first"
