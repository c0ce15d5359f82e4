"""Rules of the project that are about its files: size of the trusted code, names, imports, proof pages, the wheel."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest
from hatch_build import compiler, first_page, platform
from scripts import lock, reading_paths
from scripts.reading_paths import count_code_lines

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "confide"

TRUSTED_ROOMS = ("erm", "privacy", "accounting")
MOST_LINES_OF_A_TRUSTED_MODULE = 300
MOST_LINES_OF_A_READING_PATH = 1300
READING_PATHS = reading_paths.paths(reading_paths.PAGE.read_text(encoding="utf-8")) | reading_paths.paths_of_pages()

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
KNOWN_MECHANISMS = {"gradient", "objective_perturbation", "output_perturbation", "sufficient_statistics"}
# A protocol promises nothing by itself.
WITHOUT_A_PROOF = {"mechanism"}


@cache
def module_paths() -> dict[str, Path]:
    """Dotted name -> file, for every module of the package."""
    paths = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    assert "confide" in paths, f"no package in {SOURCE.name}"
    return paths


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
    """Whether a module defines both `plan` and `release`, as functions or as methods, or a query of a noisy sum."""
    nodes = list(ast.walk(ast.parse(text)))
    names = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    bases = {ast.unparse(base) for node in nodes if isinstance(node, ast.ClassDef) for base in node.bases}
    return {"plan", "release"} <= names or "SumQuery" in bases


def files_of_the_project() -> list[Path]:
    """Every file but those that tools made: nothing in a hidden folder other than the ones named here."""
    kept_hidden = {".ci", ".github"}
    made_by_tools = {"__pycache__", "build", "dist"}
    found: list[Path] = []
    for folder, names, files in os.walk(ROOT):
        names[:] = [n for n in names if n not in made_by_tools and (not n.startswith(".") or n in kept_hidden)]
        # In a git worktree, .git is a file that holds a path.
        found.extend(Path(folder) / name for name in files if name != ".git" and not name.endswith((".pyc", ".pth", ".so")))
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


def test_no_trusted_module_is_long() -> None:
    """Each module of erm, privacy and accounting has at most 300 lines of code."""
    counts = {
        path.relative_to(PACKAGE).as_posix(): count_code_lines(path.read_text(encoding="utf-8"))
        for room in TRUSTED_ROOMS
        for path in sorted((PACKAGE / room).rglob("*.py"))
    }
    assert all(any(name.startswith(f"{room}/") for name in counts) for room in TRUSTED_ROOMS)
    assert {name: count for name, count in counts.items() if count > MOST_LINES_OF_A_TRUSTED_MODULE} == {}


@pytest.mark.parametrize("path", READING_PATHS)
def test_what_one_promise_rests_on_can_be_read_in_one_sitting(path: str) -> None:
    """Each reading path of privacy/README.md has at most 1,300 lines of code.

    Split a module along the line between what the path needs and what it does not, before the limit is touched.
    """
    counts = READING_PATHS[path]
    table = "\n".join(f"{count:5d}  {module}" for module, count in counts)
    assert sum(count for _, count in counts) <= MOST_LINES_OF_A_READING_PATH, f"{path}:\n{table}"
    assert len({module for module, _ in counts}) == len(counts) > 0


def test_every_trusted_module_is_read_by_somebody() -> None:
    """Each trusted module is on a reading path, and what one path leaves out is on another."""
    trusted = {
        path.relative_to(PACKAGE).as_posix()
        for room in TRUSTED_ROOMS
        for path in (PACKAGE / room).rglob("*.py")
        if path.name != "__init__.py"
    } | {"erm/source.py"}
    assert trusted - {module for modules in READING_PATHS.values() for module, _ in modules} == set()
    for module, names, without in reading_paths.left_out(reading_paths.PAGE.read_text(encoding="utf-8")):
        with_it = {title for title, modules in READING_PATHS.items() if module in dict(modules)} - without
        assert with_it, f"no path reads {sorted(names)} of {module}"


def test_the_numbers_of_the_reading_paths_are_those_of_the_code() -> None:
    """privacy/README.md says how much there is to read; python -m scripts.reading_paths --write renews it."""
    text = reading_paths.PAGE.read_text(encoding="utf-8")
    assert text == reading_paths.renewed(text)


def test_a_reading_path_knows_what_it_leaves_out() -> None:
    """A definition that the code does not have is refused, and so is a path that there is not."""
    text = reading_paths.PAGE.read_text(encoding="utf-8")
    module, names, titles = reading_paths.left_out(text)[0]
    with pytest.raises(LookupError, match=module):
        reading_paths.paths(text.replace(f"`{min(names)}`", "`nothing_of_the_kind`"))
    assert titles <= set(READING_PATHS)
    for _, _, named in reading_paths.left_out(text):
        assert named <= set(READING_PATHS)


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
    # The compiled kernel is added where it can be built.
    kernel = {"confide/compiled/_kernel.abi3.so"} if os.environ.get("CONFIDE_COMPILED") != "0" and compiler() else set()
    assert shipped == expected | kernel
    assert wheel.endswith(f"-cp311-abi3-{platform()}.whl" if kernel else "-py3-none-any.whl")
    assert "confide/py.typed" in shipped
    assert {"LICENSE", "NOTICE", "entry_points.txt"} <= metadata


def test_lock_files_hold_what_the_package_asks_for() -> None:
    """A dependency that is new or has a new range has to be resolved anew: make lock."""
    assert lock.missing() == []


def test_a_dependency_that_is_not_locked_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing package, a version outside its range and a missing file are each named."""
    asked = {"core": [lock.Requirement("numpy>=999")], "docs": [lock.Requirement("none-of-these")]}
    asked["test"] = [lock.Requirement("confide[unknown]")]
    monkeypatch.setattr(lock, "requirements", lambda: asked)
    assert [re.findall(r"requirements/(\w+)\.txt", line)[0] for line in lock.missing()] == ["core", "docs", "unknown"]


