"""A model's words cannot fetch a picture from elsewhere, become live HTML, or hide where a link leads."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import Source
from tests.adapters.webui import MOST_FORMATTED_CHARACTERS, markdown_html, own_words_html
from tests.support.cases import each_case
from tests.support.tables import filled, table

TAGS = """
p strong em s code pre div span button br hr a ul ol li blockquote table thead tbody tr th td h1 h2 h3 h4 h5 h6
math mrow mi mn mo ms mtext mspace mfrac msqrt mroot msub msup msubsup munder mover munderover mtable mtr mtd mstyle
mpadded mphantom
"""
ATTRIBUTES = """
type class title start align tabindex aria-label accent columnalign display displaystyle fence form linethickness
mathvariant maxsize minsize movablelimits scriptlevel separator stretchy width
"""


def linked(shown: str) -> str:
    """Return the HTML of a table with its links in full: `{address}` or `{address|words}`."""
    link = r'<a href="\1" target="_blank" rel="noopener noreferrer">'
    shown = re.sub(r"\{([^|}]+)\}", rf"{link}\1</a>", shown)
    return re.sub(r"\{([^|}]+)\|([^}]+)\}", rf"{link}\2</a>", shown)


class Reader(HTMLParser):
    """What a browser finds in a piece of HTML: its tags with their attributes, and its words."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(str(html))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data


@each_case(("text", "shown"), filled(table("markdown")["tags"], {}))
def test_pictures_become_words_and_tags_are_spelled_out(text: str, shown: str | None) -> None:
    html = markdown_html(text)
    assert {tag for tag, _ in Reader(html).tags} <= {"p", "a", "strong", "code", "br"}
    assert shown is None or html == shown


@each_case("fence", ["```", "````", "~~~", "~~~~~"])
@each_case("kind", ["", "mermaid", " mermaid", "html", "math", "svg", "latex", "mermaid {x}", "js\t<b>"])
def test_a_fenced_block_of_whatever_kind_is_code(fence: str, kind: str) -> None:
    code = 'graph TD\n\n  A["<input placeholder=key>"] $$x$$ \\[y\\] ![](http://evil.test/x) <form>\n'
    for text in (
        f"{fence}{kind}\n{code}{fence}\n",
        f"{fence}{kind}\n{code}",
        f"* a\n\n  {fence}{kind}\n  x\n  {fence}",
    ):
        read = Reader(markdown_html(text))
        assert {tag for tag, _ in read.tags} <= {"div", "button", "span", "pre", "code", "ul", "li", "p"}
    assert Reader(markdown_html(f"{fence}{kind}\n{code}{fence}")).words == code


@pytest.mark.parametrize(
    "text", ["$$\n```\n$$ <input> ![](http://evil.test/x)\n```", "`$$` <b> `$$`", "\\[\n\n`\\] <i>`"]
)
def test_a_formula_begins_and_ends_in_the_same_words(text: str) -> None:
    html = markdown_html(text)
    assert {tag for tag, _ in Reader(html).tags} <= {"p", "code", "div", "button", "span", "pre", "br"}


@pytest.mark.parametrize(("text", "shown"), table("markdown")["formulas"])
def test_formulas_become_mathml_and_what_is_none_stays_as_it_was_written(text: str, shown: str) -> None:
    assert markdown_html(text) == shown


@pytest.mark.parametrize(
    "formula",
    [
        *("\\text{<img src=x onerror=alert(1)>}", "\\href{javascript:alert(1)}{x}", "\\style{color:red}{b}"),
        *("\\class{a}{b}", "\\frac", "{" * 5000, "x" * 5000, "\\begin{matrix}a", "\\unknown{a}", "\\\\"),
    ],
)
def test_a_formula_brings_no_link_no_style_and_no_tag(formula: str) -> None:
    read = Reader(markdown_html(f"$${formula}$$"))
    assert {tag for tag, _ in read.tags} <= set(TAGS.split())
    assert not {name for _, attributes in read.tags for name in attributes} & {
        "href",
        "style",
        "class",
        "src",
        "onerror",
    }
    assert len(read.words) <= len(formula) + 1


