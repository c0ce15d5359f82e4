"""`open_rows`: describes rows that lie in files or on a cluster. No row is read here."""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from confide.data.file_rows import ArrayRows, FileRows
from confide.data.on_disk import FilePart, Kind, Stamp, files_of
from confide.data.opened_rows import OpenedRows
from confide.data.passes import Progress, Told
from confide.errors import FileError, InputError, ParameterError
from confide.features.columns import NumberColumn
from confide.features.schema import Schema
from confide.features.toml_form import refuse_address
from confide.intake.targets import number_column


def open_rows(
    rows: Any,
    schema: Schema | str | os.PathLike[str] | None = None,
    *,
    labels: Any = None,
    target: str | None = None,
    cache: bool | str | os.PathLike[str] = False,
    progress: Progress | None = None,
    client: Any = None,
) -> OpenedRows | ArrayRows:
    """Describe rows that do not fit into memory, or that lie on a cluster, so that `fit` can use them. Reads no row.

    Parameters
    ----------
    rows : path, list of paths, Dask DataFrame or Array, or Spark DataFrame
        The path of a Parquet, Arrow, Feather or CSV file; a pattern such as "data/*.parquet"; a list of paths, each file
        once; or the path of a NumPy file (.npy).
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

    Returns
    -------
    OpenedRows or ArrayRows
        For `fit` and `evaluate`, without y: ``model.fit(rows)``. `PrivateSearchCV`, `intervals_from_parts` and `evaluate`
        need NumPy files, or other files opened without a client.

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

    The types of columns come from the files; for CSV files they come from the schema. With a column of persons, memory grows
    with the number of rows, because the fit has to know whose row each one is.

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
    described = _schema_of(schema)
    if progress is not None and not callable(progress):
        raise ParameterError("progress must be None, or a function that takes the name of a step and a number of rows.")
    told = None if progress is None else Told(progress)
    options = _Options(described, labels, target, cache, told, client)
    library = type(rows).__module__.partition(".")[0].removesuffix("_expr")
    if library == "dask":
        return _open_dask(rows, options)
    if library == "pyspark":
        return _open_spark(rows, options)
    if isinstance(rows, (str, os.PathLike)) and Path(rows).suffix.lower() == ".npy":
        return _open_arrays(Path(rows), options)
    return _open_files(rows, options)


@dataclass(frozen=True, slots=True)
class _Options:
    """The arguments of `open_rows` beside the rows."""

    schema: Schema | None
    labels: Any
    target: str | None
    cache: Any
    progress: Progress | None
    client: Any

    def refuse_reading_options(self, *, client_too: bool = False) -> None:
        """Refuse options that are only for files with a table."""
        if self.cache is not False or self.progress is not None or (client_too and self.client is not None):
            raise ParameterError(
                "cache and progress are for files with a table (Parquet, Arrow, Feather, CSV), and client is for these "
                "files and for Dask. Leave them out."
            )

    def refuse_schema(self) -> None:
        """For arrays of numbers: refuse what describes named columns."""
        if self.schema is not None or self.labels is None or self.target is not None:
            raise ParameterError(
                "an array of numbers takes no schema and no target, and its labels or targets are given as `labels`."
            )

    def with_schema(self) -> Schema:
        """The schema, checked together with the target."""
        if self.labels is not None:
            raise ParameterError(
                "`labels` is only for arrays. For these rows, the labels are in the schema's target column."
            )
        schema, target = self.schema, self.target
        numbers = number_column(schema)
        if target is not None and numbers not in (None, target):
            raise ParameterError(
                f'the schema\'s target is the column of numbers "{numbers}", so leave `target` out; or take the target '
                f"out of the schema."
            )
        if schema is None or (schema.target is None and target is None):
            raise ParameterError(
                "open_rows needs a schema with a target, which says what columns and labels mean. For a regressor, the "
                "schema's target has bounds, low and high, or the column of its numbers is given as `target` instead."
            )
        weight = None if schema.weight is None else schema.weight.column
        if target is not None and (not isinstance(target, str) or target in (*schema.column_names, schema.person, weight)):
            raise ParameterError("target must be the name of a column of numbers that the schema does not describe.")
        return schema


def _schema_of(schema: Any) -> Schema | None:
    if isinstance(schema, (str, os.PathLike)):
        return Schema.from_toml(Path(schema))
    if schema is not None and not isinstance(schema, Schema):
        raise ParameterError("schema must be a confide.Schema or the path of one in TOML.")
    return schema


def _open_dask(rows: Any, options: _Options) -> OpenedRows:
    options.refuse_reading_options()
    dask: Any = importlib.import_module("confide.data.dask")  # an optional dependency, imported on use
    if options.schema is None:
        options.refuse_schema()
        return dask.rows_of_arrays(rows, options.labels, options.client)  # type: ignore[no-any-return]
    return dask.rows_of_frame(rows, options.with_schema(), options.client, options.target)  # type: ignore[no-any-return]


def _open_spark(rows: Any, options: _Options) -> OpenedRows:
    options.refuse_reading_options(client_too=True)
    spark: Any = importlib.import_module("confide.data.spark")  # an optional dependency, imported on use
    return spark.rows_of_frame(rows, options.with_schema(), options.target)  # type: ignore[no-any-return]


def checked_cache(folder: Path | str) -> Path:
    """The folder for encoded rows, which exists."""
    refuse_address(folder)
    if not isinstance(folder, (str, os.PathLike)) or not Path(folder).is_dir():
        raise ParameterError(f"cache is not a folder that exists: {folder}. Make it, or leave cache out.")
    return Path(folder).absolute()


def _open_files(paths: Any, options: _Options) -> OpenedRows:
    schema, cache = options.with_schema(), options.cache
    folder: Path | str | None = checked_cache(cache) if not isinstance(cache, bool) else "" if cache else None
    parts = tuple(FilePart(Stamp.of(path), kinds_read(schema, options.target)) for path in files_of(paths))
    files = FileRows(schema, parts, folder, options.progress, options.target)
    if options.client is None:
        return files
    dask: Any = importlib.import_module("confide.data.dask")
    return dask.rows_of_files(files, options.client)  # type: ignore[no-any-return]


def kinds_read(schema: Schema, target: str | None = None) -> dict[str, Kind]:
    """The kind of each column that is read from a CSV file: those of the schema, person, weight, and target or `target`."""
    kinds: dict[str, Kind] = {
        column.name: "number" if isinstance(column, NumberColumn) else "text" for column in schema.columns
    }
    if target is not None:
        kinds[target] = "number"
    elif schema.target is not None:
        kinds[schema.target.column] = "text" if schema.target.bounds is None else "number"
    if schema.person is not None:
        kinds[schema.person] = "text"
    if schema.weight is not None:
        kinds[schema.weight.column] = "number"
    return kinds


def _open_arrays(rows: Path, options: _Options) -> ArrayRows:
    options.refuse_reading_options(client_too=True)
    options.refuse_schema()
    labels = options.labels
    if not isinstance(labels, (str, os.PathLike)):
        raise ParameterError("labels must be the path of a NumPy file (.npy) with one label or number for each row.")
    stamps = (Stamp.of(rows), Stamp.of(Path(labels)))
    X, y = (_mapped(stamp.path) for stamp in stamps)
    if X.dtype not in (np.dtype(np.float64), np.dtype(np.float32)) or X.ndim != 2:
        raise InputError(f"{rows} must hold an array (rows, features) of float64 or float32.")
    return ArrayRows(X, y, stamps)


def _mapped(path: Path) -> Any:
    try:
        # Pickles are not read, because they could run code.
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError):
        pass
    raise FileError(f"{path} is not a NumPy file (.npy) of numbers or text. Pickled objects are not read.")
