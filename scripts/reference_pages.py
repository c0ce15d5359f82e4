"""Write the pages of the reference that are made from code: the command line, and one page for each group of public names.

Run: python -m scripts.reference_pages --write
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import confide

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs" / "reference"

GROUPS = {
    "budgets": ("Budgets and guarantees", ["PureDP", "ApproxDP", "ZCDP", "Neighbours", "Guarantee"]),
    "ledger": ("The ledger", ["Ledger"]),
    "classifiers": (
        "Classifiers",
        ["AdditiveClassifier", "LogisticRegression", "LinearSVC", "KernelSVC", "ERMClassifier"],
    ),
    "regressors": (
        "Regressors",
        ["AdditiveRegressor", "Ridge", "HuberRegressor", "PoissonRegressor", "ERMRegressor"],
    ),
    "around_a_fit": (
        "Around a fit",
        [
            "PrivateSearchCV",
            "PublicPrior",
            "CalibratedClassifier",
            "describe",
            "evaluate",
            "family",
            "load",
            "private_bounds",
            "progress",
        ],
    ),
    "rows_and_columns": (
        "Rows and columns",
        [
            "Schema",
            "SchemaEncoder",
            "RandomFourierFeatures",
            "BallBound",
            "BoxBound",
            "GroupBound",
            "Smooth",
            "StronglyConvex",
            "open_rows",
        ],
    ),
    "parties": ("Several parties", ["FederatedRows", "take_part"]),
    "displays": (
        "Displays",
        [
            "EffectsDisplay",
            "CoefficientsDisplay",
            "PrivacyAccuracyDisplay",
            "RocDisplay",
            "CalibrationDisplay",
            "LedgerDisplay",
        ],
    ),
    "planning": ("Planning", ["planning"]),
    "audit": ("Audits", ["audit"]),
    "datasets": ("Data sets", ["datasets"]),
    "errors": (
        "Errors and warnings",
        [
            "ConfideError",
            "ParameterError",
            "SchemaError",
            "StudyError",
            "InputError",
            "FileError",
            "LedgerError",
            "BudgetExceeded",
            "NotCertified",
            "PrivacyWarning",
            "BudgetWarning",
            "AccuracyWarning",
            "SchemaWarning",
        ],
    ),
}
"""Every public name, on the page where readers look for it."""


def python_page(title: str, names: list[str]) -> str:
    """The source of one page: mkdocstrings fills in the docstrings when the site is built."""
    lines = [f"# {title}", ""]
    for name in names:
        found = getattr(confide, name)
        if inspect.ismodule(found):
            lines += [f"::: confide.{name}", "    options:", "      members:"]
            lines += [f"        - {member}" for member in members_of(found)]
        else:
            lines.append(f"::: confide.{name}")
        lines.append("")
    return "\n".join(lines)


def members_of(module: ModuleType) -> list[str]:
    """Public functions and classes of a public module."""
    listed = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
    found = ((name, getattr(module, name)) for name in listed)
    return [name for name, value in found if getattr(value, "__module__", "").startswith(module.__name__)]


def python_index() -> str:
    """The list of all public names with the first sentence of each."""
    lines = [
        "# Python names",
        "",
        "All names that users need are names of `confide`. Other modules may change between versions.",
        "",
    ]
    for page, (title, names) in GROUPS.items():
        lines += [f"## {title}", "", "| name | what it is |", "| --- | --- |"]
        for name in names:
            first = (inspect.getdoc(getattr(confide, name)) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
            lines.append(f"| [`{name}`]({page}.md) | {first} |")
        lines.append("")
    return "\n".join(lines)


def commands() -> Iterator[str]:
    """The words of each command of the command line, such as "ledger init"."""
    import typer

    from confide.cli import app

    def walk(command: object, words: tuple[str, ...]) -> Iterator[str]:
        inner = getattr(command, "commands", None)
        if not inner:
            yield " ".join(words)
        for name, each in (inner or {}).items():
            if not getattr(each, "hidden", False):
                yield from walk(each, (*words, name))

    yield from walk(typer.main.get_command(app), ())


def help_of(words: str) -> str:
    """What `--help` prints, without colours, on a terminal of 80 columns."""
    from typer.testing import CliRunner

    from confide.cli import app

    plain = {"COLUMNS": "80", "TERMINAL_WIDTH": "80", "NO_COLOR": "1", "TERM": "dumb", "FORCE_COLOR": None}
    done = CliRunner().invoke(app, [*words.split(), "--help"], prog_name="confide", env=plain, terminal_width=80)
    if done.exit_code != 0:
        raise RuntimeError(f"confide {words} --help ended with exit code {done.exit_code}")
    text = re.sub(r"\x1b\[[0-9;]*m", "", done.output)
    return "\n".join(line.rstrip() for line in text.split("\n")).strip()


def command_page() -> str:
    """The page of the command line."""
    lines = [
        "# The command line",
        "",
        "Each section is what `confide ... --help` prints. Exit codes are on [the page of errors](errors.md).",
        "",
    ]
    for words in commands():
        lines += [f"## confide {words}", "", "```text", help_of(words), "```", ""]
    return "\n".join(lines)


def pages() -> dict[Path, str]:
    """Every page that is made from code."""
    python = {REFERENCE / "python" / f"{page}.md": python_page(title, names) for page, (title, names) in GROUPS.items()}
    return {REFERENCE / "command_line.md": command_page(), REFERENCE / "python" / "index.md": python_index()} | python


def main() -> int:
    """Write pages with --write; without it, name those that are not current."""
    old = [path for path, text in pages().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in old:
        if "--write" in sys.argv[1:]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(pages()[path], encoding="utf-8")
        print(path.relative_to(ROOT))
    return int(bool(old) and "--write" not in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
