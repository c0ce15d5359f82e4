"""Replay: two runs with the same draws, on a data set and on a neighbour, compared step by step.

One pair and two runs decide, without any chance: a distance that exceeds what the noise was made for is a bug. Source:
dp-recorder (arXiv 2602.17454).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, NoReturn

import numpy as np

from confide.array_types import Array, as_array
from confide.audit.densities import Density, log_density, mechanisms, replaced, shape_norm, whitened
from confide.audit.releases import arguments_of, contents, released_by, unfitted
from confide.errors import NotCertified, ParameterError, as_float, checked_count
from confide.parameters import checked_choice
from confide.privacy.budgets import budget_of_row, pure_epsilon
from confide.privacy.gaussian import gradient_shift
from confide.privacy.lattice import LatticeNoise
from confide.privacy.mechanism import Noise
from confide.privacy.noise import Entropy
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.selection import Repetition, Selection

# A tape of one release: every number that depends on data at the moment when noise meets it, and every draw.
#
# On replay the draws and the released numbers of the first run are given again. So a run on a neighbour takes the same way,
# and what goes into each step can be compared. This is the idea of dp-recorder (arXiv 2602.17454).

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
    """The second run asked for something else than the first: which way is taken depends on a row."""


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
    difference: str | None = None
    """How the second run went another way. A release shows no words of an error that stops it, so they are kept here."""

    def differs(self, what: str) -> NoReturn:
        """Stop a run that goes another way."""
        self.difference = what
        raise ControlFlowDiffers(what)

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
            self.differs(f"the run on the neighbour has one step more than the first run: {what}.")
        before, known, recorded, result = self.entries[self.position]
        self.position += 1
        if (before, known) != (what, facts):
            self.differs(f"step {self.position} of the first run was {before}, and on the neighbour it is {what}.")
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
    value: Any, *, sensitivity: float, noise: Callable[[tuple[int, ...]], Any], norm: str = "l2", name: str = "noisy sum"
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
    checked_choice("norm", norm, _ORDERS_OF_NORMS)
    exact = as_array(value, np.float64)
    if not as_float(sensitivity) > 0.0 or not callable(noise) or not exact.size:
        raise ParameterError("noisy needs numbers, a positive sensitivity, and noise that is a callable of a shape.")

    tape = _ACTIVE.get()
    if tape is None:
        return exact + noise(exact.shape)

    def compare(recorded: Array) -> list[Step]:
        return [Step(name, _distance(exact - recorded, norm), sensitivity * tape.rows_changed)]

    return tape.meet(name, (exact.shape, sensitivity, norm), exact, lambda: exact + noise(exact.shape), compare)


@contextmanager
def running(tape: Tape) -> Iterator[None]:
    """Record or replay what happens inside."""
    token = _ACTIVE.set(tape)
    grid = "draws of noise on a grid"
    methods: list[tuple[type, str, Callable[..., Any]]] = [
        *((kind, "release", partial(_with_context, tape)) for kind in (*mechanisms(), SumPlan)),
        (Noise, "draw", partial(_draw, tape)),
        (LatticeNoise, "integers", lambda old, own, n, entropy: tape.hidden(grid, (own, n), lambda: old(own, n, entropy))),
        (LatticeNoise, "release", partial(_release, tape)),
        (Selection, "choose", partial(_choose, tape)),
        (Selection, "choose_together", partial(_choose, tape)),
        (Repetition, "draw", lambda old, own, entropy: tape.hidden("number of tries", own, lambda: old(own, entropy))),
        (Entropy, "permutation", partial(_permutation, tape)),
        (Entropy, "below", lambda old, own, n: tape.hidden("random number", n, lambda: old(own, n))),
    ]
    try:
        with replaced(methods):
            yield
    finally:
        _ACTIVE.reset(token)


def _with_context(tape: Tape, old: Callable[..., Any], *given: Any) -> Any:
    plan = next(argument for argument in given if hasattr(argument, "lattice"))
    source = next((argument for argument in given if hasattr(argument, "sum_over_rows")), None)
    tape.contexts.append((plan, source))
    try:
        return old(*given)
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
    drawn, plan = tape.hidden(f"{noise.law} noise in a {noise.shape.name}", noise, lambda: old(noise, entropy)), tape.plan
    if tape.depth or not tape.is_replayed or not _in_objective(plan):
        return drawn
    if tape.position == len(tape.entries):
        tape.differs("the first run ended with noise in an objective and no seal.")
    weights, behind, logarithm = tape.entries[tape.position][2]
    density = Density(*tape.contexts[-1])
    own = density.noise_behind(weights)
    # What the determinants of the Hessians differ by, without the density of the noise.
    bends = (logarithm - log_density(noise, behind)) - (density.log(weights) - log_density(noise, own))
    problem, times, shift = plan.problem, tape.rows_changed, behind - own
    largest = gradient_shift(problem.loss_bounds.lipschitz, problem.neighbours) * times
    if noise.law == "laplace":
        # What this costs, curvature included, in the worst direction of the noise: so it does not depend on the draw.
        apart = float(shape_norm(noise.shape, shift)[0])
        epsilon = pure_epsilon(budget_of_row(plan.budget, problem.rows_per_person)) * (1.0 - plan.seal_share)
        loss = noise.scale * apart + abs(float(bends[0]))
        tape.steps.append(Step("gradients at the released weights", apart, largest))
        tape.steps.append(Step("privacy loss of the noise in the objective", loss, epsilon * times))
    else:
        apart, what = float(whitened(noise, shift)[0]), "gradients at the released weights, in deviations"
        tape.steps.append(Step(what, apart, largest / noise.scale))
    return own


def _in_objective(plan: Any) -> bool:
    """Whether the noise of a plan is in an objective, and not on numbers that leave."""
    return bool(getattr(getattr(plan, "noise", None), "in_objective", False))


def _release(
    tape: Tape, old: Callable[..., Any], lattice: LatticeNoise, weights: Array, entropy: Entropy, drawn: Any = None
) -> Any:
    """The last step of a mechanism: numbers that depend on data, and exact noise."""
    plan, data = tape.plan, (np.array(weights),)
    if _in_objective(plan) and not tape.is_replayed:
        density = Density(*tape.contexts[-1])
        data = (np.array(weights), density.noise_behind(weights), density.log(weights))  # type: ignore[assignment]

    def compare(recorded: Any) -> list[Step]:
        apart = weights - recorded[0]
        noise = None if _in_objective(plan) else getattr(plan, "noise", None)
        if noise is not None:
            # Noise with a density was added before, the same in both runs, and the grid covers what is inexact in it.
            problem = plan.problem
            epsilon = pure_epsilon(budget_of_row(plan.budget, problem.rows_per_person)) - lattice.epsilon  # type: ignore[attr-defined]
            loss = noise.scale * float(shape_norm(noise.shape, apart)[0])
            return [Step("privacy loss of the noise on a sum or on weights", loss, epsilon * tape.rows_changed)]
        is_gaussian, are_weights = lattice.law == "gaussian", getattr(plan, "minimises", False)
        name, times = "weights before noise" if are_weights else "sums before noise", tape.rows_changed
        if _in_objective(plan):
            name, times = "minimisers before the seal", times if is_gaussian else 1
        norm, factor = ("l2", 1.0) if is_gaussian else ("l1", math.sqrt(lattice.dimension))
        return [Step(name, _distance(apart, norm), factor * lattice.l2_sensitivity * times)]

    facts = (lattice, weights.shape)
    return tape.meet("noise on a grid", facts, data, lambda: old(lattice, weights, entropy, drawn), compare)


def _choose(tape: Tape, old: Callable[..., Any], selection: Selection, mistakes: Any, *given: Any) -> Any:
    """A private choice: the numbers of mistakes of two runs differ by at most 1. Several lists are chosen from together."""
    exact = np.hstack(mistakes).astype(float).tolist()

    def compare(recorded: list[float]) -> list[Step]:
        return [Step("numbers of mistakes", _distance(np.subtract(exact, recorded), "max"), float(tape.rows_changed))]

    return tape.meet("a private choice", (selection, len(exact)), exact, lambda: old(selection, mistakes, *given), compare)


def _distance(apart: Any, norm: str) -> float:
    return float(np.linalg.norm(np.ravel(apart), _ORDERS_OF_NORMS[norm])) if np.size(apart) else 0.0


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What a replay found.

    Attributes
    ----------
    steps : tuple of Step
        Every comparison: what was compared, the distance measured, and the largest distance for which the noise was made.
    difference : str or None
        How the second run went another way than the first, or None if it did not.
    same_release : bool
        Whether both runs released the same to the last bit, as they must where all noisy numbers were the same.
    """

    steps: tuple[Step, ...]
    difference: str | None
    same_release: bool

    @property
    def holds(self) -> bool:
        """Whether every distance is within what was declared, and both runs went the same way to the same release."""
        return self.difference is None and self.same_release and bool(self.steps) and all(step.holds for step in self.steps)

    @property
    def worst(self) -> float:
        """The largest of the distances over what was declared: above 1 is a bug, and far below 1 is another worst case."""
        return max((step.measured / step.declared for step in self.steps), default=0.0)

    def check(self) -> None:
        """Raise AssertionError with the whole table unless the replay holds: for tests.

        Raises
        ------
        AssertionError
            If it does not hold.
        """
        if not self.holds:
            raise AssertionError(str(self))

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        own = {name: getattr(self, name) for name in ("holds", "difference", "same_release", "worst")}
        return own | {"steps": [asdict(step) | {"holds": step.holds} for step in self.steps]}

    def __str__(self) -> str:
        lines = [f"Replay on a neighbour: {'holds' if self.holds else 'FAILS'}."]
        if self.difference is not None:
            lines.append(f"The two runs go different ways: {self.difference}")
        elif not self.same_release:
            lines.append("The two runs release different things although all noisy numbers were the same.")
        if not self.steps:
            lines.append("No noisy step was seen. Noise of other libraries is seen where confide.audit.noisy adds it.")
        for name in dict.fromkeys(step.name for step in self.steps):
            same = [step for step in self.steps if step.name == name]
            worst = max(same, key=lambda step: math.inf if math.isnan(step.measured) else step.measured / step.declared)
            mark = "" if all(step.holds for step in same) else "   TOO FAR"
            times = "" if len(same) == 1 else f" (worst of {len(same)})"
            lines.append(f"  {name}{times}: measured {worst.measured:.6g}, declared {worst.declared:.6g}{mark}")
        return "\n".join(lines)


