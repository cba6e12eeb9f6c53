"""Conversations that hold everything that the page can show: each turn is a scene, its words are the scene's name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from itertools import count
from typing import Any, get_args

from pydantic import BaseModel

from agent import (
    EXACT_ADJUSTMENT,
    EXACT_ADJUSTMENT_LABEL,
    ActionPanel,
    Adjustment,
    AdjustmentChange,
    AgentMessage,
    Ask,
    AskBack,
    AskedItem,
    AskedKind,
    Blank,
    CapPassed,
    Caption,
    ChangeKind,
    Charge,
    ChecklistItem,
    Component,
    ConsentCard,
    DriftRecord,
    EditNotice,
    EditRecord,
    ErrorCode,
    ErrorInfo,
    Fact,
    FailureNote,
    Flip,
    ImageOrigin,
    ImagePart,
    InterruptedNote,
    MissingStyle,
    MissingStyleReason,
    ModelPrice,
    PanelAction,
    PanelButton,
    PanelSetting,
    PanelSlider,
    Picture,
    PixelSize,
    Plan,
    PlanCard,
    Question,
    Receipt,
    Reduction,
    ReductionKind,
    Reference,
    ReferenceMode,
    ReferenceRole,
    Review,
    SearchNote,
    SmartCanvas,
    Source,
    Step,
    Steps,
    StoppedNote,
    StyleUse,
    TargetChanged,
    TargetNote,
    ThoughtLog,
    TokenUsage,
    Turn,
    TurnSettings,
    TurnState,
)

HOSTILE = """'"><b class=hostile onmouseover=alert(1)>&lt;b class=hostile&gt;"""
# What no person writes, no model and no server: an archive that says otherwise is refused.
_OURS = frozenset(
    "type id digest md5 mime_type model handle handles earlier parents editing base code reason notices shortfalls "  # noqa: SIM905
    "suggestions_html arguments role ratio".split()
)
NOTICES = (
    "covers_all",
    "little_to_align_by",
    "softer",
    "areas_far_apart",
    "beyond_the_picture",
    "spills",
    "nothing_changed",
)
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
SOURCES = (
    Source(title="Café am See", url="https://cafe.example/hours"),
    Source(title="no web page", url="javascript:alert(1)"),
)
PLAN = Plan(
    call=0,
    prompt="A red fox in snow",
    model="pro",
    model_label="Pro",
    aspect_ratio="16:9",
    resolution="2K",
    number_of_images=2,
    references=("#2",),
    editing="#1",
    price_usd=0.268,
    seconds=31,
)


@dataclass(frozen=True)
class Scene:
    """One turn: its words, what it shows, how it ended, the pictures that came with it."""

    name: str
    components: tuple[Component, ...]
    pictures: tuple[Picture, ...] = ()
    state: TurnState = TurnState.DONE
    more: dict[str, Any] | None = None


def conversations() -> dict[str, list[Scene]]:
    """Return all conversations by name."""
    return {
        "talking": talking(),
        "failing": failing(),
        "painting": painting(),
        "planned": planned(),
        "asking": asking(),
    }


def turns(name: str, scenes: Sequence[Scene]) -> Iterator[tuple[Turn, tuple[Picture, ...]]]:
    """Yield the turns of a conversation, each with its pictures, as they are on record once they are over."""
    for number, scene in enumerate(scenes, 1):
        yield (
            Turn(
                id=f"{name}-{number}",
                text=scene.name,
                settings=TurnSettings(),
                started_at=NOW + timedelta(minutes=number),
                parent=f"{name}-{number - 1}" if number > 1 else None,
                components=scene.components,
                state=scene.state,
                **(scene.more or {}),
            ),
            tuple(one.model_copy(update={"turn_id": f"{name}-{number}"}) for one in scene.pictures),
        )


