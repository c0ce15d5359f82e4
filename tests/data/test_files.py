"""Tables in files: found, checked and read by declared types, and refused without quoting them."""

from __future__ import annotations

import os
import pickle

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet
import pytest

from confide.data.files import FilePart, Stamp, attempt, check_names, header_of, suffix_of
from confide.data.sources import files_of
from confide.errors import FileError, InputError, ParameterError

SECRET = "SECRETVALUE"  # noqa: S105 - a cell that no message may hold
KINDS = {"age": "number", "name": "text"}


def written(path, text):
    """A file part for a file with this text."""
    path.write_text(text, encoding="utf-8")
    return FilePart(Stamp.of(path), KINDS)


def rows_of(part, names=("age", "name")):
    """All rows of a part, as lists by the name of the column."""
    table = pa.Table.from_batches(list(part.tables(names)))
    return table.to_pydict()


def as_parquet(table, path):
    parquet.write_table(table, path, row_group_size=2)


def as_feather(table, path):
    feather.write_feather(table, str(path), chunksize=2)


FILES = {".parquet": as_parquet, ".feather": as_feather, ".arrow": as_feather}
TABLE = pa.table({"note": ["x"] * 5, "name": list("abcde"), "age": [1.0, 2.0, None, 4.0, 5.0]})


def test_a_csv_file_is_read_by_the_declared_types(tmp_path):
    """Numbers are doubles, other columns are text as it stands, empty numbers are missing; further columns are ignored."""
    part = written(tmp_path / "t.csv", "note,age,name\nx,1,01\nx,,true\n")
    (batch,) = part.tables(["name", "age"])
    assert batch.schema.names == ["name", "age"]
    assert batch.schema.field("age").type == pa.float64()
    assert rows_of(part) == {"age": [1.0, None], "name": ["01", "true"]}
    assert part.n_groups() == 1


@pytest.mark.parametrize("suffix", FILES)
def test_parquet_and_arrow_files_bring_their_types(tmp_path, suffix):
    """Columns are in the order asked for and rows in the order of the file. A part may be some of the row groups."""
    path = tmp_path / f"t{suffix}"
    FILES[suffix](TABLE, path)
    part = FilePart(Stamp.of(path), KINDS)
    part.check()
    assert part.n_groups() == 3
    assert rows_of(part) == {"age": [1.0, 2.0, None, 4.0, 5.0], "name": list("abcde")}
    middle = FilePart(part.stamp, KINDS, (1, 2))
    assert rows_of(middle)["name"] == ["c", "d"]


def test_parquet_comes_in_pieces_of_a_size(tmp_path):
    """The size does not depend on the row groups."""
    path = tmp_path / "t.parquet"
    parquet.write_table(TABLE, path)
    part = FilePart(Stamp.of(path), KINDS)
    assert [batch.num_rows for batch in part.tables(["age"], 2)] == [2, 2, 1]


def test_a_part_travels(tmp_path):
    """It holds no row, so it can be pickled and sent to workers."""
    part = written(tmp_path / "t.csv", "age,name\n1,a\n")
    assert rows_of(pickle.loads(pickle.dumps(part))) == {"age": [1.0], "name": ["a"]}


def test_a_change_is_seen_by_size_by_time_and_by_another_file_of_the_name(tmp_path):
    """The message says that the file changed, and holds no cell."""
    path = tmp_path / "t.csv"
    path.write_text("age,name\n1,a\n")
    stamp = Stamp.of(path)
    stamp.check()
    for change in (
        lambda: path.write_text(f"age,name\n1,{SECRET}\n"),
        lambda: os.utime(path, ns=(1, 1)),
        lambda: (path.rename(tmp_path / "old.csv"), path.write_text("age,name\n1,a\n")),
        lambda: path.unlink(),
    ):
        stamp = Stamp.of(path)
        change()
        with pytest.raises(FileError, match=r"t\.csv changed while it was read, so nothing is released") as refusal:
            stamp.check()
        assert SECRET not in str(refusal.value)
    with pytest.raises(FileError, match="cannot read"):
        Stamp.of(path)


@pytest.mark.parametrize("suffix", FILES)
def test_damaged_files_are_refused_in_one_line(tmp_path, suffix):
    """The check, the number of groups and reading refuse them, without quoting them."""
    path = tmp_path / f"t{suffix}"
    path.write_text(SECRET * 20)
    part = FilePart(Stamp.of(path), KINDS)
    for read in (part.check, part.n_groups, lambda: list(part.tables(["age"]))):
        with pytest.raises(FileError, match=r"is damaged, or is not a file of the kind that its name says") as refusal:
            read()
        assert SECRET not in str(refusal.value)
        assert refusal.value.__context__ is None


BAD_CSV = {
    "a word for a number": (f"age,name\n1,a\n{SECRET},b\n", 'column "age" holds cells that are not numbers'),
    "a cell too many": (f"age,name\n1,a,{SECRET}\n", "more or fewer cells"),
    "a cell too few": (f"age,name\n1,{SECRET}\n2\n", "more or fewer cells"),
}


@pytest.mark.parametrize(("text", "message"), BAD_CSV.values(), ids=BAD_CSV)
def test_bad_cells_of_a_csv_file_are_refused_without_quoting_them(tmp_path, text, message):
    """pyarrow quotes cells; its message is dropped and is not the context of ours."""
    part = written(tmp_path / "t.csv", text)
    part.check()
    with pytest.raises(InputError, match=message) as refusal:
        rows_of(part)
    assert SECRET not in str(refusal.value)
    assert refusal.value.__context__ is None


