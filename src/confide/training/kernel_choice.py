"""The random features of kernels: over which length they change, and how many there are. Decided from public facts alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress

from confide.errors import ParameterError
from confide.expected_noise import noise_on_a_weight
from confide.features.columns import CategoryColumn, NumberColumn
from confide.features.encoder import Encoder
from confide.features.schema import Schema
from confide.privacy.lattice import LatticeGaussian
from confide.privacy.mechanism import Plan
from confide.training.alpha import usual_norm_of_rows
from confide.training.plan import AnyPlan, make_plan
from confide.training.settings import Settings

NUMBERS_OF_FEATURES = (1000, 500, 250, 120)
"""The numbers of random features that are tried, the largest first. Without privacy it is the largest."""
LEAST_STRENGTH = {1000: 2500.0, 500: 1250.0, 250: 1000.0}
"""A number of features is taken if there are so many rows for each unit of noise on one weight, in units of the norm of a
row. The smallest number needs no such strength. Compared by benchmarks/defaults.py."""
LEAST_SHARE_OF_NUMBERS = 2.0 / 3.0
"""The least share of numbers among the columns of a table of numbers. Such tables gain most by random features."""
MORE_ROWS_WITH_CATEGORIES = 1.5
"""Other tables need so many times as many rows: Bank at a pure epsilon of 4 and Adult at (1, 1e-6) erred by .004 more with
features, and Covertype at (0.5, 1e-6), a table of numbers, by .009 less with fewer rows for each column."""
STRENGTH_UNDER_LAPLACE = 10.0
"""Laplace noise grows faster with the number of features, so a number of features needs this many times as many rows. At a
pure epsilon of 4, Covertype erred by .230 with 120 features and by .236 with 500, Skin by .003 with 120 and .007 with 1,000
(one fit each)."""
LENGTH_OVER_SQUARE = 0.27
"""The length scale of a Gaussian kernel, over the squared norm of a typical row.

Distances between rows grow with their norm. The length grows faster, because rows of many columns differ in many directions,
and no more rows tell what happens there. Of lengths from 0.15 to 6, the best at (1, 1e-6) were 0.15 to 0.35 on Skin, where
the squared norm is 1, 1 to 1.5 on Covertype (5.3), 1 on KDD Cup 99 (7.3), and 2 to 4.5 on Adult and Bank (9.4)."""
LENGTH_OF_STANDARDISED = 0.5
"""The length scale without a schema, over the square root of the number of columns.

