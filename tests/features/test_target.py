"""Targets, and what contradicts itself in them."""

from __future__ import annotations

import pytest

from confide.errors import SchemaError
from confide.features.schema import Schema
from tests.features.schemas import AGE, TARGET

TARGETS = {
    "the same label": (TARGET | {"positive": "<=50K"}, "same"),
    "the same label in canonical form": (TARGET | {"negative": 1, "positive": "1.0"}, "same"),
    "no positive": ({"column": "income", "negative": 0}, '"positive" is missing'),
    "unknown key": (TARGET | {"negativ": 0}, 'did you mean "negative"'),
    "a blank label": (TARGET | {"positive": ""}, "positive"),
    "a column that is not text": (TARGET | {"column": 1}, "column"),
    "no mapping": ("income", "target"),
}


@pytest.mark.parametrize(("target", "words"), TARGETS.values(), ids=TARGETS)
def test_every_contradiction_of_the_target_is_refused(target, words):
    """A SchemaError says what is wrong with the target."""
    with pytest.raises(SchemaError, match=words):
        Schema(columns={"age": AGE}, target=target)
