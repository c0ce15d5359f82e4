"""How rows came from their population, as it is declared: what the sampling part of an interval assumes.

The variance due to sampling is estimated by a sandwich: the sum over rows of w_i^2 s_i^2 x_i x_i^T between two inverses of
the sum of w_i h_i x_i x_i^T, with w_i the weight of a row, s_i its slope and h_i its curvature. The released sums hold the
squares of the weights, so unequal weights are accounted for exactly. What follows multiplies this variance by public
factors.

Clusters. If at most k rows depend on each other, and g_i is what row i adds to the gradient, then for every vector v the
variance of the sum of v . g_i over such rows is at most k times the sum of their variances (Cauchy and Schwarz). So k is a
factor that is large enough whatever the dependence. A design effect of clustering that is known, 1 + (m - 1) r for clusters
of m rows and an intraclass correlation r, is smaller (L. Kish, *Survey Sampling*, 1965, section 5.4).

Finite populations. A row that was in the sample with probability p adds only 1 - p of its term to the variance for the
population as it is, in a design in which units are drawn independently (C.-E. Sarndal, B. Swensson, J. Wretman, *Model
Assisted Survey Sampling*, 1992, section 3.5); stratified samples of fixed sizes have less. Weights w_i are a constant times
1 / p_i, and the sum of all 1 / p_i is N, so p_i = (n / N) (mean weight / w_i) is at least (n / N) (mean weight / largest
weight). One minus this bound is the factor. For equal weights it is the usual 1 - n / N.

Unequal weights. The effective sample size of L. Kish (1965, section 11.7) is (sum of w)^2 / sum of w^2. No weight is above
the largest, so the sum of w^2 is at most the largest weight times the sum of w, and the effective size is at least n times
mean weight over largest weight.

All of this is made from declared facts. Nothing is computed from the weights of rows.
"""

from __future__ import annotations

import math
from dataclasses import MISSING, dataclass, fields, is_dataclass
from itertools import repeat
from typing import Any, Self, get_args, get_origin, get_type_hints

import numpy as np

from confide.blocks import json_value
from confide.errors import ParameterError, wording


@dataclass(frozen=True, slots=True)
class SamplingDesign:
    """Declared facts about the sample. Public.

    Attributes
    ----------
    largest_weight : float
        The cap on the weight of a row.
    mean_weight : float or None
        The mean weight of rows, as it is declared, or None.
    has_weights : bool
        Whether rows have weights of their own.
    cluster_effect : float
        The factor of the sampling variance for rows that depend on each other.
    rows_per_person : int
        The largest number of rows of one person.
    population_size : int or None
        Number of units of the population, if intervals are for this population as it is. None for a population so large, or
        a process so lasting, that the sample takes no part of it away.
    n_rows : int
        The least number of rows of the sample; it is asked for only with a population size.
    """

    largest_weight: float = 1.0
    mean_weight: float | None = None
    has_weights: bool = False
    cluster_effect: float = 1.0
    rows_per_person: int = 1
    population_size: int | None = None
    n_rows: int = 1

    def __post_init__(self) -> None:
        """Refuse numbers that no declaration can have, as in a file that was changed."""
        is_possible = 0.0 < self.usual_weight <= self.largest_weight < math.inf and 1.0 <= self.cluster_effect < math.inf
        is_counted = self.rows_per_person >= 1 and self.n_rows >= 1
        has_size = self.population_size is None or self.population_size >= self.n_rows
        if not (is_possible and is_counted and has_size):
            raise ParameterError("the declared facts about the sample do not fit each other.")

    @property
    def usual_weight(self) -> float:
        """The declared mean weight. Where none is declared, the mean is supposed to be 1, or the cap if that is smaller."""
        return min(1.0, self.largest_weight) if self.mean_weight is None else self.mean_weight

    @property
    def effective_share(self) -> float:
        """The least that the effective sample size can be, over the number of rows: mean weight over largest weight."""
        return self.usual_weight / self.largest_weight

    @property
    def usual_squares(self) -> float:
        """What forecasts suppose of the mean squared weight, over the largest weight times the mean weight.

        It lies between the effective share, for equal weights, and 1, for weights of 0 and the largest. The geometric mean
        of the two is supposed. Intervals themselves use the released sums.
        """
        return math.sqrt(self.effective_share)

    @property
    def finite_population_correction(self) -> float:
        """The factor of the sampling variance for the population as it is; 1 without a population size."""
        if self.population_size is None:
            return 1.0
        return 1.0 - self.n_rows / self.population_size * self.effective_share

    @property
    def variance_factor(self) -> float:
        """What multiplies the sampling variance. The noise for privacy is not multiplied."""
        return self.cluster_effect * self.finite_population_correction

    @property
    def sentences(self) -> tuple[str, ...]:
        """What sampling errors assume, in words, for the notes below a table."""
        chance = ", each with a chance inversely proportional to its weight" if self.has_weights else ""
        drawn, then = "rows", ""
        if self.rows_per_person > 1 and self.cluster_effect == self.rows_per_person:
            drawn, most = "persons", f"{self.rows_per_person:,}"
            allowed = f"which allows for any dependence of the up to {most} rows of a person"
            then = f" Their squares were multiplied by {most}, {allowed}."
        elif self.cluster_effect != 1.0:
            drawn, declared = "clusters of rows", f"the declared design effect of clustering, {self.cluster_effect:g}"
            then = f" The squares of sampling errors were multiplied by {declared}."
        sentences = [f"Sampling errors assume that {drawn} were drawn independently of each other{chance}.{then}"]
        if self.has_weights:
            sentences.append("Strata are not used, which can make sampling errors too large and not too small.")
        if self.population_size is not None:
            sentences.append(wording("finite population", design=self))
        return tuple(sentences)

    def lines(self) -> dict[str, str]:
        """Lines of a plan for people: what unequal weights, clusters and a finite population do to intervals."""
        lines = {}
        if self.effective_share != 1.0:
            supposed = ", which is supposed where none is declared" if self.mean_weight is None else ""
            lines["weights"] = wording("effective sample", design=self, supposed=supposed, times=1.0 / self.effective_share)
        if self.cluster_effect != 1.0:
            lines["clusters"] = f"the sampling variance is multiplied by {self.cluster_effect:g}"
        if self.population_size is not None:
            lines["finite population"] = wording("variance in a finite population", design=self)
        return lines

    @property
    def advice(self) -> str:
        """A sentence for refusals where the noise is too large; empty where weights are equal."""
        if self.effective_share == 1.0:
            return ""
        return (
            f" Noise counts {1.0 / self.effective_share:.3g} times as much as for equal weights, for a mean weight of "
            f"{self.usual_weight:g} under a cap of {self.largest_weight:g}: trim weights at a lower cap by a public rule"
            + (", or declare the mean weight, if it is public." if self.mean_weight is None else ".")
        )

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return written_fields(self)

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Self:
        """Read the form written by `to_dict`."""
        if len(value) < len(fields(cls)):
            raise ParameterError(OTHER_VERSION)
        return cls(**read_fields(cls, value))

    def described(self) -> dict[str, Any]:
        """An entry for a JSON document, empty where nothing was declared: files of such fits stay as they were."""
        return {} if self == INDEPENDENT else {"design": self.to_dict()}


