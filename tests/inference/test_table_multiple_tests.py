"""Corrected p-values and simultaneous intervals: beside statsmodels, beside simulation, and their refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import laplace, multivariate_normal

from confide.errors import ParameterError
from confide.inference.intervals import JointUncertainty, Uncertainty, of_all_scores
from confide.inference.table import (
    METHODS,
    METHODS_UNDER_ANY_DEPENDENCE,
    RATES,
    SINGLE_STEP,
    adjusted_p_values,
    checked_method,
    level_of_each,
    margins_of_family,
    p_values_of_family,
)

P_VALUES = np.array([0.03, 0.001, 0.2, 0.011, 0.04, 0.9, 0.012])


def normal(correlation, estimates, noise=0.0):
    """Errors of variance 1 due to sampling, with one correlation, and independent Laplace noise of this deviation."""
    d = len(estimates)
    root = np.linalg.cholesky(np.full((d, d), correlation) + (1.0 - correlation) * np.eye(d)).T
    draws = np.zeros((0, d))
    if noise:
        shares = (np.arange(4000) + 0.5) / 4000
        draws = noise * np.tile(laplace.ppf(shares)[:, None], d) / math.sqrt(2.0)
    return JointUncertainty(np.array(estimates, dtype=float), np.ones(d), draws, root)


def by_definition(p_values, method):
    """The corrected p-value of a hypothesis: the least size at which the procedure, step by step, rejects it."""
    m, order = len(p_values), np.argsort(p_values)
    ranked = p_values[order]
    found = np.empty(m)
    for place in range(m):
        if method == "bonferroni":
            found[place] = m * ranked[place]
        elif method == "holm":
            found[place] = max((m - rank) * ranked[rank] for rank in range(place + 1))
        else:
            factor = sum(1.0 / rank for rank in range(1, m + 1)) if method == "fdr_by" else 1.0
            found[place] = min(factor * m * ranked[rank] / (rank + 1) for rank in range(place, m))
    answer = np.empty(m)
    answer[order] = np.minimum(found, 1.0)
    return answer


@pytest.mark.parametrize("method", ["holm", "bonferroni", "fdr_by", "fdr_bh"])
def test_corrected_p_values_are_those_of_the_definition_and_of_statsmodels(method):
    """In the order in which they came, ties among them."""
    values = np.append(P_VALUES, P_VALUES[:2])
    found = adjusted_p_values(values, method)
    np.testing.assert_allclose(found, by_definition(values, method), rtol=1e-12)
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    np.testing.assert_allclose(found, multitest.multipletests(values, method=method)[1], rtol=1e-12)
    assert len(adjusted_p_values([], method)) == 0


def test_the_level_of_each_is_bonferronis():
    """The chance of a miss is divided; one interval keeps its level."""
    assert level_of_each(0.95, 10) == pytest.approx(0.995)
    assert level_of_each(0.9, 1) == pytest.approx(0.9)
    with pytest.raises(ParameterError, match="level"):
        level_of_each(1.0, 2)


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_single_step_is_the_law_of_the_largest_ratio(correlation):
    """Of normal errors, by quadrature: margins and p-values; and less than Bonferroni's where errors go together."""
    known = normal(correlation, [0.5, 2.2, -2.6])
    law = multivariate_normal(np.zeros(3), known.covariance, seed=0)

    def inside(limit):
        return law.cdf(np.full(3, limit), lower_limit=np.full(3, -limit))

    (margin,) = set(margins_of_family(known, 0.95).round(12))
    assert inside(margin) == pytest.approx(0.95, abs=0.008)
    expected = [1.0 - inside(abs(each)) for each in known.estimates]
    assert p_values_of_family(known, SINGLE_STEP) == pytest.approx(expected, abs=0.012)
    bonferroni = margins_of_family(known, 0.95, "holm")
    assert bonferroni == pytest.approx(float(ndtri(1.0 - 0.025 / 3.0)), rel=1e-4)
    assert margin < (0.93 if correlation else 1.0) * bonferroni[0]


def test_small_p_values_do_not_stop_at_the_number_of_draws():
    """Below the resolution of 4,000 draws the sum over the hypotheses bounds them; none is below that of one test alone."""
    known = normal(0.5, [8.0, 0.1])
    first, second = p_values_of_family(known, SINGLE_STEP)
    assert known.p_values()[0] <= first <= 2.0 * known.p_values()[0] * (1.0 + 1e-9)
    assert 0.9 < second <= 1.0


