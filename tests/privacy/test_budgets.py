"""Budgets: values in three currencies, and conversions that never lose on the private side."""

from __future__ import annotations

import copy
import json
import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from confide.errors import ParameterError
from confide.privacy.budgets import (
    ZCDP,
    ApproxDP,
    Neighbours,
    PureDP,
    as_budget,
    budget_from_dict,
    budget_of_row,
    pure_epsilon,
    pure_within,
    share_of,
    shown_amounts,
    with_amount,
)
from confide.privacy.events import pure_renyi

BUDGETS = [PureDP(0.3), PureDP(math.inf), ApproxDP(0.5, 1e-6), ApproxDP(math.inf, 1e-9), ZCDP(0.25), ZCDP(math.inf)]


@pytest.mark.parametrize("number", [0, 0.0, -1.0, math.nan, -math.inf, True, False, "1", None, 1j, [1.0], 1e-31, 1e20])
def test_a_number_that_is_no_privacy_parameter_is_refused(number):
    """By every currency, and wherever a bare number stands for a budget."""
    for make in (PureDP, ZCDP, as_budget, lambda x: ApproxDP(x, 1e-6), lambda x: ApproxDP(1.0, x)):
        with pytest.raises(ParameterError):
            make(number)
    with pytest.raises(ParameterError):
        ApproxDP(1.0, 1.0)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_budgets_are_values(budget):
    """Equal, hashable, frozen, picklable and JSON-able; str() is a sentence; numbers of NumPy count as numbers."""
    assert pickle.loads(pickle.dumps(budget)) == budget == copy.deepcopy(budget) == as_budget(budget)
    assert hash(copy.copy(budget)) == hash(budget)
    assert budget_from_dict(json.loads(json.dumps(budget.to_dict(), allow_nan=False))) == budget
    with pytest.raises(AttributeError):
        setattr(budget, next(iter(budget.ranges)), 2.0)
    assert ("privacy with" in str(budget)) == budget.is_private
    assert as_budget(np.float32(1)) == as_budget(1) == PureDP(1.0) != ApproxDP(1.0, 1e-6)


def test_budgets_of_one_currency_are_ordered():
    """By epsilon, then delta; two currencies are not compared."""
    assert PureDP(0.5) < PureDP(1)
    assert ApproxDP(0.5, 1e-5) < ApproxDP(1.0, 1e-6) < ApproxDP(1.0, 1e-5)
    with pytest.raises(TypeError):
        assert PureDP(1.0) < ZCDP(1.0)


def test_an_unknown_kind_of_budget_is_refused():
    """Also one whose numbers are missing or too many."""
    for value in ({}, {"kind": "gdp", "mu": 1.0}, {"kind": "pure"}, {"kind": "pure", "epsilon": 1.0, "delta": 0.1}):
        with pytest.raises(ParameterError, match="unknown kind"):
            budget_from_dict(value)


def test_neighbours_are_named_by_their_strings():
    """A str enum with two members."""
    assert Neighbours.parse("replace-one") is Neighbours.REPLACE_ONE
    assert Neighbours.parse(Neighbours.ADD_OR_REMOVE_ONE) == "add-or-remove-one"
    with pytest.raises(ParameterError, match="replace-one"):
        Neighbours.parse("nearby")


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 5.0, 50.0])
def test_pure_privacy_becomes_renyi_and_concentrated_privacy_as_randomised_response_does(epsilon):
    """The exact divergence of randomised response at each order, and rho its supremum over orders; neither is below."""
    with mpmath.workdps(60):
        one = mpmath.e ** mpmath.mpf(epsilon)
        p, q = one / (1 + one), 1 / (1 + one)
        rho = PureDP(epsilon).to_zcdp().rho
        for order in (1.0001, 1.5, 2.0, 10.0, 300.0):
            a = mpmath.mpf(order)
            exact = mpmath.log(p**a * q ** (1 - a) + q**a * p ** (1 - a)) / (a - 1)
            assert float(exact) * (1 - 1e-7) <= pure_renyi(epsilon, order) <= float(exact) * (1 + 1e-6)
            assert float(exact) <= rho * order
        assert rho == pytest.approx(epsilon * math.tanh(epsilon / 2), rel=1e-9)


@pytest.mark.parametrize("rho", [1e-12, 1e-6, 0.005, 0.5, 10.0, 1e6, 1e9])
def test_the_pure_epsilon_within_a_rho_is_the_largest(rho):
    """Its own rho is at most the one given, and close to it."""
    epsilon = pure_within(rho)
    assert rho * (1 - 1e-9) <= PureDP(epsilon).to_zcdp().rho <= rho


