"""Interactions, and the contradictions that are refused in them."""

from __future__ import annotations

import pytest

from confide.errors import SchemaError
from confide.features.interactions import interactions_of
from confide.features.schema import Schema
from tests.features.schemas import AGE, SEX, TARGET

INTERACTIONS = {
    "a name alone": ("age", "list of lists"),
    "names alone": (["age", "sex"], "list of lists"),
    "a number": (3, "list of lists"),
    "an unknown column": ([["agee", "sex"]], 'did you mean "age"'),
    "the target": ([["age", "income"]], '"income" is not among the columns'),
    "a number for a name": ([["age", 1]], "must be text"),
    "one column": ([["age"]], "two or more"),
    "a column with itself": ([["age", "age"]], "all different"),
    "the same pair twice": ([["age", "sex"], ["sex", "age"]], "twice"),
}


@pytest.mark.parametrize(("interact", "words"), INTERACTIONS.values(), ids=INTERACTIONS)
def test_every_contradiction_of_the_interactions_is_refused(interact, words):
    """A SchemaError says what is wrong, for schemas from Python and from a mapping."""
    for build in (lambda **parts: Schema(**parts), lambda **parts: Schema.from_dict(parts)):
        with pytest.raises(SchemaError, match=words):
            build(columns={"age": AGE, "sex": SEX}, target=TARGET, interact=interact)


def test_interactions_keep_the_order_in_which_they_are_given():
    """It holds for the lists and for the names in each list. Any iterable counts as a list."""
    listed = [("b", "a"), iter(["c", "a", "b"])]
    assert interactions_of(listed, {"a", "b", "c"}) == (("b", "a"), ("c", "a", "b"))
    assert interactions_of((), {"a"}) == ()
