"""How large the noise of a plan is. People see it, and choices among plans use it; no guarantee depends on it."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from confide.errors import InsufficientRegularisation

WASTED = 0.1
"""Noise on a weight, as a share of how hard all rows together can pull on it, from which on a fit is worth nothing. Of the
measured fits above it none was better than a constant answer in the mean (benchmarks/forecasts.py --wasted)."""
WASTED_SUMS = 5.0
"""The same for the noise on sums of products, as a multiple of the curvature of usual rows."""
NOISE_HIDES = "The noise hides what these rows say"

_SCALES = np.geomspace(0.1, 10.0, 201)
_LAST_RESORT = 0.2
"""A share above this one is taken only if no smaller share keeps the seal's noise below its limit."""
_SMALL_SEAL_NOISE, LARGEST_SEAL_NOISE = 0.01, 0.14
"""Bounds on the seal's noise, relative to the main noise where the loss adds no curvature; the larger one adds 1%."""
_SMALL_ON_SCORES = 0.05
"""Bound on the seal's noise on the score of a longest row, relative to the least score at which the loss may be 0.

Many rows damp the main noise by factors of hundreds in the directions that they determine. They do not damp the seal."""


def added_l2(plan: Any) -> float:
    """Strength of the sum form that was added to what was asked for."""
    return float((plan.l2 - plan.problem.l2) / plan.problem.penalty.strong_convexity)


def alpha(plan: Any) -> float:
    """Total strength of the mean form, of which an l1 penalty may have a share: mean loss + alpha N(w)."""
    return float(plan.l2 / plan.problem.penalty.strong_convexity / plan.problem.n_rows_low / (1.0 - l1_ratio(plan)))


def l1_ratio(plan: Any) -> float:
    """Share of an l1 penalty in that strength."""
    return float(getattr(plan, "l1_ratio", plan.problem.penalty.l1_ratio))


def noise_norm(plan: Any) -> float:
    """Root mean square of the displacement of weights by the main noise, where the loss adds no curvature."""
    if plan.noise is None:
        return float(plan.lattice.norm) if plan.lattice else 0.0
    return float(plan.noise.norm / (plan.l2 if plan.noise.in_objective else 1.0))


def largest_slope(plan: Any) -> float:
    """The largest slope of the loss of a row, for which the main noise was made."""
    return float(plan.problem.loss_bounds.lipschitz)


def seal_norm(plan: Any) -> float:
    """Root mean square of the noise that covers inexactness; 0 where the main noise covers it."""
    return float(plan.lattice.norm) if plan.lattice and plan.noise else 0.0


def expected_distance(plan: Any) -> float:
    """Upper bound on the root mean square distance between the released and the non-private weights at this alpha."""
    return math.hypot(plan.noise_norm, plan.seal_norm) + float(plan.radius)


def diagonal_deviation(plan: Any) -> float:
    """Standard deviation of the noise on an entry of the diagonal of X^T X."""
    return 0.0 if plan.lattice is None else float(plan.lattice.deviation) if plan.noise is None else deviation(plan)


def product_deviation(plan: Any) -> float:
    """Standard deviation of the noise on an entry of X^T X off the diagonal."""
    return float(plan.diagonal_deviation / plan.query.off_diagonal)


def target_deviation(plan: Any) -> float:
    """Standard deviation of the noise on an entry of X^T y."""
    return float(plan.diagonal_deviation / plan.problem.target_scale) if plan.lattice else 0.0


def square_deviation(plan: Any) -> float:
    """Standard deviation of the noise on y^T y; 0 where it is not released."""
    scale = plan.query.square_scale
    return float(plan.target_deviation / plan.problem.target_scale / scale) if scale and plan.lattice else 0.0


def deviation_of_sums(plan: Any) -> float:
    """How far noise on X^T X and X^T y moves a gradient, for weights w with |w| = 2 T / R and D large, in units of R^2.

    A gradient is X^T X w - X^T y, and 2 T / R are weights that explain a usual target by usual rows.
    """
    return math.hypot(plan.diagonal_deviation, 2.0 * plan.product_deviation)


