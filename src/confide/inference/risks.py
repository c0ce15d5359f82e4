"""What a log-odds coefficient means for a risk: the difference of two probabilities at a stated baseline."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from confide.errors import ParameterError


def checked_baseline(baseline: Any) -> float:
    """A probability strictly between 0 and 1.

    Raises
    ------
    ParameterError
        If it is none.
    """
    if isinstance(baseline, bool) or not isinstance(baseline, Real) or not 0.0 < float(baseline) < 1.0:
        raise ParameterError("baseline must be a probability strictly between 0 and 1, chosen without looking at the rows.")
    return float(baseline)


def risk_difference(log_odds: float, baseline: float) -> float:
    """By how much a probability of `baseline` changes if its log-odds rise by so much.

    It rises with the change, so the ends of an interval for the one become those for the other.
    """
    if log_odds == math.inf:
        return 1.0 - baseline
    if log_odds == -math.inf:
        return -baseline
    score = math.log(baseline) - math.log1p(-baseline) + log_odds
    risk = 1.0 / (1.0 + math.exp(-score)) if score >= 0.0 else 1.0 - 1.0 / (1.0 + math.exp(min(score, 700.0)))
    return risk - baseline
