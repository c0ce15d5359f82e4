"""Penalties in place of |w|^2 / 2: one that a user wrote, and the subgradients of an l1 penalty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.array_types import Array, Weights
from confide.erm.transformed_losses import asked


@dataclass(frozen=True, slots=True)
class StronglyConvex:
    """A strongly convex, differentiable penalty N(w) of your own, in place of |w|^2 / 2: for `penalty`.

    A fit minimises mean loss + alpha (N(w) + strong_convexity / 2 c^2), where w are the weights of the columns, of each
    class where there are several, and c is that of the intercept.

    Parameters
    ----------
    value : callable
        Takes weights (d,) and returns N(w), a number.
    gradient : callable
        Takes weights (d,) and returns the gradient (d,). It must be 0 at w = 0, depend on the weights alone, and keep no
        state.
    strong_convexity : float
        m > 0: N(w) - m / 2 |w|^2 is convex. The guarantee rests on it.
    smoothness : float
        M, at least m: the gradient changes by at most M times the distance. It decides how the minimiser is certified.
    name : str, default "a penalty of the user's own"
        How messages, plans and guarantees name it, at most 100 characters.
    rounding : float, default 1024
        The error of the computed gradient, in units of 2^-53 M |w|.

    Raises
    ------
    ParameterError
        When a fit or a plan reads it: if a constant is not positive and finite, or public points show that one is false.

    Notes
    -----
    Guarantee: constants are checked at public points and not proven, and the guarantee lists them as an assumption. Any
    convex function that is smooth enough becomes such a penalty by adding m / 2 |w|^2.

    References
    ----------
    K. Chaudhuri, C. Monteleoni, A. Sarwate, *Differentially Private Empirical Risk Minimization*, JMLR 12 (2011), theorems
    1 and 2, numbered as in the copy that was read, which ends at corollary 4.

    Examples
    --------
    >>> import numpy as np
    >>> flat_far_out = StronglyConvex(
    ...     value=lambda w: 0.05 * w @ w + np.sum(np.sqrt(1.0 + w * w) - 1.0),
    ...     gradient=lambda w: 0.1 * w + w / np.sqrt(1.0 + w * w),
    ...     strong_convexity=0.1,
    ...     smoothness=1.1,
    ...     name="pseudo-Huber and ridge",
    ... )
    >>> flat_far_out.gradient(np.array([0.0, 1.0])).round(3).tolist()
    [0.0, 0.807]
    """

    value: Callable[[Array], Any] | None
    gradient: Callable[[Array], Any] | None
    strong_convexity: float
    smoothness: float
    name: str = "a penalty of the user's own"
    rounding: float = 1024.0

    def __repr__(self) -> str:
        """Without the functions, whose addresses change."""
        return f"StronglyConvex({self.name!r}, strong_convexity={self.strong_convexity!r}, smoothness={self.smoothness!r})"

    def to_dict(self) -> dict[str, Any]:
        """What a file can hold: the name and the constants. Plans depend on nothing else."""
        return {
            "strong_convexity": self.strong_convexity,
            "smoothness": self.smoothness,
            "name": self.name,
            "rounding": self.rounding,
        }

    @property
    def steepness(self) -> float:
        """M / m, rounded upwards: how many times as steep as the ridge within it the penalty may be."""
        return self.smoothness / self.strong_convexity * (1.0 + 2.0**-40)


def values_of(penalty: StronglyConvex, weights: Weights) -> Array:
    """N (k,) at (k, d) weights; NaN where it cannot be computed."""
    return np.array([_called(penalty.value, point, ()) for point in weights], dtype=np.float64)


def slopes_of(penalty: StronglyConvex, weights: Weights) -> Weights:
    """The gradients (k, d) of N at (k, d) weights; NaN where they cannot be computed.

    An error of the user's code is not passed on, since its message might show weights without noise.
    """
    return np.array([_called(penalty.gradient, point, point.shape) for point in weights], dtype=np.float64)


def _called(function: Any, weights: Array, shape: tuple[int, ...]) -> Array:
    """One value or gradient. The weights are a copy, so the function can change nothing."""
    answer: Array | None = asked(lambda: function(np.array(weights)), shape)
    return np.full(shape, np.nan) if answer is None else answer


# The least subgradients of objectives with an l1 penalty. Proof: privacy/proofs/elastic_net.md, lemma 1.


def least_subgradients(weights: Weights, gradients: Array, l1: Array) -> Array:
    """The subgradients (k, D) of least norm, from the gradients of all but the l1 penalty.

    Where a weight is 0, the penalty has every slope from -l1 to l1, and the one that leaves least is taken.
    """
    slopes = np.where(weights == 0.0, -np.clip(gradients, -l1, l1), np.sign(weights) * l1)
    slopes_with_penalty: Array = gradients + slopes
    return slopes_with_penalty
