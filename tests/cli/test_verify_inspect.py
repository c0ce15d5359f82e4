"""`confide inspect`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np

import confide
from confide.estimators.logistic import LogisticRegression
from confide.estimators.released import ReleasedCoefficients
from tests.cli.commands import SENTINEL, fit, refused, run, spoil


def test_inspect_shows_statement_and_weights_of_a_private_model(folder):
    """Exit code 0, every coefficient, within 80 columns."""
    fit()
    text = run("inspect", "model.json").stdout
    model = confide.load("model.json")
    assert " ".join(model.guarantee_.statement().split()) in " ".join(text.split())
    found = ReleasedCoefficients.of(model).coefficients
    assert all(re.search(rf"^{re.escape(one.name)} +{re.escape(one.unit)} +-?\d", text, re.MULTILINE) for one in found)
    assert max(map(len, text.splitlines())) <= 80


def test_inspect_gives_3_for_a_void_guarantee(folder):
    """Whether without noise or with a seed; for people and for machines."""
    fit("--epsilon", "inf", code=3)
    assert "NOT PRIVATE." in run("inspect", "model.json", code=3).stdout
    LogisticRegression(1.0, random_state=1).fit(np.array([[0.1], [0.9]]), [0, 1]).save("seeded.json")
    document = json.loads(run("inspect", "seeded.json", "--format", "json", code=3).stdout)
    assert document["private"] is False
    assert "seed" in document["guarantee"]["void"]


def test_inspect_speaks_json(folder):
    """The same as fit said, but for the plan, its verdict and the charge."""
    said = json.loads(fit("--format", "json").stdout)
    del said["plan"], said["charge"], said["verdict"]
    assert json.loads(run("inspect", "model.json", "--format", "json").stdout) == said


def test_a_file_that_is_no_model_is_refused(folder):
    """Missing, damaged or of another kind."""
    assert "cannot read nowhere.json" in refused("inspect", "nowhere.json")
    spoil(work=SENTINEL)
    assert "not a model file" in refused("inspect", "people.csv")
    fit()
    text = Path("model.json").read_text(encoding="utf-8")
    Path("model.json").write_text(text.replace('"alpha"', '"alfa"'), encoding="utf-8")
    assert "damaged" in refused("inspect", "model.json")


def test_weights_of_random_features_are_not_shown_one_by_one(folder):
    """Their number and norm are; the document for programs has them all."""
    fit("--model", "kernel-svm", "--n-features", "6")
    text = run("inspect", "model.json").stdout
    assert "cos0" not in text
    assert "weights of 6 random features are not listed" in " ".join(text.split())
    assert "cos0" in json.loads(run("inspect", "model.json", "--format", "json").stdout)["weights"]
