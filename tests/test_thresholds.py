"""Every size at which the rooms that release do something else: listed, compared with the code, and crossed from both sides.

A fit of a few rows lies on one side of most of these sizes. So the sizes are changed instead of the rows, and fits of every
kind run with them, some of them at a time, under the watch of `test_after_the_charge`. `make audit-long` runs more of them.
"""

from __future__ import annotations

import ast
import math
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import confide
from confide import ZCDP, ApproxDP, Ledger, PureDP, Schema, open_rows
from confide.errors import ConfideError
from tests.test_after_the_charge import left_after_the_charge

ROOMS = ("data", "erm", "compiled", "solvers")
SIZES: dict[str, dict[str, tuple[Any, ...]]] = {
    "compiled.loading": {"MOST_BENT": (0,), "MOST_CODED_BENT": (0,), "MOST_LINES": (0,)},
    "compiled.stored_rows": {"SHORTEST_ROW": (5, 10**6)},
    "data.arrays": {
        "_BLOCK_BYTES": (2**10,),
        "_SCORE_BYTES": (2**10,),
        "_FEWEST_ROWS": (16,),
        "_MOST_ROWS": (32,),
        "_MOST_SPARSE_ROWS": (64,),
        "ROWS_IN_RUN": (2,),
        "_SAMPLE_BYTES": (2**10,),
        "_SAMPLE_ROWS_PER_COLUMN": (1,),
        "_FEWEST_SAMPLE_ROWS": (50,),
        "_KEPT_BYTES": (0,),
        "_MAPPED_NUMBERS": (0,),
        "_MADE_AT_ONCE": (1,),
        "_BLOCKS_IN_GROUP": (8,),
        "_NUMBERS_OF_A_SLOPE": (1,),
        "_MANY_NUMBERS": (1,),
        "_MANY_JOINED_ROWS": (1,),
        "_GROUPS_IN_BUNDLE": (2,),
        "_WIDE": (3,),
        "_LARGE_COPY": (0,),
    },
    "data.csv_files": {
        "_BLOCK_BYTES": (2**11,),
        "_ROW_BYTES": (2**12,),
        "_CHUNK_BYTES": (64,),
    },
    "data.file_rows": {"_HELD_BYTES": (0,), "_HELD_FILES": (0,)},
    "data.files": {"BATCH_ROWS": (64,), "_PARQUET_BUFFER": (512,), "_MOST_BATCH_ROWS": (50,)},
    "data.partitions": {"_SAMPLE_REDUCTION": (2,), "FAN_IN": (2,)},
    "data.streams": {"_CHUNKS_AT_ONCE": (1,), "_PIECE_BYTES": (2**13,), "_READ_AHEAD": (3,)},
    "erm.clipped_rows": {"MANY_SCORES": (1,), "_FARTHEST": (1.0,)},
    "erm.coded_rows": {"BLOCKS_IN_JOINED": (2,), "_MOST_JOINED": (60,)},
    "erm.group_bounds": {"_BAND_GROUPS": (1,)},
    "erm.row_bounds": {"LONG_ROW": (1,)},
    "erm.objective": {"_PASSES_KEPT": (1,)},
    "solvers.cheap_gradients": {
        "_LONG_SINGLE_ROW": (1,),
        "_FACTOR_BYTES": (0,),
        "_FACTOR_SHARE": (0.0,),
        "_LONG_BLOCK_BYTES": (2**9,),
        "_LONG_BLOCK_ROWS": (16,),
        "_LEAST_RIDGE_SHARE": (0.0, math.inf),
        "_MADE_BYTES": (0,),
    },
    "solvers.fallback": {"_WIDEST_HESSIAN": (1,), "_WIDEST_JOINT_HESSIAN": (1,), "_MOST_ROWS": (10,), "_MOST_WEIGHTS": (1,)},
    "solvers.lbfgs": {"_FLAT_ENOUGH": (0.0,), "_SAMPLED_ROWS": (16,), "_LEAST_ROWS_PER_SAMPLED": (1,)},
    "solvers.newton": {"_FLAT_ENOUGH": (0.0,)},
    "solvers.proximal": {"_FLAT_ENOUGH": (0.0,)},
    "solvers.sampled": {
        "_MOST_WEIGHTS": (0, 10**6),
        "_PASSES_SAVED": (0.0,),
        "_LEAST_OVER_SAMPLE": (1,),
        "_FEWEST_WEIGHTS": (1,),
        "_ROWS": (20,),
        "_LARGEST_RATIO": (1e9,),
        "_FEWEST_ROWS": (20,),
        "_FEWEST_ROWS_PER_WEIGHT": (1,),
        "_HESSIAN_OVER_GRADIENT": (0.1,),
        "_SHARE_OF_MANY_ROWS": (1 / 4,),
        "_SHARE_OF_FEW_ROWS": (1 / 2,),
        "_MANY_ROWS_PER_WEIGHT": (1,),
        "_MOST_ROWS_PER_WEIGHT": (2,),
        "_SMALL_SAMPLE": (0,),
        "_LARGEST_SHARE": (1.0, 0.0),
        "_PART_OF_SAMPLE": (1,),
        "_WEIGHTS_PER_PROBLEM": (0, 10**6),
        "_FEW_PROBLEMS": (0,),
        "_FOLDED_ROWS_PER_WEIGHT": (0.05, 10),
        "_START_ROWS_PER_WEIGHT": (0.05, 10),
        "_ROWS_WITH_ERRORS": (16,),
        "_MOST_WEIGHTS_OF_MADE_ROWS": (0,),
    },
    "solvers.scaled_lbfgs": {"_MOST_OTHERS": (0,), "_SAMPLED_SHARE": (2,), "_FEW_ROWS": (16,), "_DENSE_ROWS": (4,)},
}
"""By module, each size with values on the other side of it for a few rows."""
NO_SIZES: dict[str, dict[str, str]] = {
    "compiled.gradient_sums": {"_CODES": "losses as the kernel counts them"},
    "compiled.stored_rows": {"LINE": "a kind of column", "CURVE": "a kind of column", "LEVELS": "a kind of column"},
    "compiled.sums": {
        "_LARGEST_WEIGHT": "a norm",
        "_SHAPES_TRIED": "made-up rows",
        "_TRIED_LOSSES": "losses of made-up rows",
        "_CODED_ROWS": "made-up rows",
        "_HEIGHT": "made-up rows",
        "_LEVELS": "made-up rows",
        "_HATS": "made-up rows",
        "_SHAPES_TRIED_SCALED": "made-up rows",
    },
    "data.arrays": {"TREE_ADDITIONS": "a bound that the proofs use"},
    "data.federated": {
        "_HIGHEST_ORDER": "of derivatives",
        "_MORE_THAN_ROUNDING": "accuracy",
        "_MOST_PROBLEMS": "a refusal; a line search asks for 8 problems at most",
        "MOST_BYTES_BESIDES_NUMBERS": "a refusal",
        "_BYTES_OF_A_NUMBER": "of a double",
        "_MOST_ARRAYS": "a refusal",
    },
    "data.sources": {"_ROWS_AT_ONCE": "of files that are made before a fit; a test of theirs makes it small"},
    "data.spark": {"_MOST_OUTCOMES_TO_DRIVER": "a cluster's, which has tests of its own"},
    "data.spooled": {"_SECONDS_TO_LOCK": "a time"},
    "data.streams": {"_WORDS_IN_CHUNK": "length of the keys", "SIZE": "of a digest", "_KEYS": "keys"},
    "erm.coded_rows": {"_SPARSE_ROWS": "how entries are laid out", "_MOST": "a refusal of schemas"},
    "erm.group_bounds": {"_MOST_COLUMNS": "a refusal of schemas"},
    "erm.objective": {"_STEP": "accuracy"},
    "erm.row_bounds": {
        "LEAST_RADIUS": "a norm",
        "_LENGTH_UP": "accuracy",
        "SMALLEST_BOUND": "a norm",
        "LARGEST_BOUND": "a norm",
        "LARGEST_SAFE_SQUARE": "a norm",
    },
    "erm.target_losses": {"_TINY": "a norm", "_HUGE": "a norm", "_STEPS_TO_KINK": "accuracy", "_UP": "accuracy"},
    "solvers.cheap_gradients": {
        "_USUAL_ERROR": "accuracy",
        "_OVER_MEASURED": "accuracy",
        "_SAME_GRADIENT": "accuracy",
        "_AT_THE_BOUND": "accuracy",
    },
    "solvers.fallback": {
        "_UNIT": "accuracy",
        "_WIDEST_JOINT": "accuracy",
        "_FACTOR": "accuracy",
        "_RELATIVE_TOLERANCE": "accuracy",
    },
    "solvers.lbfgs": {"_FLATNESS": "accuracy", "_NEXT_GAIN": "accuracy", "_MOST_SLOW_CHEAP_STEPS": "steps"},
    "solvers.newton": {
        "_NEAR_FLOOR": "accuracy",
        "_MOST_IDLE_STEPS": "steps",
        "_GRID": "points",
        "_MOST_ROUNDS": "steps",
        "_NARROWEST": "accuracy",
        "_SPREAD_BY_RATIO": "accuracy",
        "_FLATNESS": "accuracy",
    },
    "solvers.proximal": {
        "_MOST_NEWTON_STEPS": "steps",
        "_MOST_PROXIMAL_STEPS": "steps",
        "_MOST_SWEEPS": "steps",
        "_SWEEPS_BETWEEN": "steps",
    },
    "solvers.sampled": {
        "_SHARE": "of rows",
        "_LEFT_OVER_ERROR": "accuracy",
        "_ROUNDS": "steps",
        "_STEP": "steps",
        "_MOST_STEPS_WELL_CONDITIONED": "steps",
        "_MOST_SLOW_STEPS_WELL_CONDITIONED": "steps",
        "_LEAST_CHANCE": "accuracy",
        "_CLOSE_ON_PART": "accuracy",
        "_CLOSE_FROM_PART": "accuracy",
        "_CLOSE_ON_THE_WAY": "accuracy",
        "_CLOSE_TO_CENTRE": "accuracy",
        "_MOST_SAMPLE_STEPS": "steps",
        "_MOST_NEWTON_STEPS": "steps",
        "_MOST_CENTRE_STEPS": "steps",
        "_MOST_STEPS": "steps",
        "_MOST_SLOW_STEPS": "steps",
        "_MOST_STEPS_OF_A_HINGE": "steps",
        "_MOST_SLOW_STEPS_OF_A_HINGE": "steps",
        "_MORE_RIDGE": "accuracy",
        "_CLOSE_ON_MADE_ROWS": "accuracy",
        "_MOST_STEPS_ON_MADE_ROWS": "steps",
        "_PAIRS_ON_MADE_ROWS": "steps",
    },
    "solvers.scaled_lbfgs": {"_CLOSE_ON_THE_WAY": "accuracy", "_MOST_STEPS_ON_THE_WAY": "steps"},
}
"""Every other number with a name, and what it is."""
LITERALS = {
    "compiled.sums": {8: "bytes of a double"},
    "data.file_rows": {3: "names of files in a message"},
}
"""Numbers above 2 without a name in a comparison, a minimum or a maximum."""
TOGETHER = (("data.arrays", "_FEWEST_ROWS"), ("data.arrays", "_BLOCKS_IN_GROUP"))
"""A part of a block has twice as many rows as a group has blocks, so these two change together."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    """The modules of these rooms, by their names within the package."""
    for room in ROOMS:
        for path in sorted(Path(confide.__file__).parent.joinpath(room).glob("*.py")):
            yield f"{room}.{path.stem}", ast.parse(path.read_text(encoding="utf-8"))


def is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)


def named_numbers(tree: ast.Module) -> set[str]:
    """Names of a module that are given numbers, also by a computation, at its top or in the body of a class."""
    found = set()
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    for number, body in enumerate(bodies):
        for node in body:
            if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                continue
            if not any(map(is_number, ast.walk(node.value))):
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
            # In a class, upper case is a constant of it; defaults of fields are parameters.
            found |= {name for name in names if number == 0 or name.isupper()}
    return found


def test_every_size_of_these_rooms_is_listed():
    """A number that the code names and the list does not, or the other way round, fails; so does one without a name."""
    found = {name: numbers for name, tree in modules() if (numbers := named_numbers(tree))}
    listed = {name: {*SIZES.get(name, ()), *NO_SIZES.get(name, ())} for name in SIZES | NO_SIZES}
    assert found == listed
    assert not any(set(SIZES.get(name, {})) & set(NO_SIZES.get(name, {})) for name in SIZES)
    without_name: dict[str, set[float]] = {}
    for name, tree in modules():
        for node in ast.walk(tree):
            parts = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"min", "max"}:
                parts = node.args
            numbers = {part.value for part in parts if is_number(part) and part.value > 2}
            if numbers:
                without_name.setdefault(name, set()).update(numbers)
    assert without_name == {name: set(numbers) for name, numbers in LITERALS.items()}


def set_sizes(monkeypatch, sizes):
    """Give sizes other values, in every module that knows them, and forget what was computed with those before."""
    for (name, size), value in sizes.items():
        home = sys.modules[f"confide.{name}"]
        before = getattr(home, size)
        # A name that begins with an underscore is used in its own module alone.
        others = [] if size[0] == "_" else [module for key, module in sys.modules.items() if key.startswith("confide.")]
        for module in [home, *others]:
            if getattr(module, size, None) == before:
                monkeypatch.setattr(module, size, value)
    for cached in CACHES:
        cached.cache_clear()


def _caches():
    named = [module for key, module in sys.modules.items() if key.startswith("confide.")]
    return {id(each): each for module in named for each in vars(module).values() if hasattr(each, "cache_clear")}.values()


CACHES = [each for each in _caches() if each.__name__ not in {"_built", "kernel"}]
BUDGETS = (PureDP(8.0), ApproxDP(8.0, 1e-6), ApproxDP(1.0, 1e-6), ZCDP(2.0), ZCDP(0.05))
LEVELS = [f"l{number:03d}" for number in range(40)]
COLUMNS: dict[str, Any] = {
    "a": {"low": -0.5, "high": 0.5},
    "b": {"low": 0.0, "high": 9.0},
    "c": {"categories": ["u", "v", "w"]},
}
CURVES = {name: dict(column, knots=4) if "low" in column else column for name, column in COLUMNS.items()}
SCHEMAS = {
    "lines": {"columns": COLUMNS},
    "curves": {"columns": CURVES},
    "levels": {"columns": {"a": CURVES["a"], "l": {"categories": LEVELS, "other": True}}},
    "pairs": {"columns": CURVES, "interact": [["a", "c"]]},
}
TARGETS: dict[str, dict[str, Any]] = {
    "two": {"negative": 0, "positive": 1},
    "three": {"classes": [0, 1, 2]},
    "twelve": {"classes": list(range(12))},
    "number": {"low": -1.0, "high": 1.0},
    "count": {"low": 0.0, "high": 6.0},
}
N_CLASSES = {"two": 2, "three": 3, "twelve": 12}
KINDS = (
    "float64 array",
    "float32 array",
    "array by columns",
    "wide array",
    "far from 0",
    "sparse",
    "wide sparse",
    "npy",
    *(f"{kind} {schema}" for kind in ("frame", "parquet", "csv") for schema in SCHEMAS),
    "dask lines",
    "dask curves",
)


def made_up(n_rows):
    """Raw columns of every kind, and a target of each."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"a": rng.uniform(-0.6, 0.6, n_rows), "b": rng.integers(0, 10, n_rows)})
    frame["c"], frame["l"] = rng.choice(["u", "v", "w"], n_rows), rng.choice([*LEVELS, "other"], n_rows)
    scores = frame["a"] + (frame["c"] == "v") + rng.normal(size=n_rows) / 4
    return frame.assign(
        two=(scores > scores.median()).astype(int),
        three=np.arange(n_rows) % 3,
        twelve=np.arange(n_rows) % 12,
        number=np.clip(scores - 0.3, -1.0, 1.0),
        count=rng.poisson(1.5, n_rows).clip(0, 6).astype(float),
    )


