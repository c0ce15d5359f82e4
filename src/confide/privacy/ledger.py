"""What was spent on one body of data, and the limit. In memory: it lives as long as its process.

Pure differential privacy composes by adding epsilons, also when each analysis is chosen after seeing the results of the
ones before (proofs/ledger.md), so a charge is granted when the sum stays within the limit.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

from confide.errors import BudgetExceeded, LedgerError, ParameterError
from confide.privacy.guarantee import Neighbours, PureDP, as_budget


@dataclass(frozen=True, slots=True)
class Entry:
    """One charge."""

    number: int
    budget: PureDP
    purpose: str


class Ledger:
    """A budget shared by all fits on the same rows. Charge first, then read; there is no refund.

    Copies, clones and deep copies are the ledger itself, so no wrapper can spend twice. It remembers its process:
    pickling it, or charging it after a fork, raises LedgerError.

    Parameters
    ----------
    limit : PureDP or float
        The most that all charges together may cost; finite.
    neighbours : str or Neighbours
        The relation that every charge must have.

    Examples
    --------
    >>> import confide
    >>> ledger = confide.Ledger(limit=2.0)
    >>> ledger.charge(confide.PureDP(0.5), purpose="mean age")
    >>> ledger.remaining().epsilon
    1.5
    """

    def __init__(self, *, limit: PureDP | float, neighbours: Neighbours | str = Neighbours.REPLACE_ONE) -> None:
        self._limit = as_budget(limit)
        if not self._limit.is_private:
            raise ParameterError("the limit of a ledger must be finite.")
        self._neighbours = Neighbours.parse(neighbours)
        self._entries: list[Entry] = []
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def limit(self) -> PureDP:
        """The most that all charges together may cost."""
        return self._limit

    @property
    def neighbours(self) -> Neighbours:
        """The neighbour relation of every charge."""
        return self._neighbours

    def charge(self, budget: PureDP | float, *, purpose: str = "", neighbours: Neighbours | str | None = None) -> None:
        """Record a charge, or raise and record nothing.

        Parameters
        ----------
        budget : PureDP or float
        purpose : str
            What it is for; public, shown in `entries`.
        neighbours : str, Neighbours or None
            The relation the release is private under; None means the ledger's own.

        Raises
        ------
        BudgetExceeded
            If the sum would exceed the limit. Nothing was charged.
        LedgerError
            If the neighbour relation is another one, or this is another process.
        """
        self._check_process()
        asked = as_budget(budget)
        if neighbours is not None and Neighbours.parse(neighbours) is not self._neighbours:
            raise LedgerError(
                f"this ledger counts {self._neighbours} guarantees, and the charge is for {Neighbours.parse(neighbours)}. "
                f"Use one ledger for each relation. Nothing was used or charged."
            )
        with self._lock:
            left = _exact(self._limit.epsilon) - self._sum()
            if not asked.is_private or _exact(asked.epsilon) > left:
                raise BudgetExceeded(
                    f"this asks for epsilon {asked.epsilon:g}; the ledger has {float(left):g} left of "
                    f"{self._limit.epsilon:g}. Lower `budget`, or ask the ledger's owner for a new limit. "
                    f"Nothing was used or charged."
                )
            self._entries.append(Entry(len(self._entries) + 1, asked, str(purpose)))

    def spent(self) -> PureDP:
        """What all charges cost together."""
        return PureDP.of_sum(float(self._sum()))

    def remaining(self) -> PureDP:
        """What is left under the limit."""
        return PureDP.of_sum(float(_exact(self._limit.epsilon) - self._sum()))

    def entries(self) -> Any:
        """The charges in order, a pandas frame with the columns number, epsilon and purpose."""
        import pandas as pd

        rows = [(entry.number, entry.budget.epsilon, entry.purpose) for entry in self._entries]
        return pd.DataFrame(rows, columns=["number", "epsilon", "purpose"])

    def __repr__(self) -> str:
        return f"<Ledger in memory: epsilon {self.spent().epsilon:g} of {self._limit.epsilon:g} spent, {self._neighbours}>"

    def _sum(self) -> Fraction:
        return sum((_exact(entry.budget.epsilon) for entry in self._entries), Fraction(0))

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise LedgerError("an in-memory ledger cannot be charged from another process: its charges would be lost.")

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: object) -> Ledger:
        return self

    def __sklearn_clone__(self) -> Ledger:
        return self

    def __reduce__(self) -> NoReturn:
        raise LedgerError(
            "an in-memory ledger cannot be pickled or sent to another process: the copy would spend the same budget again. "
            "Run the work in this process (n_jobs=1 or threads)."
        )


def _exact(epsilon: float) -> Fraction:
    """The decimal number the user wrote, so that ten times 0.1 is 1.

    The double nearest to a decimal exceeds it by at most one part in 2^53; every mechanism rounds its rate down by one
    part in 2^40, which covers the difference.
    """
    return Fraction(repr(epsilon))
