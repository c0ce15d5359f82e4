"""Public descriptions of columns, and the contradictions that are refused in them."""

from __future__ import annotations

import tomllib

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from confide.errors import ParameterError, SchemaError
from confide.features.columns import CategoryColumn, NumberColumn, columns_of
from confide.features.encoder import Encoder
from confide.features.schema import Schema
from tests.features.schemas import AGE, SEX

OTHERS = {
    "text": (["a", "b"], " b ", "b"),
    "a number": ([1, 2.5], 2.5, "2.5"),
    "a whole number": ([0, 1], 1, "1"),
    "a number as text": ([0, 1], "1.0", "1"),
    "a boolean as text": ([False, True], "TRUE", "true"),
}


@pytest.mark.parametrize(("categories", "other", "canonical"), OTHERS.values(), ids=OTHERS)
def test_other_may_be_a_listed_category(categories, other, canonical):
    """It is compared and kept in canonical form, so two ways to write it give the same schema."""
    column = CategoryColumn("x", tuple(categories), other=other)
    assert column.other == canonical
    assert column == CategoryColumn("x", tuple(categories), other=canonical)
    assert column != CategoryColumn("x", tuple(categories), other=True)


@pytest.mark.parametrize("columns", ["age", 3, [AGE], None])
def test_columns_of_another_kind_are_refused(columns):
    """What is neither a mapping nor column objects gives a SchemaError, and no other error."""
    with pytest.raises(SchemaError, match="columns"):
        Schema(columns)


def test_codes_for_missing_cells_are_kept_in_every_form_of_a_schema():
    """In the order in which they were given, each once, as numbers or as labels."""
    described = {
        "age": {"low": 0, "high": 110, "missing": [999, -9, 999.0]},
        "sex": {"categories": ["F"], "missing": ["x", -9]},
    }
    age, sex = columns_of(described)
    assert age.missing_codes == (999.0, -9.0)
    assert sex.missing_codes == ("x", -9)
    assert age.to_dict()["missing"] == [999, -9]
    assert sex.to_dict()["missing"] == ["x", -9]
    assert "may be missing (999, -9)" in str(age)
    assert "may be missing (x, -9)" in str(sex)
    assert Schema.from_dict(tomllib.loads(Schema([age, sex]).to_toml())) == Schema([age, sex])


