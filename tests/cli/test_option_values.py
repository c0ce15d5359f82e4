"""Values of options that are more than a number or a name."""

from __future__ import annotations

import math

import pytest

from confide.cli import option_values
from confide.errors import ParameterError


def test_values_are_read_as_python_takes_them():
    """Words, numbers, and names with values behind the last colon."""
    assert option_values.number_or_auto("--alpha", "auto") == "auto"
    assert option_values.number_or_auto("--alpha", ".5") == 0.5
    assert option_values.number_or_auto("--alpha", "inf") == math.inf
    assert option_values.interactions("pairs") == "pairs"
    assert option_values.interactions("none") == []
    assert option_values.interactions("age:hours, age:sex") == [["age", "hours"], ["age", "sex"]]
    assert option_values.knots("6") == 6
    assert option_values.knots("age:6,a:b:0") == {"age": 6, "a:b": 0}
    assert option_values.monotone("age:up,debt:down") == {"age": "up", "debt": "down"}
    assert option_values.columns("treatment, age") == ["treatment", "age"]
    assert option_values.penalty("smooth") == "smooth"
    assert option_values.penalty("age:smooth,a:b:4") == {"age": "smooth", "a:b": "4"}
    assert option_values.class_weight("<=50K:1,>50K:2.5") == {"<=50K": 1.0, ">50K": 2.5}


@pytest.mark.parametrize(
    ("read", "text", "option"),
    [
        (lambda text: option_values.number_or_auto("--alpha", text), "much", "--alpha"),
        (lambda text: option_values.number_or_auto("--alpha", text), "nan", "--alpha"),
        (option_values.knots, "age:many", "--knots"),
        (option_values.knots, "-1", "--knots"),
        (option_values.monotone, "age:left", "--monotone"),
        (option_values.columns, "age,", "--interest"),
        (option_values.monotone, "age:up,age:down", "--monotone"),
        (option_values.penalty, "age:4,debt:", "--penalty"),
        (option_values.class_weight, "yes:much", "--class-weight"),
        (option_values.class_weight, "yes", "--class-weight"),
        (option_values.interactions, "age", "--interactions"),
    ],
)
def test_what_cannot_be_read_is_refused_by_the_name_of_its_option(read, text, option):
    """With what was expected."""
    with pytest.raises(ParameterError, match=f"^{option} must"):
        read(text)


def test_options_have_their_form():
    """Options begin with two dashes and have no underscores."""
    assert all(option.startswith("--") and "_" not in option for option in option_values.OPTION_OF.values())
