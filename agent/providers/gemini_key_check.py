"""What a Gemini key is good for: the list of models it is offered, and one word of each model that matters."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from google.genai import types

from agent.errors import AivistaError, ErrorCode, ErrorInfo, ProviderFailure
from agent.providers.catalogue import IMAGE_ROLES, ModelEntry
from agent.providers.gemini_connection import GeminiCall, GeminiConnection
from agent.providers.key_check import KeyDiagnosis, ModelStanding, diagnosed

T = TypeVar("T")

_PATIENCE_S = 20.0
_LIMIT_S = 30.0
_PAGE = 1000
# One token is enough of an answer, and far too little for a picture: that takes more than a thousand.
_ONE_TOKEN = 1
_QUESTION = "Answer with the word OK, and paint nothing."


async def check_key(connection: GeminiConnection, models: Sequence[ModelEntry], *, tries_models: bool) -> KeyDiagnosis:
    """Return how it stands with the key and these models; see `KeyChecker.check`."""
    try:
        offered = await _in_time(_offered(connection, models[0]))
    except AivistaError as error:
        return KeyDiagnosis(problem=error.info)
    standings = [_listed(model, offered) for model in models]
    if not tries_models:
        return diagnosed(standings)
    tried = (_tried(connection, model, listed) for model, listed in zip(models, standings, strict=True))
    return diagnosed(await asyncio.gather(*tried))


async def _offered(connection: GeminiConnection, like: ModelEntry) -> frozenset[str]:
    """Return the ids of all models that the key is offered."""
    models = connection.client().aio.models

    async def listed() -> frozenset[str]:
        pager = await models.list(config={"page_size": _PAGE})
        return frozenset([(one.name or "").removeprefix("models/") async for one in pager])

    return await connection.attend(listed(), GeminiCall(_PATIENCE_S), like)


def _listed(model: ModelEntry, offered: frozenset[str]) -> ModelStanding:
    problem = None
    if model.id not in offered:
        problem = ErrorInfo(code=ErrorCode.MODEL_NOT_OFFERED, parameters={"model": model.id})
    return ModelStanding(role=model.role, model_id=model.id, label=model.label, problem=problem)


async def _tried(connection: GeminiConnection, model: ModelEntry, listed: ModelStanding) -> ModelStanding:
    if listed.problem is not None:
        return listed
    modalities = ["TEXT", "IMAGE"] if model.role in IMAGE_ROLES else ["TEXT"]
    config: types.GenerateContentConfigDict = {
        "automatic_function_calling": {"disable": True},
        "automatic_continuation": False,
        "max_output_tokens": _ONE_TOKEN,
        "response_modalities": modalities,
    }
    asked = connection.client().aio.models.generate_content(model=model.id, contents=_QUESTION, config=config)
    try:
        await _in_time(connection.attend(asked, GeminiCall(_PATIENCE_S), model))
    except AivistaError as error:
        return _failed(listed, error.info)
    return listed.model_copy(update={"is_tried": True})


def _failed(listed: ModelStanding, error: ErrorInfo) -> ModelStanding:
    match error.code:
        case ErrorCode.MODEL_NOT_FOUND:
            error = ErrorInfo(code=ErrorCode.MODEL_NOT_OFFERED, parameters={"model": listed.model_id})
        case ErrorCode.REQUEST_REJECTED | ErrorCode.MODEL_UNFIT:
            # The question did not suit the model: the key did, as far as anybody can tell without a picture.
            return listed
        case _:
            pass
    return listed.model_copy(update={"problem": error, "is_tried": True})


async def _in_time(work: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(_LIMIT_S):
            return await work
    except TimeoutError:
        told = {"model": "Gemini", "seconds": f"{_LIMIT_S:g}"}
        raise ProviderFailure(ErrorCode.ANSWER_TOO_SLOW, **told) from None
