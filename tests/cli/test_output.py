"""What people see: text that is never markup, and progress."""

from __future__ import annotations

import io
import re
import tomllib
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

import confide
from confide.blocks import Block, heading, table, text, verbatim
from confide.cli import output
from confide.errors import lacking
from confide.estimators.logistic import LogisticRegression
from tests.cli.commands import fit, run


def test_progress_shows_the_pass_its_share_and_an_honest_speed(monkeypatch):
    """On a terminal, by a clock of the test: rows of this pass alone. Nothing where their number is private."""
    from confide.cli import output

    stream = io.StringIO()
    console = output.Console(file=stream, force_terminal=True, width=80)
    monkeypatch.setattr(output, "Console", lambda **options: console)
    now = 0.0
    with output.row_progress(1000, clock=lambda: now) as passing:
        for what, n_passes in (("checking", 1), ("training", 7)):
            for number in range(n_passes):
                passing(what, 0)
                now += 2.0
                # Half of the last pass; the others are told at once, as by a cluster.
                passing(what, 500 if number == 6 else 1000)
    with output.row_progress(None) as passing:
        assert passing is None
    shown = stream.getvalue()
    assert "training, pass 7" in shown
    assert "50%" in shown
    assert "250 rows/s" in shown
    assert set(re.findall(r"[0-9,]+ rows/s", shown)) <= {"250 rows/s", "500 rows/s"}


def test_names_are_never_taken_for_markup(folder):
    """Brackets in a column's name or a category appear as they are."""
    fit()
    text = run("inspect", "model.json").stdout
    assert "hours [x]" in text
    assert "work: [red]none[/red]" in text


def test_nothing_in_a_model_file_steers_the_terminal(folder):
    """Escape sequences in names are shown as question marks."""
    frame = pd.DataFrame({"age\x1b[31m": [0.1, 0.9]})
    LogisticRegression(1.0, classes=["\x1b[2Ja", "b"]).fit(frame, ["b", "\x1b[2Ja"]).save("model.json")
    result = run("inspect", "model.json")
    assert "\x1b" not in result.output
    assert "age?[31m" in result.stdout


def test_show_breaks_purposes_between_words_on_a_terminal(monkeypatch, capsys):
    """Numbers and times stay whole beside it, and no line is wider than the terminal."""
    from rich.console import Console

    from confide.cli import output

    screen = output.Screen()
    screen._console = Console(width=60, force_terminal=True, color_system=None)
    purpose = "the third of several models of income by age and education"
    heads, row = ("number", "time", "purpose", "epsilon"), ("1", "2026-11-21 13:00:00 UTC", purpose, "0.25")
    screen.show([table(heads, [row], words=("time", "purpose"), wrapped="purpose")])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60
    assert "2026-11-21 13:00:00 UTC" in lines[1]
    assert "0.25" in lines[1]
    column = lines[0].index("purpose")
    assert " ".join(line[column : column + 22].strip() for line in lines[1:]).startswith("the third of several models")


TABLE = (
    ("column", "low", "high", "p"),
    [("hours-per-week of all", "-0.0180", "12.5000", "0.018"), ("age", "1", "2", "0.5")],
)


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (60, (0, 1, 2, 3)),
        (40, (0, 1, 2, 3)),  # the name is broken between words
        (38, (0, 2, 3)),
        (26, (0, 3)),
        (20, None),
    ],
)
def test_narrow_tables_lose_columns_and_then_stack(width, expected):
    """One by one, in the order that is given; what stays is whole."""
    columns, rows = TABLE
    shown = output.shown_columns(columns, rows, "column", ("low", "high"), width)
    assert shown == (None if expected is None else list(expected))


def test_stacked_rows_show_every_cell_whole(capsys):
    """Each under the name of its row."""
    screen = output.Screen()
    screen._console = Console(width=20, force_terminal=True, color_system=None)
    screen.show([table(*TABLE)])
    shown = capsys.readouterr().out
    assert all(cell in shown for row in TABLE[1] for cell in row[1:])
    assert "  p     0.018\n" in shown
    assert "hours-per-week of\nall\n" in shown


