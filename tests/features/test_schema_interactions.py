"""Interactions, and the contradictions that are refused in them."""

from __future__ import annotations

import pytest

from confide.errors import SchemaError
from confide.features.columns import NumberColumn
from confide.features.encoder import Encoder
from confide.features.schema import Interaction, Schema, interactions_of, n_products
from tests.features.schemas import AGE, SEX, TARGET

INTERACTIONS = {
    "a name alone": ("age", "list of lists"),
    "names alone": (["age", "sex"], "list of lists"),
    "a number": (3, "list of lists"),
    "an unknown column": ([["agee", "sex"]], 'did you mean "age"'),
    "the target": ([["age", "income"]], '"income" is no column'),
    "a number for a name": ([["age", 1]], "must be text"),
    "one column": ([["age"]], "two or more"),
    "a column with itself": ([["age", "age"]], "two or more different names"),
    "the same pair twice": ([["age", "sex"], ["sex", "age"]], "twice"),
    "the same pair twice, once coarse": ([["age", "sex"], {"columns": ["sex", "age"], "knots": 1}], "twice"),
    "a table without columns": ([{"knots": 1}], '"columns" is missing'),
    "a table with an unknown key": ([{"columns": ["age", "sex"], "knot": 1}], 'did you mean "knots"'),
    "a table of one column": ([{"columns": ["age"]}], "two or more"),
    "a curve without knots": ([{"columns": ["age"], "knots": 0}], "two or more"),
    "a curve of a category": ([{"columns": ["sex"], "knots": 3}], "a curve beside a straight line is for a number without"),
    "two curves of one number": ([{"columns": ["age"], "knots": 3}, {"columns": ["age"], "knots": 2}], "twice"),
    "a table with one name as columns": ([{"columns": "age"}], "must be a list of names"),
    "a table with an unknown column": ([{"columns": ["age", "sexx"]}], 'did you mean "sex"'),
    "knots below 0": ([{"columns": ["age", "sex"], "knots": -1}], "age and sex: knots must be a whole number"),
    "knots that are a list": ([{"columns": ["age", "sex"], "knots": [30]}], "knots must be a whole number"),
    "knots that are true": ([{"columns": ["age", "sex"], "knots": True}], "knots must be a whole number"),
    "a scale of 0": ([{"columns": ["age", "sex"], "scale": 0}], "scale must be a number from"),
    "a scale above 1": ([{"columns": ["age", "sex"], "scale": 1.5}], "scale must be a number from"),
    "a scale that is not a number": ([{"columns": ["age", "sex"], "scale": float("nan")}], "scale must be a number from"),
    "a scale that is text": ([{"columns": ["age", "sex"], "scale": "small"}], "scale must be a number from"),
}


@pytest.mark.parametrize(("interact", "words"), INTERACTIONS.values(), ids=INTERACTIONS)
def test_every_contradiction_of_the_interactions_is_refused(interact, words):
    """A SchemaError says what is wrong, for schemas from Python and from a mapping."""
    for build in (lambda **parts: Schema(**parts), lambda **parts: Schema.from_dict(parts)):
        with pytest.raises(SchemaError, match=words):
            build(columns={"age": AGE, "sex": SEX}, target=TARGET, interact=interact)


def test_interactions_keep_the_order_in_which_they_are_given():
    """It holds for the lists and for the names in each list. Any iterable counts as a list."""
    columns = {name: NumberColumn(name, 0, 1) for name in "abc"}
    listed = [("b", "a"), iter(["c", "a", "b"])]
    assert interactions_of(listed, columns) == (Interaction(("b", "a")), Interaction(("c", "a", "b")))
    assert interactions_of((), columns) == ()


def test_knots_that_double_precision_cannot_tell_apart_are_refused():
    """The message names the column."""
    columns = {"age": AGE, "far": {"low": -1e32, "high": 0, "scale": "log"}}
    with pytest.raises(SchemaError, match='"far": some knots are too close'):
        Schema(columns, interact=[{"columns": ["age", "far"], "knots": 3}])


def test_a_number_alone_has_a_curve_beside_its_line():
    """It is written and read back; a number with knots of its own has no line to stand beside."""
    columns = {"age": {"low": 0, "high": 10}, "size": {"low": 0, "high": 10, "knots": 2}}
    made = Schema(columns, interact=[{"columns": ["age"], "knots": 3}])
    assert made.interact[0].is_curve
    assert str(made.interact[0]) == "age  curve beside the line, 3 even knots"
    assert Schema.from_dict(made.to_dict()) == made
    with pytest.raises(SchemaError, match='for a number without knots, and column "size" is none'):
        Schema(columns, interact=[{"columns": ["size"], "knots": 3}])


def levels(name, count, **more):
    return {name: {"categories": [f"{name}{place}" for place in range(count)], **more}}


@pytest.mark.parametrize(("columns", "knots"), [
    (levels("a", 1001) | levels("b", 1000), None),
    (levels("a", 100) | levels("b", 100) | levels("c", 101), None),
    (levels("a", 1000) | {"b": {"low": 0, "high": 1}}, 999),
    ({name: {"low": 0, "high": 1, "knots": 999} for name in "ab"} , None),
])  # fmt: skip
def test_products_are_counted_before_any_is_named(columns, knots):
    """More than a million are refused, at once and in a sentence that says what to do."""
    interact = [{"columns": list(columns)} | ({} if knots is None else {"knots": knots})]
    with pytest.raises(SchemaError, match="Name fewer columns, list fewer categories, or give numbers fewer knots"):
        Schema(columns=columns, interact=interact)


def test_products_of_all_interactions_count_together():
    """Each of these is below the bound."""
    columns = levels("a", 800) | levels("b", 800) | levels("c", 700)
    assert (
        n_products(Schema(columns=columns, interact=[["a", "b"]]).interact, Schema(columns=columns).columns_by_name)
        == 640_000
    )
    with pytest.raises(SchemaError, match="1,200,000"):
        Schema(columns=columns, interact=[["a", "b"], ["a", "c"]])


def test_products_are_counted_as_they_are_made():
    """Two levels are one column, a missing cell one more, and coarse numbers have their own knots."""
    columns = {
        **levels("two", 2), **levels("some", 2, missing=True), **levels("other", 3, other=True),
        **levels("kept", 3, other="kept1"),
        "line": {"low": 0, "high": 1}, "gaps": {"low": 0, "high": 1, "missing": True},
        "curve": {"low": 0, "high": 1, "knots": [0.2, 0.7], "missing": True},
    }  # fmt: skip
    names = list(columns)
    pairs = [[first, second] for place, first in enumerate(names) for second in names[place + 1 :]]
    beside = [{"columns": [name], "knots": 3} for name in ("line", "gaps")]
    interact = [*pairs, *beside, *({"columns": [*pair, "line"], "knots": 2} for pair in pairs if "line" not in pair)]
    schema = Schema(columns=columns, interact=interact)
    made = sum(group.size for group in Encoder(schema).groups[len(columns) :])
    assert n_products(schema.interact, schema.columns_by_name) == made