HEADERS = {
    "plain": ("age,name\n1,a\n", ["age", "name"]),
    "with a mark of byte order": ("\ufeffage,name\n", ["age", "name"]),
    "quoted": ('"the age","a ""name"""\n1,a\n', ["the age", 'a "name"']),
    "after blank lines": ("\n\nage,name\n", ["age", "name"]),
    "of Windows": ("age,name\r\n1,a\r\n", ["age", "name"]),
}


@pytest.mark.parametrize(("text", "names"), HEADERS.values(), ids=HEADERS)
def test_the_first_line_holds_the_names(tmp_path, text, names):
    """Names follow the rules of CSV for quotes, and a byte order mark and blank lines are skipped."""
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    assert header_of(path) == names


@pytest.mark.parametrize("text", ['age,name\n1,"a\n2,b\n', 'age,name\n1,"a"b\n2,"c"d\n', 'age,name\n1,"a" \n'])
def test_open_quotes_are_refused(tmp_path, text):
    """pyarrow would read several rows as one there, and count fewer people."""
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=r'a quote \("\) is not closed'):
        header_of(path)


def test_an_empty_file_has_no_names(tmp_path):
    """The message says what should be there."""
    path = tmp_path / "t.csv"
    path.write_text("\n\n")
    with pytest.raises(FileError, match="first line must hold the names"):
        header_of(path)


def test_missing_and_repeated_columns_are_named_and_no_others(tmp_path):
    """Only wanted columns are named. If a name in the header of a CSV file looks like a number, it may be a row."""
    csv, other = tmp_path / "t.csv", tmp_path / "t.parquet"
    check_names(csv, ["name", SECRET, "age"], KINDS)
    for path, present, words in (
        (csv, [SECRET], 'lacks the columns "age", "name"; add them'),
        (csv, ["37", SECRET], "Does the file lack a header line"),
        (other, ["37", SECRET], 'lacks the columns "age", "name"; add them'),
        (other, ["age", "age", "name", SECRET, SECRET], 'more than one column of the name "age";'),
    ):
        with pytest.raises(InputError, match=words) as refusal:
            check_names(path, present, KINDS)
        assert SECRET not in str(refusal.value)


def test_files_are_found_by_path_by_pattern_and_by_list(tmp_path, monkeypatch):
    """A pattern gives files in the order of their names. An existing file whose name looks like a pattern is that file."""
    for name in ("b.csv", "a.csv", "[x].csv"):
        (tmp_path / name).write_text("age\n1\n")
    assert files_of(tmp_path / "b.csv") == (tmp_path / "b.csv",)
    assert files_of(str(tmp_path / "?.csv")) == (tmp_path / "a.csv", tmp_path / "b.csv")
    assert files_of([tmp_path / "b.csv", str(tmp_path / "a.csv")]) == (tmp_path / "b.csv", tmp_path / "a.csv")
    assert files_of(tmp_path / "[x].csv") == (tmp_path / "[x].csv",)
    monkeypatch.chdir(tmp_path)
    assert [path.name for path in files_of("?.csv")] == ["a.csv", "b.csv"]


REFUSED_PATHS = {
    "a pattern without files": ("no*.csv", FileError, "no file matches"),
    "no path": ([], ParameterError, "no file"),
    "a number": (3, ParameterError, "needs the path"),
    "numbers": ([3], ParameterError, "needs the path"),
    "an Arrow stream without rows": (pa.schema({"a": "int64"}).empty_table().to_reader(), InputError, "has no rows"),
    "a table": (pa.table({"a": [1]}), ParameterError, "Give fit a frame as it is"),
    "an address that nothing opens": ("nowhere://bucket/*.parquet", FileError, r"cannot be opened \(ValueError\)"),
    "addresses": (["nowhere://example.org/a.csv"], FileError, "cannot be opened"),
    "one file twice": (["t.csv", "./t.csv"], ParameterError, "same file twice"),
    "two kinds": (["t.csv", "t.parquet"], ParameterError, "several kinds"),
    "another kind": ("t.pkl", FileError, "must end in"),
}


@pytest.mark.parametrize(("paths", "kind", "message"), REFUSED_PATHS.values(), ids=REFUSED_PATHS)
def test_what_names_no_tables_is_refused(tmp_path, monkeypatch, paths, kind, message):
    """It is refused before a file is opened."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=message):
        files_of(paths)


def test_the_kind_of_a_table_is_the_end_of_its_name(tmp_path):
    """Upper and lower case do not matter."""
    assert suffix_of(tmp_path / "T.CSV") == ".csv"
    with pytest.raises(FileError, match=r'must end in "\.csv", "\.tsv", "\.csv\.gz", "\.tsv\.gz", "\.parquet"'):
        suffix_of(tmp_path / "t.xlsx")


def test_an_error_of_pyarrow_becomes_a_refusal_without_its_text():
    """Other errors are defects, and are not caught."""

    def fail(error):
        raise error

    with pytest.raises(InputError, match="refused") as refusal:
        attempt(lambda: fail(pa.ArrowInvalid(SECRET)), lambda complaint: InputError("refused"))
    assert refusal.value.__context__ is None
    with pytest.raises(KeyError):
        attempt(lambda: fail(KeyError("x")), lambda complaint: InputError("refused"))
    assert attempt(lambda: 3, InputError) == 3
