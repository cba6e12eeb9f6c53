"""What the README says is so: its examples run as they stand, its flags and variables are those of the code."""

from __future__ import annotations

import io
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from tests.adapters.models import ModelRole
from tests.docs.readme import CHINESE
from tests.page import PageProcess, clean_environment
from tests.page.process import run_to_end
from tests.support.commands import done

ROOT = Path(__file__).parents[1]
EDITIONS = ["README.md", "README.zh-CN.md"]
EVERY_FLAG = re.compile(r"--[a-z][a-z-]*")
ANY_VARIABLE = re.compile(r"\b(?:AIVISTA|GEMINI|GOOGLE)_[A-Z0-9_]*[A-Z0-9]\b")
_EXAMPLE = """
import os, runpy, sys, warnings
warnings.simplefilter("error", ResourceWarning)
os.chdir(os.path.dirname(sys.argv[1]))
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def python_examples(edition: str) -> dict[str, str]:
    """Return the Python examples of an edition by what they import."""
    blocks: list[str] = re.findall(r"```python\n(.*?)```", (ROOT / edition).read_text("utf-8"), re.DOTALL)
    names = ["studio" if "from agent" in block else "client" for block in blocks]
    assert sorted(names) == ["client", "studio"]
    return dict(zip(names, blocks, strict=True))


def run_example(code: str, folder: Path, *, is_cold: bool = False, **environment: str) -> str:
    """Run an example as its reader would, in a folder of their own; return what it printed. Unless it `is_cold`, its
    imports are done already."""
    script = folder / "example.py"
    script.write_text(code, "utf-8")
    ended = run_to_end((str(script),), environment=clean_environment(**environment), code=_EXAMPLE, is_cold=is_cold)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_studio_example_makes_a_picture_without_a_key(edition: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    code, is_cold = python_examples(edition)["studio"], edition == "README.md"
    said = run_example(code, tmp_path, is_cold=is_cold, AIVISTA_HOME=str(home)).split()
    assert (said[0], said[-1]) == ("turn_started", "turn_done")
    assert "picture_ready" in said
    with Image.open(tmp_path / "fox.png") as picture:
        picture.load()
        assert (picture.format, min(picture.size) > 500) == ("PNG", True)
    assert (home / "aivista.db").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["example.py", "fox.png", "home"]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageProcess]:
    with PageProcess(home=tmp_path_factory.mktemp("page") / "home") as running:
        yield running


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_client_example_gets_a_picture_of_a_running_studio(edition: str, page: PageProcess, tmp_path: Path) -> None:
    code = python_examples(edition)["client"]
    assert code.count("http://127.0.0.1:7860") == 1
    said = run_example(code.replace("http://127.0.0.1:7860", page.url), tmp_path).splitlines()
    *_, last = said
    assert "'handle': '#1'" in last
    [url] = re.findall(r"'url': '([^']+)'", last)
    with urllib.request.urlopen(url, timeout=20) as answer, Image.open(io.BytesIO(answer.read())) as picture:
        picture.load()
        assert min(picture.size) > 500


def settings_rows(edition: str) -> list[list[str]]:
    """Return the rows of the table of settings: flag, variable, what it is, otherwise."""
    text = (ROOT / edition).read_text("utf-8")
    tables = [table for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE) if "`--host`" in table]
    assert len(tables) == 1
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in tables[0].splitlines()]
    return rows[2:]


def named_variables(edition: str) -> set[str]:
    """Return every variable the table names; `…_X` beside `A_B_C` stands for `A_B_X`."""
    found: set[str] = set()
    for _, cell, *_ in settings_rows(edition):
        names = re.findall(r"`([^`]+)`", cell)
        if not names:
            continue
        roots = [name.rpartition("_")[0] for name in names if not name.startswith("…")]
        found |= {name if not name.startswith("…") else roots[0] + name.removeprefix("…") for name in names}
    return found


def variables_of_the_code() -> set[str]:
    """Return every variable of ours that is a string of the code by itself."""
    code = "".join(path.read_text("utf-8") for name in ("agent", "webui") for path in (ROOT / name).rglob("*.py"))
    found = set(re.findall(rf'"({ANY_VARIABLE.pattern})"', code))
    return found | {f"AIVISTA_MODEL_{role.value.upper()}" for role in ModelRole if '"AIVISTA_MODEL_"' in code}


@pytest.mark.parametrize("edition", EDITIONS)
def test_every_flag_and_every_variable_of_the_readme_is_one_of_the_code_and_the_other_way_round(edition: str) -> None:
    flags = set(EVERY_FLAG.findall(done("--help"))) - {"--help"}
    assert {flag for cell, *_ in settings_rows(edition) for flag in EVERY_FLAG.findall(cell)} == flags
    assert named_variables(edition) == variables_of_the_code()
    assert set(ANY_VARIABLE.findall((ROOT / edition).read_text("utf-8"))) <= named_variables(edition)


def test_a_variable_without_words_in_chinese_is_named_and_so_are_words_without_a_variable() -> None:
    words = dict(CHINESE.words["zh-CN"])
    home = words.pop("AIVISTA_HOME")
    with pytest.raises(ValueError, match="no Chinese words for AIVISTA_HOME"):
        CHINESE._replace(words={**CHINESE.words, "zh-CN": words}).page()
    with pytest.raises(ValueError, match="words for AIVISTA_GONE, which no field is read from"):
        CHINESE._replace(words={**CHINESE.words, "zh-CN": {**words, "AIVISTA_HOME": home, "AIVISTA_GONE": ""}}).page()


def test_both_editions_have_the_same_settings_and_the_same_commands() -> None:
    rows = [[row[:2] for row in settings_rows(edition)] for edition in EDITIONS]
    english, chinese = ([[cell.replace("、", ", ") for cell in row] for row in edition] for edition in rows)
    assert english == chinese
    shells = [re.findall(r"```sh\n(.*?)```", (ROOT / edition).read_text("utf-8"), re.DOTALL) for edition in EDITIONS]
    assert shells[0] == shells[1]
    assert len(shells[0]) >= 2
