"""How many rows each person of a table has, and how many rows repeat another row of the same person.

Persons and rows are remembered as fingerprints of 8 bytes each, so memory grows with their number, but not with their size.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.curation.pieces import Piece
from confide.features.cells import distinct_cells, identity_in

Fingerprints = NDArray[np.uint64]


class PersonCounts:
    """Counts of the rows of persons.

    Parameters
    ----------
    name : the column that identifies persons
    columns : the columns that are compared to find repeated rows
    """

    def __init__(self, name: str, columns: tuple[str, ...]) -> None:
        self.name = name
        self.missing = 0
        self._columns = columns
        self._persons: list[Fingerprints] = []
        self._rows: list[Fingerprints] = []

    def add(self, piece: Piece) -> None:
        """Count the rows of a piece."""
        values, positions = distinct_cells(f'column "{self.name}"', piece.cells(self.name))
        marks = np.array([_fingerprint(value) for value in values] + [0], dtype=np.uint64)
        persons = marks[positions]
        known = persons != 0
        self.missing += int((~known).sum())
        self._persons.append(persons[known])
        self._rows.append(_fingerprints_of_rows(piece, self._columns, persons)[known])

    def summary(self, most: int) -> dict[str, int]:
        """What is to be shown.

        Parameters
        ----------
        most : the largest number of rows of one person that a fit is told, --max-rows-per-person

        Returns
        -------
        dict
            persons; rows_without_person; most_rows, of one person; persons_above, who have more than `most`; rows_above,
            that a fit leaves out of them; repeated_rows, which equal another row of their person in every described column.
        """
        persons = np.concatenate(self._persons) if self._persons else np.zeros(0, dtype=np.uint64)
        rows = np.concatenate(self._rows) if self._rows else np.zeros(0, dtype=np.uint64)
        _, counts = np.unique(persons, return_counts=True)
        above = counts[counts > most]
        return {
            "persons": int(counts.size),
            "rows_without_person": self.missing,
            "most_rows": int(counts.max(initial=0)),
            "persons_above": int(above.size),
            "rows_above": int((above - most).sum()),
            "repeated_rows": int(rows.size - np.unique(rows).size),
        }


def _fingerprint(value: object) -> int:
    """8 bytes of a hash of an identifier; 0 if it is missing or is none."""
    try:
        identity = identity_in(value)
    except (TypeError, ValueError):
        identity = None
    if identity is None:
        return 0
    return int.from_bytes(hashlib.blake2b(identity.encode(), digest_size=8).digest(), "little") or 1


def _fingerprints_of_rows(piece: Piece, columns: tuple[str, ...], persons: Fingerprints) -> Fingerprints:
    """8 bytes for each row: of its person and of its cells in these columns."""
    import pandas as pd

    frame: Any = piece.table.select(list(columns)).to_pandas()
    try:
        found = pd.util.hash_pandas_object(frame, index=False)
    except TypeError:  # lists and the like
        found = pd.util.hash_pandas_object(frame.astype(str), index=False)
    hashed = np.asarray(found, dtype=np.uint64)
    return hashed ^ (persons * np.uint64(0x9E3779B97F4A7C15))
