"""The Spacefile is read strictly: whatever cannot be used is named in one sentence."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from pydantic import BaseModel

from tests.support.cases import each_case
from tests.support.tables import table
from webui.cli.parser import CommandFailed
from webui.cli.space.spacefile import Spacefile, read_spacefile, spacefile_of

ROOT = Path(__file__).parents[3]
LEAST = {"title": "Foxes", "emoji": "🦊", "color_from": "red", "color_to": "gray"}
OWNER = 'secrets = ["GEMINI_API_KEY"]\n[pays]\nwho = "owner"\n'


def read(more: str) -> Spacefile:
    return spacefile_of(LEAST | tomllib.loads(more))


def problem(more: str) -> str:
    with pytest.raises(CommandFailed) as caught:
        read(more)
    said = str(caught.value)
    assert re.fullmatch(r"Spacefile: [^\n]+\.", said)
    return said


def test_the_projects_own_is_good_and_lets_visitors_pay() -> None:
    spacefile = read_spacefile(ROOT / "Spacefile")
    assert (spacefile.title, spacefile.pays.who, spacefile.secrets) == ("Aivista", "visitors", [])


def test_four_fields_are_enough_and_an_owner_who_pays_has_a_cap_for_the_day_and_one_for_a_turn() -> None:
    least, pays = read(""), read(f"{OWNER}cap_day_usd = 5").pays
    assert (least.runs_on.sdk, least.runs_on.hardware, least.storage.bucket) == ("docker", "cpu-basic", None)
    assert (least.limits.turns_at_once, pays.cap_day_usd, pays.cap_turn_usd) == (8, 5, 0.5)
    with pytest.raises(CommandFailed, match=r"Spacefile: title is missing\."):
        spacefile_of({name: value for name, value in LEAST.items() if name != "title"})


@each_case(("more", "field"), table("doors")["spacefiles"])
def test_what_cannot_be_used_is_named(more: str, field: str) -> None:
    more = more.replace("$owner", OWNER)
    assert problem(more).removeprefix("Spacefile: ").startswith(field)


def test_a_secret_given_where_its_name_belongs_is_not_said() -> None:
    key = "AIza" + "C4N4RY" * 6
    assert key not in problem(f'secrets = ["{key}"]')


def test_a_file_that_is_no_toml_or_not_there_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="there is no Spacefile in"):
        read_spacefile(tmp_path / "Spacefile")
    (tmp_path / "Spacefile").write_text("title: Foxes")
    with pytest.raises(CommandFailed, match="Spacefile is not TOML"):
        read_spacefile(tmp_path / "Spacefile")


def test_the_page_of_the_docs_names_every_field() -> None:
    told = (ROOT / "docs" / "space.md").read_text("utf-8")
    assert [name for name in fields_of(Spacefile) if f"`{name}`" not in told] == []


def fields_of(model: type[BaseModel], group: str = "") -> list[str]:
    """Return every field of a model by its whole name."""
    found: list[str] = []
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            found += fields_of(field.annotation, f"{name}.")
        else:
            found.append(group + name)
    return found
