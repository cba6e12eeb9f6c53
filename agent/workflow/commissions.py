"""A request of the planner made ready for the image model: held against the locks and the pictures there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from agent.conversation import Conversation
from agent.imaging.contract import (
    GenerateImageArgs,
    NormalizedRequest,
    final_prompt,
    normalize,
    parse_arguments,
    requested_search_in_words,
)
from agent.imaging.intents import action_of
from agent.imaging.references import ResolvedReferences, build_image_messages, resolve_references
from agent.messages import ImageOrigin, PromptMessage, Source, ToolCallPart
from agent.pictures import Fact, Picture, StyleUse
from agent.plans import PlanEdit
from agent.providers.catalogue import ModelEntry, ModelRole
from agent.settings import TurnSettings
from agent.workflow.deps import Deps
from agent.workflow.retriever import with_styles
from agent.workflow.state import EnhancedPrompt, Intent, TurnProgress, Work


@dataclass(frozen=True)
class Commission:
    """One request of the planner, ready for the image model. `replay` is the model's own answer that made the base."""

    arguments: GenerateImageArgs
    request: NormalizedRequest
    prompt: str
    references: ResolvedReferences
    replay: PromptMessage | None
    styles: tuple[StyleUse, ...]
    facts: tuple[Fact, ...]
    sources: tuple[Source, ...]
    intent: Intent

    @property
    def expected_pixels(self) -> tuple[int, int]:
        """Width and height the frame should have until the picture comes."""
        pixels = self.request.model.pixels(self.request.aspect_ratio, self.request.resolution)
        if pixels is not None:
            return pixels
        width, _, height = self.request.aspect_ratio.partition(":")
        return int(width), int(height)

    def work(self) -> Work:
        """Return the commission as the turn's state holds it, before anything was tried."""
        prompt = EnhancedPrompt(original=self.arguments.prompt, styles=self.styles, final=self.prompt)
        return Work(intent=self.intent, prompt=prompt, request=self.request, expected=self.expected_pixels)

    def messages(self, advice: str = "") -> tuple[PromptMessage, ...]:
        """Return what the image model is shown; `advice` is what a review of the try before wants mended."""
        return build_image_messages(self.prompt_with(advice), self.references, self.replay, self.request.model)

    def prompt_with(self, advice: str) -> str:
        """Return the prompt as sent."""
        if not advice:
            return self.prompt
        return f"{self.prompt}\n\nAn earlier attempt at this picture was reviewed. Mend this: {advice}"


async def commission(state: TurnProgress, deps: Deps, index: int) -> Commission:
    """Return what will be painted for a call: arguments held against the locks, references and handles resolved.

    Raises ToolArgumentError for what the planner must mend, RequestRefused for what the person must change.
    """
    call, edit = state["calls"][index], _edit_of(state, index)
    planned = parse_arguments(_edited(call, edit))
    matches = state["styles"].get(index, [])
    arguments = with_styles(planned, matches)
    conversation = await deps.records.get(deps.conversation.id, deps.conversation.owner)
    pictures = without_own(conversation, deps.turn.id)

    def shown_to(model: ModelEntry) -> ResolvedReferences:
        return resolve_references(
            arguments.reference_mode,
            arguments.reference_count,
            pictures=pictures,
            turn_id=deps.turn.id,
            named=_named(deps, arguments),
            max_references=model.max_references,
            # A picture the person marked to be changed is changed, whatever the agent calls it.
            action=None if deps.turn.editing else arguments.action,
        )

    # The base decides the default ratio, the ratio may decide the model, and the model limits the references.
    base = shown_to(deps.catalogue.model(ModelRole.IMAGE_FLASH, deps.provider_name)).base
    request = normalize(
        arguments,
        locks(deps.turn.settings, edit),
        deps.catalogue,
        deps.provider_name,
        search_needed=bool(arguments.use_grounding or state["facts"]),
        search_requested_in_words=requested_search_in_words(deps.turn.text),
        edited_pixels=(base.image.width or 1, base.image.height or 1) if base else None,
    )
    references = shown_to(request.model)
    base = references.base
    return Commission(
        arguments=planned,
        request=request,
        prompt=final_prompt(request, state["facts"], references.pictures),
        references=references,
        replay=await deps.records.answer_of(deps.conversation.id, base.handle) if base else None,
        styles=tuple(StyleUse(name=match.style.title, similarity=match.similarity) for match in matches),
        facts=tuple(state["facts"]),
        sources=tuple(state["sources"]),
        intent=intent(planned, is_edit=base is not None),
    )


def intent(arguments: GenerateImageArgs, *, is_edit: bool) -> Intent:
    """Return what the planner understood."""
    return Intent(
        action=action_of(arguments, has_mask=False, is_edit=is_edit),
        subject=arguments.subject or "",
        style=arguments.style or "",
        confidence=arguments.confidence,
    )


def without_own(conversation: Conversation, turn_id: str) -> Sequence[Picture]:
    """Return the pictures a turn may lean on: an attempt of its own is no reference for the next one."""
    return [
        picture
        for picture in conversation.pictures
        if picture.turn_id != turn_id or picture.image.origin is ImageOrigin.UPLOADED
    ]


def locks(settings: TurnSettings, edit: PlanEdit | None) -> TurnSettings:
    """Return the settings with what the person changed in the plan as further locks."""
    if edit is None:
        return settings
    chosen = edit.model_dump(include={"aspect_ratio", "resolution", "number_of_images"}, exclude_none=True)
    if edit.model is not None:
        chosen["image_model"] = edit.model
    return settings.model_copy(update=chosen)


def _edit_of(state: TurnProgress, index: int) -> PlanEdit | None:
    decision = state["decision"]
    return next((edit for edit in decision.edits if edit.call == index), None) if decision else None


def _edited(call: ToolCallPart, edit: PlanEdit | None) -> dict[str, JsonValue]:
    return {**call.arguments, "prompt": edit.prompt} if edit and edit.prompt else dict(call.arguments)


def _named(deps: Deps, arguments: GenerateImageArgs) -> list[str]:
    """Return the handles that come before any mode: the picture marked to be changed, the agent's, the references."""
    marked = [deps.turn.editing] if deps.turn.editing else []
    return list(dict.fromkeys([*marked, *arguments.handles, *deps.turn.references]))
