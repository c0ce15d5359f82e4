"""The text of a schema that begins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from confide import Schema, SchemaError
from confide.studies.drafts import drafted
from confide.studies.templates import schema_text
from tests.starting.studies import ODD, SCHEMA, TABLE


def test_what_is_filled_in_reads_as_the_schema(tmp_path) -> None:
    """With any characters in names and levels, and columns left out as comments."""
    (tmp_path / "p.toml").write_text(schema_text(SCHEMA), encoding="utf-8")
    schema = Schema.from_toml(tmp_path / "p.toml")
    assert schema.column_names == ("age", ODD)
    assert schema.to_dict()["columns"][ODD] == {"categories": ["a", 'b"\\'], "other": True}
    assert (schema.person, schema.target.column) == ("who", "ill")
    assert "FILL IN" not in schema_text(SCHEMA)
    assert "# name?x = 1: left out" in schema_text(SCHEMA)


def test_blanks_are_explained_and_refused(tmp_path) -> None:
    """Until each is filled in."""
    text = schema_text(drafted(TABLE, {}, None, None))
    assert 'Replace each "FILL IN"' in text
    assert "Take the line of this column out of [columns] below." in text
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(SchemaError, match='column "age": fill in low and high'):
        Schema.from_toml(tmp_path / "p.toml")


def test_a_schema_from_rows_says_so() -> None:
    """In its first line."""
    assert schema_text(replace(SCHEMA, from_rows="p.csv")).startswith(
        "# Types, bounds and levels were suggested from the rows of p.csv"
    )
    assert "never from the rows" in schema_text(SCHEMA)
