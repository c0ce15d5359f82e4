"""The options that state a budget, and the budget that they state."""

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
    typer.Option(metavar="D", help="For approximate privacy: a probability far below 1 / number of rows, for example 1e-6."),
]
Rho = Annotated[
    float | None, typer.Option(metavar="R", help="Budget of zero-concentrated privacy (zCDP), instead of --epsilon.")
]

Purpose = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="What the release is for; the ledger keeps it, and it is public.", show_default=False),
]


def chosen_budget(epsilon: float | None, delta: float | None, rho: float | None, purpose: str = "budget") -> Budget:
    """The budget that the given options state.

    Parameters
    ----------
    epsilon, delta, rho : values of --epsilon, --delta and --rho; None for an option that was not given
    purpose : what the error message calls the amount

    Raises
    ------
    ParameterError
        Unless either --epsilon (with or without --delta) or --rho alone is given.
    """
    from confide.privacy.budgets import ZCDP, ApproxDP, PureDP

    if rho is not None and epsilon is None and delta is None:
        return ZCDP(rho)
    if epsilon is not None and rho is not None:
        raise ParameterError(f"--epsilon and --rho both state the {purpose}; give one of them.")
    if epsilon is None or rho is not None:
        raise ParameterError(f"give a {purpose}: either --epsilon, with --delta or without, or --rho.")
    # The comparison is written so that NaN is refused too.
    if not epsilon > 0.0:
        raise ParameterError("--epsilon must be a positive number, or inf for a model without privacy.")
    return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)


def amounts_text(budget: Budget) -> str:
    """The amounts of a budget for a sentence, for example "epsilon = 0.5, delta = 1e-06"."""
    return ", ".join(f"{name} = {getattr(budget, name):g}" for name in budget.ranges)
