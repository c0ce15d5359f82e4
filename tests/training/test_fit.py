"""One fit: check, plan, guarantee, charge, release. Nothing is charged unless all that could fail has passed."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from confide.accounting.ledger import Ledger
from confide.budget_warnings import cautions
from confide.errors import InputError, NotCertified, ParameterError, PrivacyWarning
from confide.inference.intervals import Evidence
from confide.intake.rows import checked_input
from confide.privacy.budgets import ApproxDP, PureDP
from confide.privacy.noise import Entropy
from confide.training import fit
from confide.training.charge import Charge
from confide.training.plan import make_plan
from tests.training.examples import RICH, least_squares, rows_and_labels, settings, source, specification


def trained(ledger, given=None, **changes):
    """The model of 300 rows."""
    X, y = rows_and_labels() if given is None else given
    return fit.train(checked_input(X, y), specification(), settings(**changes), Charge(ledger, None, "fit"))


def test_a_fit_is_charged_once_and_states_its_budget():
    """One event of the budget that was asked for."""
    ledger = Ledger(limit=2.0)
    model = trained(ledger)
    assert ledger.spent() == PureDP(1.0)
    assert len(ledger.entries()) == 1
    assert model.guarantee.budget == PureDP(1.0)


STEPS = ["plan_for", "sentences_of_rows", "guarantee_of", "before_charge", "charge_and_release"]


def test_the_steps_of_a_fit_come_in_the_order_of_its_docstring(monkeypatch):
    """Plan, guarantee and second account, then the charge; the release is made inside of the charge."""
    called = []

    def recorded(name):
        original = getattr(fit, name)
        monkeypatch.setattr(fit, name, lambda *given, **named: called.append(name) or original(*given, **named))

    for name in (*STEPS, "released"):
        recorded(name)
    trained(None)
    assert called == [*STEPS, "released"]


@pytest.mark.parametrize("step", STEPS[:-1])
def test_nothing_is_charged_where_a_step_before_the_charge_fails(step, monkeypatch):
    """Whatever the failure is."""
    ledger = Ledger(limit=2.0)

    def failing(*_):
        raise NotCertified(step)

    monkeypatch.setattr(fit, step, failing)
    with pytest.raises(NotCertified, match=step):
        trained(ledger)
    assert len(ledger.entries()) == 0


def test_nothing_is_charged_where_rows_or_parameters_are_refused():
    """A row that is no number, intervals that cannot be trusted, and a number of rows outside of the bounds."""
    ledger = Ledger(limit=2.0)
    X, y = rows_and_labels()
    X[7, 1] = np.nan
    with pytest.raises(InputError):
        trained(ledger, (X, y))
    with pytest.raises(ParameterError, match="interval"):
        trained(ledger, budget=PureDP(0.01), inference_share=0.3)
    private = Ledger(limit=2.0, neighbours="add-or-remove-one")
    with pytest.raises(ParameterError, match="n_rows_bounds"):
        trained(private, neighbours=private.neighbours, n_rows_bounds=(400, 500))
    assert len(ledger.entries()) == len(private.entries()) == 0


def test_a_batch_was_warned_of_when_it_was_planned():
    """A fit with a plain ledger warns of a large delta; a fit that a batch pays for does not warn again."""
    budget = ApproxDP(1.0, 0.01)
    ledger = Ledger(limit=ApproxDP(10.0, 0.1))
    assert cautions(budget, 300, 300)
    with pytest.warns(PrivacyWarning, match="delta"):
        trained(ledger, budget=budget)
    batch = ledger.plan([make_plan(settings(budget=budget), 2, 300)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        trained(batch, budget=budget)


def test_all_noise_of_a_release_is_on_one_grid_or_on_two():
    """Weights alone, weights and moments, sums of least squares, and none without privacy."""
    plan = make_plan(settings(), 2, 300)
    assert fit.lattices_of(plan) == (plan.lattice,)
    both = make_plan(settings(budget=RICH, inference_share=0.3), 2, 3000)
    assert fit.lattices_of(both) == (both.lattice, both.intervals.moments.lattice)
    assert None not in fit.lattices_of(both)
    sums = make_plan(least_squares(), 2, 300)
    assert fit.lattices_of(sums) == (sums.lattice,)
    assert fit.lattices_of(make_plan(settings(budget=PureDP(math.inf)), 2, 300)) == (None,)


def test_a_plan_with_intervals_releases_what_they_are_made_of():
    """A plan without them does not."""
    plan = make_plan(settings(budget=RICH, inference_share=0.3), 2, 3000)
    _, evidence, *_ = fit.released(plan, source(3000), Entropy.seeded(0))
    assert isinstance(evidence, Evidence)
    plain = make_plan(settings(), 2, 300)
    assert fit.released(plain, source(), Entropy.seeded(0))[1] is None


def test_a_plan_of_sums_releases_the_weights_of_the_sums():
    """Without privacy they are those of the normal equations with a ridge of 1."""
    rows = source()
    plan = make_plan(least_squares(budget=PureDP(math.inf)), 2, 300)
    X = rows.blocks.block(0, 300)
    expected = np.linalg.solve(X.T @ X + np.eye(2), X.T @ rows.labels)
    np.testing.assert_allclose(fit.released(plan, rows, Entropy.fresh())[0].coef[0], expected, rtol=1e-12)
