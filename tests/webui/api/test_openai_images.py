"""OpenAI's own client paints and edits here, masked edits included, and reads our errors as its own."""

from __future__ import annotations

import base64
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import openai
import pytest
from PIL import Image

from agent import ErrorCode, ErrorInfo
from tests.adapters.models import Line, says
from tests.support.api import ANNA, TOKENS, Served, painted, paints, png, served


@asynccontextmanager
async def openai_client(one: Served, key: str = "none is needed here") -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{one.url}/v1", api_key=key, max_retries=0) as client:
        yield client


def opened(data: str | None) -> Image.Image:
    assert data is not None
    image = Image.open(io.BytesIO(base64.b64decode(data)))
    image.load()
    return image


async def test_ten_pictures_are_generated_in_the_nearest_shape_and_kept_in_the_gallery(tmp_path: Path) -> None:
    async with served(tmp_path) as one, openai_client(one) as client, one.client() as program:
        typed: dict[str, Any] = {"model": "gpt-image-1", "style": "vivid", "moderation": "low"}
        made = await client.images.generate(prompt="a red fox in snow", size="1536x1024", n=10, **typed)
        assert made.data is not None
        assert len(made.data) == 10
        width, height = opened(made.data[0].b64_json).size
        assert abs(width / height - 1.5) < 0.02
        assert made.usage is not None
        assert made.usage.total_tokens == made.usage.input_tokens + made.usage.output_tokens
        assert len((await program.get("/api/v1/gallery")).json()["items"]) == 10


async def test_a_picture_comes_by_an_address_that_is_signed_and_needs_no_token(tmp_path: Path) -> None:
    async with (
        served(tmp_path, text=[paints()], pictures=[painted()], api_tokens=TOKENS) as one,
        openai_client(one, ANNA) as client,
        httpx.AsyncClient() as anyone,
    ):
        made = await client.images.generate(prompt="a fox", response_format="url")
        assert made.data is not None
        url = made.data[0].url or ""
        fetched = await anyone.get(url)
        assert (fetched.status_code, fetched.headers["content-type"]) == (200, "image/png")
        assert (await anyone.get(url.replace("token-anna", "token-ben"))).status_code == 403


async def test_a_masked_edit_changes_no_pixel_outside_of_the_transparent_area(tmp_path: Path) -> None:
    noise = np.random.default_rng(7).integers(0, 255, (256, 256, 3), dtype=np.uint8)
    sink, mask_sink = io.BytesIO(), io.BytesIO()
    Image.fromarray(noise).save(sink, "PNG")
    mask = Image.new("RGBA", (256, 256), "black")
    mask.paste((0, 0, 0, 0), (96, 96, 160, 160))
    mask.save(mask_sink, "PNG")
    files: dict[str, Any] = {"image": ("photo.png", sink.getvalue()), "mask": ("mask.png", mask_sink.getvalue())}
    async with served(tmp_path) as one, openai_client(one) as client:
        made = await client.images.edit(prompt="make it red", **files)
    assert made.data is not None
    changed = (np.asarray(opened(made.data[0].b64_json).convert("RGB")) != noise).any(axis=2)
    assert changed[96:160, 96:160].any()
    changed[96:160, 96:160] = False
    assert not changed.any()


async def test_pictures_are_streamed_each_with_its_turn(tmp_path: Path) -> None:
    async with served(tmp_path, catalogue_file=None) as one, openai_client(one) as client:
        stream = await client.images.generate(prompt="a red fox", n=5, size="1024x1024", stream=True, partial_images=2)
        events = [event async for event in stream]
        assert {event.type for event in events} == {"image_generation.completed"}
        assert [opened(event.b64_json).size for event in events] == [(1024, 1024)] * 5
        edited = await client.images.edit(image=("a.png", png()), prompt="make it warmer", stream=True)
        [last] = [event async for event in edited]
        assert last.type == "image_edit.completed"
        assert opened(last.b64_json).size == (64, 48)