def test_conversions_go_to_weaker_notions_alone():
    """Pure to approximate and concentrated, concentrated to approximate, approximate to a larger delta."""
    assert PureDP(1.0).to_approx(1e-6) == ApproxDP(1.0, 1e-6)
    assert ApproxDP(1.0, 1e-6).to_approx(1e-5) == ApproxDP(1.0, 1e-5)
    with pytest.raises(ParameterError, match="smaller delta"):
        ApproxDP(1.0, 1e-6).to_approx(1e-7)
    assert not hasattr(ApproxDP(1.0, 1e-6), "to_zcdp")
    assert not hasattr(ZCDP(1.0), "to_pure")


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_the_budget_of_a_row_composes_to_that_of_a_person(rows):
    """k steps of group privacy: epsilons add, rho grows with k^2, delta with the geometric sum of exp(i epsilon)."""
    assert rows * budget_of_row(PureDP(1.4), rows).epsilon == pytest.approx(1.4, rel=1e-9)
    assert rows**2 * budget_of_row(ZCDP(0.3), rows).rho == pytest.approx(0.3, rel=1e-9)
    of_row = budget_of_row(ApproxDP(1.4, 1e-5), rows)
    delta = sum(math.exp(i * of_row.epsilon) * of_row.delta for i in range(rows))
    assert (rows * of_row.epsilon, delta) == pytest.approx((1.4, 1e-5), rel=1e-9)
    assert delta <= 1e-5
    for budget in (PureDP(1.4), ZCDP(0.3), ApproxDP(1.4, 1e-5)):
        assert (budget_of_row(budget, rows) == budget) == (rows == 1)


def test_nothing_spent_is_a_sum_and_no_budget():
    """Ledgers show zero; a release cannot have it."""
    for empty in (PureDP.of_sum(0.0), ZCDP.of_sum(0.0), ApproxDP.of_sum(0.0, 0.0)):
        assert empty.is_private
        with pytest.raises(ParameterError):
            as_budget(empty)
    with pytest.raises(ParameterError):
        PureDP.of_sum(-1.0)


def test_a_budget_that_cannot_be_shared_by_a_persons_rows_says_so():
    """A large epsilon does not overflow, and too small a part of delta or rho names the rows."""
    assert budget_of_row(ApproxDP(100.0, 1e-2), 2).epsilon == pytest.approx(50.0)
    for budget, rows in ((ApproxDP(1e4, 1e-6), 2), (ZCDP(1e-11), 10), (PureDP(1e-9), 2)):
        with pytest.raises(ParameterError, match=f"{rows} rows of one person"):
            budget_of_row(budget, rows)


def test_a_delta_may_stay_as_it_is():
    assert ApproxDP(1.0, 1e-6).to_approx(1e-6) == ApproxDP(1.0, 1e-6)


@pytest.mark.parametrize("delta", [0.0, 1.0, 1.5, -0.1, math.nan])
def test_a_concentrated_budget_converts_at_deltas_between_0_and_1(delta):
    with pytest.raises(ParameterError, match="strictly between 0 and 1"):
        ZCDP(0.1).to_approx(delta)
    assert ZCDP(0.1).to_approx(0.01).delta == 0.01


@pytest.mark.parametrize("value", ["1", None, True, [1.0], 1j])
def test_what_is_no_number_is_no_budget(value):
    """A truth value neither, although Python counts it as a number."""
    with pytest.raises(ParameterError, match="must be a positive number"):
        as_budget(value)
    assert as_budget(2) == PureDP(2.0)


@pytest.mark.parametrize(
    ("make", "low", "high"),
    [
        (PureDP, 1e-9, 1e9),
        (ZCDP, 1e-12, 1e9),
        (lambda e: ApproxDP(e, 1e-6), 1e-9, 1e9),
        (lambda d: ApproxDP(1.0, d), 1e-30, 0.5),
    ],
)
def test_amounts_are_accepted_from_end_to_end_of_their_ranges(make, low, high):
    """Those of the docstrings, ends included; a tenth beyond them is refused."""
    assert make(low) != make(high)
    for wrong in (low / 1.1, high * 1.1):
        with pytest.raises(ParameterError):
            make(wrong)


@pytest.mark.parametrize("rows", [2, 7])
def test_the_budget_of_a_row_is_rounded_down_by_a_part_in_two_to_the_forty(rows):
    """epsilon / k and rho / k^2; and delta (exp(epsilon / k) - 1) / (exp(epsilon) - 1)."""
    part, epsilon = 2.0**-40, budget_of_row(PureDP(0.9), rows).epsilon
    of_both, rho = budget_of_row(ApproxDP(0.9, 1e-6), rows), budget_of_row(ZCDP(0.9), rows).rho
    delta = 1e-6 * math.expm1(of_both.epsilon) / math.expm1(0.9)
    for found, exact in ((epsilon, 0.9 / rows), (of_both.epsilon, 0.9 / rows), (rho, 0.9 / rows**2), (of_both.delta, delta)):
        assert 0.9 * part < 1.0 - found / exact < 1.1 * part


