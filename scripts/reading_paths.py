"""Count the code that a sceptic reads for one mechanism.

The section "Reading paths" of src/confide/privacy/README.md has three tables:

- "Module": the modules in reading order, and a column for each mechanism. A cell that is not empty puts the module on the
  path of that mechanism, and holds the number of code lines to read there.
- "Left out": definitions that belong to something else, and the paths that leave them out.
- "Path": what lies outside of every mechanism, each with its modules. Definitions in brackets behind a module are what the
  path reads of it; without brackets it reads the whole module.

A proof page of a mechanism that has no column there gives its path in a line that begins with "Reading path:".

People write modules, definitions and marks; the numbers are computed. ``python -m scripts.reading_paths`` says
whether they are up to date, and with ``--write`` renews them.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from functools import cache
from pathlib import Path
from typing import NamedTuple

from scripts import proof_hashes

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "confide"
PAGE = PACKAGE / "privacy" / "README.md"

_LAYOUT = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}
_QUOTED = re.compile(r"`([^`]+)`")
_ENTRY = re.compile(r"`([^`]+\.py)`(?: \(([^)]*)\))?")
_EVERY_PATH = "all"
_SUM = "**together**"


def main() -> None:
    write = sys.argv[1:] == ["--write"]
    if sys.argv[1:] and not write:
        sys.exit("usage: python -m scripts.reading_paths [--write]")
    text = PAGE.read_text(encoding="utf-8")
    if write:
        PAGE.write_text(renewed(text), encoding="utf-8")
    elif text != renewed(text):
        sys.exit("The numbers in the reading paths are out of date. Run this with --write.")


def count_code_lines(text: str) -> int:
    """Lines with code on them: no blank lines, no lines of comments alone, no docstrings."""
    return len(code_lines(text))


def paths(text: str) -> dict[str, list[tuple[str, int]]]:
    """Each path of a page by its title: its modules in reading order, with the number of code lines to read of each."""
    mechanisms, left_out, others = _tables(text)
    found: dict[str, list[tuple[str, int]]] = {}
    for column, title in enumerate(mechanisms[0][1:], start=1):
        modules = [_QUOTED.findall(row[0])[0] for row in mechanisms[2:] if row[column] and row[0] != _SUM]
        found[title] = [(module, _n_lines(module, _names(left_out, module, title))) for module in modules]
    for row in others[2:]:
        found[row[0]] = _listed(row[1])
    return found


def paths_of_pages() -> dict[str, list[tuple[str, int]]]:
    """Paths that proof pages give in a line that begins with "Reading path:", by the name of the page."""
    found = {}
    for page in sorted(PACKAGE.glob("*/proofs/*.md")):
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith("Reading path:"):
                found[page.stem] = _listed(line)
    return found


def _listed(text: str) -> list[tuple[str, int]]:
    """Modules of a list such as "`a/b.py` (`one`, `two`), `c/d.py`", with the number of code lines to read of each."""
    return [
        (module, _n_lines_of(module, set(_QUOTED.findall(names))) if names else _n_lines(module, set()))
        for module, names in _ENTRY.findall(text)
    ]


def left_out(text: str) -> list[tuple[str, set[str], set[str]]]:
    """(module, definitions, titles of paths) of the second table."""
    titles = set(_tables(text)[0][0][1:])
    return [
        (
            _QUOTED.findall(row[0])[0],
            set(_QUOTED.findall(row[1])),
            titles if row[2] == _EVERY_PATH else set(row[2].split(", ")),
        )
        for row in _tables(text)[1][2:]
    ]


def renewed(text: str) -> str:
    """The page with the numbers of today's code."""
    counts = paths(text)
    mechanisms, _, others = _tables(text)
    lines = {}
    for row in mechanisms[2:]:
        titles = zip(mechanisms[0][1:], row[1:], strict=True)
        if row[0] == _SUM:
            cells = [f"{sum(count for _, count in counts[title]):,}" for title, _ in titles]
        else:
            module = _QUOTED.findall(row[0])[0]
            cells = [str(dict(counts[title])[module]) if cell else "" for title, cell in titles]
        lines[_written(row)] = _written([row[0], *cells])
    for row in others[2:]:
        lines[_written(row)] = _written([row[0], row[1], f"{sum(count for _, count in counts[row[0]]):,}"])
    return "\n".join(lines.get(line, line) for line in text.split("\n"))


