"""Measure how much of the package somebody has to know who wants to change it, and hold it to limits.

``python -m scripts.house`` prints each figure beside its limit, and ends with 1 where one is beyond it. A limit is lowered
when a figure falls; a change that needs a higher one is made smaller instead.

Lines are lines of code, without docstrings, comments and imports. A call is followed by Python's own profiler: which
functions of the package run in one fit, in how many files, and how often control returns to a file that it had left.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scripts.reading_paths import code_lines

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "confide"
LIMITS = {
    "lines of code": (33_850, 27_500),
    "files": (242, 240),
    "files of fewer than 40 lines": (40, 40),
    "classes": (464, 330),
    "calls of isinstance": (420, 420),
    "fields of type Any": (40, 40),
    "files outside of erm that ask for the class of a loss": (3, 3),
    "files that name what is peculiar to one mechanism": (5, 5),
    "rows of the contract of layers": (31, 31),
    "words of CHANGELOG.md": (900, 900),
    "words of ARCHITECTURE.md": (2_500, 2_500),
    "words of benchmarks/README.md": (3_000, 3_000),
    "functions of LogisticRegression.fit": (345, 200),
    "files of LogisticRegression.fit": (50, 40),
    "returns of LogisticRegression.fit to a file that it left": (397, 150),
    "functions of AdditiveClassifier.fit": (580, 350),
    "files of AdditiveClassifier.fit": (65, 60),
    "functions of confide fit": (1_050, 700),
    "files of confide fit": (120, 120),
}
"""The limit of each figure, and where it is to go. The way of a fit depends a little on processor and noise."""
_PECULIAR = re.compile(r"\.(?:descent|centring|matching|perturbs_objective)\b")
_LOSS_CLASS = re.compile(r"isinstance\([^()]*\bloss\b")


def main() -> None:
    figures = figures_of_text() | figures_of_calls()
    beyond = [name for name, (limit, _) in LIMITS.items() if figures[name] > limit]
    print("  figure    limit     goal")
    for name, (limit, goal) in LIMITS.items():
        print(f"{figures[name]:8,} {limit:8,} {goal:8,}  {name}{'  <- beyond its limit' if name in beyond else ''}")
    sys.exit(1 if beyond else 0)


def figures_of_text() -> dict[str, int]:
    """What can be counted without running anything."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    sizes = [len(code_lines(texts[path]) - _imports(tree)) for path, tree in trees.items()]
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = [each["layers"] for each in settings["tool"]["importlinter"]["contracts"] if each["id"] == "layers"]
    outside = [text for path, text in texts.items() if path.parent.name != "erm"]
    return {
        "lines of code": sum(sizes),
        "files": len(texts),
        "files of fewer than 40 lines": sum(size < 40 for size in sizes),
        "classes": sum(isinstance(node, ast.ClassDef) for node in nodes),
        "calls of isinstance": sum(isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance" for node in nodes),
        "fields of type Any": sum(sum(map(_is_any_field, node.body)) for node in nodes if isinstance(node, ast.ClassDef)),
        "files outside of erm that ask for the class of a loss": sum(bool(_LOSS_CLASS.search(text)) for text in outside),
        "files that name what is peculiar to one mechanism": sum(bool(_PECULIAR.search(text)) for text in texts.values()),
        "rows of the contract of layers": len(layers),
    } | {
        f"words of {name}": len((ROOT / name).read_text(encoding="utf-8").split())
        for name in ("CHANGELOG.md", "ARCHITECTURE.md", "benchmarks/README.md")
    }


def _imports(tree: ast.Module) -> set[int]:
    """The lines of all import statements."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return {line for node in found for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def _is_any_field(node: ast.stmt) -> bool:
    """Whether a line of a class declares a field that may be anything."""
    return isinstance(node, ast.AnnAssign) and re.search(r"\bAny\b", ast.unparse(node.annotation)) is not None


def figures_of_calls() -> dict[str, int]:
    """Functions and files that a fit runs through, each in a process of its own."""
    found = {}
    for name in ("LogisticRegression.fit", "AdditiveClassifier.fit", "confide fit"):
        command = [sys.executable, "-m", "scripts.house", name]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)  # noqa: S603 - this very script
        functions, files, returns = map(int, done.stdout.split()[-3:])
        found |= {f"functions of {name}": functions, f"files of {name}": files}
        found[f"returns of {name} to a file that it left"] = returns
    return found


def traced(call: Callable[[], object]) -> tuple[int, int, int]:
    """(functions, files, returns to a file that control had left) of the package in one call."""
    import confide

    functions: set[Any] = set()
    path: list[str] = []
    package = f"{Path(confide.__file__).parent}{os.sep}"

    def note(frame: Any, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(package):
            return
        functions.add(frame.f_code)
        if not path or path[-1] != name:
            path.append(name)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    files = {code.co_filename for code in functions}
    return len(functions), len(files), len(path) - len(files)


def _run(name: str) -> None:
    import warnings

    import numpy as np
    import pandas as pd

    from confide import AdditiveClassifier, LogisticRegression, PureDP, Schema
    from confide.features.columns import NumberColumn

    warnings.simplefilter("ignore")
    source = np.random.default_rng(0)
    rows = source.uniform(-1.0, 1.0, (400, 5)) / 3.0
    labels = np.where(rows @ np.arange(5.0) + 0.1 * source.standard_normal(400) > 0.0, "yes", "no")
    names = [f"column {number}" for number in range(5)]
    schema = Schema(tuple(NumberColumn(name, -1.0, 1.0) for name in names))
    if name == "LogisticRegression.fit":
        estimator = LogisticRegression(PureDP(1.0), row_norm=1.0, classes=["no", "yes"], random_state=1)
        print(*traced(lambda: estimator.fit(rows, labels)))
    elif name == "AdditiveClassifier.fit":
        additive = AdditiveClassifier(PureDP(1.0), schema=schema, classes=["no", "yes"], random_state=1)
        print(*traced(lambda: additive.fit(pd.DataFrame(rows, columns=names), labels)))
    else:
        _command(names, rows, labels)


def _command(names: list[str], rows: Any, labels: Any) -> None:
    from confide.cli import main as command

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        cells = [[*names, "answer"], *([*map(str, row), label] for row, label in zip(rows, labels, strict=True))]
        lines = [",".join(row) for row in cells]
        (place / "people.csv").write_text("\n".join(lines), encoding="utf-8")
        columns = "[columns]\n" + "".join(f'"{name}" = {{ low = -1, high = 1 }}\n' for name in names)
        target = 'target = { column = "answer", negative = "no", positive = "yes" }\n'
        (place / "schema.toml").write_text(target + columns, encoding="utf-8")
        sys.argv = ["confide", "fit", str(place / "people.csv"), "--schema", str(place / "schema.toml"), "--epsilon", "1"]
        sys.argv += ["--out", str(place / "model.json"), "--no-ledger", "--force-budget"]

        def run() -> None:
            try:
                command()
            except SystemExit as end:
                if end.code:
                    raise

        print(*traced(run))


if __name__ == "__main__":
    _run(sys.argv[1]) if len(sys.argv) > 1 else main()
