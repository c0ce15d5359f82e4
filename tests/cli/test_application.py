"""The program as a whole: help, version, usage, and the way from a shell."""

from __future__ import annotations

import csv
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

import confide
from tests.cli.commands import COMMANDS, SCHEMA, SENTINEL, refused, rows_of, run, run_elsewhere, spoil


def test_help_lists_exactly_the_commands_that_work():
    """In the order of a first acquaintance; with the exit codes below."""
    text = run("--help").stdout
    listed = re.findall(r"^  ([\w-]+) +[A-Z]", text.partition("Commands:\n")[2].partition("Exit codes")[0], re.MULTILINE)
    assert listed == [*COMMANDS, "completion", "ledger"]
    for line in (
        "0  done",
        "2  bad input or usage",
        "3  budget exceeded, or the guarantee is void",
        "4  internal error, or a failure after the budget was charged",
        "130  stopped by control-C",
    ):
        assert line in text


def test_help_is_what_a_bare_command_shows():
    """`confide`, `confide -h` and `confide --help` show the same, without failing."""
    assert run().stdout == run("-h").stdout == run("--help").stdout


@pytest.mark.parametrize("command", [*COMMANDS, "completion"])
def test_each_command_has_help_with_an_example(command):
    """The example is a command of the same name, and the help fits 80 columns."""
    text = run(command, "-h").stdout
    assert f"Example:\n    confide {command}" in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_version_is_that_of_the_package():
    """In one line."""
    assert run("--version").stdout == f"confide {confide.__version__}\n"


def test_help_needs_none_of_the_heavy_packages():
    """So that it appears at once."""
    script = "import sys, confide.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    assert "typer" in loaded
    assert {"numpy", "opendp", "pandas", "pyarrow", "rich", "scipy", "sklearn"}.isdisjoint(loaded)


FEW = ("--rows", "10", "--features", "3", "--epsilon", "1")


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("fitt",), "no such command 'fitt'. Did you mean 'fit'? Try 'confide --help'."),
        (("fit",), "Try 'confide fit --help'."),
        (("plan", "--rows", "10", "--features", "3"), "either --epsilon, with --delta or without, or --rho"),
        (("plan", "--rows", "0", "--features", "3", "--epsilon", "1"), "'--rows'"),
        (("plan", "--rows", "10", "--features", "3", "--epsilon", "one"), "'--epsilon'"),
        (("plan", "--rows", "10", "--features", "3", "--epsilon", "1", "--mechanism", "magic"), "'--mechanism'"),
        (("plan", "--features", "3", "--epsilon", "1"), "give either --rows or"),
        (("plan", "--rows", "10", "--epsilon", "1"), "give either --features or --schema"),
        (("plan", "--rows", "10", "--features", "3", "--epsilon", "1", "--alpha", "big"), "--alpha must be auto or"),
        (
            ("plan", "--model", "svm", *FEW, "--alpha", "0"),
            "error: --alpha must be",
        ),
        (("plan", "--model", "svm", *FEW, "--row-norm", "-1"), "row norm"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(arguments, advice):
    """The line names the option and says where help is."""
    assert advice in refused(*arguments)


def test_the_whole_way_from_a_shell(folder):
    """Fit, inspect and predict in processes of their own: no colours, nothing on standard error.

    Where a terminal knows few letters, the others are shown as escapes; a table on standard output stays UTF-8.
    """
    Path("people.toml").write_text(SCHEMA.replace('"state"', '"Ärö"'), encoding="utf-8")
    fitted = run_elsewhere(
        "fit", "people.csv", "--schema", "people.toml", "--epsilon", "1", "--no-ledger", "--out", "model.json"
    )
    inspected = run_elsewhere("inspect", "model.json", PYTHONIOENCODING="ascii")
    scored = run_elsewhere("predict", "model.json", "people.csv", "--out", "-", PYTHONIOENCODING="ascii")
    for done in (fitted, inspected, scored):
        assert (done.returncode, done.stderr) == (0, "")
        assert "\x1b" not in done.stdout
    assert "work: Ärö" in fitted.stdout
    assert "work: \\xc4r\\xf6" in inspected.stdout
    assert [row["name"] for row in csv.DictReader(io.StringIO(scored.stdout))] == [row["name"] for row in rows_of()]


def test_a_failure_from_a_shell_is_one_line_too(folder):
    """With its exit code, and without the cell that caused it."""
    spoil(age=SENTINEL)
    done = run_elsewhere("fit", "people.csv", "--schema", "people.toml", "--epsilon", "1")
    assert done.returncode == 2
    assert re.fullmatch(r"error: [^\n]+\n", done.stderr)
    assert SENTINEL not in done.stdout + done.stderr
    usage = run_elsewhere("fit")
    assert usage.returncode == 2
    assert usage.stderr.count("\n") == 1


def test_the_commands_are_listed_before_anything_heavy_is_imported():
    """Help and the answers of shells come at once: no array, no table and no plot is loaded for them."""
    script = (
        "import sys, confide.cli; print(sorted({'numpy', 'pandas', 'scipy', 'pyarrow', 'rich.table'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
