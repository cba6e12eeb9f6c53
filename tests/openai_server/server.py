"""The server of OpenAI's API as a test uses it, and the way from a request's path to its answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import orjson

from tests.openai_server import rules
from tests.openai_server.answers import Picture, Text
from tests.openai_server.models import MODELS, ServedModel
from tests.openai_server.request import ChatRequest, PictureRequest, Refused, parse_form, refuse
from tests.wire_server.answers import Answer
from tests.wire_server.pictures import paint
from tests.wire_server.refusals import Json
from tests.wire_server.serving import Connection, HttpRequest, Serving

_HEADERS = {
    *("host", "accept", "accept-encoding", "connection", "user-agent", "content-type", "content-length"),
    "authorization",
}
_CHAT, _GENERATIONS, _EDITS = "/v1/chat/completions", "/v1/images/generations", "/v1/images/edits"


class OpenAIServer(Serving):
    """A strict server of chats and pictures. With a `key` of None it wants none, and takes it ill to be given one.

    Use as a context manager; an exception of a test's own brain is raised on leaving. The address ends in `/v1`.
    `chats` and `pictures` are the calls whose bodies could be read, `fetched` the paths of the files that were fetched.
    """

    json_headers: ClassVar = {"content-type": "application/json"}
    stream_headers: ClassVar = {"content-type": "text/event-stream; charset=utf-8"}
    event_end = b"\n\n"

    def __init__(self, *, key: str | None = None) -> None:
        super().__init__(path="/v1")
        self._key = key
        self.chats: list[ChatRequest] = []
        self.pictures: list[PictureRequest] = []
        self.fetched: list[str] = []

    def on_chat(self, *answers: Answer | Callable[[ChatRequest], Answer | None]) -> None:
        """Queue answers of the text models; a callable answers whenever the queue is empty."""
        self.add_answers("chat", answers)

    def on_picture(self, *answers: Answer | Callable[[PictureRequest], Answer | None]) -> None:
        """Queue answers of the image models; a callable answers whenever the queue is empty."""
        self.add_answers("picture", answers)

    async def serve(self, http: HttpRequest, connection: Connection, number: int) -> None:
        self._check_headers(http)
        if http.method == "GET" and http.path.startswith("/files/"):
            self._file(http.path, connection)
            return
        path = f"Invalid URL ({http.method} {http.path})"
        refuse(http.method != "POST" or http.path not in (_CHAT, _GENERATIONS, _EDITS), "path", path, status=404)
        kept = {name: value for name, value in http.headers.items() if name != "authorization"}
        if http.path == _CHAT:
            request: ChatRequest | PictureRequest = self._chat(http, kept, number)
            answer: Answer = self.next_answer("chat", request, Text("Hello."))
        else:
            request = self._picture(http, kept, number)
            answer = self.next_answer("picture", request, Picture())
        await self.play(answer.steps(request), http, connection, number, request.model)

    def _file(self, path: str, connection: Connection) -> None:
        self.fetched.append(path)
        if "missing" in path:
            connection.write_whole(404, {}, b"")
        else:
            connection.write_whole(200, {"content-type": "image/png"}, paint(1024, 1024, "image/png", path))

    def _chat(self, http: HttpRequest, headers: dict[str, str], number: int) -> ChatRequest:
        body = _parsed(http)
        request = ChatRequest(number, headers, body)
        self.chats.append(request)
        rules.check_chat(body, _model(body.get("model"), paints=False))
        return request

    def _picture(self, http: HttpRequest, headers: dict[str, str], number: int) -> PictureRequest:
        if http.path == _EDITS:
            fields, files = parse_form(bytes(http.body), http.headers.get("content-type", ""))
            request = PictureRequest(number, headers, True, fields, files)
            self.pictures.append(request)
            rules.check_edit(fields, files, _model(fields.get("model"), paints=True))
            return request
        body = _parsed(http)
        fields = rules.check_generation(body, _model(body.get("model"), paints=True))
        request = PictureRequest(number, headers, False, fields)
        self.pictures.append(request)
        return request

    def _check_headers(self, http: HttpRequest) -> None:
        given = http.headers.get("authorization")
        wanted = None if self._key is None else f"Bearer {self._key}"
        sentence = f"Incorrect API key provided: {given}"
        refuse(given != wanted, "key", sentence, status=401, code="invalid_api_key")
        unknown = sorted(set(http.headers) - _HEADERS)
        refuse(unknown, "header", f"{unknown} tells more than was asked")


def _parsed(http: HttpRequest) -> Json:
    content_type = http.headers.get("content-type")
    is_json = content_type == "application/json"
    refuse(not is_json, "content_type", f"Unsupported content type: {content_type}", status=415)
    try:
        body = orjson.loads(http.body)
    except orjson.JSONDecodeError as fault:
        raise Refused("json", f"We could not parse the JSON body of your request: {fault}") from fault
    if not isinstance(body, dict):
        raise Refused("json", "The body must be an object.")
    return body


def _model(name: object, *, paints: bool) -> ServedModel:
    model = MODELS.get(str(name))
    if model is None or model.paints is not paints:
        raise Refused("model", f"The model `{name}` does not exist", status=404, code="model_not_found")
    return model
