"""Tables of evaluations: their shapes, and scales of differences."""

from __future__ import annotations

import pytest

from confide.evaluations.tables import ClassPairTables, ClassTables, NumberPairTables, NumberTables, sizes_of


def test_tables_that_nobody_asked_for_are_left_out():
    """Each table costs as much as the others, so losses and calibration can be left out."""
    assert sizes_of(ClassTables(2, 3, 10, 2.0)) == (18, 6, 20)
    assert sizes_of(ClassTables(2, 3, 0, None)) == (18,)
    assert sizes_of(NumberTables(1, 10, 0.0, 1.0, 0.5)) == (25, 30)
    assert sizes_of(NumberTables(3, 0, 0.0, 1.0, 0.5)) == (75,)
    assert sizes_of(ClassPairTables(1, 2, None)) == (8,)
    assert sizes_of(ClassPairTables(2, 2, 1.0, 0.5)) == (16, 6)
    assert sizes_of(NumberPairTables(2, 0.0, 1.0, 0.5, 0.1)) == (30, 6)


@pytest.mark.parametrize(("apart", "largest"), [(0.1, 0.1), (1.0, 0.25)])
def test_the_largest_difference_of_squares_is_that_of_errors_up_to_the_clip(apart, largest):
    """|a^2 - b^2| <= |a - b| (a + b), with errors of at most the clip."""
    assert NumberPairTables(1, 0.0, 1.0, 0.5, apart).largest_of_squares == pytest.approx(largest)
