"""What people see, kept as text: on terminals of four widths, without colours, and in a pipe.

`WRITE_SNAPSHOTS=1 pytest tests/cli/test_snapshots.py` writes the files anew. Look at them before they are kept. Digits are
shown as 9, and bars and curves by one character, so that rounding on another machine changes nothing.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from confide import Ledger
from confide.planning.simulation import simulate
from confide.privacy.budgets import ApproxDP
from tests.cli.commands import SCHEMA, rows_of, run, write_rows

KEPT = Path(__file__).parent / "snapshots"
WIDTHS = (40, 60, 80, 120)
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_LONGEST_WORD = 64
"""A checksum, which is never broken, so that it can be copied."""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with a model with intervals, whose noise has a seed, and a ledger with charges."""
    place = tmp_path_factory.mktemp("study")
    before = Path.cwd()
    os.chdir(place)
    try:
        _write_study()
    finally:
        os.chdir(before)
    return place


def _write_study():
    write_rows(Path("people.csv"), rows_of(2000))
    Path("people.toml").write_text(SCHEMA, encoding="utf-8")
    options = ("--epsilon", "20", "--intervals", "0.4", "--seed", "1", "--model", "logistic")
    run("fit", "people.csv", "--schema", "people.toml", *options, code=3)
    ledger = Ledger("study.db", limit=ApproxDP(4.0, 1e-6), accounting="sum")
    details = {"release": "AdditiveClassifier.fit", "user": "ana", "model": "income-2026.json"}
    ledger.charge(ApproxDP(1.0, 1e-7), purpose="Income by age and hours, for the yearly report", details=details)
    ledger.note(1, {"sha256": "0123456789abcdef" * 4})
    ledger.charge(0.018, purpose="mean age")


@pytest.fixture
def study(written, monkeypatch):
    """That folder as the working folder, and each forecast made once."""
    monkeypatch.chdir(written)
    monkeypatch.delenv("CONFIDE_DEBUG", raising=False)
    made = {}

    def simulated(estimator, n_rows, *arguments, **options):
        if n_rows not in made:
            made[n_rows] = simulate(estimator, n_rows, *arguments, **options)
        return made[n_rows]

    monkeypatch.setattr("confide.planning.advice.simulate", simulated)


COMMANDS = {
    "plan": ("plan", "--schema", "people.toml", "--rows", "3000", "--epsilon", "0.3", "--error", "0.1"),
    "inspect": ("inspect", "model.json"),
    "ledger": ("ledger", "show", "study.db"),
    "evaluate": ("evaluate", "model.json", "people.csv", "--epsilon", "1", "--bins", "4", "--seed", "1"),
}
EXIT_CODES = {"inspect": 3, "evaluate": 3}
BEGINS = {"inspect": r"\w+: coefficients "}
"""Where what is kept begins; the guarantee, which has tests of its own, is left out."""


def shown(name, monkeypatch, *, width, terminal, colours=True):
    """What a command shows, as it is printed."""
    columns = str(width) if width else ""
    for variable, value in (
        ("COLUMNS", columns),
        ("FORCE_COLOR", "1" if terminal else ""),
        ("NO_COLOR", "" if colours else "1"),
    ):
        monkeypatch.setenv(variable, value) if value else monkeypatch.delenv(variable, raising=False)
    text = run(*COMMANDS[name], code=EXIT_CODES.get(name, 0)).stdout
    start = re.search(rf"^(?:\x1b\[[0-9;]*m)*{BEGINS[name]}", text, re.MULTILINE) if name in BEGINS else None
    return text if start is None else text[start.start() :]


@pytest.mark.parametrize("name", list(COMMANDS))
def test_what_is_shown_is_as_it_was_kept(study, monkeypatch, name):
    """At each width nothing is cut and no line is too wide; without colours and in a pipe there are no escapes."""
    parts = {}
    for width in WIDTHS:
        text = _ESCAPES.sub("", shown(name, monkeypatch, width=width, terminal=True))
        parts[f"a terminal of {width} columns"] = text
        words = {word for line in text.splitlines() if len(line.rstrip()) > width for word in line.split()}
        assert not words or max(map(len, words)) >= min(width, _LONGEST_WORD), f"a line is wider than {width} columns"
    assert "\x1b[" in shown(name, monkeypatch, width=80, terminal=True)
    plain = shown(name, monkeypatch, width=80, terminal=True, colours=False)
    assert plain == parts["a terminal of 80 columns"]
    parts["a pipe"] = shown(name, monkeypatch, width=None, terminal=False)
    narrow = shown(name, monkeypatch, width=60, terminal=False)
    assert narrow == _ESCAPES.sub("", parts["a terminal of 60 columns"]), "COLUMNS says how wide a pipe is"
    assert "\x1b" not in plain + parts["a pipe"]
    assert "…" not in "".join(parts.values())
    found = "\n".join(f"=== {title}\n{_masked(text)}" for title, text in parts.items())
    path = KEPT / f"{name}.txt"
    if os.environ.get("WRITE_SNAPSHOTS") == "1":
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8")


def _masked(text):
    """The text without spaces at the ends of lines, and with one kind of digit, bar and block."""
    for pattern, replacement in ((r" +$", ""), (r"\d", "9"), (r"[▁-█]", "▄"), (r"#+$", "#")):
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return text


@pytest.mark.parametrize("width", WIDTHS)
def test_every_number_of_a_wide_terminal_is_whole_on_a_narrow_one(study, monkeypatch, width):
    """Each number that a narrow terminal shows is one that a pipe shows: none is cut, as .018 to .01."""
    numbers = re.compile(r"(?<![\w.])[-+]?\d+\.\d+(?![\w.])")
    for name in ("inspect", "ledger"):
        whole = set(numbers.findall(shown(name, monkeypatch, width=None, terminal=False)))
        narrow = set(numbers.findall(_ESCAPES.sub("", shown(name, monkeypatch, width=width, terminal=True))))
        assert narrow <= whole
        assert len(narrow) > 1
