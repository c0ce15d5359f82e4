"""Rules of the project that are about its files: size of the trusted code, names, imports, proof pages, the wheel."""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import sys
import tokenize
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "confide"

TRUSTED_ROOMS = ("erm", "privacy")
MOST_TRUSTED_LINES = 2475
MOST_LINES_OF_A_TRUSTED_MODULE = 300

SLOW_TO_IMPORT = (
    "dp_accounting",
    "opendp",
    "pandas",
    "polars",
    "pyarrow",
    "rich",
    "scipy.stats",
    "sklearn",
    "sqlalchemy",
    "typer",
)
SAYING_NOTHING = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "misc"}
RANDOM_MODULES = ("numpy.random", "random", "secrets")
RANDOM_FUNCTIONS = ("os.getrandom", "os.urandom")
MODULE_OF_ALL_NOISE = "confide.privacy.noise"
KNOWN_MECHANISMS = {"objective_perturbation", "output_perturbation", "sufficient_statistics"}
# A protocol promises nothing by itself.
WITHOUT_A_PROOF = {"mechanism"}


def module_paths() -> dict[str, Path]:
    """Dotted name -> file, for every module of the package."""
    paths = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    assert "confide" in paths, f"no package in {SOURCE.name}"
    return paths


def docstring_lines(tree: ast.Module) -> set[int]:
    """Lines of strings that are statements: docstrings of modules, classes, functions and attributes."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def count_code_lines(text: str) -> int:
    """Lines with code on them: no blank lines, no lines of comments alone, no docstrings."""
    layout = {
        tokenize.COMMENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
        tokenize.INDENT,
        tokenize.NEWLINE,
        tokenize.NL,
    }
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in layout:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstring_lines(ast.parse(text)))


def random_names_in(text: str) -> list[str]:
    """Each place where a module imports or reaches for a source of random bits."""
    tree = ast.parse(text)
    full_names: dict[str, str] = {}  # what a local name stands for
    used: list[str] = []

    def note(name: str, line: int) -> None:
        if any(f"{name}.".startswith(f"{banned}.") for banned in (*RANDOM_MODULES, *RANDOM_FUNCTIONS)):
            used.append(f"line {line}: {name}")

    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                full_names[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
                note(alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                full_names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                note(f"{node.module}.{alias.name}", node.lineno)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            parts = ast.unparse(node).split(".")
            note(".".join([full_names.get(parts[0], parts[0]), *parts[1:]]), node.lineno)
    return used


def defines_a_mechanism(text: str) -> bool:
    """Whether a module defines both `plan` and `release`, as functions or as methods."""
    names = {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}
    return {"plan", "release"} <= names


def files_of_the_project() -> list[Path]:
    """Every file but those that tools made: nothing in a hidden folder other than the ones named here."""
    kept_hidden = {".ci", ".github"}
    made_by_tools = {"__pycache__", "build", "dist"}
    found: list[Path] = []
    for folder, names, files in os.walk(ROOT):
        names[:] = [n for n in names if n not in made_by_tools and (not n.startswith(".") or n in kept_hidden)]
        # In a git worktree, .git is a file that holds a path.
        found.extend(Path(folder) / name for name in files if name != ".git" and not name.endswith((".pyc", ".pth")))
    return sorted(found)


def test_a_code_line_is_one_that_holds_code() -> None:
    """Docstrings, comments and blanks do not count; every line of a long expression or a long string does."""
    text = '''"""Module."""

# comment
def f(x):  # 1
    """Function,
    long."""
    y = (
        x
        + 1
    )  # 2 to 5

    return """a