def noise_on_a_weight(plan: Any) -> float:
    """Root mean square of the noise on one weight of the summed objective, in units of the largest slope of a row.

    For least squares from noisy sums, the noise on the curvature in one direction.
    """
    problem = plan.problem
    if hasattr(plan, "product_deviation"):
        # A symmetric matrix of such noise has eigenvalues up to twice this.
        return float(plan.product_deviation * math.sqrt(problem.n_weights))
    return float(plan.noise_norm * plan.l2 / problem.loss_bounds.lipschitz / math.sqrt(problem.n_weights))


def noise_in_rows(plan: Any) -> float:
    """How many rows, each with the largest possible slope, pull together as hard as the noise does.

    Divided by the number of rows it compares plans with any number of rows, budget and alpha. The expected distance does
    not: it starts from weights that depend on alpha, and the automatic alpha falls as rows are added.
    """
    return float(plan.noise_norm * plan.l2 / (plan.largest_slope * plan.problem.row_norm)) if plan.lattice else 0.0


def wasted(plan: Any, effective_share: float = 1.0) -> str | None:
    """A sentence if a fit by this plan is worth nothing, because its noise hides what the rows say; None otherwise.

    Parameters
    ----------
    plan : it knows the number of rows, or the smallest that was declared
    effective_share : the mean weight of a row, as a share of the largest
    """
    if plan.lattice is None:
        return None
    if hasattr(plan, "product_deviation"):
        times = 0.0 if plan.forecast is None else plan.forecast.ratio / WASTED_SUMS
    else:
        on_a_weight = noise_in_rows(plan) / math.sqrt(plan.problem.n_weights)
        times = on_a_weight / plan.problem.n_rows_low / effective_share / WASTED
    return sentence_of_waste(times, "a model that always answers the same is as good")


def sentence_of_waste(times: float, otherwise: str) -> str | None:
    """A sentence where the noise is `times` as large as it may be, of at least 1; None below."""
    if times < 1.0:
        return None
    larger = f"{math.ceil(times * 10.0) / 10.0:g}" if times < 10.0 else f"{float(f'{times:.2g}'):,.0f}"
    return f"{NOISE_HIDES}: {otherwise}. It takes more than {larger} times the rows, or {larger} times the budget."


def deviation(plan: Any) -> float:
    """Standard deviation of the noise on one entry of a released vector of moments or counts."""
    if plan.lattice is None:
        return 0.0
    noise = getattr(plan, "noise", None)
    norm = plan.lattice.norm if noise is None else math.hypot(noise.norm, plan.lattice.norm)
    return float(norm / math.sqrt(plan.lattice.dimension))


@lru_cache(maxsize=64)
def balanced_scale(joint_bound: Callable[[Any, float], float], loss: Any) -> float:
    """u: the scale of curvatures, relative to slopes, at which the noise on moments disturbs an interval the least.

    The width of an interval depends on the curvature twice as strongly as on the slope. A usual row has half the largest
    curvature and half the largest slope. So u minimises G(u)^2 (4 / (u / 2)^2 + 1 / (1 / 4)^2), where G(u) is the joint
    bound.
    """
    costs = [joint_bound(loss, scale) ** 2 * (16.0 / scale**2 + 16.0) for scale in _SCALES]
    return float(_SCALES[int(np.argmin(costs))])


Planned = TypeVar("Planned")


def first_small_seal(plan_at: Callable[[float], Planned], shares: tuple[float, ...]) -> Planned | None:
    """The plan at the first share at which the seal's noise is small, or else at the last at which it is not too large."""
    least, is_small = None, False
    for share in shares:
        if least is not None and (is_small or share > _LAST_RESORT):
            break
        with suppress(InsufficientRegularisation):
            plan: Any = plan_at(share)
            seal, noise = plan.seal_norm, plan.noise_norm
            # The seal's noise shrinks as its share grows, and the main noise changes by less than half.
            if seal * share > 2.0 * LARGEST_SEAL_NOISE * noise * shares[-1]:
                break
            if seal <= LARGEST_SEAL_NOISE * noise:
                # Small compared with the main noise, or with the scores that the loss asks for.
                least, problem, loss = plan, plan.problem, plan.problem.loss_bounds
                on_scores = seal * problem.row_norm / math.sqrt(problem.n_weights)
                enough = _SMALL_ON_SCORES * (loss.value_at_zero / loss.lipschitz)
                is_small = seal <= _SMALL_SEAL_NOISE * noise or on_scores <= enough
    answer: Planned | None = least
    return answer
