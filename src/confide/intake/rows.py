"""The only entrance for rows: whatever a user passes as X and y becomes `GivenRows`, which gives checked rows.

Everything here happens before a budget is charged, so its only outcome may be to accept or to refuse. A refusal shows no
value from the rows.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import narwhals.stable.v1 as nw
import numpy as np

from confide.array_types import Array
from confide.budget_warnings import warn
from confide.data.arrays import CheckedSource, MappedBlocks, MemorySource
from confide.data.file_rows import ArrayRows, FileRows, StampedSource
from confide.data.files import FilePart, Stamp
from confide.data.partitions import NO_MOMENTS, NumericReading, OpenedRows
from confide.data.sources import files_of, kinds_read
from confide.data.spooled import as_frame, is_dask_frame, pieces_of
from confide.data.streams import Reading
from confide.errors import AccuracyWarning, FileError, InputError, InputTypeError, ParameterError, wording
from confide.features.cells import DIFFERENT_NUMBERS_OF_ROWS, Exposure, targets_at
from confide.features.encoder import Encoder
from confide.features.schema import Schema
from confide.features.table import columns_named
from confide.features.toml_form import is_path, refuse_address
from confide.intake.arrays import MemoryTable, names_of_columns, row_weights_of, table_of, weight_array
from confide.intake.parameters import schema_at
from confide.intake.specification import CheckedRows, Columns, RowSpecification
from confide.intake.targets import NEEDS_EXPOSURE, ReadTargets, number_column
from confide.threads import Progress, begun, until_it_raises


def exposure_of(X: Any, declared: Exposure | None, exposure: Any) -> Any:
    """The exposures of rows in memory: as they were given, or the column that the schema names; None if there are none."""
    if declared is None or not declared.column:
        return exposure
    if exposure is not None:
        raise ParameterError(f'the schema names the column "{declared.column}" as the exposure; leave exposure= out.')
    return columns_named(X, declared.column)[0]


def checked_input(X: Any, y: Any, sample_weight: Any = None, estimator: Any = None, exposure: Any = None) -> GivenRows:
    """The rows that a user passed to `fit`, to a search or to an evaluation.

    Rows that come in pieces bring their labels, or are kept in a file; any others are not read here. Without y, the labels
    are the column of a frame that the schema names.

    Parameters
    ----------
    X, y, sample_weight, exposure : as they were passed
    estimator : what takes them, which may have a schema
    """
    if isinstance(X, str | os.PathLike):
        opened = 'confide.open_rows("people.csv", schema=schema)'
        raise InputTypeError(f"X is text, which may name a file. Open it with the schema of its columns: {opened}.")
    if _comes_in_parts(X):
        X, y = _opened_parts(X, y, getattr(estimator, "schema", None))
    if not isinstance(X, OpenedRows | ArrayRows):
        schema = getattr(estimator, "schema", None)
        target, (_, y) = getattr(schema, "target", None), with_target(X, y, schema)
        if target is not None and target.exposure is not None:
            exposure = exposure_of(X, target.exposure, exposure)
        return _RowsInMemory(X, y, sample_weight, exposure=exposure)
    if y is not None:
        raise ParameterError("rows from open_rows bring their labels or targets, and y was given too; leave y out.")
    if isinstance(X, ArrayRows):
        return _RowsInMemory(X.rows, X.labels, sample_weight, X.stamps, exposure)
    if sample_weight is not None or exposure is not None:
        raise InputError(wording("weights of opened rows"))
    return _RowsElsewhere(X)


def with_target(X: Any, y: Any, schema: Any) -> tuple[Any, Any]:
    """Rows that are no files, and y; where y is None, the column of the frame that the schema names as the target."""
    target = getattr(schema, "target", None)
    if y is None and target is not None:
        X = as_frame(X)
        y = nw.to_native(*columns_named(X, target.column), pass_through=True)
    return X, y


def _comes_in_parts(X: Any) -> bool:
    """Whether X gives its rows a piece at a time, or is a collection of Dask."""
    kind = type(X)
    if kind.__module__.startswith("dask"):
        return is_dask_frame(X) or kind.__module__.startswith("dask.array")
    # Arrays and frames in memory have a shape, and become arrays.
    is_here = isinstance(X, OpenedRows | ArrayRows) or (hasattr(kind, "shape") and hasattr(kind, "__array__"))
    return not is_here and pieces_of(X) is not None


def _opened_parts(X: Any, y: Any, schema: Any) -> tuple[Any, Any]:
    """Rows and labels as `fit` takes them: rows that bring their labels, or a table that is read from a file."""
    if type(X).__module__.startswith("dask.array"):
        return open_rows(X, labels=y), None
    if schema is not None and is_dask_frame(X) and y is not None and getattr(schema, "target", None) is not None:
        X, y = X.assign(**{schema.target.column: y}), None
    return (open_rows(X, schema), None) if y is None and schema is not None else (as_frame(X), y)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _RowsInMemory:
    """Arrays, sparse matrices and frames. They are read once, for any number of fits."""

    X: object
    y: object
    sample_weight: object
    stamps: tuple[Stamp, ...] = ()
    exposure: object = None

    lies_here: ClassVar[bool] = True
    """Whether this process reads the rows itself, so that it can divide and score them."""
    scores_rows: ClassVar[bool] = True
    """Whether some process of this fit, here or on a cluster, can score the rows one by one."""

    def schema_for(self, schema: Schema | None) -> Schema | None:
        """The schema by which the rows are read, if this is the estimator's schema. Refuses two different schemas."""
        return schema

    def is_described_by(self, schema: Schema | None) -> bool:
        """Whether the rows are read alike by this schema. Knots and interactions do not matter for that."""
        return True

    def column_names(self) -> tuple[str, ...]:
        """Names of the columns of numbers: those of a frame, and x0, x1, ... for an array."""
        return names_of_columns(self.X)

    def n_rows_given(self) -> int:
        """How many rows were given, for choices that depend on a public number of rows. The rows are not checked yet."""
        # What has no rows is refused when it is read, with a message of its own.
        X: Any = self.X
        shape = getattr(X, "shape", None)
        if isinstance(shape, tuple) and shape and isinstance(shape[0], int):
            return max(1, int(shape[0]))
        with suppress(TypeError):
            return max(1, len(X))
        return 1

    def n_classes_given(self) -> int:
        """How many labels occur: as public as the classes that a fit finds where none are declared."""
        with suppress(Exception):  # what cannot be read is refused when it is, with a message of its own
            return len(np.unique(np.asarray(self.y)))
        return 0

    @contextmanager
    def checked(self, specifications: Sequence[RowSpecification]) -> Iterator[tuple[CheckedRows, ...]]:
        """Check the rows for each of several fits. Temporary files are removed when the context ends.

        Raises
        ------
        InputError, ParameterError, FileError
            If the rows cannot be used. The message shows no value from them.
        """
        first = specifications[0]
        index: Any = getattr(self.X, "index", None)
        for name, given in (("y", self.y), ("sample_weight", self.sample_weight), ("exposure", self.exposure)):
            own: Any = getattr(given, "index", None)
            # Only pandas has an index that can be compared. Others have a method of this name, or none.
            if hasattr(index, "equals") and hasattr(own, "equals") and len(own) == len(index) and not index.equals(own):
                warn((f"{name} {wording('another index')}",), AccuracyWarning)
        # Fits that encode rows alike share one table.
        tables: dict[Encoder | None, MemoryTable] = {}
        # Reading text gives no warning, so another thread may do it beside the columns.
        is_beside = first.target.matched_as_text
        with begun(lambda: first.target.read(self.y, None) if is_beside else None, first.n_threads) as targets_read:
            for one in specifications:
                tables[one.encoder] = tables.get(one.encoder) or table_of(self.X, one)
            n_rows = tables[first.encoder].n_rows_given
            # What is wrong with the columns is said first. What X says of its length may differ from what was read.
            # Of numbers far from 0 a fit with an intercept subtracts the middle, and one without takes them as they are.
            read: dict[Any, Any] = {}
            for one in specifications:
                read[one.target] = read.get(one.target) or targets_read() or one.target.read(self.y, n_rows)
        for kind, targets in read.items():
            if len(targets.values) != n_rows:
                raise InputError(DIFFERENT_NUMBERS_OF_ROWS)
            if (kind.exposure is None) != (self.exposure is None):
                raise InputError(NEEDS_EXPOSURE)
            if kind.exposure is not None:
                read[kind] = kind.with_exposure(targets, self.exposure)
        weight, own_weights = first.weight, None if self.sample_weight is None else weight_array(self.sample_weight)
        if weight is not None:
            if own_weights is not None:
                raise ParameterError(wording("weights given twice", column=weight.column))
            own_weights = weight.read(*columns_named(self.X, weight.column), refuse=True)
            kept = tables[first.encoder].kept
            if not (own_weights if kept is None else own_weights[kept]).any():
                raise weight.refusal_of_zeros()
        given = own_weights, len(specifications) == 1
        yield tuple([self._as_taken_by(one, tables[one.encoder], read[one.target], *given) for one in specifications])

    def _as_taken_by(
        self, specification: RowSpecification, table: MemoryTable, targets: ReadTargets, own: Array | None, is_alone: bool
    ) -> CheckedRows:
        """The rows as one fit uses them: mapped and weighted. Where it `is_alone`, it makes passes over all of them."""
        # Clip no rows: a bound that does not fit the columns refuses them here, before anything is charged.
        specification.row_bound.clip(table.blocks.block(0, 0))
        fourier, row_map = specification.map_of(table.blocks.n_features)
        keeps, largest, values = specification.is_fit and is_alone, specification.largest_sample_weight, targets.values
        blocks = table.blocks if row_map is None else MappedBlocks(table.blocks, row_map, keeps=keeps)
        weights = row_weights_of(own, largest, values, targets.domain, specification.class_weight)
        if table.kept is not None:
            values, weights = values[table.kept], None if weights is None else weights[table.kept]
        memory = MemorySource(blocks, values, weights, specification.n_threads)
        source: CheckedSource = StampedSource(memory, self.stamps) if self.stamps else memory
        # Rows of other cohorts are as if they had not been given.
        of_cohort = specification.encoder is not None and specification.encoder.schema.cohort is not None
        n_rows = table.blocks.n_rows if of_cohort else table.n_rows_given
        return CheckedRows.of(specification, source, n_rows, targets, table.columns, fourier, has_weights=own is not None)


