"""What Gaussian objective perturbation costs: for an epsilon, the least delta that is proven.

Symbols inside formulas: mu shift over standard deviation, c_J the logarithm that the curvature may cost.
Proofs: proofs/gaussian.md. Curves are evaluated in logarithms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import ndtr

from confide.errors import ParameterError
from confide.privacy.budgets import Neighbours
from confide.privacy.gaussian import GaussianMechanism, gaussian_delta, gaussian_deltas
from confide.privacy.renyi import renyi_curve

_UP = 1.0 + 2.0**-40
_FAR = 12.0
"""Deviations of the seal. It decides where cells are small; no bound rests on it."""
_CELLS = 30.0 * np.linspace(0.0, 1.0, 3001) ** 2
"""Ends of the cells of a normal variable, relative to the first end."""


@dataclass(frozen=True, slots=True)
class GaussianObjective:
    """Gaussian objective perturbation with a loss of the score of a row, followed by a Gaussian seal.

    Other Gaussian releases from the same rows may come with it, at the same charge.

    Parameters
    ----------
    mu : largest whitened shift of the gradient by one row: L over the scale of the noise
    curvature : c_J = log(1 + c R^2 / l2)
    kappa : cost of the curvature of a tapered loss; inf for other losses
    seal_mu : whitened sensitivity of the seal
    neighbours : the neighbour relation
    monotone : whether the derivative of the loss has one sign; kappa has a meaning only then
    n_outputs, separable : as those of the loss; for several scores kappa is inf, and `curvature` may be less than c_J
    beside_mu : whitened sensitivity of other Gaussian releases that the same charge covers, before or after this one
    bend : L R^2 / l2 of a tapered loss: a row with the share a of its largest slope costs at most bend a (1 - a) by its
        curvature; inf for other losses, and where it is not known
    evenness, even_bend : a row whose whitened length is this share of the largest has at most this share of `bend`; shorter
        rows have less in proportion to the square of their length, and longer rows no more than in proportion; 1 for a ball
    """

    mu: float
    curvature: float
    kappa: float
    seal_mu: float
    neighbours: Neighbours
    monotone: bool = False
    n_outputs: int = 1
    separable: bool = True
    beside_mu: float = 0.0
    bend: float = math.inf
    evenness: float = 1.0
    even_bend: float = 1.0

    def __post_init__(self) -> None:
        if not self.monotone or self.n_outputs > 1:
            object.__setattr__(self, "kappa", math.inf)
        if not self.monotone and self.n_outputs > 1:
            raise ParameterError("Gaussian noise for several scores needs slopes of one sign.")

    @property
    def added_mu(self) -> float:
        """Whitened sensitivity of the seal and of the releases beside it: together they are one Gaussian mechanism."""
        # hypot errs by less than 2 units in the last place; without releases beside the seal it is exact.
        return math.hypot(self.seal_mu, self.beside_mu) * _UP if self.beside_mu else self.seal_mu

    def corners(self) -> list[tuple[float, float]]:
        """(shift over mu, how many) for the corners of the slopes of the rows that differ, without those that shift nothing.

        For a monotone loss. Proofs: proofs/gaussian.md, theorem 2; for several scores proofs/multiclass.md, theorem 3.
        """
        n, replaced = self.n_outputs, self.neighbours is Neighbours.REPLACE_ONE
        if self.separable and n > 1:
            # Corners of cubes, by the number s of scores whose slope is not 0. They are at most sqrt(2 s / n) L long for
            # either row.
            rows = 2 if replaced else 1
            return [(math.sqrt(rows * s / n) * _UP, float(math.comb(rows * n, s))) for s in range(1, rows * n + 1)]
        corners = max(1, n - 1)
        if not replaced:
            return [(1.0, corners)]
        oblique = [(math.sqrt(3.0) * _UP, float(corners * (corners - 1)))] if corners > 1 else []
        return [(2.0, corners), *oblique, (1.0, 2 * corners)]

    def _shifts(self, kappa_form: bool, room: float) -> list[tuple[float, float, float]]:
        """(cost of the curvature, mu, how many) of the Gaussians whose curves add up to a bound (theorems 2 and 3).

        `room` is what the curvature leaves of epsilon.
        """
        if not self.monotone:
            if self.neighbours is Neighbours.ADD_OR_REMOVE_ONE:
                return [(self.curvature, self.mu, 2.0)]
            # proofs/target_losses.md, theorem 2: the corners are two opposite pairs, whose squared lengths add up to at most
            # (2 mu)^2. Where the curve is convex in the square, the worst case is one pair of full length and one of length
            # 0.
            convex = ((2.0 * self.mu) ** 2 + self.added_mu**2) * _UP <= 2.0 * room**2 / (1.0 + math.hypot(1.0, room))
            return [(self.curvature, 2.0 * self.mu, 2.0), (self.curvature, 0.0 if convex else 2.0 * self.mu, 2.0)]
        if not kappa_form:
            return [(self.curvature, shift * self.mu, count) for shift, count in self.corners()]
        if self.neighbours is Neighbours.ADD_OR_REMOVE_ONE:
            return [(0.0, self.mu, 1.0)]
        return [(0.0, 2.0 * self.mu, 1.0), (0.0, self.mu, 1.0), (self.kappa, self.mu, 1.0)]

    def delta(self, epsilon: float) -> float:
        """Upper bound on the least delta for this epsilon; 1 where no bound is known."""
        known = min(self._delta(epsilon, kappa_form=False), self._delta(epsilon, kappa_form=True))
        # Well above kappa both forms agree, so the second one is evaluated near kappa alone.
        near = self.kappa < math.inf and epsilon - self.kappa < _FAR * self.added_mu
        return min(known, self._bent_delta(epsilon)) if near and self.neighbours is Neighbours.ADD_OR_REMOVE_ONE else known

    def _bent_delta(self, epsilon: float) -> float:
        """Mean of delta_G(epsilon - psi(X); seal) over X ~ N(mu^2 / 2, mu^2), rounded up: theorem 3, second form.

        psi(x) = max over 0 <= a <= 1 of a x + kappa a (1 - a) rises with x, and so does the averaged function. So each cell
        counts with the value at its upper end. Small cells begin where psi is _FAR deviations of the seal below epsilon;
        what lies before adds little.
        """
        mu, kappa = self.mu, self.kappa
        seen = epsilon - _FAR * self.added_mu
        begin = 2.0 * math.sqrt(kappa * max(0.0, seen)) - kappa if seen < kappa else seen
        ends = min(30.0, max(-9.0, begin / mu - 0.5 * mu)) + _CELLS
        chances = np.concatenate([[ndtr(ends[0])], ndtr(-ends[:-1]) - ndtr(-ends[1:])])
        losses = mu * (0.5 * mu + ends)
        slopes = np.clip(0.5 + 0.5 * losses / max(kappa, 2.0**-1000), 0.0, 1.0)
        bent = slopes * losses + kappa * slopes * (1.0 - slopes) + 2.0**-40 * (kappa + np.abs(losses))
        found = np.minimum(1.0, gaussian_deltas(epsilon - bent, self.added_mu)) @ chances
        return min(1.0, float(found + ndtr(-ends[-1])) * (1.0 + 1e-7) + 2.0**-990)

    def _delta(self, epsilon: float, kappa_form: bool) -> float:
        room = epsilon - (self.kappa if kappa_form else self.curvature)
        if not room > 0.0:
            return 1.0
        # The composition of a Gaussian's curve with the seal is again a Gaussian's curve. The first term is the curve where
        # the objective costs as much as the curvature may cost, and no more.
        return gaussian_delta(room, self.added_mu) + sum(
            count * gaussian_delta(epsilon - cost, math.hypot(mu, self.added_mu))
            for cost, mu, count in self._shifts(kappa_form, room)
        )

    def renyi(self, order: float) -> float:
        """Upper bound on the Rényi divergence of this order, above 1."""
        return float(renyi_curve(self, np.array([order]))[0])


Curve: TypeAlias = GaussianMechanism | GaussianObjective
