"""The Spacefile is read strictly: whatever cannot be used is named in one sentence."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from pydantic import BaseModel

from tests.support.cases import each_case
from webui.space.spacefile import Spacefile, SpaceProblem, read_spacefile, spacefile_of

ROOT = Path(__file__).parents[3]
LEAST = {"title": "Foxes", "emoji": "🦊", "color_from": "red", "color_to": "gray"}
OWNER = 'secrets = ["GEMINI_API_KEY"]\n[pays]\nwho = "owner"\n'


def read(more: str) -> Spacefile:
    return spacefile_of(LEAST | tomllib.loads(more))


def problem(more: str) -> str:
    with pytest.raises(SpaceProblem) as caught:
        read(more)
    said = str(caught.value)
    assert re.fullmatch(r"Spacefile: [^\n]+\.", said)
    return said


def test_the_projects_own_is_good_and_lets_visitors_pay() -> None:
    spacefile = read_spacefile(ROOT / "Spacefile")
    assert (spacefile.title, spacefile.pays.who, spacefile.secrets) == ("Aivista", "visitors", [])


def test_four_fields_are_enough() -> None:
    spacefile = read("")
    assert (spacefile.runs_on.sdk, spacefile.runs_on.hardware, spacefile.storage.bucket) == (
        "docker",
        "cpu-basic",
        None,
    )
    assert spacefile.limits.turns_at_once == 8


@each_case(
    ("more", "field"),
    [
        ("surprise = 1", "surprise is not a field"),
        ("[runs_on]\nram = 1", "runs_on.ram is not a field"),
        ('title = ""', "title "),
        ('title = "two\\nlines"', "title must be one line"),
        ("title = 3", "title "),
        ('emoji = "fox"', "emoji must be an emoji"),
        ('color_from = "crimson"', "color_from must be"),
        (f'short_description = "{"x" * 61}"', "short_description "),
        ('domains = ["https://a.example"]', "domains must hold host names"),
        ('[runs_on]\nsdk = "streamlit"', "runs_on.sdk must be 'docker' or 'gradio'"),
        ('[runs_on]\npython = "3.10"', "runs_on.python "),
        ('[runs_on]\npython = "3.11; rm -rf /"', "runs_on.python "),
        ('[runs_on]\nhardware = "a100-large"', "runs_on.hardware must be"),
        ("[runs_on]\nsleep_after_s = 3600", "runs_on cannot set sleep_after_s on cpu-basic"),
        ('[runs_on]\npackages = ["curl && reboot"]', "runs_on.packages must hold names"),
        ('[storage]\nbucket = "a/b"', "storage.bucket "),
        ('[pays]\nwho = "nobody"', "pays.who must be"),
        ("[pays]\ncap_day_usd = 3", "pays has a cap_day_usd"),
        (OWNER, "pays needs cap_day_usd"),
        (f"{OWNER}cap_day_usd = 0", "pays.cap_day_usd "),
        (f"{OWNER}cap_day_usd = inf", "pays.cap_day_usd "),
        (f"{OWNER}cap_day_usd = 1\ncap_turn_usd = 2", "pays has a cap_turn_usd above"),
        ('[pays]\nwho = "owner"\ncap_day_usd = 1', "secrets: one of GEMINI_API_KEY"),
        ('secrets = ["GEMINI_API_KEY"]', "secrets: GEMINI_API_KEY would be of no use"),
        ('secrets = ["SPACE_ID"]', "secrets must hold names"),
        ('secrets = ["A_TOKEN", "A_TOKEN"]', "secrets names one twice"),
        ('[variables]\nlower = "x"', "variables cannot set 'lower'"),
        ('[variables]\nAIVISTA_HOME = "/tmp"', "variables cannot set 'AIVISTA_HOME'"),
        ('[variables]\nGEMINI_API_KEY = "x"', "variables are public, so GEMINI_API_KEY belongs to the secrets"),
        ('[variables]\nA = "b\\nc"', "variables give A more than one line"),
        ("[variables]\nA = 1", "variables.A "),
        ('secrets = ["A"]\n[variables]\nA = "b"', "variables: A is a secret as well"),
        ("[limits]\nturns_at_once = 0", "limits.turns_at_once "),
        ("[limits]\nturns_per_visitor = true", "limits.turns_per_visitor "),
    ],
)
def test_what_cannot_be_used_is_named(more: str, field: str) -> None:
    assert problem(more).removeprefix("Spacefile: ").startswith(field)


def test_a_field_that_is_missing_is_named() -> None:
    with pytest.raises(SpaceProblem, match=r"Spacefile: title is missing\."):
        spacefile_of({name: value for name, value in LEAST.items() if name != "title"})


def test_a_secret_given_where_its_name_belongs_is_not_said() -> None:
    key = "AIza" + "C4N4RY" * 6
    assert key not in problem(f'secrets = ["{key}"]')


def test_an_owner_who_pays_has_a_cap_for_the_day_and_one_for_a_turn() -> None:
    pays = read(f"{OWNER}cap_day_usd = 5").pays
    assert (pays.cap_day_usd, pays.cap_turn_usd) == (5, 0.5)


def test_a_file_that_is_no_toml_or_not_there_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(SpaceProblem, match="there is no Spacefile in"):
        read_spacefile(tmp_path / "Spacefile")
    (tmp_path / "Spacefile").write_text("title: Foxes")
    with pytest.raises(SpaceProblem, match="Spacefile is not TOML"):
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
