"""One fit, in a straight line: facts, plan, charge, release."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

from confide.data.arrays import summation_depth
from confide.data.source import RowSource
from confide.erm.losses import Loss
from confide.erm.row_bounds import RowBound
from confide.errors import InsufficientRegularisation, ParameterError
from confide.estimators.regularisation import automatic_l2
from confide.privacy.guarantee import Neighbours, PureDP
from confide.privacy.ledger import Ledger
from confide.privacy.mechanism import Mechanism, Plan, Problem, Release
from confide.privacy.noise import Entropy
from confide.privacy.non_private import NonPrivate
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.output_perturbation import OutputPerturbation
from confide.solvers.fallback import NewtonThenFallback

MECHANISMS: dict[str, Mechanism] = {
    "objective": ObjectivePerturbation(),
    "output": OutputPerturbation(),
    "none": NonPrivate(),
}

_MOST_DOUBLINGS = 64


@dataclass(frozen=True, slots=True)
class Settings:
    """The checked parameters of an estimator: public facts, decided before any row is seen.

    Attributes
    ----------
    budget : PureDP
    mechanism : "auto", "objective" or "output"
    alpha : float, or None for the automatic one
    loss, row_bound, intercept : what one row adds
    neighbours : Neighbours
    n_rows_bounds : (low, high), or None where the number of rows is public
    """

    budget: PureDP
    mechanism: str
    alpha: float | None
    loss: Loss
    row_bound: RowBound
    intercept: float
    neighbours: Neighbours
    n_rows_bounds: tuple[int, int] | None

    @property
    def mechanism_name(self) -> str:
        """The mechanism that "auto" stands for, decided from public facts."""
        if not self.budget.is_private:
            return "none"
        # For a smooth loss objective perturbation never has a larger noise norm over ridge than output perturbation,
        # and it does better wherever the loss adds curvature of its own.
        return "objective" if self.mechanism == "auto" else self.mechanism


def make_plan(settings: Settings, n_features: int, n_rows: int | None) -> Plan:
    """The plan for `n_rows` rows, or for the declared bounds on their number. Uses no row."""
    low, high = settings.n_rows_bounds or (n_rows, n_rows)
    if low is None or high is None:
        raise ParameterError("a plan needs the number of rows, n_rows.")
    mechanism = MECHANISMS[settings.mechanism_name]
    problem = Problem(
        loss=settings.loss,
        row_bound=settings.row_bound,
        intercept=settings.intercept,
        n_features=n_features,
        n_rows_low=low,
        n_rows_high=high,
        summation_depth=summation_depth(high, n_features),
        l2=1.0 if settings.alpha is None else settings.alpha * low,
        neighbours=settings.neighbours,
    )
    if settings.alpha is not None:
        return mechanism.plan(problem, settings.budget)
    l2 = automatic_l2(settings.budget, settings.loss, low, problem.n_weights, problem.row_norm, settings.neighbours)
    for _ in range(_MOST_DOUBLINGS):
        try:
            return mechanism.plan(replace(problem, l2=l2), settings.budget)
        except InsufficientRegularisation:
            # Too small for double precision to certify this minimiser: the least power of two that suffices.
            l2 *= 2.0
    raise ParameterError(
        f"no alpha is large enough for up to {high} rows at this budget: double precision cannot certify the minimiser "
        f"closely enough. Narrow n_rows_bounds, or use fewer rows or a larger budget."
    )


def fit_privately(settings: Settings, source: RowSource, ledger: Ledger | None, seed: int | None, purpose: str) -> Release:
    """Plan, charge, release: everything that decides the guarantee is decided and charged before a row is used."""
    n_rows = source.n_rows if settings.neighbours is Neighbours.REPLACE_ONE else None
    plan = make_plan(settings, source.n_features, n_rows)
    plan.problem.check(source)
    if ledger is not None:
        ledger.charge(plan.budget, purpose=purpose, neighbours=settings.neighbours)
    entropy = Entropy.fresh() if seed is None else Entropy.seeded(seed)
    # Floating-point warnings would depend on the data. Blocks are small: a second BLAS thread costs more than it gives,
    # and much more on a busy machine.
    with np.errstate(all="ignore"), _thread_pools().limit(limits=1, user_api="blas"):
        return MECHANISMS[plan.mechanism].release(plan, source, NewtonThenFallback(), entropy)


@cache
def _thread_pools() -> ThreadpoolController:
    # Finding the loaded libraries takes milliseconds, and they do not change once NumPy and SciPy are imported.
    return ThreadpoolController()
