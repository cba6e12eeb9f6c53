"""What a turn shows, live and stored, without a browser."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html import unescape
from typing import get_args

import pytest

from agent.components import (
    ActionPanel,
    AgentMessage,
    AskBack,
    Component,
    ConsentCard,
    FailureNote,
    InterruptedNote,
    PanelButton,
    PlanCard,
    SearchNote,
    SmartCanvas,
    Steps,
    StoppedNote,
    TargetNote,
)
from agent.conversation import Conversation, Turn, TurnState
from agent.errors import Actor, ErrorCode, ErrorInfo
from agent.events import (
    PaintingStarted,
    PictureFailed,
    PictureReady,
    Step,
    TargetChanged,
    TextDelta,
    ThoughtLog,
    TurnFailed,
    TurnStarted,
    TurnStopped,
)
from agent.messages import ImageOrigin, ImagePart, Source, TokenUsage
from agent.pictures import Fact, Picture, Receipt, Reference
from agent.plans import Ask
from agent.settings import TurnSettings
from tests.support.page_values import PLAN
from webui.cards import View
from webui.live import LiveTurn, advance_all
from webui.receipts import price, receipt_line, receipt_rows
from webui.render import Block, Card, Prose, render_conversation, render_live, render_turn
from webui.step_lines import step_sentence
from webui.words import LANGUAGES, load_words

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
VIEW = View(load_words("en"), "c1")
RECEIPT = Receipt(
    prompt="A fox <in> snow",
    user_text="draw a fox",
    model="gemini-3-pro-image",
    model_label="Pro",
    asked_aspect_ratio="16:9",
    asked_resolution="2K",
    width=2752,
    height=1536,
    mime_type="image/png",
    references=(Reference(handle="#2", role="style"),),
    facts=(Fact(item="Opens at 7", source="cafe.test"),),
    sources=(Source(title="Café", url="https://cafe.test"), Source(title="bad", url="javascript:alert(1)")),
    usage=TokenUsage(prompt_tokens=1904, image_tokens=1120, output_tokens=200, thought_tokens=12),
    price_usd=0.134,
    seconds=21.2,
)
COMPONENTS: tuple[Component, ...] = (
    AgentMessage(text="words"),
    Steps(lines=(ThoughtLog(step=Step.SEARCHED, parameters={"facts": 2, "sources": 3}),), seconds=3),
    SmartCanvas(handles=("#1", "#2")),
    ActionPanel(handle="#1", buttons=(PanelButton(action="vary"),)),
    PlanCard(plans=(PLAN,)),
    ConsentCard(asks=(Ask(call=0, tool="read_url", reason="foreign_address", arguments="{}"),)),
    AskBack(question="unsure", subject="it"),
    TargetNote(change=TargetChanged(move="undo", handle="#1", before="#2")),
    InterruptedNote(may_have_been_charged=1),
    SearchNote(sources=(Source(title="a", url="https://a.test"),), suggestions_html="<p>x</p>"),
    FailureNote(error=ErrorInfo(code=ErrorCode.KEY_INVALID)),
    StoppedNote(),
)


def image(handle: str, *, width: int = 2752, height: int = 1536) -> ImagePart:
    return ImagePart(
        digest="0" * 64,
        md5="1" * 32,
        mime_type="image/png",
        size_bytes=9,
        origin=ImageOrigin.GENERATED,
        width=width,
        height=height,
        handle=handle,
    )


def picture(handle: str, receipt: Receipt | None = RECEIPT) -> Picture:
    return Picture(handle=handle, image=image(handle), turn_id="t1", created_at=NOW, receipt=receipt)


def turn(*components: Component, text: str = "draw a fox", uploads: tuple[ImagePart, ...] = ()) -> Turn:
    return Turn(
        id="t1", text=text, settings=TurnSettings(), started_at=NOW, uploads=uploads, components=tuple(components)
    )


def html(blocks: list[Block]) -> str:
    return "\n".join(block.html for block in blocks if isinstance(block, Card))


def test_a_stored_turn_reads_from_the_persons_words_to_the_pictures() -> None:
    steps = Steps(lines=(ThoughtLog(step=Step.THINKING), ThoughtLog(step=Step.PAINTED, at_s=21)), seconds=21.4)
    stored = turn(AgentMessage(text="Here it **is**."), steps, SmartCanvas(handles=("#1",)))
    blocks = render_turn(VIEW, stored, {"#1": picture("#1")})
    assert [type(block) for block in blocks] == [Prose, Card, Prose, Card, Card]
    assert [blocks[0], blocks[2]] == [
        Prose("user", '<p class="own" dir="auto">draw a fox</p>'),
        Prose("assistant", "<p>Here it <strong>is</strong>.</p>"),
    ]
    assert "Planned, painted" in html(blocks)
    assert "aspect-ratio:2752/1536" in html(blocks)
    assert "media/c1/1?size=" in html(blocks)
    assert 'href="media/c1/1?download=1"' in html(blocks)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_component_shows_something_in_every_language(language: str) -> None:
    view = View(load_words(language), "c1")
    pictures = {handle: picture(handle) for handle in ("#1", "#2")}
    shown = {type(component): render_turn(view, turn(component), pictures) for component in COMPONENTS}
    assert {kind: blocks for kind, blocks in shown.items() if len(blocks) != 3} == {}
    assert shown.keys() == set(get_args(get_args(Component)[0]))


def test_uploads_and_marked_pictures_stand_above_the_words_with_their_handles() -> None:
    stored = turn(uploads=(image("#3"),)).model_copy(update={"editing": "#1", "references": ("#2",)})
    first = render_turn(VIEW, stored, {})[0]
    assert isinstance(first, Card)
    assert first.role == "user"
    assert [first.html.index(f'data-arg="{handle}"') for handle in ("#1", "#2", "#3")] == sorted(
        first.html.index(f'data-arg="{handle}"') for handle in ("#1", "#2", "#3")
    )


def test_a_picture_marked_in_the_message_it_came_with_is_shown_once_where_it_was_sent() -> None:
    stored = turn(uploads=(image("#3"), image("#4"))).model_copy(update={"editing": "#4", "references": ("#1",)})
    first = render_turn(VIEW, stored, {})[0]
    assert re.findall(r'data-arg="([^"]+)"', first.html if isinstance(first, Card) else "") == ["#1", "#3", "#4"]


def test_where_a_picture_was_deleted_since_its_name_is_left() -> None:
    stored = turn(SmartCanvas(handles=("#1", "#2"))).model_copy(update={"state": TurnState.DONE})
    shown = html(render_turn(VIEW, stored, {"#1": picture("#1")}))
    assert "media/c1/1?size=" in shown
    assert "#2 was deleted" in shown
    assert "were deleted" in html(render_turn(VIEW, stored, {}))


def test_a_running_turn_shows_what_is_done_now_and_frames_of_the_right_shape() -> None:
    live = advance_all(
        LiveTurn("two foxes"),
        [
            TurnStarted(turn_id="t1"),
            TextDelta(text="Two foxes."),
            ThoughtLog(step=Step.PAINTING, parameters={"count": 2, "model": "Pro"}),
            PaintingStarted(count=2, width=848, height=1264, model_label="Pro"),
            PictureReady(index=1, picture=picture("#2")),
        ],
    )
    blocks = render_live(VIEW, live, seconds=8.7)
    shown = html(blocks)
    assert shown.index("Painting 2 pictures with Pro…") < shown.index("frame pending")
    assert "8 s" in shown
    assert shown.count("frame pending") == 1
    assert "aspect-ratio:848/1264" in shown
    assert 'data-arg="#2"' in shown


def test_one_picture_refused_of_several_gives_its_reason_in_its_place() -> None:
    refused = ErrorInfo(code=ErrorCode.PICTURE_BLOCKED, parameters={"reason": "SAFETY"})
    live = advance_all(
        LiveTurn("two"),
        [
            PaintingStarted(count=2, width=1, height=1, model_label="Pro"),
            PictureReady(index=0, picture=picture("#1")),
            PictureFailed(index=1, error=refused),
        ],
    )
    shown = html(render_live(VIEW, live, 1))
    assert "Picture 2" in shown
    assert "(SAFETY)" in shown
    assert 'data-arg="#1"' in shown


def test_every_failure_says_who_must_act_why_and_what_is_kept() -> None:
    acts = ['data-act="retry" data-arg="t1"', 'data-act="edit_words" data-arg="t1"']
    wrong = []
    for code in ErrorCode:
        error = ErrorInfo(code=code, provider_detail="detail <b>")
        live = advance_all(LiveTurn("fox"), [TurnStarted(turn_id="t1"), TurnFailed(error=error)])
        shown = html(render_live(VIEW, live, 0)).replace("&#x27;", "'")
        who = "call_unknown" if code is ErrorCode.CALL_UNKNOWN else error.actor.value
        wanted = ['role="alert"', VIEW.words(f"failure.who_{who}"), "detail &lt;b&gt;", *acts]
        wrong += [(code, text) for text in wanted if text not in shown]
        wrong += [(code, "settings")] if ('data-act="settings"' in shown) != (error.actor is Actor.KEY) else []
    assert wrong == []


def test_a_message_refused_before_it_was_stored_leaves_no_bubble_and_nothing_to_retry() -> None:
    live = advance_all(LiveTurn(""), [TurnFailed(error=ErrorInfo(code=ErrorCode.NOTHING_SENT))])
    blocks = render_live(VIEW, live, 0)
    assert len(blocks) == 1
    assert "data-act" not in html(blocks)


def test_a_stopped_turn_says_so() -> None:
    live = advance_all(LiveTurn("fox"), [TurnStarted(turn_id="t1"), TurnStopped()])
    assert "Stopped." in html(render_live(VIEW, live, 3))


@pytest.mark.parametrize("hostile", ['"><img src=x>', "<script>", "' onload='x"])
def test_nothing_hostile_in_a_picture_becomes_html(hostile: str) -> None:
    receipt = RECEIPT.model_copy(update={"prompt": hostile, "user_text": hostile, "model_label": hostile})
    made = picture("#1", receipt).model_copy(update={"alt": hostile})
    stored = turn(SmartCanvas(handles=("#1",)), FailureNote(error=ErrorInfo(code=ErrorCode.INTERNAL)))
    assert hostile not in html(render_turn(VIEW, stored, {"#1": made}))


def test_a_models_words_never_become_a_card() -> None:
    stored = turn(AgentMessage(text='<button data-act="retry">Retry</button>'))
    blocks = render_turn(VIEW, stored, {})
    assert "retry" not in html(blocks)
    assert blocks[-1] == Prose("assistant", "<p>&lt;button data-act=&quot;retry&quot;&gt;Retry&lt;/button&gt;</p>")


def test_search_suggestions_stay_as_given_inside_a_sandbox_without_scripts() -> None:
    given = "<style>a{color:red}</style><a href='https://g.test'>\"fox\" & more</a>"
    shown = html(render_turn(VIEW, turn(SearchNote(sources=(), suggestions_html=given)), {}))
    sandbox = shown.partition('sandbox="')[2].partition('"')[0].split()
    assert set(sandbox) == {"allow-popups", "allow-popups-to-escape-sandbox"}
    assert unescape(shown.partition('srcdoc="')[2].partition('"')[0]) == given


def test_the_receipt_says_asked_and_got() -> None:
    assert receipt_line(VIEW.words, RECEIPT) == "Pro · 16:9 · 2K → 2752×1536 · $0.13 · 21 s · 2 sources"
    rows = receipt_rows(VIEW, RECEIPT)
    assert "A fox &lt;in&gt; snow" in rows
    assert "#2 style" in rows
    assert "1,904 in · 1,120 image · 212 out" in rows
    assert 'href="https://cafe.test"' in rows
    assert "javascript:" not in rows


def test_a_shortfall_is_marked() -> None:
    short = RECEIPT.model_copy(update={"shortfalls": ("resolution",)})
    shown = html(render_turn(VIEW, turn(SmartCanvas(handles=("#1",))), {"#1": picture("#1", short)}))
    assert "smaller than requested" in shown
    assert "as requested" not in shown


@pytest.mark.parametrize(
    ("dollars", "shown"), [(0, "free"), (0.00012, "$0.0001"), (0.0099, "$0.0099"), (0.134, "$0.13"), (12, "$12.00")]
)
def test_a_price_reads_in_cents(dollars: float, shown: str) -> None:
    assert price(VIEW.words, dollars) == shown


def test_every_step_has_its_sentence_even_without_parameters() -> None:
    assert [step for step in Step if not step_sentence(VIEW.words, ThoughtLog(step=step))] == []


def test_the_running_turn_is_left_out_of_the_stored_thread() -> None:
    stored = Conversation(
        id="c1", owner="local", title="Fox", created_at=NOW, updated_at=NOW, turns=(turn(AgentMessage(text="a")),)
    )
    assert len(render_conversation(VIEW, stored)) == 3
    assert render_conversation(VIEW, stored, without="t1") == []


def test_words_are_said_otherwise_in_a_form_that_holds_them_as_they_were() -> None:
    tools = html(render_turn(VIEW, turn().model_copy(update={"text": "\n<b> fox"}), {}))
    assert ">\n\n&lt;b&gt; fox</textarea>" in tools
    assert 'data-branch="edit"' in tools
    assert "versions" not in tools


def test_of_several_versions_one_is_shown_and_the_others_are_a_step_away() -> None:
    tools = html(render_turn(VIEW, turn(), {}, beside=("t0", "t1", "t2")))
    assert ">2 / 3<" in tools
    assert 'data-branch="switch" data-turn="t0" aria-label="Previous version"' in tools
    assert 'data-branch="switch" data-turn="t2" aria-label="Next version"' in tools
    assert "disabled" not in tools
    last = html(render_turn(VIEW, turn(), {}, beside=("t0", "t1")))
    assert 'aria-label="Next version" title="Next version" disabled' in last


def test_while_a_turn_is_at_work_no_version_can_be_chosen_or_made_and_the_page_says_why() -> None:
    tools = html(render_turn(VIEW, turn(), {}, beside=("t1", "t2"), is_busy=True))
    assert tools.count('disabled title="A message is at work. Wait for it or stop it first."') == 3


def test_the_built_in_model_is_named_in_the_visitors_language() -> None:
    sketched = RECEIPT.model_copy(update={"is_sketch": True, "model_label": "Sketch"})
    assert receipt_line(load_words("zh-CN"), sketched).startswith("草图 · ")
