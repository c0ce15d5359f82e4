"""Events: what a release costs, and its form in a file."""

from __future__ import annotations

import json
import math

import mpmath
import numpy as np
import pytest

from confide.accounting.filters import filter_for
from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.events import Event, PureMechanism, pure_renyi
from confide.privacy.gaussian import GaussianMechanism
from confide.privacy.objective_account import GaussianObjective

GAUSSIAN = Event(ApproxDP(1.0, 1e-6), GaussianMechanism(0.2))


OBJECTIVE = Event(ApproxDP(1.0, 1e-6), GaussianObjective(0.1, 0.02, 0.3, 0.01, Neighbours.REPLACE_ONE, True))


@pytest.mark.parametrize("event", [GAUSSIAN, OBJECTIVE, Event(PureDP(1.0)), Event(ZCDP(0.5))], ids=lambda e: str(e.budget))
def test_events_survive_a_file(event):
    """To JSON and back."""
    assert Event.from_dict(json.loads(json.dumps(event.to_dict(), allow_nan=False))) == event
    with pytest.raises(ParameterError):
        Event.from_dict({"budget": {"kind": "pure", "epsilon": 1.0}, "curve": {"kind": "laplace", "mu": 1.0}})


def test_a_pure_release_for_an_approximate_budget_needs_no_slack():
    """Its curve is pure: Rényi and zCDP ledgers take it, and a sum is charged the budget that was asked for."""
    event = Event(ApproxDP(0.5, 1e-6), PureMechanism(0.5))
    assert event.slack == 0.0
    assert event.rho == PureDP(0.5).to_zcdp().rho
    for limit in (ZCDP(0.2), ApproxDP(1.0, 1e-6)):
        filter_ = filter_for(limit, "renyi")
        assert filter_.admits(filter_.amount(event))
    filter_ = filter_for(ApproxDP(1.0, 1e-5), "sum")
    assert filter_.spent(filter_.amount(event)) == ApproxDP(0.5, 1e-6)
    assert Event.from_dict(json.loads(json.dumps(event.to_dict()))) == event


@pytest.mark.parametrize("epsilon", [1e-3, 0.4, 3.0, 15.0, 45.0])
@pytest.mark.parametrize("order", [1.0 + 2.0**-10, 1.5, 2.0, 7.0, 1000.0])
def test_pure_privacy_has_the_divergence_of_randomised_response(epsilon, order):
    """log(p^a q^(1 - a) + q^a p^(1 - a)) / (a - 1) with p / q = exp(epsilon), in 50 digits: never less, hardly more."""
    with mpmath.workdps(50):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        q, a = 1 - p, mpmath.mpf(order)
        exact = mpmath.log(p**a * q ** (1 - a) + q**a * p ** (1 - a)) / (a - 1)
        excess = float(pure_renyi(epsilon, order) / exact - 1)
    allowed = 2.0**-40 + 2.0**-50 / (order - 1.0)
    assert 0.0 <= excess <= 1.5 * allowed
    # Next to epsilon itself the bound is epsilon, and not more.
    assert excess >= 0.5 * allowed or pure_renyi(epsilon, order) == epsilon
    assert PureMechanism(epsilon).renyi(order) == pure_renyi(epsilon, order) <= epsilon


def test_the_allowance_for_lost_digits_grows_next_to_order_one():
    """Relative 2^-50 / (a - 1), beside 2^-40: at a - 1 = 2^-16 it is 64 times as much."""
    order = 1.0 + 2.0**-16
    with mpmath.workdps(60):
        a, epsilon = mpmath.mpf(order), mpmath.mpf(2.0)
        exact = mpmath.log(mpmath.cosh((a - 0.5) * epsilon) / mpmath.cosh(epsilon / 2)) / (a - 1)
        excess = float(pure_renyi(2.0, order) / exact - 1)
    assert excess == pytest.approx(2.0**-40 + 2.0**-34, rel=0.3)


def test_the_divergence_of_an_event_is_that_of_its_curve_or_else_of_its_budget():
    """rho a for concentrated privacy, that of epsilon for pure privacy, and a mu^2 / 2 with a Gaussian curve."""
    assert Event(ZCDP(0.5)).renyi(3.0) == 1.5
    assert Event(PureDP(0.7)).renyi(3.0) == pure_renyi(0.7, 3.0)
    assert Event(ApproxDP(0.7, 1e-6)).renyi(3.0) == pure_renyi(0.7, 3.0)
    assert Event(ApproxDP(9.0, 1e-6), PureMechanism(0.7)).renyi(3.0) == pure_renyi(0.7, 3.0)
    assert GAUSSIAN.renyi(3.0) == pytest.approx(1.5 * 0.2**2, rel=1e-9)
    assert OBJECTIVE.renyi(3.0) == OBJECTIVE.curve.renyi(3.0)


def test_the_rho_of_an_event_is_that_of_its_curve_or_else_of_its_budget():
    """Of a pure release epsilon tanh(epsilon / 2); of a curve half of its squared shift; of a concentrated budget itself."""
    pure = 0.7 * math.tanh(0.35)
    assert Event(ZCDP(0.5)).rho == 0.5
    assert Event(PureDP(0.7)).rho == pytest.approx(pure, rel=1e-9)
    assert Event(ApproxDP(9.0, 1e-6), PureMechanism(0.7)).rho == pytest.approx(pure, rel=1e-9)
    assert GAUSSIAN.rho == pytest.approx(0.5 * 0.2**2, rel=1e-9)


def test_an_approximate_budget_without_a_curve_has_its_delta_as_slack():
    """Outside of an event of that probability alone it has a divergence."""
    assert Event(ApproxDP(1.0, 1e-6)).slack == 1e-6
    assert GAUSSIAN.slack == Event(PureDP(1.0)).slack == Event(ZCDP(0.5)).slack == 0.0


def test_one_row_a_person_is_the_default():
    """A cap is written only where it was declared."""
    assert Event(PureDP(1.0)).rows_per_person == 1


@pytest.mark.parametrize("rows", [True, False, 0, -1, 1.0, 2.5, "2", None])
def test_a_cap_that_is_no_count_of_rows_is_refused(rows):
    """Whole numbers from 1 on are counts."""
    with pytest.raises(ParameterError, match="whole number of at least 1"):
        Event(PureDP(1.0), None, rows)


@pytest.mark.parametrize("rows", [1, 2, np.int64(7)])
def test_a_cap_is_kept_as_a_plain_whole_number(rows):
    """So that a ledger can write it."""
    kept = Event(PureDP(1.0), None, rows).rows_per_person
    assert type(kept) is int
    assert kept == rows
