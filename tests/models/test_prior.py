"""A prior as a value: its weights in the coordinates of a problem, what it refuses, and what a statement says of it."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import confide
from confide import ApproxDP, LogisticRegression, ParameterError, PureDP
from confide.guarantee import Circumstances, Guarantee, NamedLedger
from confide.models.prior import FittedTo, Prior
from confide.privacy.budgets import Neighbours

TWO = Prior.of_numbers([[1.0, 2.0], [3.0, 4.0]], [0.5, -6.0])
GUARANTEE = Guarantee(ApproxDP(1.0, 1e-6), Neighbours.REPLACE_ONE, "objective")


def test_weights_are_ordered_score_by_score_and_the_intercept_is_in_units_of_its_constant():
    """Each score has its columns and then its intercept; without a constant there is none."""
    assert TWO.weights(2, 2, 4.0) == (1.0, 2.0, 0.125, 3.0, 4.0, -1.5)
    assert Prior.of_numbers([1, 2], 0).weights(1, 2, 0.0) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("prior", "shape", "message"),
    [
        (TWO, (1, 2, 1.0), "2 scores of 2 columns, and this fit has 1 of 2"),
        (TWO, (2, 3, 1.0), "2 scores of 2 columns, and this fit has 2 of 3"),
        (TWO, (2, 2, 0.0), "set fit_intercept to True"),
        (TWO, (2, 2, 1e-310), "too large for this intercept_scaling"),
    ],
)
def test_weights_of_another_shape_are_refused(prior, shape, message):
    """The message says both shapes, which are public."""
    with pytest.raises(ParameterError, match=message):
        prior.weights(*shape)


@pytest.mark.parametrize(
    ("coef", "intercept"),
    [
        ([1.0, math.nan], 0.0),
        ([1.0, 2.0], math.inf),
        ([[1.0], [2.0]], 0.0),
        ([1.0, 2.0], [0.0, 1.0]),
        ("text", 0.0),
        ([[[1.0]]], [0.0]),
        ([], 0.0),
        ([1.0, [2.0]], 0.0),
    ],
    ids=str,
)
def test_what_is_no_pair_of_finite_coefficients_is_refused(coef, intercept):
    """One line says what a pair is."""
    with pytest.raises(ParameterError, match=r"a prior of coefficients is a pair \(coef, intercept\)"):
        Prior.of_numbers(coef, intercept)


def test_a_prior_can_be_hashed_and_compared_by_its_weights():
    """Plans are remembered by it."""
    assert hash(TWO) == hash(replace(TWO))
    assert replace(TWO, intercept=(0.5, 6.0)) != TWO
    assert replace(TWO, source="public") != TWO


def test_a_statement_says_where_the_prior_came_from():
    """Given numbers, a release in the same ledger or elsewhere, and a model that was declared public."""
    facts = Circumstances((9, 9), ledger=NamedLedger("abc", PureDP(2.0), 1))
    released = replace(TWO, source="release", guarantee=replace(GUARANTEE, circumstances=facts))
    assert "coefficients that were given. They were not made from these rows, unless by a release" in TWO.sentence(None)
    assert released.sentence("abc").endswith("That release was charged to the same ledger.")
    assert "released under approximate differential privacy with epsilon = 1" in released.sentence("abc")
    for elsewhere in (None, "other"):
        assert "its cost adds to that of this one" in released.sentence(elsewhere)
    assert "by attempt" not in released.sentence("abc")
    finished = replace(released, guarantee=replace(GUARANTEE, circumstances=replace(facts, attempts=3)))
    assert "by attempt 3 under its charge. What ended each earlier one" in finished.sentence("abc")
    # Without an identity on either side nothing is known.
    assert "same ledger" not in replace(released, guarantee=GUARANTEE).sentence(None)
    public = released.declared_public()
    assert "declared public" in public.sentence("abc")
    assert public.guarantee is None
    assert public.ledger is None


def test_a_model_without_a_guarantee_is_refused_where_privacy_is_promised():
    """Declared public it is not; nor where the fit promises nothing."""
    void = replace(TWO, source="release", guarantee=replace(GUARANTEE, void="no noise"))

    def planned(prior, **parameters):
        return LogisticRegression(prior=prior, **parameters)._given_prior()

    with pytest.raises(ParameterError, match=r"prior=confide\.PublicPrior\(model\)"):
        planned(void)
    assert planned(void, random_state=1) is planned(void, budget=math.inf) is void
    assert "a model without a guarantee" in void.sentence(None)
    for prior in (None, TWO, void.declared_public(), replace(void, guarantee=GUARANTEE)):
        assert planned(prior) is prior


def fitted_to(X, **parameters):
    model = confide.LogisticRegression(5.0, **parameters).fit(X, np.arange(len(X)) % 2)
    return confide.estimators.linear_model.released_model(model).as_prior().fitted_to


def test_a_prior_comes_back_from_json_to_the_bit():
    """With what its model was fitted to, where there was a model; other documents are refused."""
    its = FittedTo(None, (), None, None)
    released = replace(TWO, coef=((0.1, 1 / 3), (1e-300, -2.5)), source="release", guarantee=GUARANTEE, fitted_to=its)
    for prior in (TWO, released, released.declared_public()):
        written = json.loads(json.dumps(prior.to_dict()))
        again = Prior.from_dict(written, its)
        assert again == prior
        assert again.fitted_to is prior.fitted_to
    for change in ({"source": "release"}, {"source": "elsewhere"}, {"more": 1}, {"guarantee": GUARANTEE.to_dict()}):
        with pytest.raises(ParameterError, match="written by another version"):
            Prior.from_dict(TWO.to_dict() | change, its)


def test_a_prior_is_shown_in_one_short_line():
    """Its weights and its statement are not: a model that was fitted again shows it among its parameters."""
    assert repr(Prior.of_numbers([0.25, 0.5], [0.0])) == "<prior of 1 score of 2 weights, source coefficients>"
    rows = np.random.default_rng(0).normal(size=(200, 2)) / 4
    labels = (rows[:, 0] > 0).astype(int)
    again = LogisticRegression(2.0).fit(rows, labels).refit(rows, labels)
    assert repr(again.prior) == "<prior of 1 score of 2 weights, source release, PureDP(epsilon=2.0)>"
    assert len(repr(again)) < 160
