"""First methods for objectives with an l1 penalty: Newton's method with the penalty in its model, and proximal steps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from confide.array_types import Array, Weights
from confide.erm.objective import Objectives, Solution
from confide.erm.penalties import least_subgradients, shrunk
from confide.solvers.newton import BestPoints

_MOST_NEWTON_STEPS, _MOST_PROXIMAL_STEPS = 60, 3000
_MOST_SWEEPS, _SWEEPS_BETWEEN = 60, 4
"""Sweeps of coordinate descent over one quadratic model, and how many there are between two attempts to solve it exactly."""
_FLAT_ENOUGH = 0.5
"""The share of the slope at its start that a step may leave at its end, in either direction."""


@dataclass(frozen=True, slots=True)
class ProximalNewton:
    """Steps to the minimiser of a quadratic model with the l1 penalty. It is fast and has no theorem. One problem."""

    def solve(self, objective: Objectives, start: Weights, tolerance: float) -> Solution:
        weights, l1 = start.copy(), objective.l1
        state = objective.evaluate(weights, order=2)
        points = BestPoints(weights, least_subgradients(weights, state.gradient, l1), tolerance)
        for _ in range(_MOST_NEWTON_STEPS):
            if points.unfinished().size == 0:
                break
            gradient = state.gradient[0]
            direction = minimiser_of_model(gradient, state.hessian[0], weights[0], l1) - weights[0]
            slope = float(gradient @ direction + _slope_of_l1(weights[0], direction, l1))
            if not np.isfinite(direction).all() or not slope < 0.0:
                break
            for step in 0.5 ** np.arange(30.0):
                trial = weights + step * direction
                state = objective.evaluate(trial, order=2)
                # The slope of a convex function along a line rises: a step that leaves little of it is long enough.
                left = float(state.gradient[0] @ direction - _slope_of_l1(trial[0], -direction, l1))
                if left <= -_FLAT_ENOUGH * slope or points.near_floor(np.arange(1)).all():
                    break
            weights = trial
            points.arrive(np.arange(1), weights, least_subgradients(weights, state.gradient, l1))
        return points.solution()


def _slope_of_l1(weights: Array, direction: Array, l1: Array) -> float:
    """The slope of the l1 penalty along a direction, to the side to which it leads."""
    return float(np.where(weights == 0.0, np.abs(direction), np.sign(weights) * direction) @ l1)


def minimiser_of_model(gradient: Array, hessian: Array, weights: Array, l1: Array) -> Array:
    """The minimiser v (D,) of g . (v - w) + (v - w) . H (v - w) / 2 + sum l1 |v|, by coordinate descent.

    From time to time the signs that it has found are taken to be right, and the weights that go with them are computed. If
    they have these signs and the conditions of the minimiser hold, they are exact.
    """
    point, slopes, diagonal = weights.copy(), gradient.copy(), np.diagonal(hessian)
    for sweep in range(_MOST_SWEEPS):
        if sweep % _SWEEPS_BETWEEN == 0 and (exact := _with_signs_of(point, gradient, hessian, weights, l1)) is not None:
            return exact
        # Between full sweeps only the weights that are not 0 are visited.
        visited = range(len(point)) if sweep % _SWEEPS_BETWEEN in (0, 1) else np.flatnonzero(point)
        for j in visited:
            before = point[j]
            target = before - slopes[j] / diagonal[j]
            limit = l1[j] / diagonal[j]
            after = math.copysign(max(abs(target) - limit, 0.0), target)
            if after != before:
                point[j] = after
                slopes += (after - before) * hessian[j]
    return point


def _with_signs_of(signs: Array, gradient: Array, hessian: Array, weights: Array, l1: Array) -> Array | None:
    """The minimiser of the model if its weights have these signs, otherwise None. A weight without a penalty is free."""
    free = (signs != 0.0) | (l1 == 0.0)
    point = np.zeros_like(weights)
    # The model's slope at v is g + H (v - w) + l1 sign(v), which is 0 at the weights that are not 0.
    at_zero = gradient - hessian @ weights
    if free.any():  # SciPy 1.13 solves no system without unknowns
        try:
            factor = cho_factor(hessian[np.ix_(free, free)], lower=True, check_finite=False)
        except LinAlgError:
            return None
        point[free] = -cho_solve(factor, at_zero[free] + (l1 * np.sign(signs))[free], check_finite=False)
    penalised = free & (l1 > 0.0)
    if (np.sign(point) != np.sign(signs))[penalised].any():
        return None
    slopes = at_zero + hessian @ point
    return point if (np.abs(slopes[~free]) <= l1[~free]).all() else None


@dataclass(frozen=True, slots=True)
class AcceleratedProximalGradient:
    """Accelerated proximal steps without a Hessian, which begin anew where they overshoot. They have no theorem here."""

    def solve(self, objective: Objectives, start: Weights, tolerance: float) -> Solution:
        """One problem (k = 1); see `Solver`."""
        l1 = objective.l1
        weights, ahead, momentum = start.copy(), start.copy(), 1.0
        points = BestPoints(weights, objective.gradients(weights), tolerance)
        steepest = objective.smoothness / 4096.0
        gradient = objective.evaluate(ahead, order=1).gradient
        for _ in range(_MOST_PROXIMAL_STEPS):
            after = shrunk(ahead - gradient / steepest, l1 / steepest)
            there = objective.evaluate(after, order=1).gradient
            moved = after - ahead
            # A step is too long if the gradient changed by more than the curvature that it was made for allows.
            too_long = float(np.vdot(there - gradient, moved)) > steepest * float(np.vdot(moved, moved)) * (1.0 + 1e-9)
            if too_long and steepest < objective.smoothness:
                steepest = min(2.0 * steepest, objective.smoothness)
                continue
            points.arrive(np.arange(1), after, least_subgradients(after, there, l1))
            if points.unfinished().size == 0:
                break
            if float(np.vdot(ahead - after, after - weights)) > 0.0:
                momentum = 1.0
            grown = 0.5 + math.sqrt(0.25 + momentum**2)
            ahead, weights, momentum = after + (momentum - 1.0) / grown * (after - weights), after, grown
            gradient = objective.evaluate(ahead, order=1).gradient
        return points.solution()
