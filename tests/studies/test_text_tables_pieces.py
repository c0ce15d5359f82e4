"""Tables read piece by piece, however they are written."""

from __future__ import annotations

import gzip

import pytest

from confide.errors import FileError
from confide.studies.text_tables import cells_in, distinct_in, table_pieces
from tests.curation.tables import people


def cells_of(path, name):
    """All cells of a column as text, None for an empty one."""
    found = [cell for piece in table_pieces(path, [name]) for cell in cells_in(piece, name).to_pylist()]
    return [None if cell in (None, "") else str(cell) for cell in found]


@pytest.mark.parametrize("how", [{"sep": ";", "encoding": "latin-1"}, {"encoding": "utf-16"}, {"encoding": "utf-8-sig"}])
def test_every_form_gives_the_same_cells(tmp_path, how) -> None:
    """The names are found by their letters."""
    people().to_csv(tmp_path / "p.csv", index=False, **how)
    expected = [None if height != height else str(height) for height in people()["Größe (cm)"]]
    assert cells_of(tmp_path / "p.csv", "Größe (cm)") == expected


def test_compressed_files_with_tabs(tmp_path) -> None:
    """Their cells are those of the frame."""
    (tmp_path / "p.tsv.gz").write_bytes(gzip.compress(people().to_csv(index=False, sep="\t").encode()))
    assert cells_of(tmp_path / "p.tsv.gz", "age") == [str(age) for age in people()["age"]]


def test_large_files_come_in_pieces(tmp_path) -> None:
    """No piece holds all rows, and none is lost."""
    path = tmp_path / "p.csv"
    path.write_text("age\n" + "1234567\n" * 2_000_000)
    sizes = [piece.num_rows for piece in table_pieces(path, ["age"])]
    assert sum(sizes) == 2_000_000
    assert max(sizes) < 1_000_000


def test_rows_with_too_few_or_too_many_cells_are_counted(tmp_path) -> None:
    """And skipped."""
    path, ragged = tmp_path / "p.csv", []
    path.write_text("a,b\n1,2\n3\n4,5\n6,7,8\n")

    def skip(row):
        ragged.append(row)
        return "skip"

    assert sum(piece.num_rows for piece in table_pieces(path, ["a"], skip=skip)) == 2
    assert len(ragged) == 2


def test_distinct_cells_are_counted(tmp_path) -> None:
    """In files of text and in files with types; None stands for a null."""
    people().to_parquet(tmp_path / "p.parquet", index=False)
    people().to_csv(tmp_path / "p.csv", index=False)
    for name in ("p.parquet", "p.csv"):
        (piece,) = table_pieces(tmp_path / name, list(people()))
        assert dict(distinct_in(piece, "work")) == {"private": 100, "state": 50, "SECRETVALUE": 50}
    (piece,) = table_pieces(tmp_path / "p.parquet", list(people()))
    assert sum(count for value, count in distinct_in(piece, "Größe (cm)") if value is None or value != value) == 20


def test_a_file_that_cannot_be_read_is_refused_without_a_cell(tmp_path) -> None:
    """A quote that is not closed, and damage."""
    (tmp_path / "p.parquet").write_bytes(b"SECRETVALUE")
    with pytest.raises(FileError) as refusal:
        list(table_pieces(tmp_path / "p.parquet", ["a"]))
    assert "SECRETVALUE" not in str(refusal.value)
