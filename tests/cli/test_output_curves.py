"""How commands show the knots of curves."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import confide
from confide.cli.output import blocks_of_choices, choices_document, chosen_schema
from tests.cli.commands import run

SCHEMA = """
target = { column = "income", negative = "low", positive = "high" }
[columns]
age = { low = 17, high = 90 }
hours = { low = 0, high = 100, knots = [20, 40] }
wage = { low = 0, high = 1000, scale = "log", knots = 0 }
work = { categories = ["private", "state"], other = true }
"""


def test_plan_says_how_many_knots_each_number_gets(folder):
    """The chosen ones, those of the schema, and straight lines; in JSON too, as a fit would choose."""
    Path("people.toml").write_text(SCHEMA, encoding="utf-8")
    options = ("plan", "--schema", "people.toml", "--rows", "50000", "--epsilon", "1", "--details")
    document = json.loads(run(*options, "--format", "json").stdout)
    schema = confide.Schema.from_toml("people.toml")
    chosen = confide.AdditiveClassifier(1.0, schema=schema).chosen_schema(50_000)
    assert document["knots"] == {"age": chosen.columns[0].knots, "hours": [20, 40], "wage": 0}
    assert document["knots"]["age"] > 0
    text = run(*options).stdout
    assert re.search(rf"^age +{chosen.columns[0].knots}, evenly spaced +17 and 90 *$", text, re.MULTILINE)
    assert re.search(r"^hours +2, as in the schema +0 and 100 *$", text, re.MULTILINE)
    assert re.search(r"^wage +none: a straight line in the logarithm +0 and 1000 *$", text, re.MULTILINE)
    assert "work" not in text.partition("Curves")[2].partition("What to expect")[0]
    fixed = json.loads(run(*options, "--knots", "3", "--format", "json").stdout)
    assert fixed["knots"] == {"age": 3, "hours": [20, 40], "wage": 0}
    straight = run(*options, "--model", "logistic")
    assert "Curves" not in straight.stdout


def test_only_additive_models_choose():
    """Others have no schema to show."""
    schema = confide.Schema(columns={"age": {"low": 17, "high": 90}})
    assert chosen_schema(confide.LogisticRegression(1.0, schema=schema), 100) is None
    assert choices_document(None, None) == {}


def test_a_forecast_is_that_of_the_curves(folder):
    """`--error` forecasts the additive model with the knots of the plan."""
    from confide.planning.simulation import simulate

    Path("people.toml").write_text(SCHEMA, encoding="utf-8")
    options = ("plan", "--schema", "people.toml", "--rows", "2000", "--epsilon", "5", "--error", "0.2", "--format", "json")
    (forecast,) = json.loads(run(*options).stdout)["forecast"]
    model = confide.AdditiveClassifier(5.0, schema=confide.Schema.from_toml("people.toml"))
    assert forecast["error"] == simulate(model, 2000, error=0.2).error


@pytest.mark.parametrize("high", [2, 2.5])
@pytest.mark.parametrize("features", [None, {"number": 20, "length_scale": 1.0}])
def test_what_is_said_of_knots_is_true_of_near_bounds_and_beside_random_features(high, features):
    """Near whole numbers have few knots, which a user may not expect; random features bend curves between knots."""
    schema = confide.Schema({"z": {"low": 0, "high": high}}, random_features=features)
    chosen = chosen_schema(confide.AdditiveClassifier(4.0, schema=schema, interactions=()), 200_000)
    _, _, told, *_ = blocks_of_choices(None, chosen, None)
    assert ("Between neighbouring knots a curve is a straight line." in told.lines) == (features is None)
    assert any("no more knots than" in line for line in told.lines) == (high == 2)
    assert (chosen.columns[0].knots == 1) == (high == 2)


def test_a_curve_beside_a_straight_line_is_no_interaction():
    """Its knots stand with those of the other columns, and sentences on interactions leave it out."""
    columns = {
        "age": {"low": 17, "high": 90},
        "wage": {"low": 0, "high": 1000, "scale": "log"},
        "rooms": {"low": 0, "high": 9},
    }
    beside = [{"columns": ["age"], "knots": 3}, {"columns": ["wage"], "knots": 6}]
    chosen = confide.Schema(columns, interact=[*beside, ["age", "rooms"]])
    assert choices_document(chosen, None)["knots"] == {"age": 3, "wage": 6, "rooms": 0}
    _, curves, _, interactions = blocks_of_choices(None, chosen, None)
    texts = [text for _, text, _ in curves.lines]
    assert texts[0] == "3, evenly spaced, beside a straight line"
    assert texts[1] == "6, evenly spaced in the logarithm, beside a straight line"
    assert interactions.lines == ("Interactions: age x rooms.",)
    assert len(list(blocks_of_choices(None, confide.Schema(columns, interact=beside), None))) == 3
