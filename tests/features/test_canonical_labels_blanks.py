"""Blanks in a schema that was begun."""

from __future__ import annotations

import pytest

import confide
from confide.features.canonical_labels import BLANK, refuse_blanks

FILLED = {"target": {"column": "y", "negative": "no", "positive": "yes"}, "columns": {"age": {"low": 0, "high": 1}}}


def test_what_is_filled_in_passes() -> None:
    """Nothing is refused, also where a level is called like a blank in other letters."""
    refuse_blanks(FILLED | {"columns": {"a": {"categories": ["fill in", "b"]}}})


@pytest.mark.parametrize(
    ("described", "words"),
    [
        ({"columns": {"age": BLANK}}, 'column "age": fill in its bounds or its categories, or delete its line'),
        ({"columns": {"age": {"low": BLANK, "high": BLANK}}}, 'column "age": fill in low and high'),
        ({"columns": {"age": {"low": 0, "high": BLANK}}}, 'column "age": fill in high'),
        ({"columns": {"sex": {"categories": ["F", BLANK]}}}, 'column "sex": fill in categories'),
        (
            {"target": {"column": BLANK, "negative": BLANK, "positive": BLANK}},
            "target: fill in column, negative and positive",
        ),
        ({"person": BLANK}, "person: fill in its value"),
    ],
)
def test_each_blank_is_named(described, words) -> None:
    """By its column and its key."""
    with pytest.raises(confide.SchemaError, match="not filled in yet") as refusal:
        refuse_blanks(FILLED | described)
    assert words in str(refusal.value)


def test_a_file_with_blanks_is_refused_by_its_name(tmp_path) -> None:
    """And the message lists the first columns and the number of the others."""
    path = tmp_path / "people.toml"
    path.write_text("[columns]\n" + "".join(f'c{number} = "{BLANK}"\n' for number in range(9)))
    with pytest.raises(confide.SchemaError) as refusal:
        confide.Schema.from_toml(path)
    assert str(refusal.value).startswith(f"{path}: not filled in yet")
    assert 'column "c5"' in str(refusal.value)
    assert str(refusal.value).endswith("; and 3 more.")