@dataclass(frozen=True, slots=True, eq=False)
class _RowsElsewhere:
    """Rows in files, on a cluster or at other parties. They are checked in a separate pass for each fit."""

    rows: OpenedRows

    @property
    def lies_here(self) -> bool:
        return self.rows.lies_here

    @property
    def scores_rows(self) -> bool:
        return self.rows.scores_rows

    def schema_for(self, schema: Schema | None) -> Schema | None:
        if schema is not None and schema != self.rows.schema:
            raise ParameterError(wording("rows of another schema"))
        return self.rows.schema

    def is_described_by(self, schema: Schema | None) -> bool:
        own = self.rows.schema
        return schema == own if schema is None or own is None else schema.without_curves() == own.without_curves()

    def column_names(self) -> tuple[str, ...]:
        raise ParameterError("bounds are for arrays and frames in memory. Give open_rows a schema, and leave bounds out.")

    def n_rows_given(self) -> int:
        return self.rows.count()

    def n_classes_given(self) -> int:
        # Their schema has a target, which names the classes or is a number. Over parties nobody may choose.
        return 0 if self.scores_rows else self.rows.count()

    @contextmanager
    def checked(self, specifications: Sequence[RowSpecification]) -> Iterator[tuple[CheckedRows, ...]]:
        with ExitStack() as until_released:
            yield tuple(until_released.enter_context(self._as_taken_by(specification)) for specification in specifications)

    @contextmanager
    def _as_taken_by(self, specification: RowSpecification) -> Iterator[CheckedRows]:
        if specification.with_moments and not self.rows.gives_moments:
            raise ParameterError(NO_MOMENTS)
        target, encoder = specification.target.of_opened(self.rows), specification.encoder
        each_class = targets_at(np.arange(len(target.domain)), len(target.domain))
        largest, class_weight = specification.largest_sample_weight, specification.class_weight
        weighs = specification.weight is not None
        of_classes = row_weights_of(None, 1.0 if weighs else largest, each_class, target.domain, class_weight)
        counts = None if of_classes is None else tuple(of_classes.tolist())
        fourier, row_map = specification.map_of(self.rows.n_inputs if encoder is None else encoder.n_features)
        reading: Reading | NumericReading
        if encoder is None:
            reading = NumericReading(self.rows.n_inputs, target.domain, counts, row_map, target.numbers)
            columns = Columns(self.rows.n_inputs, None)
        else:
            reading = Reading(encoder, target.domain, counts, row_map, target.numbers, weighs)
            columns = Columns.of_schema(encoder)
        with self.rows.checked(reading, specification.rows_per_person, specification.n_threads) as (source, n_rows):
            yield CheckedRows.of(specification, source, n_rows, target, columns, fourier, has_weights=weighs)


