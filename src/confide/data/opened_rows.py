"""The interface of rows that lie outside of the memory of this process and bring their own labels or targets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from confide.data.checked_source import CheckedPass
from confide.data.partitions import NumericReading
from confide.data.streams import Reading
from confide.errors import ParameterError
from confide.features.persons import RowsPerPerson
from confide.features.schema import Schema

NO_MOMENTS = "the parties send no sums for intervals; set inference_share to 0 for their rows."


class OpenedRows(ABC):
    """Raw rows with their labels or targets, which lie in files, on a cluster or with other parties.

    Attributes
    ----------
    schema : the public description of the columns, with a target; None for numeric arrays
    target : the column of numbers that a regression predicts, or None for the target of the schema
    n_inputs : number of columns of numeric arrays
    lies_here : whether this process reads the rows itself; only then can it divide and score them
    scores_rows : whether a process of ours, here or on a cluster, reads the rows and can score them one by one
    gives_moments : whether the moments that intervals are made of can be summed over the rows
    """

    __slots__ = ()

    schema: Schema | None
    target: str | None = None
    n_inputs: int = 0
    lies_here: ClassVar[bool] = False
    scores_rows: ClassVar[bool] = True
    gives_moments: ClassVar[bool] = True

    def labels_present(self) -> Any:
        """Labels among which every distinct label occurs at least once. Needed where no schema declares the classes."""
        raise ParameterError("the classes of these rows are not known: give `classes`, or a schema with a target.")

    @abstractmethod
    def count(self) -> int:
        """The number of rows, for choices that depend on a public number of rows, before the rows are checked.

        Raises
        ------
        InputError, FileError
            If there are no rows, or they cannot be counted.
        ParameterError
            If these rows are not counted before the check. The message says what to give instead.
        """

    @abstractmethod
    def checked(
        self, reading: Reading | NumericReading, rows_per_person: RowsPerPerson, n_threads: int = 1
    ) -> AbstractContextManager[CheckedPass]:
        """Read all rows once and check them. On exit, everything that was stored for later passes is removed.

        Parameters
        ----------
        reading : how raw rows become blocks of numbers and labels
        rows_per_person : which rows of each person count
        n_threads : how many threads share the later passes, if this process reads the rows

        Raises
        ------
        InputError, FileError
            If a row cannot be used. The message shows no value of the row.
        """