class Shelf:
    """Makes pictures, each with a handle of its own."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def picture(self, width: int = 2752, height: int = 1536, **more: Any) -> Picture:
        """Return a picture with a receipt, unless another or none is given."""
        number = next(self._numbers)
        part = ImagePart(
            digest=f"{number:064x}",
            md5=f"{number:032x}",
            mime_type="image/png",
            size_bytes=9,
            origin=more.pop("origin", ImageOrigin.GENERATED),
            width=width,
            height=height,
            handle=f"#{number}",
        )
        given: dict[str, Any] = {"receipt": receipt(width=width, height=height), "alt": "A fox <in> snow", **more}
        return Picture(handle=f"#{number}", image=part, turn_id="", created_at=NOW, **given)


def receipt(**more: Any) -> Receipt:
    """Return a receipt with all that most have."""
    told: dict[str, Any] = {
        "prompt": "A fox <in> snow",
        "user_text": "draw a fox",
        "model": "gemini-3-pro-image",
        "model_label": "Pro",
        "asked_aspect_ratio": "16:9",
        "asked_resolution": "2K",
        "width": 2752,
        "height": 1536,
        "mime_type": "image/png",
        "usage": TokenUsage(prompt_tokens=1904, image_tokens=1120, output_tokens=200, thought_tokens=12),
        "price_usd": 0.134,
        "seconds": 21.2,
    }
    return Receipt(**(told | more))


def talking() -> list[Scene]:
    """Return what is shown besides pictures: words, steps, searches, questions, decisions, failures."""
    every_step = tuple(ThoughtLog(step=step, at_s=0.5 * number) for number, step in enumerate(Step))
    return [
        Scene("words in Markdown, with a source", (AgentMessage(text="Open **daily** [1].\n\n* `tea`"), _search())),
        Scene(
            "words that are no card", (AgentMessage(text='<button data-act="retry">Retry</button> <script>x</script>'),)
        ),
        Scene("<b>own</b> words\nand https://cafe.example/own", (AgentMessage(text="Yes."),)),
        Scene("every step", (Steps(lines=every_step, seconds=11.2),)),
        *_steps_with_counts(),
        *(
            Scene(f"painting that {outcome}", (Steps(lines=_painting(), seconds=9, outcome=outcome),))
            for outcome in ("failed", "stopped")
        ),
        Scene("of the first records, failed", (Steps(lines=_painting(), seconds=9),), state=TurnState.FAILED),
        Scene("side by side", (Steps(lines=_log((Step.THINKING, 0), (Step.TOOL, 2), (Step.TOOL, 2)), seconds=6),)),
        Scene("a clock that began anew", (Steps(lines=_log((Step.THINKING, 9), (Step.PAINTING, 0.1)), seconds=7),)),
        Scene(
            "a search without sources", (SearchNote(sources=(), suggestions_html='<a href="https://g.test">fox</a>'),)
        ),
        *(
            Scene(
                f"asked back: {question}, {subject or 'nothing named'}", (AskBack(question=question, subject=subject),)
            )
            for question in get_args(Question)
            for subject in ("", "the hat")
        ),
        *_moves(),
        *_decided(),
        *(
            Scene(
                f"interrupted with {calls} calls",
                (InterruptedNote(may_have_been_charged=calls),),
                state=TurnState.INTERRUPTED,
            )
            for calls in (0, 1, 3)
        ),
        Scene("stopped", (StoppedNote(),), state=TurnState.STOPPED),
    ]


def failing() -> list[Scene]:
    """Return every failure, with what changes its card."""
    policy = {"reason": "IMAGE_SAFETY"}
    scenes = [
        _failed(code, ErrorInfo(code=code, provider_detail="detail <b>", parameters={"model": "Pro", "seconds": 9}))
        for code in ErrorCode
    ]
    scenes += [_failed(f"charged {charge}", ErrorInfo(code=ErrorCode.OVERLOADED, charge=charge)) for charge in Charge]
    for code in (ErrorCode.PROMPT_BLOCKED, ErrorCode.PICTURE_BLOCKED):
        info = ErrorInfo(code=code, parameters=policy)
        scenes.append(_failed(f"{code} with other words", info, rewordings=("A fox as a paper cut-out", 'a "<fox>"')))
    scenes.append(_failed("a new reason", ErrorInfo(code=ErrorCode.PICTURE_BLOCKED, parameters={"reason": "NEW_ONE"})))
    return scenes


def painting() -> list[Scene]:
    """Return pictures with all that is told under one."""
    make = Shelf().picture
    scenes = [
        _shown("an upload", make(64, 48, origin=ImageOrigin.UPLOADED, receipt=None)),
        _shown("a picture", make()),
        Scene("two beside each other", (SmartCanvas(handles=("#3", "#4")),), (make(), make())),
        Scene(
            "by two models", (SmartCanvas(handles=("#5", "#6")),), (make(), make(receipt=receipt(model_label="Flash")))
        ),
        Scene("eight", (SmartCanvas(handles=tuple(f"#{n}" for n in range(7, 15))),), tuple(make() for _ in range(8))),
        Scene("one that was deleted since, of two", (SmartCanvas(handles=("#15", "#99")),), (make(),)),
        Scene(
            "all were deleted since",
            (SmartCanvas(handles=("#98", "#99")), ActionPanel(handle="#98", buttons=(PanelButton(action="vary"),))),
        ),
        _shown("a whole receipt", make(receipt=_whole_receipt())),
        _shown("a sketch", make(1376, 768, receipt=_sketch())),
        _shown("a sketch that is too small", make(1376, 768, receipt=_sketch(shortfalls=("resolution",)))),
        *(_shown(f"a sketch of {one}", make(1376, 768, receipt=_small(one))) for one in ("1600×900", "huge", None)),
        _shown("whose words are the prompt", make(receipt=receipt(user_text="A fox <in> snow"))),
        _shown("no price", make(receipt=receipt(price_usd=0))),
        _shown("less than a cent", make(receipt=receipt(price_usd=0.00012))),
        _shown(
            "smaller than asked", make(1376, 768, receipt=receipt(width=1376, height=768, shortfalls=("resolution",)))
        ),
        _shown(
            "another ratio, which is kept", make(receipt=receipt(shortfalls=("aspect_ratio",)), shortfall_kept=True)
        ),
        _shown("adjusted", make(receipt=_adjusted())),
        *(
            _shown(f"a style that was {reason}", make(receipt=receipt(missing_style=_missing(reason))))
            for reason in MissingStyleReason
        ),
        *(_shown(f"empty: {blank}", make(blank=blank)) for blank in Blank),
        *_edits(make),
        *_reductions(make),
        _shown("a part of another, without another model", make(edit=_record(), origin=ImageOrigin.EDITED)),
        _shown("16 bits, with credentials", make(receipt=receipt(bit_depth=16, has_credentials=True))),
        _shown("came after Stop", make(after_stop=True)),
    ]
    scenes += _reviews(make)
    # The newest one stands on the stage.
    newest = make(receipt=_whole_receipt(), review=_review())
    scenes.append(_shown("reviewed, with a whole receipt", newest))
    panel = ActionPanel(
        handle=newest.handle,
        buttons=tuple(PanelButton(action=one) for one in get_args(PanelAction)),
        sliders=tuple(PanelSlider(setting=one, amount=10) for one in get_args(PanelSetting)),
    )
    asked_back = (Scene(f"asked back: {one}", (AskBack(question=one),)) for one in get_args(Question))
    return [*scenes, *asked_back, Scene("what can be done next", (panel,))]


def planned() -> list[Scene]:
    """Return plans that wait for the person."""
    both = PLAN.model_copy(
        update={
            "model": "both",
            "prices": (ModelPrice(model_label="Flash", price_usd=0.07), ModelPrice(model_label="Pro", price_usd=0.134)),
        }
    )
    capped = PLAN.model_copy(
        update={
            "notices": ("little_to_align_by", "covers_all", "softer", "areas_far_apart", "beyond_the_picture"),
            "caps": tuple(
                CapPassed(cap=cap, cap_usd=1, spent_usd=0.9, price_usd=0.27) for cap in ("conversation", "day", "turn")
            ),
        }
    )
    odd = PLAN.model_copy(update={"aspect_ratio": "7:5", "references": (), "editing": None})
    sketched = PLAN.model_copy(update={"model": "flash", "model_label": "Sketch", "resolution": None, "price_usd": 0})
    plans = (PLAN, both, capped, odd, sketched)
    return [_shown("a picture", Shelf().picture()), Scene("plans", (PlanCard(plans=plans),), state=TurnState.WAITING)]


def asking() -> list[Scene]:
    """Return calls of tools that wait for the person."""
    return [Scene("may it?", (ConsentCard(asks=_asks()),), state=TurnState.WAITING)]


def _search() -> SearchNote:
    return SearchNote(
        sources=SOURCES, suggestions_html="<style>a{color:red}</style><a href='https://g.test'>fox & more</a>"
    )


def _log(*lines: tuple[Step, float]) -> tuple[ThoughtLog, ...]:
    return tuple(ThoughtLog(step=step, at_s=at_s) for step, at_s in lines)


def _painting() -> tuple[ThoughtLog, ...]:
    return _log((Step.THINKING, 0), (Step.UNDERSTOOD, 2), (Step.PAINTING, 2))


def _steps_with_counts() -> Iterator[Scene]:
    told: list[tuple[Step, dict[str, Any]]] = [
        (Step.WAITING, {"count": 1}),
        (Step.WAITING, {"count": 2}),
        (Step.IN_LINE, {"place": 4}),
        (Step.NEARLY_FULL, {"percent": 92}),
        (Step.UNDERSTOOD, {"wish": "a <fox>"}),
        *((Step.SEARCHED, {"facts": facts, "sources": sources}) for facts, sources in ((1, 1), (2, 1), (0, 3))),
        (Step.TOOL, {"name": "read_url", "object": "https://cafe.example/hours"}),
        *((Step.TOOL, {"name": name, "object": "a.txt"}) for name in ("write_file", "read_file", "delete_file")),
        *((Step.TOOL, {"name": name, "object": "#1"}) for name in ("get_history_image", "view_image", "go_back_to")),
        *((Step.TOOL, {"name": name}) for name in ("list_files", "run_javascript", "new_tool")),
        (Step.TOOL, {"name": "read_file", "object": "a.txt", "server": "files"}),
        (Step.STYLES, {"names": "Ukiyo-e"}),
        (Step.STYLE_MISSING, {"style": "moon ink"}),
        (Step.ADJUSTED, {"base": "#1", "handle": "#1b"}),
        (Step.PAINTED, {"count": 1}),
        (Step.PAINTED, {"count": 2}),
        (Step.REVIEWED, {"met": 2, "count": 3, "feedback": "The title is low."}),
        (Step.REVIEWED, {"score": "1.00", "feedback": "of the first records"}),
    ]
    lines = tuple(ThoughtLog(step=step, parameters=given, at_s=number) for number, (step, given) in enumerate(told))
    yield Scene("steps with what they were about", (Steps(lines=lines, seconds=60),))
    some = ThoughtLog(step=Step.PAINTING, parameters={"count": 3, "model": "Pro"})
    came = ThoughtLog(step=Step.PAINTED, parameters={"count": 2}, at_s=9)
    yield Scene("two of three came", (Steps(lines=(some, came), seconds=9),))


def _moves() -> Iterator[Scene]:
    for move in ("undo", "redo", "back_to"):
        yield Scene(f"{move}, moved", (TargetNote(change=TargetChanged(move=move, handle="#1", before="#2")),))
        yield Scene(f"{move}, nothing to", (TargetNote(change=TargetChanged(move=move, handle="#2", before="#2")),))
    yield Scene("back to what is not there", (TargetNote(change=TargetChanged(move="back_to", missing="#9")),))
    yield Scene("undo without pictures", (TargetNote(change=TargetChanged(move="undo")),))


def _asks() -> tuple[Ask, ...]:
    reasons = ("foreign_address", "overwrites", "deletes", "may_change_something", "was_changed", "costs_money")
    told = '{"url": "https://cafe.example/?q=\\u202e<b>", "text": "a\\u00a0b\\u200b"}'
    return tuple(Ask(call=number, tool="read_url", reason=one, arguments=told) for number, one in enumerate(reasons))


def _decided() -> Iterator[Scene]:
    for plan_state in ("run", "dropped"):
        yield Scene(f"a plan that was {plan_state}", (PlanCard(plans=(PLAN,), state=plan_state),))
    for ask_state in ("allowed", "refused"):
        yield Scene(f"calls that were {ask_state}", (ConsentCard(asks=_asks()[:2], state=ask_state),))


def _failed(name: str, error: ErrorInfo, **more: Any) -> Scene:
    return Scene(f"failed: {name}", (FailureNote(error=error, **more),), state=TurnState.FAILED)


def _shown(name: str, picture: Picture) -> Scene:
    if picture.image.origin is ImageOrigin.UPLOADED:
        return Scene(name, (), (picture,), more={"uploads": (picture.image,)})
    return Scene(name, (SmartCanvas(handles=(picture.handle,)),), (picture,))


def _whole_receipt() -> Receipt:
    return receipt(
        asked_negative_prompt="dogs",
        asked_reference_mode=ReferenceMode.LAST_N,
        asked_reference_count=2,
        references=(*(Reference(handle="#2", role=role) for role in ReferenceRole), Reference(handle="#3")),
        left_out=2,
        styles=(StyleUse(name="Ukiyo-e", similarity=0.91, phrases=("woodblock print",)),),
        facts=(Fact(item="Opens at 7", source="cafe.example"),),
        sources=SOURCES,
        usage=TokenUsage(prompt_tokens=1904, image_tokens=1120, output_tokens=200, thought_tokens=12, cached_tokens=40),
        attempts=2,
        finish_reason="STOP",
        asked=(AskedItem(quote="a red fox", kind=AskedKind.SUBJECT),),
    )


def _sketch(**more: Any) -> Receipt:
    captions = (Caption(text="SLOW", is_written=True), Caption(text="慢", is_written=False))
    told = {"model": "sketch", "model_label": "Sketch", "is_sketch": True, "price_usd": 0, "captions": captions}
    return receipt(**(told | {"width": 1376, "height": 768} | more))


def _small(asked: str | None) -> Receipt:
    return _sketch(asked_resolution=asked, shortfalls=("resolution",))


def _adjusted() -> Receipt:
    adjustment = Adjustment(
        brightness=10, contrast=-5, saturation=-100, warmth=7, sharpness=-3, rotate=90, flip=Flip.VERTICAL
    )
    return receipt(
        model=EXACT_ADJUSTMENT,
        model_label=EXACT_ADJUSTMENT_LABEL,
        prompt="",
        user_text="a little brighter",
        price_usd=0,
        references=(Reference(handle="#2", role="base"),),
        changes=tuple(AdjustmentChange(kind=kind, amount=7, ratio="1:1") for kind in ChangeKind),
        adjustment=adjustment,
    )


def _missing(reason: MissingStyleReason) -> MissingStyle:
    return MissingStyle(requested="moon ink", reason=reason, is_asked_for=True)


_PART = ImagePart(
    digest="f" * 64, md5="f" * 32, mime_type="image/png", size_bytes=9, origin=ImageOrigin.EDITED, width=2, height=2
)


def _record(**more: Any) -> EditRecord:
    told: dict[str, Any] = {"kind": "mask", "verdict": "good", "reason": "aligned", "outside": 1_234_567}
    return EditRecord(**(told | {"base": _PART, "mask": _PART, "raw": _PART} | more))


def _edits(make: Any) -> Iterator[Scene]:
    told: dict[str, dict[str, Any]] = {
        "exact": {"verdict": "good"},
        "with pixels changed outside": {"verdict": "good", "changed_outside": 3},
        "unsure": {"verdict": "unsure", "before": _PART, "after": _PART},
        "unsure and kept": {"verdict": "unsure", "is_kept": True},
        "unsure and discarded": {"verdict": "unsure", "is_kept": False},
        "refused": {"verdict": "refused"},
        "beyond the mask": {"verdict": "good", "spill_px": 412, "grown_mask": _PART},
        "with every notice": {"verdict": "good", "notices": tuple(EditNotice(code=one) for one in NOTICES)},
        "an expansion": {"verdict": "good", "kind": "expansion", "outside": 0},
    }
    for name, given in told.items():
        yield _shown(f"edit: {name}", make(edit=_record(**given), parents=("#2",), origin=ImageOrigin.EDITED))
    drifts: dict[str, dict[str, Any]] = {
        "in place": {"shift_px": (0.1, 0.0), "scale": 1.0004},
        "moved": {"shift_px": (3.2, -1.0), "scale": 1.012},
        "another picture": {"is_comparable": False, "changed_share": 1.0},
        "another shape": {"ratio_change": 1.21, "changed_share": 0.05},
    }
    for name, given in drifts.items():
        usual: dict[str, Any] = {"base": "#2", "is_comparable": True, "changed": _PART, "changed_share": 0.34}
        drift = DriftRecord(**usual | given)
        yield _shown(f"drift: {name}", make(drift=drift, parents=("#2",), origin=ImageOrigin.EDITED))


def _reductions(make: Any) -> Iterator[Scene]:
    full, used = PixelSize(width=4000, height=3000, bit_depth=16), PixelSize(width=2048, height=1536)
    for kind in ReductionKind:
        less = Reduction(kind=kind, handle="#2", full=full, used=used)
        yield _shown(f"less: {kind}", make(receipt=receipt(reductions=(less,))))


def _review(**more: Any) -> Review:
    rows = (
        *(ChecklistItem(wish=f"a {kind}", is_met=True, why="it is there", kind=kind) for kind in AskedKind),
        ChecklistItem(wish="a title at the top", is_met=False, why="it stands at the bottom"),
        ChecklistItem(wish="a moon", is_met=None),
    )
    told: dict[str, Any] = {
        "score": 0.86,
        "checklist": rows,
        "lettering": "Slow mornings",
        "feedback": "The title stands too low.",
        "suggestions": ("Say that the title stands in the upper third.",),
        "model_label": "Flash",
    }
    return Review(**(told | more))


def _reviews(make: Any) -> Iterator[Scene]:
    checks = tuple(
        ChecklistItem(wish="", is_met=True, check=one) for one in ("aspect_ratio", "size", "caption", "mask")
    )
    reviews = {
        "in part": _review(),
        "in all": _review(score=0.95, checklist=_review().checklist[:2], lettering="", suggestions=()),
        "sent back": _review(score=0.2),
        "nobody looked": Review(score=None, feedback="Nobody could look."),
        "of the first records": Review(score=1.0, checklist=checks),
    }
    for name, review in reviews.items():
        yield _shown(f"review: {name}", make(review=review))
    yield _shown("review: none, of a sketch", make(receipt=_sketch(), review=Review(score=None)))
    best, first = make(review=reviews["in all"], round=2), make(review=reviews["sent back"])
    yield Scene(
        "review: a better attempt", (SmartCanvas(handles=(best.handle,), earlier=(first.handle,)),), (first, best)
    )


def hostile(scenes: Sequence[Scene]) -> list[Scene]:
    """Return the scenes with markup in each text that a person, a model, a server or an archive may have written."""
    return [
        replace(scene, name=HOSTILE, components=_spoilt(scene.components), pictures=_spoilt(scene.pictures))
        for scene in scenes
    ]


def _spoilt(value: Any) -> Any:
    match value:
        case BaseModel():
            kinds = {name: str(field.annotation) for name, field in type(value).model_fields.items()}
            return value.model_copy(
                update={
                    name: _spoilt(getattr(value, name))
                    for name, kind in kinds.items()
                    if name not in _OURS and "Literal" not in kind
                }
            )
        case Enum():
            return value
        case str():
            return HOSTILE
        case tuple():
            return tuple(map(_spoilt, value))
        case dict():
            return {key: _spoilt(one) for key, one in value.items()}
    return value