It is for columns of mean 0 and standard deviation 1, and a little shorter than that of scikit-learn's gamma="scale", 0.71.
Chosen by benchmarks/kernel_lengths.py on rings, Skin, Covertype and clusters, confirmed on Adult, Diamonds, Flights, Bank
and KDD Cup 99: 0.71 is better by .03 at most, except for rings in 8 columns (.06) and clusters (.04), and 0.5 by .06 on a
spiral. Where every row has norm 1, both are as good. Where the longest row has norm 1, both are too long, and 0.71 errs
by up to .2 more."""
LONGEST_OVER_NORM = 1.0
"""The largest such length, over the norm of a typical row. Two rows are about 1.4 norms apart, and with a much larger length
all rows would have nearly the same features."""
ENOUGH_ROWS = {"gaussian": 200.0, "laplace": 250.0}
"""Random features stand beside encoded columns if so many rows come to each column for each unit of noise: the noise on one
weight in units of the norm of a row. It depends on the law of the noise. Compared in benchmarks/defaults.py."""
NORM_OVER_COLUMNS = 2.0
"""The norm of the features over that of a typical encoded row, where the encoded columns of a row stand beside them."""
_MEAN_SQUARE_OF_NUMBERS = 1.0 / 3.0
"""The mean square of a number that is uniform in [-1, 1]."""


def length_scale(kernel: str, n_inputs: int, encoder: Encoder | None) -> float:
    """The length over which a kernel falls, for rows of so many columns.

    It follows from the norm of a typical encoded row. Without a schema the columns are taken to have mean 0 and standard
    deviation 1, as scikit-learn's users scale them.
    """
    if encoder is None:
        length = LENGTH_OF_STANDARDISED * math.sqrt(n_inputs)
    else:
        square = _usual_square(encoder)
        length = min(LENGTH_OVER_SQUARE * square, LONGEST_OVER_NORM * math.sqrt(square))
    # Rounded, because people read this number.
    return float(f"{_LENGTH_FOR[kernel](length):.3g}")


def feature_norm(encoder: Encoder) -> float:
    """The norm of the features of a row whose encoded columns stand beside them."""
    # Rounded, because people read this number.
    return float(f"{NORM_OVER_COLUMNS * usual_norm_of_rows(encoder):.3g}")


def _usual_square(encoder: Encoder) -> float:
    """The squared norm of a typical encoded row.

    It is that of `usual_norm_of_rows`, except for categories of two levels without a level for other values. Their bound is
    that of a number in [-1, 1], but they are -1 or +1, and two rows that differ there are far apart. On NLTCS, described by
    15 such columns, 500 features at (1, 1e-6) err by .172 at the length that follows, and by .190 at 1.5, about the length
    without this difference.
    """
    bound = encoder.row_bound
    groups = zip(encoder.schema.columns, bound.sizes, bound.linked, strict=False)  # groups of interactions come last
    signs = sum(isinstance(column, CategoryColumn) and size == 1 and not linked for column, size, linked in groups)
    return usual_norm_of_rows(encoder) ** 2 + signs * (1.0 - _MEAN_SQUARE_OF_NUMBERS)


_LENGTH_FOR: dict[str, Callable[[float], float]] = {
    "rbf": lambda length: length,
    # The L1 distance of two encoded rows is about the square of their L2 distance: two numbers in [-1, 1] differ by 2/3 in
    # the mean and in the mean square, and two categories by 2 in both. So both kernels fall as much at the same two rows.
    "laplacian": lambda length: 2.0 * length**2,
    # The product of 1 / (1 + D_j^2 / s^2) is about exp(-|D|^2 / s^2).
    "cauchy": lambda length: math.sqrt(2.0) * length,
}
"""For each kernel, the length at which it falls about as far as the Gaussian kernel of a given length."""


def number_of_features(settings: Settings, kept: Encoder | None, count: Callable[[], int] | None) -> int:
    """How many random features a kernel gets: the more, the more rows there are for each unit of noise.

    Parameters
    ----------
    settings : the checked parameters of the fit
    kept : the encoder whose columns stand beside the features, so that there may be no features; None if features are alone
    count : gives the number of rows, if it is public; None if the settings have public bounds on it
    """
    largest, smallest = NUMBERS_OF_FEATURES[0], NUMBERS_OF_FEATURES[-1]
    if not settings.budget.is_private:
        return largest
    n_rows = None if count is None else count()
    beside = 0 if kept is None else kept.n_features
    for number in NUMBERS_OF_FEATURES:
        # Where there is no plan, that of the smallest number says what is wrong.
        with suppress(ParameterError):
            plan = make_plan(settings, beside + number, n_rows)
            least = LEAST_STRENGTH.get(number, 0.0) * (1.0 if _law_of(plan) == "gaussian" else STRENGTH_UNDER_LAPLACE)
            is_strong = _rows_for_noise(plan, plan.problem.row_bound.l2_norm) >= least
            if is_strong and (kept is None or features_pay(plan, kept.schema)):
                return number
    return smallest if kept is None else 0


def _rows_for_noise(plan: AnyPlan, norm: float) -> float:
    """The number of rows for each unit of noise: the noise on one weight in units of this norm of a row."""
    noise = noise_on_a_weight(plan)
    return plan.problem.n_rows_low * norm / noise if noise else math.inf


def features_pay(plan: AnyPlan, schema: Schema) -> bool:
    """Whether the noise of a plan with random features is so small that they are better than none.

    Parameters
    ----------
    plan : of a model with the encoded columns and features beside them
    schema : the description of the columns
    """
    needed = ENOUGH_ROWS[_law_of(plan)] * (1.0 if is_of_numbers(schema) else MORE_ROWS_WITH_CATEGORIES)
    return _rows_for_noise(plan, plan.problem.row_norm) >= needed * len(schema.columns)


def is_of_numbers(schema: Schema) -> bool:
    """Whether most columns are numbers."""
    numbers = sum(isinstance(column, NumberColumn) for column in schema.columns)
    return numbers >= LEAST_SHARE_OF_NUMBERS * len(schema.columns)


def _law_of(plan: AnyPlan) -> str:
    """The law of the noise in weights or in the objective."""
    if isinstance(plan, Plan) and plan.noise is not None:
        return plan.noise.law
    return "gaussian" if isinstance(plan.lattice, LatticeGaussian) else "laplace"
