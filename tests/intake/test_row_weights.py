"""How much each row counts: weights that come with the rows, times public weights of classes."""

from __future__ import annotations

import numpy as np
import pytest

from confide import ConfideError, LogisticRegression
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
        ({"class_weight": {0: 1.0}}, "all classes"),
        ({"class_weight": {0: 1.0, 1: 2.0, 2: 3.0}}, "all classes"),
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