def test_blocks_are_written_as_they_stand() -> None:
    text = "# A\n\nb\nc\n\n1. one\n2. two\n   - inner\n\n> quoted\n\n"
    text += "| a | b |\n|---|--:|\n| 1 | 2 |\n\n```py\nx\n\ny\n```\n\n---"
    assert re.sub(r"<button.*?</button>", "", markdown_html(text)) == "".join(
        [
            "<h1>A</h1>",
            "<p>b<br>c</p>",
            "<ol><li>one</li><li>two<ul><li>inner</li></ul></li></ol>",
            "<blockquote><p>quoted</p></blockquote>",
            '<table><thead><tr><th>a</th><th align="right">b</th></tr></thead>'
            '<tbody><tr><td>1</td><td align="right">2</td></tr></tbody></table>',
            '<div class="code"><pre tabindex="0"><code class="language-py">x\n\ny\n</code></pre></div>',
            "<hr>",
        ]
    )
    assert markdown_html("3. three\n4. four").startswith('<ol start="3">')


@each_case(("text", "shown"), filled(table("markdown")["links"], {}))
def test_the_whole_address_of_a_link_is_in_sight(text: str, shown: str | None) -> None:
    html = markdown_html(text)
    assert shown is None or html == f"<p>{linked(shown)}</p>"
    for tag, attributes in Reader(html).tags:
        if tag == "a":
            assert attributes.keys() == {"href", "target", "rel"}
            assert (attributes["href"] or "") in Reader(html).words


SOURCES = (Source(title="One", url="https://one.test/"), Source(title="Two", url="https://two.test/a_(b)"))


@each_case(("text", "shown"), table("markdown")["sources"])
def test_a_number_in_brackets_leads_to_its_source(text: str, shown: str) -> None:
    assert markdown_html(text, SOURCES) == f"<p>{linked(shown)}</p>"
    no_page = [Source(title="x", url="javascript:alert(1)")]
    assert markdown_html("so [1]", no_page) == "<p>so [1]</p>"


SIGNS = "ab \n`~$\\[](){}<>!|*_#-+1.&%;:/\"'="
PIECES = [*SIGNS, "```", "$$", "\\[", "http://e.test", "```mermaid\n", "<input>", "![](http://e.test/x)", "[a](b)"]


@given(st.text() | st.lists(st.sampled_from(PIECES)).map("".join))
def test_whatever_is_said_no_other_tag_and_no_hidden_address_comes_of_it(text: str) -> None:
    read = Reader(markdown_html(text))
    assert {tag for tag, _ in read.tags} <= set(TAGS.split())
    for tag, attributes in read.tags:
        if tag == "a":
            assert (attributes["href"] or "") in read.words
        else:
            assert attributes.keys() <= set(ATTRIBUTES.split())


def test_a_task_has_its_box() -> None:
    html = markdown_html("- [ ] open\n- [x] **done**\n- [y] none\n- [x](https://a.test)")
    assert '<li class="task">☐ open</li><li class="task">☑ <strong>done</strong></li><li>[y] none</li>' in html
    assert html.count('class="task"') == 2


@each_case(
    "text",
    [
        "画一个20*30*40厘米的盒子",
        "# x\n- y\n\n```\ncode\n```",
        "**bold** ~~s~~ `c` [a](b) <b>&amp; $$x$$",
        "    four spaces\n\n\nand lines",
        "[2] 1. 2. | a | b |",
        "*" * (MOST_FORMATTED_CHARACTERS + 1),
    ],
)
def test_a_persons_own_words_stand_as_they_were_typed(text: str) -> None:
    reader = Reader(own_words_html(text))
    assert [tag for tag, _ in reader.tags] == ["p"]
    assert reader.words == text


def test_an_address_in_a_persons_own_words_is_a_link_and_a_very_long_text_is_shown_as_it_was_written() -> None:
    linked_to = Reader(own_words_html("look at https://example.org/a_b_c*d !"))
    assert [tag for tag, _ in linked_to.tags] == ["p", "a"]
    assert linked_to.words == "look at https://example.org/a_b_c*d !"
    long = "**<b>**\n" * MOST_FORMATTED_CHARACTERS
    assert markdown_html(long).startswith("<p>**&lt;b&gt;**<br>**")
    assert Reader(markdown_html(long)).words == long.replace("\n", "")


@each_case(("text", "shown"), table("markdown")["emphasis"])
def test_emphasis_holds_beside_chinese_japanese_and_korean(text: str, shown: str) -> None:
    assert markdown_html(text) == f"<p>{shown}</p>"
