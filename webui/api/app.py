"""The FastAPI application for programs: routes, middleware, error answers and schema."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException as RouteMissing
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent import (
    MAX_MESSAGE_MEGABYTES,
    MAX_UPLOAD_MEGABYTES,
    MAX_VISITOR_UPLOAD_MEGABYTES,
    OPERATOR,
    AivistaError,
    ErrorCode,
    ErrorInfo,
    Settings,
    Studio,
    program_version,
)
from webui.api import direct, openai_images, records, turns
from webui.api.auth import KEY_HEADER, Buckets, Caller, Callers, TokenFile
from webui.api.calls import Api, Uploads
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
from webui.http.sessions import Sessions
from webui.whole_json import receiving_whole

ROUTERS = (
    records.conversations,
    turns.router,
    records.pictures,
    records.files,
    direct.router,
    turns.uploads,
    records.library,
    openai_images.router,
)
OPENAPI_PATH = "/api/v1/openapi.json"
_MOST_ERRORS = 10
_ABOUT = (
    "A studio for pictures: conversations with an agent that paints, edits and keeps everything. "
    f"Your own Gemini key may come with a request as `{KEY_HEADER}`; it is used for that one alone."
)
_LIMIT_MB = 2
# Pictures are sent here as bytes or base64: the largest body in megabytes for the studio's owner, and for others.
_LIMITS_MB = (
    (re.compile(r"/api/v1/uploads"), MAX_UPLOAD_MEGABYTES + 1, MAX_VISITOR_UPLOAD_MEGABYTES + 1),
    (re.compile(r"/api/v1/conversations/[^/]+/turns"), MAX_MESSAGE_MEGABYTES, 64),
    (re.compile(r"/api/v1/chat"), 64, 64),
    (re.compile(r"/v1/images/edits"), MAX_MESSAGE_MEGABYTES, 64),
)
# Models of the schema that no route names as its body or answer.
_BY_HAND: dict[type[BaseModel], Literal["validation", "serialization"]] = {
    turns.TurnBody: "validation",
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
    """Return the application. Its schema is at `/api/v1/openapi.json`, without a token; it covers these routes
    alone."""
    # The page's password does not protect the API.
    is_open = not (settings.is_public or has_password)
    tokens, a_minute = TokenFile(settings.home), settings.api_requests_per_minute
    api = Api(
        studio=studio,
        sessions=sessions,
        callers=Callers(tokens, settings.api_tokens, a_minute, is_open=is_open),
        turns=Buckets(settings.api_turns_per_minute),
        uploads=Uploads(),
        language=language,
    )
    app = _Application(
        title="Aivista",
        version=program_version(),
        description=_ABOUT,
        openapi_url=OPENAPI_PATH,
        docs_url=None,
        redoc_url=None,
        middleware=[Middleware(Gate, api=api)],
        generate_unique_id_function=lambda route: route.name,
        redirect_slashes=False,
    )
    app.state.api, app.state.contexts = api, direct.Contexts()
    for router in ROUTERS:
        app.include_router(router)
    for kind in (
        Refused,
        AivistaError,
        RequestValidationError,
        ValidationError,
        RouteMissing,
        ClientDisconnect,
        Exception,
    ):
        app.add_exception_handler(kind, _answer)
    return app


class _Application(FastAPI):
    def openapi(self) -> dict[str, Any]:
        """Return the schema with the bodies of routes that parse them themselves, which FastAPI would leave out."""
        if self.openapi_schema is not None:
            return self.openapi_schema
        schema = get_openapi(title=self.title, version=self.version, description=self.description, routes=self.routes)
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
        # On the user's own machine no token is needed until one is made.
        schema["security"] = [{"token": []}, {}]
        self.openapi_schema = schema
        return schema


def _answer(request: Request, error: Exception) -> Response:
    """Return the answer for an error."""
    if isinstance(error, RouteMissing) and isinstance(error.__cause__, Refused):
        # FastAPI wraps whatever fails while it reads a body.
        error = error.__cause__
    words, path, headers = request.app.state.api.words(request.headers), request.scope["path"], dict[str, str]()
    match error:
        case ClientDisconnect():
            return Response(status_code=400)
        case Refused():
            problem = problem_of_refusal(words, error)
        case RequestValidationError() | ValidationError():
            found: Sequence[Any] = error.errors()
            # The input is not repeated: it may be long, or hold a key.
            as_json = [
                {"where": ".".join(str(step) for step in one["loc"]) or "body", "what": str(one["msg"])}
                for one in found[:_MOST_ERRORS]
            ]
            first = f"{as_json[0]['where']}: {as_json[0]['what']}" if as_json else "body"
            problem = problem_of_refusal(words, Refused(RefusalCode.UNREADABLE, problem=first.rstrip(".")), as_json)
        case RouteMissing(status_code=404):
            problem = problem_of_refusal(words, Refused(RefusalCode.NO_SUCH_ADDRESS))
        case RouteMissing(status_code=405):
            problem = problem_of_refusal(words, Refused(RefusalCode.WRONG_METHOD, method=request.method))
            # The methods that the address accepts.
            headers = {"Allow": (error.headers or {}).get("Allow", "")}
        case RouteMissing():
            problem = problem_of_refusal(words, Refused(RefusalCode.UNREADABLE, problem=str(error.detail).rstrip(".")))
        case AivistaError():
            problem = problem_of_failure(words, error.info)
            if problem.status >= 500 and error.info.code is not ErrorCode.INTERNAL:
                _log.warning("%s %s failed: %s", request.method, path, error.info.code)
        case _:
            problem = problem_of_failure(words, ErrorInfo(code=ErrorCode.INTERNAL))
    answer = answer_with(problem, path)
    answer.headers.update(headers)
    return answer


class Gate:
    """ASGI middleware before the routes: a body is read only when its sender is known, and only up to the limit.

    The caller's own key is valid for this one request; the next one must bring it again.
    """

    def __init__(self, app: ASGIApp, api: Api) -> None:
        self.app = app
        self.api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers, path = Headers(scope=scope), scope["path"]
        words = self.api.words(headers)
        try:
            # The schema is public.
            caller = Caller("", words) if path == OPENAPI_PATH else self.api.callers.caller(headers, words)
            limits_mb = next((limits for pattern, *limits in _LIMITS_MB if pattern.fullmatch(path)), [_LIMIT_MB] * 2)
            limit_mb = limits_mb[caller.owner != OPERATOR]
            length = headers.get("content-length") or "0"
            if not (length.isascii() and length.isdecimal() and len(length) < 16):
                raise Refused(RefusalCode.UNREADABLE, problem="Content-Length")
            if int(length) > limit_mb << 20:
                raise Refused(RefusalCode.BODY_TOO_LARGE, limit=limit_mb)
        except Refused as refused:
            await answer_with(problem_of_refusal(words, refused), path)(scope, receive, send)
            return
        so_far = 0

        async def limited() -> Message:
            nonlocal so_far
            message = await receive()
            so_far += len(message.get("body", b""))
            if so_far > limit_mb << 20:
                raise Refused(RefusalCode.BODY_TOO_LARGE, limit=limit_mb)
            return message

        scope = {**scope, "aivista.caller": caller}
        await self.app(scope, receiving_whole(scope, limited, limit_mb << 20), send)