def numbers_of(kind, frame):
    """Rows of numbers."""
    rng = np.random.default_rng(4)
    width = 70 if kind.startswith("wide") else 5
    X = np.column_stack([frame["a"], frame["c"] == "v", rng.normal(size=(len(frame), width))]) / 3.0
    if "sparse" in kind:
        return scipy.sparse.csr_array(np.where(rng.random(X.shape) < 0.3, X, 0.0))
    if kind == "far from 0":
        return X + 4.0
    return {"float32 array": X.astype(np.float32), "array by columns": np.asfortranarray(X)}.get(kind, X)


def rows_of(kind, task, n_rows, folder):
    """Rows, targets and parameters of an estimator for them; rows in files have their targets with them."""
    frame = made_up(n_rows)
    targets = frame[task].to_numpy()
    declared = {"classes": list(range(N_CLASSES[task]))} if task in N_CLASSES else {"target_bound": 6.0}
    if kind == "npy":
        np.save(folder / "X.npy", numbers_of(kind, frame))
        np.save(folder / "y.npy", targets)
        return open_rows(folder / "X.npy", labels=folder / "y.npy"), None, declared
    place, _, name = kind.partition(" ")
    if name not in SCHEMAS:
        return numbers_of(kind, frame), targets, declared | {"row_norm": 5.0 if kind == "far from 0" else 1.0}
    schema = Schema.from_dict({**SCHEMAS[name], "target": {"column": task, **TARGETS[task]}})
    if place == "frame":
        return frame.drop(columns=list(TARGETS)), targets, {"schema": schema}
    path = folder / f"rows.{place}"
    if place == "dask":
        rows = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3)
    elif place == "parquet":
        frame.to_parquet(rows := path, row_group_size=100)
    else:
        frame.to_csv(rows := path, index=False)
    return open_rows(rows, schema), None, {"schema": schema}


