"""How precise an evaluation will be: said before it is charged, from public facts alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from scipy.special import ndtri

from confide.errors import ParameterError
from confide.inference.rates import LEAST_SIGNAL
from confide.privacy.budgets import Budget, budget_from_dict
from confide.privacy.counts import CountsPlan

_ALL_THE_SAME = "To charge it all the same, set allow_hidden=True."
_STEPS = 7
_LARGEST_FACTOR = 1e6
"""A budget that would have to be larger than this many times the given one is not named."""


def expected_precision(plan: CountsPlan, n_rows: int | None, level: float) -> str:
    """What to expect of the rates, in sentences; empty where there is no noise.

    Parameters
    ----------
    plan : the plan of the counts: two classes, each by the same number of bins
    n_rows : the number of rows, or None if it is private
    level : of the intervals
    """
    if not plan.budget.is_private:
        return ""
    noise, n_bins = plan.deviation, plan.n_cells // 2
    said = [f"Expect noise of about {noise:.3g} rows in each of {plan.n_cells} counts."]
    of_class, of_all = (LEAST_SIGNAL * noise * math.sqrt(n_cells) for n_cells in (n_bins, plan.n_cells))
    if n_rows is None:
        said.append(
            f"The accuracy is hidden below about {rounded(of_all)} rows, the AUC unless each class has about "
            f"{rounded(of_class)}."
        )
    elif n_rows <= of_all:
        said.append("All rates will be hidden: there are too few rows for this budget.")
    else:
        said.append(f"The accuracy will be known within about +-{margin_of_accuracy(plan, n_rows, level):.2g}.")
        needs = f"each class has about {rounded(of_class)} rows"
        said.append("The AUC will be hidden." if n_rows <= 2.0 * of_class else f"The AUC is hidden unless {needs}.")
    said.append(
        f"The calibration of a bin is hidden below about {rounded(LEAST_SIGNAL * noise * math.sqrt(2.0))} rows in it. A "
        f"larger epsilon means less noise, and with fewer bins the accuracy and the AUC need fewer rows."
    )
    return " ".join(said)


def margin_of_accuracy(plan: CountsPlan, n_rows: int, level: float) -> float:
    """Half the length of the widest interval of the accuracy, if the number of rows is public."""
    # Half of the cells are right. The total is known, so the noise that it has is taken out; what is left of that of
    # `2 * n_bins` cells is the same at any accuracy. The sample doubts most at an accuracy of one half.
    variance = plan.deviation**2 * plan.n_cells / 4.0 / n_rows**2 + 0.25 / n_rows
    return float(ndtri(0.5 + 0.5 * level)) * math.sqrt(variance)


def refuse_hidden(
    plan: Any, n_cells: int, n_rows: int | None, plan_at: Callable[[Budget], Any], otherwise: str = _ALL_THE_SAME
) -> None:
    """Refuse an evaluation of which the noise would hide every rate, before it is charged.

    Parameters
    ----------
    plan : of the counts
    n_cells : how many counts are added up to the number of all rows
    n_rows : the number of rows, or None if it is private; then nothing is refused
    plan_at : the plan at another budget
    otherwise : what else can be done

    Raises
    ------
    ParameterError
        The message says what would suffice.
    """
    needed = rows_to_be_known(plan.deviation, n_cells)
    if n_rows is None or n_rows > needed:
        return
    name = next(iter(plan.budget.ranges))
    amount, ways = float(getattr(plan.budget, name)), [f"at least {rounded_up(needed)} rows"]
    factor = _factor_that_suffices(plan.budget, name, n_cells, n_rows, plan_at)
    if factor is not None:
        ways.append(f"{name} = {rounded_up(factor * amount)}")
    raise ParameterError(
        f"there are {n_rows:,} rows, and at {name} = {amount:g} the noise would hide every rate. Nothing was charged. Give "
        f"{' or '.join(ways)}; fewer bins or groups need less. {otherwise}"
    )


def _factor_that_suffices(
    budget: Budget, name: str, n_cells: int, n_rows: int, plan_at: Callable[[Budget], Any]
) -> float | None:
    """The least factor of the budget, up to a percent, with which rates are no longer hidden; None if there is none."""

    def suffices(factor: float) -> bool:
        plan = plan_at(budget_from_dict(budget.to_dict() | {name: factor * float(getattr(budget, name))}))
        return n_rows > rows_to_be_known(plan.deviation, n_cells)

    low, high = 1.0, 2.0
    try:
        while not suffices(high):
            low, high = high, 2.0 * high
            if high > _LARGEST_FACTOR:
                return None
        for _ in range(_STEPS):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if suffices(middle) else (middle, high)
    except ParameterError:
        # There is no such budget.
        return None
    return high


def rows_to_be_known(deviation: float, n_cells: int) -> float:
    """The number of rows below which so many noisy counts do not tell how many rows they hold."""
    return LEAST_SIGNAL * deviation * math.sqrt(n_cells)


def rounded_up(value: float) -> str:
    """A number with two digits, not smaller than it was."""
    if value >= 100.0:
        step = 10.0 ** (math.floor(math.log10(value)) - 1)
        return f"{math.ceil(value / step) * step:,.0f}"
    places = max(0, 1 - math.floor(math.log10(value)))
    return f"{math.ceil(value * 10**places) / 10**places:g}"


def rounded(rows: float) -> str:
    """A number of rows with two digits."""
    return f"{float(f'{rows:.2g}'):,.0f}"
