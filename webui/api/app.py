"""The application that answers programs: its routes, what it says when something goes wrong, its schema."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any, Literal

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException as RouteMissing
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect

from agent import AivistaError, ErrorCode, ErrorInfo, Settings, Studio
from webui.api import conversations, direct, library, openai_images, turns
from webui.api.auth import KEY_HEADER, Buckets, Callers, TokenFile, Tokens
from webui.api.calls import OPENAPI_PATH, Api, Gate
from webui.api.contexts import Contexts
from webui.api.problems import (
    OpenAIProblem,
    Problem,
    RefusalCode,
    Refused,
    answer_with,
    problem_of_failure,
    problem_of_refusal,
    problem_responses,
)
from webui.api.turns import TurnBody
from webui.api.uploads import Uploads
from webui.sessions import Sessions

ROUTERS = (
    conversations.router,
    turns.router,
    conversations.pictures,
    conversations.files,
    direct.router,
    turns.uploads,
    library.router,
    openai_images.router,
)
_MOST_ERRORS = 10
_ABOUT = (
    "A studio for pictures: conversations with an agent that paints, edits and keeps everything. "
    f"Your own Gemini key may come with a request as `{KEY_HEADER}`; it is used for that one alone."
)

# What no route names as its body or its answer.
_BY_HAND: dict[type[BaseModel], Literal["validation", "serialization"]] = {
    TurnBody: "validation",
    Problem: "serialization",
    OpenAIProblem: "serialization",
}

_log = logging.getLogger(__name__)


def api_application(
    studio: Callable[[], Studio],
    sessions: Sessions,
    settings: Settings,
    language: str | None = None,
    *,
    has_password: bool = False,
) -> FastAPI:
    """Return the application. Its schema, of these routes alone, is at `/api/v1/openapi.json`, without a token."""
    # The page's password does not stand before the API.
    is_open = not (settings.is_public or has_password)
    api = Api(
        studio=studio,
        sessions=sessions,
        callers=Callers(
            Tokens(TokenFile(settings.home), settings.api_tokens, is_open=is_open),
            Buckets(settings.api_requests_per_minute),
        ),
        turns=Buckets(settings.api_turns_per_minute),
        uploads=Uploads(),
        contexts=Contexts(),
        language=language,
    )
    app = _Api(
        title="Aivista",
        version=_version(),
        description=_ABOUT,
        openapi_url=OPENAPI_PATH,
        docs_url=None,
        redoc_url=None,
        middleware=[Middleware(Gate, api=api)],
        generate_unique_id_function=_name_of,
        redirect_slashes=False,
    )
    app.state.api = api
    for router in ROUTERS:
        app.include_router(router)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(AivistaError, _failed)
    app.add_exception_handler(RequestValidationError, _unfit)
    app.add_exception_handler(ValidationError, _unfit)
    app.add_exception_handler(RouteMissing, _missing)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _unforeseen)
    return app


class _Api(FastAPI):
    def openapi(self) -> dict[str, Any]:
        """Return the schema, with the bodies that a route reads by itself, which FastAPI would leave out."""
        if self.openapi_schema is None:
            self.openapi_schema = _schema(self)
        return self.openapi_schema


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return _answer(request, error)


def _answer(request: Request, error: Refused | ErrorInfo, errors: Sequence[dict[str, str]] = ()) -> Response:
    words = request.app.state.api.words(request.headers)
    if isinstance(error, Refused):
        problem = problem_of_refusal(words, error, errors)
    else:
        problem = problem_of_failure(words, error)
        if problem.status >= 500 and error.code is not ErrorCode.INTERNAL:
            _log.warning("%s %s failed: %s", request.method, request.scope["path"], error.code)
    return answer_with(problem, request.scope["path"])


def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, AivistaError)
    return _answer(request, error.info)


def _unfit(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError | ValidationError)
    found: Sequence[Any] = error.errors()
    # What was sent is not said again: it may be long, and hold a key.
    told = [
        {"where": ".".join(str(step) for step in one["loc"]) or "body", "what": str(one["msg"])}
        for one in found[:_MOST_ERRORS]
    ]
    first = f"{told[0]['where']}: {told[0]['what']}" if told else "body"
    return _answer(request, Refused(RefusalCode.UNREADABLE, problem=first.rstrip(".")), told)


def _missing(request: Request, error: Exception) -> Response:
    assert isinstance(error, RouteMissing)
    if isinstance(error.__cause__, Refused):
        # FastAPI wraps whatever goes wrong while it reads a body.
        return _answer(request, error.__cause__)
    match error.status_code:
        case 404:
            refused = Refused(RefusalCode.NO_SUCH_ADDRESS)
        case 405:
            refused = Refused(RefusalCode.WRONG_METHOD, method=request.method)
        case _:
            refused = Refused(RefusalCode.UNREADABLE, problem=str(error.detail).rstrip("."))
    answer = _answer(request, refused)
    # A 405 names what the address takes.
    answer.headers.update({name: value for name, value in (error.headers or {}).items() if name.lower() == "allow"})
    return answer


def _gone(_request: Request, _error: Exception) -> Response:
    return Response(status_code=400)


def _unforeseen(request: Request, _error: Exception) -> Response:
    return _answer(request, ErrorInfo(code=ErrorCode.INTERNAL))


def _name_of(route: APIRoute) -> str:
    return route.name


def _schema(app: FastAPI) -> dict[str, Any]:
    schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    kept = schema.setdefault("components", {}).setdefault("schemas", {})
    for model, mode in _BY_HAND.items():
        own = model.model_json_schema(ref_template="#/components/schemas/{model}", mode=mode)
        kept |= {**own.pop("$defs", {}), model.__name__: own}
    responses = schema["components"]["responses"] = {}
    for path, operations in schema["paths"].items():
        for status, (name, response) in problem_responses(path).items():
            responses[name] = response
            for operation in operations.values():
                operation["responses"][status] = {"$ref": f"#/components/responses/{name}"}
    for name in ("HTTPValidationError", "ValidationError"):
        kept.pop(name, None)
    schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    # On one's own machine no token is needed until one is made.
    schema["security"] = [{"token": []}, {}]
    return schema


def _version() -> str:
    try:
        return metadata.version("aivista")
    except metadata.PackageNotFoundError:
        return "0"
