"""A tape of one release: every number that depends on data at the moment when noise meets it, and every draw.

On replay the draws and the released numbers of the first run are given again. So a run on a neighbour takes the same way,
and what goes into each step can be compared. This is the idea of dp-recorder (arXiv 2602.17454).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from confide.audit.densities import Density, log_density, shape_norm, whitened
from confide.audit.overhearing import mechanisms, replaced
from confide.errors import ParameterError
from confide.privacy.budgets import budget_of_row, pure_epsilon
from confide.privacy.lattice import LatticeGaussian, LatticeNoise
from confide.privacy.mechanism import Noise, Plan
from confide.privacy.moments import SecondMoments
from confide.privacy.noise import Entropy
from confide.privacy.selection import Repetition, Selection
from confide.privacy.sensitivity import gradient_shift
from confide.privacy.sufficient_statistics import SufficientStatistics
from confide.types import Array

_ORDERS_OF_NORMS = {"l1": 1, "l2": 2, "max": math.inf}
_TINY = 1e-9
"""Distances are allowed to exceed what is declared by this part, for the rounding of the comparison itself."""


@dataclass(frozen=True, slots=True)
class Step:
    """One comparison of two runs.

    Attributes
    ----------
    name : str
        What is compared.
    measured : float
        The distance between the two runs.
    declared : float
        The largest distance for which the noise was made.
    """

    name: str
    measured: float
    declared: float

    @property
    def holds(self) -> bool:
        """Whether the distance is within what was declared."""
        return self.measured <= self.declared * (1.0 + _TINY)


class ControlFlowDiffers(BaseException):
    """The second run asked for something else than the first: which way is taken depends on a row. No release catches it."""


@dataclass
class Tape:
    """What was recorded, and how far it was replayed."""

    rows_changed: int
    entries: list[tuple[str, Any, Any, Any]] = field(default_factory=list)
    """(what, public facts, data, result)"""
    steps: list[Step] = field(default_factory=list)
    position: int = 0
    is_replayed: bool = False
    contexts: list[tuple[Any, Any]] = field(default_factory=list)
    """Plan and rows of the mechanisms that are running."""
    depth: int = 0

    def meet(self, what: str, facts: Any, data: Any, make: Callable[[], Any], compare: Callable[[Any], list[Step]]) -> Any:
        """Record a step, or replay it: compare its data with those of the first run and give the first run's result."""
        if not self.is_replayed:
            self.depth += 1
            try:
                result = make()
            finally:
                self.depth -= 1
            self.entries.append((what, facts, data, result))
            return result
        if self.position == len(self.entries):
            raise ControlFlowDiffers(f"the run on the neighbour has one step more than the first run: {what}.")
        before, known, recorded, result = self.entries[self.position]
        self.position += 1
        if (before, known) != (what, facts):
            raise ControlFlowDiffers(
                f"step {self.position} of the first run was {before}, and on the neighbour it is {what}."
            )
        self.steps += compare(recorded)
        return result

    def hidden(self, what: str, facts: Any, make: Callable[[], Any], adapted: Callable[[Any], Any] | None = None) -> Any:
        """Record or replay a draw that no data meet. `adapted` fits it to the second run."""
        if self.depth:
            return make()
        result = self.meet(what, facts, None, make, lambda _: [])
        return result if adapted is None or not self.is_replayed else adapted(result)

    @property
    def plan(self) -> Any:
        """The plan of the mechanism that is running, or None."""
        return self.contexts[-1][0] if self.contexts else None


_ACTIVE: ContextVar[Tape | None] = ContextVar("confide_audit_tape", default=None)


