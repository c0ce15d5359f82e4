"""The layout of encoded columns: names, groups, interactions and the bound of a row."""

from __future__ import annotations

import pytest

from confide.errors import SchemaError
from confide.features.columns import NumberColumn
from confide.features.encoder import Encoder
from confide.features.schema import Schema


@pytest.mark.parametrize("n_groups", [1, 2, 14, 1000])
def test_all_groups_have_scale_one(n_groups):
    """So the L2 norm of a row is at most the root of the number of groups."""
    encoder = Encoder(Schema([NumberColumn(f"x{i}", 0, 1) for i in range(n_groups)]))
    assert encoder.row_bound.scales == (1.0,) * n_groups
    assert encoder.row_bound.l2_norm == pytest.approx(n_groups**0.5, rel=1e-14)


def test_an_encoder_describes_its_columns():
    """Names, groups and row bound describe the same columns."""
    encoder = Encoder(
        Schema(
            columns={
                "age": {"low": 17, "high": 90},
                "sex": {"categories": ["Female", "Male"]},
                "workclass": {"categories": ["Private", "State-gov"], "missing": True},
            }
        )
    )
    assert encoder.feature_names == (
        "age",
        "sex=Male",
        "workclass=Private",
        "workclass=State-gov",
        "workclass=(missing)",
    )
    assert encoder.n_features == 5
    assert [(group.column, group.start, group.size) for group in encoder.groups] == [
        ("age", 0, 1),
        ("sex", 1, 1),
        ("workclass", 2, 3),
    ]
    assert encoder.row_bound.sizes == (1, 1, 3)
    assert encoder.row_bound.n_features == encoder.n_features


def test_two_features_of_one_name_are_refused():
    """A coefficient is known by its name, so names must be different."""
    with pytest.raises(SchemaError, match=r'"x=\(other\)"'):
        Encoder(Schema(columns={"x": {"categories": ["a", "(other)"], "other": True}}))
    with pytest.raises(SchemaError, match='"x=b"'):
        Encoder(Schema(columns={"x": {"categories": ["a", "b"]}, "x=b": {"low": 0, "high": 1}}))


def test_an_interaction_of_categories_that_always_have_a_level_is_linked():
    """Exactly one product is 1 in every row. It is not linked if a member may have no level."""
    columns = {name: {"categories": ["a", "b", "c"], "other": name != "open"} for name in ("one", "two", "open")}
    encoder = Encoder(Schema(columns=columns, interact=[["one", "two"], ["one", "open"]]))
    assert encoder.row_bound.linked == (True, True, False, True, False)