async def test_several_pictures_go_along_and_the_request_reaches_the_image_model(tmp_path: Path) -> None:
    lines = [paints(reference_mode="USER_UPLOADED_ONLY")]
    async with served(tmp_path, text=lines, pictures=[painted()]) as one, openai_client(one) as client:
        images = [("a.png", png("red")), ("b.png", png("blue"))]
        made = await client.images.edit(image=images, prompt="both together", model="pro", quality="high")
        assert made.data is not None
        assert one.provider is not None
        request = one.provider.asked[-1].request
        assert request is not None
        assert request.model.role == "image_pro"
        assert sum(len(message.images) for message in request.messages) == 2


async def test_what_would_not_be_obeyed_is_refused_in_openais_shape(tmp_path: Path) -> None:
    wrong: dict[str, Any] = {"n": 11, "size": "huge", "background": "transparent", "output_format": "webp"}
    async with served(tmp_path, text=[]) as one, openai_client(one) as client:
        for field, value in wrong.items():
            kind = openai.BadRequestError if field == "size" else openai.UnprocessableEntityError
            with pytest.raises(kind) as caught:
                await client.images.generate(prompt="a fox", **{field: value})
            assert caught.value.code == ("size_unknown" if field == "size" else "unreadable")
            assert caught.value.type == "invalid_request_error"
        with pytest.raises(openai.UnprocessableEntityError) as refused:
            await client.images.edit(image=("a.png", png()), mask=("m.png", b"no picture"), prompt="red")
        assert refused.value.code == "mask_unreadable"


async def test_failures_of_the_model_and_of_the_token_are_openais_errors(tmp_path: Path) -> None:
    lines = [says("Which fox do you mean?"), Line(error=ErrorInfo(code=ErrorCode.PROMPT_BLOCKED))]
    async with served(tmp_path, text=lines, api_tokens=TOKENS) as one:
        async with openai_client(one, ANNA) as client:
            with pytest.raises(openai.UnprocessableEntityError, match="Which fox do you mean") as talked:
                await client.images.generate(prompt="a fox")
            assert talked.value.code == "not_painted"
            with pytest.raises(openai.UnprocessableEntityError) as blocked:
                await client.images.generate(prompt="a fox")
            assert blocked.value.code == "prompt_blocked"
            assert [model.id async for model in client.models.list()] == ["auto", "flash", "pro"]
        async with openai_client(one, "sk-somebody-elses") as client:
            with pytest.raises(openai.AuthenticationError):
                await client.images.generate(prompt="a fox")


async def test_no_cap_is_passed_and_what_was_painted_before_a_failure_is_handed_over(tmp_path: Path) -> None:
    async with served(tmp_path / "capped", text=[paints()], cap_day_usd=0.01) as one, openai_client(one) as client:
        with pytest.raises(openai.APIStatusError) as caught:
            await client.images.generate(prompt="a fox")
        assert caught.value.code == "needs_decision"
        assert one.provider is not None
        assert all(asked.request is None for asked in one.provider.asked)
    lines = [paints(number_of_images=4), Line(error=ErrorInfo(code=ErrorCode.PROMPT_BLOCKED))]
    async with served(tmp_path, text=lines, pictures=[painted()] * 4) as one, openai_client(one) as client:
        made = await client.images.generate(prompt="a red fox", n=8)
        assert made.data is not None
        assert len(made.data) == 4


NOTHING = ("model", "n", "size", "quality", "response_format", "user", "background", "output_format", "stream")


async def test_null_and_an_empty_field_are_the_same_as_left_out_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as one, one.client() as client:
        nulls = {"prompt": "a fox", **dict.fromkeys((*NOTHING, "moderation", "style"))}
        made = await client.post("/v1/images/generations", json=nulls)
        assert (made.status_code, len(made.json()["data"])) == (200, 1), made.text
        refused = await client.post("/v1/images/generations", json={"prompt": None})
        assert refused.status_code == 422
        image, depth = ("image", ("a.png", png())), ("depth", ("b.png", png()))
        empty = {"prompt": "warmer", "mask": "", **dict.fromkeys(NOTHING, "")}
        edited = await client.post("/v1/images/edits", data=empty, files=[image])
        assert edited.status_code == 200, edited.text
        for files, fields in ([image], {"depth": "x"}), ([image, depth], dict[str, str]()):
            answer = await client.post("/v1/images/edits", data={"prompt": "red", **fields}, files=files)
            assert answer.status_code == 422
            assert "depth: Extra inputs are not permitted" in answer.json()["error"]["message"]
