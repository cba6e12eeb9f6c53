"""What a file is on the page, by its name and by what it holds."""

from __future__ import annotations

from datetime import UTC, datetime

import gradio as gr

from agent.conversation import WorkspaceFile
from tests.support.cases import each_case
from webui import file_kinds
from webui.file_kinds import MOST_EDITED_BYTES, is_program, kind_of, language_of, picture_type

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@each_case(
    ("name", "language"),
    [
        ("tools/Sum.PY", "python"),
        ("a.min.js", "javascript"),
        ("page.svg", "html"),
        ("notes/plan.md", "markdown"),
        ("Dockerfile", "dockerfile"),
        ("table.csv", None),
        ("README", None),
        (".js", None),
        ("py", None),
    ],
)
def test_the_name_says_the_language(name: str, language: str | None) -> None:
    assert language_of(name) == language


def test_the_editor_knows_every_language() -> None:
    assert set(file_kinds._LANGUAGES.values()) | set(file_kinds._NAMES.values()) <= set(gr.Code.languages)


def test_scripts_can_be_run_and_nothing_else() -> None:
    names = ("a.js", "B.MJS", "a.cjs", "a.ts", "a.json", "js")
    assert [name for name in names if is_program(name)] == ["a.js", "B.MJS"]


@each_case(
    ("content", "type_"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a..", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"\0\0\0\x1cftypavif", "image/avif"),
        (b"RIFF\0\0\0\0WAVE", None),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", None),
        (b"<html>", None),
        (b"", None),
    ],
)
def test_a_picture_is_told_by_its_first_bytes(content: bytes, type_: str | None) -> None:
    assert picture_type(content) == type_


@each_case(
    ("content", "kind"),
    [
        (b"", "text"),
        ("狐".encode(), "text"),
        (b"x" * MOST_EDITED_BYTES, "text"),
        (b"x" * (MOST_EDITED_BYTES + 1), "long"),
        (PNG, "picture"),
        (b"a\0b", "bytes"),
        (b"\xff\xfe", "bytes"),
    ],
)
def test_what_it_holds_says_how_it_is_shown(content: bytes, kind: str) -> None:
    file = WorkspaceFile(name="a.txt", content=content, version=1, updated_at=datetime.now(UTC), written_by="person")
    assert kind_of(file) == kind
