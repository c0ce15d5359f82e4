"""Several tests, one family: corrected p-values, and intervals that all hold together. Post-processing; it costs no privacy.

The names of the methods are those of statsmodels' `multipletests`, and "single-step" is that of R's multcomp.

Sources: S. Holm, *A simple sequentially rejective multiple test procedure*, Scandinavian Journal of Statistics 6(2), 1979;
Y. Benjamini, Y. Hochberg, *Controlling the false discovery rate*, JRSS B 57(1), 1995; Y. Benjamini, D. Yekutieli, *The
control of the false discovery rate in multiple testing under dependency*, Annals of Statistics 29(4), 2001; T. Hothorn,
F. Bretz, P. Westfall, *Simultaneous inference in general parametric models*, Biometrical Journal 50(3), 2008.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from confide.errors import ParameterError
from confide.inference.intervals import JointUncertainty, Uncertainty, checked_level
from confide.known_words import suggestion
from confide.types import Array

SINGLE_STEP = "single-step"
METHODS = (SINGLE_STEP, "holm", "bonferroni", "fdr_by", "fdr_bh")
"""All methods; the first needs the joint law of the errors."""
METHODS_UNDER_ANY_DEPENDENCE = ("holm", "bonferroni", "fdr_by")
"""Those that hold whatever the errors have to do with each other, as those of several analyses of the same rows do."""
RATES = {
    SINGLE_STEP: "the probability of any false rejection in the family",
    "holm": "the probability of any false rejection in the family",
    "bonferroni": "the probability of any false rejection in the family",
    "fdr_by": "the expected share of false rejections among all rejections",
    "fdr_bh": "the expected share of false rejections among all rejections, if tests are independent or depend positively,",
}
"""What a method keeps at or below the size at which corrected p-values are compared."""


def checked_method(method: Any, known: tuple[str, ...] = METHODS) -> str:
    """The name of a method.

    Raises
    ------
    ParameterError
        If it is none of those that are known here.
    """
    if isinstance(method, str) and method in known:
        return method
    listed = ", ".join(f'"{each}"' for each in known)
    if method in METHODS:
        raise ParameterError(
            f'"{method}" needs to know how the tests depend on each other, which is not known over several releases from '
            f"the same rows. These methods hold under any dependence: {listed}."
        )
    near = suggestion(method, known) if isinstance(method, str) else ""
    raise ParameterError(f"the method of correction must be one of {listed}{near}.")


def adjusted_p_values(p_values: ArrayLike, method: str) -> Array:
    """Correct p-values (m,) of one family, by a method that needs nothing but them.

    Parameters
    ----------
    p_values : (m,), in [0, 1]
    method : "holm", "bonferroni", "fdr_by" or "fdr_bh"

    Returns
    -------
    array (m,)
        Corrected p-values, in the same order. Rejecting where one is at most a keeps the rate of `RATES` at or below a.
    """
    values = np.asarray(p_values, dtype=np.float64)
    m = len(values)
    if method == "bonferroni" or not m:
        return np.minimum(1.0, m * values)
    order = np.argsort(values)
    ranks, ordered = np.arange(1, m + 1), values[order]
    if method == "holm":
        corrected = np.maximum.accumulate((m - ranks + 1) * ordered)
    else:
        factor = float(np.sum(1.0 / ranks)) if method == "fdr_by" else 1.0
        corrected = np.minimum.accumulate((factor * m / ranks * ordered)[::-1])[::-1]
    answer = np.empty(m)
    answer[order] = np.minimum(1.0, corrected)
    return answer


def level_of_each(level: float, n_intervals: int) -> float:
    """The level of each of so many intervals that all hold together with probability `level`, under any dependence."""
    return 1.0 - (1.0 - checked_level(level)) / max(1, n_intervals)


def p_values_of_family(known: Uncertainty, method: str) -> Array:
    """(D,): corrected p-values of the null hypotheses that the population's coefficients are 0.

    Raises
    ------
    ParameterError
        If the method is unknown, or needs the joint law of the errors and it was not released.
    """
    if checked_method(method) != SINGLE_STEP:
        return adjusted_p_values(known.p_values(), method)
    if not isinstance(known, JointUncertainty):
        raise ParameterError(
            f'"{SINGLE_STEP}" needs the joint law of the errors of all coefficients, which was not released here: not for '
            f'coefficients of interest, nor over classes that have moments of their own (one-vs-rest). Use "holm".'
        )
    return known.joint_p_values()


def margins_of_family(known: Uncertainty, level: float, method: str | None = None) -> Array:
    """(D,): half the widths of intervals that all together contain their targets with probability `level`.

    By the largest ratio of an error to its standard error where the joint law of the errors was released, and otherwise, or
    for another method than "single-step", by Bonferroni's inequality, which holds under any dependence.
    """
    if isinstance(known, JointUncertainty) and method in (None, SINGLE_STEP):
        return known.joint_margins(checked_level(level))
    return known.margins(level_of_each(level, len(known.estimates)))
