"""What people see: text that is never markup, and progress."""

from __future__ import annotations

import io
import re

import pandas as pd

from confide.estimators.logistic import LogisticRegression
from tests.cli.commands import fit, run


def test_progress_shows_the_pass_its_share_and_an_honest_speed(monkeypatch):
    """On a terminal, by a clock of the test: rows of this pass alone. Nothing where their number is private."""
    from confide.cli import display

    stream = io.StringIO()
    console = display.Console(file=stream, force_terminal=True, width=80)
    monkeypatch.setattr(display, "Console", lambda **options: console)
    now = 0.0
    with display.row_progress(1000, clock=lambda: now) as passing:
        for what, n_passes in (("checking", 1), ("training", 7)):
            for number in range(n_passes):
                passing(what, 0)
                now += 2.0
                # Half of the last pass; the others are told at once, as by a cluster.
                passing(what, 500 if number == 6 else 1000)
    with display.row_progress(None) as passing:
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

    from confide.cli import display

    screen = display.Screen()
    screen._console = Console(width=60, force_terminal=True, color_system=None)
    purpose = "the third of several models of income by age and education"
    screen.table(
        ("number", "time", "purpose", "epsilon"),
        [("1", "2026-11-21 13:00:00 UTC", purpose, "0.25")],
        words=("time", "purpose"),
        wrapped="purpose",
    )
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60
    assert "2026-11-21 13:00:00 UTC" in lines[1]
    assert "0.25" in lines[1]
    column = lines[0].index("purpose")
    assert " ".join(line[column : column + 22].strip() for line in lines[1:]).startswith("the third of several models")