b""" + y  # 6 and 7

class C:  # 8
    a: int  # 9
    """Attribute."""
'''
    assert count_code_lines(text) == 9


def test_the_trusted_rooms_can_be_read_in_one_sitting() -> None:
    """They have at most 2,475 lines of code together. Move code out of erm and privacy before raising the limit."""
    counts = {
        path.relative_to(PACKAGE).as_posix(): count_code_lines(path.read_text(encoding="utf-8"))
        for room in TRUSTED_ROOMS
        for path in sorted((PACKAGE / room).rglob("*.py"))
    }
    assert all(any(name.startswith(f"{room}/") for name in counts) for room in TRUSTED_ROOMS)
    table = "\n".join(f"{count:5d}  {name}" for name, count in sorted(counts.items(), key=lambda pair: -pair[1]))
    assert sum(counts.values()) <= MOST_TRUSTED_LINES, f"{sum(counts.values())} lines of trusted code:\n{table}"
    assert max(counts.values()) <= MOST_LINES_OF_A_TRUSTED_MODULE, f"a trusted module is too long:\n{table}"


def test_the_accounts_are_short_too() -> None:
    """accounting/ has at most 550 lines without the storage of the ledger, which has at most 530."""
    room = PACKAGE / "accounting"
    counts = {path.name: count_code_lines(path.read_text(encoding="utf-8")) for path in room.glob("*.py")}
    storage = [counts.pop(f"ledger_{name}.py") for name in ("records", "file", "database")]
    assert max(storage) <= MOST_LINES_OF_A_TRUSTED_MODULE
    assert sum(storage) <= 530
    assert sum(counts.values()) <= 550
    assert max(counts.values()) <= MOST_LINES_OF_A_TRUSTED_MODULE


def test_importing_the_package_imports_nothing_slow() -> None:
    """`import confide` in a fresh interpreter loads none of the packages that only some calls need."""
    script = "import sys, confide; print(*sorted(sys.modules), sep='\\n')"
    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    assert "confide" in loaded
    assert [name for name in SLOW_TO_IMPORT if name in loaded] == []


@pytest.mark.parametrize("name", module_paths())
def test_every_module_says_what_it_is_for(name: str) -> None:
    """Each module has a docstring."""
    assert ast.get_docstring(ast.parse(module_paths()[name].read_text(encoding="utf-8")))


def test_module_names_say_something() -> None:
    """No module is called utils, helpers, common or manager, nor has such a word in its name."""
    words = {name: set(re.split(r"[._]", name)) for name in module_paths()}
    assert {name for name in words if words[name] & SAYING_NOTHING} == set()


@pytest.mark.parametrize(
    "text",
    [
        "import random",
        "import numpy.random",
        "from numpy.random import default_rng",
        "from numpy import random as r",
        "import numpy as np\nnp.random.default_rng()",
        "import numpy\ndef f():\n    return numpy.random.normal()",
        "import secrets as s",
        "from secrets import randbits",
        "import os\nos.urandom(8)",
        "from os import urandom",
    ],
)
def test_the_scan_for_randomness_sees_each_way_to_reach_it(text: str) -> None:
    """The next test rests on this scan."""
    assert random_names_in(text)


@pytest.mark.parametrize("text", ["import numpy as np\nnp.sum([1])", "import randomness", "self.random = 1"])
def test_the_scan_for_randomness_accuses_nobody_else(text: str) -> None:
    """A name that merely looks alike is no source of random bits."""
    assert not random_names_in(text)


def test_random_bits_come_from_one_module() -> None:
    """Generators and the system's entropy are reached for in privacy/noise.py alone."""
    assert MODULE_OF_ALL_NOISE in module_paths()
    found = {
        name: places
        for name, path in module_paths().items()
        if name != MODULE_OF_ALL_NOISE and (places := random_names_in(path.read_text(encoding="utf-8")))
    }
    assert found == {}


def test_every_mechanism_has_its_proof_page() -> None:
    """A module of privacy/ that plans and releases has a page of the same stem in privacy/proofs/."""
    mechanisms = {
        path.stem
        for path in (PACKAGE / "privacy").glob("*.py")
        if path.stem not in WITHOUT_A_PROOF and defines_a_mechanism(path.read_text(encoding="utf-8"))
    }
    assert mechanisms >= KNOWN_MECHANISMS, "the scan no longer recognises a mechanism"
    pages = {path.stem for path in (PACKAGE / "privacy" / "proofs").glob("*.md") if path.stat().st_size > 0}
    assert mechanisms - pages == set()


def test_every_proof_page_that_is_cited_exists() -> None:
    """A docstring or comment that names proofs/<page>.md names a page that is there."""
    pages = {path.name for path in PACKAGE.glob("*/proofs/*.md")}
    missing = {
        f"{name}: {page}"
        for name, path in module_paths().items()
        for page in re.findall(r"proofs/(\w+\.md)", path.read_text(encoding="utf-8"))
        if page not in pages
    }
    assert missing == set()


def test_every_module_has_its_layer() -> None:
    """The import contracts judge only what they name, so each module, or the package around it, is named there.

    The __init__ of a package that spans several layers holds no code.
    """
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["id"] == "layers"]
    named = {name.strip(" ()") for layer in layers for name in layer.split(":")}
    packages = {name for name, path in module_paths().items() if path.name == "__init__.py"}
    empty = {name for name in packages if count_code_lines(module_paths()[name].read_text(encoding="utf-8")) == 0}
    homeless = {
        name
        for name in module_paths().keys() - empty - {"confide"}
        if not any(f"{name}.".startswith(f"{layer}.") for layer in named)
    }
    assert homeless == set()


def test_no_file_names_a_folder_of_somebodys_machine() -> None:
    """A path below a home or work folder works on one machine only, and tells who wrote it."""
    # The bracketed letters keep this line from accusing itself.
    machine_path = re.compile(rb"(?<![\w.-])/(?:h[o]me|r[o]ot|U[s]ers|w[o]rk)/\w")
    accused = {
        path.relative_to(ROOT).as_posix() for path in files_of_the_project() if machine_path.search(path.read_bytes())
    }
    assert accused == set()


def test_the_wheel_holds_every_file_of_the_package(tmp_path: Path) -> None:
    """Modules, py.typed, data sets and proof pages: what is below src/confide is what a user gets."""
    from hatchling.builders.wheel import WheelBuilder

    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata = {Path(name).name for name in archive.namelist() if ".dist-info/" in name}
    expected = {path.relative_to(SOURCE).as_posix() for path in files_of_the_project() if path.is_relative_to(PACKAGE)}
    assert shipped == expected
    assert "confide/py.typed" in shipped
    assert {"LICENSE", "NOTICE", "entry_points.txt"} <= metadata