CONTRADICTIONS = {
    "one code without a list": ({"age": AGE | {"missing": 999}}, "such as [999, -9]"),
    "a code as text": ({"age": AGE | {"missing": "NA"}}, "a list of codes"),
    "no code": ({"age": AGE | {"missing": []}}, "a list of codes"),
    "a code that is no number": ({"age": AGE | {"missing": ["x"]}}, "each code in missing must be a finite number"),
    "an infinite code": ({"age": AGE | {"missing": [float("inf")]}}, "each code in missing"),
    "a blank code": ({"sex": SEX | {"missing": [" "]}}, "each code in missing"),
    "a list as a code": ({"sex": SEX | {"missing": [[]]}}, "each code in missing"),
    "a category that is a code": ({"sex": SEX | {"missing": ["Male "]}}, "a category and a code"),
    "low equals high": ({"age": {"low": 1, "high": 1}}, "age"),
    "low above high": ({"age": {"low": 2, "high": 1}}, "age"),
    "not a number": ({"age": {"low": float("nan"), "high": 1}}, "age"),
    "infinite": ({"age": {"low": 0, "high": float("inf")}}, "age"),
    "infinite on a log scale": ({"age": {"low": 0, "high": float("inf"), "scale": "log"}}, "age"),
    "beyond the doubles": ({"age": {"low": 0, "high": 10**400}}, "age"),
    "too far apart": ({"age": {"low": -1.7e308, "high": 1.7e308}}, "age"),
    "a boolean bound": ({"age": {"low": False, "high": 1}}, "age"),
    "a text bound": ({"age": {"low": "0", "high": 1}}, "age"),
    "a complex bound": ({"age": {"low": 1j, "high": 1}}, "age"),
    "a bound alone": ({"age": {"low": 0}}, '"high" is missing'),
    "knots that do not rise": ({"age": AGE | {"knots": [40, 30]}}, "rising order"),
    "a knot at a bound": ({"age": AGE | {"knots": [17, 30]}}, "between low and high"),
    "a knot beyond the bounds": ({"age": AGE | {"knots": [30, 91]}}, "between low and high"),
    "a knot that is no number": ({"age": AGE | {"knots": [30, "x"]}}, "each of the knots must be a finite number"),
    "knots as text": ({"age": AGE | {"knots": "30"}}, "knots must be a list"),
    "a knot that is half a number": ({"age": AGE | {"knots": 2.5}}, "knots must be a list"),
    "a negative number of knots": ({"age": AGE | {"knots": -1}}, "from 0, a straight line, to 1000"),
    "a boolean number of knots": ({"age": AGE | {"knots": True}}, "knots must be a list"),
    "knots that rounding joins": ({"age": {"low": -1e300, "high": 1e300, "knots": [1, 2]}}, "too close"),
    "knots for categories": ({"sex": SEX | {"knots": [1]}}, '"knots"'),
    "unknown scale": ({"age": AGE | {"scale": "logarithm"}}, '"linear", "log" or "log10"'),
    "a unit that is no text": ({"age": AGE | {"unit": 3}}, "unit must be text"),
    "a unit of two lines": ({"age": AGE | {"unit": "a\nb"}}, "unit must be text"),
    "a long unit": ({"age": AGE | {"unit": "u" * 31}}, "at most 30 characters"),
    "a unit of categories": ({"sex": SEX | {"unit": "USD"}}, '"unit"'),
    "the logarithm of 0": ({"pay": {"low": 0, "high": 9, "scale": "log10"}}, "low must be above 0; it is 0"),
    "the logarithm of nearly 0": ({"pay": {"low": 1e-308, "high": 1e6, "scale": "log10"}}, "too close to 0"),
    "scale of another type": ({"age": AGE | {"scale": ["log"]}}, "age"),
    "flag of another type": ({"age": AGE | {"missing": 1}}, "missing must be true, false, or"),
    "other that is not listed": ({"sex": SEX | {"other": "male"}}, "one of the listed categories"),
    "other that is a number": ({"sex": SEX | {"other": 1}}, "one of the listed categories"),
    "other that is a list": ({"sex": SEX | {"other": ["Male"]}}, "one of the listed categories"),
    "other that is nothing": ({"sex": SEX | {"other": None}}, "one of the listed categories"),
    "other that is no number": ({"sex": {"categories": ["nan"], "other": float("nan")}}, "one of the listed categories"),
    "misspelt key": ({"sex": SEX | {"mising": True}}, 'did you mean "missing"'),
    "unknown key": ({"age": AGE | {"zzzz": 1}}, '"zzzz"'),
    "a key that is not text": ({"age": AGE | {1: 1}}, "age"),
    "other for a number": ({"age": AGE | {"other": True}}, '"other"'),
    "scale for categories": ({"sex": SEX | {"scale": "log"}}, '"scale"'),
    "bounds and categories": ({"age": AGE | SEX}, "both"),
    "neither": ({"age": {"missing": True}}, "neither"),
    "misspelt and therefore neither": ({"age": {"lo": 1, "hgh": 2}}, 'did you mean "low"'),
    "no categories": ({"sex": {"categories": []}}, "empty"),
    "categories as text": ({"sex": {"categories": "FM"}}, "list"),
    "categories as a number": ({"sex": {"categories": 3}}, "list"),
    "twice the same": ({"sex": {"categories": ["a", "b", "a"]}}, "'a'"),
    "the same number": ({"sex": {"categories": [1, 1.0]}}, "the same"),
    "the same number as text": ({"sex": {"categories": [1, "1"]}}, "the same"),
    "the same but for blanks": ({"sex": {"categories": ["a", " a"]}}, "the same"),
    "the same boolean": ({"sex": {"categories": [True, "TRUE"]}}, "the same"),
    "a blank category": ({"sex": {"categories": ["a", " "]}}, "blank"),
    "a missing category": ({"sex": {"categories": ["a", None]}}, "sex"),
    "a list as category": ({"sex": {"categories": ["a", ["b"]]}}, "sex"),
    "a number that is none as category": ({"sex": {"categories": [float("nan")]}}, "sex"),
    "no description": ({"age": 3}, "age"),
    "a name that is not text": ({3: AGE}, "name"),
    "a blank name": ({"": AGE}, "name"),
}


