"""Differences of risks, standardised over the rows: how much a named change moves the mean probability, and how sure.

For a level of a category each row is given this level and then the reference, and the two probabilities are compared; for a
number each row is compared with itself one unit higher. The mean over the rows is the average marginal effect of a discrete
change. It depends on the coefficient of interest above all, whose interval is known, and on the other weights as little as
the slope p (1 - p) changes with the step. Errors follow by the delta method. All of it is post-processing.

Source: N. Muller, R. MacLehose, *Estimating predicted probabilities from logistic regression*, International Journal of
Epidemiology 43(3), 2014 (marginal standardisation, delta method).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from confide.array_types import Array
from confide.inference.debiased import Combination, Facts, InterestEvidence, independent_points, uncertainty_of_interest
from confide.inference.intervals import Uncertainty
from confide.privacy.standardised_sums import LARGEST_STEP, largest_difference

_LEAST_SPREAD_KEPT = 0.25
"""The least part of the variance of scores that is not taken for noise."""


def points_of_risks(evidence: InterestEvidence) -> tuple[Array, Array]:
    """Weights (k, D) that give every row its score without the change, and steps (k,) of the score for the changes.

    The steps are the estimates of the coefficients of interest. The noise in the other weights spreads scores, which would
    draw mean probabilities towards one half. So they are drawn together about their mean, until their variance is that of
    scores without the noise, as far as the released curvature tells.
    """
    steps = np.clip(uncertainty_of_interest(replace(evidence, risks=None)).estimates, -LARGEST_STEP, LARGEST_STEP)
    matrix, near = evidence.frame.matrix, evidence.near
    weights, errors = matrix.T @ near.weights, matrix.T @ near.covariance @ matrix
    inverse = np.linalg.inv(matrix)
    curvature = inverse @ evidence.curvature @ inverse.T
    points = [_point(evidence.facts, one, weights, errors, curvature) for one in evidence.combinations]
    return np.array(points), steps


def _point(facts: Facts, combination: Combination, weights: Array, errors: Array, curvature: Array) -> Array:
    """The weights (D,) of one change, like all else for rows as they are."""
    kept = np.ones(len(weights))
    kept[list(combination.own)] = 0.0
    rest = kept * weights
    mass = float(curvature[-1, -1])
    if mass > 0.0:
        # Means over rows that count as much as they bend the objective, as the released curvature has them.
        means = curvature[-1, :-1] / mass
        centred = curvature[:-1, :-1] - mass * np.outer(means, means)
        own = kept[:-1, None] * errors[:-1, :-1] * kept[:-1]
        spread = float(rest[:-1] @ centred @ rest[:-1])
        of_noise = max(float(np.sum(own * centred)), 0.0)
        part = math.sqrt(max(1.0 - of_noise / spread, _LEAST_SPREAD_KEPT)) if spread > 0.0 else 1.0
        rest[-1] += (1.0 - part) * float(rest[:-1] @ means)
        rest[:-1] *= part
    # What the reference level adds to the score of every row.
    rest[-1] += sum(factor * float(weights[place]) for place, factor in combination.base) / facts.intercept
    answer: Array = rest
    return answer


def uncertainty_of_risks(evidence: InterestEvidence) -> Uncertainty:
    """Differences of risks (k,) and the distribution of their errors."""
    assert evidence.risks is not None  # noqa: S101 - the caller asks
    facts, risks = evidence.facts, evidence.risks
    coefficients = uncertainty_of_interest(evidence)
    matrix, near = evidence.frame.matrix, evidence.near
    sampling, noise = (matrix.T @ covariance @ matrix for covariance in (near.sampling, near.noise))
    gradients = np.array(
        [
            _gradient(facts, *combination_and_bends)
            for combination_and_bends in zip(evidence.combinations, risks.bends, strict=True)
        ]
    )
    wanted = np.array([one.vector(facts.n_features, facts.intercept) for one in evidence.combinations])
    rates = np.clip(risks.rates, 0.0, 0.25)
    # Rows differ: a difference lies between 0 and its largest value, which bounds its variance by its mean.
    largest = largest_difference(risks.steps)
    sizes = np.clip(np.abs(risks.differences), 0.0, largest)
    among_rows = facts.design.variance_factor * sizes * (largest - sizes) / risks.n_rows
    together = 2.0 * rates * np.sum((wanted @ sampling) * gradients, axis=1)
    of_others = np.sum((gradients @ sampling) * gradients, axis=1)
    own = (rates * coefficients.sampling_error) ** 2
    from_rows = np.sqrt(np.maximum(own + together + of_others, 0.25 * own) + among_rows)
    of_noise = np.sum((gradients @ noise) * gradients, axis=1) + (risks.count_deviation * risks.differences) ** 2
    errors = np.zeros((0, len(rates)))
    if len(coefficients.privacy_errors):
        third = independent_points(is_laplace=risks.is_laplace, place=2)[:, None]
        others = independent_points(is_laplace=False, place=3)[:, None]
        errors = rates * coefficients.privacy_errors + third * risks.deviations[0]
        errors = errors + others * np.sqrt(of_noise)
    return Uncertainty(risks.differences, from_rows, errors)


def _gradient(facts: Facts, combination: Combination, bends: Array) -> Array:
    """(D,): how the difference depends on the other weights, for rows as they are."""
    gradient: Array = np.array(bends)
    gradient[list(combination.own)] = 0.0
    for place, factor in combination.base:
        gradient[place] = factor * bends[-1] / facts.intercept
    return gradient
