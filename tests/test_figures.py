"""Figures in prose: each is kept by a test, or is what a reader gives. What a run measures stands in the benchmarks."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from pathlib import Path

import pytest
from scipy.special import expit
from scripts.installed_size import SIZES

from confide import datasets
from confide.data import arrays, file_rows
from confide.inference import debiased, forecast
from confide.planning import simulation
from confide.report import page as report_page
from confide.training import auto_loss, gradient_steps
from confide.training import plan as training_plan
from tests.test_house import LARGEST_SHARE_OF_A_ROOM, MOST_LINES_OF_A_FUNCTION
from tests.test_project import MOST_LINES_OF_A_READING_PATH, MOST_LINES_OF_A_TRUSTED_MODULE

ROOT = Path(__file__).resolve().parents[1]
# Their figures have tests of their own: test_benchmarks_of_peers.py, test_experiments.py and test_errata.py. The reference
# lists what may be given.
ELSEWHERE = ("docs/index.md", "docs/experiments/", "docs/explanation/errata.md", "docs/reference/")
PAGES = [
    page
    for page in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "SECURITY.md", *map(str, ROOT.glob("docs/**/*.md")))
    if not str(Path(ROOT, page).relative_to(ROOT)).startswith(ELSEWHERE)
]
NUMBER = r"(?<![\w^.,-])\d+(?:,\d{3})*(?:\.\d+)?"
FIGURE = re.compile(
    rf"(?<![\w.,])\.\d+(?!\w)|\b0\.\d+(?!\.?\d)|{NUMBER}(?: to {NUMBER})? times"
    rf"|{NUMBER} ?(?:s|ms|seconds?|minutes?|hours?|[KMGT]B)\b"
    rf"|{NUMBER}% (?:to {NUMBER}% )?of (?:\d+ )?(?:all )?(?:samples|fits|errors)"
    rf"|{NUMBER} (?:tests|files|modules|releases|places)\b"
)
"""Shares and errors, factors, times, sizes, rates of cover and counts of things in the project."""


def short(value: float) -> str:
    """A number as in tables of benchmarks: .18 for 0.18."""
    return f"{value:g}".removeprefix("0")


def odds(epsilon: float) -> str:
    """The cells of a line of the table of epsilons."""
    factor, chance = math.exp(epsilon), expit(epsilon)
    shown = f"{factor:.2f}" if factor < 10 else f"{factor:.1f}" if factor < 100 else f"{factor:,.0f}"
    return (
        f"| {epsilon:g} | {shown} to 1 | {chance:.2f} |"
        if epsilon < 10
        else f"| {epsilon:g} | {shown} to 1 | {chance:.5f} |"
    )


def aims() -> list[str]:
    """The cells of the table of thresholds."""
    shown = []
    for aim in auto_loss.AIMS.values():
        first, most = map(short, aim)
        shown.append(f"{first} ({short(auto_loss._USUAL_NOISE)} / r)^(1/5), at most {most}")
    return shown


def megabytes(size: int) -> str:
    return f"{size / 2**20:.0f} MB"


@cache
def made() -> dict[str, list[str]]:
    """What pages say, made from constants, formulas and data."""
    guess = sum(datasets.load_adult().y_test == "<=50K") / len(datasets.load_adult().y_test)
    shares = [short(share) for share in auto_loss.SHARES]
    return {
        "README.md": [f"for everybody by {short(round(1.0 - guess, 3))}"],
        "CONTRIBUTING.md": [
            f"No room holds more than {LARGEST_SHARE_OF_A_ROOM:.0%} of the package's code",
            f"no function is longer than {MOST_LINES_OF_A_FUNCTION} lines",
            f"no trusted module is longer than {MOST_LINES_OF_A_TRUSTED_MODULE} lines of code",
            f"longer than {MOST_LINES_OF_A_READING_PATH:,} lines of code",
        ],
        "ARCHITECTURE.md": [
            f"no room holds more than {LARGEST_SHARE_OF_A_ROOM:.0%} of the code",
            f"longer than {MOST_LINES_OF_A_READING_PATH:,} lines of code",
        ],
        "docs/explanation/choice_of_mechanism.md": [
            f"a noise of {training_plan._AIM} of",
            f"more noise than {training_plan._TOO_LARGE} of",
            f"{training_plan._LEAST_SHARE:.0%} to {training_plan._LARGEST_SHARE:.0%} of the budget",
        ],
        "docs/explanation/mechanisms.md": [
            f"is clipped at a slope of {gradient_steps._LIMIT}",
            f"at {gradient_steps._LIMIT_OF_LOGISTIC} where noise is large",
            f"clips the plain logistic loss at {gradient_steps._LIMIT} where",
        ],
        "docs/explanation/what_epsilon_means.md": [f"a factor of at most {math.exp(0.5):.2f}"],
        "docs/how_to/choose_epsilon_and_delta.md": [odds(epsilon) for epsilon in (0.1, 0.5, 1, 2, 4, 10)],
        "docs/how_to/larger_than_memory.md": [
            f"about {megabytes(arrays._SAMPLE_BYTES)}",
            f"at most {megabytes(file_rows._HELD_FILES)}",
            f"at most {megabytes(file_rows._HELD_BYTES)}",
        ],
        "docs/how_to/install.md": [
            "with the core takes {core} MB, with the command line {cli} MB and with all parts {all} MB".format(
                **json.loads(SIZES.read_text(encoding="utf-8"))
            )
        ],
        "docs/how_to/intervals.md": [
            f"the limit is {forecast.LARGEST_RESIDUAL_RATIO}",
            f"the limit is {forecast.LARGEST_COUNT_RATIO}",
            f"the limit is {forecast.LARGEST_SUMS_RATIO}",
            f"differs by about {short(debiased._OF_LONG_ROWS)} for one spread",
        ],
        "docs/how_to/planning.md": [
            *aims(),
            f"{', '.join(shares[:-1])} and {shares[-1]}",
            f"at most {short(training_plan._NEXT_TO_NOTHING)} of",
            f"Above {forecast.POOR_FIT_RATIO} it says",
            f"a margin of {simulation._RANGE_FLOOR}",
            f"at most {report_page._MANY_WEIGHTS} weights and",
            f"up to {2 ** report_page._DOUBLINGS[0]} times the budget and the rows",
            f"up to {2 ** report_page._FEWER_DOUBLINGS[0]} times the budget and twice the rows",
        ],
    }


# What is given and not found: budgets, levels, versions, and strengths of tests.
GIVEN = {
    "README.md": [
        r"\.\d{4}",  # the table of peers, which tests/test_benchmarks_of_peers.py compares
        r"err by \.153",
    ],
    "CONTRIBUTING.md": [r"rejects noise 0\.7 times as large"],
    "docs/explanation/mechanisms.md": [r"starts at a slope of 0\.5"],
    "docs/explanation/what_it_does_not_do.md": [
        r"\.\d{4}",  # tests/test_benchmarks_of_peers.py compares these too
        r"\.246",
        r"9 minutes",
    ],
    "docs/explanation/what_epsilon_means.md": [r"At epsilon 0\.5", r"the same people at 0\.5 each"],
    "docs/how_to/adding_a_loss.md": [r"Change to 0\.25 and see it fail"],
    "docs/how_to/choose_epsilon_and_delta.md": [r"The guess of 0\.15"],
    "docs/how_to/describe.md": [r"with probability 0\.95"],
    "docs/how_to/intervals.md": [r"A test that rejects below 0\.05"],
    "docs/how_to/planning.md": [r"20,000 at epsilon 0\.001", r"a mean loss within 0\.05"],
    "docs/how_to/private_bounds.md": [r"a private release that cost epsilon = 0\.5"],
    "docs/how_to/write_a_schema.md": [r"not 0\.01"],
}


def prose(page: str) -> str:
    """A page without code, formulas and targets of links, in one line."""
    text = (ROOT / page).read_text(encoding="utf-8")
    without = re.sub(r"```.*?```|\$\$.*?\$\$|`[^`]*`|\$[^$\n]*\$|\]\([^)]*\)", "", text, flags=re.DOTALL)
    return " ".join(without.split())


@pytest.mark.parametrize("page", sorted(str(Path(ROOT, page).relative_to(ROOT)) for page in PAGES))
def test_each_figure_in_prose_is_made_or_given(page):
    """A new one is made here from what it follows from, or it belongs to the benchmarks, where it has a date."""
    said, kept = prose(page), made().get(page, [])
    for phrase in kept:
        assert phrase in said, f"{page} does not say {phrase!r}"
    for phrase in GIVEN.get(page, []):
        said, found = re.subn(phrase, "", said)
        assert found, f"{page} does not say {phrase!r}"
    for phrase in kept:
        said = said.replace(phrase, "")
    left = [said[max(0, match.start() - 60) : match.end() + 30] for match in FIGURE.finditer(said)]
    assert left == []


def test_the_attacks_gave_the_figures_that_the_page_on_holes_shows():
    """Combinations, planted bugs and changes that tests notice, as the pages of the audit have them."""
    shown = " ".join((ROOT / "docs/explanation/known_holes.md").read_text(encoding="utf-8").split())
    audit = (ROOT / "benchmarks/audit/README.md").read_text(encoding="utf-8")
    tried, wrong = re.search(r"(\d+) combinations were replayed and (\d+) are wrong", audit).groups()
    bugs, missed = re.search(r"(\d+) planted bugs were attacked, and (\d+) were missed", audit).groups()
    assert (wrong, missed) == ("0", "0")
    assert f"{tried} combinations, none wrong; {bugs} planted bugs, none missed" in shown
    row = re.search(
        r"^\| all \| (.*) \|$", (ROOT / "benchmarks/audit/mutants.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    changes, noticed, late, _, reasons, _ = (int(re.sub(r"\D", "", cell)) for cell in row.group(1).split(" | "))
    assert f"they notice {noticed + late:,} of {changes:,} changes" in shown
    assert f"the other {reasons} are listed with reasons" in shown
