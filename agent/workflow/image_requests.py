"""Prepares the planner's image requests for the image model: applies the locks and resolves the references."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TypeVar

from agent.conversation import Conversation
from agent.errors import ErrorCode, ErrorInfo, RequestRefused, ToolArgumentError
from agent.imaging.arguments import GenerateImageArgs, ImageAction, parse_arguments
from agent.imaging.contract import NormalizedRequest, check_locks, final_prompt, image_models, normalize
from agent.imaging.lettering import checklist_of
from agent.imaging.references import (
    ResolvedReferences,
    build_image_messages,
    check_limits,
    merged_roles,
    part_messages,
    resolve_references,
)
from agent.messages import ImageOrigin, PromptMessage, Source
from agent.pictures import AskedItem, Fact, MissingStyle, Picture, ReferenceRole, StyleUse
from agent.providers.catalogue import ModelEntry, ModelRole
from agent.requests import PlanEdit
from agent.settings import TurnSettings
from agent.spending import picture_price
from agent.storage.private_files import ROWS_BYTES
from agent.wording.requests import requested_search_in_words
from agent.workflow.deps import Deps
from agent.workflow.masked import PLACES_NEEDED, PartEdit, plan_part
from agent.workflow.retriever import with_styles
from agent.workflow.state import TurnProgress, Work
from agent.worst_case import message_tokens, worst_picture_usd

# A PNG with three channels; answers of models are hardly ever larger.
_BYTES_OF_A_PIXEL = 3
_CHANGES = frozenset({ImageAction.EDIT, ImageAction.ADJUST})

Chosen = TypeVar("Chosen", GenerateImageArgs, TurnSettings)


@dataclass(frozen=True)
class PreparedImageRequest:
    """One request of the planner, ready for the image model.

    `replay` is the model's own answer that made the base; `part` is set when only a part of the base may change;
    `partner` is the same request for the compared model."""

    arguments: GenerateImageArgs
    request: NormalizedRequest
    prompt: str
    references: ResolvedReferences
    roles: Mapping[str, ReferenceRole]
    replay: PromptMessage | None
    styles: tuple[StyleUse, ...]
    missing_style: MissingStyle | None
    facts: tuple[Fact, ...]
    sources: tuple[Source, ...]
    asked: tuple[AskedItem, ...] = ()
    part: PartEdit | None = None
    partner: PreparedImageRequest | None = None

    @property
    def expected_pixels(self) -> tuple[int, int]:
        """The width and height of the placeholder until the picture arrives."""
        if self.part is not None:
            return self.part.size
        pixels = self.request.model.pixels(self.request.aspect_ratio, self.request.resolution)
        if pixels is not None:
            return pixels
        width, _, height = self.request.aspect_ratio.partition(":")
        return int(width), int(height)

    @property
    def room_bytes(self) -> int:
        """The disk space that one of its pictures may need: the model's answer, the pasted result, the records."""
        width, height = self.expected_pixels
        answer_bytes = width * height * _BYTES_OF_A_PIXEL
        if self.part is None:
            return answer_bytes + ROWS_BYTES
        base = self.references.base
        depth = base.image.bit_depth // 8 if base is not None else 1
        return answer_bytes * (1 + depth) + ROWS_BYTES

    def work(self) -> Work:
        """Return the request in the form of the turn's state, before any attempt."""
        return Work(
            request=self.judged_by,
            planned=self.arguments.prompt,
            prompt=self.prompt,
            asked=self.asked,
            partner=self.partner.judged_by if self.partner else None,
        )

    @property
    def judged_by(self) -> NormalizedRequest:
        """The request to check the pictures against: for a masked edit the whole picture, not the sent frame."""
        if self.part is None:
            return self.request
        width, height = self.part.size
        return self.request.model_copy(update={"aspect_ratio": f"{width}:{height}", "resolution": None})

    @property
    def each(self) -> tuple[PreparedImageRequest, ...]:
        """The requests for all models: this one, and its partner if any."""
        return (self,) if self.partner is None else (self, self.partner)

    @property
    def picture_count(self) -> int:
        """The total number of requested pictures."""
        return sum(one.request.number_of_images for one in self.each)

    def price_usd(self, on: date) -> float:
        """Return the approximate price of one picture, in US dollars, without its review."""
        request = self.request
        shown = len(self.part.shown) + len(self.others) if self.part else len(self.references.pictures)
        return picture_price(request.model, request.resolution, on, shown=shown, is_grounded=request.use_grounding)

    def worst_usd(self, on: date) -> float:
        """Return the maximum price of one picture, in US dollars, without its review."""
        request, tokens = self.request, message_tokens(self.messages())
        return worst_picture_usd(request.model, request.resolution, tokens, on, is_grounded=request.use_grounding)

    def of_slot(self, slot: int) -> tuple[PreparedImageRequest, int]:
        """Return the request of the picture in this slot, and its number among that model's pictures, from 1."""
        own = self.request.number_of_images
        return (self, slot + 1) if self.partner is None or slot < own else (self.partner, slot - own + 1)

    def messages(self, advice: str = "") -> tuple[PromptMessage, ...]:
        """Return the messages for the image model; `advice` is a review's corrections to the previous attempt."""
        if self.part is not None:
            return part_messages(self.prompt_with(advice), self.part.shown, self.others)
        return build_image_messages(self.prompt_with(advice), self.references, self.replay, self.request.model)

    @property
    def others(self) -> tuple[Picture, ...]:
        """The reference pictures other than the base."""
        return tuple(one for one in self.references.pictures if one != self.references.base)

    def prompt_with(self, advice: str) -> str:
        """Return the prompt as sent."""
        if not advice:
            return self.prompt
        return f"{self.prompt}\n\nAn earlier attempt at this picture was reviewed. Mend this: {advice}"


