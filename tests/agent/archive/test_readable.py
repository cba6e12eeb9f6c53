"""The pages for people: they show everything, and no word of a person or a model becomes anything but words."""

from __future__ import annotations

import base64
import hashlib
import re
import typing
from html.parser import HTMLParser
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from agent import (
    AgentMessage,
    AskBack,
    Component,
    ErrorCode,
    ErrorInfo,
    FailureNote,
    Plan,
    PlanCard,
    SearchNote,
    SmartCanvas,
    Source,
    WholeConversation,
    WorkspaceFile,
)
from tests.adapters.archives import (
    ArchiveLanguage,
    Page,
    blocks_shown,
    conversation_page,
    escaped,
    index_page,
    markdown,
    visible,
    web_address,
    web_page,
)
from tests.agent.archive.shelf import kept_turns
from tests.agent.archive.values import PARTS, whole_conversations
from tests.support.cases import each_case
from tests.support.histories import NOW, begun_turn, picture
from tests.support.tables import table

ADDRESSES = {part.digest: f"../../pictures/{part.digest}.png" for part in PARTS}
HOSTILE = table("archive_attacks")["markup"]


class Parts(HTMLParser):
    """The tags of a page with their attributes, and its words."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data


OURS = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "div", "b", "figure", "figcaption"} | {
    *("img", "dl", "dt", "dd", "ul", "li", "a", "span")
}
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "class", "src", "alt", "loading", "href", "rel"}


def hostile_conversation(text: str) -> WholeConversation:
    """Return a conversation with the text wherever a person's or a model's words can stand."""
    receipt = picture("#1", "t1").receipt
    assert receipt is not None
    words = {"prompt": text, "user_text": text, "model_label": text, "asked_aspect_ratio": text}
    shown = picture("#2", "t1").model_copy(update={"alt": text, "receipt": receipt.model_copy(update=words)})
    part = PARTS[0].model_copy(update={"handle": "#2"})
    plan = Plan(call=0, prompt=text, model=text, model_label=text, aspect_ratio=text)
    components: tuple[Component, ...] = (
        AgentMessage(text=text),
        SmartCanvas(handles=("#2",)),
        PlanCard(plans=(plan,)),
        AskBack(question="unsure", subject=text),
        SearchNote(sources=(Source(title=text, url=text), Source(title="", url="https://ok.example/" + text))),
        FailureNote(error=ErrorInfo(code=ErrorCode.REQUEST_REJECTED, parameters={"detail": text})),
    )
    turn = begun_turn(text=text).model_copy(
        update={"components": components, "editing": text, "references": (text,), "uploads": (part,), "mask": part}
    )
    return WholeConversation(
        title=text,
        created_at=NOW,
        updated_at=NOW,
        head="t1",
        turns=(turn,),
        pictures=(shown.model_copy(update={"image": part}),),
    )


def page_of(whole: WholeConversation, language: ArchiveLanguage = "en") -> Page:
    return conversation_page(whole, language, ADDRESSES)


def check_html(html: str) -> Parts:
    parts = Parts(html)
    assert {tag for tag, _ in parts.tags} <= OURS
    assert {name for _, attributes in parts.tags for name in attributes} <= ATTRIBUTES
    for _, attributes in parts.tags:
        assert (attributes.get("src") or "../../pictures/").startswith("../../pictures/")
        assert re.match("https?://|conversations/0001/", attributes.get("href") or "https://")
    return parts


def check_words(text: str) -> None:
    """Check that the words stay words, in both pages of a conversation and in the list of all."""
    page = page_of(hostile_conversation(text))
    assert visible(text).strip() in check_html(web_page(page)).words
    tokens: list[Any] = []
    for token in MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(markdown(page)):
        tokens += [token, *(token.children or ())]
    kinds = {token.type for token in tokens}
    assert not kinds & {"html_block", "html_inline", "code_block", "fence", "code_inline", "table_open", "s_open"}
    assert not kinds & {"hr", "ordered_list_open"}
    for token in tokens:
        if token.type == "image":
            assert token.attrs["src"] in ADDRESSES.values()
        if token.type == "link_open":
            assert token.attrs["href"].startswith(("https://", "http://"))
    listed = check_html(index_page(Page("en", text, ()), [("conversations/0001/conversation.html", text, text)]))
    assert [one["href"] for tag, one in listed.tags if tag == "a"] == ["conversations/0001/conversation.html"]


@each_case("text", HOSTILE)
def test_no_word_becomes_html_or_markdown(text: str) -> None:
    check_words(text)


@given(text=st.text(st.sampled_from("<>&\"'`*_[]()!#-+=|~\\.:/@1 \n\tahtpsw\u202e"), max_size=30))
def test_whatever_is_said_stays_words_and_a_reader_of_markdown_shows_the_very_ones(text: str) -> None:
    check_words(text)
    line = " ".join(text.split())
    [block, *_] = [one for one in MarkdownIt("commonmark").parse(f"x {escaped(line)} x") if one.type == "inline"]
    shown = "".join(child.content for child in block.children or ())
    assert shown == f"x {' '.join(visible(line).split())} x"


def test_the_pages_policy_lets_nothing_in_but_its_own_style_and_pictures() -> None:
    html = web_page(page_of(kept_turns()))
    [policy] = [one["content"] or "" for tag, one in Parts(html).tags if one.get("http-equiv")]
    [style] = re.findall("<style>(.*?)</style>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; img-src 'self' file:;")
    assert "prefers-color-scheme: dark" in style
    assert "http" not in html.replace("http-equiv", "").replace("https://example.org/", "")


def test_a_conversation_is_told_from_its_first_turn_to_its_newest_and_then_its_other_branches() -> None:
    whole = kept_turns()
    for text in (markdown(page_of(whole)), web_page(page_of(whole))):
        places = [text.index(mark) for mark in ("1 ·", "3 ·", "Other branches", "2 ·", "follows 1")]
        assert places == sorted(places)
        for one in whole.pictures:
            assert one.handle.lstrip("#") in text
            assert ADDRESSES[one.image.digest] in text


def with_files(*contents: bytes) -> WholeConversation:
    """Return a conversation with a text and further files of these contents."""
    file = WorkspaceFile(name="", content=b"", version=1, updated_at=NOW, written_by="agent")
    texts = tuple(
        file.model_copy(update={"name": f"{at}_file.md", "content": data}) for at, data in enumerate(contents)
    )
    return kept_turns().model_copy(update={"files": texts})


def code_in(text: str) -> list[str]:
    """Return what a reader of Markdown shows as code of a page, which has nothing else that is alive."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text)
    assert not {token.type for token in tokens} & {"html_block", "code_block", "hr", "table_open"}
    return [token.content for token in tokens if token.type == "fence"]