def noisy(
    value: Any,
    *,
    sensitivity: float,
    noise: Callable[[tuple[int, ...]], Any],
    norm: str = "l2",
    name: str = "noisy sum",
) -> Any:
    """Add noise to a number or an array, in a place where `replay` looks: for code that is not of this package.

    Parameters
    ----------
    value : float or array
        What depends on data.
    sensitivity : float
        The largest distance between the values of neighbours, for which the noise was made.
    noise : callable
        From a shape to noise of that shape.
    norm : {"l1", "l2", "max"}, default "l2"
        In which norm distances are measured.
    name : str
        What is released, for messages.

    Returns
    -------
    float or array
        The value with noise. While `replay` runs the second data set, that of the first one.

    Raises
    ------
    ParameterError
        If the norm is another one, or the sensitivity is not positive.
    """
    if norm not in _ORDERS_OF_NORMS or not sensitivity > 0.0:
        raise ParameterError(f"noisy needs a norm of {', '.join(_ORDERS_OF_NORMS)}, and a positive sensitivity.")
    exact = np.asarray(value, dtype=np.float64)

    def make() -> Any:
        return exact + noise(exact.shape)

    tape = _ACTIVE.get()
    if tape is None:
        return make()

    def compare(recorded: Array) -> list[Step]:
        return [Step(name, _distance(exact - recorded, norm), sensitivity * tape.rows_changed)]

    return tape.meet(name, (exact.shape, sensitivity, norm), exact, make, compare)


@contextmanager
def running(tape: Tape) -> Iterator[None]:
    """Record or replay what happens inside."""
    token = _ACTIVE.set(tape)
    try:
        with replaced(_changes(tape)):
            yield
    finally:
        _ACTIVE.reset(token)


def _changes(tape: Tape) -> list[tuple[type, str, Callable[..., Any]]]:
    """The methods that are replaced while a tape runs."""
    with_plan = [
        (kind, "release", partial(_with_context, tape)) for kind in (*mechanisms(), SufficientStatistics, SecondMoments)
    ]
    return [
        *with_plan,
        (Noise, "draw", partial(_draw, tape)),
        (LatticeNoise, "integers", partial(_integers, tape)),
        (LatticeNoise, "release", partial(_release, tape)),
        (Selection, "choose", partial(_choose, tape)),
        (Repetition, "draw", lambda old, own, entropy: tape.hidden("number of tries", own, lambda: old(own, entropy))),
        (Entropy, "permutation", partial(_permutation, tape)),
        (Entropy, "below", lambda old, own, n: tape.hidden("random number", n, lambda: old(own, n))),
    ]


def _with_context(tape: Tape, old: Callable[..., Any], mechanism: Any, plan: Any, *rest: Any) -> Any:
    source = next((each for each in rest if hasattr(each, "sum_over_rows")), None)
    tape.contexts.append((plan, source))
    try:
        return old(mechanism, plan, *rest)
    finally:
        tape.contexts.pop()


def _permutation(tape: Tape, old: Callable[..., Any], own: Entropy, n: int) -> Any:
    """The order of n rows: where the neighbour has a row more or less, the others keep their places."""

    def adapted(order: Any) -> Any:
        kept = order[order < n]
        return np.concatenate([kept, np.arange(len(order), n, dtype=kept.dtype)])

    return tape.hidden("random order", None, lambda: old(own, n), adapted)


def _draw(tape: Tape, old: Callable[..., Any], noise: Noise, entropy: Entropy) -> Any:
    """Continuous noise. In an objective, the neighbour gets the noise that leads to the same minimiser."""
    drawn = tape.hidden(f"{noise.law} noise in a {noise.shape.name}", noise, lambda: old(noise, entropy))
    if tape.depth or not tape.is_replayed or not _perturbs_objective(tape.plan):
        return drawn
    if tape.position == len(tape.entries):
        raise ControlFlowDiffers("the first run ended with noise in an objective and no seal.")
    weights, behind, logarithm = tape.entries[tape.position][2]
    density = Density(*tape.contexts[-1])
    own = density.noise_behind(weights)
    # What the determinants of the Hessians differ by, without the density of the noise.
    bends = (logarithm - log_density(noise, behind)) - (density.log(weights) - log_density(noise, own))
    tape.steps += _steps_of_objective(tape, noise, behind - own, abs(float(bends[0])))
    return own


