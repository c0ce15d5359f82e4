"""How charges add up under each limit, and what the joint loss of a fixed batch costs."""

from __future__ import annotations

import math
from fractions import Fraction

from confide.accounting.filters import Amount, SumFilter, cost, filter_for, rounded_down
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.events import Event
from confide.privacy.gaussian import GaussianMechanism
from confide.privacy.objective_account import GaussianObjective

GAUSSIAN = Event(ApproxDP(1.0, 1e-6), GaussianMechanism(0.2))
OBJECTIVE = Event(ApproxDP(1.0, 1e-6), GaussianObjective(0.1, 0.02, 0.3, 0.01, Neighbours.REPLACE_ONE, True))


def test_ten_tenths_are_one():
    """Sums are exact in the decimals that were written."""
    filter_ = SumFilter(PureDP(1.0))
    total = cost(filter_, (Event(PureDP(0.1)),) * 10)
    assert filter_.admits(total)
    assert filter_.spent(total) == PureDP(1.0)
    assert filter_.remaining(total) == PureDP.of_sum(0.0)
    assert not filter_.admits(total + filter_.amount(Event(PureDP(1e-9))))


def test_epsilons_and_deltas_add_up_to_the_limit_exactly():
    """Ten of (0.4, 1e-7) fit (4, 1e-6); an eleventh does not, nor one with its delta alone too large."""
    filter_ = filter_for(ApproxDP(4.0, 1e-6), "sum")
    part = filter_.amount(Event(ApproxDP(0.4, 1e-7)))
    total = sum([part] * 10, Amount())
    assert filter_.admits(total)
    assert filter_.spent(total) == ApproxDP(4.0, 1e-6)
    assert not filter_.admits(total + part)
    assert not filter_.admits(filter_.amount(Event(ApproxDP(0.4, 1.1e-6))))
    assert filter_.remaining(part) == ApproxDP(3.6, 9e-7)


def test_what_a_currency_cannot_hold_is_never_admitted():
    """Deltas in a pure ledger, rho in a sum, bare deltas in a concentrated ledger, and no privacy anywhere."""
    for limit, accounting, event in (
        (PureDP(9.0), "sum", Event(ApproxDP(0.1, 1e-9))),
        (PureDP(9.0), "sum", Event(ZCDP(1e-6))),
        (ApproxDP(9.0, 1e-3), "sum", Event(ZCDP(1e-6))),
        (ZCDP(9.0), "sum", Event(ApproxDP(0.1, 1e-9))),
    ):
        filter_ = filter_for(limit, accounting)
        assert not filter_.admits(filter_.amount(event))
    for limit in (PureDP(9.0), ApproxDP(9.0, 0.1), ZCDP(9.0)):
        for accounting in ("sum", "renyi"):
            filter_ = filter_for(limit, accounting)
            for event in (Event(PureDP(math.inf)), Event(ZCDP(math.inf)), Event(ApproxDP(math.inf, 1e-6))):
                assert not filter_.admits(filter_.amount(event))


def test_amounts_add_up_part_by_part():
    """The slack too, which a Rényi ledger keeps for charges with a delta of their own."""
    one, other = (Amount(Fraction(k), Fraction(k, 10), Fraction(k, 7), Fraction(k, 3)) for k in (1, 2))
    assert one + other == Amount(Fraction(3), Fraction(3, 10), Fraction(3, 7), Fraction(1))


def test_the_next_number_below_is_taken_where_the_nearest_one_is_above():
    """So that what is left of a limit is never more than there is."""
    assert rounded_down(Fraction(3, 10)) == 0.3
    assert rounded_down(Fraction(3, 10) - Fraction(1, 2**80)) == math.nextafter(0.3, 0.0)