@pytest.mark.parametrize(("columns", "words"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_every_contradiction_is_refused_in_one_line_that_names_the_column(columns, words):
    """A SchemaError, which is a ParameterError, says where and what is wrong. No other error escapes."""
    with pytest.raises(SchemaError) as refusal:
        columns_of(columns)
    assert isinstance(refusal.value, ParameterError)
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_no_list_holds_more_knots_than_may_be_spaced_evenly():
    """A thousand may be listed, and one more is refused."""
    knots = [float(knot) for knot in range(1, 1002)]
    assert len(NumberColumn("age", 0, 2000, knots=knots[:-1]).knots) == 1000
    with pytest.raises(SchemaError, match='column "age": there are more than 1000 knots'):
        NumberColumn("age", 0, 2000, knots=knots)


def test_the_scale_log10_is_even_in_the_logarithm_of_the_value_itself():
    """Each power of ten takes the same part of the scale, wherever low lies, and so do evenly spaced knots."""
    pay = NumberColumn("pay", 1000, 1e6, scale="log10", knots=2)
    assert pay.stretched(np.array([5.0, 1e3, 1e4, 1e5, 1e6, 1e9])) == pytest.approx([-1, -1, -1 / 3, 1 / 3, 1, 1])
    assert pay.interior_knots == pytest.approx((1e4, 1e5))
    assert pay.numbers_at(np.array([0.0, 0.5, 1.0])) == pytest.approx([1e3, 10**4.5, 1e6])
    assert columns_of({"pay": pay.to_dict()}) == (pay,)
    assert str(pay) == "number from 1000 to 1000000, log10 scale, 2 even knots"


def test_a_unit_is_shown_and_changes_nothing():
    """It is written where it is given, and columns that differ in it alone are equal."""
    plain, age = NumberColumn("age", 17, 90), NumberColumn("age", 17, 90, unit="years")
    assert (plain, plain.to_dict(), plain.title) == (age, {"low": 17, "high": 90}, "age")
    assert (age.to_dict()["unit"], age.title, age.shown(30.0)) == ("years", "age (years)", "30 years")
    assert str(age) == "number from 17 to 90 years"
    assert NumberColumn("age (years)", 17, 90, unit="years").title == "age (years)"
    assert columns_of({"age": age.to_dict()})[0].unit == "years"


def test_the_scale_log_keeps_its_meaning():
    """It is log(1 + value - low), which is the same as "log10" if low is 1 and puts knots near low if low is large."""
    numbers = np.array([1.0, 7.0, 60.0])
    one, other = (NumberColumn("n", 1, 60, scale=scale, knots=3) for scale in ("log", "log10"))
    assert one.stretched(numbers.copy()).tolist() == other.stretched(numbers.copy()).tolist()
    assert one.interior_knots == other.interior_knots
    assert NumberColumn("pay", 1000, 1e6, scale="log", knots=2).interior_knots[0] < 1100


@example(1.0, 348360.544516448, [])
@given(st.floats(1e-3, 1e6), st.floats(1.001, 1e9), st.lists(st.floats(allow_nan=False), max_size=20))
def test_numbers_on_the_scale_log10_never_leave_their_range(low, ratio, numbers):
    """From -1 to 1 for every number, in rising order, with the bounds at the ends, high but for a rounding."""
    column = NumberColumn("x", low, low * ratio, scale="log10")
    found = column.stretched(np.array(sorted([*numbers, column.low, column.high])))
    assert (np.diff(found) >= 0.0).all()
    assert found[0] == -1.0
    assert 1.0 - 2.0**-50 <= found[-1] <= 1.0


LEVELS = {
    "no others": (False, False, ("a", "b", "c"), -1, -1),
    "others together": (True, False, ("a", "b", "c", "(other)"), 3, 3),
    "others as a listed one": ("b", False, ("a", "b", "c"), 1, 1),
    "missing cells": (False, True, ("a", "b", "c", "(missing)"), -1, 3),
    "others and missing cells": (True, True, ("a", "b", "c", "(other)", "(missing)"), 3, 4),
    "others as a listed one, and missing cells": ("b", True, ("a", "b", "c", "(missing)"), 1, 3),
}


@pytest.mark.parametrize(("other", "missing", "levels", "unlisted", "absent"), LEVELS.values(), ids=LEVELS)
def test_a_category_says_its_levels(other, missing, levels, unlisted, absent):
    """Rows have one encoded column a level, but for two levels, which share one; an encoder reads cells by the same rule."""
    column = CategoryColumn("x", ("a", "b", "c"), other=other, missing=missing)
    assert (column.levels, column.unlisted_level, column.missing_level) == (levels, unlisted, absent)
    assert column.width() == len(Encoder(Schema([column])).feature_names) == len(levels)
    encoder = Encoder(Schema([column]))
    read = encoder.levels(encoder.read(pd.DataFrame({"x": ["a", "c", "z"]})), "x").tolist()
    assert read == [0, 2, unlisted]
    if missing or other:
        assert encoder.levels(encoder.read(pd.DataFrame({"x": ["a", None]})), "x").tolist() == [0, absent]


def test_a_number_says_how_many_columns_it_has():
    """Its own knots count, or those of an interaction; so does the indicator of missing cells."""
    for knots, width in (((), 1), (0, 1), ((5.0, 7.0), 4), (3, 5)):
        column = NumberColumn("x", 0, 10, knots=knots)
        assert column.width() == len(Encoder(Schema([column])).feature_names) == width
        assert NumberColumn("x", 0, 10, knots=knots, missing=True).width() == width + 1
        assert [column.width(count) for count in (0, 1, 6)] == [1, 3, 8]