def _perturbs_objective(plan: Any) -> bool:
    return isinstance(plan, Plan) and plan.perturbs_objective


def _steps_of_objective(tape: Tape, noise: Noise, shift: Array, bends: float) -> list[Step]:
    """How far the noise behind the same minimiser lies apart, and for Laplace noise what that costs, curvature included.

    The cost is that of noise in the worst direction, so it does not depend on the draw.
    """
    plan = tape.plan
    problem, times = plan.problem, tape.rows_changed
    largest = gradient_shift(problem.loss_bounds.lipschitz, problem.neighbours) * times
    if noise.law == "laplace":
        apart = float(shape_norm(noise.shape, shift)[0])
        epsilon = pure_epsilon(budget_of_row(plan.budget, problem.rows_per_person)) * (1.0 - plan.seal_share)
        return [
            Step("gradients at the released weights", apart, largest),
            Step("privacy loss of the noise in the objective", noise.scale * apart + bends, epsilon * times),
        ]
    return [
        Step("gradients at the released weights, in deviations", float(whitened(noise, shift)[0]), largest / noise.scale)
    ]


def _integers(tape: Tape, old: Callable[..., Any], lattice: LatticeNoise, n: int, entropy: Entropy) -> Any:
    return tape.hidden("draws of noise on a grid", (lattice, n), lambda: old(lattice, n, entropy))


def _release(
    tape: Tape, old: Callable[..., Any], lattice: LatticeNoise, weights: Array, entropy: Entropy, drawn: Any = None
) -> Any:
    """The last step of a mechanism: numbers that depend on data, and exact noise."""
    plan, data = tape.plan, (np.array(weights),)
    if _perturbs_objective(plan) and not tape.is_replayed:
        density = Density(*tape.contexts[-1])
        data = (np.array(weights), density.noise_behind(weights), density.log(weights))  # type: ignore[assignment]

    def compare(recorded: Any) -> list[Step]:
        apart = weights - recorded[0]
        noise = None if _perturbs_objective(plan) else getattr(plan, "noise", None)
        if noise is not None:
            # Noise with a density was added before, the same in both runs, and the grid covers what is inexact in it.
            problem = plan.problem
            epsilon = pure_epsilon(budget_of_row(plan.budget, problem.rows_per_person)) - lattice.epsilon  # type: ignore[attr-defined]
            loss = noise.scale * float(shape_norm(noise.shape, apart)[0])
            return [Step("privacy loss of the noise on a sum or on weights", loss, epsilon * tape.rows_changed)]
        if isinstance(lattice, LatticeGaussian):
            return [Step(_name(plan), _distance(apart, "l2"), lattice.l2_sensitivity * tape.rows_changed)]
        largest = (
            math.sqrt(lattice.dimension) * lattice.l2_sensitivity * (1 if _perturbs_objective(plan) else tape.rows_changed)
        )
        return [Step(_name(plan), _distance(apart, "l1"), largest)]

    return tape.meet(
        "noise on a grid", (lattice, weights.shape), data, lambda: old(lattice, weights, entropy, drawn), compare
    )


def _name(plan: Any) -> str:
    if _perturbs_objective(plan):
        return "minimisers before the seal"
    return "weights before noise" if isinstance(plan, Plan) and plan.mechanism != "gradient" else "sums before noise"


def _choose(tape: Tape, old: Callable[..., Any], selection: Selection, mistakes: Any, entropy: Entropy) -> Any:
    """A private choice: the numbers of mistakes of two runs differ by at most 1."""
    exact = [float(each) for each in mistakes]

    def compare(recorded: list[float]) -> list[Step]:
        return [Step("numbers of mistakes", _distance(np.subtract(exact, recorded), "max"), float(tape.rows_changed))]

    return tape.meet("a private choice", (selection, len(exact)), exact, lambda: old(selection, mistakes, entropy), compare)


def _distance(apart: Any, norm: str) -> float:
    return float(np.linalg.norm(np.ravel(apart), _ORDERS_OF_NORMS[norm])) if np.size(apart) else 0.0
