"""What a schema says of bounds that were released from rows."""

from __future__ import annotations

import pytest

from confide.errors import SchemaError
from confide.features.checks import BoundsRelease
from confide.features.columns import NumberColumn
from confide.features.schema import Schema

FACTS = {"quantiles": [0.01, 0.99], "outer": [0.0, 10.0], "columns": ["a", "b"], "neighbours": "replace-one", "epsilon": 0.5}


def schema(**changes):
    described = {key: value for key, value in (FACTS | changes).items() if value is not None}
    return Schema(columns={"a": {"low": 1, "high": 2, "released": described}})


def test_it_survives_files_and_copies(tmp_path):
    """The key of a TOML file, read by the reader of schemas and written again."""
    path = tmp_path / "a.toml"
    path.write_text(schema(ledger="abc", max_rows_per_person=3, attempts=2).to_toml())
    again = Schema.from_toml(path)
    assert again.columns[0].released == BoundsRelease(
        ("a", "b"),
        "replace-one",
        0.5,
        quantiles=(0.01, 0.99),
        outer=(0.0, 10.0),
        max_rows_per_person=3,
        attempts=2,
        ledger="abc",
    )
    assert again.to_toml() == path.read_text()
    assert "released bounds" in str(again)


def test_it_does_not_change_how_a_column_is_read():
    """A column with released bounds equals one with the same bounds."""
    (column,) = schema().columns
    assert column == NumberColumn("a", 1, 2)
    assert hash(column) == hash(NumberColumn("a", 1, 2))


def test_the_sentence_names_columns_price_and_ledger():
    release = schema(ledger="abc", max_rows_per_person=3).columns[0].released
    assert release.price == "epsilon = 0.5 (replace-one, for persons with at most 3 rows)"
    alone, same, other = (release.sentences(ledger) for ledger in (None, "abc", "abd"))
    assert alone[0] == same[0] == other[0]
    assert '"a" and "b"' in alone[0]
    assert release.price in alone[0]
    assert "the same ledger" in same[1]
    assert "its cost adds to" in other[1]
    assert other == alone
    (finished, _), (first, _) = (schema(attempts=count).columns[0].released.sentences(None) for count in (3, 1))
    assert "by attempt 3 under its charge. What ended each earlier one depended neither on rows" in finished
    assert "attempt" not in first
    (void,) = schema(void="A seed.").columns[0].released.sentences(None)
    assert "without a guarantee" in void
    assert schema(epsilon=None, rho=0.1).columns[0].released.price == "rho = 0.1 (replace-one)"
    assert schema(delta=1e-6).columns[0].released.price == "epsilon = 0.5 and delta = 1e-06 (replace-one)"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"quantiles": [0.1]}, "quantiles must be a list of two numbers"),
        ({"outer": ["a", 1]}, "outer must be a finite number"),
        ({"columns": "ab"}, "columns must be a list of names"),
        ({"epsilon": -1}, "epsilon must be a positive number"),
        ({"epsilon": None}, "give its price"),
        ({"rho": 0.1}, "give its price"),
        ({"neighbours": 3}, "neighbours must be text"),
        ({"max_rows_per_person": True}, "must be a whole number"),
        ({"attempts": 0}, "attempts must be a whole number of at least 1"),
        ({"attempts": 2.0}, "attempts must be a whole number of at least 1"),
        ({"epsilom": 1}, 'did you mean "epsilon"'),
        ({"neighbours": None}, 'the key "neighbours" is missing'),
    ],
)
def test_what_is_wrong_is_named_with_its_column(changes, message):
    with pytest.raises(SchemaError, match=message) as refused:
        schema(**changes)
    assert str(refused.value).startswith('column "a"')


def test_only_a_table_is_a_release():
    with pytest.raises(SchemaError, match="released must be a table"):
        Schema(columns={"a": {"low": 1, "high": 2, "released": True}})
