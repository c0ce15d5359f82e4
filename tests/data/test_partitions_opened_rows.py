"""What every kind of opened rows has: a schema or columns of numbers, a target, a check, and whether it is read here."""

from __future__ import annotations

import pytest

from confide.data.dask import DaskRows
from confide.data.federated import FederatedRows
from confide.data.file_rows import FileRows
from confide.data.partitions import OpenedRows
from confide.data.spark import SparkRows
from confide.errors import ParameterError
from tests.data.tables import SCHEMA

KINDS = [FileRows(SCHEMA, ()), DaskRows(SCHEMA, ()), SparkRows(SCHEMA, None), FederatedRows(SCHEMA, ())]


@pytest.mark.parametrize("rows", KINDS, ids=lambda rows: type(rows).__name__)
def test_every_kind_has_its_schema_and_no_target_of_numbers_unless_one_is_named(rows):
    """Labels are those of the schema then."""
    assert rows.schema == SCHEMA
    assert rows.target is None
    assert rows.n_inputs == 0


@pytest.mark.parametrize("rows", KINDS, ids=lambda rows: type(rows).__name__)
def test_files_alone_are_read_here(rows):
    """The rows of clusters and parties cannot be divided or scored by this process."""
    assert rows.lies_here is isinstance(rows, FileRows)


@pytest.mark.parametrize("rows", [KINDS[0], KINDS[2], KINDS[3]], ids=lambda rows: type(rows).__name__)
def test_labels_that_nobody_declared_are_refused_where_they_cannot_be_found(rows):
    """The message says how to declare them."""
    with pytest.raises(ParameterError, match="give `classes`, or a schema with a target"):
        rows.labels_present()


def test_rows_without_a_check_are_no_opened_rows():
    """A kind of rows that forgets it cannot be made."""

    class Unchecked(OpenedRows):
        pass

    with pytest.raises(TypeError, match="checked"):
        Unchecked()
