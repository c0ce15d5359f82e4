"""Rows at the edge of what an estimator allows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import confide
from confide.audit.worst_pairs import domain_of, turned
from confide.erm.group_bounds import GroupBound

SCHEMA = confide.Schema(
    columns={"age": {"low": 10, "high": 90}, "sex": {"categories": ["f", "m"]}},
    target={"column": "sick", "negative": "no", "positive": "yes"},
    person="who",
)


def test_rows_of_a_bound_lie_at_its_edge_and_are_not_clipped():
    """Balls and groups."""
    for bound in (2.5, GroupBound((1, 2), (1.0, 0.5)), GroupBound((2,), (1.0,), (True,))):
        domain = domain_of(confide.LogisticRegression(1.0, row_norm=bound))
        norm = bound if isinstance(bound, float) else bound.l2_norm
        for row in domain.corners[:2]:
            assert np.linalg.norm(row) == pytest.approx(norm)
            if not isinstance(bound, float):
                np.testing.assert_allclose(bound.clip(row[None])[0], row, rtol=2.0**-29)


def test_rows_of_a_schema_are_its_least_and_greatest_cells():
    """With a column of persons, in which the last rows are one person's."""
    domain = domain_of(confide.LogisticRegression(1.0, schema=SCHEMA))
    assert domain.corners[:2] == ({"age": 90.0, "sex": "m"}, {"age": 10.0, "sex": "f"})
    frame, targets = domain.data([(domain.rest, "no")] * 2 + [(domain.corners[0], "yes")] * 2, same_person=2)
    assert frame["who"].tolist() == [0, 1, 2, 2]
    assert frame["sick"].tolist() == targets.tolist() == ["no", "no", "yes", "yes"]


def test_every_row_has_the_largest_weight_that_the_schema_allows():
    """For which the noise is made."""
    weighted = replace(SCHEMA, weight={"column": "w", "high": 4})
    domain = domain_of(confide.LogisticRegression(1.0, schema=weighted))
    frame, _ = domain.data([(domain.rest, "no"), (domain.corners[0], "yes")])
    assert frame["w"].tolist() == [4.0, 4.0]


def test_targets_are_those_of_the_domain():
    """Labels, bounds of numbers, and counts, which are not negative."""
    assert domain_of(confide.LogisticRegression(1.0, classes=["a", "b", "c"])).targets == ("c", "b", "a")
    assert domain_of(confide.Ridge(1.0, target_bound=3.0)).targets == (3.0, -3.0)
    assert domain_of(confide.PoissonRegressor(1.0, target_bound=3.0)).targets == (3.0, 0.0)
    assert domain_of(confide.LogisticRegression(1.0, schema=SCHEMA)).targets == ("yes", "no")


def test_bounds_of_an_additive_model_give_their_corners():
    """One pair for each column."""
    domain = domain_of(confide.AdditiveClassifier(1.0, bounds=[(0, 1), (-2, 2)]))
    assert [row.tolist() for row in domain.corners] == [[1.0, 2.0], [0.0, -2.0]]


def test_turned_rows_mirror_each_other():
    """Of the same length, against the second axis."""
    one, other = turned(2.0, 60.0)
    assert np.linalg.norm(one) == pytest.approx(2.0)
    assert one[0] == -other[0] > 0.0
    assert one[1] == other[1] < 0.0
