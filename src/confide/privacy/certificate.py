"""Distance between computed weights and the exact minimiser, rounding error included.

Proof, and the proof that the tolerance can always be reached: proofs/certificate.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from confide.array_types import Weights
from confide.erm.losses import LossConstants
from confide.erm.objective import KeptObjective, Solver
from confide.erm.penalties import RIDGE, Penalty
from confide.errors import InsufficientRegularisation, NotCertified, wording
from confide.privacy.shapes import LARGEST_BLOCK

_UNIT = 2.0**-53
_UP = 1.0 + 2.0**-40
_STEPS = 4.0
"""So many times the rounding of a proximal step is added to that of a gradient, so that such steps reach the tolerance."""


@dataclass(frozen=True, slots=True)
class GradientRounding:
    """A bound on the rounding error of one computed gradient, from public facts and three norms.

    Parameters
    ----------
    loss : the loss of a row, its weight included
    row_norm : R, largest L2 norm of a clipped row with its intercept
    n_rows : upper bound on the number of rows
    row_width : D, number of entries of a row with its intercept
    summation_depth : m, the longest chain of additions behind one entry of a gradient
    l2 : ridge of the sum form
    centred : whether rows are centred, see `confide.erm.row_bounds`: then their products may cancel
    prior_norm : computed L2 norm of the prior, 0 without one
    intercept : constant appended to every clipped row
    penalty : what is minimised beside the losses
    plain_norm : with a form, the largest L2 norm of a row as it is, with its intercept
    """

    loss: LossConstants
    row_norm: float
    n_rows: int
    row_width: int
    summation_depth: int
    l2: float
    centred: bool = False
    prior_norm: float = 0.0
    intercept: float = 0.0
    penalty: Penalty = RIDGE
    plain_norm: float = 0.0

    def bound(self, weights_norm: float, noise_norm: float, gradient_norm: float) -> float:
        """L2 distance between the computed and the exact gradient.

        1.01 u n R [L (m + D + 5 + w) + (2D + 5) c R |w|] + gamma_3 (l2 |w| + |b|) + 3u |g| + 2^-900, where w is the
        rounding constant of the loss, and 2D + 12 more if the loss uses the lengths of rows. The norms are those of all
        weights, all noise and the whole gradient of one problem. Theorem 2 of proofs/certificate.md; for centred rows, whose
        bound has other numbers of roundings, theorem 2 of proofs/centring.md.
        """
        if not self.penalty.is_ridge:
            return self._of_penalty(weights_norm, noise_norm, gradient_norm)
        loss, dimension = self.loss, self.row_width
        rounding = loss.rounding + (2 * dimension + 12 if loss.by_length else 0)
        of_sums, of_scores = self.summation_depth + dimension + 5, 2 * dimension + 5
        if self.centred:
            of_sums, of_scores = 4 * self.summation_depth + 11 * dimension + 58, 15 * dimension + 57
            if loss.by_length:
                rounding += 10 * (dimension + 3) * (self.row_norm / self.intercept) ** 2
        slopes = loss.lipschitz * (of_sums + rounding)
        margins = of_scores * loss.smoothness * self.row_norm * weights_norm
        sums = 1.01 * _UNIT * self.n_rows * self.row_norm * (slopes + margins)
        return sums + _gamma(3) * (self.l2 * weights_norm + noise_norm) + 3.0 * _UNIT * gradient_norm + 2.0**-900

    def linear_norm(self, noise_bound: float) -> float:
        """Bound on the norm of the computed linear term: the pull of the prior, and noise of norm at most `noise_bound`."""
        return (noise_bound + self.l2 * self.prior_norm) * _UP if self.prior_norm else noise_bound

    def linear_error(self, noise_bound: float) -> float:
        """L2 distance between the computed linear term and the exact sum of noise and pull; without a prior it is 0."""
        return _UNIT * self.linear_norm(noise_bound) if self.prior_norm else 0.0

    def minimiser_norm(self, noise_bound: float) -> float:
        """W: a bound on the norm of the exact minimiser for noise of norm at most `noise_bound`; F(w*) <= F(0)."""
        at_zero = math.sqrt(2.0 * self.n_rows * self.loss.value_at_zero / self.l2)
        return 2.0 * self.linear_norm(noise_bound) / self.l2 + at_zero

    def worst(self, noise_bound: float) -> float:
        """The bound for all points that a solver meets: |w| <= 2W, |noise| <= noise_bound, and the gradients there."""
        weights_norm, linear_norm = 2.0 * self.minimiser_norm(noise_bound), self.linear_norm(noise_bound)
        of_penalty = self.l2 * self.steepness * weights_norm
        gradient_norm = self.n_rows * self.loss.lipschitz * self.row_norm + of_penalty + linear_norm
        return self.bound(weights_norm, linear_norm, gradient_norm)

    @property
    def steepness(self) -> float:
        """S: how many times as steep as its least ridge the penalty may be, without an l1 penalty."""
        function, factors = self.penalty.function, self.penalty.factors
        return function.steepness if function is not None else max(factors) * _UP if factors else 1.0

    @property
    def l1_norm(self) -> float:
        """The L2 norm of the strengths of the l1 penalty, rounded upwards.

        There is no vector of them: what only plans must not need the memory of the weights.
        """
        n_penalised = self.loss.n_outputs * (self.row_width - (self.intercept > 0.0))
        return self.penalty.l1_strength(self.l2) * math.sqrt(n_penalised) * (1.0 + 2.0**-50)

    def _of_penalty(self, weights_norm: float, noise_norm: float, gradient_norm: float) -> float:
        """The bound beside another penalty than one ridge.

        With an l1 penalty `gradient_norm` may be that of the subgradient too, and there is room for the rounding of a
        proximal step: theorem 2 of proofs/elastic_net.md. With several ridges or a function: theorem 4 of
        proofs/strongly_convex.md. With a form sums are over rows as they are, and weights and sums are mapped: theorem 5 of
        proofs/penalty.md.
        """
        loss, penalty, largest = self.loss, self.penalty, gradient_norm + self.l1_norm
        bound = replace(self, penalty=RIDGE).bound(weights_norm, noise_norm, largest)
        if penalty.l1_ratio > 0.0:
            steepest = self.l2 + self.n_rows * loss.smoothness * self.row_norm**2
            bound += _STEPS * (1.1 * _UNIT * (5.0 * (largest + self.l1_norm) + 2.0 * steepest * weights_norm))
        if penalty.factors or penalty.function is not None:
            of_function = 0.0 if penalty.function is None else penalty.function.rounding
            bound += 1.01 * _UNIT * (of_function + 8.0) * (self.l2 * self.steepness * weights_norm)
        if penalty.form is not None:
            stretch = max(1.0, penalty.form.longest_map)
            plain = replace(self, row_norm=self.plain_norm, l2=0.0, penalty=RIDGE)
            of_sums = stretch * plain.bound(1.01 * stretch * weights_norm, 0.0, 0.0)
            products = LARGEST_BLOCK * (loss.lipschitz + 2.0 * loss.smoothness * self.row_norm * weights_norm)
            bound += of_sums + 1.03 * _UNIT * self.n_rows * self.row_norm * products
        return bound


_TOLERANCE_OVER_ROUNDING = 8.0
"""The tolerance of a plan relative to the worst rounding error. The fallback methods reach it for all rows."""

_LEAST_RELATIVE_L2 = 2.0**-20
"""Least ridge relative to L R^2, or to min(L, c) R^2 where L may have the unit of a target, which a ridge has not.