def _tables(text: str) -> tuple[list[list[str]], list[list[str]], list[list[str]]]:
    """The cells of the three tables of the section, their two lines of headings included."""
    section = text.split("\n## Reading paths\n", 1)[1].split("\n## ", 1)[0]
    tables: list[list[list[str]]] = [[]]
    for line in section.splitlines():
        if line.startswith("|"):
            tables[-1].append([cell.strip() for cell in line.strip("|").split("|")])
        elif tables[-1]:
            tables.append([])
    first, second, third = (table for table in tables if table)
    return first, second, third


def _written(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _names(table: list[list[str]], module: str, title: str) -> set[str]:
    """The definitions of a module that a path leaves out."""
    rows = [row for row in table[2:] if _QUOTED.findall(row[0]) == [module]]
    return {name for row in rows if row[2] == _EVERY_PATH or title in row[2].split(", ") for name in _QUOTED.findall(row[1])}


def _n_lines(module: str, without: set[str]) -> int:
    """Code lines of a module without some definitions of it, and without what only those use."""
    text, known = _definitions(module, without)
    left = {name for name in known if "." not in name} - without
    while idle := {name for name in left if _is_inner(name)} - set().union(*(known[name].used - {name} for name in left)):
        left -= idle
    gone = [known[name] for name in {name for name in known if "." not in name} - left] + [known[name] for name in without]
    return len(code_lines(text).difference(*(each.place for each in gone)))


def _n_lines_of(module: str, names: set[str]) -> int:
    """Code lines of some definitions of a module, and of its private definitions and constants that they use."""
    text, known = _definitions(module, names)
    read = set(names)
    while more := {name for name in known if _is_inner(name) and any(name in known[other].used for other in read)} - read:
        read |= more
    return len(code_lines(text).intersection(*[set().union(*(known[name].place for name in read))]))


class _Definition(NamedTuple):
    """What is kept of a definition: all names that it uses, and its lines with those of its decorators."""

    used: frozenset[str]
    place: range


def _definitions(module: str, names: set[str]) -> tuple[str, dict[str, _Definition]]:
    """The text of a module, and its definitions by name, among which all of `names` must be."""
    text = (PACKAGE / module).read_text(encoding="utf-8")
    known = _definitions_of(text)
    for name in names - known.keys():
        raise LookupError(f"{module} has no definition {name}")
    return text, known


@cache
def _definitions_of(text: str) -> dict[str, _Definition]:
    """The definitions of a text. Several paths ask for them, and syntax trees are large: each is walked once."""
    tree = ast.parse(text)
    known: dict[str, ast.stmt] = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    return {name: _Definition(_used(node), _place(node)) for name, node in (known | proof_hashes.definitions(tree)).items()}


def _is_inner(name: str) -> bool:
    """Whether a definition is read with what uses it: a private function or class of the module, or a constant."""
    return "." not in name and (name.startswith("_") or name.isupper())


def _used(node: ast.stmt) -> frozenset[str]:
    return frozenset(part.id for part in ast.walk(node) if isinstance(part, ast.Name))


def _place(node: ast.stmt) -> range:
    begin = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
    return range(begin, (node.end_lineno or begin) + 1)


@cache
def code_lines(text: str) -> frozenset[int]:
    """Numbers of the lines that `count_code_lines` counts."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return frozenset(lines - _docstring_lines(ast.parse(text)))


def _docstring_lines(tree: ast.Module) -> set[int]:
    """Lines of strings that are statements: docstrings of modules, classes, functions and attributes."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


if __name__ == "__main__":
    main()
