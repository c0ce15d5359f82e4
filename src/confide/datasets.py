"""Real data for the demo, the documentation and first steps. It is part of the package, so nothing is downloaded."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any

from confide.errors import imported
from confide.features.schema import Schema

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class SplitData:
    """A table in two parts, with the public description of its columns.

    Attributes
    ----------
    X_train, X_test : pandas frames of the raw columns, without the target
    y_train, y_test : pandas Series of raw labels
    schema : the public description of the columns, written without looking at the rows
    """

    X_train: pd.DataFrame
    y_train: pd.Series[str]
    X_test: pd.DataFrame
    y_test: pd.Series[str]
    schema: Schema

    def __repr__(self) -> str:
        return f"SplitData({self.schema!r})"


def load_adult() -> SplitData:
    """Adult: census income, 1994 US Current Population Survey, in the published split of 32561 and 16281 rows.

    There are 14 raw columns: 6 numbers and 8 categories. Three of the categories have missing values. The label `income` is
    "<=50K" or ">50K". The data set is by B. Becker and R. Kohavi (UCI Machine Learning Repository, 1996,
    doi:10.24432/C5XW20), under CC BY 4.0; datasets_data/ATTRIBUTION.md says what was changed.

    Returns
    -------
    SplitData
        Each call gives new frames.

    Examples
    --------
    >>> adult = load_adult()
    >>> adult.X_train.shape, adult.X_test.shape
    ((32561, 14), (16281, 14))
    """
    read: Any = imported("pandas", "Adult", "files").read_parquet
    imported("pyarrow", "Adult", "files")
    folder = files("confide") / "datasets_data"
    with as_file(folder / "adult.toml") as path:
        schema = Schema.from_toml(path)

    def rows(part: str) -> pd.DataFrame:
        with (folder / f"adult_{part}.parquet").open("rb") as file:
            return read(file)  # type: ignore[no-any-return]

    (X_train, y_train), (X_test, y_test) = ((part, part.pop("income")) for part in map(rows, ("train", "test")))
    return SplitData(X_train, y_train, X_test, y_test, schema)
