"""Limited-memory BFGS for k problems at once, from gradients alone: one pass over the rows for each step of all of them.

Given a metric, which is an approximation of the inverse Hessian, L-BFGS corrects it. Without a metric it serves problems
with too many weights for a Hessian. It then does best when each column has a scale by which all columns are curved alike.
Steps are judged by slopes. Values are never asked for, because their differences drown in rounding close to the minimiser.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from confide.array_types import Array, Indices, Weights
from confide.erm.objective import HasGradients, Objectives, Solution, on_part
from confide.solvers.newton import BestPoints, flat_steps

_FLAT_ENOUGH = 0.9
"""The share of the slope that a full step may leave."""
_FLATNESS = 0.3
"""The share of the slope that a line search leaves."""
_SAMPLED_ROWS = 4096
"""So many rows tell how curved the objective is along one line."""
_LEAST_ROWS_PER_SAMPLED = 4
"""A sample is taken where the rows are at least this many times as many as the sampled ones."""
_NEXT_GAIN = 2.0
"""The next step is expected to reduce the gradient by the same factor as the last step, or by this many times less."""
_MOST_SLOW_CHEAP_STEPS = 200
"""Limit for slow steps on cheaper objectives where the caller sets none; see `most_slow_steps` of `LimitedMemory`."""


class _Curvature:
    """The last few steps and how they changed the gradients: approximations of k inverse Hessians.

    Parameters
    ----------
    most_pairs : how many steps are remembered
    metric : see `LimitedMemory`
    column_scales : (D,), used without a metric
    scale : what `column_scales` are multiplied with until there is a first step
    """

    def __init__(self, most_pairs: int, metric: Callable[[Array], Array] | None, column_scales: Array, scale: float) -> None:
        self.pairs: deque[tuple[Array, Array, Array]] = deque(maxlen=most_pairs)
        self.metric, self.column_scales, self.scale = metric, column_scales, scale

    def learn(self, which: Indices, steps: Array, changes: Array, n_problems: int) -> None:
        """Remember steps and changes of gradients (len(which), D) of these problems; other problems learn nothing."""
        products = np.einsum("kd,kd->k", steps, changes)
        # They are positive for a strongly convex objective. A product below the rounding error would teach nonsense.
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
        if self.metric:
            directions = self.metric(directions)
        else:
            directions = directions * self._scales(which)[:, None] * self.column_scales
        for (steps, changes, inverses), share in zip(self.pairs, reversed(shares), strict=True):
            back = inverses[which] * np.einsum("kd,kd->k", changes[which], directions)
            directions = directions + (share - back)[:, None] * steps[which]
        return directions

    def _scales(self, which: Indices) -> Array:
        """For each problem the factor of the column scales, from its last sound pair."""
        scales = np.full(len(which), self.scale)
        for _, changes, inverses in self.pairs:
            squares = inverses[which] * np.einsum("kd,kd->k", changes[which], changes[which] * self.column_scales)
            scales = np.where(squares > 0.0, 1.0 / np.where(squares > 0.0, squares, 1.0), scales)
        return scales


def _first_scale(objective: Objectives, start: Weights, gradients: Array, column_scales: Array) -> float:
    """The length of the first step over that of the gradient: from a bound on curvature, or the curvature of a few rows."""
    curved = objective.smoothness if np.isfinite(objective.smoothness) else np.linalg.norm(gradients, axis=1).max() or 1.0
    # A number of NumPy: Python's own would raise where something is divided by 0.
    safe = np.float64(curved) * column_scales.max()
    enough = objective.source.n_rows >= _LEAST_ROWS_PER_SAMPLED * _SAMPLED_ROWS
    sample = objective.source.sample(_SAMPLED_ROWS) if enough else None
    if sample is None:
        return float(1.0 / safe)
    few, share = on_part(objective.restrict(np.arange(1)), sample)
    step = -gradients[:1] * column_scales / safe
    change = few.evaluate(start[:1] + step, order=1).gradient - few.evaluate(start[:1], order=1).gradient
    scale = float(share * (change * step).sum() / (change * change * column_scales).sum())
    return scale if scale > 1.0 / safe and np.isfinite(scale) else float(1.0 / safe)


class Stage(NamedTuple):
    """Objectives that steps are made on until all problems are close to where these lead."""

    objective: HasGradients
    floor: float = 0.0
    """Gradient norms below this one are not believed."""
    precision: type[np.floating[Any]] = np.float64
    """Weights are rounded to numbers of this type, the only ones that the objectives can tell apart."""


class _Schedule:
    """The stages that steps are made on, one after the other: cheaper objectives first, the exact ones last.

    Parameters
    ----------
    cheaper : the stages before the last one
    exact : the objectives themselves
    n_problems : their number
    """

    def __init__(self, cheaper: tuple[Stage, ...], exact: HasGradients, n_problems: int) -> None:
        self._left = [*cheaper, Stage(exact)]
        self.now = self._left.pop(0)
        self._close, self._expected = np.zeros(n_problems, dtype=bool), np.full(n_problems, np.inf)

    @property
    def is_exact(self) -> bool:
        """Whether this is the last stage."""
        return not self._left

    def open(self, which: Indices) -> Indices:
        """Those of the problems that take another step in this stage."""
        return which[~self._close[which]]

    def judge(self, which: Indices, before: Array, norms: Array, enough: Array) -> None:
        """Take note of what a step did to gradient norms. `enough` (k,) are the norms at which all problems are finished."""
        if self.is_exact:
            return
        # A step that gains as much as this one did, or somewhat less, may be the last one needed. It belongs to the next
        # stage, where gradients are exact or closer to that.
        self._expected[which] = norms * (norms / before)
        self._close[which] = self._expected[which] <= np.maximum(enough[which] / _NEXT_GAIN, self.now.floor)

    def advance(self, enough: Array) -> None:
        """Go on to the next stage, or to the last one where a single step may be enough for all problems."""
        if (self._expected <= enough).all():
            self._left = self._left[-1:]
        self.now = self._left.pop(0)
        self._close[...] = False


@dataclass(frozen=True, slots=True)
class LimitedMemory:
    """L-BFGS with line searches by slopes. It has no theorem, as `Newton` has none.

    Parameters
    ----------
    most_steps, most_pairs : steps, and pairs of step and change that are kept
    metric : takes (k, D) gradients to steps, an approximate inverse Hessian for all problems; None for `column_scales`
    column_scales : (D,) used without a metric: about the inverse curvature of each weight, up to a common factor
    relative_tolerance : a problem also ends at this share of its gradient norm at the start
    most_slow_steps : a problem ends unfinished when so many steps did not bring its gradient to a tenth; None for never
    cheaper : stages for the first steps, one after the other, on cheaper objectives that are believed to be nearly the same
    retry_exactly : whether all begins again without these stages where they do not lead to the tolerance
    before : (k,) gradient norms at the points from which one step in this metric led to the start, if there was such a step
    """

    most_steps: int = 2000
    most_pairs: int = 10
    metric: Callable[[Array], Array] | None = None
    column_scales: Array | float = 1.0
    relative_tolerance: float = 0.0
    most_slow_steps: int | None = None
    cheaper: tuple[Stage, ...] = ()
    retry_exactly: bool = True
    before: Array | None = None

    def solve(self, objective: Objectives, start: Weights, tolerance: float) -> Solution:
        def first_scale(gradients: Array, column_scales: Array) -> float:
            return 1.0 if self.metric else _first_scale(objective, start, gradients, column_scales)

        if self.cheaper:
            guarded = replace(self, most_slow_steps=self.most_slow_steps or _MOST_SLOW_CHEAP_STEPS)
            solution = guarded._steps(_Schedule(self.cheaper, objective, len(start)), start, tolerance, first_scale)
            if not self.retry_exactly or (solution.gradient_norm <= tolerance).all():
                return solution
        return self._steps(_Schedule((), objective, len(start)), start, tolerance, first_scale)

    def solve_in_metric(self, problems: HasGradients, start: Weights, tolerance: float, scale: float = 1.0) -> Solution:
        """The same for problems with nothing but gradients: in the metric, or with this scale of the first step."""
        return self._steps(_Schedule((), problems, len(start)), start, tolerance, lambda *_: scale)

    def _steps(
        self, schedule: _Schedule, start: Weights, tolerance: float, first_scale: Callable[[Array, Array], float]
    ) -> Solution:
        gradients = schedule.now.objective.evaluate(start, order=1).gradient
        first = np.linalg.norm(gradients, axis=1)
        enough = np.maximum(tolerance, self.relative_tolerance * first)
        points = BestPoints(start, gradients, enough)
        column_scales = np.broadcast_to(self.column_scales, start.shape[1:])
        scale = first_scale(gradients, column_scales)
        weights, curvature = start.copy(), _Curvature(self.most_pairs, self.metric, column_scales, scale)
        milestone, since, is_rough = first.copy(), np.zeros(len(start), dtype=np.intp), False
        if self.before is not None:
            schedule.judge(np.arange(len(start)), self.before, first, enough)
        for _ in range(self.most_steps):
            which = schedule.open(points.unfinished())
            if self.most_slow_steps is not None:
                which = which[since[which] < self.most_slow_steps]
            if which.size == 0:
                if schedule.is_exact:
                    break
                # Each problem takes at least one step of the next stage, and is judged by that. After single precision this
                # step neither teaches nor is tested: the gradient before it had an error that may be larger than it.
                is_rough = schedule.now.precision == np.float32
                schedule.advance(enough)
                points.forget_norms()
                continue
            directions = curvature.directions(which, gradients[which])
            slopes = np.einsum("kd,kd->k", gradients[which], directions)
            if not (slopes < 0.0).all():
                curvature = _Curvature(self.most_pairs, self.metric, column_scales, scale)
                directions = curvature.directions(which, gradients[which])
                slopes = np.einsum("kd,kd->k", gradients[which], directions)
            problems = schedule.now.objective.restrict(which)
            trials = weights[which] + directions
            if not schedule.is_exact:
                trials = trials.astype(schedule.now.precision).astype(np.float64, copy=False)
                directions = trials - weights[which]
            trial_gradients = problems.evaluate(trials, order=1).gradient
            left = np.abs(np.einsum("kd,kd->k", trial_gradients, directions))
            refused = np.flatnonzero(~((left <= -_FLAT_ENOUGH * slopes) | points.near_floor(which) | is_rough))
            if refused.size:
                lines, here = problems.restrict(refused), weights[which[refused]]
                steps, trial_gradients[refused] = flat_steps(lines, here, directions[refused], slopes[refused], _FLATNESS)
                trials[refused] = here + steps[:, None] * directions[refused]
            if not is_rough:
                curvature.learn(which, trials - weights[which], trial_gradients - gradients[which], len(start))
            is_rough = False
            before, norms = np.linalg.norm(gradients[which], axis=1), points.arrive(which, trials, trial_gradients)
            weights[which], gradients[which] = trials, trial_gradients
            schedule.judge(which, before, norms, enough)
            far = norms <= 0.1 * milestone[which]
            milestone[which[far]], since[which] = norms[far], np.where(far, 0, since[which] + 1)
        if not schedule.is_exact:
            # The steps ran out before the exact objectives were asked, so no norm is theirs.
            points.forget_norms()
        return points.solution()