@each_case("text", [*HOSTILE, "```\n````\n~~~\n# out", "`" * 40, "a\r\nb\rc", "\n\n    x\n```"])
def test_a_files_text_is_code_and_nothing_of_it_gets_out(text: str) -> None:
    # With a NUL in it, it would be no text.
    text = text.replace("\0", "")
    page = page_of(with_files(text.encode(), b"the last one"))
    first, last = code_in(markdown(page))
    assert first.rstrip("\n") == visible(text).rstrip("\n")
    assert last == "the last one\n"
    parts = Parts(web_page(page))
    assert {tag for tag, _ in parts.tags} <= OURS | {"pre", "code"}
    assert visible(text) in parts.words


@given(text=st.text(st.sampled_from("`~ \n\t\r<>&#-x"), max_size=40))
def test_no_fence_inside_a_file_ends_its_code(text: str) -> None:
    shown = code_in(markdown(page_of(with_files(text.encode()))))
    assert [one.rstrip("\n") for one in shown] == ([visible(text).rstrip("\n")] if text.strip() else [])


def test_of_long_files_the_beginning_is_shown_and_how_much_is_left_and_a_lost_picture_is_said_to_be_lost() -> None:
    page = page_of(with_files(*[b"0123456789" * 10_000] * 25))
    assert [len(one) for one in code_in(markdown(page))] == [20_001] * 20
    assert web_page(page).count("80,000 more characters are not shown here.") == 20
    assert web_page(page).count("100,000 more characters are not shown here.") == 5
    text = web_page(conversation_page(kept_turns(), "en", {}))
    assert "<img" not in text
    assert "The file of picture #2 was gone" in text


@each_case(("address", "link"), table("archive_attacks")["links"])
def test_only_addresses_of_web_pages_become_links(address: str, link: str) -> None:
    assert web_address(address) == (link or None)


@settings(max_examples=16, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(whole=whole_conversations(), language=st.sampled_from(typing.get_args(ArchiveLanguage)))
def test_whatever_is_taken_in_can_be_shown(whole: WholeConversation, language: ArchiveLanguage) -> None:
    is_said = any(turn.text.strip() for turn in whole.turns if turn.id == whole.head)
    assert bool(blocks_shown(whole, language, PARTS)) >= is_said
