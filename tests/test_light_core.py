"""The core alone: what `pip install .` brings is small and enough, and what an optional part adds changes no number."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from scripts.installed_size import SIZES
from scripts.release import MOST_MEGABYTES

ROOT = Path(__file__).resolve().parents[1]
CORE = {"joblib", "narwhals", "numpy", "scikit-learn", "scipy", "threadpoolctl"}
BLOCKED = ("pandas", "pyarrow", "polars", "opendp", "dp_accounting", "attr", "attrs", "rich", "typer", "matplotlib")
"""Modules of optional parts. Where one is missing, Python finds None in its place."""

ARRAYS = """
import json, pathlib, warnings
import numpy as np
import confide
from confide import accounting, privacy

warnings.simplefilter("ignore")
rows = np.random.default_rng(0)
X = rows.uniform(-1.0, 1.0, (3000, 3))
y, t, c = (X[:, 0] > rows.normal(0.0, 0.3, 3000)).astype(int), X @ [1.0, 0.5, 0.0], rows.integers(0, 5, 3000)
limit = confide.ApproxDP(50.0, 1e-5)
ledger, said = confide.Ledger("study.db", limit=limit), {}
both = {"ledger": ledger, "random_state": 1}
columns = {f"x{place}": {"low": -1, "high": 1} for place in range(3)}
schema = confide.Schema(columns=columns, target={"column": "y", "negative": 0, "positive": 1})
models = {
    "logistic": (confide.LogisticRegression(1.0, inference_share="auto", **both), y),
    "several classes": (confide.LogisticRegression(confide.ApproxDP(1.0, 1e-6), **both), c),
    "svm": (confide.LinearSVC(1.0, **both), y),
    "additive": (confide.AdditiveClassifier(1.0, schema=schema, **both), y),
    "sums": (confide.Ridge(1.0, target_bound=2.0, intervals=True, **both), t),
    "counts": (confide.PoissonRegressor(1.0, target_bound=5.0, **both), c),
}
for name, (model, target) in models.items():
    model.fit(X, target)
    model.save(f"{name}.json")
    again = confide.load(f"{name}.json")
    assert np.array_equal(again.predict(X), model.predict(X))
    plan = model.plan(n_rows=3000, **({} if name == "additive" else {"n_features": 3}))
    said[name] = [str(plan), plan.why(), model.coef_.tobytes().hex(), np.ravel(model.intercept_).tolist()]
first = models["logistic"][0]
said["intervals"] = [str(first.summary()), first.predict_interval(X[:3]).tolist(), first.conf_int().tolist()]
said["rates"] = str(confide.evaluate(first, X, y, budget=1.0, random_state=1))
found = confide.PrivateSearchCV(confide.LogisticRegression(), {"alpha": [0.01, 0.1]}, budget=2.0, random_state=1).fit(X, y)
said["search"] = [found.best_params_, found.best_estimator_.coef_.tolist()]
said["ledger"] = [str(ledger.spent()), str(ledger.remaining()), len(str(ledger).splitlines()), ledger.verify()]
first.report("report.html")
sealed = confide.LogisticRegression(1.0).fit(X, y).guarantee_
said["circumstances"], said["statement"] = sealed.circumstances.to_dict(), sealed.statement()
print(json.dumps(said))
"""

FRAMES = """
import json, sys, warnings
import numpy as np
import polars
import confide
from confide.features.cells import labels_at, read_dates, read_numbers

warnings.simplefilter("ignore")
frames = [polars]
if PANDAS:
    import pandas
    frames.append(pandas)
rows, said = np.random.default_rng(0), {}
ages, towns = rows.uniform(18.0, 90.0, 2000).round(1), rows.choice(["north", "south", "NA"], 2000)
y = (ages > 50.0).astype(int)
dates = np.datetime64("2020-01-01T10:20:30", "ms") + rows.integers(0, 10**11, 2000)
schema = confide.Schema(
    columns={
        "age": {"low": 18, "high": 90, "missing": True},
        "town": {"categories": ["north", "south"], "missing": True},
        "count": {"low": 0, "high": 9, "missing": [7]},
        "when": {"low": "2020-01-01", "high": "2026-01-01"},
    },
    target={"column": "ill", "negative": "no", "positive": "yes"},
    person="who",
)
for library in frames:
    frame = library.DataFrame(
        {
            "age": np.where(ages > 80.0, np.nan, ages), "town": towns, "count": rows.integers(0, 10, 2000),
            "when": dates, "who": np.arange(2000) // 2,
        }
    )
    labels = library.Series(np.where(y == 1, "yes", "no"))
    model = confide.AdditiveClassifier(2.0, schema=schema, random_state=1).fit(frame, labels)
    said[library.__name__] = [model.coef_.tobytes().hex(), model.predict(frame).tolist()[:50], model.classes_.tolist()]
    columns = {
        "single": library.Series([0.1, None], dtype=library.Float32 if library is polars else "float32"),
        "whole": library.Series([1, 2**53 + 1, None]), "flags": library.Series([True, None, False]),
        "text": library.Series(["1.5", None, " NA ", "2"]), "dates": library.Series(dates[:9]),
        "numbers": library.Series(ages[:9]), "objects": np.array([1, 1.0, True, "1", None], dtype=object),
        "list": [np.float32(0.1), 0.1, None], "small": ages[:9].astype(np.float16), "strided": np.ones((4, 3))[:, 1],
    }
    if library is not polars:
        columns["categories"] = library.Series(ages[:9].astype(np.float32)).astype("category")
        columns["zone"] = library.Series(dates[:9]).dt.tz_localize("UTC").dt.tz_convert("America/New_York")
    for name, cells in columns.items():
        for read in (read_numbers, read_dates, labels_at):
            try:
                values = read("a", cells)
                answer = [str(values.dtype), [repr(value) for value in values.tolist()]]
            except confide.InputError as error:
                answer = str(error)
            said[f"{library.__name__}: {name}, {read.__name__}"] = answer
