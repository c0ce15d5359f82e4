"""The sentences of a guarantee: what must be true of rows, parameters and noise for it to hold."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from confide import Ledger, LogisticRegression, PureDP, Schema
from confide.budget_warnings import void_because
from confide.data.arrays import PLACES
from confide.features.encoder import Encoder
from confide.guarantee import Circumstances, NamedLedger
from confide.models.prior import Prior
from confide.privacy.budgets import Neighbours
from confide.training.assumptions import circumstances_of, guarantee_of, sentences_of_rows
from confide.training.charge import Charge
from confide.training.plan import make_plan
from confide.training.settings import SquaredError
from tests.training.examples import RICH, least_squares, settings


def test_the_guarantee_names_the_cap_and_the_class_weights(rows):
    """And says nothing of weights where every row counts 1."""
    X, y = rows
    model = LogisticRegression(1.0, max_sample_weight=2.5, class_weight={0: 1.0, 1: 3.0})
    statement = model.fit(X, y, sample_weight=np.ones(len(y))).guarantee_.statement()
    assert "cap 2.5" in statement
    assert "{0: 1, 1: 3}" in statement
    assert "cap 1; not all are 0." in LogisticRegression(1.0).fit(X, y, sample_weight=np.ones(len(y))).guarantee_.statement()
    assert "weight of a row" not in LogisticRegression(1.0).fit(X, y).guarantee_.statement()


HERE = SimpleNamespace(place="here")


def guarantee(facts, n_rows=3000, seed=None, ledger=None, unusual=(), of_rows=("Labels are labels.",), encoder=None):
    """That of a plan for two columns."""
    columns = SimpleNamespace(feature_names_in=None)
    rows = SimpleNamespace(labels_declared=True, has_weights=False, source=HERE, columns=columns)
    plan = make_plan(facts, 2, n_rows)
    circumstances = circumstances_of(plan.problem, rows, facts.prior, Charge(ledger, seed, "fit"))
    return guarantee_of(plan, of_rows, encoder, circumstances, unusual)


KINDS = {
    "the objective": (settings(), "objective", "multiples of 2^"),
    "the weights": (settings(mechanism="output"), "output", "multiples of 2^"),
    "intervals": (settings(budget=RICH, inference_share=0.25), "objective", "multiples of 2^"),
    "sums": (least_squares(), "sufficient-statistics", "computed only from sums that are"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_private_release_states_its_budget_its_rows_and_its_noise(kind):
    """Persons, number of rows, bound, what came with the rows, checks, and the exact noise."""
    facts, mechanism, exact = KINDS[kind]
    found = guarantee(facts)
    text = " ".join(found.assumptions)
    assert (found.budget, found.mechanism, found.void) == (facts.budget, mechanism, None)
    for sentence in (
        "Each person contributed one row at most.",
        "The number of rows, 3,000, is public.",
        "(L2 norm 1); bounds, categories and parameters were chosen without looking at the rows.",
        "No step before the fit, such as scaling, filling of gaps or a choice of columns, learned from the rows.",
        "Labels are labels.",
        "The rows were checked beforehand",
        exact,
        "No ledger records this release",
    ):
        assert sentence in text


def test_moments_for_intervals_are_named_with_their_share():
    """The budget of the guarantee is that of both releases. Other plans do not speak of moments."""
    found = guarantee(settings(budget=RICH, inference_share=0.25))
    assert "they cost 0.25 of the budget, which covers both." in " ".join(found.assumptions)
    assert "released weights and moments" in " ".join(found.assumptions)
    assert "moments" not in " ".join(guarantee(settings()).assumptions)


def test_the_sum_of_squared_targets_is_named_where_it_is_released():
    """For intervals of least squares, and not without them."""
    squares = "the sum of the squared targets is released with noise"
    with_square = replace(least_squares(budget=RICH), minimised=SquaredError(1.0, with_square=True))
    assert squares in " ".join(guarantee(with_square, 100_000).assumptions)
    assert squares not in " ".join(guarantee(least_squares()).assumptions)


@pytest.mark.parametrize("facts", [settings(budget=PureDP(math.inf)), least_squares(budget=PureDP(math.inf))])
def test_an_infinite_budget_is_void_and_claims_nothing_of_noise(facts):
    """The bound is stated, but not that it was chosen without looking."""
    found = guarantee(facts)
    assert "no noise was added, and the model may reveal any row" in found.void
    assert not any("exact noise" in sentence or "chosen without" in sentence for sentence in found.assumptions)


def test_a_seed_is_void_and_claims_nothing_of_noise():
    """Whoever knows the seed can take the noise away."""
    found = guarantee(settings(), seed=3)
    assert "fixed seed" in found.void
    assert not any("exact noise" in sentence for sentence in found.assumptions)
    assert void_because(PureDP(1.0), None, "nothing happens") is None


def test_a_private_number_of_rows_is_stated_by_its_bounds():
    """Which were not learned from the rows."""
    facts = settings(neighbours=Neighbours.ADD_OR_REMOVE_ONE, n_rows_bounds=(2000, 4000))
    text = " ".join(guarantee(facts, None).assumptions)
    assert "The number of rows is private; it lies between the declared bounds 2,000 and 4,000" in text
    assert "is public" not in text


def test_a_ledger_is_stated_by_its_limit_and_its_persons():
    """For how many rows a person its limit holds is said where the release protects another number."""
    text = " ".join(guarantee(settings(), ledger=Ledger(limit=3.0)).assumptions)
    assert "charged to a ledger with the limit: pure differential privacy with epsilon = 3;" in text
    three = Ledger(limit=3.0, max_rows_per_person=3)
    text = " ".join(guarantee(settings(), ledger=three).assumptions)
    assert "epsilon = 3 for persons with at most 3 rows;" in text
    assert "No ledger records" not in text


def test_a_bound_that_nobody_declared_is_called_the_default():
    """A norm of 1 holds where none is given; any other was declared."""
    assert "clipped to its default bound (L2 norm 1)" in " ".join(guarantee(settings()).assumptions)
    X, y = np.zeros((50, 2)), np.arange(50) % 2
    declared = LogisticRegression(1.0, row_norm=3.0, fit_intercept=False, classes=[0, 1]).fit(X, y)
    assert "clipped to its declared bound (L2 norm 3)" in declared.guarantee_.statement()


def test_persons_are_stated_by_their_cap_or_by_their_column():
    """A cap alone is an assumption; a column of the schema lets rows beyond the cap be dropped."""
    assert "Each person contributed 4 rows at most." in guarantee(settings(rows_per_person=4)).assumptions
    column = Schema(columns={name: {"low": 0, "high": 1} for name in "ab"}, person="patient")
    text = " ".join(guarantee(settings(rows_per_person=4), encoder=Encoder(column)).assumptions)
    assert "patient" in text
    assert "Each person contributed 4 rows at most." not in text


def test_codes_for_missing_cells_are_stated_and_not_counted():
    """By their columns; nothing is said where none are declared."""
    columns = {"age": {"low": 0, "high": 110, "missing": [999, -9]}, "sex": {"categories": ["F", "M"], "missing": ["x"]}}
    sentence = 'Codes count as missing cells: 999, -9 in "age"; x in "sex". They were declared without looking at the rows.'
    assert sentence in guarantee(settings(), encoder=Encoder(Schema(columns))).assumptions
    plain = guarantee(settings(), encoder=Encoder(Schema({"age": {"low": 0, "high": 110, "missing": True}})))
    assert "Codes" not in " ".join(plain.assumptions)


def test_what_is_unusual_about_a_budget_is_part_of_the_guarantee():
    """As it was warned of."""
    assert "Its delta is large." in guarantee(settings(), unusual=("Its delta is large.",)).assumptions


def test_the_place_of_the_rows_is_stated_where_it_is_trusted():
    """Rows that this process reads need no sentence; others bring their own."""
    here, there = (Circumstances((10, 10), place=place) for place in ("here", "parties"))
    assert sentences_of_rows("Labels are labels.", settings(), there, None, None) == (
        "Labels are labels.",
        PLACES["parties"],
    )
    assert sentences_of_rows("Labels are labels.", settings(), here, None, None) == ("Labels are labels.",)


def test_a_prior_is_stated_with_where_it_came_from():
    """It has a sentence of its own, which knows the ledger of the fit."""
    prior, ledger = Prior.of_numbers([1.0, 2.0], 0.5), Ledger(limit=3.0)
    alone = Circumstances((10, 10))
    charged = replace(alone, ledger=NamedLedger(ledger.identity, ledger.limit, ledger.max_rows_per_person))
    assert sentences_of_rows("Labels.", settings(prior=prior), alone, None, None) == ("Labels.", prior.sentence(None))
    released = replace(prior, source="release", guarantee=guarantee(settings(), ledger=ledger))
    (_, sentence) = sentences_of_rows("Labels.", settings(prior=released), charged, None, None)
    assert sentence == released.sentence(ledger.identity)
    assert "same ledger" in sentence
