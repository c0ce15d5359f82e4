"""The check of a table against its schema, before anything is spent: counts for its curator, which are not for release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from confide.curation.column_counts import ColumnCounts
from confide.curation.near_misses import NameCheck, check_names
from confide.curation.person_counts import PersonCounts
from confide.curation.pieces import Ragged, table_pieces
from confide.curation.table_names import looks_like_data, schema_of_typed_file
from confide.curation.text_form import TextForm, form_of, is_text_table
from confide.data.on_disk import FilePart, Stamp
from confide.errors import ConfideError
from confide.features.columns import NumberColumn
from confide.features.schema import Schema
from confide.intake.opening import kinds_read

NOT_FOR_RELEASE = "Computed from the rows; not for release."


@dataclass(frozen=True, slots=True)
class FileCheck:
    """What was found of one file before its rows were read.

    Parameters
    ----------
    path : the file
    form : how it is written; None for Parquet and Feather files
    names : how its names agree with the schema
    header_is_data : whether its first line looks like data
    refusal : the message with which a fit refuses the file, or ""
    ragged : how many rows have more or fewer cells than the first line has names
    """

    path: Path
    form: TextForm | None
    names: NameCheck
    header_is_data: bool
    refusal: str
    ragged: Ragged = field(default_factory=Ragged)


@dataclass(frozen=True, slots=True)
class TableCheck:
    """A table compared with its schema.

    Parameters
    ----------
    files : one entry for each file
    columns : counts of the columns of the schema that all files have
    target : counts of the target; None if there is none, or the files lack it
    persons : as `PersonCounts.summary` gives them; None without a column of persons
    rows_per_person : the largest number of rows of one person that a fit would be told
    n_rows : how many rows were counted
    shows_values : whether unlisted levels were remembered to be shown
    """

    files: tuple[FileCheck, ...]
    columns: tuple[ColumnCounts, ...]
    target: ColumnCounts | None
    persons: dict[str, int] | None
    rows_per_person: int
    n_rows: int
    shows_values: bool

    @property
    def counted(self) -> tuple[ColumnCounts, ...]:
        """The columns and the target."""
        return self.columns if self.target is None else (*self.columns, self.target)


def check_table(paths: Sequence[Path], schema: Schema, *, rows_per_person: int = 1, show_values: bool = False) -> TableCheck:
    """Compare the rows of files with a schema.

    The rows are read once, piece by piece. Memory grows with their number only if the schema names a column of persons.

    Parameters
    ----------
    paths : files of text, Parquet or Feather files
    schema : the public description of the columns
    rows_per_person : as for a fit
    show_values : whether unlisted levels are remembered to be shown

    Raises
    ------
    FileError
        If a file cannot be read at all. The message shows no cell.
    """
    files = tuple(_checked_file(path, schema) for path in paths)
    absent = {name for file in files for name in (*file.names.absent, *file.names.repeated)}
    described = (*schema.columns, *_weights(schema))
    columns = tuple(ColumnCounts(each.name, each, show_values) for each in described if each.name not in absent)
    target = None
    if schema.target is not None and schema.target.column not in absent:
        target = ColumnCounts(schema.target.column, schema.target, show_values)
    counted = columns if target is None else (*columns, target)
    persons = None
    if schema.person is not None and schema.person not in absent:
        persons = PersonCounts(schema.person, tuple(each.name for each in counted))
    n_rows = 0
    names = [each.name for each in counted] + ([] if persons is None else [persons.name])
    for file in files if counted else ():
        for piece in table_pieces(file.path, names, file.form, file.ragged):
            n_rows += piece.n_rows
            for each in counted:
                each.add(piece)
            if persons is not None:
                persons.add(piece)
    summary = None if persons is None else persons.summary(rows_per_person)
    return TableCheck(files, columns, target, summary, rows_per_person, n_rows, show_values)


def _weights(schema: Schema) -> tuple[NumberColumn, ...]:
    """The column of weights of rows, counted like any other number between public bounds; none without one."""
    weight = schema.weight
    return () if weight is None else (NumberColumn(weight.column, low=0.0, high=weight.high),)


def _checked_file(path: Path, schema: Schema) -> FileCheck:
    form = form_of(path, list(kinds_read(schema)), whole=True) if is_text_table(path) else None
    present = tuple(schema_of_typed_file(path).names) if form is None else form.names
    names = check_names(present, list(kinds_read(schema)))
    is_data = form is not None and not names.is_header and looks_like_data(present)
    return FileCheck(path, form, names, is_data, _refusal(path, schema))


def _refusal(path: Path, schema: Schema) -> str:
    """The message with which a fit refuses a file before it reads a row, or ""."""
    try:
        FilePart(Stamp.of(path), kinds_read(schema)).check()
    except ConfideError as error:
        return str(error)
    return ""


def share(count: int, of: int) -> float:
    """A share from 0 to 1; 0 of nothing."""
    return count / of if of else 0.0
