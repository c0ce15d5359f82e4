"""What a plan's noise can cost at most, with every constant.

Let J(w) be the mean loss plus alpha / 2 |w|^2, F = n J its sum form, l = n alpha, and w* the minimiser. Then

    objective perturbation, noise b in the objective:    F(w_b) - F(w*) <= |b|^2 / (2 l),       |w_b - w*| <= |b| / l
    output perturbation, noise z on the weights:         F(w* + z) - F(w*) <= H |z|^2 / 2,       H = n c R^2 + l

The first holds because F is l-strongly convex and its gradient at w_b is -b. It is half of what follows from optimality
alone, and a quarter of the published constant (Chaudhuri, Monteleoni and Sarwate, 2011, lemma 17). The second holds because
F is H-smooth, as in their lemma 16. The last step of a mechanism, which moves the weights by s, adds |b| |s| + H |s|^2 / 2
to the first.

For any reference w0 and the mean loss L on the rows, L(w) <= L(w0) + alpha / 2 |w0|^2 + J(w) - J(w*).

For the population: two minimisers whose data differ in one row lie at most 2 L R / l apart. So the expected excess of the
regularised population loss is at most 2 (L R)^2 / l (Shalev-Shwartz, Shamir, Srebro and Sridharan, 2009). By Markov's
inequality this is divided by the probability of failure. Noise that moves the weights by some distance changes every loss by
at most L R times that distance.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from confide.errors import ParameterError
from confide.planning.checked_arguments import check_failure, check_positive
from confide.privacy.elastic_net import SparseProblem
from confide.privacy.grouped_form import GroupedFormProblem
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace, LatticeNoise
from confide.privacy.mechanism import Noise, Plan
from confide.privacy.noise import Entropy
from confide.privacy.ridges_of_columns import largest_ridge_factor
from confide.privacy.shapes import Shape
from confide.privacy.strongly_convex import PenalisedProblem

_N_DRAWS, _SEED = 500, 0
"""Number and seed of the draws from which quantiles of the norm of noise are estimated. No release uses this noise."""
_QUANTILE_CONFIDENCE = 0.999
"""Probability that a simulated quantile is not too small."""


@dataclass(frozen=True, slots=True)
class UtilityBound:
    """Bounds that hold with probability at least 1 - failure. Public: they are made before any row is read.

    Attributes
    ----------
    failure : float
    distance : float
        Distance of the released weights from the minimiser without noise at the same alpha.
    excess_objective : float
        How far the mean regularised loss is above its least value.
    excess_loss : float
        How far the mean loss on the rows is above that of any weights of norm at most `reference_norm`.
    excess_risk : float
        The same for a new row, if the rows are independent draws from a population. The probability is over the rows too.
    reference_norm : float
        L2 norm of the weights to compare with, in the units of encoded rows and with the intercept.
    distance_of_zero, excess_objective_of_zero, excess_loss_of_zero : float
        Bounds on the same numbers for weights of zero, which need no rows. A bound that is not below its counterpart is
        useless.
    """

    failure: float
    distance: float
    excess_objective: float
    excess_loss: float
    excess_risk: float
    reference_norm: float
    distance_of_zero: float
    excess_objective_of_zero: float
    excess_loss_of_zero: float

    def __str__(self) -> str:
        probability = f"{1.0 - self.failure:.15g}"
        against = f"above that of any weights of norm {self.reference_norm:g}"
        bounds = {
            f"weights within {self.distance:.3g} of the non-private ones": self.distance < self.distance_of_zero,
            f"mean regularised loss at most {self.excess_objective:.3g} above its least value": (
                self.excess_objective < self.excess_objective_of_zero
            ),
            f"mean loss at most {self.excess_loss:.3g} {against}": self.excess_loss < self.excess_loss_of_zero,
            f"mean loss on new rows at most {self.excess_risk:.3g} {against}": self.excess_risk < self.excess_loss_of_zero,
        }
        useful = [sentence for sentence, is_useful in bounds.items() if is_useful]
        if not useful:
            return f"No useful bound holds with probability {probability}: weights of zero, without any rows, satisfy each."
        told = f"With probability {probability}: {', '.join(useful)}."
        if len(useful) == len(bounds):
            return told
        names = ("the distance", "the regularised loss", "the loss", "the loss on new rows")
        missing = [name for name, is_useful in zip(names, bounds.values(), strict=True) if not is_useful]
        return f"{told} No useful bound on {' and '.join(missing)}: weights of zero satisfy it too."


def has_utility_bound(plan: Plan) -> bool:
    """Whether a bound is proven for a plan with noise.

    There is none for noisy gradients, for centred rows, for weights whose intercept is moved afterwards, and for penalties
    beside |w|^2. A quadratic form is |w|^2 in its own norm.
    """
    has_ridge_alone = not isinstance(plan.problem, PenalisedProblem | SparseProblem | GroupedFormProblem)
    return plan.descent is None and plan.centring is None and plan.matching is None and has_ridge_alone


def utility_bound(plan: Plan, *, reference_norm: float = 1.0, failure: float = 0.05) -> UtilityBound:
    """What the noise of a plan can cost at most.

    Parameters
    ----------
    plan : Plan
        A plan for a loss of the score, such as `LogisticRegression(...).plan(n_rows, n_features)`.
    reference_norm : float, positive
        L2 norm of the weights to compare with.
    failure : float, in (0, 1)
        Probability that a bound does not hold.

    Returns
    -------
    UtilityBound

    Raises
    ------
    ParameterError
        If a number lies outside its range, or the plan has no noise.

    Notes
    -----
    The bounds hold for all data, so they describe the worst case. Typical data lose far less. For the theorems see the
    docstring of the module.
    """
    check_positive(reference_norm=reference_norm)
    check_failure(failure)
    if not isinstance(plan, Plan) or plan.lattice is None:
        raise ParameterError("utility bounds are for plans of private models with a loss of the score, such as classifiers.")
    if not has_utility_bound(plan):
        raise ParameterError(
            "no bound is proven for noisy gradients, because a fixed number of steps need not come near a minimiser, nor "
            "for rows that are centred, counts whose mean is matched, an l1 penalty or a penalty of your own. Plan with "
            "mechanism='objective', centre=False and the ridge, and for counts with match_mean=False, or forecast the error "
            "with simulate."
        )
    problem, loss = plan.problem, plan.problem.loss_bounds
    n, l2, largest_l2 = problem.n_rows_low, plan.l2, plan.l2 * largest_ridge_factor(problem)
    steepness = loss.lipschitz * problem.row_norm
    # A third of the probability of failure each for the noise, the seal and the excess in the population.
    each = failure / 3.0
    noise = noise_quantile(plan.noise, each) if plan.noise else 0.0
    step = lattice_quantile(plan.lattice, each) + plan.radius
    pull, shift = (noise, step) if plan.perturbs_objective else (0.0, noise + step)
    bend = problem.n_rows_high * loss.smoothness * problem.row_norm**2 + largest_l2
    # If the loss has kinks, only its slope is bounded. For a prior p, |w* - p| is at most sqrt(2 n value_at_zero / l) + |p|.
    prior_norm = math.hypot(*problem.prior)
    longest = math.sqrt(2.0 * problem.n_rows_high * loss.value_at_zero / l2) + prior_norm
    by_slope = (problem.n_rows_high * steepness + largest_l2 * longest + pull) * shift + 0.5 * largest_l2 * shift**2
    after = min(pull * shift + 0.5 * bend * shift**2, by_slope) if math.isfinite(bend) else by_slope
    excess = (pull**2 / (2.0 * l2) + after) / n
    distance = pull / l2 + shift
    shrinkage = 0.5 * plan.alpha * largest_ridge_factor(problem) * (reference_norm + prior_norm) ** 2
    risk = shrinkage + 2.0 * steepness**2 / (l2 * each) + steepness * distance
    # Losses are at least 0, and a score of the reference weights is at most their norm times that of a row.
    of_zero = min(loss.value_at_zero, steepness * reference_norm)
    nearest = prior_norm + min(longest, problem.n_rows_high * steepness / l2)
    at_zero = loss.value_at_zero + 0.5 * plan.alpha * prior_norm**2
    return UtilityBound(failure, distance, excess, shrinkage + excess, risk, reference_norm, nearest, at_zero, of_zero)


def noise_quantile(noise: Noise, failure: float) -> float:
    """An L2 norm that continuous noise exceeds with probability at most `failure`.

    For Laplace noise of a ball the exact quantile; otherwise a simulated one, or a proven bound if draws are too few.
    """
    shape, proven = noise.shape, noise.bound(math.log(failure))
    if shape.name == "ball" and noise.law == "laplace":
        return min(proven, shape.l2_norm * float(stats.gamma.ppf(1.0 - failure, shape.dimension)) / noise.scale)
    # The k-th smallest of n draws is above the quantile if fewer than k of the draws lie below the quantile.
    position = int(stats.binom.ppf(_QUANTILE_CONFIDENCE, _N_DRAWS, 1.0 - failure))
    if position >= _N_DRAWS:
        return proven
    return min(
        proven, _unit_norms(shape, noise.law)[position] * (1.0 / noise.scale if noise.law == "laplace" else noise.scale)
    )


@functools.lru_cache(maxsize=32)
def _unit_norms(shape: Shape, law: str) -> tuple[float, ...]:
    """L2 norms of draws at scale 1, in ascending order."""
    entropy = Entropy.seeded(_SEED)
    draw = entropy.laplace if law == "laplace" else entropy.gaussian
    return tuple(sorted(float(np.linalg.norm(draw(shape, 1, 1.0))) for _ in range(_N_DRAWS)))


def lattice_quantile(lattice: LatticeNoise, failure: float) -> float:
    """An L2 norm that the exact noise on a grid exceeds with probability at most `failure`."""
    n = lattice.dimension
    if isinstance(lattice, LatticeGaussian):
        # A standard deviation has at least 40 grid steps, so this is the continuous law up to the size of a grid cell.
        return float(lattice.deviation) * float(stats.chi.ppf(1.0 - failure, n)) + math.sqrt(n) * lattice.step
    if not isinstance(lattice, LatticeLaplace):
        raise ParameterError("the distribution of the noise on the grid is unknown.")
    # Two bounds: by the largest coordinate, as P(|s| > x) <= 2 exp(-x / scale) for each; by Markov's inequality for |s|^4.
    largest = math.sqrt(n) * float(lattice.scale) * math.log(2.0 * n / failure)
    decay = math.exp(-lattice.step / float(lattice.scale))
    kurtosis = (1.0 + 10.0 * decay + decay**2) / (2.0 * decay)
    fourth = float(lattice.deviation) ** 4 * n * (kurtosis + n - 1.0)
    return float(min(largest, (fourth / failure) ** 0.25))