@pytest.mark.parametrize(
    ("rows", "seconds", "n_passes", "expected"),
    [
        (0, 1.0, 1, ""),
        (10, 0.0, 1, ""),
        (50, 2.0, 1, "0:00:02"),
        (50, 2.0, 3, "0:00:10"),
        (1, 1.0, 1, "0:01:39"),
        (1, 60.0, 2, "3:19:00"),
        (100, 2.0, 0, "0:00:00"),
    ],
)
def test_the_time_that_is_left_is_that_of_the_rows_that_are_left(rows, seconds, n_passes, expected):
    """At the speed of this pass, of 100 rows; unknown at its beginning."""
    assert output.time_left(rows, 100, seconds, n_passes) == expected


@pytest.mark.parametrize(
    ("n_passes", "words", "left"), [(None, "of this pass left", "0:00:02"), (4, "training, pass 1 of 4", "0:00:14")]
)
def test_progress_tells_the_time_that_is_left(monkeypatch, n_passes, words, left):
    """Of this pass, or of all where the plan fixes their number."""
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100)
    monkeypatch.setattr(output, "Console", lambda **options: console)
    now = 0.0
    with output.row_progress(1000, clock=lambda: now, n_passes=n_passes) as passing:
        passing("training", 0)
        now = 2.0
        passing("training", 500)
    assert words in stream.getvalue()
    assert left in stream.getvalue()


def test_hints_of_installation_name_extras_that_there_are():
    """Of this package, from a clone, since no index has it; in quotes that every shell takes."""
    root = Path(confide.__file__).parents[2]
    extras = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    sources = [*(root / "src").rglob("*.py"), *(root / "docs").rglob("*.md"), root / "README.md", *(root / "r").rglob("*.R")]
    texts = [path.read_text(encoding="utf-8") for path in sources]
    hint = re.compile(r"pip install '\.\[(\w+)\]'|(?:lacking|imported)\(.*\"(\w+)\"\)")
    named = {extra for text in texts for extra in hint.findall(text)}
    assert {"plot", "postgres"} <= {part for pair in named for part in pair if part} <= set(extras)
    assert not [line for text in texts for line in text.splitlines() if re.search(r"pip install '?confide\b", line)]
    assert "run pip install '.[plot]'" in str(lacking("plot", "Matplotlib", "plot"))


def test_a_long_indented_line_stays_indented(monkeypatch, capsys):
    """Each of its lines begins where the first one does."""
    monkeypatch.setenv("COLUMNS", "40")
    output.Screen().show([text("    " + "some words " * 12)])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 2
    assert all(re.match(r" {4}\S", line) for line in lines)


def test_programs_get_the_document_alone_and_people_the_blocks_alone(capsys):
    """Neither makes what the other is shown: a document may be slow, and so may blocks."""

    def refused():
        raise AssertionError
        yield

    screen = output.Screen("json")
    screen.show(refused())
    screen.answer(lambda: {"a": 1}, refused())
    assert capsys.readouterr().out == '{\n  "a": 1\n}\n'
    screen = output.Screen()
    screen.show([heading("One"), text("first", "second"), Block("list", ["third"])])
    screen.answer(refused, [heading("Two"), verbatim("a  long  line")])
    assert capsys.readouterr().out == "One\nfirst\nsecond\n- third\n\nTwo\na  long  line\n"


def test_every_command_answers_through_one_screen():
    """No command prints by itself, but for warnings on standard error; so people and programs hear the same."""
    folder = Path(output.__file__).parent
    printing = {
        path.name: calls
        for path in folder.glob("*.py")
        if (
            calls := [
                call for call in re.findall(r"\bprint\([^\n]*|json\.dumps\(", path.read_text()) if "stderr" not in call
            ]
        )
    }
    assert set(printing) == {"output.py", "check.py"}
    assert printing["check.py"] == ["json.dumps("], "a file, not an answer"
