"""Rules about the rooms of the package: who imports whom, what stays inside a room, and how large things may be."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path

import pytest
from scripts import house

import confide
from tests.test_project import PACKAGE, count_code_lines, module_paths

LARGEST_SHARE_OF_A_ROOM = 0.13
MOST_LINES_OF_A_FUNCTION = 60
OF_OTHERS = {"_getframe", "_replace", "_asdict"}
"""Names that Python's own modules have; a leading underscore is how they spell them."""
TOLD_BY_THEIR_ROOM = {"__init__", "__main__", "_version"}
"""Modules without tests of their own: faces of packages, and a version."""


def room_of(name: str) -> str:
    """The room of a module: its folder, or itself where it stands alone."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else ""


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports_of(name: str, path: Path, modules: set[str]) -> set[str]:
    """The modules of the package that a module imports: at its top, for type checkers, in functions, and by their names."""
    found = set(imported_by_name(tree_of(path)))
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from confide.data import arrays` imports a module, `from confide.data.arrays import Blocks` a name of one.
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return {other for other in found & modules if other != name and not name.startswith(f"{other}.")}


def imported_by_name(tree: ast.Module) -> list[str]:
    """What a module imports by `import_module`: the name, or "" where the name is computed."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    named = [node.args[0] for node in calls if ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__")]
    return [str(name.value) if isinstance(name, ast.Constant) else "" for name in named]


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Groups of modules of which each reaches all others (Tarjan's strongly connected components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph[node]:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = {stack.pop()}
            while node not in group:
                group.add(stack.pop())
            if len(group) > 1:
                found.append(group)

    for node in graph:
        if node not in index:
            visit(node)
    return found


def import_graph() -> dict[str, set[str]]:
    modules = module_paths()
    # The package itself imports its public names on first use, so what imports the package imports none of them.
    return {name: imports_of(name, path, set(modules)) for name, path in modules.items() if name != "confide"} | {
        "confide": set()
    }


def private_names(tree: ast.Module) -> set[str]:
    """Names with a leading underscore that a module defines: functions, classes, variables, attributes and fields."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)  # slots, and object.__setattr__(self, "_name", ...)
    return {name for name in names if name.startswith("_")}


def private_reads(tree: ast.Module) -> set[tuple[str, int]]:
    """Names with a leading underscore that are read from something other than `self`, `cls` or `super()`."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            of_itself = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            of_its_base = isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "super"
            if not of_itself and not of_its_base:
                found.add((node.attr, node.lineno))
    return found


def test_a_circle_is_seen() -> None:
    """The next test rests on this search."""
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [{"b", "c"}]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports for type checkers and in functions count: a circle of either kind cannot be understood one file at a time."""
    assert circles(import_graph()) == []


COMPUTES_NAMES = {"confide.first_use", "confide.audit.releases", "confide.cli.option_values", "confide.errors"}
"""Modules that import by computed names: those that `confide/__init__.py` lists, what somebody wants to attack, the
estimators of one kind of model, which a table in the module names, and libraries of optional parts."""


def test_imports_by_name_are_seen() -> None:
    """The tests around this one rest on this search."""
    tree = ast.parse('import_module("confide.report")\nimportlib.import_module(name)\nimport confide.erm')
    assert imported_by_name(tree) == ["confide.report", ""]


def test_imports_by_name_keep_to_the_layers() -> None:
    """import-linter sees no import by `importlib.import_module`. It goes downward too, and its name is written there."""
    settings = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = [each["layers"] for each in settings["tool"]["importlinter"]["contracts"] if each["id"] == "layers"]
    level = {room: number for number, row in enumerate(layers) for room in row.split(" : ")}
    upward, computed = [], set()
    for name, path in module_paths().items():
        for other in imported_by_name(tree_of(path)):
            rooms = [f"confide.{room_of(each)}" for each in (name, other)]
            if not other:
                computed.add(name)
            elif other.startswith("confide.") and level[rooms[0]] > level[rooms[1]]:
                upward.append(f"{name} imports {other}")
    assert upward == []
    assert computed == COMPUTES_NAMES


def test_what_is_private_stays_in_its_room() -> None:
    """An attribute with a leading underscore is read in the room that defines it, and nowhere else."""
    defined: dict[str, set[str]] = {}
    for name, path in module_paths().items():
        defined.setdefault(room_of(name), set()).update(private_names(tree_of(path)))
    strangers = {
        f"{name}, line {line}: {attribute}"
        for name, path in module_paths().items()
        for attribute, line in private_reads(tree_of(path))
        if attribute not in defined[room_of(name)] | OF_OTHERS
    }
    assert strangers == set()


def test_solvers_know_of_objectives_what_they_are_lent() -> None:
    """They are not trusted: they name neither the objective that is certified nor the pieces that it is made of."""
    lent = {"HasGradients", "Objectives", "Solution", "Solver", "mean_of", "on_part"}
    nodes = [node for name, path in module_paths().items() if room_of(name) == "solvers" for node in ast.walk(tree_of(path))]
    whole = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    named = [
        node
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module in ("confide.erm", "confide.erm.objective")
    ]
    assert {alias.name for node in named for alias in node.names} == lent
    assert not [name for name in whole if name.startswith("confide")]


def test_no_private_name_is_imported_from_another_room() -> None:
    """A function or class with a leading underscore is for its own module."""
    strangers = {
        f"{name}: {node.module}.{alias.name}"
        for name, path in module_paths().items()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("confide")
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.startswith("__")
    }
    assert strangers == set()


def test_no_room_is_a_house_of_its_own() -> None:
    """No room holds more than 13% of the package's code: one that does has two ideas, and a wall is missing."""
    lines: dict[str, int] = {}
    for name, path in module_paths().items():
        lines[room_of(name)] = lines.get(room_of(name), 0) + count_code_lines(path.read_text(encoding="utf-8"))
    total = sum(lines.values())
    assert {room: n / total for room, n in lines.items() if n > LARGEST_SHARE_OF_A_ROOM * total} == {}


def test_a_function_fits_on_a_screen() -> None:
    """No function has more than 60 lines beside its docstring."""
    long = {}
    for name, path in module_paths().items():
        for node in ast.walk(tree_of(path)):
            if not isinstance(node, ast.FunctionDef):
                continue
            docstring = ast.get_docstring(node, clean=False)
            n_lines = (node.end_lineno or node.lineno) - node.lineno + 1 - (docstring.count("\n") + 1 if docstring else 0)
            if n_lines > MOST_LINES_OF_A_FUNCTION:
                long[f"{name}.{node.name}"] = n_lines
    assert long == {}


@pytest.mark.parametrize("name", sorted(name for name in module_paths() if name.split(".")[-1] not in TOLD_BY_THEIR_ROOM))
def test_every_module_has_its_tests_in_the_same_place(name: str) -> None:
    """tests/<room>/test_<module>.py for src/confide/<room>/<module>.py."""
    path = module_paths()[name]
    if path.name == "__init__.py":
        pytest.skip("the face of a package")
    relative = path.relative_to(PACKAGE)
    mirrored = Path(__file__).parent / relative.parent / f"test_{relative.name}"
    assert mirrored.is_file(), f"write {mirrored.relative_to(Path(__file__).parents[1])}"


OF_THE_WHOLE_PROCESS = {
    "os.umask", "os.chdir", "os.fchdir", "os.putenv", "os.unsetenv", "os.environ.update", "os.environ.setdefault",
    "os.environ.pop", "os.nice", "os.setpriority", "locale.setlocale", "signal.signal", "signal.alarm", "signal.setitimer",
    "signal.set_wakeup_fd", "sys.setrecursionlimit", "sys.setswitchinterval", "sys.settrace", "sys.setprofile",
    "threading.settrace", "random.seed", "np.random.seed", "np.seterr", "np.set_printoptions", "decimal.setcontext",
    "socket.setdefaulttimeout", "warnings.catch_warnings", "warnings.simplefilter", "warnings.filterwarnings",
    "contextlib.redirect_stdout", "contextlib.redirect_stderr", "redirect_stdout", "redirect_stderr", "pd.set_option",
    "gc.disable", "gc.freeze", "faulthandler.enable", "resource.setrlimit", "sklearn.set_config", "set_config",
}  # fmt: skip
"""Calls that change something for all threads of the process, also if it is changed back a moment later."""


def test_nothing_of_the_whole_process_is_changed() -> None:
    """Users have threads. The command line has its process to itself, and so has an audit, which overhears a fit.

    What control-C does is changed while a release is kept: Python asks for it in the main thread alone, which then keeps it.
    """
    found, words = [], {name.split(".")[-1] for name in OF_THE_WHOLE_PROCESS} | {"environ", "sys.std", "excepthook"}
    for path in sorted(PACKAGE.rglob("*.py")):
        name, text = path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8")
        if name.split("/")[0] in ("cli", "audit") or not any(word in text for word in words):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in OF_THE_WHOLE_PROCESS:
                found.append(f"{name}: {ast.unparse(node.func)}")
            elif isinstance(node, ast.Assign | ast.Delete):
                places, kept = map(ast.unparse, node.targets), ("os.environ", "sys.std", "sys.excepthook")
                found += [f"{name}: {place}" for place in places if place.startswith(kept)]
    assert found == ["training/charge.py: signal.signal"] * 2


def test_how_much_there_is_to_know_stays_within_its_limits() -> None:
    """What scripts/house.py counts without running anything; make check counts calls too."""
    figures = house.figures_of_text()
    assert {name: count for name, count in figures.items() if count > house.LIMITS[name][0]} == {}
    assert all(goal <= limit for limit, goal in house.LIMITS.values())


def test_a_call_is_followed_through_functions_and_files() -> None:
    """Two functions of one file, which is left once for another file and entered again."""
    budget = confide.PureDP(1.0)
    own, other = (lambda: str(budget), lambda: confide.errors.checked_flag("cache", True))
    assert house.traced(own)[1:] == (1, 0)
    functions, files, returns = house.traced(lambda: [own(), other(), own()])
    assert functions == house.traced(own)[0] + house.traced(other)[0]
    assert (files, returns) == (2, 1)
