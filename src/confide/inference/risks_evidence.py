"""What was released for differences of risks, as it is kept in a model file."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from confide.errors import ParameterError
from confide.inference.evidence import CheckedEvidence
from confide.privacy.lattice import LatticeLaplace
from confide.privacy.moments import summed_norm
from confide.privacy.standardised_sums import StandardisedSums, StandardisedSumsPlan, largest_bend, largest_difference
from confide.types import Array


@dataclass(frozen=True, slots=True)
class RisksEvidence(CheckedEvidence):
    """Means over the rows for k changes, and what is publicly known about their noise.

    Attributes
    ----------
    steps : (k,)
        By how much each change moves the score of every row.
    differences : (k,)
        Mean differences of probabilities.
    rates : (k,)
        Means of p (1 - p) after the change.
    bends : (k, D)
        Means of rows, their constant included, times the difference of p (1 - p) after and before the change.
    n_rows : float
        Noisy number of rows, or the public one.
    deviations : (k,), (k,)
        Standard deviations of the noise on the differences and on an entry of the bends.
    count_deviation : float
        Of the noise on the number of rows, over that number; 0 where it is public.
    is_laplace : bool
        Whether the noise has the Laplace law.
    """

    steps: Array
    differences: Array
    rates: Array
    bends: Array
    n_rows: float
    deviations: tuple[Array, Array]
    count_deviation: float
    is_laplace: bool

    @classmethod
    def of(cls, plan: StandardisedSumsPlan, steps: Array, sums: StandardisedSums) -> Self:
        """The evidence of a release by this plan, at these steps."""
        # Nothing is known where the noise leaves no row.
        n_rows = max(sums.n_rows, 1.0)
        _, bends, counts = plan.scales
        noise = float(plan.deviation)
        of_bends = noise * largest_bend(steps) * summed_norm(plan.problem) / bends / n_rows
        return cls(
            steps,
            sums.differences / n_rows,
            sums.rates / n_rows,
            sums.bends / n_rows,
            n_rows,
            (noise * largest_difference(steps) / n_rows, of_bends),
            noise / counts / n_rows if counts else 0.0,
            isinstance(plan.lattice, LatticeLaplace),
        )

    def _has_consistent_shapes(self) -> bool:
        k = len(self.steps)
        vectors = (self.steps, self.differences, self.rates, *self.deviations)
        return k >= 1 and all(each.shape == (k,) for each in vectors) and self.bends.shape[:1] == (k,)

    def _has_possible_values(self) -> bool:
        arrays = (self.steps, self.differences, self.rates, self.bends, *self.deviations)
        is_finite = all(np.isfinite(each).all() for each in (*arrays, self.n_rows, self.count_deviation))
        return is_finite and self.n_rows >= 1.0 and min(self.count_deviation, *map(np.min, self.deviations)) >= 0.0

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        found: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            found[each.name] = value.tolist() if isinstance(value, np.ndarray) else value
        return found | {"deviations": [each.tolist() for each in self.deviations]}

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Self:
        """Read the form written by `to_dict`."""
        if set(value) != {each.name for each in fields(cls)} or not isinstance(value["is_laplace"], bool):
            raise ParameterError(
                "the data for differences of risks were written by another version of confide, which this version cannot "
                "read."
            )
        names = ("steps", "differences", "rates", "bends")
        steps, differences, rates, bends = (np.array(value[name], dtype=np.float64) for name in names)
        of_differences, of_bends = (np.array(each, dtype=np.float64) for each in value["deviations"])
        return cls(
            steps,
            differences,
            rates,
            bends,
            float(value["n_rows"]),
            (of_differences, of_bends),
            float(value["count_deviation"]),
            value["is_laplace"],
        ).checked()