# How frozen values are written as JSON and read again, by the types of their fields.

OTHER_VERSION = "the data for intervals were written by another version of confide, which this version cannot read."
_LEFT_OUT = ("prior", "design", "shift", "risks")
"""Parts that files do not hold where they are the usual ones."""


def written_fields(value: Any) -> dict[str, Any]:
    """The fields of a frozen value as JSON values by name."""
    usual = _usual(value)
    document = {field.name: _written(getattr(value, field.name)) for field in fields(value)}
    return {name: part for name, part in document.items() if name not in _LEFT_OUT or part != usual[name]}


def read_fields(kind: Any, value: dict[str, Any]) -> dict[str, Any]:
    """The fields of a frozen value of this kind, from JSON values by name; those with a default may be missing."""
    value, kinds = _usual(kind) | value, get_type_hints(kind)
    if set(value) != {field.name for field in fields(kind)}:
        raise ParameterError(OTHER_VERSION)
    return {name: _read(kinds[name], part) for name, part in value.items()}


def _usual(of: Any) -> dict[str, Any]:
    """What parts are that no file need have, as JSON values."""
    return {field.name: _written(field.default) for field in fields(of) if field.default is not MISSING}


def _written(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(map(_written, value))
    return written_fields(value) if is_dataclass(value) and not hasattr(value, "to_dict") else json_value(value)


def _read(kind: Any, value: Any) -> Any:
    kinds = get_args(kind)
    if type(None) in kinds:
        return None if value is None else _read(kinds[0], value)
    if get_origin(kind) is tuple:
        members = repeat(kinds[0], len(value)) if kinds[-1] is Ellipsis else kinds
        return tuple(_read(of, part) for of, part in zip(members, value, strict=True))
    if get_origin(kind) is np.ndarray:
        return np.array(value, dtype=np.float64)
    if hasattr(kind, "from_dict"):
        return kind.from_dict(value)
    if is_dataclass(kind):
        return kind(**read_fields(kind, value))  # type: ignore[operator]
    if kind is bool and not isinstance(value, bool):
        raise ParameterError(OTHER_VERSION)
    return kind(value)


INDEPENDENT = SamplingDesign()
"""Rows that count alike and were drawn independently from a large population."""