class Pseudo:
    """A user's loss of residuals."""

    lipschitz, smoothness = 1.0, 1.0

    def value(self, score, target):
        return np.sqrt(1.0 + (score - target) ** 2) - 1.0

    def derivative(self, score, target):
        return (score - target) / np.sqrt(1.0 + (score - target) ** 2)

    def second_derivative(self, score, target):
        return (1.0 + (score - target) ** 2) ** -1.5


PENALTY = confide.StronglyConvex(lambda w: 0.5 * w @ w, lambda w: 1.0 * w, 1.0, 1.0, name="own")
CLASSES, NUMBERS = ("two", "three", "twelve"), ("number",)
ESTIMATORS: tuple[tuple[Any, tuple[str, ...], dict[str, Any]], ...] = (
    (confide.LogisticRegression, CLASSES, {}),
    (confide.LogisticRegression, ("three", "twelve"), {"multiclass": "one-vs-rest"}),
    (confide.LinearSVC, CLASSES, {}),
    (confide.LinearSVC, ("two",), {"loss": "hinge", "mechanism": "auto"}),
    (confide.LinearSVC, ("two",), {"loss": "smooth_hinge"}),
    (confide.KernelSVC, CLASSES, {"n_features": 30}),
    (confide.Ridge, NUMBERS, {"mechanism": "auto"}),
    (confide.HuberRegressor, NUMBERS, {}),
    (confide.HuberRegressor, NUMBERS, {"loss": "clipped_squared"}),
    (confide.PoissonRegressor, ("count",), {}),
    (confide.ERMClassifier, ("two",), {"loss": "logistic_hinge"}),
    (confide.ERMClassifier, ("two",), {"penalty": PENALTY}),
    (confide.ERMRegressor, NUMBERS, {"loss": "quantile", "quantile": 0.3, "mechanism": "auto"}),
    (confide.ERMRegressor, NUMBERS, {"loss": Pseudo()}),
    (confide.AdditiveClassifier, CLASSES, {}),
    (confide.AdditiveClassifier, ("two",), {"interactions": "all"}),
    (confide.AdditiveRegressor, NUMBERS, {}),
    (confide.AdditiveRegressor, NUMBERS, {"loss": "squared", "mechanism": "auto"}),
    (confide.AdditiveRegressor, ("count",), {"loss": "poisson"}),
)
PARAMETERS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"fit_intercept": False},
    {"intercept_scaling": 0.3},
    {"n_jobs": 3},
    {"n_jobs": 2, "fit_intercept": False},
    {"centre": False},
    {"neighbours": "add-or-remove-one", "n_rows_bounds": (30, 4000)},
    {"inference_share": 0.3, "mechanism": "auto"},
    {"intervals": True},
    {"l1_ratio": 0.5, "mechanism": "auto"},
    {"penalty": PENALTY, "mechanism": "auto"},
    {"monotone": {"a": "up"}},
    {"max_sample_weight": 2.0},
    {"interest": ["a"]},
    {"threshold": 0.2},
    {"exposure_range": (0.2, 3.0)},
)
MECHANISMS = ("auto", "auto", "objective", "output")


