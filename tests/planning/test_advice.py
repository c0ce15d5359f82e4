"""Verdicts: their words, and the numbers on which they rest."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise

import pytest

import confide
from confide.datasets import load_adult
from confide.expected_noise import noise_in_rows
from confide.features.schema import Schema
from confide.planning.advice import (
    _ENOUGH,
    _FEW,
    ENOUGH,
    FEW,
    TOO_FEW,
    WASTED,
    budget_sentence,
    in_words,
    verdict_of,
    where_the_budget_goes,
)
from confide.planning.simulation import simulate

SCHEMA = Schema.from_dict(
    {
        "target": {"column": "y", "negative": "no", "positive": "yes"},
        "columns": {"age": {"low": 0, "high": 100}, "town": {"categories": [f"t{i}" for i in range(200)]}},
    }
)


def test_the_verdict_is_in_three_sentences():
    """Expected error, rare columns, enough rows; with a guess it is that of the forecast."""
    model = confide.LogisticRegression(1.0, schema=SCHEMA)
    verdict = verdict_of(model, 5_000, error=0.2)
    forecast = simulate(model, 5_000, error=0.2)
    assert verdict.forecast == forecast
    assert verdict.rare_columns == ("town",)
    assert "where it would be 20% without privacy" in verdict.error
    assert verdict.columns.startswith("1 of 2 columns is too rare to matter (town)")
    assert verdict.to_dict()["expected_error"] == [forecast.low, forecast.high]
    assert str(verdict) == f"{verdict.error} {verdict.columns} {verdict.rows}"
    many = verdict_of(model, 5_000_000)
    assert many.rare_columns == ()
    assert "a mere guess: --error takes yours" in many.error
    assert (many.level, many.rows) == (ENOUGH, "Enough rows.")


def test_the_rows_that_would_be_enough_are_more_than_there_are():
    """Also where they are only some more: a number that is rounded down would be the present one."""
    for epsilon in (0.1, 0.11, 0.12, 0.13):
        n_rows, said = 10_000, "about 20,000 rows"
        while needed := re.search(r"about ([\d,]+) rows", said):
            assert int(needed[1].replace(",", "")) >= n_rows
            n_rows = math.ceil(1.01 * n_rows)
            said = verdict_of(confide.LogisticRegression(epsilon, schema=SCHEMA), n_rows, with_forecast=False).rows
        assert said == "Enough rows."


def test_numbers_with_few_rows_between_two_knots_are_told_in_words_for_numbers():
    """They have no levels, and the whole of their effect is not hidden."""
    columns = {"age": {"low": 0, "high": 100, "knots": 50}, "town": {"categories": [f"t{i}" for i in range(200)]}}
    schema = Schema.from_dict({"target": {"column": "y", "negative": "no", "positive": "yes"}, "columns": columns})
    verdict = verdict_of(confide.AdditiveClassifier(1.0, schema=schema), 1_000, with_forecast=False)
    assert verdict.rare_columns == ("age", "town")
    levels, curves = verdict.columns.split(". ")[0], verdict.columns.split(". ")[1]
    assert levels.startswith("1 of 2 columns is too rare to matter (town): most of their levels")
    assert curves.startswith("The noise hides the curve of 1 of 2 columns (age): between two knots lie fewer than")
    assert "age" not in levels


def test_rows_of_a_small_mean_weight_need_to_be_more():
    """Noise is counted in rows of the mean weight, for rows and for rare levels; a sentence says what weights mean."""
    plain, at_cap, light = (
        verdict_of(confide.LogisticRegression(1.0, schema=SCHEMA, **weights), 20_000, error=0.2)
        for weights in (
            {},
            {"max_sample_weight": 16.0, "mean_sample_weight": 16.0},
            {"max_sample_weight": 16.0, "mean_sample_weight": 0.5},
        )
    )
    assert (plain.rows, plain.weights) == (at_cap.rows, at_cap.weights) == ("Enough rows.", "")
    assert light.level != ENOUGH
    assert "noise counts 32 times as much as for equal weights" in light.weights
    assert light.weights in str(light)
    named = replace(SCHEMA, weight={"column": "w", "high": 16, "mean": 0.5})
    by_schema = verdict_of(confide.LogisticRegression(1.0, schema=named), 20_000, error=0.2)
    assert (by_schema.rows, by_schema.weights) == (light.rows, light.weights)


def test_no_verdict_expects_privacy_to_lower_the_error():
    """The range begins at the guess at the lowest."""
    verdict = verdict_of(confide.LogisticRegression(10.0), 100_000, 4, error=0.2)
    assert verdict.forecast.low < 0.2
    assert verdict.error.startswith("Expected error: 20")


@pytest.mark.parametrize(("share", "level"), [(0.8 * _ENOUGH, ENOUGH), (2.0 * _ENOUGH, FEW), (2.0 * _FEW, TOO_FEW)])
def test_too_few_rows_are_told_with_the_number_that_would_do(share, level):
    """By the noise in rows as a share of all rows; a fit with the number that is told has enough."""
    model = confide.LogisticRegression(1.0)
    n_rows = round(noise_in_rows(model.plan(10_000, 40)) / share)
    verdict = verdict_of(model, n_rows, 40)
    assert verdict.level == level
    if level != ENOUGH:
        told = int(verdict.rows.partition("about ")[2].partition(" rows")[0].replace(",", ""))
        assert verdict_of(model, math.ceil(1.1 * told), 40).level == ENOUGH


def test_the_limits_are_those_at_which_simulated_fits_lose_a_tenth_and_a_third():
    """On the schema of Adult, with few designs: between half and twice as much."""
    model = confide.AdditiveClassifier(0.3, schema=load_adult().schema)
    for n_rows, expected in ((9_000, 0.1), (1_200, 0.35)):
        share = noise_in_rows(model.plan(n_rows)) / n_rows
        assert share == pytest.approx(_ENOUGH if n_rows == 9_000 else _FEW, rel=0.3)
        forecast = simulate(model, n_rows, error=0.15, n_designs=1)
        assert expected / 2 < (forecast.error - 0.15) / (0.5 - 0.15) < 2 * expected


def test_numbers_counts_and_several_classes_have_forecasts():
    """R^2, the share of the deviance and the error, from which it follows whether rows are enough."""
    huber = verdict_of(confide.HuberRegressor(1.0, target_bound=1.0), 200_000, 3)
    assert huber.error.startswith("Expected R^2: 0.")
    assert "if it were 0.5 without privacy, which is a mere guess" in huber.error
    assert (huber.level, huber.rows) == (ENOUGH, "Enough rows.")
    few = verdict_of(confide.HuberRegressor(1.0, target_bound=1.0), 300, 3)
    assert few.level in (FEW, TOO_FEW)
    assert "of what a model could learn" in few.rows
    counts = verdict_of(confide.PoissonRegressor(1.0, target_bound=20.0), 200_000, 3, error=0.7)
    assert counts.error.startswith("Expected share of the deviance that is explained: 0.")
    three = verdict_of(confide.LogisticRegression(1.0, classes=[0, 1, 2]), 200_000, 3, error=0.3)
    assert "where it would be 30% without privacy" in three.error
    assert "always answers the same errs by 66.7%" in three.error


@pytest.mark.parametrize("private", [{}, {"neighbours": "add-or-remove-one", "n_rows_bounds": (500, 900)}], ids=str)
def test_where_rows_are_few_the_verdict_says_what_twice_as_many_would_bring(private):
    """The forecast of a fit to twice the rows; nothing is said where there are enough rows, or no forecast."""
    given = (None if private else 500, None if private else 4)
    kind, more = (confide.LogisticRegression, {"schema": SCHEMA}) if private else (confide.LogisticRegression, {})
    verdict = verdict_of(kind(0.3, **private, **more), *given, error=0.15)
    assert verdict.level in (FEW, TOO_FEW)
    doubled = {"n_rows_bounds": (1_000, 1_800)} if private else {}
    forecast = simulate(kind(0.3, **(private | doubled), **more), None if private else 1_000, given[1], error=0.15)
    plain = verdict_of(kind(0.3, **private, **more), *given, with_forecast=False).rows
    assert verdict.rows == f"{plain} With twice as many rows: expected error {in_words(forecast)[1]}."
    assert forecast.error < verdict.forecast.error
    assert verdict_of(confide.LogisticRegression(1.0, schema=SCHEMA), 5_000_000).rows == "Enough rows."


def test_nothing_is_said_of_twice_as_many_rows_that_would_bring_nothing():
    """Of 2,000 rows the model draws straight lines, and of 4,000 a curve, whose noise is larger."""
    target = {"column": "visits", "low": 0, "high": 20, "exposure": {"column": "years", "low": 0.1, "high": 5.0}}
    schema = Schema.from_dict({"target": target, "columns": {"age": {"low": 18, "high": 90}}})
    model = confide.AdditiveRegressor(0.5, schema=schema, loss="poisson")
    verdict, doubled = verdict_of(model, 2_000), simulate(model, 4_000, error=None, n_designs=2)
    assert ("twice as many" in verdict.rows) == (doubled.error < verdict.forecast.error)
    assert verdict.level == FEW


def test_a_verdict_without_a_forecast_is_quick_and_tells_the_rest():
    """As the commands show it before a charge."""
    verdict = verdict_of(confide.LogisticRegression(1.0, schema=SCHEMA), 20_000, with_forecast=False)
    assert (verdict.error, verdict.forecast, verdict.level) == ("", None, ENOUGH)


COUNTS = {"column": "y", "low": 0, "high": 20}


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (confide.PoissonRegressor, COUNTS),
        (confide.HuberRegressor, COUNTS),
        (confide.Ridge, COUNTS),
        (confide.LogisticRegression, {"column": "y", "classes": ["a", "b", "c"]}),
    ],
)
def test_a_plan_and_a_fit_say_the_same_of_the_rows(kind, target):
    """Counts, numbers and several classes are judged by one forecast, whichever command asks; it is not left out."""
    columns = {"age": {"low": 0, "high": 90}, "work": {"categories": ["a", "b", "c"]}}
    schema, levels = Schema.from_dict({"target": target, "columns": columns}), set()
    for n_rows in (400, 3_000, 12_000, 200_000):
        model = kind(confide.ApproxDP(0.5, 1e-6), schema=schema)
        planned = verdict_of(model, n_rows)
        fitted = verdict_of(model, n_rows, with_forecast=False, alone=True)
        assert planned.level == fitted.level
        assert planned.rows.startswith(fitted.rows)
        assert planned.error == fitted.error
        levels.add(fitted.level)
    assert ENOUGH in levels
    assert levels & {FEW, TOO_FEW}


def test_forecasts_of_counts_fall_with_rows_and_budget():
    """But for a hundredth of what a model could learn; they are means of many private fits, tested on the same rows."""
    rows, budgets = (1_000, 1_500, 2_000, 3_000, 4_000, 6_000, 12_000), (0.5, 1.0, 2.0, 4.0, 8.0)
    for given in ([(n_rows, 1.0) for n_rows in rows], [(1_500, epsilon) for epsilon in budgets]):
        models = [(confide.PoissonRegressor(confide.ApproxDP(e, 1e-6), target_bound=20.0), n) for n, e in given]
        errors = [simulate(model, n_rows, 5, error=0.8, n_designs=2).error for model, n_rows in models]
        assert all(later < earlier + 0.002 for earlier, later in pairwise(errors))
        assert errors[-1] < errors[0] - 0.02


def test_a_wasted_budget_is_a_level_of_its_own():
    """Of 20 rows, and at an epsilon of .001."""
    for epsilon, n_rows in ((0.5, 20), (0.001, 10_000)):
        verdict = verdict_of(confide.LogisticRegression(epsilon), n_rows, 4, with_forecast=False)
        assert verdict.level == WASTED
        assert verdict.rows.startswith("The noise hides what these rows say")


def test_a_plan_says_what_a_delta_would_bring():
    """Where the forecast says a lot; nothing where there is a delta already, or where rows abound."""
    model = confide.LogisticRegression(1.0, classes=[0, 1, 2])
    verdict = verdict_of(model, 900, 40)
    assert verdict.delta.startswith("With a delta of 1e-06 beside this epsilon")
    assert str(verdict).endswith(verdict.delta)
    assert verdict.to_dict()["with_delta"] == verdict.delta
    assert verdict_of(model, 3_000_000, 40).delta == ""
    assert verdict_of(model.set_params(budget=confide.ApproxDP(1.0, 1e-6)), 900, 40).delta == ""


def test_what_is_not_known_is_said():
    """Fits with a prior, and no privacy."""
    prior = confide.LogisticRegression(1.0, prior=confide.PublicPrior(([[0.1, 0.2, 0.0]], [0.0])))
    assert "unknown, because there are no forecasts" in verdict_of(prior, 100_000, 3).error
    assert verdict_of(confide.LogisticRegression(math.inf), 100, 3).rows.startswith("NOT PRIVATE")
    assert verdict_of(confide.Ridge(1.0, target_bound=1.0), 100_000, 3).level == ENOUGH
    with pytest.raises(confide.ParameterError, match="error must lie"):
        verdict_of(confide.LogisticRegression(1.0), 1000, 3, error=0.7)


def test_the_parts_of_a_budget_add_up_to_the_whole():
    """The centre, intervals, and the weights."""
    schema = load_adult().schema
    with_centre = confide.LogisticRegression(confide.ApproxDP(0.1, 1e-6), schema=schema).plan(3_000)
    with_intervals = confide.LogisticRegression(1.0, inference_share=0.25).plan(100_000, 3)
    plain = confide.LogisticRegression(1.0).plan(1000, 3)
    assert [name for name, _ in where_the_budget_goes(with_centre)] == ["the centre of the rows", "the weights"]
    assert where_the_budget_goes(with_intervals) == (("intervals", 0.25), ("the weights", 0.75))
    for plan in (with_centre, with_intervals, plain):
        assert math.isclose(sum(share for _, share in where_the_budget_goes(plan)), 1.0)
    assert budget_sentence(plain) == "All of the budget goes to the weights."
    assert budget_sentence(with_intervals) == "Of the budget, 0.25 goes to intervals, the rest to the weights."
    ridge = confide.Ridge(1.0, target_bound=1.0, intervals=True).plan(100_000, 3)
    assert budget_sentence(ridge) == "All of the budget goes to sums, of which weights and intervals are made."


def test_the_verdict_says_what_a_constant_answer_errs_by():
    """With the rate that is given; without one it names the option."""
    model = confide.LogisticRegression(1.0)
    assert "always answers the same errs by 22%." in verdict_of(model, 20_000, 4, error=0.2, positive_rate=0.22).error
    assert "always answers the same errs by 22%." in verdict_of(model, 20_000, 4, positive_rate=0.78).error
    assert "--positive-rate takes" in verdict_of(model, 20_000, 4, error=0.2).error
