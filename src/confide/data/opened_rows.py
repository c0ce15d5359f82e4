"""Rows that lie outside of this process's memory and bring their labels or targets: what every kind of them can do."""

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


class OpenedRows(ABC):
    """Raw rows with their labels or targets that lie elsewhere: in files, on a cluster or at other parties.

    Attributes
    ----------
    schema : the public description of their columns, with a target; None for numeric arrays
    target : the column of numbers to be predicted, or None for the labels of the schema
    n_inputs : number of columns of numeric arrays
    lies_here : whether this process reads the rows itself, so that it can divide and score them
    """

    __slots__ = ()

    schema: Schema | None
    target: str | None = None
    n_inputs: int = 0
    lies_here: ClassVar[bool] = False

    def labels_present(self) -> Any:
        """Some labels, each different one among them, where no schema declares them."""
        raise ParameterError("declare the labels of these rows: give `classes`, or a schema with a target.")

    @abstractmethod
    def checked(
        self, reading: Reading | NumericReading, rows_per_person: RowsPerPerson, n_threads: int = 1
    ) -> AbstractContextManager[CheckedPass]:
        """Read all rows once and check them; what was made for later passes is removed at the end.

        Parameters
        ----------
        reading : how raw rows become blocks
        rows_per_person : which rows of each person count
        n_threads : threads that share later passes where this process reads the rows

        Raises
        ------
        InputError, FileError
            If a row cannot be used; without any value from it.
        """
