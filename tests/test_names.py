"""Names of code in proof pages, in ARCHITECTURE.md, in comments and in docstrings are names that the package has."""

from __future__ import annotations

import ast
import importlib.util
import keyword
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

import confide

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "confide"
PAGES = [*sorted(PACKAGE.glob("*/proofs/*.md")), PACKAGE / "privacy" / "README.md", ROOT / "ARCHITECTURE.md"]
MODULES = sorted(PACKAGE.rglob("*.py"))

OF_OTHERS = {"F_FULLFSYNC", "VotingClassifier", "glht", "model_selection", "multipletests"}
"""Names of the operating system, of R and of other packages."""
OF_A_STUDY = {"study.toml", "study.py", "study.ipynb"}
"""Files that a user's study has."""
ENDINGS = ("py", "md", "c", "h", "toml", "txt", "ini", "ipynb")
WORD = re.compile(r"[A-Za-z_]\w*")
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
PROSE = re.compile(r'^ *"""(.*?)"""|(""".*?""")|(?:^|  ) *#(.*?)$', re.DOTALL | re.MULTILINE)
"""A docstring, another long text, or a comment."""
FILE = re.compile(rf"[\w./-]*\w\.(?:{'|'.join(ENDINGS)})")


class Names:
    """What the code of the package defines or uses by name."""

    def __init__(self) -> None:
        self.files = {f"/{path.relative_to(ROOT).as_posix()}" for path in repository_files()}
        self.words: set[str] = set()
        self.of_modules: dict[str, set[str]] = defaultdict(set)
        self.of_classes: dict[str, set[str]] = defaultdict(set)
        self.bases: dict[str, set[str]] = defaultdict(set)
        for path in MODULES:
            folders = path.relative_to(PACKAGE).parts[:-1]
            is_face = path.stem == "__init__"
            stem = (folders or ("confide",))[-1] if is_face else path.stem
            code = PROSE.sub(lambda part: part[2] or "", path.read_text(encoding="utf-8"))
            self.words |= {stem, *folders, *WORD.findall(code)}
            # The face of a room names what it gives as text.
            self.of_modules[stem] |= set(WORD.findall(code)) if is_face else set()
            self._add(path, stem)
            for folder in folders:
                self.of_modules[folder].add(stem)
        self.classes_of = defaultdict[str, set[str]](set)
        for name in self.of_classes:
            self.classes_of[name].add(name)
            self.classes_of[name.lower()].add(name)
        for path in (PACKAGE / "compiled").glob("*.[ch]"):
            self.words |= set(WORD.findall(re.sub(r"/\*.*?\*/", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)))

    def _add(self, path: Path, stem: str) -> None:
        text = path.read_text(encoding="utf-8")
        lines, tree = text.splitlines(), ast.parse(text)
        self.of_modules[stem] |= set(given_in(tree))
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                self.bases[node.name] |= {ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases}
                set_by_methods = re.findall(
                    r"\bself\.(\w+)(?:: [^=\n]+)? = ", "\n".join(lines[node.lineno : node.end_lineno])
                )
                self.of_classes[node.name] |= {*given_in(node), *set_by_methods}
            elif (
                isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and isinstance(node.targets[0], ast.Name)
            ):
                # A name for objects of several classes.
                self.of_classes[node.targets[0].id] = set()
                self.bases[node.targets[0].id] = set(WORD.findall(ast.unparse(node.value)))

    def has_file(self, name: str) -> bool:
        """Whether a file of the repository is called so, or by a path that ends so."""
        own = re.sub(r"^(\.{1,2}/)+", "", name)
        return name in OF_A_STUDY or any(file.endswith(f"/{own}") for file in self.files)

    def has_word(self, name: str) -> bool:
        return name in self.words or name in OF_OTHERS or keyword.iskeyword(name)

    def has_dotted(self, name: str) -> bool:
        """Whether each part is in the one before. Parts of what does not belong to the package are not looked up."""
        first, *rest = name.split(".")
        if first == "confide" and rest[0] not in self.of_modules and rest[0] not in self.words:
            return hasattr(confide, rest[0])
        if not self.has_word(first) and first not in sys.stdlib_module_names and importlib.util.find_spec(first) is None:
            return False
        return all(self._has(*pair) for pair in pairwise(rest if first == "confide" else [first, *rest]))

    def _has(self, of: str, part: str) -> bool:
        # `ledger.limit` is that of an object, by the name of its class.
        owners, known = self.classes_of.get(of, set()), self.of_modules.get(of)
        if not owners and known is None:
            return True
        return part in (known or ()) or any(self._in_class(each, part) for each in owners)

    def _in_class(self, name: str, part: str) -> bool:
        return part in self.of_classes[name] or any(
            self._in_class(b, part) for b in self.bases[name] if b in self.of_classes
        )

    def lacks(self, name: str) -> bool:
        """Whether a name looks like one of code, and nothing in the package is called so."""
        if FILE.fullmatch(name):
            return not self.has_file(name)
        if WORD.fullmatch(name):
            return not self.has_word(name)
        return bool(DOTTED.fullmatch(name)) and not self.has_dotted(name)


