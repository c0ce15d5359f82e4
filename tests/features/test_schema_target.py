"""Targets, and the contradictions that are refused in them."""

from __future__ import annotations

import numpy as np
import pytest

from confide.errors import SchemaError
from confide.features.schema import Schema, Target
from tests.features.schemas import AGE, TARGET

TARGETS = {
    "the same label": (TARGET | {"positive": "<=50K"}, "same"),
    "the same label in canonical form": (TARGET | {"negative": 1, "positive": "1.0"}, "same"),
    "no positive": ({"column": "income", "negative": 0}, '"positive" is missing'),
    "unknown key": (TARGET | {"negativ": 0}, 'did you mean "negative"'),
    "a blank label": (TARGET | {"positive": ""}, "positive"),
    "a column that is not text": (TARGET | {"column": 1}, "column"),
    "no mapping": ("income", "target"),
    "labels and bounds": (TARGET | {"low": 0, "high": 1}, "not both"),
    "classes and one bound": ({"column": "price", "classes": ["a", "b", "c"], "low": 0}, "not both"),
    "no high": ({"column": "price", "low": 0}, '"high" is missing'),
    "no low": ({"column": "price", "high": 0}, '"low" is missing'),
    "bounds that do not rise": ({"column": "price", "low": 1, "high": 1}, "low must be below high"),
    "a bound without end": ({"column": "price", "low": 0, "high": float("inf")}, "high must be a finite number"),
    "a bound of text": ({"column": "price", "low": "0", "high": 1}, "low must be a finite number"),
    "a unit of labels": ({"column": "y", "negative": "a", "positive": "b", "unit": "USD"}, "unit is for numbers"),
    "a blank unit": ({"column": "price", "low": 0, "high": 1, "unit": " "}, "unit must be text"),
    "neither labels nor bounds": ({"column": "price"}, "give low and high for a column of numbers"),
}


def target_of(described):
    """The target of a schema with this description."""
    return Schema({"age": AGE}, target=described).target


@pytest.mark.parametrize(("target", "words"), TARGETS.values(), ids=TARGETS)
def test_every_contradiction_of_the_target_is_refused(target, words):
    """A SchemaError says what is wrong with the target."""
    with pytest.raises(SchemaError, match=words):
        Schema(columns={"age": AGE}, target=target)


PRICE = {"column": "price", "low": 0, "high": 20000}


def test_a_target_of_numbers_has_bounds_and_no_labels():
    """In a file as in Python; a schema shows them."""
    target = Target("price", low=0, high=np.float32(20000))
    assert (target.bounds, target.labels) == ((0.0, 20000.0), ())
    assert target == target_of(PRICE)
    assert Target("y", "a", "b").bounds is None
    with_unit = target_of(PRICE | {"unit": "USD"})
    assert (str(with_unit), with_unit.to_dict()) == ("price: number from 0 to 20000 USD", PRICE | {"unit": "USD"})
    assert with_unit == target
    schema = Schema(columns={"age": AGE}, target=PRICE)
    assert str(schema).startswith("Schema of 1 column, target price: number from 0 to 20000\n")
    assert schema.to_toml().startswith('target = { column = "price", low = 0, high = 20000 }\n')


CLASSES = {
    "text": ("abc", "must be a list"),
    "a number": (3, "must be a list"),
    "two": (["a", "b"], "three or more"),
    "one twice": (["a", "b", " a"], "twice"),
    "of two types": (["a", "b", 3], "one type"),
    "a blank one": (["a", "b", " "], "not blank"),
}


@pytest.mark.parametrize(("classes", "words"), CLASSES.values(), ids=CLASSES)
def test_classes_are_three_or_more_different_labels_of_one_type(classes, words):
    """A SchemaError says what is wrong with them."""
    with pytest.raises(SchemaError, match=words):
        Target("species", classes=classes)


@pytest.mark.parametrize("labels", [("a", 1), (True, "true "), (0, True)])
def test_two_labels_have_one_type(labels):
    """They are two texts, two numbers or two booleans. All numbers have the same type."""
    with pytest.raises(SchemaError, match=r"one type|same label"):
        Target("y", *labels)
    assert Target("y", 0, 1.5).labels == (0, 1.5)


def test_a_target_names_two_labels_or_classes():
    """It must not name both. `labels` gives whichever it names."""
    with pytest.raises(SchemaError, match="not both"):
        Target("y", "a", "b", ("a", "b", "c"))
    with pytest.raises(SchemaError, match='"negative" is missing'):
        Target("y", positive="b")
    assert Target("y", "a", "b").labels == ("a", "b")
    assert Target("y", classes=["c", "a", "b"]).labels == ("c", "a", "b")


def test_a_target_is_made_from_a_mapping_or_taken_as_it_is():
    """None means no target, and `to_dict` gives the mapping back."""
    for described in (TARGET, {"column": "species", "classes": ["a", "b", "c"]}, PRICE):
        target = target_of(described)
        assert target.to_dict() == described
        assert target_of(target) is target
    assert target_of(None) is None
