"""The pages of benchmarks/ are short, show what result files hold, and are where code and pages say that they are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"
README = BENCHMARKS / "README.md"
MOST_WORDS, MOST_WORDS_OF_A_NOTE, MOST_WORDS_OF_ALL_NOTES = 3_000, 600, 14_000


def words(page):
    """The words of a page, without the bars of its tables."""
    return sum(bool(re.search(r"\w", word)) for word in page.read_text(encoding="utf-8").split())


def records(file):
    """The lines of a result file, one for each name where a line has lists; its head is none."""
    found = []
    for line in file.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if "names" in record:
            found += [
                {key: value[index] if isinstance(value, list) else value for key, value in record.items()}
                for index in range(len(record["names"]))
            ]
        elif "command" not in record:
            found.append(record)
    return found


def tables_of_results():
    """Each table of the page below a line that names a result file: the file, the headings and the rows."""
    found = []
    file = None
    for block in README.read_text(encoding="utf-8").split("\n\n"):
        named = re.match(r"\[[^]]*\]\(([\w/]+\.jsonl)\)", block)
        if named:
            file = named[1]
        elif block.startswith("#"):
            file = None
        elif block.startswith("|") and file:
            heading, _, *rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in block.splitlines()]
            found.append((file, heading, rows))
            file = None
    return found


def same(cell, value):
    """Whether a cell shows a value: the number, or the words."""
    if isinstance(value, str):
        return cell == value
    return float(cell.replace(",", "")) == value


def test_pages_of_benchmarks_are_short():
    """Nobody keeps a long page true."""
    notes = {page.name: words(page) for page in (BENCHMARKS / "notes").glob("*.md")}
    assert words(README) <= MOST_WORDS
    assert {name for name, number in notes.items() if number > MOST_WORDS_OF_A_NOTE} == set()
    assert sum(notes.values()) <= MOST_WORDS_OF_ALL_NOTES


def test_every_table_of_results_is_compared():
    """All tables of the page but that of the scripts have a file, and each file says how it was made."""
    bars = [block for block in README.read_text(encoding="utf-8").split("\n\n") if block.startswith("|")]
    assert len(tables_of_results()) == len(bars) - 1
    for file in (BENCHMARKS / "results").glob("*.jsonl"):
        head = json.loads(file.read_text(encoding="utf-8").splitlines()[0])
        assert set(head) == {"command", "date", "machine"}
        assert records(file)


@pytest.mark.parametrize(("file", "heading", "rows"), tables_of_results())
def test_tables_show_what_result_files_hold(file, heading, rows):
    """Each row is a line of the file, cell by cell."""
    held = [record for record in records(BENCHMARKS / file) if set(heading) <= set(record)]
    for row in rows:
        assert any(all(same(cell, record[key]) for key, cell in zip(heading, row, strict=True)) for record in held), row


def test_each_note_is_a_question_that_the_readme_or_another_note_links():
    """And begins with it."""
    linked = "".join(page.read_text(encoding="utf-8") for page in (README, *BENCHMARKS.glob("notes/*.md")))
    for page in (BENCHMARKS / "notes").glob("*.md"):
        assert f"{page.name})" in linked
        assert re.match(r"# [^\n]+\?\n", page.read_text(encoding="utf-8"))


def test_each_script_is_in_the_table_of_scripts():
    """All that can be run."""
    text = README.read_text(encoding="utf-8")
    for script in BENCHMARKS.glob("*.py"):
        if '__name__ == "__main__"' in script.read_text(encoding="utf-8"):
            assert f"`{script.name}" in text, script.name


def test_benchmarks_that_code_and_pages_name_exist():
    """Constants name the script, the note or the file that their figures come from, and never the whole page."""
    pages = [*ROOT.glob("src/confide/**/*.py"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md"), *ROOT.glob("tests/**/*.py")]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for name in re.findall(r"\bbenchmarks/[\w/]+\.(?:py|md|txt|jsonl)\b", text):
            assert (ROOT / name).exists(), f"{page.relative_to(ROOT)} names {name}"
    code = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in ROOT.glob("src/**/*.py")}
    assert {name for name, text in code.items() if "benchmarks/README.md" in text} == set()
