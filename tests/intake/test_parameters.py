"""Constructor parameters are checked before any row is looked at."""

from __future__ import annotations

import math

import numpy as np
import pytest

import confide
from confide import ZCDP, ApproxDP, ConfideError, Ledger, LogisticRegression, Neighbours, ParameterError, Schema
from confide.features.schema import Target
from confide.intake import parameters
from confide.intake.targets import Numbers
from tests.intake.refusals import GOOD_X, GOOD_Y, refusal

BAD_PARAMETERS = [
    {"budget": Ledger(limit=1.0).spent()}, {"budget": 10**400}, {"alpha": 10**400}, {"row_norm": 10**400},
    {"neighbours": "add-or-remove-one", "n_rows_bounds": (1, 10**400)}, {"classes": [[0], [1, 2]]},
    {"budget": 0}, {"budget": -1.0}, {"budget": float("nan")}, {"budget": True}, {"budget": "1"}, {"budget": None},
    {"alpha": 0.0}, {"alpha": -1.0}, {"alpha": float("inf")}, {"alpha": float("nan")}, {"alpha": "best"}, {"alpha": True},
    {"row_norm": 0.0}, {"row_norm": -1.0}, {"row_norm": float("nan")}, {"row_norm": float("inf")}, {"row_norm": True},
    {"row_norm": "1"}, {"fit_intercept": 1}, {"intercept_scaling": 0.0}, {"intercept_scaling": float("inf")},
    {"intercept_scaling": True}, {"classes": [0]}, {"classes": [0, 1, 2]}, {"classes": [1, 1]}, {"classes": "ab"},
    {"classes": 3}, {"mechanism": "gaussian"}, {"mechanism": None}, {"neighbours": "near"}, {"neighbours": None},
    {"n_rows_bounds": (1, 100)}, {"neighbours": "add-or-remove-one"},
    {"neighbours": "add-or-remove-one", "n_rows_bounds": (100, 1)},
    {"neighbours": "add-or-remove-one", "n_rows_bounds": (0, 10)},
    {"neighbours": "add-or-remove-one", "n_rows_bounds": (1.5, 10)},
    {"neighbours": "add-or-remove-one", "n_rows_bounds": 10},
    {"random_state": -1}, {"random_state": 1.5}, {"random_state": np.random.default_rng(0)}, {"schema": {"a": 1}},
    {"schema": Schema(columns={"x": {"low": 0, "high": 1}}), "row_norm": 1.0},
    {"max_rows_per_person": 0}, {"max_rows_per_person": 1.5}, {"max_rows_per_person": True}, {"max_rows_per_person": None},
    {"max_rows_per_person": -1}, {"budget": ZCDP.of_sum(0.0)}, {"budget": ApproxDP.of_sum(1.0, 0.0)},
]  # fmt: skip


@pytest.mark.parametrize("parameters", BAD_PARAMETERS, ids=lambda parameters: str(parameters).split(" at 0x")[0][:60])
def test_bad_parameters_are_refused_before_rows_are_looked_at(parameters):
    """X and y are never touched: an object that cannot be read takes their place."""
    refusal(LogisticRegression(**{"budget": 1.0, **parameters}), object(), object())


def test_a_ledger_that_is_none_is_refused():
    """A number is no ledger."""
    with pytest.raises(ConfideError, match="ledger"):
        LogisticRegression(1.0, ledger=3.0).fit(GOOD_X, GOOD_Y)


@pytest.mark.parametrize("arguments", [(0, 3), (10, 0), (None, 3), (10, None), (10.5, 3), (True, 3), ("10", 3)], ids=str)
def test_a_plan_needs_whole_numbers(arguments):
    """Rows and features of at least 1."""
    with pytest.raises(ConfideError, match="whole number"):
        LogisticRegression(1.0).plan(*arguments)


# The module's own functions

ENCODER = parameters.checked_schema(Schema(columns={"x": {"low": 0, "high": 1}, "c": {"categories": ["a", "b", "c"]}}))
INF = float("inf")
READ = [
    (parameters.checked_schema, None, None), (parameters.checked_target_bound, 3, 3.0),
    (parameters.checked_target_bound, INF, INF),
    (parameters.checked_class_weight, {"b": 2, "a": np.float64(0.5)}, (("b", 2.0), ("a", 0.5))),
    (parameters.checked_ledger, None, None),
]  # fmt: skip


