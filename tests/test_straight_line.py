"""X, y, budget and schema go one way through a fit: each enters every file of the package at most once."""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import confide
from confide import ApproxDP, Schema
from confide.estimators.linear_model import PrivateLinearModel

ROWS = np.random.default_rng(0).uniform(-0.5, 0.5, size=(2_000, 2))
LABELS = (ROWS[:, 0] > 0.0).astype(int)
NUMBERS = ROWS @ [0.5, -0.5]
COUNTS = np.arange(2_000) % 4
SCHEMA = Schema(
    columns={"a": {"low": -0.5, "high": 0.5}, "c": {"categories": ["u", "v"]}},
    target={"column": "y", "negative": 0, "positive": 1},
    person="who",
)
FRAME = pd.DataFrame({"a": ROWS[:, 0], "c": np.where(ROWS[:, 1] > 0.0, "u", "v"), "who": np.arange(2_000) // 2})
BEFORE = confide.LogisticRegression(1.0, classes=[0, 1]).fit(ROWS, LABELS)
PUBLIC = confide.PublicPrior(confide.LogisticRegression(float("inf"), schema=SCHEMA).fit(FRAME, LABELS))
COMPUTED_WITH = ("confide.privacy.", "confide.accounting.", "confide.array_types")
"""Rooms that compute with a budget, wherever the numbers of it are needed; and what makes an array of any value."""


def entries(travellers, run):
    """How often each of some objects enters each file of the package: is passed to it by a call from another file."""
    found = {name: Counter() for name in travellers}

    def watch(frame, event, _):
        module = frame.f_globals.get("__name__", "")
        if event != "call" or not module.startswith("confide") or frame.f_back is None:
            return
        code = frame.f_code
        # What a dataclass stores at its making is no stay, nor is a generator that goes on.
        if code.co_filename == "<string>" or (frame.f_lasti > 0 and code.co_flags & 0x20):
            return
        n_arguments = code.co_argcount + code.co_kwonlyargcount
        passed = [frame.f_locals.get(name) for name in code.co_varnames[:n_arguments] if name != "self"]
        caller = frame.f_back
        if _is_asked_for_tags(caller):
            return
        while caller.f_code.co_filename == "<string>" and caller.f_back is not None:
            caller = caller.f_back
        for name, traveller in travellers.items():
            if any(_is_same(value, traveller) for value in passed) and caller.f_globals.get("__name__") != module:
                found[name][module] += 1

    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


def _is_asked_for_tags(frame):
    """Whether scikit-learn asks an estimator what it can do, beside the way of the rows."""
    while frame is not None:
        if frame.f_code.co_name == "__sklearn_tags__":
            return True
        frame = frame.f_back
    return False


def _is_same(value, traveller):
    """Whether it is the traveller; of a budget, which is copied when it is read, whether it is an equal one."""
    return value is traveller or (isinstance(traveller, ApproxDP) and isinstance(value, ApproxDP) and value == traveller)


def fits():
    """(name, estimator, X, y)."""
    budget = ApproxDP(2.0, 1e-6)
    return {
        "a classifier": (confide.LogisticRegression(budget), ROWS, LABELS),
        "a classifier with intervals": (confide.LogisticRegression(ApproxDP(50.0, 1e-6), inference_share=0.3), ROWS, LABELS),
        "support vectors": (confide.LinearSVC(budget), ROWS, LABELS),
        # A first plan tells whether a centre of the rows pays, so a fit with a centre is planned twice.
        "a kernel": (confide.KernelSVC(budget, centre=False, n_features=8, loss="huber_hinge"), ROWS, LABELS),
        "a prior": (confide.LogisticRegression(budget, prior=BEFORE), ROWS, LABELS),
        "a public prior with a schema": (confide.LinearSVC(budget, schema=SCHEMA, prior=PUBLIC), FRAME, LABELS),
        "any loss": (confide.ERMClassifier(budget), ROWS, LABELS),
        "a regressor": (confide.HuberRegressor(budget, target_bound=1.0), ROWS, NUMBERS),
        # So is one by noisy gradients, or with a part of the budget for the mean.
        "counts": (confide.PoissonRegressor(budget, centre=False, match_mean=False, target_bound=5.0), ROWS, COUNTS),
        "any loss of a target": (confide.ERMRegressor(budget, target_bound=1.0), ROWS, NUMBERS),
        "least squares": (confide.Ridge(budget, target_bound=1.0), ROWS, NUMBERS),
        "a schema": (confide.LogisticRegression(budget, schema=SCHEMA, max_rows_per_person=2), FRAME, LABELS),
        "support vectors with a schema": (confide.LinearSVC(budget, schema=SCHEMA), FRAME, LABELS),
        "an additive classifier": (confide.AdditiveClassifier(budget, schema=SCHEMA), FRAME, LABELS),
        "an additive regressor": (confide.AdditiveRegressor(budget, schema=SCHEMA, target_bound=1.0), FRAME, NUMBERS),
    }


def test_every_public_model_is_among_them():
    """A new estimator joins the table above."""
    public = {getattr(confide, name) for name in confide.__all__}
    models = {kind for kind in public if isinstance(kind, type) and issubclass(kind, PrivateLinearModel)}
    assert {type(model) for model, _, _ in fits().values()} == models


@pytest.mark.parametrize("name", fits())
def test_a_fit_in_memory_is_a_straight_line(name):
    """From `fit` to the source of rows, to the encoder and to the mechanism, nothing comes back to a file that it left."""
    model, X, y = fits()[name]
    travellers = {"X": X, "y": y, "budget": model.budget}
    if model.schema is not None:
        travellers["schema"] = model.schema
    if model.prior is not None:
        travellers["prior"] = model.prior
    found = entries(travellers, lambda: model.fit(X, y))
    if model.prior is not None:
        assert found["prior"].total() <= 1
    assert found["X"]["confide.intake.rows"] == found["y"]["confide.intake.targets"] == 1
    if name.startswith("an additive"):
        # Plans with several numbers of knots are compared before the fit; its rows and targets go straight all the same.
        del found["budget"], found["schema"]
    else:
        assert found["budget"]["confide.intake.parameters"] == 1
    again = {
        traveller: {file: number for file, number in files.items() if number > 1 and not file.startswith(COMPUTED_WITH)}
        for traveller, files in found.items()
    }
    assert again == {traveller: {} for traveller in found}
