"""The options that name a budget, and the budget they name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from confide.errors import ParameterError

if TYPE_CHECKING:
    from confide.privacy.budgets import Budget

Epsilon = Annotated[
    float | None, typer.Option(metavar="E", help="Privacy budget; smaller is more private. inf: no privacy at all.")
]
Delta = Annotated[
    float | None,
    typer.Option(metavar="D", help="Approximate privacy: a probability far below one over the number of rows, as 1e-6."),
]
Rho = Annotated[float | None, typer.Option(metavar="R", help="In place of --epsilon: zero-concentrated privacy (zCDP).")]


def chosen_budget(epsilon: float | None, delta: float | None, rho: float | None, what: str = "budget") -> Budget:
    """The budget of the options that were given: --epsilon, with --delta or without, or --rho."""
    from confide.privacy.budgets import ZCDP, ApproxDP, PureDP

    if rho is not None and epsilon is None and delta is None:
        return ZCDP(rho)
    if epsilon is None or rho is not None:
        raise ParameterError(f"give a {what}: either --epsilon, with --delta or without, or --rho.")
    # Written so that NaN is refused too.
    if not epsilon > 0.0:
        raise ParameterError("--epsilon must be a positive number, or inf for a model without privacy.")
    return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)


def named(budget: Budget) -> str:
    """A budget in a few words, or what is left of one."""
    return ", ".join(f"{name} = {getattr(budget, name):g}" for name in budget.ranges)