GivenRows: TypeAlias = _RowsInMemory | _RowsElsewhere
"""Rows of any kind, as a user gave them."""


# `open_rows`: describes rows that lie in files or on a cluster. No row is read here.


def open_rows(
    rows: Any,
    schema: Schema | str | os.PathLike[str] | None = None,
    *,
    labels: Any = None,
    target: str | None = None,
    cache: bool | str | os.PathLike[str] = False,
    progress: Progress | None = None,
    client: Any = None,
    query: str | None = None,
) -> OpenedRows | ArrayRows:
    """Describe rows that do not fit into memory, or that lie elsewhere, so that `fit` can use them.

    Rows of Parquet, Arrow, Feather and plain CSV files, of Dask and of Spark are not read here. All others are written once
    to a private temporary file, so that they are the same in every pass.

    Parameters
    ----------
    rows : path, address, list of them, or rows that come in pieces
        The path of a Parquet, Arrow, Feather or CSV file, a workbook (.xlsx, .xls, .xlsb, .ods), or a file of Stata, SPSS or
        SAS; a pattern such as "data/*.parquet"; a folder, such as data of the form data/year=2024/part.parquet, whose names
        are then columns; an address such as "https://..." or "s3://..."; a list of these, each file once; or the path of a
        NumPy file (.npy). Or a Dask DataFrame or Array, a Spark DataFrame, a lazy frame of Polars, a relation of DuckDB, an
        Arrow stream, or an iterator of frames, such as pandas makes of a file in chunks. With `query`, the address of a
        database, such as "postgresql://host/db" or "sqlite:///people.db".
    schema : Schema, path of one in TOML, or None
        Describes the columns and the target. Required, except for NumPy files and Dask Arrays, which take none. Other
        columns of a file are not read.
    labels : path of a NumPy file, Dask Array, or None
        Required if `rows` is a NumPy file or a Dask Array: one label for each row, or for a regressor one number.
    target : str or None
        For regressors, if the schema has no target of numbers: the column of the numbers to be predicted, which the schema
        must not describe. The numbers are checked like `y` in `fit`, and clipped to the regressor's `target_bound`.
    cache : bool or path of a folder, default False
        True or a folder: encoded rows are kept in a file for later passes, with 8 bytes for a number and 1 byte for a
        category. They are private data on a disk. The file has no name, only its owner can read it, and it vanishes when the
        fit ends, even if the fit is killed (Linux and macOS).
    progress : callable or None
        Called like the function given to `confide.progress`, which does the same for all fits. The number of passes depends
        on the rows, and the progress shows it, so let only the curator see it.
    client : dask.distributed.Client or None
        If given, the workers of this cluster read the files. They must see the files under the same paths.
    query : str or None
        The text of a query in SQL. Its answer is read once, in a transaction that only reads. A password is best left to the
        driver, which takes it from the environment or from a file (PostgreSQL: PGPASSWORD, ~/.pgpass).

    Returns
    -------
    OpenedRows or ArrayRows
        For `fit` and `evaluate`, without y: ``model.fit(rows)``. `PrivateSearchCV` and `evaluate` need NumPy files, or other
        files opened without a client.

    Raises
    ------
    ParameterError
        If the arguments do not fit together.
    FileError
        If a file is missing or is not of its kind.
    InputError
        If the columns or the arrays cannot be used. The message shows no value from them.

    Notes
    -----
    A fit checks all rows in one pass before it charges the budget. Later passes do not refuse a row for what it holds. A
    file that changes between passes is refused.

    The types of columns come from the files and streams that declare them. For CSV files, sheets and queries they come from
    the schema, and for files of Stata, SPSS and SAS too: cells are labels of the file where the schema lists labels, and
    codes otherwise; what the file declares to be missing is missing. Private files lie in the folder of temporary files
    (TMPDIR). Only their owner can read them, and they are removed when the rows are no longer used, or the program ends.

    With a column of persons, memory grows with the number of rows, because the fit has to know whose row each one is.

    Guarantee: the released model is that of the same rows in memory, under the same guarantee.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import confide
    >>> adult = confide.datasets.load_adult()
    >>> path = pathlib.Path(tempfile.mkdtemp(), "people.parquet")
    >>> adult.X_train.assign(income=adult.y_train).to_parquet(path)
    >>> rows = confide.open_rows(path, adult.schema)
    >>> model = confide.LogisticRegression(1.0, schema=adult.schema).fit(rows)
    >>> bool(model.score(adult.X_test, adult.y_test) > 0.8)
    True
    """
    schema = schema_at(schema)
    if schema is not None and not isinstance(schema, Schema):
        raise ParameterError("schema must be a confide.Schema or the path of one in TOML.")
    if progress is not None and not callable(progress):
        raise ParameterError("progress must be None, or a function that takes the name of a step and a number of rows.")
    library = type(rows).__module__.partition(".")[0].removesuffix("_expr")
    is_array_file = is_path(rows) and Path(rows).suffix.lower() == ".npy"
    is_collection = library in ("dask", "pyspark")
    has_client = client is not None and library != "dask"
    if (is_collection or is_array_file) and (cache is not False or progress is not None or has_client):
        raise ParameterError(wording("options of files"))
    dask: Any = importlib.import_module("confide.data.dask") if library == "dask" else None  # optional, imported on use
    if is_array_file or (library == "dask" and schema is None):
        if schema is not None or labels is None or target is not None:
            raise ParameterError("an array of numbers takes no schema and no target; give its targets as `labels`.")
        return _open_arrays(Path(rows), labels) if is_array_file else dask.rows_of_arrays(rows, labels, client)
    described = _schema_with_target(schema, labels, target)
    if library == "dask":
        return dask.rows_of_frame(rows, described, client, target)  # type: ignore[no-any-return]
    if library == "pyspark":
        spark: Any = importlib.import_module("confide.data.spark")
        return spark.rows_of_frame(rows, described, target)  # type: ignore[no-any-return]
    folder: Path | str | None = checked_cache(cache) if not isinstance(cache, bool) else "" if cache else None
    paths = files_of(rows, described, query, target)
    parts = tuple(FilePart(Stamp.of(path), kinds_read(described, target)) for path in paths)
    files = FileRows(described, parts, folder, None if progress is None else until_it_raises(progress), target)
    if client is None:
        return files
    return importlib.import_module("confide.data.dask").rows_of_files(files, client)  # type: ignore[no-any-return]