@pytest.mark.parametrize(("check", "given", "expected"), READ, ids=lambda value: getattr(value, "__name__", repr(value)))
def test_a_parameter_is_read_in_the_type_that_the_rest_computes_with(check, given, expected):
    """Whatever kind of number came; the ends of the ranges are allowed."""
    found = check(given)
    assert found == expected
    assert type(found) is type(expected)


REFUSED = [
    *((parameters.checked_schema, value, "schema must be") for value in ({}, 3.0, ENCODER)),
    (parameters.checked_target_bound, None, "give target_bound"),
    *((parameters.checked_target_bound, value, "target_bound must be") for value in (0.0, -1, 1e-100, 1e100, True, "1")),
    (parameters.checked_class_weight, "balanced", "would learn the weights from the frequencies"),
    *((parameters.checked_class_weight, value, "class_weight must be a dict") for value in ({}, [1.0], {0: 0.0}, {0: 1e10})),
    *((parameters.checked_ledger, value, "ledger must be") for value in (1.0, {}, Ledger)),
]


@pytest.mark.parametrize(("check", "given", "words"), REFUSED, ids=lambda value: getattr(value, "__name__", str(value)[:30]))
def test_a_parameter_outside_of_its_range_is_refused_by_its_name(check, given, words):
    """Just beyond each end, of another type, and True for 1; in one line."""
    with pytest.raises(ParameterError, match=words) as refused:
        check(given)
    assert len(str(refused.value).splitlines()) == 1


def test_a_bound_on_rows_comes_from_one_place():
    """None is a ball of radius 1, a number a ball, an object itself, and a schema brings its own and takes no other."""
    box = confide.BoxBound([1.0, 2.0])
    assert parameters.checked_row_bound(None, None) == confide.BallBound(1.0)
    assert parameters.checked_row_bound(2, None) == confide.BallBound(2.0)
    assert parameters.checked_row_bound(box, None) is box
    assert parameters.checked_row_bound(None, ENCODER) == ENCODER.row_bound
    with pytest.raises(ParameterError, match="not both"):
        parameters.checked_row_bound(1.0, ENCODER)
    for wrong in ("1", True, 1j, object()):
        with pytest.raises(ParameterError, match="row_norm must be"):
            parameters.checked_row_bound(wrong, None)


@pytest.mark.parametrize("norm", [0.0, -1.0, 2.0**-301, 2.0**301, math.nan, np.float64(1.0), 1, None])
def test_a_row_bound_of_ones_own_has_a_float_for_its_norm(norm):
    """Between 2^-300 and 2^300, or infinite: what only behaves like a float could give another number later."""

    class Bound:
        clip = check_width = to_dict = print
        l2_norm = norm

    with pytest.raises(ParameterError, match="l2_norm"):
        parameters.checked_row_bound(Bound(), None)


def test_privacy_needs_bounds_on_rows_and_targets():
    """An infinite bound goes with an infinite budget alone."""
    for model, bounds in ((LogisticRegression, {"row_norm": INF}), (confide.Ridge, {"target_bound": INF})):
        with pytest.raises(ParameterError, match=f"{next(iter(bounds))}=inf needs budget=inf"):
            model(1.0, **bounds).plan(100, 2)
        assert not model(INF, **bounds).plan(100, 2).budget.is_private


def test_bounds_on_the_number_of_rows_go_with_add_or_remove_one():
    """There they are needed, and under replace-one, where that number is public, refused."""
    private, public = Neighbours.ADD_OR_REMOVE_ONE, Neighbours.REPLACE_ONE
    assert parameters.checked_bounds((np.int64(5), 10**15), private) == (5, 10**15)
    assert parameters.checked_bounds([7, 7], private) == (7, 7)
    assert parameters.checked_bounds(None, public) is None
    with pytest.raises(ParameterError, match="the number of rows is public"):
        parameters.checked_bounds((1, 9), public)
    for wrong in (None, 5, (1,), (0, 9), (9, 1), (1, 10**15 + 1), (1.0, 9), (True, 9), "19"):
        with pytest.raises(ParameterError, match="add-or-remove-one needs public n_rows_bounds"):
            parameters.checked_bounds(wrong, private)


def test_the_shape_of_a_plan_comes_from_the_schema_where_there_is_one():
    """Its encoded columns, repeated or left out; the number of rows may be left out where it has bounds."""
    assert parameters.checked_shape(10, np.int64(3), None, None) == 3
    assert parameters.checked_shape(None, 3, None, (1, 9)) == 3
    assert parameters.checked_shape(10, None, ENCODER, None) == parameters.checked_shape(10, 4, ENCODER, None) == 4
    with pytest.raises(ParameterError, match="4 encoded columns; leave it out"):
        parameters.checked_shape(10, 2, ENCODER, None)
    for n_rows, n_features, name in (
        (None, 3, "n_rows"),
        (0, 3, "n_rows"),
        (10, None, "n_features"),
        (10, 2.0, "n_features"),
    ):
        with pytest.raises(ParameterError, match=f"{name} must be a whole number"):
            parameters.checked_shape(n_rows, n_features, None, None)


