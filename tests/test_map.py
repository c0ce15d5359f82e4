"""The map of the papers: every link leads somewhere, and no cell is empty but those that say why."""

from __future__ import annotations

import ast
import functools
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "explanation" / "map_of_the_papers.md"
LINES = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")] for line in LINES if not line.startswith(("| ---", "| Statement"))
]
PAPERS = {"2008": 13, "2011": 20, "2012": 24, "2019": 7}
"""The least number of lines of each paper."""


def followed(cell):
    """What a cell leads to: names of the package, tests and links."""
    names = re.findall(r"`(confide[\w.]*)`", cell)
    tests = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", cell)
    links = re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", cell)
    return names, tests, links


def exists(name):
    """Whether a dotted name can be imported, as a module or an attribute of one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        return all((value := getattr(value, part, None)) is not None for part in parts[length:])
    return False


@functools.cache
def names_of_tests(path):
    """Names of the test functions of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


@functools.cache
def anchors_of(path):
    """The anchors of the headings of a page, by the rule of the site and of forges."""
    headings = re.findall(r"(?m)^#+ (.+)$", path.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def broken(cell):
    """What of a cell leads nowhere."""
    names, tests, links = followed(cell)
    wrong = [name for name in names if not exists(name)]
    for file, test in tests:
        path = ROOT / file
        if not path.is_file() or (test and test not in names_of_tests(path)) or not names_of_tests(path):
            wrong.append(f"{file}::{test}")
    for target, anchor in links:
        path = (PAGE.parent / target).resolve()
        if not path.is_file() or (anchor and anchor not in anchors_of(path)):
            wrong.append(f"{target}#{anchor}")
    return wrong


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:50])
def test_every_line_is_full_and_its_links_lead_somewhere(row):
    """Five cells; each but the first has a link or says why not."""
    assert len(row) == 5
    for cell in row[1:]:
        assert cell.startswith("none: ") or any(followed(cell))
        assert not cell.startswith("none: ") or len(cell.split()) >= 2
    assert [wrong for cell in row for wrong in broken(cell)] == []


def test_every_paper_has_its_lines():
    """Headings name the years, and no paper lost its lines."""
    parts = re.split(r"(?m)^## ", PAGE.read_text(encoding="utf-8"))[1:]
    found = {re.search(r"\((\d{4})\)", part)[1]: part.count("\n| ") - 2 for part in parts}
    assert found.keys() == PAPERS.keys()
    assert all(found[year] >= least for year, least in PAPERS.items())


@pytest.mark.parametrize(
    "cell",
    ["`confide.planning.no_such_bound`", "`tests/test_map.py::test_nothing`", "[x](errata.md#nowhere)", "[x](nowhere.md)"],
)
def test_a_link_to_nothing_is_found(cell):
    """One of each kind."""
    assert broken(cell)
