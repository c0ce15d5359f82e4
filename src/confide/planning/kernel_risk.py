"""The loss of random Fourier features on new rows, above that of functions in the space of their kernel.

A function of norm at most B in the space of a kernel k(x, y) = E cos(w . (x - y)) is f(x) = E a(w) . (cos w . x, sin w . x)
with E |a|^2 <= B^2. With D frequencies, weights that are a, shortened to C where it is longer, over sqrt(D) have a function
near f. How near, and how long the weights are, is bounded by Bernstein's inequalities; C is chosen. Proofs:
proofs/excess_risk.md, theorem 4. Chaudhuri, Monteleoni and Sarwate (2011) have theorems of this kind up to constants, for
functions whose a is bounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from confide.errors import ParameterError
from confide.planning.checked_arguments import check_failure, check_positive, check_whole
from confide.planning.excess_risk import ExcessRiskBound, excess_risk_bound
from confide.privacy.mechanism import Plan

_CUTS = tuple(float(cut) for cut in np.geomspace(0.5, 64.0, 15))
_FEATURE_SHARE = 0.5
"""Share of the probability of failure that the random features get."""


@dataclass(frozen=True, slots=True)
class FeatureApproximation:
    """What random features can do in place of a kernel, with probability 1 - failure over the features.

    Attributes
    ----------
    distance : float
        Root mean square, over the population, of the difference of the two functions.
    norm : float
        L2 norm of the weights.
    """

    distance: float
    norm: float


def feature_approximation(n_pairs: int, kernel_norm: float, failure: float, cut: float) -> FeatureApproximation:
    """How near weights of random features are to one function of the space of a kernel, and how long they are.

    Parameters
    ----------
    n_pairs : int
        D, the number of independent frequencies; each gives a cosine and a sine.
    kernel_norm : float
        B, the norm of the function in the space of the kernel.
    failure : float, in (0, 1)
    cut : float, positive
        C / B, where coefficients are shortened.

    Returns
    -------
    FeatureApproximation

    Raises
    ------
    ParameterError
        If a number lies outside its range.
    """
    check_whole(n_pairs=n_pairs)
    check_positive(kernel_norm=kernel_norm, cut=cut)
    check_failure(failure)
    # Half of the failure for each. Pinelis' inequality for a mean in a Hilbert space has a factor 2.
    near, short = math.log(4.0 / failure) / n_pairs, math.log(2.0 / failure) / n_pairs
    distance = 1.0 / (4.0 * cut) + math.sqrt(2.0 * near) + (cut + min(1.0, cut)) * near / 3.0
    square = min(cut**2, 1.0 + math.sqrt(2.0 * short) * cut + cut**2 * short / 3.0)
    return FeatureApproximation(kernel_norm * distance, kernel_norm * math.sqrt(square))


def kernel_excess_risk_bound(
    plan: Plan, n_pairs: int, *, kernel_norm: float = 1.0, failure: float = 0.05
) -> ExcessRiskBound:
    """How far the loss on new rows of a fit to random features can be above that of the best function of a kernel.

    Parameters
    ----------
    plan : Plan
        A plan for mapped rows, such as `KernelSVC(..., centre=False).plan(n_rows, n_inputs)`.
    n_pairs : int
        Number of independent frequencies of the map: half its number of features. Those of an orthogonal map are not
        independent, and the theorem does not cover them.
    kernel_norm : float, positive
        Norm, in the space of the kernel, of the functions to compare with.
    failure : float, in (0, 1)
        Probability, over rows, noise and random features, that the bound does not hold.

    Returns
    -------
    ExcessRiskBound
        Its `reference_norm` is `kernel_norm`.

    Raises
    ------
    ParameterError
        If a number lies outside its range, or no bound is proven for the plan.
    """
    check_whole(n_pairs=n_pairs)
    check_positive(kernel_norm=kernel_norm)
    check_failure(failure)
    if not isinstance(plan, Plan) or plan.problem.n_features != 2 * n_pairs:
        raise ParameterError("the plan must be for rows of 2 n_pairs random features, and nothing else.")
    if any(plan.problem.prior):
        raise ParameterError("the bound compares with functions of a kernel, and a prior has none: plan without a prior.")
    lipschitz = plan.problem.loss_bounds.lipschitz
    features, fit = _FEATURE_SHARE * failure, (1.0 - _FEATURE_SHARE) * failure
    found = []
    for cut in _CUTS:
        near = feature_approximation(n_pairs, kernel_norm, features, cut)
        bound = excess_risk_bound(plan, reference_norm=near.norm, failure=fit)
        lost = lipschitz * near.distance
        found.append((bound.excess_risk + lost, bound.without_noise + lost))
    excess, without = min(found)
    of_zero = min(plan.problem.loss_bounds.value_at_zero, lipschitz * kernel_norm)
    return replace(
        bound,
        failure=failure,
        excess_risk=excess,
        without_noise=without,
        reference_norm=kernel_norm,
        excess_risk_of_zero=of_zero,
    )
