"""Limited-memory BFGS for k problems at once, from gradients alone: one pass over the rows for each step of all of them.

With a metric, an approximation of the inverse Hessian, it corrects that. Without one it serves where weights are too many
for a Hessian, best in units in which all are curved alike. Steps are judged by slopes: values, whose differences drown in
rounding, are never asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from confide.data.source import RowSource
from confide.erm.objective import Objective
from confide.solvers.line_search import HasGradients, flat_steps
from confide.solvers.progress import Progress
from confide.solvers.solver import Solution
from confide.types import Array, Indices, Weights

_FLAT_ENOUGH = 0.9
"""The share of the slope that a full step may leave."""
_FLATNESS = 0.3
"""The share that a line search leaves."""
_FEW_ROWS = 4096
"""So many tell how curved the objective is along one line."""
_GAINS_LESS = 2.0
"""How much less than the last step the next may gain."""
_SLOW_STEPS_AFAR = 200
"""So many steps afar that gain little are given up, where it is not said how many."""


class _Curvature:
    """The last few steps and what they did to the gradients: approximations of k inverse Hessians."""

    def __init__(self, most_pairs: int, metric: Callable[[Array], Array] | None, units: Array, scale: float) -> None:
        self.pairs: deque[tuple[Array, Array, Array]] = deque(maxlen=most_pairs)
        self.metric, self.units, self.scale = metric, units, scale

    def learn(self, which: Indices, steps: Array, changes: Array, n_problems: int) -> None:
        """Steps and changes of gradients (len(which), D); other problems learn nothing."""
        products = np.einsum("kd,kd->k", steps, changes)
        # Positive for a strongly convex objective; below rounding it would teach nonsense.
        sound = products > 1e-14 * np.linalg.norm(steps, axis=1) * np.linalg.norm(changes, axis=1)
        pair = np.zeros((2, n_problems, steps.shape[1]))
        inverses = np.zeros(n_problems)
        pair[0, which], pair[1, which] = steps, changes
        inverses[which] = np.where(sound, 1.0 / np.where(sound, products, 1.0), 0.0)
        self.pairs.append((pair[0], pair[1], inverses))

    def directions(self, which: Indices, gradients: Array) -> Array:
        """Minus the approximate inverse Hessians times the gradients: the two loops of Nocedal (1980)."""
        directions, shares = -gradients, []
        for steps, changes, inverses in reversed(self.pairs):
            share = inverses[which] * np.einsum("kd,kd->k", steps[which], directions)
            shares.append(share)
            directions = directions - share[:, None] * changes[which]
        directions = self.metric(directions) if self.metric else directions * self._scales(which)[:, None] * self.units
        for (steps, changes, inverses), share in zip(self.pairs, reversed(shares), strict=True):
            back = inverses[which] * np.einsum("kd,kd->k", changes[which], directions)
            directions = directions + (share - back)[:, None] * steps[which]
        return directions

    def _scales(self, which: Indices) -> Array:
        scales = np.full(len(which), self.scale)
        for _, changes, inverses in self.pairs:
            squares = inverses[which] * np.einsum("kd,kd->k", changes[which], changes[which] * self.units)
            scales = np.where(squares > 0.0, 1.0 / np.where(squares > 0.0, squares, 1.0), scales)
        return scales


def on_part(objective: Objective, part: RowSource) -> tuple[Objective, float]:
    """The problems over a part of the rows, ridge and linear terms in proportion; and which share of the rows that is."""
    share = part.n_rows / objective.source.n_rows
    return replace(objective, source=part, l2=objective.l2 * share, linear=objective.linear * share), share


def _first_scale(objective: Objective, start: Weights, gradients: Array, units: Array) -> float:
    """A length for the first step over that of the gradient: from a bound on curvature, or from that of a few rows."""
    curved = objective.smoothness if np.isfinite(objective.smoothness) else np.linalg.norm(gradients, axis=1).max() or 1.0
    # A number of NumPy, since the division of others by 0 raises.
    safe = np.float64(curved) * units.max()
    sample, n_rows = getattr(objective.source, "sample", None), objective.source.n_rows
    if sample is None or n_rows < 4 * _FEW_ROWS:
        return float(1.0 / safe)
    few, share = on_part(objective.restrict(np.arange(1)), sample(_FEW_ROWS))
    step = -gradients[:1] * units / safe
    change = few.evaluate(start[:1] + step, order=1).gradient - few.evaluate(start[:1], order=1).gradient
    found = float(share * (change * step).sum() / (change * change * units).sum())
    return found if found > 1.0 / safe and np.isfinite(found) else float(1.0 / safe)


class FromAfar(NamedTuple):
    """An objective that is cheaper and believed to be the same; steps are made on it until all problems are close."""

    passes: HasGradients
    floor: float = 0.0
    """The gradient norm below which it is not believed."""
    precision: type[np.floating[Any]] = np.float64
    """Of the weights that it tells apart."""


@dataclass(frozen=True, slots=True)
class LimitedMemory:
    """L-BFGS with line searches by slopes. Without a theorem, as `Newton` is.

    Parameters
    ----------
    most_steps, most_pairs : steps, and pairs of step and change that are kept
    metric : takes (k, D) gradients to steps, an approximate inverse Hessian for all problems; None for a multiple of 1
    units : (D,) without a metric: about the inverse curvature of each weight, up to a factor for all; 1.0 for alike
    roughly : a problem also ends at this share of the largest gradient norm met
    most_slow_steps : a problem ends unfinished when so many steps did not bring its gradient to a tenth; None for never
    from_afar : what the first steps are made on, one after the other
    anew : whether all begins again without them where they do not lead to the tolerance
    """

    most_steps: int = 2000
    most_pairs: int = 10
    metric: Callable[[Array], Array] | None = None
    units: Array | float = 1.0
    roughly: float = 0.0
    most_slow_steps: int | None = None
    from_afar: tuple[FromAfar, ...] = ()
    anew: bool = True

    def solve(self, objective: Objective, start: Weights, tolerance: float) -> Solution:
        if self.from_afar:
            guarded = replace(self, most_slow_steps=self.most_slow_steps or _SLOW_STEPS_AFAR)
            solution = guarded._steps(objective, self.from_afar, start, tolerance)
            if not self.anew or (solution.gradient_norm <= tolerance).all():
                return solution
        return self._steps(objective, (), start, tolerance)

    def _steps(self, objective: Objective, from_afar: tuple[FromAfar, ...], start: Weights, tolerance: float) -> Solution:
        ways = [*from_afar, FromAfar(objective)]
        passes, floor, precision = ways.pop(0)
        gradients = passes.evaluate(start, order=1).gradient
        enough = np.maximum(tolerance, self.roughly * np.linalg.norm(gradients, axis=1))
        progress = Progress(start, gradients, enough)
        close, expected = np.zeros(len(start), dtype=bool), np.full(len(start), np.inf)
        first, units = np.linalg.norm(gradients, axis=1), np.broadcast_to(self.units, start.shape[1:])
        scale = _first_scale(objective, start, gradients, units) if self.metric is None else 1.0
        weights, curvature = start.copy(), _Curvature(self.most_pairs, self.metric, units, scale)
        milestone, since = first.copy(), np.zeros(len(start), dtype=np.intp)
        for _ in range(self.most_steps):
            which = progress.unfinished()
            which = which[~close[which]]
            if self.most_slow_steps is not None:
                which = which[since[which] < self.most_slow_steps]
            if which.size == 0 and passes is objective:
                break
            if which.size == 0:
                # The steps that follow, one for each problem at least, are judged anew; the last by the objective itself,
                # and all of them where one may be enough.
                passes, floor, precision = ways.pop(-1 if (expected <= enough).all() else 0)
                close[...] = False
                progress.begin_again()
                continue
            directions = curvature.directions(which, gradients[which])
            slopes = np.einsum("kd,kd->k", gradients[which], directions)
            if not (slopes < 0.0).all():
                curvature = _Curvature(self.most_pairs, self.metric, units, scale)
                directions = curvature.directions(which, gradients[which])
                slopes = np.einsum("kd,kd->k", gradients[which], directions)
            problems = passes.restrict(which)
            trials = weights[which] + directions
            if passes is not objective:
                trials = trials.astype(precision).astype(np.float64, copy=False)
                directions = trials - weights[which]
            found = problems.evaluate(trials, order=1).gradient
            left = np.abs(np.einsum("kd,kd->k", found, directions))
            refused = np.flatnonzero(~((left <= -_FLAT_ENOUGH * slopes) | progress.near_floor(which)))
            if refused.size:
                lines, here = problems.restrict(refused), weights[which[refused]]
                steps, found[refused] = flat_steps(lines, here, directions[refused], slopes[refused], _FLATNESS)
                trials[refused] = here + steps[:, None] * directions[refused]
            curvature.learn(which, trials - weights[which], found - gradients[which], len(start))
            before, norms = np.linalg.norm(gradients[which], axis=1), progress.arrive(which, trials, found)
            weights[which], gradients[which] = trials, found
            if passes is not objective:
                # Whether a step that gains as much as this one did, or somewhat less, would be the last, or one too many.
                expected[which] = norms * (norms / before)
                close[which] = expected[which] <= np.maximum(enough[which] / _GAINS_LESS, floor)
            far = norms <= 0.1 * milestone[which]
            milestone[which[far]], since[which] = norms[far], np.where(far, 0, since[which] + 1)
        if passes is not objective:
            # The steps ran out before the objective itself was asked.
            progress.begin_again()
        return progress.solution()
