"""Every form in which users may give a penalty, and what is refused before anything is charged."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from confide import ParameterError, Schema, Smooth
from confide.features.encoder import Encoder
from confide.features.forms import smoothing_form
from confide.intake.penalties import checked_penalty, form_of, written_penalty
from tests.privacy.own_penalties import LOG_COSH

SCHEMA = Schema(
    columns={
        "age": {"low": 0, "high": 100, "knots": 3, "missing": True},
        "level": {"categories": ["low", "middle", "high", "top"], "other": True},
        "sex": {"categories": ["f", "m"]},
        "pay": {"low": 0, "high": 10},
    },
    interact=[["sex", "pay"]],
)
ENCODER = Encoder(SCHEMA)
NAMES = ("a", "b", "c")


def matrix_of(penalty, encoder=ENCODER, names=NAMES):
    """The matrix of a form, from the rows in its norm: P is the inverse of M' M."""
    form = form_of(checked_penalty(penalty), encoder, lambda: names)
    mapped = form.rows(np.eye(form.n_features))
    return np.linalg.inv(mapped @ mapped.T)


def place(column):
    """Where the weights of a column are."""
    return next(group.place for group in ENCODER.groups if group.column == column)


def test_no_penalty_is_the_ridge():
    """None means |w|^2."""
    assert checked_penalty(None) is None


def test_strengths_by_the_names_of_columns_count_for_all_their_weights():
    """Columns that are not named have strength 1; interactions have the names of their columns with a colon between."""
    expected = np.ones(ENCODER.n_features)
    expected[place("level")], expected[place("sex:pay")] = 4.0, 0.5
    assert matrix_of({"level": "4", "sex:pay": 0.5}) == pytest.approx(np.diag(expected))


def test_smoothing_takes_knots_and_listed_levels_and_leaves_the_other_weights_of_a_column():
    """The indicator of missing numbers and the level of other categories have the ridge of the column alone."""
    found = matrix_of({"age": Smooth(5.0, ridge=3.0), "level": "smooth"})
    assert np.array_equal(matrix_of({"age": {"strength": 5.0, "ridge": 3.0}, "level": "smooth=100"}), found)
    knots = np.linspace(-1.0, 1.0, 5)
    age, level = found[place("age"), place("age")], found[place("level"), place("level")]
    assert age[:5, :5] == pytest.approx(smoothing_form(knots, Smooth(5.0, ridge=3.0), 2), rel=1e-4, abs=1e-4)
    assert age[5] == pytest.approx([0.0] * 5 + [3.0])
    assert level[:4, :4] == pytest.approx(smoothing_form(np.arange(4.0), Smooth(), 1), rel=1e-4, abs=1e-4)
    assert level[4] == pytest.approx([0.0] * 4 + [1.0])
    assert np.count_nonzero(np.abs(found) > 1e-9) == 5 * 5 + 1 + 4 * 4 + 1 + 3


def test_the_name_smooth_smooths_all_curves():
    """And nothing else: the order of levels is not known to mean anything."""
    assert matrix_of("smooth") == pytest.approx(matrix_of({"age": Smooth()}))


def test_arrays_are_strengths_or_a_matrix():
    """Of columns as they enter the fit, with and without a schema."""
    strengths = np.arange(1.0, ENCODER.n_features + 1)
    assert matrix_of(strengths) == pytest.approx(np.diag(strengths))
    assert matrix_of([1.0, 4.0, 2.0], None) == pytest.approx(np.diag([1.0, 4.0, 2.0]))
    matrix = np.eye(3) + 0.5
    assert matrix_of(matrix, None) == pytest.approx(matrix, rel=1e-5)
    assert matrix_of({"b": 9.0}, None) == pytest.approx(np.diag([1.0, 9.0, 1.0]))


