"""Forecasts of accuracy in `confide plan`."""

from __future__ import annotations

import json

import pytest

from tests.cli.commands import run


def test_plan_forecasts_accuracy_from_two_guesses():
    """At one budget, and along a curve on which more budget never means less accuracy beyond chance."""
    options = (
        "--model",
        "logistic",
        "--rows",
        3000,
        "--features",
        4,
        "--epsilon",
        1,
        "--error",
        "0.1",
        "--positive-rate",
        "0.4",
    )
    document = json.loads(run("plan", *options, "--format", "json").stdout)
    (forecast,) = document["forecast"]
    assert 0.0 < forecast["low"] < 0.1 <= forecast["error"] < forecast["high"] < 0.4
    assert forecast["coverage"] == 0.8
    curve = json.loads(run("plan", *options, "--curve", "--format", "json").stdout)["forecast"]
    assert [point["budget"]["epsilon"] for point in curve] == pytest.approx([0.1, 0.2, 0.5, 1, 2, 5, 10])
    assert forecast in curve
    errors = [point["error"] for point in curve]
    assert errors == pytest.approx(sorted(errors, reverse=True), abs=0.01)
    text = run("plan", *options, "--curve").stdout
    assert "Accuracy to be expected" in text
    assert f"{1 - forecast['error']:.4f}" in text
    assert max(map(len, text.splitlines())) <= 80
