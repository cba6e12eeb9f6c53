"""Calls that wait for the person: every argument is there to be seen, and who it would go to."""

from __future__ import annotations

import json
import re
from html import escape

from agent import Ask, ConsentCard
from tests.support.cases import each_case
from webui.features.thread.plans import closed_consent, open_consent
from webui.view import View
from webui.words import load_words

VIEW = View(load_words("en"), "c1")


def asked(**arguments: object) -> str:
    ask = Ask(call=0, tool="read_url", reason="foreign_address", arguments=json.dumps(arguments))
    return open_consent(VIEW, [ask], "t1")


@each_case("sign", ["\u202e", "\u200b", "\u2066", "\xad", "\U000e0041", "\u2028", "\x07", "\r", "ㅤ", "\ue000"])
def test_a_character_that_nobody_would_see_stands_there_by_its_number(sign: str) -> None:
    text = f"a{sign}b"
    shown, code = asked(**{"words": text, text: 1}), f"U+{ord(sign):04X}"
    for tag in ("dd", "dt"):
        assert f'<{tag}>a<s title="Invisible character {code}">{code}</s>b</{tag}>' in shown
    assert text not in shown


def test_every_other_character_is_there_however_long_it_is_and_the_server_as_it_is_dialled() -> None:
    long = "".join(chr(0x4E00 + number % 20_000) for number in range(100_000)) + "<END>"
    for text in (long, "狐狸 🦊 é\tü\n\nлиса", "سلام", "e\u0301"):
        assert escape(text) in asked(words=text)
    cut = Ask(call=0, tool="read_url", reason="foreign_address", arguments=long)
    assert escape(long) in closed_consent(VIEW, ConsentCard(asks=(cut,)))
    assert escape(long) in open_consent(VIEW, [cut], "t1")
    assert "<dt>Server</dt><dd>xn--pple-43d.com</dd>" in asked(url="https://\u0430pple.com/?q=1")


def test_another_question_of_the_same_turn_has_to_be_read_anew() -> None:
    cards = [re.findall(r'data-card="([^"]+)"', asked(url=f"https://evil.example/?q={one}")) for one in "ab"]
    assert cards[0] != cards[1]
    assert all(cards)