def replay(release: Any, *data: Any, neighbour: Any, rows_changed: int = 1) -> ReplayResult:
    """Run a release on a data set and, with the same draws, on a neighbour, and compare every step at which noise is added.

    Parameters
    ----------
    release : estimator or callable
        An estimator of this package, which is copied; or a callable of the data that uses this package, or that adds its
        noise with `confide.audit.noisy`.
    *data
        The data set: `X, y` for an estimator.
    neighbour : tuple or object
        The neighbouring data set; a tuple is given as several arguments.
    rows_changed : int, default 1
        In how many rows the two differ: the declared distances are those of one row. For the rows of a person this is
        `max_rows_per_person`.

    Returns
    -------
    ReplayResult

    Raises
    ------
    ParameterError
        If `rows_changed` is below 1.

    Notes
    -----
    Guarantee: none. Two runs read the rows and charge no ledger, so nothing of the result may be shown to others unless the
    rows are made up. A replay tests sensitivities, which way is taken, and what is done after the noise. It does not test
    the law of the noise.

    Source: dp-recorder (arXiv 2602.17454).

    Examples
    --------
    >>> import confide
    >>> X, y = [[1.0], [-1.0], [0.5]], [1, 0, 1]
    >>> neighbour = [[1.0], [-1.0], [0.5]], [1, 0, 0]
    >>> confide.audit.replay(confide.LogisticRegression(1.0), X, y, neighbour=neighbour).holds
    True
    """
    checked_count("rows_changed", rows_changed)
    released_by(release)  # refuses what is no release
    return replayed(release, data, arguments_of(neighbour), rows_changed)[0]  # type: ignore[no-any-return]


def replayed(release: Any, data: tuple[Any, ...], neighbour: tuple[Any, ...], rows_changed: int) -> tuple[Any, Any, Any]:
    """The result of a replay, and what either run gave; None for a run that went another way."""
    tape, releases = Tape(rows_changed), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for given in (data, neighbour):
            try:
                with running(tape):
                    releases.append(unfitted(release).fit(*given) if hasattr(release, "fit") else release(*given))
            except (ControlFlowDiffers, NotCertified):
                if tape.difference is None:
                    raise
                releases.append(None)
            if not tape.is_replayed:
                tape.is_replayed, tape.depth = True, 0
    if tape.difference is None and tape.position < len(tape.entries):
        tape.difference = f"the run on the neighbour has {len(tape.entries) - tape.position} steps fewer than the first run."
    is_same = tape.difference is None and contents(releases[0]) == contents(releases[1])
    return ReplayResult(tuple(tape.steps), tape.difference, is_same), releases[0], releases[1]
