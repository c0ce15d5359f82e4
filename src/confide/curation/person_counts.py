"""How many rows each person has, how persons are spelled, and how many rows repeat another row of the same person.

Persons, their spellings and rows are remembered as fingerprints of 8 bytes each, so memory grows with their number, but not
with their size.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.curation.pieces import Piece
from confide.features.cells import distinct_cells
from confide.features.persons import ROUNDED, identity_in, spelling_of

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
        self.rounded = 0
        self._columns = columns
        self._persons: list[Fingerprints] = []
        self._spellings: list[Fingerprints] = []
        self._rows: list[Fingerprints] = []

    def add(self, piece: Piece) -> None:
        """Count the rows of a piece."""
        values, positions = distinct_cells(f'column "{self.name}"', piece.cells(self.name))
        identities = [_identity(value) for value in values]
        marks = np.array([*map(_fingerprint, identities), 0], dtype=np.uint64)
        persons = marks[positions]
        rounded = np.array([identity == ROUNDED for identity in identities] + [False])
        self.rounded += int(rounded[positions].sum())
        self._spellings.append(
            np.array([_fingerprint(identity and spelling_of(identity)) for identity in identities], dtype=np.uint64)
        )
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
            persons; rows_without_person; rounded_rows, whose person is a number that its type rounds; respelled, how many
            persons are another one in another spelling; most_rows, of one person; persons_above, who have more than `most`;
            rows_above, that a fit leaves out of them; repeated_rows, which equal another row of their person in every
            described column.
        """
        persons = np.concatenate(self._persons) if self._persons else np.zeros(0, dtype=np.uint64)
        rows = np.concatenate(self._rows) if self._rows else np.zeros(0, dtype=np.uint64)
        _, counts = np.unique(persons, return_counts=True)
        spellings = np.unique(np.concatenate([*self._spellings, np.zeros(1, dtype=np.uint64)]))
        above = counts[counts > most]
        return {
            "persons": int(counts.size),
            "rows_without_person": self.missing,
            "rounded_rows": self.rounded,
            "respelled": int(counts.size - (spellings.size - 1)),
            "most_rows": int(counts.max(initial=0)),
            "persons_above": int(above.size),
            "rows_above": int((above - most).sum()),
            "repeated_rows": int(rows.size - np.unique(rows).size),
        }


def _identity(value: object) -> str | None:
    """The identity of a person; None if it is missing or is none."""
    try:
        return identity_in(value)
    except (TypeError, ValueError):
        return None


def _fingerprint(identity: str | None) -> int:
    """8 bytes of a hash of an identity; 0 if there is none."""
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
