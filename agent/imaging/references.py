"""Which pictures the image model is shown, the role of each, and the messages that show them.

A model turn contains only pictures of that same model. A role given by the user has priority over the agent's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from agent.conversation import EditHistory
from agent.errors import ErrorCode, RequestRefused
from agent.imaging.arguments import ImageAction, ReferenceUse
from agent.imaging.contract import without_legend
from agent.messages import ImageOrigin, ImagePart, PromptMessage, Role, TextPart, Value
from agent.pictures import Picture, ReferenceRole, parse_handle, resolve
from agent.providers.catalogue import ModelEntry
from agent.settings import ReferenceMode

DEFAULT_REFERENCE_COUNT = 3


class ResolvedReferences(Value):
    """The pictures for the image model, in the order they are shown.

    `base` is the picture that an edit starts from, when that is clear; `left_out` counts the pictures beyond the
    model's limit.
    """

    pictures: tuple[Picture, ...] = ()
    base: Picture | None = None
    left_out: int = 0


def resolve_references(
    mode: ReferenceMode | None,
    count: int | None,
    *,
    pictures: Sequence[Picture],
    turn_id: str,
    named: Sequence[str],
    max_references: int,
    action: ImageAction | None = None,
    elsewhere: Sequence[Picture] = (),
    history: EditHistory = EditHistory(),  # noqa: B008 - a frozen value
) -> ResolvedReferences:
    """Return the pictures that the next request shows to the image model, oldest first.

    `pictures` are all shown pictures of the conversation, oldest first, with this turn's uploads (`turn_id`).
    `elsewhere` are pictures in hidden branches, used when named or when `history` gives them. Handles in `named` (by
    the agent, or clicked by the user, the edited picture first) override any mode and keep their order. Without
    handles and mode, this turn's uploads are shown; for a change without uploads, the target of `history`. Duplicates
    are shown once. Beyond `max_references` the oldest pictures are left out, but never the base.

    A picture that was set aside (discarded by the user, or not pasted) is shown only when it is named.

    `LAST_GENERATED` shows one picture even when the last turn made several: the picture to change if it was generated
    here or the user went back to it, else the newest generated before it. A picture made anew (`ImageAction.GENERATE`)
    has no base, whatever references it uses.

    Raises ToolArgumentError(UNKNOWN_HANDLE) when a handle names no picture of this conversation.
    """
    every = (*elsewhere, *pictures)
    if named:
        chosen = _first_of_each([_found(handle, pictures, elsewhere) for handle in named])
        base: Picture | None = chosen[0]
    else:
        is_change = action in {ImageAction.EDIT, ImageAction.ADJUST}
        has_uploads = any(_is_fresh_upload(picture, turn_id) for picture in pictures)
        if mode is None and is_change and not has_uploads:
            base = _picture(history.target, every)
            chosen = [base] if base is not None else []
        else:
            generated = _picture(history.last_generated, every)
            chosen, base = _by_mode(mode, count, pictures, turn_id, generated)
    if action is ImageAction.GENERATE:
        base = None
    surplus = max(0, len(chosen) - max_references)
    age = {picture.handle: place for place, picture in enumerate(every)}
    # The base is dropped last: an edit without the picture to edit would be a different request.
    by_need = sorted(chosen, key=lambda picture: (picture == base, age[picture.handle]))
    left_out = {picture.handle for picture in by_need[:surplus]}
    shown = tuple(picture for picture in chosen if picture.handle not in left_out)
    return ResolvedReferences(pictures=shown, base=base if base in shown else None, left_out=surplus)


def build_image_messages(
    prompt: str, references: ResolvedReferences, base_answer: PromptMessage | None, model: ModelEntry
) -> tuple[PromptMessage, ...]:
    """Return the messages for the image model, oldest first, ending with the prompt.

    The base picture is sent as the model turn that made it (`base_answer`), if the same model made it and the answer
    still has all its signatures. All other pictures are in the last prompt, in order and before the text. Only the
    base is replayed, because the signatures are larger than the picture.
    """
    base, images = references.base, [picture.image for picture in references.pictures]
    # The legend numbers the pictures in the order they are sent, so only the first one can be sent ahead.
    if base is not None and base == references.pictures[0]:
        replayed = _replayed_answer(base, base_answer, model.id)
        if replayed is not None:
            asked = without_legend(base.receipt.prompt) if base.receipt else ""
            opening = PromptMessage(role=Role.PROMPT, parts=(TextPart(text=asked or "Make a picture."),))
            return opening, replayed, _prompt_with(images[1:], prompt)
    return (_prompt_with(images, prompt),)


def part_messages(prompt: str, shown: Sequence[ImagePart], others: Sequence[Picture]) -> tuple[PromptMessage, ...]:
    """Return the request for editing a part: the images of that part, then the other pictures, all in one prompt."""
    return (_prompt_with([*shown, *(picture.image for picture in others)], prompt),)


def without_signatures(messages: Sequence[PromptMessage]) -> tuple[PromptMessage, ...]:
    """Return the same request with every picture in one prompt, for the retry after a signature was rejected."""
    images = [image for message in messages for image in message.images]
    return (_prompt_with(images, messages[-1].text),)


def _found(handle: str, pictures: Sequence[Picture], elsewhere: Sequence[Picture]) -> Picture:
    wanted = parse_handle(handle)
    hidden = next((one for one in elsewhere if wanted is not None and one.handle == str(wanted)), None)
    # For an unknown handle, the error lists only the pictures that are shown.
    return hidden or resolve(handle, pictures)


def _picture(handle: str | None, pictures: Sequence[Picture]) -> Picture | None:
    return next((one for one in pictures if one.handle == handle), None)


def _is_fresh_upload(picture: Picture, turn_id: str) -> bool:
    return picture.image.origin is ImageOrigin.UPLOADED and picture.turn_id == turn_id


def _by_mode(
    mode: ReferenceMode | None,
    count: int | None,
    pictures: Sequence[Picture],
    turn_id: str,
    last_generated: Picture | None,
) -> tuple[list[Picture], Picture | None]:
    """Return the pictures of the mode, oldest first, and the base picture when it is unambiguous."""
    # Discarded pictures, and answers that were not pasted, are used only when they are named.
    pictures = [picture for picture in pictures if not picture.is_set_aside]
    uploads = [picture for picture in pictures if picture.image.origin is ImageOrigin.UPLOADED]
    fresh = [picture for picture in pictures if _is_fresh_upload(picture, turn_id)]
    if mode is ReferenceMode.LAST_GENERATED and last_generated is not None:
        others = (one for one in fresh if one.image.digest != last_generated.image.digest)
        return [last_generated, *others], last_generated
    match mode:
        case None | ReferenceMode.LAST_GENERATED:
            chosen = fresh
        case ReferenceMode.USER_UPLOADED_ONLY:
            chosen = fresh or [picture for picture in uploads if picture.turn_id == uploads[-1].turn_id]
        case ReferenceMode.ALL_USER_UPLOADED:
            chosen = uploads
        case ReferenceMode.LAST_N:
            chosen = _newest_of_each(pictures)[-(count or DEFAULT_REFERENCE_COUNT) :]
    distinct = _newest_of_each(chosen)
    return distinct, distinct[0] if len(distinct) == 1 else None


def _first_of_each(pictures: Sequence[Picture]) -> list[Picture]:
    by_digest: dict[str, Picture] = {}
    for picture in pictures:
        by_digest.setdefault(picture.image.digest, picture)
    return list(by_digest.values())


def _newest_of_each(pictures: Sequence[Picture]) -> list[Picture]:
    return _first_of_each(pictures[::-1])[::-1]


def _replayed_answer(picture: Picture, answer: PromptMessage | None, model_id: str) -> PromptMessage | None:
    """Return the model turn that made the picture in the form to send back to that model, or None when it cannot be.

    Thoughts and search notes are left out. Every picture must have a signature of this model, and so must the first
    part, even when it is text. The picture must be the last one of the answer.
    """
    if answer is None or answer.role is not Role.MODEL:
        return None
    parts = tuple(part for part in answer.parts if isinstance(part, TextPart | ImagePart) and not part.is_thought)
    images = [part for part in parts if isinstance(part, ImagePart)]
    if not images or images[-1].digest != picture.image.digest:
        return None
    bound = [part for part in parts if isinstance(part, ImagePart) or part.is_signed]
    bound.append(parts[0])
    if any(not part.is_signed or part.signed_by != model_id for part in bound):
        return None
    return PromptMessage(role=Role.MODEL, parts=parts)


def _prompt_with(images: Sequence[ImagePart], text: str) -> PromptMessage:
    return PromptMessage(role=Role.PROMPT, parts=(*(image.unsigned() for image in images), TextPart(text=text)))


def read_roles(written: Mapping[str, str]) -> dict[str, ReferenceRole]:
    """Return the roles by handle, as given by the user.

    Raises RequestRefused(SETTING_NOT_SUPPORTED) for an unknown role.
    """
    roles = {}
    for handle, role in written.items():
        if role not in set(ReferenceRole):
            raise RequestRefused(
                ErrorCode.SETTING_NOT_SUPPORTED,
                model="Aivista",
                setting="reference role",
                value=role[:40],
                choices=", ".join(ReferenceRole),
            )
        roles[handle] = ReferenceRole(role)
    return roles


def merged_roles(marked: Mapping[str, ReferenceRole], uses: Sequence[ReferenceUse]) -> dict[str, ReferenceRole]:
    """Return every role by handle: those `marked` by the user override those `uses` by the agent."""
    return {**{use.handle: use.role for use in uses}, **marked}


def check_limits(model: ModelEntry, marked: Collection[str], roles: Collection[ReferenceRole]) -> None:
    """Check the request against the model's limits, where the model states them.

    `marked` are the handles that the user marked, `roles` the roles of the pictures to be shown.

    Raises RequestRefused with the limit: TOO_MANY_REFERENCES, TOO_MANY_FACES, TOO_MANY_OBJECTS.
    """
    faces = sum(role is ReferenceRole.FACE for role in roles)
    objects = sum(role in {ReferenceRole.SUBJECT, ReferenceRole.PRODUCT} for role in roles)
    counted = (
        (ErrorCode.TOO_MANY_REFERENCES, model.max_references, len(marked)),
        (ErrorCode.TOO_MANY_FACES, model.max_characters, faces),
        (ErrorCode.TOO_MANY_OBJECTS, model.max_objects, objects),
    )
    for code, limit, count in counted:
        if limit and count > limit:
            raise RequestRefused(code, model=model.label, limit=limit, count=count)