def a_case(number):
    """One case: the estimator, its rows and parameters, and the sizes that have other values. All sizes come in turn."""
    rng = np.random.default_rng(number)
    estimator, tasks, own = ESTIMATORS[number % len(ESTIMATORS)]
    sizes = [((name, size), values) for name, of_module in SIZES.items() for size, values in of_module.items()]
    # Additive models read a schema.
    kinds = KINDS[KINDS.index("npy") + 1 :] if "Additive" in estimator.__name__ else KINDS
    budget = BUDGETS[rng.integers(len(BUDGETS))]
    mechanisms = (*MECHANISMS, "output-laplace" if type(budget) is PureDP else "gradient")
    mechanism = {"mechanism": mechanisms[rng.integers(len(mechanisms))]}
    # At least one size in turn, and about a third of the others beside it.
    share = rng.choice([0.02, 0.3, 0.9])
    chosen = {
        size: values[rng.integers(len(values))]
        for place, (size, values) in enumerate(sizes)
        if place == number % len(sizes) or rng.random() < share
    }
    if any(size in chosen for size in TOGETHER):
        chosen |= {(name, size): SIZES[name][size][0] for name, size in TOGETHER}
    return {
        "estimator": estimator,
        "task": tasks[rng.integers(len(tasks))],
        "kind": kinds[rng.integers(len(kinds))],
        "n_rows": int(rng.choice([45, 200, 600])),
        "budget": budget,
        "parameters": mechanism | PARAMETERS[rng.integers(len(PARAMETERS))] | own,
        "of_alpha": [None, 0.01, 0.1, 10.0][rng.integers(4)],
        "compiled": bool(rng.random() < 0.8),
        "sizes": chosen,
    }


