"""`penalty=` through every door: files, parties, additive models and their effects, searches, parts, plans, persons."""

from __future__ import annotations

import threading
from multiprocessing import Pipe

import numpy as np
import pandas as pd
import pytest

import confide
from confide import ApproxDP, ParameterError, Schema, Smooth

BUDGET = ApproxDP(2.0, 1e-6)
SCHEMA = Schema(
    columns={"age": {"low": 0, "high": 100, "knots": 9}, "level": {"categories": list("abcd"), "other": True}},
    target={"column": "y", "negative": 0, "positive": 1},
)
PENALTY = {"age": Smooth(30.0), "level": Smooth(5.0)}
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"age": RNG.uniform(0, 100, 600), "level": RNG.choice([*"abcd", "z"], 600)})
LABELS = (FRAME["age"] > 50.0).astype(int).to_numpy()
ROWS = RNG.uniform(-0.5, 0.5, size=(600, 2))


def fitted(**others):
    """A model of the frame in memory."""
    model = confide.LogisticRegression(BUDGET, schema=SCHEMA, penalty=PENALTY, random_state=0, **others)
    return model.fit(FRAME, LABELS)


def test_a_file_gives_the_model_of_the_same_rows_in_memory(tmp_path):
    """To the last digits, at the same seed."""
    FRAME.assign(y=LABELS).to_csv(tmp_path / "rows.csv", index=False)
    model = confide.LogisticRegression(BUDGET, penalty=PENALTY, random_state=0)
    model.fit(confide.open_rows(tmp_path / "rows.csv", SCHEMA))
    assert model.coef_ == pytest.approx(fitted().coef_, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("neighbours", [{}, {"neighbours": "add-or-remove-one", "n_rows_bounds": (500, 700)}])
def test_both_relations_and_persons_have_a_plan_and_a_guarantee(neighbours):
    """The plan is that of the fit, and the statement speaks of the form."""
    model = fitted(**neighbours, max_rows_per_person=2)
    assert "quadratic form" in model.guarantee_.statement()
    n_rows = None if neighbours else 600
    assert model.plan(n_rows=n_rows).alpha == pytest.approx(model.alpha_)


def test_parties_bring_their_rows_to_the_norm_themselves():
    """Two parties with half of the rows each: the model of all rows in one place."""
    model = confide.LogisticRegression(BUDGET, schema=SCHEMA, penalty=PENALTY, random_state=0, centre=False)
    pairs, threads = [Pipe() for _ in range(2)], []
    for (_, there), part in zip(pairs, (slice(0, 300), slice(300, 600)), strict=True):
        work = (there, model, FRAME[part], LABELS[part])
        threads.append(threading.Thread(target=confide.take_part, args=work))
        threads[-1].start()
    model.fit(confide.FederatedRows(SCHEMA, [here for here, _ in pairs]))
    for thread in threads:
        thread.join(20.0)
    assert model.coef_ == pytest.approx(fitted(centre=False).coef_, rel=1e-3, abs=1e-5)


def test_additive_models_have_smooth_effects():
    """A zigzag of the released curve is shorter than without smoothing; the model has effects of its columns."""
    schema = Schema(columns={"age": {"low": 0, "high": 100, "knots": 30}}, target=SCHEMA.target)
    common = {"schema": schema, "random_state": 1, "centre": False, "loss": "logistic"}
    rough, smooth = (
        confide.AdditiveClassifier(BUDGET, penalty=penalty, **common).fit(FRAME[["age"]], LABELS)
        for penalty in (None, "smooth")
    )
    bends = [np.abs(np.diff(model.coef_[0], 2)).sum() / np.ptp(model.coef_) for model in (rough, smooth)]
    assert bends[1] < 0.5 * bends[0]
    assert len(smooth.effects_.head()) > 0


def test_a_search_and_parts_give_weights_of_the_columns():
    """Named strengths of a frame of numbers, huge ones for the column that tells nothing."""
    frame = pd.DataFrame(ROWS, columns=["a", "b"])
    labels = ROWS[:, 0] > 0.0
    model = confide.LogisticRegression(BUDGET, penalty={"b": 1e4})
    found = confide.PrivateSearchCV(model, {"alpha": [0.001, 0.01]}, budget=ApproxDP(20.0, 1e-6), random_state=0)
    weights = found.fit(frame, labels).best_estimator_.coef_[0]
    assert abs(weights[1]) < 0.05 * abs(weights[0])
    parts = confide.intervals_from_parts(
        confide.LogisticRegression(ApproxDP(20.0, 1e-6), penalty={"b": 1e4}), frame, labels, n_parts=5, random_state=0
    )
    assert abs(parts.estimates[1]) < 0.05 * abs(parts.estimates[0])


def test_what_cannot_be_is_refused_before_the_charge():
    """A ledger that is given is not charged."""
    ledger = confide.Ledger(limit=BUDGET)
    for penalty, message in (([1.0], "one of 1 columns"), ({"c": 1.0}, "no column of the fit"), ("smooth", "Give a schema")):
        with pytest.raises(ParameterError, match=message):
            confide.LogisticRegression(1.0, penalty=penalty, ledger=ledger).fit(ROWS, ROWS[:, 0] > 0.0)
    assert len(ledger.entries()) == 0
