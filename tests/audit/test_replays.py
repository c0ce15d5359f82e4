"""Replays of every mechanism hold, and planted bugs are caught by one pair and two runs."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import Pipeline

import confide
from confide import ZCDP, ApproxDP
from confide.audit.replays import noisy, replay
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.errors import ParameterError
from confide.privacy import objective_perturbation
from confide.privacy.certificate import certified_minimiser
from confide.privacy.noise import Entropy
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.tables import Counts
from confide.training import fit as training_fit
from tests.audit.attacks import ADD

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
CHANGED = X.copy(), Y.copy()
CHANGED[0][5], CHANGED[1][5] = [3.0, -9.0, 2.0], 1 - Y[5]
TARGETS = X[:, 0], CHANGED[0][:, 0]
APPROXIMATE = ApproxDP(1.0, 1e-5)
LABELS = {"classes": [0, 1]}
SCHEMA = confide.Schema(
    columns={name: {"low": -3.0, "high": 3.0} for name in "abc"}, target={"column": "y", "negative": 0, "positive": 1}
)
CLASSIFIERS = {
    "objective, pure": confide.LogisticRegression(1.0, **LABELS),
    "objective, approximate": confide.LogisticRegression(ApproxDP(1.0, 1e-2), mechanism="objective", **LABELS),
    "objective, with a centre": confide.LogisticRegression(ApproxDP(8.0, 1e-2), mechanism="objective", alpha=1.0, **LABELS),
    "output, pure": confide.LinearSVC(1.0, mechanism="output", **LABELS),
    "output, approximate": confide.LinearSVC(APPROXIMATE, mechanism="output", **LABELS),
    "output, Laplace": confide.LinearSVC(1.0, mechanism="output-laplace", **LABELS),
    "l1 penalty": confide.LogisticRegression(1.0, l1_ratio=0.5, alpha=1.0, **LABELS),
    "gradient": confide.LogisticRegression(ZCDP(0.1), mechanism="gradient", **LABELS),
    "kernel": confide.KernelSVC(1.0, n_features=8, **LABELS),
    "intervals": confide.LogisticRegression(100.0, inference_share=0.5, **LABELS),
    "intervals, concentrated": confide.LogisticRegression(ZCDP(50.0), inference_share=0.5, **LABELS),
    "search": confide.PrivateSearchCV(confide.LogisticRegression(**LABELS), {"alpha": [0.1, 0.2]}, budget=1.0),
    "repeated search": confide.PrivateSearchCV(
        confide.LogisticRegression(**LABELS), {"alpha": [0.1, 0.2]}, budget=1.0, method="repeated", expected_tries=2.0
    ),
    "three classes": confide.LogisticRegression(1.0, classes=[0, 1, 2]),
    "prior": confide.LogisticRegression(1.0, prior=([[0.1, 0.2, 0.3]], [0.0]), **LABELS),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_hold(name):
    """A row beyond its bound and its label are changed."""
    replay(CLASSIFIERS[name], X, Y, neighbour=CHANGED).check()


@pytest.mark.parametrize("budget", [1.0, APPROXIMATE, ZCDP(0.1)])
@pytest.mark.parametrize("make", [confide.Ridge, confide.HuberRegressor, confide.PoissonRegressor])
def test_regressors_hold(make, budget):
    """Targets beyond their bound."""
    replay(make(budget, target_bound=1.0), X, np.abs(TARGETS[0]), neighbour=(CHANGED[0], np.abs(TARGETS[1]))).check()


@pytest.mark.parametrize("method", ["permute-and-flip", "repeated"])
def test_searches_over_kinds_of_regressions_hold(method):
    """Each with its own columns, and squared errors on the rows held out."""
    models = [confide.HuberRegressor(target_bound=1.0), confide.AdditiveRegressor(bounds=(-3, 3), target_bound=1.0)]
    search = confide.PrivateSearchCV(
        Pipeline([("model", models[0])]), {"model": models}, budget=1.0, method=method, expected_tries=2.0
    )
    replay(search, X, TARGETS[0], neighbour=(CHANGED[0], TARGETS[1])).check()


def test_least_squares_by_sums_holds():
    """Noise on the sums, with and without a sphere."""
    for budget in (5.0, ApproxDP(5.0, 1e-3)):
        result = replay(confide.Ridge(budget, target_bound=1.0, mechanism="sufficient-statistics"), X, TARGETS[0],
                        neighbour=(CHANGED[0], TARGETS[1]))  # fmt: skip
        result.check()
        assert len(result.steps) == 1


def test_frames_files_and_rows_that_are_missing_hold(tmp_path):
    """An additive model of a frame; a row that is absent; a file."""
    frames = [pd.DataFrame(rows, columns=list("abc")).assign(y=y) for rows, y in ((X, Y), CHANGED)]
    model = confide.AdditiveClassifier(1.0, schema=SCHEMA)
    replay(model, frames[0], frames[0]["y"], neighbour=(frames[1], frames[1]["y"])).check()
    bounded = confide.LogisticRegression(1.0, neighbours="add-or-remove-one", n_rows_bounds=(50, 60), **LABELS)
    result = replay(bounded, X, Y, neighbour=(X[1:], Y[1:]))
    result.check()
    assert result.steps[0].declared == 1.0
    for number, frame in enumerate(frames):
        frame.to_parquet(tmp_path / f"{number}.parquet")
    paths = [confide.open_rows(tmp_path / f"{number}.parquet", SCHEMA) for number in (0, 1)]
    replay(confide.LogisticRegression(1.0), paths[0], neighbour=(paths[1],)).check()


def test_descriptions_evaluations_and_bounds_hold():
    """Callables that use the package."""
    frames = [pd.DataFrame(rows, columns=list("abc")).assign(y=y) for rows, y in ((X, Y), CHANGED)]
    model = confide.LogisticRegression(math.inf, schema=SCHEMA).fit(frames[0], frames[0]["y"])
    releases = {
        "describe": lambda frame: confide.describe(frame, SCHEMA, budget=1.0).to_dict(),
        "correlations": lambda frame: confide.describe(frame, SCHEMA, budget=1.0, correlations=True).to_dict(),
        "evaluate": lambda frame: confide.evaluate(model, frame, frame["y"], budget=1.0, allow_hidden=True).counts,
        "bounds": lambda frame: confide.private_bounds(frame, {"a": (-100.0, 100.0)}, budget=1.0).chosen,
    }
    for release in releases.values():
        replay(release, frames[0], neighbour=frames[1]).check()


# Planted bugs. Each is caught by one pair; without it the same replay holds, above.


def long_rows(estimator=CLASSIFIERS["output, pure"]):
    """A replay in which the changed row is ten times as long as its bound, and turned around."""
    rows = 0.01 * X
    first, second = rows.copy(), rows.copy()
    first[0], second[0] = [10.0, 0.0, 0.0], [-10.0, 0.0, 0.0]
    return replay(estimator, first, Y, neighbour=(second, Y))


STEEP = {"alpha": 50.0, "loss": "huber_hinge", **LABELS}
"""The ridge keeps weights so short that all slopes are -1."""


@pytest.mark.parametrize(
    "estimator",
    [
        *(confide.LinearSVC(1.0, mechanism=name, **STEEP) for name in ("objective", "output", "output-laplace")),
        CLASSIFIERS["gradient"],
    ],
    ids=lambda estimator: estimator.mechanism,
)
def test_rows_that_are_not_clipped_are_caught(estimator, monkeypatch):
    """The distance is ten times as long; of noisy gradients, that of the centre. Kernels call nothing that is patched."""
    assert long_rows(estimator).holds
    monkeypatch.setenv("CONFIDE_COMPILED", "0")
    clip = BallBound.clip

    def only_one(self, rows, scratch=None):
        """A single row is a noisy mean. It stays within the bound, since a centre beyond it would be refused."""
        return clip(self, rows, scratch) if len(rows) == 1 else np.asarray(rows, dtype=np.float64)

    monkeypatch.setattr(BallBound, "clip", only_one)
    assert not long_rows(estimator).holds


def test_a_missing_factor_of_two_is_caught(monkeypatch):
    """The sensitivity of add-or-remove-one for replace-one: a row at the bound is turned around."""
    assert long_rows(confide.LinearSVC(1.0, mechanism="objective", **STEEP)).holds
    calibrated = objective_perturbation.calibrated_objective
    monkeypatch.setattr(objective_perturbation, "calibrated_objective", lambda *given: calibrated(*given[:-1], ADD))
    # Plans are remembered, so another ridge is asked for.
    found = long_rows(confide.LinearSVC(1.0, mechanism="objective", **(STEEP | {"alpha": 50.5})))
    assert [step.name for step in found.steps if not step.holds] == ["privacy loss of the noise in the objective"]


def test_a_minimiser_that_is_not_certified_is_caught(monkeypatch):
    """What the seal covers is far smaller than an error of a thousandth that depends on a row."""

    def early(objective, solver, tolerance, rounding):
        right = certified_minimiser(objective, solver, tolerance, rounding)
        return right * (1.0 + 1e-3 * float(objective.gradients(np.zeros((1, 4)))[0, 0]))

    assert replay(CLASSIFIERS["objective, pure"], X, Y, neighbour=CHANGED).holds
    monkeypatch.setattr(objective_perturbation, "certified_minimiser", early)
    found = replay(CLASSIFIERS["objective, pure"], X, Y, neighbour=CHANGED)
    assert "minimisers before the seal" in {step.name for step in found.steps if not step.holds}


def test_weights_that_are_published_without_noise_are_caught(monkeypatch):
    """What is done after the noise may not look at rows."""
    release = ObjectivePerturbation.release

    def peeking(self, plan, source, solver, entropy):
        found = release(self, plan, source, solver, entropy)
        total = source.sum_over_rows(RowSum(plan.problem.loss, plan.problem.row_bound, 1.0, 1), np.zeros((1, 4))).gradient
        found.weights[...] += 1e-12 * total
        return found

    monkeypatch.setattr(ObjectivePerturbation, "release", peeking)
    found = replay(CLASSIFIERS["objective, pure"], X, Y, neighbour=CHANGED)
    assert not found.same_release
    assert not found.holds
    with pytest.raises(AssertionError, match="release different things"):
        found.check()


def test_a_way_that_depends_on_a_row_is_caught():
    """Counts that are released once more where rows say so."""
    lattice = SumPlan.of(Counts(2, confide.Neighbours.REPLACE_ONE), confide.PureDP(1.0)).lattice

    def count(rows):
        for _ in range(1 + int(rows.sum() > 0.0)):
            lattice.release(np.zeros((1, 2)), Entropy.fresh())

    assert replay(count, np.ones(1), neighbour=np.ones(1)).holds
    found = replay(count, np.ones(1), neighbour=-np.ones(1))
    assert "fewer" in found.difference
    assert "different ways" in str(found)
    assert "more" in replay(count, -np.ones(1), neighbour=np.ones(1)).difference


def test_a_way_of_a_fit_that_depends_on_a_row_is_caught(monkeypatch):
    """Also after the charge, where no words of an error are shown."""
    whole, runs = training_fit.released, []

    def other(plan, source, entropy):
        runs.append(plan)
        if len(runs) == 2:
            entropy.below(3)
        return whole(plan, source, entropy)

    monkeypatch.setattr(training_fit, "released", other)
    found = replay(CLASSIFIERS["objective, pure"], X, Y, neighbour=CHANGED)
    assert "on the neighbour it is" in found.difference


def test_sums_of_others_are_compared():
    """A mean whose sensitivity forgets that values may be negative."""

    def mean(values, sensitivity):
        return noisy(np.clip(values, -1, 1).sum(), sensitivity=sensitivity, noise=np.zeros)

    first, second = np.ones(5), np.array([1.0, 1.0, 1.0, 1.0, -1.0])
    assert replay(lambda v: mean(v, 2.0), first, neighbour=second).holds
    found = replay(lambda v: mean(v, 1.0), first, neighbour=second)
    assert not found.holds
    assert found.worst == pytest.approx(2.0)
    assert "TOO FAR" in str(found)
    assert found.to_dict()["steps"][0]["holds"] is False


def test_a_release_without_noise_is_told():
    """Nothing was compared, so nothing holds."""
    found = replay(lambda values: values.sum(), np.ones(2), neighbour=np.ones(2))
    assert not found.holds
    assert "No noisy step" in str(found)


def test_a_wrong_number_of_rows_is_refused():
    """At least one row differs."""
    with pytest.raises(ParameterError):
        replay(len, [1], neighbour=[2], rows_changed=0)