def outcome(case, folder, monkeypatch):
    """Whether a case was "released" or "refused", which it may be before its charge alone; and what should not be called."""
    monkeypatch.setenv("CONFIDE_DEBUG", "1")  # so that an error after the charge shows itself
    if not case["compiled"]:
        monkeypatch.setenv("CONFIDE_COMPILED", "0")
    set_sizes(monkeypatch, case["sizes"])
    rows, targets, parameters = rows_of(case["kind"], case["task"], case["n_rows"], folder)
    parameters, charge = parameters | case["parameters"], Ledger.charge
    ledger = Ledger(limit=ApproxDP(1e4, 1e-3), neighbours=parameters.get("neighbours", "replace-one"))
    model = case["estimator"](case["budget"])
    model.set_params(**{name: value for name, value in parameters.items() if name in model.get_params()})
    weights = {}
    if model.get_params().get("max_sample_weight", 1.0) > 1.0 and targets is not None:
        weights["sample_weight"] = np.linspace(0.1, 2.0, case["n_rows"])
    if model.get_params().get("exposure_range") and targets is not None:
        weights["exposure"] = np.linspace(0.1, 4.0, case["n_rows"])

    def charged(*arguments, **facts):
        charge(*arguments, **facts)
        warnings.simplefilter("error")

    def fit(ledger):
        if case["of_alpha"] is not None:
            facts = {"n_classes": N_CLASSES[case["task"]]} if case["task"] in N_CLASSES else {}
            width = None if "schema" in parameters else numbers_of(case["kind"], made_up(45)).shape[1]
            model.set_params(alpha=case["of_alpha"] * model.plan(case["n_rows"], width, **facts).alpha)
        model.set_params(ledger=ledger).fit(rows, *(() if targets is None else (targets,)), **weights)

    monkeypatch.setattr(Ledger, "charge", charged)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            left = left_after_the_charge(fit, monkeypatch, ledger)
        except ConfideError:
            if len(ledger.entries()):
                raise
            return "refused", set()
    assert len(ledger.entries()) == 1
    assert np.isfinite(model.coef_).all()
    return "released", left


