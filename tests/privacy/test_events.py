"""What can be charged to a ledger."""

from __future__ import annotations

import dp_accounting
import pytest

from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.events import Event, as_events
from confide.privacy.gaussian import GaussianMechanism
from confide.privacy.objective_account import GaussianObjective

GAUSSIAN = Event(ApproxDP(1.0, 1e-6), GaussianMechanism(0.2))


OBJECTIVE = Event(ApproxDP(1.0, 1e-6), GaussianObjective(0.1, 0.02, 0.3, 0.01, Neighbours.REPLACE_ONE, True))


def test_events_of_dp_accounting_are_translated_and_the_unknown_is_refused():
    """Gaussian, Laplace, zCDP, composed; sampling and the like have no entry."""
    gaussian, laplace = dp_accounting.GaussianDpEvent(4.0), dp_accounting.LaplaceDpEvent(2.0)
    assert as_events(gaussian) == (Event(ZCDP(1 / 32), GaussianMechanism(0.25)),)
    assert as_events(laplace) == (Event(PureDP(0.5)),)
    assert as_events(dp_accounting.ZCDpEvent(0.3)) == (Event(ZCDP(0.3)),)
    assert as_events(dp_accounting.NoOpDpEvent()) == ()
    both = dp_accounting.ComposedDpEvent([gaussian, dp_accounting.SelfComposedDpEvent(laplace, 2)])
    assert as_events(both) == as_events(gaussian) + 2 * as_events(laplace)
    for unknown in (
        dp_accounting.NonPrivateDpEvent(),
        dp_accounting.PoissonSampledDpEvent(0.1, gaussian),
        dp_accounting.GaussianDpEvent(0.0),
        dp_accounting.ZCDpEvent(0.3, 0.1),
        *(dp_accounting.SelfComposedDpEvent(laplace, count) for count in (-1, 2.9, True, "3")),
    ):
        with pytest.raises(ParameterError, match="cannot be counted"):
            as_events(unknown)
    with pytest.raises(ParameterError):
        as_events("epsilon")


def test_noise_of_any_positive_scale_is_counted():
    """Also noise that is smaller than the distance of neighbours, and so much that no smaller rho can be written."""
    assert as_events(dp_accounting.GaussianDpEvent(0.5)) == (Event(ZCDP(2.0), GaussianMechanism(2.0)),)
    assert as_events(dp_accounting.LaplaceDpEvent(0.5)) == (Event(PureDP(2.0)),)
    (little,) = as_events(dp_accounting.GaussianDpEvent(1e7))
    assert (little.budget, little.curve) == (ZCDP(1e-12), GaussianMechanism(1e-7))
    assert as_events(dp_accounting.SelfComposedDpEvent(dp_accounting.LaplaceDpEvent(2.0), 0)) == ()


@pytest.mark.parametrize("event", [dp_accounting.LaplaceDpEvent(0.0), dp_accounting.GaussianDpEvent(0.0)])
def test_an_event_without_noise_is_refused(event):
    """It has no finite cost."""
    with pytest.raises(ParameterError):
        as_events(event)


def test_a_charge_has_a_bounded_number_of_events():
    """Each is stored; a composed event with more is refused before a list of them is made."""
    event = dp_accounting.SelfComposedDpEvent(
        dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(1000.0), 1_000), 100
    )
    assert len(as_events(event)) == 100_000
    for count in (101, 10**12):
        with pytest.raises(ParameterError, match=r"at most 100,000 events; compose these"):
            as_events(dp_accounting.SelfComposedDpEvent(event.event, count))
