"""Which rows of a person count, where one person may have several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from confide.types import Indices


@dataclass(frozen=True, slots=True)
class RowsPerPerson:
    """A random choice of at most `most` rows of each person.

    The order of a table may depend on its content. So if the first rows of each person counted, a change of one person's
    rows could change which rows of another person count. Rows that are drawn at random depend on the rows of their own
    person only, and on nothing that anybody knows.

    Parameters
    ----------
    most : how many rows of each person count
    permutation : gives, for n, the numbers 0 to n - 1 in a secret order that is uniform and independent of everything else
    """

    most: int
    permutation: Callable[[int], Indices]

    def drawn(self, persons: Indices) -> Indices | None:
        """Positions of the rows that count, in rising order; None if all rows count.

        Parameters
        ----------
        persons : (n,) whole numbers, equal for rows of one person
        """
        shuffled = self.permutation(persons.size)
        order = shuffled[np.argsort(persons[shuffled], kind="stable")]
        grouped = persons[order]
        is_first = np.append(True, grouped[1:] != grouped[:-1])
        starts = np.flatnonzero(is_first)
        earlier = np.arange(persons.size) - starts[np.cumsum(is_first) - 1]
        kept: Indices = np.sort(order[earlier < self.most])
        return None if kept.size == persons.size else kept