def varied(case):
    """What a case has that others have not. A size counts where most others are as they are, since one may hide another.

    It counts for many rows, and for few.
    """
    mechanism, parameters = case["parameters"]["mechanism"], case["parameters"]
    sizes = case["sizes"] if len(case["sizes"]) < 40 else ()
    return {
        *((size, case["n_rows"] > 100) for size in sizes),
        case["kind"],
        case["estimator"].__name__ + str(parameters.get("loss") if isinstance(parameters.get("loss"), str) else ""),
        (mechanism[:6], case["of_alpha"]),
        (mechanism[:6], str(case["budget"])),
        ("compiled", case["compiled"], "array" in case["kind"]),
        *parameters,
    }


def cost(case):
    """About how long a case takes: rows in files and partitions, and many scores, take longer."""
    slow = {"dask": 6.0, "csv": 2.0, "parquet": 2.0}.get(case["kind"].split()[0], 1.0)
    slow *= 1.0 + len(case["sizes"]) / 10
    return slow * {"twelve": 3.0, "three": 2.0}.get(case["task"], 1.0) * (1.0 + case["n_rows"] / 300)


def covering(numbers):
    """Some of these cases that have together all that all of them have, chosen greedily."""
    cases = {number: a_case(number) for number in numbers}
    has, costs = ({number: of_case(case) for number, case in cases.items()} for of_case in (varied, cost))
    missing, chosen = set().union(*has.values()), []
    while missing:
        best = max(cases, key=lambda number: len(has[number] & missing) / costs[number])
        missing -= has[best]
        chosen.append(best)
    return chosen