def without_signatures_call(name: str) -> str:
    """Return the journal name of a call's retry without signatures, after the API rejected them."""
    return f"{name}.unsigned"


def picture_call(state: TurnProgress, index: int, slot: int, number: int) -> str:
    """Return the journal name of the call for one picture: planner step, call index, slot and round."""
    return f"picture:{state['planner_steps']}.{index}.{slot}.{number}"


def first_round(
    state: TurnProgress, deps: Deps, all_prepared: Mapping[int, PreparedImageRequest]
) -> Iterator[tuple[PreparedImageRequest, PreparedImageRequest, bool]]:
    """Yield for every picture of the first round its prepared request, its own, and whether it is still to be paid for.

    Its own request is the one for its model: the prepared one, or its partner. A picture with an answer in the journal
    is not requested again when a turn resumes, so it does not count again towards caps and the maximum.
    """
    for index, prepared in all_prepared.items():
        for slot in range(prepared.picture_count):
            own, _ = prepared.of_slot(slot)
            name = picture_call(state, index, slot, 1)
            answers = (deps.ledger.answered(one, own.request.model) for one in (name, without_signatures_call(name)))
            yield prepared, own, not any(answers)


async def prepare_image_request(state: TurnProgress, deps: Deps, index: int) -> PreparedImageRequest:
    """Return the prepared request of a call: arguments checked against the locks, references and handles resolved.

    Raises ToolArgumentError for errors that the planner must correct, RequestRefused for those that the user must.
    """
    settings, decision = deps.turn.settings, state["decision"]
    edit = next((edit for edit in decision.edits if edit.call == index), None) if decision else None
    if edit is not None:
        # The user's edits of the plan are additional locks.
        chosen = edit.model_dump(include={"aspect_ratio", "resolution", "number_of_images"}, exclude_none=True)
        if edit.model is not None:
            chosen["image_model"] = edit.model
        settings = settings.model_copy(update=chosen)
    if settings.image_model != "both":
        return await _for_one(state, deps, index, settings, edit)
    models = image_models(deps.services.catalogue, deps.provider_name)
    if models["flash"].id == models["pro"].id:
        raise RequestRefused(ErrorCode.ONE_PAINTER_ONLY, model=models["flash"].label)
    flash, pro = [
        await _for_one(state, deps, index, settings.model_copy(update={"image_model": name}), edit) for name in models
    ]
    return replace(flash, partner=pro)


async def _for_one(
    state: TurnProgress, deps: Deps, index: int, settings: TurnSettings, edit: PlanEdit | None
) -> PreparedImageRequest:
    """Return the prepared request for one image model. `settings` include the locks of `edit`, an edit of the plan."""
    edited = {"prompt": edit.prompt} if edit and edit.prompt else {}
    planned = parse_arguments({**state["calls"][index].arguments, **edited})
    matches = state["styles"].get(index, [])
    arguments = _without_shape(deps, with_styles(planned, matches, is_sketch=deps.text_model.is_sketch))
    arguments = _with_locks(arguments, settings)
    conversation = await deps.conversation_now()
    pictures = _without_own(conversation, deps.turn.id)

    roles = merged_roles(deps.turn.roles, arguments.reference_roles)
    changed = deps.turn.changed_by(arguments.handles)
    # These take precedence over any mode: the picture to change, the agent's, the references.
    handles = [*([changed] if changed else []), *arguments.handles, *deps.turn.references, *roles]
    named = list(dict.fromkeys(handles))
    history = deps.edit_history(state)

    def shown_to(model: ModelEntry) -> ResolvedReferences:
        return resolve_references(
            # When the user wants a new picture, no reference mode adds earlier ones.
            None if deps.turn.starts_anew else arguments.reference_mode,
            arguments.reference_count,
            pictures=pictures,
            elsewhere=conversation.elsewhere,
            turn_id=deps.turn.id,
            named=named,
            max_references=_places(deps, model),
            # A picture that the user marked to be changed is changed, whatever action the agent gave.
            action=None if changed else _action(arguments, named, roles),
            history=history,
        )

    # The base decides the default ratio, the ratio may decide the model, and the model limits the references.
    shown = shown_to(deps.services.catalogue.model(ModelRole.IMAGE_FLASH, deps.provider_name))
    if arguments.action in _CHANGES and not shown.pictures:
        # Without a base, the model would make a new picture that nobody requested, and it would be paid.
        known = ", ".join(picture.handle for picture in pictures) or "none yet"
        raise ToolArgumentError(ErrorCode.NO_PICTURE_TO_CHANGE, action=arguments.action.value, known=known)
    base = shown.base
    request = normalize(
        arguments,
        _without_shape(deps, settings),
        deps.services.catalogue,
        deps.provider_name,
        search_needed=bool(arguments.use_grounding or state["facts"]),
        search_requested_in_words=requested_search_in_words(deps.turn.text),
        edited_pixels=(base.image.width or 1, base.image.height or 1) if base else None,
    )
    references = shown_to(request.model)
    base = references.base
    roles = {one.handle: roles[one.handle] for one in references.pictures if one.handle in roles and one != base}
    check_limits(request.model, _marked(deps), roles.values())
    part = await plan_part(deps, base, request.model) if base and deps.turn.has_area else None
    return PreparedImageRequest(
        arguments=planned,
        request=part.fitted(request) if part else request,
        prompt=_prompt(request, state["facts"], references, roles, part),
        references=references,
        roles=roles,
        replay=await deps.services.records.conversations.answer_of(deps.conversation.id, base.handle)
        if base and not part
        else None,
        styles=tuple(
            StyleUse(name=match.style.title, similarity=match.similarity, phrases=match.style.phrases)
            for match in matches
        ),
        missing_style=state.get("missing_styles", {}).get(index),
        facts=tuple(state["facts"]),
        sources=tuple(state["sources"]),
        asked=checklist_of(planned.checklist, person_texts(deps)),
        part=part,
    )


