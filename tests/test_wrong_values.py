"""Values of the wrong type or out of every range, for each parameter of the public interface: what is said of them.

An error of Python about the inside of a function helps nobody, so every refusal is raised on purpose, and none shows a cell.
"""

from __future__ import annotations

import functools
import inspect
import traceback
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import confide
from confide import audit, errors, planning

pyplot = pytest.importorskip("matplotlib.pyplot")
pyplot.switch_backend("Agg")
SOURCE = str(Path(confide.__file__).parent)
CELL = 47.123456789


class Odd:
    """What no parameter takes."""


WRONG = {
    "None": None, "[]": [], "{}": {}, "object": Odd(), "x": "x", "nan": float("nan"), "inf": float("inf"), "True": True,
    "10**400": 10**400, "float32": np.float32(0), "complex": 1j, "bytes": b"x", "array": np.array([1.0, 2.0]), "NA": pd.NA,
    "NaT": pd.NaT, "a class": dict, "Decimal": Decimal("NaN"), "half a pair": "\ud800", "NUL": "a\0b",
    "cell": np.array(None), "Fraction": Fraction(1, 3), "generator": (letter for letter in "ab"), "odd values": {"age": []},
    "odd items": [Odd()],
}  # fmt: skip
OF_THE_USER = {
    ("simulate", "10**400"),
    ("own_checks", "10**400"),
    ("order", "10**400"),
    ("attack", "10**400"),
    ("replay", "a class"),
}
"""Repetitions without end are what was asked for, and a class is a callable of the user's own, which fails by itself."""


@functools.cache
def rows():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"age": CELL + rng.integers(0, 3, 60), "sex": rng.choice(["f", "m"], 60)})
    return X, pd.Series(np.where(rng.uniform(size=60) < 0.5, "yes", "no"), name="y")


COLUMNS = {"age": {"low": 17, "high": 90}, "sex": {"categories": ["f", "m"]}}
SCHEMA = confide.Schema(COLUMNS, target={"column": "y", "negative": "no", "positive": "yes"})
ONE = confide.LogisticRegression(1.0)
NUMBERS = np.linspace(-0.5, 0.5, 40).reshape(20, 2)
LABELS = (NUMBERS[:, 0] > 0).astype(int)


@functools.cache
def released():
    X, y = rows()
    model = confide.AdditiveClassifier(50.0, schema=SCHEMA, inference_share=0.3).fit(X, y)
    ledger = confide.Ledger(limit=1e6)
    ledger.charge(1.0)
    return {
        "model": model,
        "ledger": ledger,
        "summary": model.summary(),
        "rates": confide.evaluate(model, X, y, budget=50.0, groups="sex"),
        "bounds": confide.private_bounds(X.assign(y=y), {"age": (0, 150)}, budget=50.0),
        "family": confide.family({"a": model}),
        "plan": ONE.plan(1000, 3),
        "guarantee": model.guarantee_,
    }


def fitted(kind, **given):
    """What fits an estimator, with wrong values for its parameters."""

    def fit(**wrong):
        data = {"X": wrong.pop("X", rows()[0]), "y": wrong.pop("y", rows()[1])}
        return kind(**{"schema": SCHEMA, **given, **wrong}).fit(**data)

    return fit, {**dict.fromkeys(inspect.signature(kind).parameters), "X": None, "y": None}


def planned(kind, **given):
    return lambda **wrong: kind(**{**given, **wrong}).plan(1000, 2), dict.fromkeys(inspect.signature(kind).parameters)


def column_with(key):
    return lambda value: confide.Schema({"age": {"low": 0, "high": 9, key: value}})


def of(name, method):
    return lambda *args, **given: getattr(released()[name], method)(*args, **given)


