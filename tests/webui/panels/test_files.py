"""The files panel as HTML: its frame in each language, what a run says, and how two versions differ."""

from __future__ import annotations

from agent.errors import ErrorCode, ErrorInfo
from agent.sandbox.run import ConsoleLine, Ending, Run, ScriptError
from agent.tools.script_files import ScriptRun
from tests.support.cases import each_case
from webui.panels.file_views import differences_html, run_html
from webui.words import LANGUAGES, load_words

WORDS = load_words("en")


def ran(**run: object) -> str:
    return run_html(WORDS, ScriptRun(name="a.js", run=Run.model_validate(run)))


def test_the_console_shows_each_line_by_its_level() -> None:
    html = ran(console=[ConsoleLine(level="log", text="\n  <b>"), ConsoleLine(level="error", text="no")], result=None)
    assert '<pre class="log">\n\n  &lt;b&gt;</pre><pre class="error">\nno</pre>' in html
    assert "said nothing" not in html
    assert "Done in 0.0 s" in html


def test_a_result_is_shown_as_json_and_none_as_nothing() -> None:
    assert '"狐": [\n    1\n  ]' in ran(result={"狐": [1]}).replace("&quot;", '"')
    assert "said nothing" in ran(result=None)


def test_an_error_leads_to_its_line() -> None:
    html = ran(error=ScriptError(ending=Ending.THROWN, name="TypeError", message="x is <null>", line=3))
    assert "TypeError: x is &lt;null&gt;" in html
    assert '<button type="button" data-files="line" data-line="3">line 3</button>' in html
    assert "Did not come to its end" in html


@each_case("ending", list(Ending))
@each_case("language", LANGUAGES)
def test_every_ending_has_a_sentence(ending: Ending, language: str) -> None:
    error = ScriptError(ending=ending, name="Stopped", message="in English")
    html = run_html(load_words(language), ScriptRun(name="a.js", run=Run(error=error)))
    assert ("Stopped: in English" in html) is (ending is Ending.THROWN)
    assert 'role="alert">' in html


def test_files_that_were_written_are_led_to_and_the_others_told() -> None:
    refused = {"b": ErrorInfo(code=ErrorCode.FILE_NAME_TAKEN, parameters={"name": "b"})}
    html = run_html(WORDS, ScriptRun(name="a.js", run=Run(), written=("a & b.txt",), refused=refused))
    assert 'data-name="a &amp; b.txt">a &amp; b.txt</button>' in html
    assert "There is already a file or a folder called b." in html


def test_two_versions_are_told_apart_line_by_line() -> None:
    html = differences_html(WORDS, "same\nmine <1>\n", "same\ntheirs\n")
    assert "<p>&nbsp; same</p><p><del>− mine &lt;1&gt;</del></p><p><ins>+ theirs</ins></p>" in html
    assert "Both say the same." in differences_html(WORDS, "a\r\n", "a\n")


def test_far_apart_changes_leave_out_what_is_between() -> None:
    lines = [str(number) for number in range(100)]
    html = differences_html(WORDS, "\n".join(lines), "\n".join(["x", *lines[1:99], "y"]))
    assert html.count('class="at"') == 2
    assert "&nbsp; 50" not in html