Below it noise drowns every model, and solvers may need very many steps."""

_LARGEST_PULL = 2.0**400
"""The largest norm of the pull of a prior, l2 |w0|. Its square must not overflow, as in the norm of a gradient."""


def planned_tolerance(rounding: GradientRounding, noise_bound: float) -> float:
    """The tolerance of a plan, from public facts.

    Raises
    ------
    InsufficientRegularisation
        If the ridge is too small for the theorem that the tolerance is always reached: it needs a worst rounding error of
        at most l2 W / 7.
    """
    loss, worst = rounding.loss, rounding.worst(noise_bound)
    least = _LEAST_RELATIVE_L2 * min(loss.lipschitz, math.inf if loss.monotone else loss.smoothness) * rounding.row_norm**2
    is_short = rounding.l2 * rounding.prior_norm <= _LARGEST_PULL
    if not (is_short and least <= rounding.l2 and 7.0 * worst <= rounding.l2 * rounding.minimiser_norm(noise_bound)):
        raise InsufficientRegularisation(insufficient(rounding.n_rows, has_prior=rounding.prior_norm > 0.0))
    return _TOLERANCE_OVER_ROUNDING * worst


def insufficient(n_rows: int, *, has_prior: bool) -> str:
    """The message where double precision does not suffice, from public facts."""
    if has_prior:
        return wording("alpha or prior not certified", n_rows=n_rows)
    return wording("alpha not certified", n_rows=n_rows)


def solver_tolerance(tolerance: float) -> float:
    """The largest computed gradient norm at which the certificate passes for certain.

    The rest of the tolerance pays for rounding: twice for a second pass, which may round in another way (other threads,
    other blocks), and once for the term that the certificate adds.
    """
    return tolerance * (1.0 - 3.1 / _TOLERANCE_OVER_ROUNDING)


def certified_minimiser(objective: KeptObjective, solver: Solver, tolerance: float, rounding: GradientRounding) -> Weights:
    """The solver's weights (k, D), once the certificate accepts them. They are copied before they are checked.

    Raises
    ------
    NotCertified
        If the solver gives no such weights, or the check fails.
    """
    weights = np.zeros(objective.linear.shape)
    solution = solver.solve(objective.lent(), weights.copy(), solver_tolerance(tolerance))
    try:
        # The array is filled in place: an object may keep a reference to what it gives as a copy of itself.
        weights[...] = solution.weights
    except Exception:  # noqa: BLE001 - a solver may give anything, whose message might show data
        weights[...] = np.nan
    certify(objective, weights, tolerance, rounding)
    return weights


def certify(objective: KeptObjective, weights: Weights, tolerance: float, rounding: GradientRounding) -> None:
    """Check that every exact gradient norm at `weights` (k, D) is at most `tolerance`.

    `Objective` makes the sums over rows, in a new pass unless one of its last passes was at these weights. By strong
    convexity a small gradient is a small distance: |w - w*| <= |gradient| / l2. Theorem 3 of proofs/certificate.md.

    Raises
    ------
    NotCertified
        If the check fails, NaN included. By the theorem on the fallback methods no data can make it fail.
    """
    gradients = objective.gradients(weights)
    for gradient, weight, linear in zip(gradients, weights, objective.linear, strict=True):
        norm = float(np.linalg.norm(gradient))
        error = rounding.bound(float(np.linalg.norm(weight)), float(np.linalg.norm(linear)), norm)
        bound = norm * (1.0 + _gamma(weights.shape[1] + 4)) + 1.01 * error
        # Written as "not <=" and not as ">", so that a NaN fails.
        if not bound <= tolerance:
            raise NotCertified(wording("not certified"))


def _gamma(k: int) -> float:
    return k * _UNIT / (1.0 - k * _UNIT)
