"""What a solver is given: k objectives over the same rows, seen through a narrow, read-only protocol.

`Objective.lent` (erm/objective.py) gives such a view, and nothing in it leads back to the objective that the certificate
reads. Solvers know `Objective` by this protocol alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from confide.array_types import Array, Indices, Weights
from confide.erm.losses import Loss, LossConstants
from confide.erm.penalties import Penalty
from confide.erm.row_bounds import RowBound
from confide.erm.source import SummableRows


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The objectives and their derivatives at k points. Data: it never leaves the package."""

    value: Array
    """(k,): NaN where derivatives were asked for, because solvers judge steps by slopes."""
    gradient: Array
    """(k, D), or (k, 0) if the values were asked for."""
    hessian: Array
    """(k, D, D), or (k, 0, 0) if it was not asked for."""


class HasGradients(Protocol):
    """k objectives, as far as steps need them. Those that Newton's method is given have Hessians, too."""

    def restrict(self, which: Indices) -> HasGradients:
        """The same for some of the k problems."""

    def evaluate(self, weights: Weights, order: int) -> Evaluation:
        """Gradients at (k, D) weights (order 1), and Hessians too (order 2)."""


class Objectives(HasGradients, Protocol):
    """k objectives that share rows, loss and penalty, and differ in their linear terms. erm/objective.py has the formula.

    What can be read here is public, but for the rows, what is summed over them, and the linear terms, which are noise.
    """

    @property
    def source(self) -> SummableRows:
        """The rows, which can be read and not written to."""

    @property
    def loss(self) -> Loss:
        """The loss of a row that counts 1."""

    @property
    def row_bound(self) -> RowBound:
        """The public bound to which every row is clipped."""

    @property
    def intercept(self) -> float:
        """The constant appended to every clipped row; 0.0 for none."""

    @property
    def l2(self) -> float:
        """Ridge of the sum form, positive: the least one, where weights have ridges of their own."""

    @property
    def penalty(self) -> Penalty:
        """What is minimised beside the losses."""

    @property
    def ridges(self) -> Any:
        """The ridge of each weight, (D,), or one number for all of them."""

    @property
    def l1(self) -> Array:
        """(D,): the strength of the l1 penalty on each weight, which `evaluate` leaves out and `gradients` knows."""

    @property
    def linear(self) -> Weights:
        """(k, D): the linear terms."""

    @property
    def largest_weight(self) -> float:
        """Public bound on the weight of a row."""

    @property
    def loss_bounds(self) -> LossConstants:
        """Constants of the loss of a row, its weight included."""

    @property
    def row_norm(self) -> float:
        """Largest L2 norm of a clipped row with its intercept constant."""

    @property
    def smoothness(self) -> float:
        """Upper bound on the Lipschitz constant of the gradients."""

    def restrict(self, which: Indices) -> Objectives:
        """The same for some of the k problems."""

    def evaluate(self, weights: Weights, order: int) -> Evaluation:
        """Values (order 0), gradients (1), or gradients and Hessians (2) at (k, D) weights, in one pass over the rows."""

    def gradients(self, weights: Weights) -> Array:
        """Gradients, or least subgradients, (k, D) at (k, D) weights: from sums of the last passes there, else by a pass."""

    def replaced(
        self,
        *,
        source: SummableRows = ...,
        loss: Loss = ...,
        row_bound: RowBound = ...,
        intercept: float = ...,
        l2: float = ...,
        linear: Weights = ...,
    ) -> Objectives:
        """Problems of the solver's own: the same with other parts. They remember no sums of these."""


def on_part(objective: Objectives, part: SummableRows) -> tuple[Objectives, float]:
    """The problems over a part of the rows, ridge and linear terms in proportion; and which share of the rows that is."""
    share = part.n_rows / objective.source.n_rows
    return objective.replaced(source=part, l2=objective.l2 * share, linear=objective.linear * share), share


def mean_of(objective: Objectives) -> Objectives:
    """One problem, the mean of all."""
    if len(objective.linear) == 1:
        # The problem itself has sums by faster code than a problem of the solver's own, and remembers them.
        return objective
    return objective.replaced(linear=objective.linear.mean(axis=0, keepdims=True))


# What a solver owes. Solvers are not trusted: the certificate checks a copy of their answer by sums out of their reach.


@dataclass(frozen=True, slots=True)
class Solution:
    """A solver's answer. Data: only its certified and sealed form leaves the package."""

    weights: Weights
    """(k, D)"""
    gradient_norm: Array
    """(k,): the solver's own claim."""


class Solver(Protocol):
    """Finds the minimisers of k objectives.

    The certificate refuses a wrong answer, so it is never released. But a refusal that the rows can provoke would tell of
    them. `NewtonThenFallback` makes it impossible: it believes no claim, and it ends with a method that has a theorem.
    """

    def solve(self, objective: Objectives, start: Weights, tolerance: float) -> Solution:
        """Weights (k, D) whose gradient norms are at most `tolerance`, or the best found.

        `start` is (k, D) and is not written to. A tolerance of 0 asks for the best that doubles allow.
        """
