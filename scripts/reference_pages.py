"""Write the pages of the reference that are made from code: the command line, and the public names.

Each estimator, function and display has a page of its own, with a picture and with what to read next; others share one.

Run: python -m scripts.reference_pages --write
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from scripts.gallery import FOLDER, words

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


SHARED = ("budgets", "planning", "audit", "datasets", "errors")
"""Groups whose names share a page. Each name of the others has its own."""

PICTURES = {
    "AdditiveClassifier": "effects_with_bands",
    "LogisticRegression": "coefficients_with_errors",
    "LinearSVC": "accuracy_and_epsilon",
    "KernelSVC": "kernel_of_skin",
    "AdditiveRegressor": "prices_of_diamonds",
    "PoissonRegressor": "visits_to_the_doctor",
    "PublicPrior": "public_prior",
    "CalibratedClassifier": "calibration_on_private_rows",
    "evaluate": "calibration_on_private_rows",
    "Ledger": "budget_of_a_study",
    "EffectsDisplay": "effects_with_bands",
    "CoefficientsDisplay": "odds_ratios",
    "PrivacyAccuracyDisplay": "forecast_before_data",
    "CalibrationDisplay": "calibration_on_private_rows",
    "LedgerDisplay": "budget_of_a_study",
}
"""The picture of the gallery at the head of a page."""

SEE_ALSO = {
    "AdditiveClassifier": "how_to/additive_models how_to/effects how_to/intervals how_to/evaluate",
    "LogisticRegression": "how_to/read_coefficients how_to/intervals how_to/from_scikit_learn how_to/from_statsmodels",
    "LinearSVC": "how_to/losses_with_kinks how_to/from_scikit_learn explanation/choice_of_mechanism",
    "KernelSVC": "how_to/from_scikit_learn how_to/additive_models explanation/optimal_privacy",
    "ERMClassifier": "how_to/adding_a_loss how_to/losses_with_kinks how_to/penalties",
    "AdditiveRegressor": "how_to/additive_models how_to/effects how_to/counts_and_rates how_to/evaluate",
    "Ridge": "how_to/read_coefficients how_to/intervals how_to/planning explanation/choice_of_mechanism",
    "HuberRegressor": "how_to/planning how_to/intervals explanation/choice_of_mechanism",
    "PoissonRegressor": "how_to/counts_and_rates how_to/intervals explanation/choice_of_mechanism",
    "ERMRegressor": "how_to/adding_a_loss how_to/losses_with_kinks how_to/penalties",
    "PrivateSearchCV": "how_to/from_scikit_learn how_to/planning explanation/pitfalls",
    "PublicPrior": "how_to/priors how_to/every_month",
    "CalibratedClassifier": "how_to/evaluate how_to/from_scikit_learn how_to/exports",
    "describe": "how_to/describe how_to/private_bounds",
    "evaluate": "how_to/evaluate how_to/studies explanation/pitfalls",
    "family": "how_to/several_tests how_to/intervals",
    "load": "how_to/exports how_to/report",
    "private_bounds": "how_to/private_bounds how_to/write_a_schema",
    "progress": "how_to/larger_than_memory how_to/cluster",
    "Schema": "how_to/write_a_schema how_to/start_from_a_table reference/schema",
    "SchemaEncoder": "how_to/write_a_schema how_to/from_scikit_learn",
    "RandomFourierFeatures": "how_to/from_scikit_learn how_to/additive_models",
    "BallBound": "how_to/adding_a_loss explanation/mechanisms",
    "BoxBound": "how_to/adding_a_loss explanation/mechanisms",
    "GroupBound": "how_to/adding_a_loss explanation/mechanisms",
    "Smooth": "how_to/penalties how_to/additive_models",
    "StronglyConvex": "how_to/penalties",
    "open_rows": "how_to/where_rows_come_from how_to/larger_than_memory how_to/cluster",
    "FederatedRows": "how_to/several_parties",
    "take_part": "how_to/several_parties",
    "Ledger": "how_to/share_a_ledger how_to/studies reference/ledger_format",
    "EffectsDisplay": "how_to/plots how_to/effects",
    "CoefficientsDisplay": "how_to/plots how_to/read_coefficients",
    "PrivacyAccuracyDisplay": "how_to/plots how_to/planning",
    "RocDisplay": "how_to/plots how_to/evaluate",
    "CalibrationDisplay": "how_to/plots how_to/evaluate",
    "LedgerDisplay": "how_to/plots how_to/share_a_ledger",
}
"""The pages that go on from a name."""


def page_of(name: str) -> str:
    """The page of a public name, without its ending."""
    (group,) = (group for group, (_, names) in GROUPS.items() if name in names)
    return group if group in SHARED else name


def own_page(name: str) -> str:
    """The page of one name: its picture, its docstring, which mkdocstrings fills in, and where to read on."""
    lines = [f"# {name}", ""]
    if name in PICTURES:
        _, _, shows = words(FOLDER / f"{PICTURES[name]}.py")
        lines += [f"![{shows}](../../gallery/{PICTURES[name]}.svg)", ""]
    lines += [f"::: confide.{name}", "", "## See also", ""]
    for page in SEE_ALSO[name].split():
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        lines.append(f"- [{text.split(chr(10), 1)[0].removeprefix('# ')}](../../{page}.md)")
    return "\n".join([*lines, ""])


def shared_page(title: str, names: list[str]) -> str:
    """The page of several names, or of the members of a module."""
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
    for title, names in GROUPS.values():
        lines += [f"## {title}", "", "| name | what it is |", "| --- | --- |"]
        for name in names:
            first = (inspect.getdoc(getattr(confide, name)) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
            lines.append(f"| [`{name}`]({page_of(name)}.md) | {first} |")
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
    for command in commands():
        lines += [f"## confide {command}", "", "```text", help_of(command), "```", ""]
    return "\n".join(lines)


def pages() -> dict[Path, str]:
    """Every page that is made from code."""
    python = {}
    for group, (title, names) in GROUPS.items():
        made = {group: shared_page(title, names)} if group in SHARED else {name: own_page(name) for name in names}
        python |= {REFERENCE / "python" / f"{page}.md": text for page, text in made.items()}
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