CALLS = {
    "LogisticRegression": fitted(confide.LogisticRegression),
    "AdditiveClassifier": planned(confide.AdditiveClassifier, bounds=(0, 1)),
    "AdditiveRegressor": planned(confide.AdditiveRegressor, bounds=(0, 1), target_bound=1.0),
    "KernelSVC": planned(confide.KernelSVC),
    "Ridge": planned(confide.Ridge, target_bound=1.0),
    "summary": (of("model", "summary"), {"level": 0.9, "target": None, "units": None, "adjust": None}),
    "conf_int": (of("model", "conf_int"), {"level": 0.9, "target": None}),
    "covariance": (of("model", "covariance"), {"target": None, "units": None}),
    "predict_interval": (
        lambda **a: of("model", "predict_interval")(rows()[0], **a),
        {"level": 0.9, "target": "regularised"},
    ),
    "contrast": (of("model", "contrast"), {"column": "sex", "first": "f", "second": "m", "level": 0.9, "label": None}),
    "plot_effects": (of("model", "plot_effects"), {"ax": None, "columns": "age", "level": 0.9, "label": None}),
    "save": (of("model", "save"), {"path": "no/such/folder/m.json"}),
    "report": (of("model", "report"), {"path": "no/such/folder/r.html", "level": 0.9, "adjust": None}),
    "plan": (lambda n_rows, n_features: ONE.plan(n_rows, n_features), {"n_rows": 1000, "n_features": 2}),
    "plot": (of("summary", "plot"), {"ax": None}),
    "smallest_effects": (of("summary", "smallest_effects"), {"size": 0.05, "power": 0.8}),
    "risk_differences": (of("summary", "risk_differences"), {"baseline": 0.2}),
    "difference": (of("rates", "difference"), {"rate": "accuracy", "first": "f", "second": "m"}),
    "rows_off": (of("bounds", "rows_off"), {"level": 0.9}),
    "rejected": (of("family", "rejected"), {"size": 0.05}),
    "charge": (of("ledger", "charge"), {"budget": 0.001, "purpose": "", "neighbours": None, "details": None}),
    "note": (of("ledger", "note"), {"charge": 1, "details": {}}),
    "ledger.plan": (of("ledger", "plan"), {"items": [0.001], "delta": None, "purpose": ""}),
    "check": (of("ledger", "check"), {"items": [0.001]}),
    "end": (of("ledger", "end"), {"charge": 1, "attempt": 1}),
    "verify": (of("ledger", "verify"), {"head": None}),
    "Ledger": (confide.Ledger, {"limit": 1.0, "neighbours": "replace-one", "accounting": "auto", "max_rows_per_person": 1}),
    "load": (confide.load, {"path": "no.json"}),
    "from_toml": (confide.Schema.from_toml, {"path": "no.toml"}),
    "guarantee": (of("guarantee", "from_dict"), {"value": {}}),
    "circumstances": (lambda v: confide.Guarantee.from_dict(of("guarantee", "to_dict")() | {"circumstances": v}), {"v": {}}),
    **{f"column {key}": (column_with(key), {"value": None}) for key in ("low", "high", "scale", "knots", "missing", "unit")},
    "interact": (
        lambda knots: confide.Schema(COLUMNS, interact=[{"columns": ["age", "sex"], "knots": knots}]),
        {"knots": 1},
    ),
    "evaluate": (
        lambda **given: confide.evaluate(**{"model": released()["model"], "X": rows()[0], "y": rows()[1]} | given),
        {"model": None, "X": None, "y": None, "budget": 50.0, "groups": None, "other": None, "clip": None, "level": 0.9},
    ),
    "describe": (
        lambda **given: confide.describe(
            **{"rows": rows()[0].assign(y=rows()[1]), "schema": SCHEMA, "budget": 50.0} | given
        ),
        {
            "rows": None,
            "schema": None,
            "budget": 50.0,
            "columns": None,
            "cross_tables": (),
            "quantiles": (0.5,),
            "correlations": False,
            "level": 0.9,
        },
    ),
    "private_bounds": (
        lambda **given: confide.private_bounds(rows()[0].assign(y=rows()[1]), **{"columns": {"age": (0, 99)}} | given),
        {"columns": None, "budget": 50.0, "schema": None, "quantiles": (0.1, 0.9)},
    ),
    "scale of bounds": (lambda v: confide.private_bounds(rows()[0], {"age": {"low": 0, "high": 99, "scale": v}}), {"v": 1}),
    "family": (confide.family, {"analyses": {"a": 0.5}, "columns": None, "method": "holm", "level": 0.9, "target": None}),
    "open_rows": (confide.open_rows, {"rows": "no.csv", "schema": SCHEMA, "cache": False}),
    "take_part": (confide.take_part, {"connection": Odd(), "estimator": ONE, "X": NUMBERS, "y": LABELS}),
    "FederatedRows": (confide.FederatedRows, {"schema": SCHEMA, "connections": ()}),
    "to_approx": (confide.ApproxDP(1.0, 1e-6).to_approx, {"delta": 1e-6}),
    "to_approx of rho": (confide.ZCDP(0.1).to_approx, {"delta": 1e-6}),
    "BoxBound": (confide.BoxBound, {"limits": [1.0]}),
    "BallBound": (confide.BallBound, {"norm": 1.0}),
    "GroupBound": (confide.GroupBound, {"sizes": (1,), "scales": (1.0,), "linked": (False,)}),
    "CoefficientsDisplay": (
        lambda **a: confide.CoefficientsDisplay.from_estimator(**{"estimator": released()["model"]} | a),
        {"estimator": None, "ax": None, "units": None, "level": 0.9, "label": None, "most": 3},
    ),
    "PrivacyAccuracyDisplay": (
        lambda **a: confide.PrivacyAccuracyDisplay.from_estimator(**{"error": 0.2, "n_rows": 0} | a),
        {"estimator": ONE, "budgets": []},
    ),
    "least_excess_risk": (planning.least_excess_risk, {"estimator": ONE, "n_rows": 100, "n_features": 2}),
    "sample_size": (planning.sample_size, {"estimator": ONE, "n_features": 2, "excess": 0.1, "by": "utility_bound"}),
    "second_moment": (planning.second_moment, {"kernel": "rbf", "n_inputs": 2, "length_scale": 1.0}),
    "laplace_scale": (planning.laplace_scale_for_kernel, {"accuracy": 0.1, "failure": 0.1, "n_pairs": 2}),
    "attack": (
        lambda **a: audit.attack(lambda _: [0.0], ([1.0],), ([2.0],), **{"budget": 1.0, "n_releases": 40} | a),
        {"budget": 1.0, "n_releases": 40, "confidence": 0.9},
    ),
    "exact": (
        lambda **a: audit.exact(**{"estimator": ONE, "first": (NUMBERS[:, :1], LABELS), "second": (NUMBERS, LABELS)} | a),
        {"estimator": ONE, "first": None, "second": None, "n_points": 50},
    ),
    "leaks": (audit.leaks, {"estimator": ONE, "X": NUMBERS, "y": LABELS}),
    "noisy": (
        lambda **a: audit.noisy(**{"value": 1.0} | a, noise=np.zeros),
        {"value": 1.0, "sensitivity": 1.0, "norm": "l2"},
    ),
    "replay": (
        lambda **a: audit.replay(**{"release": ONE} | a, neighbour=(NUMBERS, LABELS)),
        {"release": ONE, "rows_changed": 1},
    ),
    "worst_neighbours": (
        lambda **a: audit.worst_neighbours(**{"estimator": ONE, "n_rows": 0} | a),
        {"estimator": None, "n_rows": None},
    ),
}


