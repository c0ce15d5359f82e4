"""What every mechanism is given and returns: public facts, a plan made before data, and a release."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from confide._version import __version__
from confide.data.source import RowSource
from confide.erm.losses import Loss
from confide.erm.objective import Objective
from confide.erm.row_bounds import RowBound, norm_with_intercept
from confide.errors import ParameterError
from confide.privacy.certificate import GradientRounding
from confide.privacy.guarantee import Neighbours, PureDP
from confide.privacy.noise import Entropy
from confide.privacy.seal import Seal
from confide.solvers.solver import Solver
from confide.types import Weights


@dataclass(frozen=True, slots=True)
class Problem:
    """The public facts of one training problem. Nothing in it is learned from rows.

    Attributes
    ----------
    loss, row_bound, intercept : what one row adds, see `confide.erm.row_sums.RowSum`
    n_features : number of columns of a row, before the intercept
    n_rows_low, n_rows_high : public bounds on the number of rows; equal to it under replace-one, where it is public
    summation_depth : the longest chain of additions behind one entry of a summed gradient, at most
    l2 : ridge of the sum form, positive; alpha times `n_rows_low`
    neighbours : the neighbour relation
    """

    loss: Loss
    row_bound: RowBound
    intercept: float
    n_features: int
    n_rows_low: int
    n_rows_high: int
    summation_depth: int
    l2: float
    neighbours: Neighbours

    def __post_init__(self) -> None:
        if not 1 <= self.n_rows_low <= self.n_rows_high:
            raise ParameterError("bounds on the number of rows need 1 <= low <= high.")
        if self.neighbours is Neighbours.REPLACE_ONE and self.n_rows_low != self.n_rows_high:
            raise ParameterError("under replace-one the number of rows is public: its bounds must be equal.")
        if not 0.0 < self.l2 < math.inf:
            raise ParameterError("alpha must be a positive finite number: the guarantee rests on strong convexity.")
        self.row_bound.check_width(self.n_features)

    @property
    def row_norm(self) -> float:
        """Largest L2 norm of a clipped row with its intercept."""
        return norm_with_intercept(self.row_bound, self.intercept)

    @property
    def n_weights(self) -> int:
        """Number of weights D, the intercept among them."""
        return self.n_features + (self.intercept > 0.0)

    def rounding(self, l2: float) -> GradientRounding:
        """The rounding bound of its gradients at a given total ridge."""
        return GradientRounding(self.loss, self.row_norm, self.n_rows_high, self.n_weights, self.summation_depth, l2)

    def check(self, source: RowSource) -> None:
        """Raise ParameterError unless the rows are such as these facts speak of. Looks at their shape alone."""
        if source.n_features != self.n_features or not self.n_rows_low <= source.n_rows <= self.n_rows_high:
            raise ParameterError(
                f"the plan is for rows of {self.n_features} columns, {self.n_rows_low} to {self.n_rows_high} of them, and "
                f"others came. Make a new plan, or widen n_rows_bounds."
            )

    def objective(self, source: RowSource, l2: float, linear: Weights) -> Objective:
        """The objective over the rows of `source`, after a check of their shape."""
        self.check(source)
        return Objective(source, self.loss, self.row_bound, self.intercept, l2, linear)


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything decided before any row is read. Public: safe to print, store and review.

    Attributes
    ----------
    problem : Problem
    budget : PureDP
        What the release costs; charged before a row is read.
    mechanism : str
        "objective", "output" or "none".
    l2 : float
        Total ridge of the sum form: the problem's, raised where the proof needs it.
    noise_rate : float
        Rate of the spherical Laplace noise: in the objective, or on the weights for output perturbation.
    tolerance : float
        Largest exact gradient norm of the sum form that the noise was calibrated for.
    seal : Seal or None
        Noise that covers the solver's inexactness, where the mechanism needs it.
    """

    problem: Problem
    budget: PureDP
    mechanism: str
    l2: float
    noise_rate: float
    tolerance: float
    seal: Seal | None

    @property
    def added_l2(self) -> float:
        """Ridge that was added to the one asked for, sum form."""
        return self.l2 - self.problem.l2

    @property
    def alpha(self) -> float:
        """Total ridge of the mean form: mean loss + alpha / 2 |w|^2."""
        return self.l2 / self.problem.n_rows_low

    @property
    def expected_noise_norm(self) -> float:
        """Expected L2 norm of the main noise, in the sum objective (objective) or on the weights (output)."""
        return self.problem.n_weights / self.noise_rate if self.noise_rate < math.inf else 0.0

    @property
    def expected_seal_norm(self) -> float:
        """Expected L2 norm of the seal's noise on the weights."""
        return self.seal.expected_norm(self.problem.n_weights) if self.seal else 0.0

    @property
    def expected_distance(self) -> float:
        """Upper bound on the expected L2 distance between the released weights and the non-private ones at this alpha."""
        main = self.expected_noise_norm / (self.l2 if self.mechanism == "objective" else 1.0)
        inexactness = self.seal.radius if self.seal else self.tolerance / self.l2
        return main + inexactness + self.expected_seal_norm

    def to_dict(self) -> dict[str, Any]:
        """A JSON form, for people and machines; the number of rows appears as its public bounds."""
        problem = self.problem
        return {
            "mechanism": self.mechanism,
            "budget": self.budget.to_dict(),
            "neighbours": str(problem.neighbours),
            "n_rows_bounds": [problem.n_rows_low, problem.n_rows_high],
            "n_features": problem.n_features,
            "n_weights": problem.n_weights,
            "loss": problem.loss.name,
            "row_bound": problem.row_bound.to_dict(),
            "row_norm": _json_number(problem.row_norm),
            "alpha": self.alpha,
            "added_alpha": self.added_l2 / problem.n_rows_low,
            "noise_rate": _json_number(self.noise_rate),
            "expected_noise_norm": self.expected_noise_norm,
            "seal_epsilon": self.seal.epsilon if self.seal else 0.0,
            "expected_seal_norm": self.expected_seal_norm,
            "tolerance": self.tolerance,
            "expected_distance": self.expected_distance,
        }

    def __str__(self) -> str:
        problem = self.problem
        low, high = problem.n_rows_low, problem.n_rows_high
        lines = [
            ("mechanism", {"none": "none"}.get(self.mechanism, f"{self.mechanism} perturbation")),
            ("budget", f"{self.budget} ({problem.neighbours})"),
            ("rows", f"{low:,}" if low == high else f"between {low:,} and {high:,} (private)"),
            ("features", f"{problem.n_features} ({problem.n_weights} weights with the intercept)"
             if problem.intercept > 0.0 else f"{problem.n_features} (no intercept)"),
            ("row norm", f"{problem.row_norm:.6g} with the intercept"
             if problem.intercept > 0.0 else f"{problem.row_norm:.6g}"),
            ("alpha", f"{self.alpha:.6g}" + (f", of which {self.added_l2 / low:.6g} was added for the proof"
                                             if self.added_l2 > 0.0 else "")),
        ]  # fmt: skip
        if self.mechanism != "none":
            where = "in the summed objective" if self.mechanism == "objective" else "on the weights"
            lines.append(("noise", f"expected norm {self.expected_noise_norm:.6g} {where}"))
            if self.seal:
                lines.append(("seal", f"epsilon {self.seal.epsilon:.6g}, expected norm {self.expected_seal_norm:.3g}"))
            lines.append(("tolerance", f"gradient norm {self.tolerance:.3g} in the summed objective"))
            lines.append(("expected distance", f"at most {self.expected_distance:.4g} from the non-private weights"))
        width = max(len(name) for name, _ in lines)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in lines)


@dataclass(frozen=True, slots=True)
class Release:
    """What may leave: noisy weights and public facts."""

    weights: Weights
    """(k, D)"""
    plan: Plan
    version: str = __version__


class Mechanism(Protocol):
    """A way to release weights privately. Between its two verbs the caller charges the plan's budget."""

    def plan(self, problem: Problem, budget: PureDP) -> Plan:
        """Decide everything from public facts. No data is used."""

    def release(self, plan: Plan, source: RowSource, solver: Solver, entropy: Entropy) -> Release:
        """Use the rows once and release. The budget of the plan was charged before this call."""


def zero_weights(problem: Problem) -> Weights:
    """(1, D) zeros: the start of every solver, and the linear term where there is none."""
    return np.zeros((1, problem.n_weights))


def _json_number(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"
