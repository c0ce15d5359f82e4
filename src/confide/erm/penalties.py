"""What a fit minimises beside the losses: ridges, an l1 penalty, the norm of a form, or a function of the user's.

Proofs, in privacy/proofs: objective_perturbation.md, section 11 (ridges), elastic_net.md (l1), penalty.md, section 8 (forms)
and strongly_convex.md (functions).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from confide.array_types import Array, Weights
from confide.erm.coded_rows import unchangeable
from confide.erm.row_bounds import BallBound, RowBound, norm_with_intercept
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
        return {name: getattr(self, name) for name in ("strong_convexity", "smoothness", "name", "rounding")}

    @property
    def steepness(self) -> float:
        """M / m, rounded upwards: how many times as steep as the ridge within it the penalty may be."""
        return self.smoothness / self.strong_convexity * (1.0 + 2.0**-40)


class NormMap(Protocol):
    """The public linear map M of rows to the norm of a quadratic form."""

    @property
    def n_features(self) -> int:
        """Number of columns."""

    @property
    def blocks(self) -> tuple[tuple[int, Array], ...]:
        """Pairs of the first column of a block and its map; columns in no block are multiplied by a number."""

    @property
    def longest_map(self) -> float:
        """The largest factor by which the map stretches a row."""

    def longest(self, row_bound: RowBound) -> float:
        """The largest L2 norm of a mapped row within this bound."""

    def weights_of(self, coef: Array) -> Array:
        """Weights (k, d or more) of rows as they are, from those in the norm: M' v."""

    def sums_in_norm(self, sums: Array) -> Array:
        """Sums (k, d or more) of multiples of mapped rows, from those of rows as they are: M g."""


@dataclass(frozen=True, slots=True)
class Penalty:
    """What a fit minimises beside the losses: the sum of its parts. Without any part it is the ridge (l2 / 2) |w|^2.

    `l2` is the least ridge of the sum form, by which the whole is strongly convex.

    Parameters
    ----------
    factors, sizes : for each group of weights, r: how many times as strong as `l2` the ridge of these weights is, the least
        of them 1; and the number of its weights. Empty for one ridge
    l1_ratio : share of an l1 penalty in the whole strength, in [0, 1); the ridge has the rest, and the intercept the ridge
        alone
    form : the weights are those in the norm of this form, in which they have the ridge; rows are not mapped
    function : N, m-strongly convex, of the columns' weights of each score, in place of their ridge; its strength is `l2` / m
    has_levels : whether groups of columns are levels of a category, or knots, of a schema; no proof uses it
    has_ridges_alone : whether there is nothing but ridges of the weights of rows as they are
    is_ridge : whether there is one ridge for all weights, and nothing else
    """

    factors: tuple[float, ...] = ()
    sizes: tuple[int, ...] = ()
    l1_ratio: float = 0.0
    form: NormMap | None = None
    function: StronglyConvex | None = None
    has_levels: bool = False
    has_ridges_alone: bool = field(init=False, compare=False, repr=False)
    is_ridge: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # No object of the user's is asked.
        has_ridges_alone = self.l1_ratio == 0.0 and self.form is None and self.function is None
        object.__setattr__(self, "has_ridges_alone", has_ridges_alone)
        object.__setattr__(self, "is_ridge", has_ridges_alone and not self.factors)

    @property
    def strong_convexity(self) -> float:
        """The ridge within the penalty at a strength of 1."""
        return 1.0 if self.function is None else self.function.strong_convexity

    def row_norm(self, row_bound: RowBound, intercept: float) -> float:
        """Largest L2 norm of a clipped row with its intercept, mapped if there is a form."""
        bound = row_bound if self.form is None else BallBound(self.form.longest(row_bound))
        return norm_with_intercept(bound, intercept)

    def ridges(self, l2: float) -> Any:
        """The ridge of each weight, (D,), or one number for all of them. Nobody can write to it."""
        return unchangeable(l2 * np.repeat(self.factors, self.sizes)) if self.factors else l2

    def l1_strength(self, l2: float) -> float:
        """The strength of the l1 penalty on each weight that has one."""
        return l2 * (self.l1_ratio / (1.0 - self.l1_ratio))

    def value(self, l2: float, weights: Weights, n_outputs: int, n_features: int) -> Array:
        """(k,), at weights (k, o D); without an l1 penalty."""
        if self.function is None:
            return np.asarray(np.einsum("kd,kd->k", 0.5 * self.ridges(l2) * weights, weights))
        by_score = weights.reshape(len(weights) * n_outputs, -1)
        values = l2 / self.strong_convexity * values_of(self.function, by_score[:, :n_features])
        values += 0.5 * l2 * np.square(by_score[:, n_features:]).sum(axis=1)
        return np.asarray(values.reshape(len(weights), -1).sum(axis=1))

    def lent(self) -> Penalty:
        """The same for a solver. Where a function cannot be copied the solver gets none, and nothing can be certified."""
        function = self.function
        if function is not None:
            function = asked(lambda: deepcopy(function), None) or replace(function, value=None, gradient=None)
        return replace(self, form=deepcopy(self.form), function=function)


RIDGE = Penalty()
"""One ridge for all weights."""


def values_of(penalty: StronglyConvex, weights: Weights) -> Array:
    """N (k,) at (k, d) weights; NaN where it cannot be computed."""
    return np.array([_called(penalty.value, point, ()) for point in weights], dtype=np.float64)


def slopes_of(penalty: StronglyConvex, weights: Weights) -> Weights:
    """The gradients (k, d) of N at (k, d) weights; NaN where they cannot be computed.

    An error of the user's code is not passed on, since its message might show weights without noise.
    """
    return np.array([_called(penalty.gradient, point, point.shape) for point in weights], dtype=np.float64)


def gradient_of_function(function: StronglyConvex, l2: float, weights: Weights, n_outputs: int, n_features: int) -> Array:
    """The gradients (k, o D) of l2 / m N of the columns' weights of each score, and of the ridge of the intercept."""
    by_score = weights.reshape(len(weights) * n_outputs, -1)
    slopes = l2 * by_score
    slopes[:, :n_features] = l2 / function.strong_convexity * slopes_of(function, by_score[:, :n_features])
    return slopes.reshape(weights.shape)


def _called(function: Any, weights: Array, shape: tuple[int, ...]) -> Array:
    """One value or gradient. The weights are a copy, so the function can change nothing."""
    answer: Array | None = asked(lambda: function(np.array(weights)), shape)
    return np.full(shape, np.nan) if answer is None else answer


# The least subgradients of objectives with an l1 penalty, and its proximal step. Proof: privacy/proofs/elastic_net.md.


def least_subgradients(weights: Weights, gradients: Array, l1: Array) -> Array:
    """The subgradients (k, D) of least norm, from the gradients of all but the l1 penalty.

    Where a weight is 0, the penalty has every slope from -l1 to l1, and the one that leaves least is taken.
    """
    slopes: Array = np.where(weights == 0.0, -np.clip(gradients, -l1, l1), np.sign(weights) * l1)
    return gradients + slopes


def shrunk(points: Array, by: Any) -> Array:
    """Each number moved towards 0 by so much, and 0 where it would pass it: the proximal step of an l1 penalty."""
    return np.asarray(np.sign(points) * np.maximum(np.abs(points) - by, 0.0))