def test_the_first_page_leads_somewhere_from_an_index_of_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links and pictures of README.md have the address of the repository, or are words; so says the wheel itself."""
    from hatchling.builders.wheel import WheelBuilder

    found = {}
    for address in ("", "https://example.org/us/confide"):
        monkeypatch.setenv("CONFIDE_REPOSITORY", address)
        monkeypatch.setenv("CONFIDE_COMPILED", "0")
        monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
        (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path / str(len(found))), versions=["standard"])
        with zipfile.ZipFile(wheel) as archive:
            (metadata,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("METADATA"))
        targets = re.findall(r"\]\(([^)]+)\)", metadata)
        assert all(re.match(r"https://|mailto:|#", target) for target in targets)
        found[address] = (len(targets), metadata.count("\nProject-URL: "))
        assert "](https://example.org/us/confide/raw/v" in metadata or not address
    without, whole = found.values()
    assert without[1] == 0
    assert whole[0] > without[0] + 10
    assert whole[1] == 3


@pytest.mark.parametrize(
    ("text", "known", "unknown"),
    [
        ('[a](docs/a.md "Of A")', '[a](W/blob/v1/docs/a.md "Of A")', "a"),
        ("[![b](p/b.svg)](docs/b.md#c)", "[![b](W/raw/v1/p/b.svg)](W/blob/v1/docs/b.md#c)", ""),
        ("[![b](https://x/b.svg)](docs/b.md)", "[![b](https://x/b.svg)](W/blob/v1/docs/b.md)", "![b](https://x/b.svg)"),
        ("[a](https://x) ![p](p.png)", "[a](https://x) ![p](W/raw/v1/p.png)", "[a](https://x) "),
    ],
)
def test_links_with_titles_and_around_pictures_lead_somewhere_too(text: str, known: str, unknown: str) -> None:
    """With the address of the repository they have it, and without it no link leads nowhere."""
    assert first_page(text, "W", "1") == known
    assert first_page(text, "", "1") == unknown


def test_the_citation_names_this_version() -> None:
    """The version that people cite is the one they have."""
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {version('confide')}\n" in citation


def test_the_recipe_for_conda_asks_for_what_the_package_asks_for() -> None:
    """The same packages of the core from the same versions on, the same bounds on parts, and this version."""
    recipe = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    assert f'version: "{version("confide")}"' in recipe
    listed = {
        part: set(re.findall(r"- (\S+ >=\S+)", text)) for part, text in re.findall(r"  (\w+):\n((?:    - .*\n)+)", recipe)
    }
    asked = lock.requirements()
    core = {f"{one.name} {one.specifier}" for one in asked["core"]}
    assert listed["run"] == core | {"python >=3.11"}
    parts = {
        f"{one.name} {one.specifier}" for part in ("cli", "files", "accounting") for one in asked[part] if not one.extras
    }
    assert listed["run_constraints"] == parts


@pytest.mark.parametrize("name", ["tests", "release"])
def test_the_workflow_runs_commands_that_exist(name: str) -> None:
    """Every make target and every version of Python that a workflow names is one that the project has."""
    workflow = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z-]+)", workflow))
    assert named
    assert named <= targets
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    declared = {text.rsplit(" ", 1)[1] for text in classifiers if re.search(r"Python :: 3\.\d", text)}
    versions = set(re.findall(r'"(3\.\d+)"', workflow))
    assert versions == declared if name == "tests" else versions < declared
    assert all((ROOT / place).exists() for place in re.findall(r"\btests/\S+", workflow))
    # An action is named by its commit, because a tag can be moved.
    assert all(re.search(r"@[0-9a-f]{40} # v\d", line) for line in workflow.splitlines() if "uses:" in line)


@pytest.mark.server
def test_the_image_of_a_container_is_built_and_runs_without_rights(tmp_path):
    """Where a builder is there; everywhere, what it installs is locked, and the command is no user with rights."""
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    assert re.findall(r"^USER (\w+)$", text, re.MULTILINE) == ["confide"]
    locks = re.findall(r"--require-hashes --requirement /source/(\S+)", text)
    assert len(locks) == text.count("pip install") - 1
    assert all((ROOT / lock).is_file() for lock in locks)
    builder = next(filter(shutil.which, ("podman", "docker")), None)
    if builder is None or subprocess.run([builder, "info"], capture_output=True, check=False, timeout=60).returncode:
        pytest.skip("no builder of images is running here")
    command = [builder, "build", "--quiet", "--file", str(ROOT / "Containerfile"), "--tag", "confide-test", str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode and "docker.io" in built.stderr:
        pytest.skip("the base image cannot be fetched here")
    assert built.returncode == 0, built.stderr
    tmp_path.chmod(0o777)
    run = [builder, "run", "--rm", "--network=none", "--volume", f"{tmp_path}:/study", "confide-test", "demo"]
    assert "Guarantee" in subprocess.run(run, capture_output=True, text=True, check=True).stdout