@pytest.mark.parametrize("rho", [1e-6, 0.5, 10.0])
def test_the_pure_epsilon_within_a_rho_is_rounded_down_by_a_part_in_two_to_the_thirty_eight(rho):
    with mpmath.workdps(40):
        exact = mpmath.findroot(lambda e: e * mpmath.tanh(e / 2) - rho, pure_within(rho))
        assert 0.9 * 2.0**-38 < 1 - pure_within(rho) / exact < 1.1 * 2.0**-38


def test_amounts_become_floats_and_their_refusals_name_infinity_where_it_is_allowed():
    """An infinite delta is none."""
    assert [type(amount) for amount in (PureDP(1).epsilon, ZCDP(np.float32(1.0)).rho)] == [float, float]
    with pytest.raises(ParameterError, match=r"float.'inf'. for a model without privacy"):
        PureDP(-1.0)
    with pytest.raises(ParameterError, match=r"delta must be a number from 1e-30 to 0\.5\.$"):
        ApproxDP(1.0, math.inf)


def test_one_infinite_amount_is_no_privacy_and_one_negative_amount_no_sum():
    assert not ApproxDP(math.inf, 1e-9).is_private
    for amounts in ((-1.0, 0.1), (1.0, -0.1)):
        with pytest.raises(ParameterError, match="not negative"):
            ApproxDP.of_sum(*amounts)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 9.0])
def test_the_rho_of_a_pure_budget_is_rounded_up_by_a_part_in_two_to_the_forty(epsilon):
    with mpmath.workdps(40):
        exact = epsilon * mpmath.tanh(mpmath.mpf(epsilon) / 2)
        assert 0.9 * 2.0**-40 < PureDP(epsilon).to_zcdp().rho / exact - 1 < 1.1 * 2.0**-40
    assert PureDP(math.inf).to_zcdp() == ZCDP(math.inf)


def test_the_pure_epsilon_of_a_budget_is_its_own_or_that_within_its_rho():
    assert [pure_epsilon(budget) for budget in (PureDP(0.3), ApproxDP(0.4, 1e-6))] == [0.3, 0.4]
    assert pure_epsilon(ZCDP(0.2)) == pure_within(0.2)


@pytest.mark.parametrize(
    ("budget", "symbol", "amount", "slack", "shown"),
    [
        (PureDP(0.5), "epsilon", 0.5, 0.0, "epsilon = 0.5"),
        (ApproxDP(0.5, 1e-6), "epsilon", 0.5, 1e-6, "epsilon = 0.5, delta = 1e-06"),
        (ZCDP(0.25), "rho", 0.25, 0.0, "rho = 0.25"),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_a_budget_answers_what_it_is(budget, symbol, amount, slack, shown):
    """Its first number and the name of that, its delta or 0, its kind, and all numbers in words, in order of its fields."""
    assert (budget.symbol, budget.amount, budget.slack) == (symbol, amount, slack)
    kinds = {"pure": budget.is_pure, "approximate": budget.is_approximate, "zcdp": budget.is_concentrated}
    assert [kind for kind, holds in kinds.items() if holds] == [budget.kind]
    assert list(budget.amounts) == list(budget.ranges)
    assert shown_amounts(budget) == shown
    assert with_amount(budget, 2.0) == budget_from_dict(budget.to_dict() | {symbol: 2.0})


@pytest.mark.parametrize("budget", [PureDP(0.3), ApproxDP(0.7, 1e-6), ZCDP(0.1)], ids=lambda budget: budget.kind)
@pytest.mark.parametrize("share", [0.05, 0.1, 0.3, 0.7])
def test_two_parts_of_a_budget_cost_at_most_the_whole(budget, share):
    """In exact arithmetic, for every number of the budget; and almost nothing is lost."""
    parts = share_of(budget, share), share_of(budget, 1.0 - share)
    for name in budget.ranges:
        total = sum(Fraction(getattr(part, name)) for part in parts)
        assert 1 - Fraction(1, 2**48) <= total / Fraction(getattr(budget, name)) <= 1


def test_a_whole_budget_and_an_infinite_one_are_not_made_smaller():
    """A share of 1 is the budget itself; without privacy there is nothing to share."""
    assert share_of(PureDP(0.3), 1.0) == PureDP(0.3)
    assert share_of(PureDP(math.inf), 0.3) == PureDP(math.inf)


@pytest.mark.filterwarnings("error")
def test_an_amount_of_few_digits_is_compared_without_a_warning():
    """The ends of its range are no numbers of its type."""
    assert PureDP(np.float16(0.5)) == PureDP(0.5)
    with pytest.raises(ParameterError, match="epsilon must be a number"):
        PureDP(np.float16(0.0))
