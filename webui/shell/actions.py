"""Actions: how the page calls Python by name, and how it is answered.

The browser sends `POST /aivista/act/<feature>.<action>` with JSON: `args` are the action's arguments, `state` is the
state of the page. The answer is a `Reply`, which `shell.js` carries out. A failed action is answered with one sentence.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple, TypeAlias, get_type_hints

from pydantic import Field, JsonValue, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent import AivistaError, Conversation, ErrorCode, ErrorInfo, ReferenceRole, Value
from webui.features.composer import ChosenSettings
from webui.http.sessions import Visitor, body_of
from webui.screen import Screen, Updates
from webui.shell.templates import Patch, Reply, Toast, Undo, render
from webui.view import View
from webui.whole_json import whole_body
from webui.words import Words

# The largest argument of most actions is a file of styles.
MOST_BYTES = 2 << 20
MAX_REFERENCES = 14
Handle = Annotated[str, Field(max_length=16)]
_HEADERS = {"Cache-Control": "no-store"}
_log = logging.getLogger(__name__)


class PageState(Value):
    """The state of the page: the open conversation (empty for a new one), the picture to change (`NO_PICTURE` to
    make a new one), the references and the roles of some of them, and the settings by name."""

    conversation: str = Field(default="", max_length=64)
    editing: str = Field(default="", max_length=16)
    references: tuple[Handle, ...] = Field(default=(), max_length=MAX_REFERENCES)
    roles: dict[Handle, str] = Field(default_factory=dict, max_length=MAX_REFERENCES)
    chips: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def given_roles(self) -> dict[str, ReferenceRole]:
        """The roles of the references, without unknown ones."""
        return roles_of(self.roles, self.references)

    @property
    def chosen(self) -> ChosenSettings:
        """The settings; a value that the composer does not offer counts as not chosen."""
        return ChosenSettings.from_chips(self.chips)


class ComposerState(PageState):
    """All that the page sends besides the text: the unparsed fields of the painter, an id for the press of Send and
    one for a new conversation, the newest turn that the page shows, and the price that it shows (see
    `shown_maximum`)."""

    mask: str = ""
    expand: str = ""
    request: str = Field(default="", max_length=64)
    begun: str = Field(default="", max_length=100)
    seen: str = Field(default="", max_length=64)
    price: str = Field(default="", max_length=64)


def roles_of(roles: Mapping[str, str], references: Collection[str]) -> dict[str, ReferenceRole]:
    """Return the known roles of existing references."""
    known = set(ReferenceRole)
    return {one: ReferenceRole(role) for one, role in roles.items() if one in references and role in known}


class _Asked(Value):
    args: dict[str, JsonValue] = Field(default_factory=dict)
    state: PageState = PageState()


@dataclass(frozen=True)
class Context:
    """The visitor that called an action, and the state of their page. An action reads and changes only the visitor's
    own data."""

    screen: Screen
    visitor: Visitor
    state: PageState

    @property
    def words(self) -> Words:
        """The visitor's words."""
        return self.visitor.words

    @property
    def view(self) -> View:
        """The view of the open conversation."""
        return self.screen.view(self.visitor, self.state.conversation)

    async def conversation(self) -> Conversation | None:
        """Return the open conversation, if the visitor owns it."""
        return await self.screen.conversation(self.visitor, self.state.conversation)

    def reply(self, updates: Updates) -> Reply:
        """Return the reply for updates of the page's elements; see `Screen.reply`."""
        return self.screen.reply(updates)

    def fragment(self, name: str, template: str, parent: str = "", **values: object) -> Patch:
        """Return a patch of the element with this id, rendered from a template."""
        return Patch(id=name, html=render(template, self.words, **values), parent=parent)


# Takes a Context and, when the action has arguments, a Value of them.
Handler: TypeAlias = Callable[..., Awaitable[Reply]]


class _Action(NamedTuple):
    handler: Handler
    arguments: type[Value] | None


@dataclass(frozen=True)
class Feature:
    """A part of the page: its actions, its HTTP routes, the wording of its refusals where it differs, and the
    largest body of an action in bytes."""

    name: str
    routes: Callable[[Screen], Sequence[Route]] = lambda _: ()
    refusal: Callable[[Words, ErrorInfo], str] = Words.error
    most_bytes: int = MOST_BYTES
    actions: dict[str, _Action] = field(default_factory=dict)

    def action(self, handler: Handler) -> Handler:
        """Register a function as an action under its own name. A trailing `_` avoids Python's names and is left out."""
        parameters = [name for name in inspect.signature(handler).parameters if name != "at"]
        arguments = get_type_hints(handler)[parameters[0]] if parameters else None
        self.actions[handler.__name__.rstrip("_")] = _Action(handler, arguments)
        return handler

    def undo(self, action: Handler, args: dict[str, JsonValue]) -> Undo:
        """Return the undo button that calls an action of this feature."""
        return Undo(action=f"{self.name}.{action.__name__}", args=args)


def action_routes(features: Sequence[Feature], screen: Screen) -> list[Route]:
    """Return the route of all actions, and the features' own routes.

    An error of the studio is an answer like any other. The status is 403 without our cookie, 400 for an unreadable
    body, 404 for an unknown action, and 500 when the action fails unexpectedly; the body is always a `Reply` with the
    reason.
    """
    named = {feature.name: feature for feature in features}

    async def answer(request: Request) -> Response:
        of, _, name = request.path_params["name"].partition(".")
        visitor = screen.sessions.visitor(request)
        feature = named.get(of)
        action = feature.actions.get(name) if feature is not None else None

        def problem(sentence: str, status: int = 200) -> Response:
            return answered(Reply(toast=Toast(text=sentence, is_problem=True)), status)

        def answered(reply: Reply, status: int = 200) -> Response:
            return JSONResponse(reply.written(visitor.words), status, _HEADERS)

        if visitor.token is None:
            return problem(visitor.words("route.not_yours"), 403)
        if feature is None or action is None:
            return problem(visitor.words("refusal.nothing_here"), 404)
        try:
            body = await body_of(request, feature.most_bytes)
            asked = _Asked.model_validate_json(whole_body(body or b""))
            given = [action.arguments.model_validate(asked.args)] if action.arguments is not None else []
        except ValidationError:
            return problem(visitor.words("gallery.unreadable"), 400)
        try:
            return answered(await action.handler(Context(screen, visitor, asked.state), *given))
        except AivistaError as error:
            return problem(feature.refusal(visitor.words, error.info))
        except Exception:
            _log.exception("an action of the page failed")
            return problem(visitor.words.error(ErrorInfo(code=ErrorCode.INTERNAL)), 500)

    beside = [route for feature in features for route in feature.routes(screen)]
    return [Route("/aivista/act/{name}", answer, methods=["POST"]), *beside]