def test_what_the_noise_hides_is_in_no_interval_and_holds_its_target():
    """The others have the margins of a family without it."""
    known = normal(0.3, [0.5, 1.0, 2.0])
    hidden = JointUncertainty(known.estimates, np.array([1.0, np.inf, 1.0]), known.privacy_errors, known.sampling_root)
    margins = margins_of_family(hidden, 0.95)
    assert math.isinf(margins[1])
    assert margins[[0, 2]] == pytest.approx(margins_of_family(known.among(np.array([0, 2])), 0.95))
    assert p_values_of_family(hidden, SINGLE_STEP)[1] == 1.0
    nothing = JointUncertainty(known.estimates, np.full(3, np.inf), known.privacy_errors, known.sampling_root)
    assert np.isinf(margins_of_family(nothing, 0.95)).all()
    assert (p_values_of_family(nothing, SINGLE_STEP) == 1.0).all()


@pytest.mark.parametrize("noise", [0.5, 3.0, 20.0])
def test_far_tails_of_the_noise_are_those_of_its_law(noise):
    """At the levels that large families need, there are too few draws; the tail of Laplace noise is exponential."""
    known = normal(0.0, [0.0, 0.0], noise=noise)
    points = np.linspace(-40.0, 40.0, 40_001)
    scale = noise / math.sqrt(2.0)
    for level in (0.9975, 0.9995):
        margin = known.margins(level)[0]
        # P(|error| > margin), the sum of a normal and a Laplace error, by quadrature over the former.
        beyond = 0.5 * np.exp(-np.maximum(margin - points, 0.0) / scale) + np.where(
            points > margin, 0.5 - 0.5 * np.exp(-np.maximum(points - margin, 0.0) / scale), 0.0
        )
        density = np.exp(-0.5 * points**2) / math.sqrt(2.0 * math.pi)
        miss = 2.0 * float(np.sum(beyond * density)) * (points[1] - points[0])
        assert miss == pytest.approx(1.0 - level, rel=0.1)


def test_scores_whose_joint_law_was_not_released_have_none():
    """One against the rest: only corrections that hold under any dependence; intervals are Bonferroni's."""
    one, other = normal(0.5, [1.0, 3.0]), normal(0.5, [2.0, 0.0])
    apart = of_all_scores([one, other], released_together=False)
    assert type(apart) is Uncertainty
    with pytest.raises(ParameterError, match='"single-step" needs the joint law'):
        p_values_of_family(apart, SINGLE_STEP)
    assert margins_of_family(apart, 0.95) == pytest.approx(margins_of_family(apart, 0.95, "bonferroni"))
    together = of_all_scores([one, one], released_together=True)
    assert isinstance(together, JointUncertainty)
    # The same errors twice are as many as once.
    assert margins_of_family(together, 0.95)[:2] == pytest.approx(margins_of_family(one, 0.95))


def test_methods_are_refused_in_words():
    """Unknown ones, with a suggestion; and those that need to know the dependence."""
    assert set(METHODS_UNDER_ANY_DEPENDENCE) < set(METHODS) == set(RATES)
    with pytest.raises(ParameterError, match=r'must be one of "single-step", .*did you mean "bonferroni"'):
        checked_method("bonferoni")
    with pytest.raises(ParameterError, match="must be one of"):
        checked_method(None)
    for method in set(METHODS) - set(METHODS_UNDER_ANY_DEPENDENCE):
        with pytest.raises(ParameterError, match="how the tests depend on each other"):
            checked_method(method, METHODS_UNDER_ANY_DEPENDENCE)


@pytest.mark.parametrize("method", METHODS)
def test_a_family_without_effects_is_rarely_rejected(method):
    """Of 400 families of 6 correlated tests, any is rejected at .05 in about 5%, or less."""
    rng = np.random.default_rng(8)
    base = normal(0.6, np.zeros(6))
    rejected = []
    for _ in range(400):
        estimates = rng.normal(size=6) @ base.sampling_root
        known = JointUncertainty(estimates, base.sampling_error, base.privacy_errors, base.sampling_root)
        known.__dict__["_largest_ratios"] = base._largest_ratios  # the same draws for all
        rejected.append(p_values_of_family(known, method).min() <= 0.05)
    assert np.mean(rejected) <= 0.085
    assert np.mean(rejected) >= (0.02 if method != "fdr_by" else 0.0)