def _schema_with_target(schema: Schema | None, labels: object, target: object) -> Schema:
    """The schema of rows with a table, checked together with the target."""
    if labels is not None:
        raise ParameterError("`labels` is only for arrays. For these rows, the labels are in the schema's target column.")
    numbers = number_column(schema)
    if target is not None and numbers not in (None, target):
        raise ParameterError(wording("target given twice", numbers=numbers))
    if schema is None or (schema.target is None and target is None):
        raise ParameterError(wording("opened rows need a target"))
    weight = None if schema.weight is None else schema.weight.column
    if target is not None and (
        not isinstance(target, str) or target in (*schema.column_names, *schema.raw_names, schema.choosing, weight)
    ):
        raise ParameterError("target must be the name of a column of numbers that the schema does not describe.")
    return schema


def checked_cache(folder: str | os.PathLike[str]) -> Path:
    """The folder for encoded rows, which exists."""
    if is_path(folder):
        refuse_address(folder)
    if not is_path(folder) or not Path(folder).is_dir():
        raise ParameterError(f"cache is not a folder that exists: {folder}. Make it, or leave cache out.")
    return Path(folder).absolute()


def _open_arrays(rows: Path, labels: Any) -> ArrayRows:
    if not is_path(labels):
        raise ParameterError("labels must be the path of a NumPy file (.npy) with one label or number for each row.")
    stamps, arrays = (Stamp.of(rows), Stamp.of(Path(labels))), []
    for stamp in stamps:
        with suppress(ValueError, EOFError, OSError):
            # Pickles are not read, because they could run code.
            arrays.append(np.load(stamp.path, mmap_mode="r", allow_pickle=False))
            continue
        raise FileError(f"{stamp.path} is not a NumPy file (.npy) of numbers or text. Pickled objects are not read.")
    X, y = arrays
    if X.dtype not in (np.dtype(np.float64), np.dtype(np.float32)) or X.ndim != 2:
        raise InputError(f"{rows} must hold an array (rows, features) of float64 or float32.")
    return ArrayRows(X, y, stamps)
