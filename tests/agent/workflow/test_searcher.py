"""What is read from a search's answer."""

from __future__ import annotations

import pytest

from agent import Fact
from tests.adapters.language import parse_findings
from tests.support.cases import each_case

GOOD = '{"facts": [{"item": "It is 330 m high.", "source": "tower.example"}], "prompt_draft": "a tower"}'


@pytest.mark.parametrize("text", [GOOD, f"```json\n{GOOD}\n```", f"Here you are: {GOOD} That is all."])
def test_json_is_found_with_or_without_what_a_model_puts_around_it(text: str) -> None:
    findings = parse_findings(text)
    assert findings is not None
    assert findings.facts == (Fact(item="It is 330 m high.", source="tower.example"),)
    assert findings.prompt_draft == "a tower"


def test_fields_that_nobody_asked_for_are_ignored_and_a_missing_source_is_empty() -> None:
    findings = parse_findings('{"facts": [{"item": "x", "date": "2026"}], "mood": "calm"}')
    assert findings is not None
    assert findings.facts == (Fact(item="x", source=""),)


@each_case(
    "text", ["", "It is 330 m high.", "{", "{}", '{"facts": 3}', '{"facts": [{"source": "s"}]}', '{"facts": ["x"]}']
)
def test_what_is_no_findings_is_none(text: str) -> None:
    assert parse_findings(text) is None
