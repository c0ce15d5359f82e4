"""The TOML form of a schema."""

from __future__ import annotations

from pathlib import Path

import pytest

from confide.errors import FileError
from confide.features.schema import Schema
from confide.features.toml_form import read_toml, refuse_address, toml_text


def test_a_missing_file_is_named(tmp_path):
    """The message is one line with the path."""
    with pytest.raises(FileError, match=r"nowhere\.toml: there is no such file"):
        Schema.from_toml(tmp_path / "nowhere.toml")
    with pytest.raises(FileError, match="cannot be read"):
        Schema.from_toml(tmp_path)


def test_a_table_given_as_a_schema_is_refused_without_quoting_it(tmp_path):
    """The message has the path and the place of the error, but no cell."""
    path = tmp_path / "people.csv"
    for content in ("age,sex\n987654321,SECRETVALUE\n", '["SECRETVALUE"]\n["SECRETVALUE"]\n', "x = 'SECRETVALUE"):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(FileError, match=r"people\.csv: is not valid TOML \(") as refusal:
            Schema.from_toml(path)
        assert "SECRETVALUE" not in str(refusal.value)
        assert "\n" not in str(refusal.value)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(FileError, match="UTF-8"):
        Schema.from_toml(path)


def test_a_file_may_begin_with_the_mark_of_its_encoding(tmp_path):
    """As editors of Windows write it."""
    path = tmp_path / "s.toml"
    path.write_text("[columns]\nage = { low = 0, high = 110 }\n", encoding="utf-8-sig")
    assert Schema.from_toml(path).column_names == ("age",)


@pytest.mark.parametrize(
    "address", ["s3://bucket/people.csv", "https:/example.org/s.toml", "gs://b/x", Path("abfss://c@a/x.parquet")]
)
def test_an_address_is_named_as_one(address):
    """Wherever the path of a file is expected; one slash may have been lost."""
    for read in (read_toml, refuse_address):
        with pytest.raises(FileError, match=r"is an address \((s3|https|gs|abfss)\), and confide reads and writes files"):
            read(address)
    with pytest.raises(FileError, match="without file://"):
        refuse_address("file:///data/people.csv")
    for path in ("C:/people.csv", "C:\\people.csv", "folder:2/x.csv", "/s3/people.csv", "people.csv"):
        refuse_address(path)


def test_text_is_written_with_the_columns_last_and_read_back(tmp_path):
    """It holds for values of every type, and for names and texts that TOML must quote or escape."""
    described = {
        "columns": {"plain-name_1": {"low": 0, "high": 0.5}, "with space": {"categories": ["a", 1, True]}, "": {}},
        "person": 'quotes " and \\ and \n and \x7f and é',
        "interact": [["a", "b"], []],
    }
    text = toml_text(described)
    assert text.index("interact") < text.index("[columns]") < text.index("plain-name_1")
    path = tmp_path / "schema.toml"
    path.write_bytes(text.encode())
    assert read_toml(path) == described
    assert toml_text({"columns": {}}) == "[columns]\n"
