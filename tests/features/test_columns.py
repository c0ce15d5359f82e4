"""Public descriptions of columns, and the contradictions that are refused in them."""

from __future__ import annotations

import pytest

from confide.errors import ParameterError, SchemaError
from confide.features.columns import CategoryColumn, NumberColumn, columns_of
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


CONTRADICTIONS = {
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
    "unknown scale": ({"age": AGE | {"scale": "logarithm"}}, '"linear" or "log"'),
    "scale of another type": ({"age": AGE | {"scale": ["log"]}}, "age"),
    "flag of another type": ({"age": AGE | {"missing": 1}}, "missing must be true or false"),
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
