"""How much each row counts: weights that come with the rows, times public weights of classes."""

from __future__ import annotations

import numpy as np
import pytest

from confide import ConfideError, InputError, LogisticRegression
from confide.intake.arrays import row_weights_of, weight_array, weights_of
from tests.intake.refusals import GOOD_X, GOOD_Y, SECRET, SECRET_TEXT, refusal


@pytest.mark.parametrize("weight", [[1.0], "heavy", np.zeros(50), np.full(50, -1.0), np.full(50, np.nan)], ids=str)
def test_bad_weights_of_a_score_are_refused(weight):
    """One line, as elsewhere."""
    model = LogisticRegression(1.0).fit(GOOD_X, GOOD_Y)
    with pytest.raises(ConfideError, match="sample_weight"):
        model.score(GOOD_X, GOOD_Y, sample_weight=weight)


HALF = np.full(50, 0.5)


BAD_WEIGHTS = {
    "beyond the cap": np.where(np.arange(50) == 3, SECRET, 0.5),
    "barely beyond the cap": np.where(np.arange(50) == 3, np.nextafter(1.0, 2.0), 0.5),
    "negative": np.where(np.arange(50) == 3, -0.25, 0.5),
    "nan": np.where(np.arange(50) == 3, np.nan, 0.5),
    "infinite": np.where(np.arange(50) == 3, np.inf, 0.5),
    "too few": HALF[:-1],
    "a column": HALF[:, None],
    "text": [SECRET_TEXT] * 50,
    "all zero": np.zeros(50),
    "one number": 0.5,
    "masked": np.ma.masked_array(HALF, mask=np.arange(50) == 3),
    "complex": HALF + 0.25j,
    "ragged": [[0.5], [0.5, 0.5]],
}


@pytest.mark.parametrize("name", BAD_WEIGHTS)
def test_bad_weights_of_a_fit_are_refused(name):
    """Outside [0, max_sample_weight], or not one number for each row; the cap is never taken from the weights."""
    message = refusal(LogisticRegression(1.0), GOOD_X, GOOD_Y, sample_weight=BAD_WEIGHTS[name])
    assert "max_sample_weight" in message
    assert "50" not in message


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"class_weight": "balanced"}, "frequencies"),
        ({"class_weight": "heavy"}, "dict"),
        ({"class_weight": {0: 1.0}}, "the classes"),
        ({"class_weight": {0: 1.0, 1: 2.0, 2: 3.0}}, "the classes"),
        ({"class_weight": {0: 1.0, 1: 0.0}}, "dict"),
        ({"class_weight": {0: 1.0, 1: -1.0}}, "dict"),
        ({"class_weight": {0: 1.0, 1: float("nan")}}, "dict"),
        ({"class_weight": {0: 1.0, 1: float("inf")}}, "dict"),
        ({"class_weight": {0: True, 1: 1.0}}, "dict"),
        ({"class_weight": {}}, "dict"),
        ({"class_weight": [1.0, 2.0]}, "dict"),
        ({"max_sample_weight": 0.0}, "max_sample_weight"),
        ({"max_sample_weight": -1.0}, "max_sample_weight"),
        ({"max_sample_weight": float("inf")}, "max_sample_weight"),
        ({"max_sample_weight": float("nan")}, "max_sample_weight"),
        ({"max_sample_weight": True}, "max_sample_weight"),
        ({"max_sample_weight": 0.5}, "sample_weight"),
    ],
    ids=str,
)
def test_bad_caps_and_class_weights_are_refused(parameters, expected):
    """Class weights are public numbers, one for each class; a cap below 1 needs weights."""
    assert expected in refusal(LogisticRegression(1.0, **parameters), GOOD_X, GOOD_Y)


# The module's own functions

SIGNS = np.array([-1, 1, 1, -1])


def test_rows_that_count_alike_have_no_weights():
    """Without weights of rows or classes there is nothing to multiply."""
    assert row_weights_of(None, 1.0, SIGNS, (0, 1), None) is None
    assert row_weights_of(None, 5.0, np.array([0.3, 2.0]), (), None) is None


def test_a_row_counts_its_own_weight_times_that_of_its_class():
    """Of two classes, which are signs, and of three, which are positions; pairs come in any order."""
    own = [0.5, 1.0, 0.0, 2.0]
    assert row_weights_of(own, 2.0, SIGNS, (0, 1), None).tolist() == own
    assert row_weights_of(None, 1.0, SIGNS, (0, 1), ((1, 3.0), (0, 1.0))).tolist() == [1.0, 3.0, 3.0, 1.0]
    assert row_weights_of(own, 2.0, SIGNS, (0, 1), ((1, 3.0), (0, 1.0))).tolist() == [0.5, 3.0, 0.0, 2.0]
    three = row_weights_of(None, 1.0, np.array([2, 0, 1]), ("a", "b", "c"), (("a", 1.0), ("b", 2.0), ("c", 4.0)))
    assert three.tolist() == [4.0, 1.0, 2.0]


def test_the_cap_is_reached_and_not_passed():
    """A weight of the cap counts in full; the next double is refused, without a word on which."""
    assert row_weights_of([0.3, 0.1], 0.3, SIGNS[:2], (0, 1), None).tolist() == [0.3, 0.1]
    with pytest.raises(InputError, match="max_sample_weight") as refused:
        row_weights_of([np.nextafter(0.3, 1.0), 0.1], 0.3, SIGNS[:2], (0, 1), None)
    assert "0.3" not in str(refused.value)


def test_a_cap_below_one_needs_weights():
    """Without them every row counts 1, which is above it."""
    with pytest.raises(InputError, match="every row counts 1"):
        row_weights_of(None, 0.5, SIGNS, (0, 1), None)
    assert row_weights_of([0.5] * 4, 0.5, SIGNS, (0, 1), None).tolist() == [0.5] * 4


@pytest.mark.parametrize("pairs", [((0, 1.0),), ((0, 1.0), (1, 1.0), (2, 1.0)), (("0", 1.0), ("1", 1.0))], ids=str)
def test_class_weights_name_all_classes_and_no_other(pairs):
    """A missing one, one too many, and text for numbers."""
    with pytest.raises(InputError, match="class_weight must name all classes and no other"):
        row_weights_of(None, 1.0, SIGNS, (0, 1), pairs)


@pytest.mark.parametrize(
    "given",
    ["heavy", [[1.0], [1.0, 2.0]], [1j], np.ma.masked_array([1.0], mask=[True]), [object()], [10**400]],
    ids=lambda given: type(given[0]).__name__,
)
def test_what_is_no_number_becomes_an_empty_array(given):
    """It has the shape of no rows, so whoever checks shapes refuses it without looking at it."""
    assert weight_array(given).size == 0
    with pytest.raises(InputError, match="sample_weight"):
        weights_of(given, 1)


def test_weights_of_a_score_may_be_of_any_size():
    """No cap is declared for them; they are finite, not negative and not all zero."""
    assert weights_of(None, 3) is None
    assert weights_of([0, 1e300, 2], 3).tolist() == [0.0, 1e300, 2.0]
    for wrong in ([0.0, 0.0], [1.0, -1e-300], [1.0, np.inf], [1.0]):
        with pytest.raises(InputError, match="none negative and not all 0"):
            weights_of(wrong, 2)


def test_weights_are_read_into_memory_of_their_own():
    """What a caller changes afterwards changes nothing here."""
    given = np.ones(3)
    read = weight_array(given)
    given[0] = 7.0
    assert read.tolist() == [1.0, 1.0, 1.0]
