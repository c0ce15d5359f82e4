"""Counts of the cells of a column: what a fit would do with each."""

from __future__ import annotations

import pandas as pd
import pytest

from confide.features.columns import CategoryColumn, NumberColumn
from confide.features.schema import Target
from confide.studies.counting import ColumnCounts
from confide.studies.text_tables import is_text_table, table_pieces


def counted(tmp_path, described, cells, *, ending="csv", remembers=False):
    """Counts of a column that holds these cells."""
    path = tmp_path / f"p.{ending}"
    frame = pd.DataFrame({"c": cells, "other": "x"})
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path, index=False)
    counts = ColumnCounts("c", described, remembers)
    for piece in table_pieces(path, ["c"]):
        counts.add(piece, from_text=is_text_table(path))
    return counts


def test_numbers_in_text(tmp_path) -> None:
    """Each cell is counted once, by what a fit makes of it."""
    cells = ["5", "-1", "11", "12", "", "NA", "nan", "inf", "x", "1,5", "0", "10"]
    counts = counted(tmp_path, NumberColumn("c", 0, 10), cells)
    assert (counts.rows, counts.missing, counts.unreadable, counts.decimal_commas) == (12, 3, 2, 1)
    assert (counts.infinite, counts.below, counts.above, counts.clipped, counts.as_described) == (1, 1, 2, 3, 3)


@pytest.mark.parametrize(
    ("cells", "missing", "unreadable", "clipped"),
    [
        ([1.0, None, 20.0, 3.0], 1, 0, 1),
        ([1, 2, -3, 4], 0, 0, 1),
        (["1", "x", "", "99"], 1, 1, 1),
        (["1,5", "x", "2", None], 1, 2, 0),
        (list(pd.to_datetime(["2020-01-01"] * 4)), 0, 4, 0),
        ([[1], [2], [3], [4]], 0, 4, 0),
    ],
)
def test_numbers_in_typed_files(tmp_path, cells, missing, unreadable, clipped) -> None:
    """As the reading of cells finds them: numbers, text, dates and lists."""
    counts = counted(tmp_path, NumberColumn("c", 0, 10), cells, ending="parquet")
    assert (counts.missing, counts.unreadable, counts.clipped) == (missing, unreadable, clipped)
    assert counts.decimal_commas == cells.count("1,5")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_levels(tmp_path, ending) -> None:
    """Listed ones by canonical form, unlisted and missing ones; unlisted ones are remembered only if they may be."""
    cells = ["1", "1.0", " 2 ", "3", "3", "4", None, ""]
    described = CategoryColumn("c", (1, 2, 7))
    counts = counted(tmp_path, described, cells, ending=ending)
    assert (counts.by_level, counts.unlisted, counts.missing, counts.as_described) == ([2, 1, 0], 3, 2, 3)
    assert not counts.levels
    assert counted(tmp_path, described, cells, ending=ending, remembers=True).levels == {"3": 2, "4": 1}


def test_targets(tmp_path) -> None:
    """Labels like levels, numbers like numbers."""
    labels = counted(tmp_path, Target("c", negative="no", positive="yes"), ["no", "yes", "yes", "maybe", ""])
    assert (labels.by_level, labels.unlisted, labels.missing) == ([1, 2], 1, 1)
    numbers = counted(tmp_path, Target("c", low=0, high=10), ["1", "20", "x", "", "3"])
    assert (numbers.as_described, numbers.above, numbers.unreadable, numbers.missing) == (2, 1, 1, 1)


def test_cells_that_are_no_labels(tmp_path) -> None:
    """A column of dates cannot be a category."""
    counts = counted(tmp_path, CategoryColumn("c", ("a",)), list(pd.to_datetime(["2020-01-01"] * 3)), ending="parquet")
    assert (counts.unreadable, counts.as_described) == (3, 0)