@pytest.mark.parametrize(
    ("penalty", "message"),
    [
        ("rough", "must be one of"),
        (3.0, "must be a name"),
        ({1: 2.0}, "names of columns"),
        ({"age": 0.0}, "1e-6 to 1e6"),
        ({"age": "soft"}, "1e-6 to 1e6"),
        ({"age": "smooth=much"}, "1e-6 to 1e6"),
        ({"age": "rough=3"}, "1e-6 to 1e6"),
        ([[1.0, 0.5], [0.0, 1.0]], "symmetric"),
        ([[1.0, 2.0, 3.0]], "strength for each column"),
        ([1.0, np.nan], "all numbers finite"),
        ([1.0, -1.0], "1e-6 to 1e6"),
        (["a", "b"], "strength for each column"),
        (np.array([1.0, 2.0 + 1.0j]), "all numbers finite"),
        (np.ma.array([1.0, 2.0], mask=[False, True]), "all numbers finite"),
    ],
)
def test_other_things_are_refused_as_they_are_given(penalty, message):
    """Before columns are known."""
    with pytest.raises(ParameterError, match=message):
        checked_penalty(penalty)


@pytest.mark.parametrize(
    ("penalty", "encoder", "message"),
    [
        ({"income": 2.0}, ENCODER, "no column. Columns are"),
        ({"d": 2.0}, None, "no column. Columns are"),
        ({"pay": Smooth()}, ENCODER, "too little to smooth"),
        ({"sex": Smooth()}, ENCODER, "too little to smooth"),
        ({"sex:pay": Smooth()}, ENCODER, "too little to smooth"),
        ({"a": Smooth()}, None, "only a schema"),
        ("smooth", None, "Give a schema"),
        ("smooth", Encoder(Schema(columns={"pay": {"low": 0, "high": 1}})), "needs a column with knots"),
        ([1.0, 2.0], ENCODER, "names of columns instead"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), None, "positive definite"),
    ],
)
def test_what_does_not_fit_the_columns_is_refused(penalty, encoder, message):
    """With a word on what to do."""
    with pytest.raises(ParameterError, match=message):
        form_of(checked_penalty(penalty), encoder, lambda: NAMES)


@pytest.mark.parametrize(
    "penalty", [None, "smooth", {"age": Smooth(2.0), "level": 3, "sex": "smooth"}, np.eye(2) * 2.0, [1, 2.0]]
)
def test_what_is_written_is_read_as_the_same_penalty(penalty):
    """As JSON, in the files of models."""
    read = json.loads(json.dumps(written_penalty(penalty)))
    given, again = checked_penalty(penalty), checked_penalty(read)
    if given is None or again is None:
        assert given is again
        return
    assert given.by_column == again.by_column
    assert given.smooths_curves == again.smooths_curves
    assert np.array_equal(np.array(given.entries, dtype=float), np.array(again.entries, dtype=float), equal_nan=True)
    assert written_penalty(read) == read


def test_a_penalty_that_is_changed_later_changes_no_form():
    """Numbers are copied when they are read, from arrays of derived classes too."""

    class Own(np.ndarray):
        """An array of a user's own."""

    given = np.array([1.0, 4.0, 2.0])
    for held in (given, given.view(Own), given[::-1]):
        found = checked_penalty(held)
        kept = np.array(held)
        form = form_of(found, None, lambda: NAMES)
        given += 1.0
        assert np.array_equal(found.entries, kept)
        assert type(found.entries) is np.ndarray
        assert form == form_of(checked_penalty(kept), None, lambda: NAMES)


def test_an_object_of_the_users_own_is_not_written():
    """It may hold anything."""
    assert written_penalty(object()) is None


def test_a_function_of_the_user_s_is_read_and_written_as_name_and_constants():
    """Numbers of any type become plain ones; what a file holds is read as a penalty without functions."""
    given = replace(LOG_COSH, smoothness=np.float32(1.5))
    found = checked_penalty(given)
    assert (found, type(found.smoothness)) == (LOG_COSH, float)
    written = json.loads(json.dumps(written_penalty(given)))
    assert checked_penalty(written) == replace(LOG_COSH, value=None, gradient=None)
