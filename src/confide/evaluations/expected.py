"""How precise rates from tables will be: said before they are charged, from public facts alone."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from confide.evaluations.bernstein import weights_of_polynomial, weights_of_power
from confide.evaluations.layouts import (
    ERROR_DEGREE,
    LOSS_DEGREE,
    ClassPairTables,
    ClassTables,
    Layout,
    NumberTables,
)
from confide.evaluations.noisy_table import NoisyTable
from confide.evaluations.result import Groups
from confide.inference.expected_precision import rounded, rows_to_be_known
from confide.privacy.tables import TablesPlan
from confide.types import Array


def expected_of_tables(plan: TablesPlan, layout: Layout, groups: Groups, n_rows: int | None, level: float) -> str:
    """What to expect of the rates, in sentences; empty where there is no noise.

    Parameters
    ----------
    plan, layout, groups : of the evaluation
    n_rows : the number of rows, or None if it is private
    level : of the intervals
    """
    if not plan.budget.is_private:
        return ""
    said = [f"Expect noise of about {plan.deviation:.3g} rows in each of {sum(plan.sizes)} counts."]
    needed = rows_to_be_known(plan.deviation, plan.sizes[0])
    if n_rows is None:
        said.append(f"All rates are hidden below about {rounded(needed)} rows.")
    elif n_rows <= needed:
        said.append("All rates will be hidden: there are too few rows for this budget.")
    else:
        name, margin = noise_of_main_rate(plan, layout, n_rows, level)
        said.append(f"The noise alone moves {name} by about +-{margin:.2g}, besides what the sample does.")
    if groups.column is not None:
        of_group = rows_to_be_known(plan.deviation, plan.sizes[0] // len(groups.names))
        said.append(f"The rates of a group are hidden below about {rounded(of_group)} rows in it.")
    return " ".join(said)


def noise_of_main_rate(plan: TablesPlan, layout: Layout, n_rows: int, level: float) -> tuple[str, float]:
    """The rate that is named first, and half the length of its interval if the noise were its only error."""
    shape = layout.shapes[0]
    name, weights, unit = _main_rate(layout)
    table = NoisyTable(np.zeros(shape), plan.deviation, True, level)
    all_weights = np.broadcast_to(weights, shape)
    z = float(ndtri(0.5 + 0.5 * level))
    return name, z * unit * math.sqrt(max(0.0, table.product_of_noise(all_weights, all_weights))) / n_rows


def _main_rate(layout: Layout) -> tuple[str, Array, float]:
    """Name, weights of the first table, and unit."""
    if isinstance(layout, ClassTables):
        return "the accuracy", np.eye(layout.n_classes), 1.0
    if isinstance(layout, ClassPairTables):
        return "the difference of accuracies", np.array([0.0, 1.0, -1.0, 0.0]), 1.0
    if isinstance(layout, NumberTables):
        return "the mean absolute error", weights_of_power(1, ERROR_DEGREE), layout.clip
    weights = weights_of_polynomial((-1.0, 2.0), LOSS_DEGREE)
    return "the difference of mean squared errors", weights, layout.largest_of_squares
