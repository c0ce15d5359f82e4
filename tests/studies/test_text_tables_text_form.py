"""Encoding and separator of tables of text."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from confide.data.files import separator_of
from confide.errors import FileError
from confide.studies.text_tables import form_of, is_text_table, stem_of
from tests.curation.tables import people


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_encoding_and_separator_are_found(tmp_path, encoding, separator) -> None:
    """Whatever they are; the names have no mark of the encoding."""
    people().to_csv(tmp_path / "p.csv", sep=separator, encoding=encoding, index=False)
    form = form_of(tmp_path / "p.csv", whole=True)
    assert (form.encoding, form.separator, form.names) == (encoding, separator, tuple(people()))


@pytest.mark.parametrize("line", ["a,b;c", "a;b,c;d", "a\tb", "a|b,c|d", "a", '"a;b";c', "a;b,c"])
@pytest.mark.parametrize("wanted", [(), ("b",), ("a", "c"), ("b,c",)])
@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz"])
def test_the_separator_is_the_one_that_a_fit_finds(tmp_path, line, wanted, ending) -> None:
    """By the names that are wanted, then by the number of cells."""
    path = tmp_path / f"p{ending}"
    path.write_bytes(gzip.compress(line.encode()) if ending.endswith(".gz") else line.encode())
    assert form_of(path, wanted, whole=True).separator == separator_of(path, wanted)


def test_text_without_a_mark_is_known_as_utf_16(tmp_path) -> None:
    """By its zero bytes."""
    (tmp_path / "p.csv").write_bytes("age,sex\n1,F\n".encode("utf-16-be"))
    form = form_of(tmp_path / "p.csv", whole=False)
    assert (form.encoding, form.names) == ("utf-16-be", ("age", "sex"))


def test_a_byte_far_below_decides_only_if_the_whole_file_is_read(tmp_path) -> None:
    """The first line alone is decoded for a new study."""
    (tmp_path / "p.csv").write_bytes(b"age,name\n" + b"1,x\n" * 400_000 + b"2,\xe9\n")
    assert form_of(tmp_path / "p.csv", whole=False).encoding == "utf-8"
    assert form_of(tmp_path / "p.csv", whole=True).encoding == "latin-1"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Preis \u20ac;Größe\n1;2\n".encode("cp1252"), "cp1252"),
        ("Preis;Größe\n1;2\n".encode("cp1252"), "latin-1"),
        ("Preis;Größe\n1;2\u20ac\n".encode("cp1252"), "cp1252"),
        (b"Preis;Gr\xf6\xdfe\n1\x80;2\x81\n", "latin-1"),
        ("Preis \u20ac;Größe\n1;2\n".encode(), "utf-8"),
    ],
)
def test_signs_of_windows_are_read_as_such(tmp_path, text, encoding) -> None:
    """The sign of the euro has a byte that is no sign in Latin-1; bytes that are none in either stay readable."""
    (tmp_path / "p.csv").write_bytes(text)
    form = form_of(tmp_path / "p.csv", whole=True)
    assert form.encoding == encoding
    assert form.names == tuple(text.decode(encoding).partition("\n")[0].split(";"))


def test_compressed_files_are_read(tmp_path) -> None:
    """And a file that only pretends to be one is refused."""
    (tmp_path / "p.tsv.gz").write_bytes(gzip.compress(b"age\tsex\n1\tF\n"))
    assert form_of(tmp_path / "p.tsv.gz", whole=True).names == ("age", "sex")
    (tmp_path / "q.csv.gz").write_bytes(b"age,SECRETVALUE\n")
    with pytest.raises(FileError, match="not a file that gzip made"):
        form_of(tmp_path / "q.csv.gz", whole=True)


def test_an_empty_file_has_no_names(tmp_path) -> None:
    """It is refused."""
    (tmp_path / "p.csv").write_bytes(b"\n\n")
    with pytest.raises(FileError, match="is empty"):
        form_of(tmp_path / "p.csv", whole=False)


def test_one_column_has_the_separator_of_its_ending(tmp_path) -> None:
    """Nothing else can be known of it."""
    for ending, separator in ((".csv", ","), (".tsv", "\t")):
        path = tmp_path / f"p{ending}"
        path.write_text("age\n1\n")
        assert form_of(path, whole=False).separator == separator


def test_names_of_files() -> None:
    """Endings that are known, and the name without them."""
    assert is_text_table(Path("A.CSV.GZ"))
    assert not is_text_table(Path("a.xlsx"))
    assert [stem_of(name) for name in ("x/people.csv.gz", "p.parquet", "plain")] == ["people", "p", "plain"]
