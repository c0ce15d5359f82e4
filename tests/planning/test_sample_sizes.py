"""Sample sizes are the least that suffice, and show how mechanisms differ."""

from __future__ import annotations

import math

import pytest

from confide import ZCDP, ApproxDP, GroupBound, HuberRegressor, LinearSVC, LogisticRegression, ParameterError, PureDP
from confide.planning.bounds import excess_risk_bound, utility_bound
from confide.planning.sample_sizes import sample_size

ESTIMATORS = {
    "pure": LogisticRegression(1.0),
    "approximate": LogisticRegression(ApproxDP(0.5, 1e-6), row_norm=GroupBound((2, 3), (1.0, 0.5))),
    "zcdp": LogisticRegression(ZCDP(0.1)),
    "output": LogisticRegression(1.0, mechanism="output"),
    "hinge": LinearSVC(1.0, loss="hinge"),
    "huber": HuberRegressor(1.0, target_bound=1.0, threshold=0.1),
}


@pytest.mark.parametrize("population", [False, True], ids=["rows", "population"])
@pytest.mark.parametrize("name", ["pure", "approximate", "output", "hinge", "huber"])
def test_a_sample_size_is_the_least_that_suffices(name, population):
    """At its own alpha one row fewer does not, and the bound is below the target."""
    estimator = ESTIMATORS[name]
    answer = sample_size(estimator, 5, excess=0.1, reference_norm=2.0, population=population)
    value = answer.bound.excess_risk if population else answer.bound.excess_loss
    assert value <= 0.1
    again = type(estimator)(**estimator.get_params() | {"alpha": answer.plan.problem.l2 / answer.n_rows})
    fewer = utility_bound(again.plan(answer.n_rows - 1, 5), reference_norm=2.0)
    assert (fewer.excess_risk if population else fewer.excess_loss) > 0.1 * (1.0 - 1e-3)
    # Five times the budget never needs more rows.
    if name != "hinge":
        richer = type(estimator)(**estimator.get_params() | {"budget": PureDP(5.0)})
        assert sample_size(richer, 5, excess=0.1, reference_norm=2.0, population=population).n_rows <= answer.n_rows


def test_the_published_orders_of_sample_sizes_are_seen():
    """Half the budget needs twice the rows, and objective perturbation needs fewer than output perturbation."""

    def rows(budget, mechanism, excess=0.02):
        return sample_size(LogisticRegression(budget, mechanism=mechanism), 5, excess=excess, reference_norm=4.0).n_rows

    assert rows(0.1, "objective") == pytest.approx(2 * rows(0.2, "objective"), rel=0.02)
    assert rows(0.1, "objective") < rows(0.1, "output")
    # The term of order excess^(-3/2) that output perturbation has: a quarter of the excess asks for eight times the rows.
    assert rows(0.1, "output", 0.005) / rows(0.1, "output") > 6.0
    assert rows(0.1, "objective", 0.005) / rows(0.1, "objective") < 4.5


def test_a_sample_size_for_a_private_number_of_rows_is_refused():
    """The noise depends on the declared bounds, not on the number asked about: any would seem to suffice."""
    with pytest.raises(ParameterError, match="n_rows_bounds"):
        sample_size(LogisticRegression(1.0, neighbours="add-or-remove-one", n_rows_bounds=(900, 1100)), 5, excess=0.05)


def test_rows_that_suffice_for_the_loss_on_new_rows_do_so():
    """By the bound with a logarithm: at the plan's own alpha, and a hundredth fewer do not; far fewer than by Markov's."""
    model = LogisticRegression(1.0, mechanism="objective", fit_intercept=False)
    answer = sample_size(model, 5, excess=0.1, by="excess_risk_bound")
    assert excess_risk_bound(answer.plan).excess_risk == answer.bound.excess_risk <= 0.1
    again = LogisticRegression(1.0, mechanism="objective", fit_intercept=False, centre=False, alpha=answer.plan.alpha)
    assert excess_risk_bound(again.plan(round(0.99 * answer.n_rows), 5)).excess_risk > 0.1
    assert 5 * answer.n_rows < sample_size(model, 5, excess=0.1, population=True).n_rows


def test_the_contrast_of_the_mechanisms_is_seen():
    """Where noise dominates: d^2 or d for Laplace or Gaussian noise, 1 / alpha or 1 / alpha^2 in objective or weights."""

    def bound(width, budget, mechanism="objective", alpha=0.01):
        options = {"alpha": alpha, "mechanism": mechanism, "centre": False, "fit_intercept": False}
        plan = LogisticRegression(budget, **options).plan(10**6, width)
        return excess_risk_bound(plan, reference_norm=1e-3).excess_risk

    assert 8.5 < bound(64, 1e-3) / bound(16, 1e-3) < 16.5
    assert 2.3 < bound(64, ZCDP(1e-7)) / bound(16, ZCDP(1e-7)) < 4.2
    assert bound(4, 1e-3, alpha=0.005) / bound(4, 1e-3) == pytest.approx(2.0, rel=0.05)
    assert bound(4, 1e-2, "output", 0.0005) / bound(4, 1e-2, "output", 0.001) == pytest.approx(4.0, rel=0.1)


def test_a_small_excess_favours_noise_in_the_objective():
    """Noise on the weights asks for rows in proportion to excess^(-3/2)."""
    sizes = [
        sample_size(LogisticRegression(0.01, mechanism=m), 4, excess=0.05, by="excess_risk_bound").n_rows
        for m in ("objective", "output")
    ]
    assert 1.2 * sizes[0] < sizes[1]


def test_numbers_and_names_outside_their_ranges_are_refused():
    """Before anything is computed."""
    for given in ({"failure": 0.0}, {"reference_norm": 0.0}, {"excess": 0.0}, {"excess": math.inf}, {"by": "hope"}):
        with pytest.raises(ParameterError):
            sample_size(LogisticRegression(1.0), 3, **{"excess": 0.1} | given)
