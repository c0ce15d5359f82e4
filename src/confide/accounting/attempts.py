"""Attempts at one release under one charge: a charge whose attempt was interrupted may be finished, once.

A charge with an intent says, as a checksum, what is to be released. The ledger marks when another attempt takes it up, and
when one has ended: before anything of it is seen. Proof: proofs/finishing.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from confide.accounting.records import INTENT, Entry, canonical
from confide.errors import LedgerError, wording
from confide.privacy.events import Event


def mark_text(charge: int, attempt: int, *, ended: bool) -> str:
    """The text of a mark: an attempt under a charge begins, or ends: it releases, or fails by an error that is seen.

    The charge itself begins the first. A mark has no events and, for the reason that a note has none, no time.
    """
    return canonical({"mark_on": charge, "attempt": attempt, "ended": ended})


class Attempts:
    """The last attempt under each charge with an intent, and the charges of which it has not ended."""

    def __init__(self) -> None:
        self._last: dict[int, int] = {}
        self._going_on: set[int] = set()

    def begin(self, charge: int) -> None:
        """Count a charge with an intent: it begins its first attempt."""
        self._last[charge] = 1
        self._going_on.add(charge)

    def take(self, charge: object, attempt: object, ended: object) -> bool:
        """Count a mark. False unless it is that of the next attempt, or of the end of the last one."""
        # A number of another type, such as True or 1.0, would be equal.
        if type(charge) is not int or type(attempt) is not int or not isinstance(ended, bool):
            return False
        if charge not in self._going_on or attempt != self._last[charge] + (not ended):
            return False
        self._last[charge] = attempt
        if ended:
            self._going_on.remove(charge)
        return True

    def end(self, charge: int, attempt: int) -> str:
        """The text of the mark of the end of an attempt.

        Raises
        ------
        LedgerError
            If it is not the last one under its charge, or that has ended.
        """
        # A record of another type, such as True or 1.0, could not be read again.
        last = self._last.get(charge, 0) if type(charge) is type(attempt) is int else 0
        if last == 0 or not 1 <= attempt <= last:
            raise LedgerError(wording("no such attempt"))
        if attempt < last or charge not in self._going_on:
            raise LedgerError(wording("attempt taken up", charge=charge))
        return mark_text(charge, attempt, ended=True)

    def next(self, entries: Sequence[Entry], events: tuple[Event, ...], intent: str | None) -> tuple[int, int]:
        """The newest charge for this very release that has not ended, and the number of a further attempt under it.

        Raises
        ------
        LedgerError
            If there is no such charge.
        """
        anew = "Nothing was used or charged. To charge a new release, do not ask to finish one."
        if not intent:
            raise LedgerError(wording("nothing that can be finished", anew=anew))
        for number in self.charges[::-1]:
            entry = entries[number - 1]
            # Events of records do not state the relation, which is that of the ledger.
            is_same = [e.to_dict() for e in entry.events] == [e.to_dict() for e in events]
            if is_same and entry.details[INTENT] == intent:
                return number, self._last[number] + 1
        raise LedgerError(wording("nothing to be finished", anew=anew))

    @property
    def charges(self) -> list[int]:
        """The numbers of all charges with an intent that have not ended."""
        return sorted(self._going_on)