CASES = covering(range(600))
"""The cases of the usual tests."""


def test_the_cases_cover_what_they_vary():
    """Every size on both sides, every kind of rows, alpha, budget and parameter."""
    cases = [a_case(number) for number in CASES]
    sizes = {(name, size) for name, of_module in SIZES.items() for size in of_module}
    assert {size for case in cases for size in case["sizes"]} == sizes
    assert {size for case in cases for size in sizes - set(case["sizes"])} == sizes
    assert {case["kind"] for case in cases} == set(KINDS)
    assert {case["of_alpha"] for case in cases} == {None, 0.01, 0.1, 10.0}
    assert {case["estimator"] for case in cases} == {estimator for estimator, _, _ in ESTIMATORS}
    assert {name for case in cases for name in case["parameters"]} >= {name for each in PARAMETERS for name in each}


@pytest.mark.parametrize("part", range(4))
def test_no_fit_fails_after_its_charge(part, tmp_path):
    """Whatever the sizes are: before it, a fit may be refused; after it, nothing is called that could fail."""
    found = []
    for number in CASES[part::4]:
        with pytest.MonkeyPatch.context() as patched:
            found.append((number, *outcome(a_case(number), tmp_path, patched)))
    assert all(left == set() for _, _, left in found), found
    assert [what for _, what, _ in found].count("released") >= 0.5 * len(found)


def test_points_are_tried_over_rows_that_were_clipped_once(tmp_path, monkeypatch):
    """Eight points of a line search over joined blocks, whose scores are summed in parts."""
    sizes = {
        ("data.arrays", "_SCORE_BYTES"): 2**10,
        ("solvers.lbfgs", "_FLAT_ENOUGH"): 0.0,
        ("solvers.sampled", "_FEWEST_ROWS"): 20,
        ("solvers.sampled", "_LARGEST_SHARE"): 1.0,
    }
    case = {
        "estimator": confide.LogisticRegression,
        "task": "three",
        "kind": "frame curves",
        "n_rows": 600,
        "budget": ZCDP(2.0),
        "parameters": {"mechanism": "auto", "neighbours": "add-or-remove-one", "n_rows_bounds": (30, 4000)},
        "of_alpha": 0.01,
        "compiled": True,
        "sizes": sizes,
    }
    assert outcome(case, tmp_path, monkeypatch) == ("released", set())


@pytest.mark.audit
@pytest.mark.parametrize("number", range(3000))
def test_no_fit_of_many_fails_after_its_charge(number, tmp_path, monkeypatch):
    """The same for more of them."""
    assert outcome(a_case(number), tmp_path, monkeypatch)[1] == set()
