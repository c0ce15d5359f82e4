"""`confide demo`."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pandas as pd
import pytest

import confide
from confide.datasets import load_adult
from tests.cli.commands import read_rows, refused, run, small_adult


@pytest.fixture(scope="module")
def adult_demo(tmp_path_factory):
    """What `confide demo` shows, and the model it writes."""
    out = tmp_path_factory.mktemp("demo") / "model.json"
    return run("demo", "--out", out).stdout, out


def test_the_demo_shows_a_plan_a_guarantee_and_what_they_cost(adult_demo):
    """Plan, statement, a table of three accuracies, the file, and two commands to try."""
    text, out = adult_demo
    for part in ("Plan", "epsilon = 1 (replace-one)", "Guarantee", "It holds if:", "These data are public"):
        assert part in text
    accuracy = {line[:10]: float(re.search(r"([\d.]+)%", line)[1]) for line in text.splitlines() if re.search(r"\d%", line)}
    released, without_privacy, majority = accuracy.values()
    assert list(accuracy) == ["private, e", "without pr", 'always "<=']
    assert without_privacy > 84
    assert majority < released <= without_privacy + 1
    assert f"Wrote {out}." in text
    assert f"\n  confide inspect {out}\n" in text


def test_the_demo_writes_a_private_model(adult_demo):
    """It predicts in Python as well as the demo says."""
    text, out = adult_demo
    adult = load_adult()
    model = confide.load(out)
    assert model.guarantee_.void is None
    assert f"{model.score(adult.X_test, adult.y_test):.1%}" in text


def test_the_commands_that_the_demo_names_work(adult_demo):
    """Each line that begins with confide."""
    text, out = adult_demo
    inspected, reported = re.findall(r"^  confide (.+)$", text, re.MULTILINE)
    assert "released weights" in run(*inspected.split()).stdout.lower()
    assert "Wrote" in run(*reported.split()).stdout
    assert out.with_suffix(".html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_demo_draws_curves_and_reaches_what_straight_lines_do_not(adult_demo):
    """With the default budget; the plan says how many knots each number gets."""
    text, out = adult_demo
    model = confide.load(out)
    assert isinstance(model, confide.AdditiveClassifier)
    assert model.schema.columns[0].knots
    assert re.search(rf"^age +{model.schema.columns[0].knots}, evenly spaced", text, re.MULTILINE)


def test_the_demo_never_replaces_a_file_unasked(folder, monkeypatch):
    """Exit code 2 before any work, and the file is as it was; --force replaces it."""
    monkeypatch.setattr("confide.datasets.load_adult", small_adult)
    for options, name in (((), "model.json"), (("--out", "other.json"), "other.json")):
        Path(name).write_text("mine", encoding="utf-8")
        assert f"{name} exists already" in refused("demo", *options)
        assert Path(name).read_text(encoding="utf-8") == "mine"
    run("demo", "--force")
    assert confide.load("model.json").guarantee_.budget.epsilon == 1.0


def test_the_demo_speaks_json(folder, monkeypatch):
    """One document, with the accuracies as numbers."""
    monkeypatch.setattr("confide.datasets.load_adult", small_adult)
    document = json.loads(run("demo", "--epsilon", "4", "--format", "json").stdout)
    assert document["guarantee"]["budget"] == {"kind": "pure", "epsilon": 4.0}
    assert set(document["test_accuracy"]) == {"released", "without_privacy", "majority_class"}
    assert document["next"][0] == "confide inspect model.json"
    assert confide.load(document["model"]).guarantee_.budget == confide.PureDP(4.0)


def test_the_demo_with_an_infinite_epsilon_is_not_called_private(folder, monkeypatch):
    """Nobody should mistake it."""
    monkeypatch.setattr("confide.datasets.load_adult", small_adult)
    text = run("demo", "--epsilon", "inf", code=3).stdout
    assert "\nNOT PRIVATE." in text
    assert "the model written, NOT PRIVATE" in text


def test_the_table_that_demo_ships_can_be_exported_and_trained_from_a_file(folder, monkeypatch):
    """The README's way: a CSV file and a schema on disk give a private model."""
    adult = small_adult()
    adult.X_train.assign(income=adult.y_train).to_csv("adult.csv", index=False)
    Path("adult.toml").write_text(adult.schema.to_toml(), encoding="utf-8")
    run("fit", "adult.csv", "--schema", "adult.toml", "--epsilon", 1, "--out", "model.json")
    run("predict", "model.json", "adult.csv", "--out", "scored.csv")
    model = confide.load("model.json")
    assert [row["prediction"] for row in read_rows(Path("scored.csv"))] == model.predict(adult.X_train).tolist()
    stream = io.StringIO(Path("scored.csv").read_text(encoding="utf-8"))
    assert pd.read_csv(stream)["age"].tolist() == adult.X_train["age"].tolist()