RANGES = [
    # target_bound, low and high of the schema, counts: low, high and bound of the clipped targets
    (3, None, False, (-3.0, 3.0, 3.0)),
    (3, None, True, (0.0, 3.0, 3.0)),
    (INF, None, False, (-INF, INF, INF)),
    (None, (0, 20), False, (0.0, 20.0, 20.0)),
    (None, (-50, 20), False, (-50.0, 20.0, 50.0)),
    (None, (1, 20), True, (1.0, 20.0, 20.0)),
    (30, (-50, 20), False, (-30.0, 20.0, 30.0)),
    (100, (-50, 20), False, (-50.0, 20.0, 50.0)),
]


@pytest.mark.parametrize(("target_bound", "declared", "counts", "expected"), RANGES)
def test_targets_are_clipped_to_the_bound_and_to_the_range_of_the_schema(target_bound, declared, counts, expected):
    """The sentence names the ends; the bound of the proof is the larger of their sizes."""
    target = None if declared is None else Target("price", low=declared[0], high=declared[1])
    found = parameters.checked_target_range(target_bound, (None, None), target, counts=counts)
    assert (found.low, found.high, found.bound) == expected
    symmetric = declared is None and not counts
    words = f"bound, {expected[1]:g} in absolute value" if symmetric else f"range, {expected[0]:g} to {expected[1]:g}"
    assert found.sentence == f"Every target is clipped to its declared {words}."


def test_a_range_of_targets_that_contradicts_itself_is_refused():
    """A bound below every number of the schema, negative counts, a schema that has labels, and no bound at all."""
    with pytest.raises(ParameterError, match="lies within target_bound"):
        parameters.checked_target_range(5, (None, None), Target("price", low=10, high=20), counts=False)
    with pytest.raises(ParameterError, match="must be 0 or more"):
        parameters.checked_target_range(None, (None, None), Target("visits", low=-1, high=20), counts=True)
    for target in (None, Target("income", "low", "high")):
        with pytest.raises(ParameterError, match="give target_bound"):
            parameters.checked_target_range(None, (None, None), target, counts=False)
    with pytest.raises(ParameterError, match="target_bound must be"):
        parameters.checked_target_range("20", (None, None), Target("price", low=10, high=20), counts=False)


@pytest.mark.parametrize(
    ("ends", "shift", "bound"),
    [((1930, 2010), 1970.0, 40.0), ((-2010, -1930), -1970.0, 40.0), ((0, 20_000), 0.0, 20_000.0), ((10, 50), 30.0, 20.0),
     ((9.9, 50), 0.0, 50.0), ((1e300, 1.7e300), 1.35e300, 3.5e299)],
)  # fmt: skip
def test_the_middle_of_a_range_far_from_zero_is_subtracted(ends, shift, bound):
    """From one and a half half-widths on. Ends whose sum overflows do no harm here; they are refused elsewhere."""
    found = Numbers.within(*map(float, ends), is_declared=True, may_shift=True)
    assert (found.shift, found.bound) == (shift, pytest.approx(bound))
    assert ("is subtracted" in found.sentence) == (shift != 0.0)
    assert Numbers.within(*map(float, ends), is_declared=True).shift == 0.0


def test_both_ends_of_the_targets_are_given_or_neither():
    """Finite numbers in their order, and no bound or schema that says something else."""
    for ends in (
        (1.0, None),
        (None, 1.0),
        (2.0, 1.0),
        (1.0, 1.0),
        ("0", 1.0),
        (0.0, INF),
        (float("nan"), 1.0),
        (False, True),
    ):
        with pytest.raises(ParameterError, match="target_low and target_high must both be given"):
            parameters.checked_target_range(None, ends, None, counts=False)
    with pytest.raises(ParameterError, match="target_bound is given too"):
        parameters.checked_target_range(5.0, (0.0, 1.0), None, counts=False)
    with pytest.raises(ParameterError, match="the schema has the bounds"):
        parameters.checked_target_range(None, (0.0, 1.0), Target("price", low=10, high=20), counts=False)
    with pytest.raises(ParameterError, match="must be 0 or more"):
        parameters.checked_target_range(None, (-1.0, 1.0), None, counts=True)