def person_texts(deps: Deps) -> list[str]:
    """Return the user's texts in this conversation, the newest first."""
    return [deps.turn.text, *(turn.text for turn in reversed(deps.conversation.turns))]


def _prompt(
    request: NormalizedRequest,
    facts: Sequence[Fact],
    references: ResolvedReferences,
    roles: Mapping[str, ReferenceRole],
    part: PartEdit | None,
) -> str:
    if part is None:
        return final_prompt(request.prompt, request.negative_prompt, facts, references.pictures, roles)
    final = final_prompt(request.prompt, request.negative_prompt, facts, ())
    # Without a marked copy no explanation is needed: the model receives the mask itself.
    if len(part.shown) < PLACES_NEEDED:
        return final
    others = [picture for picture in references.pictures if picture != references.base]
    return part.instructed(final, others, roles)


def _places(deps: Deps, model: ModelEntry) -> int:
    """Return how many pictures of the conversation can be sent to the model."""
    return max(1, model.max_references - (PLACES_NEEDED - 1)) if deps.turn.has_area else model.max_references


def refused_by_locks(deps: Deps) -> ErrorInfo | None:
    """Return an error if the user's locks fit none of the allowed image models, so that no request can succeed.

    It is checked before any model is paid."""
    settings, models = deps.turn.settings, image_models(deps.services.catalogue, deps.provider_name)
    try:
        check_locks(_without_shape(deps, settings), deps.services.catalogue, deps.provider_name)
        if settings.image_model in models:
            check_limits(models[settings.image_model], _marked(deps), deps.turn.roles.values())
    except RequestRefused as error:
        return error.info
    return None


def _without_shape(deps: Deps, chosen: Chosen) -> Chosen:
    """Return the choices; for a masked edit without ratio and size, which are those of the picture."""
    if not deps.turn.has_area:
        return chosen
    return chosen.model_copy(update={"aspect_ratio": None, "resolution": None})


def _with_locks(arguments: GenerateImageArgs, settings: TurnSettings) -> GenerateImageArgs:
    """Return the arguments with the user's locks in place of the agent's choices.

    If the user set the reference mode, only the agent's handle of the picture to change is kept.
    """
    update: dict[str, object] = {}
    if settings.negative_prompt is not None:
        update["negative_prompt"] = settings.negative_prompt
    if settings.reference_mode is not None:
        update |= {
            "reference_mode": settings.reference_mode,
            "handles": arguments.handles[:1] if arguments.action in _CHANGES else (),
            "reference_roles": (),
        }
    if settings.reference_count is not None:
        update["reference_count"] = settings.reference_count
    return arguments.model_copy(update=update) if update else arguments


def _without_own(conversation: Conversation, turn_id: str) -> Sequence[Picture]:
    """Return the pictures that a turn may use as references, without its own attempts."""
    return [
        picture
        for picture in conversation.pictures
        if picture.turn_id != turn_id or picture.image.origin is ImageOrigin.UPLOADED
    ]


def _marked(deps: Deps) -> set[str]:
    return {*([deps.turn.editing] if deps.turn.editing else []), *deps.turn.references}


def _action(
    arguments: GenerateImageArgs, named: Sequence[str], roles: Mapping[str, ReferenceRole]
) -> ImageAction | None:
    """Return the action; a picture with a reference role is not changed, unless the agent explicitly changes it."""
    is_change = arguments.action in _CHANGES and bool(arguments.handles)
    return ImageAction.GENERATE if named and named[0] in roles and not is_change else arguments.action