print(json.dumps(said))
"""

REFUSALS = """
import json, pathlib
import numpy as np
import confide

ledger = confide.Ledger("study.db", limit=confide.ApproxDP(5.0, 1e-5))
pathlib.Path("people.csv").write_text("x0,y\\n1,0\\n0,1\\n")
schema = confide.Schema(columns={"x0": {"low": 0, "high": 1}}, target={"column": "y", "negative": 0, "positive": 1})
told = {}
for name, asked in {
    "batch": lambda: ledger.plan([1.0, confide.ApproxDP(0.5, 1e-7)]), "entries": ledger.entries,
    "sublimits": ledger.sublimits, "adult": confide.datasets.load_adult,
    "file": lambda: confide.open_rows("people.csv", schema), "pieces": lambda: confide.open_rows(iter(()), schema),
    "picture": lambda: confide.LedgerDisplay.from_ledger(ledger).figure_,
}.items():
    try:
        asked()
        told[name] = "nothing was refused"
    except confide.ParameterError as error:
        told[name] = str(error)
assert ledger.verify() == 0
print(json.dumps(told))
"""


def run(script: str, folder: Path, *blocked: str) -> dict[str, object]:
    """What a script prints, in a process where these modules cannot be imported."""
    block = f"import sys\nfor name in {blocked!r}:\n    sys.modules[name] = None\n"
    folder.mkdir()
    done = subprocess.run([sys.executable, "-c", block + script], capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_core_needs_nothing_heavy():
    """Six libraries, four of which scikit-learn brings anyway; pandas, PyArrow, OpenDP and dp-accounting are extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {re.match(r"[\w-]+", line)[0] for line in project["dependencies"]} == CORE
    parts = project["optional-dependencies"]
    whole = set(re.findall(r"\w+", parts["all"][0]))
    assert whole - {"confide"} == {*parts} - {"all", "files", "postgres", "spark", "test", "check", "docs", "release"}
    assert "confide[files]" in parts["cli"]


def test_an_installation_of_the_core_is_small():
    """Its size was measured in an empty environment: python -m scripts.installed_size --write."""
    sizes = json.loads(SIZES.read_text(encoding="utf-8"))
    assert sizes["core"] <= MOST_MEGABYTES < sizes["all"]
    assert sizes["core"] < sizes["cli"] < sizes["all"]


def test_arrays_need_the_core_alone_and_get_the_same_numbers(tmp_path):
    """Plans, weights to the last bit, intervals, rates and sums of a ledger; only the guarantee tells of OpenDP."""
    alone, whole = run(ARRAYS, tmp_path / "alone", *BLOCKED), run(ARRAYS, tmp_path / "whole")
    assert alone["circumstances"].pop("opendp") is None
    assert re.fullmatch(r"\d+\.\d+\.\d+", whole["circumstances"].pop("opendp"))
    said, said_with = alone.pop("statement"), whole.pop("statement")
    assert "OpenDP, which is not installed where the fit was made, gave no second account of it." in said
    assert "was asked for a second account of it before the charge, and confirmed it." in said_with
    assert "confirmed" not in said
    assert alone == whole


def test_frames_need_no_pyarrow_and_get_the_same_numbers(tmp_path):
    """Polars without pandas, and pandas: each column is read to the same bits as through Arrow."""
    whole = run("PANDAS = True\n" + FRAMES, tmp_path / "whole")
    assert (
        run("PANDAS = True\n" + FRAMES, tmp_path / "pandas", *(name for name in BLOCKED if name not in ("pandas", "polars")))
        == whole
    )
    alone = run("PANDAS = False\n" + FRAMES, tmp_path / "polars", *(name for name in BLOCKED if name != "polars"))
    assert alone == {name: value for name, value in whole.items() if name.startswith("polars")}


def test_what_needs_a_part_names_its_command_before_a_charge(tmp_path):
    """One sentence each, with what was asked for, the library and the command; the ledger stays as it was."""
    told = run(REFUSALS, tmp_path / "alone", *BLOCKED)
    parts = dict.fromkeys(told, "files") | {"batch": "accounting", "picture": "plot"}
    for name, words in told.items():
        assert words.endswith(f"run pip install '.[{parts[name]}]'."), name


@pytest.mark.parametrize("module", ["confide", "confide.cli"])
def test_the_command_without_its_part_says_what_to_install(module, tmp_path):
    """In one line on standard error, and without a traceback."""
    block = f"import sys, runpy\nfor name in {BLOCKED!r}:\n    sys.modules[name] = None\n"
    code = block + (f"runpy.run_module({module!r}, run_name='__main__')" if module == "confide" else f"import {module}")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert re.fullmatch(r"the command line needs pandas and .*, run pip install '\.\[cli\]'\.\n", done.stderr)
