"""A metric from many rows, where the compiled kernel makes the Hessian of few weights at the price of a few gradients.

The Hessian of a sample is off by about sqrt(D / m), for D weights and m rows, and each step in its metric leaves about that
share of the gradient. Over many rows the gradient has to become so small that this takes five or six steps. In the metric of
an eighth of all rows, close to the minimiser, one or two steps fewer are enough, and it costs less than one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from confide.solvers.compiled_gradients import CompiledObjective
from confide.types import Array, Weights

_MOST_WEIGHTS = 32
"""The largest number of weights at which a Hessian was seen to pay. Its cost grows with the square of this number."""
_PASSES_SAVED = 4.0
"""A Hessian pays where the metric of the sample would need at least so many passes after the first one."""
_SHARE, _LEAST_OVER_SAMPLE = 8, 4
"""The Hessian is made from one row of so many; from more, where these would be fewer than so many times the sampled rows.

Of 5,000,000 rows of 20 numbers, an eighth takes half a pass and all rows three. A fit takes five passes either way, one more
with a sixteenth, and seven without (benchmarks/compiled_kernel.py)."""
_LEFT_OVER_ERROR = 1.5
"""A step leaves about so many times the error of the metric. One fit to 5,000,000 rows of 20 numbers showed 1.2 to 1.9."""


@dataclass(frozen=True, slots=True)
class CloserStart:
    """Where two steps have led, and what is known there.

    Parameters
    ----------
    weights : (1, D)
    metric : takes gradients to steps, from the Hessian of many rows one step before
    norms : (1,), the gradient norm one step before
    """

    weights: Weights
    metric: Callable[[Array], Array]
    norms: Array


def closer_start(
    objective: CompiledObjective,
    start: Weights,
    metric: Callable[[Array], Array],
    of_hessian: Callable[[Array], Callable[[Array], Array] | None],
    n_sampled: int,
    tolerance: float,
) -> CloserStart | None:
    """Two steps from the start, the second one in the metric of many rows; None where that seems not to pay.

    Parameters
    ----------
    objective : one problem over all rows, by the kernel. For rows that are codes the answer is None: there two such steps do
        not pay, and a fit in memory would take other steps than a fit of the same rows from a file
    start : (1, D), near the minimiser over a sample
    metric : that of the sample
    of_hessian : makes a metric of a Hessian (D, D), or None where it is not positive definite
    n_sampled : rows of the sample
    tolerance : the gradient norm that is asked for
    """
    n_weights = start.shape[1]
    if n_weights > _MOST_WEIGHTS or not (objective.is_of_array and objective.has_hessians):
        return None
    left = _LEFT_OVER_ERROR * math.sqrt(n_weights / n_sampled)
    first = objective.evaluate(start, order=1).gradient
    far = float(np.linalg.norm(first))
    # Written so that what is not a number does not pay.
    if not (0.0 < left < 1.0 and far * left**_PASSES_SAVED > tolerance):
        return None
    closer = start - metric(first)
    share = max(1, min(_SHARE, objective.source.n_rows // (_LEAST_OVER_SAMPLE * n_sampled)))
    there = replace(objective, row_sum=replace(objective.row_sum, share=share)).evaluate(closer, order=2)
    norm = np.linalg.norm(there.gradient, axis=1)
    better = of_hessian(there.hessian[0])
    if better is None or not norm[0] < far:
        return None
    weights = closer - better(there.gradient)
    return CloserStart(weights, better, norm) if np.isfinite(weights).all() else None
