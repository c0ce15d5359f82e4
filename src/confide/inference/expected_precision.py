"""How precise an evaluation will be: said before it is charged, from public facts alone."""

from __future__ import annotations

import math

from scipy.special import ndtri

from confide.inference.rates import LEAST_SIGNAL
from confide.privacy.counts import CountsPlan


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
            f"The accuracy is hidden below about {_rounded(of_all)} rows, the AUC unless each class has about "
            f"{_rounded(of_class)}."
        )
    elif n_rows <= of_all:
        said.append("All rates will be hidden: there are too few rows for this budget.")
    else:
        said.append(f"The accuracy will be known within about +-{margin_of_accuracy(plan, n_rows, level):.2g}.")
        needs = f"each class has about {_rounded(of_class)} rows"
        said.append("The AUC will be hidden." if n_rows <= 2.0 * of_class else f"The AUC is hidden unless {needs}.")
    said.append(
        f"The calibration of a bin is hidden below about {_rounded(LEAST_SIGNAL * noise * math.sqrt(2.0))} rows in it. A "
        f"larger epsilon means less noise, and with fewer bins the accuracy and the AUC need fewer rows."
    )
    return " ".join(said)


def margin_of_accuracy(plan: CountsPlan, n_rows: int, level: float) -> float:
    """Half the length of the widest interval of the accuracy, if the number of rows is public."""
    # Half of the cells are right. The total is known, so the noise that it has is taken out; what is left of that of
    # `2 * n_bins` cells is the same at any accuracy. The sample doubts most at an accuracy of one half.
    variance = plan.deviation**2 * plan.n_cells / 4.0 / n_rows**2 + 0.25 / n_rows
    return float(ndtri(0.5 + 0.5 * level)) * math.sqrt(variance)


def _rounded(rows: float) -> str:
    return f"{float(f'{rows:.2g}'):,.0f}"
