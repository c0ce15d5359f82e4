"""What runs between a charge and its release: draws, passes over rows, solvers, certificates, and holding what was released.

Anything else could fail when the budget is gone. So every public entry that charges is watched from its charge on. What is
called outside the rooms that release is a short list of functions that hold numbers: no check, no plan and no sentence.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.pipeline import Pipeline

import confide
from confide import ApproxDP, Ledger, Schema, open_rows

ROOMS = ("confide.privacy.", "confide.solvers.", "confide.erm.", "confide.data.", "confide.features.encoder")
"""Draws, solvers, certificates and passes over rows."""
MARKING = ("confide.training.charge", "_end")
"""The ledger marks that the attempt has ended before anything of it is seen (accounting/proofs/finishing.md). If that
fails, nothing is released and the charge can be finished."""
OUTSIDE = ("confide", "sklearn", "narwhals", "pandas", "polars", "pyarrow")
"""Where a call would be seen that is in no room."""
HOLDING = {
    "confide.threads": {"one_blas_thread", "_Limit.__enter__", "_Limit.__exit__"},
    "confide.expected_noise": {
        "alpha",
        "deviation",
        "diagonal_deviation",
        "product_deviation",
        "target_deviation",
        "square_deviation",
        "l1_ratio",
    },
    "confide.training.fit": {"released", "model_of", "model_of_columns", "with_atoms", "atoms_release"},
    "confide.training.support": {
        "with_zeros",
        "support_threshold",
        "gaussian_threshold",
        "responses",
        "_pull_of_rows",
        "_curvature",
        "_spherical",
        "_spherical.beyond",
    },
    "confide.plan_text": {"weights_on_grid"},
    "confide.training.gradient_steps": {"HeavyBall.start", "HeavyBall.pull", "HeavyBallWalk.weights", "HeavyBallWalk.after"},
    "confide.training.alpha": {
        "usual_curvature",
        "usual_slope",
        "typical_norm",
        "usual_norm",
        "usual_squares_of_groups",
    },
    "confide.estimators.additive": {"AdditiveColumns._hold"},
    "confide.effects.monotone": {"monotone_weights", "monotone_weights.<dictcomp>", "_steps", "_by_least_squares"},
    "confide.effects.effects": {"has_effects"},
    "confide.models.model": {
        "ShownClass.of",
        "ShownClass.sign",
        "ReleasedModel.of",
        "ReleasedModel.schema",
        "Link.log_probabilities",
        "Link.log_favour",
        "Link.mean",
    },
    "confide.features.canonical_labels": {"canonical_label", "can_be_level", "is_missing"},
    "confide.training.least_squares": {"ridge_weights", "weights_of_sums", "_sums"},
    "confide.training.charge": {
        "divided",
        "mistakes",
        "ErrorsOfNumbers.of",
        "ErrorsOfNumbers.unit",
        "Stops.wait",
        "Stops.end",
        "Stops._put_back",
        "Stops.give_back",
    },
    "confide.models.scores": {
        "LinearModel.of",
        "LinearModel.scores_alone",
        "_added_up",
        "_clipped_alone",
        "favoured",
    },
    "confide.intake.rows": {"_RowsInMemory.checked", "_RowsElsewhere.checked", "_RowsElsewhere._as_taken_by"},
    "confide.intake.specification": {"CheckedRows.part", "coefficient_names"},
    "confide.accounting.batches": {"Shared.last_charge", "Shared.last_attempt"},
    "confide.accounting.ledger": {"Ledger.identity"},
    "confide.estimators.linear_model": {"PrivateLinearModel._hold"},
    "confide.estimators.linear_classifier": {"LinearClassifier._hold"},
    "confide.estimators.regression": {"LinearRegressor._hold"},
    "confide.estimators.svm": {"KernelSVC._hold", "_features_in"},
    "confide.estimators.search": {
        "_chosen",
        "_chosen.trained",
        "_chosen.noisy",
        "PrivateSearchCV._hold",
        "_checked_together",
    },
    "confide.estimators.evaluation": {
        "evaluate",
        "_released",
    },
    "confide.evaluations.documents": {"rated"},
    "confide.evaluations.tables": {
        "RowSums.of_piece",
        "RowSums.of_scored",
        "RowSums.of_sources",
        "RowSums._tables",
        "ScoreTable.of_rows",
        "ScoreTable.shapes",
        "_scored",
        "_side_by_side",
        "_counted",
        "ClassTables.of_rows",
        "NumberTables.of_rows",
        "ClassPairTables.of_rows",
        "NumberPairTables.of_rows",
        "_positions",
        "_share",
        "_bins",
        "Scorer.scored",
        "Scorer.reads_more",
        "Scorer._own",
        "Scorer._groups",
        "Scorer.predicted",
        "Scorer.log_probabilities",
        "Scorer.numbers",
        "ScoredRows.part",
        "log_loss",
        "shares_of",
        "products_of",
        "sizes_of",
        "ClassTables.shapes",
        "NumberTables.shapes",
        "ClassPairTables.shapes",
        "NumberPairTables.shapes",
        "NumberPairTables.largest_of_squares",
    },
    "confide.inference.rates": {"NoisyTable.of"},
    "confide.estimators.private_bounds": {"private_bounds", "_released", "_released.<listcomp>.<dictcomp>"},
    # No outcome is refused: tests/features/test_atoms.py.
    "confide.features.atoms": {"cells_of", "n_cells", "atoms_of", "_background"},
    "confide.estimators.description": {"describe", "_sums", "_cells"},
    "confide.features.cells": {"positions_of"},
    # Methods of public classes pass through it, and the names of their keywords are known.
    "confide.known_words": {"with_suggestions.asked"},
    # A map with found scales is made as any map is. Scales of no outcome are refused: tests/privacy/test_scales.py.
    "confide.features.fourier": {
        "CurvesAndFeatures.scaled",
        "CurvesAndFeatures.__post_init__",
        "FourierMap.__post_init__",
        "FourierMap._draw",
        # Without the slots that stayed empty it has fewer columns than the map of the plan.
        "CurvesAndFeatures.bound_for",
        "CurvesAndFeatures.n_features",
        "CurvesAndFeatures.names_for",
        "CurvesAndFeatures.row_bound",
        "FourierMap._of_few",
        "FourierMap.names",
        "_checked_list",
        "public_numbers",
        "_norm",
        "_orthogonalised",
        "of_columns",
        "on_grid",
    },
    "confide.errors": {
        "hold",
        "keep",
        "checked_number",
        "checked_whole",
        "checked_flag",
        "as_float",
        "as_whole",
        "is_list",
        "is_flag",
        "is_number",
        "is_text",
        "is_whole",
        "optional",
        "reader",
        "reader.read",
    },
    # A schema takes all atoms that are found: tests/features/test_atoms.py.
    "confide.features.columns": {
        "NumberColumn.stretched",
        "NumberColumn.is_log",
        "NumberColumn.bounds",
        "NumberColumn.__post_init__",
        "NumberColumn._check_scale",
        "NumberColumn.doubling",
        "NumberColumn.has_even_knots",
        "NumberColumn.numbers_at",
        "_checked_knots",
        "_codes_of",
        "_release_of",
    },
    "confide.features.checks": {
        "AtomsRelease.__post_init__",
        "column_title",
        "finite_number",
        "listed_by",
        "listed_by.entries",
        "made_of",
    },
    "confide.inference.intervals": {"Evidence.of", "WeightsEvidence.of_rows"},
    "confide.inference.forecast": {"IntervalsPlan"},
    "confide.inference.interest_plan": {"InterestPlan"},
    "confide.inference.least_squares": {"SumsEvidence.of"},
}
"""Functions that release by a plan, divide, scale and score rows, hold what was released, and close what was opened."""


def left_after_the_charge(run, monkeypatch, ledger=None):
    """The functions that are called between the charge of a ledger and the end of `run`, and should not be."""
    called = called_after_the_charge(run, monkeypatch, ledger or Ledger(limit=ApproxDP(1e4, 1e-3)))
    return {(module, function) for module, function in called if function not in HOLDING.get(module, ())}


def called_after_the_charge(run, monkeypatch, ledger):
    """The functions, outside the rooms, that are called between the charge of a ledger and the end of `run`."""
    called, charge = set(), Ledger.charge
    inside = []

    def watch(frame, event, _):
        if event == "return" and inside and inside[-1] is frame:
            inside.pop()
        if event != "call" or inside:
            return
        module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_qualname
        if module.startswith(ROOMS) or (module, name) == MARKING:
            inside.append(frame)
        elif module.split(".")[0] in OUTSIDE and not name.endswith(("<genexpr>", "<lambda>", "<listcomp>", "__init__")):
            called.add((module, name.replace(".<locals>", "").split(".release")[0]))

    def charging(ledger, *arguments, **facts):
        charge(ledger, *arguments, **facts)
        called.clear()
        sys.setprofile(watch)

    monkeypatch.setattr(Ledger, "charge", charging)
    try:
        run(ledger)
    finally:
        sys.setprofile(None)
    return called


X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(300, 2))
LABELS = (X[:, 0] > 0.0).astype(int)
FRAME = pd.DataFrame({"a": X[:, 0], "c": np.where(X[:, 1] > 0.0, "u", "v")})
SCHEMA = Schema(
    columns={"a": {"low": -0.5, "high": 0.5}, "c": {"categories": ["u", "v"]}},
    target={"column": "y", "negative": 0, "positive": 1},
)
SCHEMA_OF_COLUMNS = Schema(SCHEMA.columns)
GAINS = pd.concat([FRAME.assign(g=np.where(np.arange(300) % 4, np.arange(300) % 90, 7), y=LABELS)] * 3)
WITH_GAINS = Schema({"g": {"low": 0, "high": 90, "scale": "log"}, "c": {"categories": ["u", "v"]}}, SCHEMA.target)
SEEN = FRAME.assign(years=np.linspace(0.5, 3.0, 300), visits=np.arange(300) % 4)
SCHEMA_OF_RATES = Schema(
    SCHEMA.columns,
    {"column": "visits", "low": 0, "high": 3, "exposure": {"column": "years", "low": 0.5, "high": 3.0}},
    random_features={"number": 6, "length_scale": 1.0},
)
RICH = ApproxDP(50.0, 1e-6)


NUMBERS = {"target_bound": 1.0}


def entries(folder):
    """(name, what charges the ledger it is given and releases)."""
    path = None if folder is None else folder / "rows.parquet"
    if path is not None:
        FRAME.assign(y=LABELS, t=X[:, 0]).to_parquet(path)
        GAINS.to_parquet(folder / "gains.parquet")
        SEEN.to_parquet(folder / "rates.parquet")
        np.save(folder / "X.npy", X)
        np.save(folder / "y.npy", LABELS)
    public = confide.LogisticRegression(math.inf, classes=[0, 1]).fit(X, LABELS)
    described = confide.LogisticRegression(math.inf, schema=SCHEMA).fit(FRAME, LABELS)
    curved = confide.AdditiveClassifier(math.inf, schema=SCHEMA).fit(FRAME, LABELS)
    ridge = confide.Ridge(math.inf, **NUMBERS).fit(X, X[:, 0])
    declared = {"classes": [0, 1]}

    def fit(kind, rows=X, targets=LABELS, **parameters):
        return lambda ledger: kind(RICH, ledger=ledger, **parameters).fit(rows, targets)

    def search(method):
        return lambda ledger: confide.PrivateSearchCV(
            confide.LogisticRegression(), {"alpha": [0.1, 1.0]}, budget=RICH, method=method, ledger=ledger, score_share=0.3
        ).fit(X, LABELS)

    return {
        "logistic": fit(confide.LogisticRegression),
        "three classes": fit(confide.LogisticRegression, targets=np.arange(300) % 3),
        "output": fit(confide.LogisticRegression, mechanism="output", **declared),
        "intervals": fit(confide.LogisticRegression, np.tile(X, (50, 1)), np.tile(LABELS, 50), inference_share=0.3),
        "a schema": fit(confide.LogisticRegression, FRAME, schema=SCHEMA),
        "curves": fit(confide.AdditiveClassifier, FRAME, schema=SCHEMA),
        "monotone curves": fit(confide.AdditiveClassifier, FRAME, schema=SCHEMA, monotone={"a": "up"}),
        "curves and atoms": fit(confide.AdditiveClassifier, GAINS, GAINS["y"], schema=WITH_GAINS, mechanism="gradient"),
        "curves, atoms and features": fit(
            confide.AdditiveClassifier,
            GAINS,
            GAINS["y"],
            mechanism="gradient",
            schema=replace(WITH_GAINS, random_features={"number": 20, "length_scale": 1.0, "columns": 1}),
        ),
        "curves and atoms of a file": lambda ledger: confide.AdditiveClassifier(
            RICH, ledger=ledger, mechanism="gradient"
        ).fit(open_rows(folder / "gains.parquet", WITH_GAINS)),
        "interactions": fit(confide.AdditiveClassifier, FRAME, schema=SCHEMA, interactions="all"),
        "curves of a number": fit(confide.AdditiveRegressor, FRAME, schema=SCHEMA, **NUMBERS),
        "sparse rows": fit(confide.LogisticRegression, scipy.sparse.csr_array(X)),
        "a list": fit(confide.LogisticRegression, X.tolist(), LABELS.tolist()),
        "support vectors": fit(confide.LinearSVC),
        "the hinge": fit(confide.LinearSVC, loss="hinge"),
        "a kernel": fit(confide.KernelSVC, n_features=8),
        "a prior": fit(confide.LogisticRegression, prior=([0.5] * X.shape[1], 0.1), inference_share=0.3),
        "sums with a prior": fit(confide.Ridge, prior=confide.Ridge(RICH, **NUMBERS).fit(X, X[:, 0]), **NUMBERS),
        "erm": fit(confide.ERMClassifier),
        "ridge": fit(confide.Ridge, **NUMBERS),
        "ridge with intervals": fit(confide.Ridge, np.tile(X, (50, 1)), np.tile(X[:, 0], 50), intervals=True, **NUMBERS),
        "huber": fit(confide.HuberRegressor, **NUMBERS),
        "counts": fit(confide.PoissonRegressor, **NUMBERS),
        "counts with an exposure": fit(
            confide.PoissonRegressor, SEEN, np.ones(300), schema=SCHEMA_OF_RATES, mechanism="gradient"
        ),
        "counts with an exposure of a file": lambda ledger: confide.AdditiveRegressor(
            RICH, ledger=ledger, schema=SCHEMA_OF_RATES, loss="poisson"
        ).fit(open_rows(folder / "rates.parquet", SCHEMA_OF_RATES)),
        "erm regressor": fit(confide.ERMRegressor, **NUMBERS),
        "a file": lambda ledger: confide.LogisticRegression(RICH, ledger=ledger).fit(open_rows(path, SCHEMA)),
        "a file of numbers": lambda ledger: confide.LogisticRegression(RICH, ledger=ledger).fit(
            open_rows(folder / "X.npy", labels=folder / "y.npy")
        ),
        "a regression on a file": lambda ledger: confide.Ridge(RICH, ledger=ledger, **NUMBERS).fit(
            open_rows(path, SCHEMA, target="t")
        ),
        "partitions": lambda ledger: confide.LogisticRegression(RICH, ledger=ledger).fit(
            open_rows(pytest.importorskip("dask.dataframe").from_pandas(FRAME.assign(y=LABELS), npartitions=3), SCHEMA)
        ),
        "a search": search("permute-and-flip"),
        "a repeated search": search("repeated"),
        "a search over regressions": lambda ledger: confide.PrivateSearchCV(
            Pipeline([("features", confide.RandomFourierFeatures(8)), ("model", confide.ERMRegressor(**NUMBERS))]),
            {"features__length_scale": [0.5, 1.0], "model__loss": ["quantile"]},
            budget=RICH,
            ledger=ledger,
        ).fit(X, X[:, 0]),
        "a search over kinds": lambda ledger: confide.PrivateSearchCV(
            Pipeline([("model", confide.Ridge(**NUMBERS))]),
            {"model": [confide.Ridge(**NUMBERS), confide.PoissonRegressor(**NUMBERS)]},
            budget=RICH,
            method="repeated",
            score_share=0.1,
            ledger=ledger,
        ).fit(X, np.abs(X[:, 0])),
        "evaluation": lambda ledger: confide.evaluate(public, X, LABELS, budget=1.0, ledger=ledger),
        "evaluation by a schema": lambda ledger: confide.evaluate(described, FRAME, LABELS, budget=1.0, ledger=ledger),
        "evaluation of groups": lambda ledger: confide.evaluate(
            described, FRAME, LABELS, budget=2.0, groups="c", clip=1.0, ledger=ledger
        ),
        "evaluation of numbers": lambda ledger: confide.evaluate(ridge, X, X[:, 0], budget=9.0, ledger=ledger),
        "comparison": lambda ledger: confide.evaluate(public, X, LABELS, other=public, budget=2.0, ledger=ledger),
        "comparison of numbers": lambda ledger: confide.evaluate(ridge, X, X[:, 0], other=ridge, budget=9.0, ledger=ledger),
        "comparison of two readings": lambda ledger: confide.evaluate(
            described, open_rows(path, SCHEMA), other=curved, budget=2.0, ledger=ledger
        ),
        "bounds": lambda ledger: confide.private_bounds(FRAME, {"a": (-1, 1)}, budget=1.0, ledger=ledger),
        "description": lambda ledger: confide.describe(FRAME, SCHEMA_OF_COLUMNS, budget=1.0, ledger=ledger),
        "description with correlations": lambda ledger: confide.describe(
            SEEN,
            Schema({"a": {"low": -1, "high": 1}, "years": {"low": 0.5, "high": 3.0}}),
            budget=1.0,
            correlations=True,
            ledger=ledger,
        ),
        "description of a file": lambda ledger: confide.describe(path, SCHEMA, budget=1.0, ledger=ledger),
        "levels": levels_of(FRAME),
        "levels of a file": levels_of(path),
        "bounds of a file": lambda ledger: confide.private_bounds(path, {"a": (-1, 1)}, budget=1.0, ledger=ledger),
        "evaluation of a file": lambda ledger: confide.evaluate(
            described, open_rows(path, SCHEMA), budget=1.0, ledger=ledger
        ),
    }


def levels_of(rows):
    """A release of levels and of bounds together."""
    wanted, budget = {"c": {"categories": "private"}, "a": (-1, 1)}, ApproxDP(1.0, 1e-6)
    return lambda ledger: confide.private_bounds(rows, wanted, budget=budget, ledger=ledger)


NAMES = tuple(entries(None))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_that_could_fail_is_left_after_the_charge(name, tmp_path, monkeypatch):
    """Outside the rooms that release, only what holds the release; no validation, no plan, no sentence, no other library."""
    assert left_after_the_charge(entries(tmp_path)[name], monkeypatch) == set()


class Claims:
    """It claims to be an array, has no shape, and gives other values at each reading."""

    def __init__(self, values, later):
        self.values, self.later, self.readings = values, later, 0

    def __len__(self):
        return len(self.values)

    def __array__(self, dtype=None, copy=None):
        self.readings += 1
        return np.array(self.values if self.readings == 1 else self.later, dtype=dtype)


@pytest.mark.parametrize("what", ["rows", "labels", "weights"])
def test_what_only_claims_to_be_an_array_is_read_once(what):
    """A second reading would be of values that nobody checked; the fit is that of the first, and no budget is lost."""
    weights, ledger = np.ones(300), Ledger(limit=1.0)
    parts = {"rows": X, "labels": LABELS, "weights": weights}
    expected = confide.LogisticRegression(1.0, random_state=0).fit(X, LABELS, sample_weight=weights)
    claimed = parts | {what: Claims(parts[what], np.full(np.shape(parts[what]), 9))}
    model = confide.LogisticRegression(1.0, random_state=0, ledger=ledger)
    model.fit(claimed["rows"], claimed["labels"], sample_weight=claimed["weights"])
    assert np.array_equal(model.coef_, expected.coef_)
    assert model.n_features_in_ == 2
    assert ledger.spent().epsilon == 1.0
    others = [
        lambda X, y: confide.PrivateSearchCV(confide.LogisticRegression(), {"alpha": [1.0, 2.0]}, budget=1.0).fit(X, y),
        lambda X, y: confide.evaluate(expected, X, y, budget=1.0),
        lambda X, y: confide.Ridge(1.0, target_bound=1.0).fit(X, y),
    ]
    for use in others:
        claimed = parts | {what: Claims(parts[what], np.full(np.shape(parts[what]), 9))}
        use(claimed["rows"], claimed["labels"])