def is_on_purpose(error):
    """Whether confide raised it where it stands: it is one of its own, or follows the word "raise" in its code."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return isinstance(error, confide.ConfideError) or (last.filename.startswith(SOURCE) and last.line.startswith("raise "))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_wrong_values_are_refused_in_words_and_no_cell_is_shown(name, tmp_path, monkeypatch):
    """No parameter passes a wrong value on to where Python, NumPy or scikit-learn complains."""
    monkeypatch.chdir(tmp_path)
    call, usual = CALLS[name]
    raw = []
    for parameter in usual:
        given = {key: value for key, value in usual.items() if value is not None}
        for what, wrong in WRONG.items():
            if (name, what) in OF_THE_USER:
                continue
            try:
                call(**given | {parameter: wrong})
            except Exception as error:  # noqa: BLE001 - what is raised is the question
                if not is_on_purpose(error) or str(CELL)[:8] in str(error):
                    raw.append(f"{parameter}={what}: {type(error).__name__}: {error}"[:200])
        pyplot.close("all")
    assert raw == []


def test_a_ledger_refuses_details_and_heads_of_other_kinds_and_charges_nothing():
    """A list of nothing is no mapping; a head that is no text is that of no ledger."""
    ledger = confide.Ledger(limit=1.0)
    for details in ([], "model", 0):
        with pytest.raises(confide.ParameterError, match="may have the names"):
            ledger.charge(0.5, details=details)
    with pytest.raises(confide.LedgerError, match="has the given head"):
        ledger.verify(np.array(["x", "y"]))
    assert ledger.spent().epsilon == 0.0


def test_no_plan_is_for_more_than_doubles_count():
    """10^15 is the largest number of rows or columns that is read; what is no whole number is told so."""
    assert errors.checked_count("n_rows", np.int64(10**15)) == 10**15
    for wrong in (10**15 + 1, 0, 1.0, True, None):
        with pytest.raises(
            confide.ParameterError, match=r"n_features must be a whole number of at least 1, and at most 10\^15"
        ):
            ONE.plan(1000, wrong)