def repository_files() -> Iterator[Path]:
    """Files that a page or a comment may name."""
    yield from ROOT.glob("*.*")
    for folder in ("src", "tests", "scripts", "benchmarks", "docs"):
        for ending in ENDINGS:
            yield from (ROOT / folder).rglob(f"*.{ending}")


def given_in(node: ast.Module | ast.ClassDef) -> Iterator[str]:
    """The names that a module or a class gives to something, or imports."""
    for each in node.body:
        if isinstance(each, (ast.FunctionDef, ast.ClassDef)):
            yield each.name
        elif isinstance(each, (ast.Assign, ast.AnnAssign)):
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            yield from (part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name))
            if [ast.unparse(target) for target in targets] == ["__slots__"] and each.value is not None:
                yield from ast.literal_eval(each.value)
        elif isinstance(each, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in each.names)


@cache
def names() -> Names:
    return Names()


def prose_of(path: Path) -> Iterator[str]:
    """The comments and docstrings of a module, and the texts that stand behind what they describe."""
    for docstring, _, comment in PROSE.findall(path.read_text(encoding="utf-8")):
        yield re.sub(r"``[^`]*``", "", docstring) or comment


def names_on(page: str) -> list[str]:
    """The code names in a text, without blocks of code and without what `test_proofs.py` checks."""
    prose = re.sub(r"```.*?```|^[ \t]*Proves:.*?$", "", page, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"`([^`\n]+)`", prose)


def files_in(prose: str) -> list[str]:
    """Files of Python, C and proofs that a comment names, in backquotes or not."""
    return re.findall(r"(?<![\w.{<*/-])[\w./]*\w\.(?:py|md|c|h)\b(?![\w.-])", prose)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_about_the_code_name_what_there_is(page):
    """Each module, file, function and dotted name in a code span."""
    found = names_on(page.read_text(encoding="utf-8"))
    assert found, "the scan finds nothing"
    assert [name for name in found if names().lacks(name)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_list_on_a_page_names_a_file_twice(page):
    """As lists do where two modules became one."""
    twice = [
        cell
        for line in page.read_text(encoding="utf-8").splitlines()
        for cell in line.split("|")
        if re.search(r"`([\w./]+\.(?:py|c|h))`(?:[^|`:]|`(?!\1)[^`]*`)*(?:, | and |; )`\1`(?!:)", cell)
    ]
    assert twice == []


def test_comments_and_docstrings_name_what_there_is():
    """Each module, function and dotted name in backquotes, and each file."""
    lacking = [
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in MODULES
        for prose in prose_of(path)
        for name in [*re.findall(r"(?<!`)`([^`\n]+)`(?!`)", prose), *files_in(prose)]
        if names().lacks(name)
    ]
    assert lacking == []


@pytest.mark.parametrize(
    "name",
    [
        "accounting.renyi_filters",
        "random_division.divided",
        "confide.privacy.no_such_module",
        "Ledger.no_such_method",
        "estimators/persistence.py",
        "test_ledger_file.py",
        "threshold_choice",
        "_tried",
    ],
)
def test_a_name_that_nothing_has_is_seen(name):
    """Old names of modules and functions, for example."""
    assert names().lacks(name)


def test_names_of_the_package_and_of_others_are_known():
    """Modules by room or file, methods of bases, objects by their class, functions in C, and what comes from elsewhere."""
    for name in (
        "accounting.filters",
        "privacy/noise.py",
        "Ledger.last_charge",
        "ledger.limit",
        "confide.evaluate",
        "confide.privacy.noise.Entropy",
        "add_sums",
        "math.log1p",
        "2 x + 1",
    ):
        assert not names().lacks(name), name
    assert files_in("see proofs/noise.md and `noise.py`, but no <name>.py") == ["proofs/noise.md", "noise.py"]
