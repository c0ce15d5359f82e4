"""Checks of the values that a schema is made of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np
import pytest

from confide.errors import SchemaError, is_list
from confide.features.checks import check_fields, check_keys, column_title, finite_number, plain_label, suggestion


def test_a_column_is_called_by_its_name():
    """The name must be text that is not blank; otherwise the message says so."""
    assert column_title("age") == 'column "age"'
    for name in ("", "  ", None, 3):
        with pytest.raises(SchemaError, match=r"^the person must be text that is not blank\.$"):
            column_title(name, "the person")


@pytest.mark.parametrize("value", [3, 3.0, np.float32(3), np.int8(3)])
def test_a_bound_is_a_finite_float(value):
    """Every type of real number is accepted."""
    assert finite_number("here: low", value) == 3.0
    assert type(finite_number("here: low", value)) is float


@pytest.mark.parametrize("value", [True, "3", None, 1j, float("nan"), float("inf"), 10**400])
def test_what_is_no_finite_number_is_no_bound(value):
    """The message says which key of which column is wrong."""
    with pytest.raises(SchemaError, match=r"^here: low must be a finite number\.$"):
        finite_number("here: low", value)


def test_a_label_is_a_plain_value():
    """NumPy scalars become Python values, which JSON and TOML can hold."""
    assert type(plain_label("here: it", np.int64(3))) is int
    assert type(plain_label("here: it", np.str_("a"))) is str
    assert plain_label("here: it", "a") == "a"
    for value in ("", " ", None, float("nan"), float("inf"), [1], b"a"):
        with pytest.raises(SchemaError, match=r"^here: it must be text that is not blank, a finite number or a boolean\.$"):
            plain_label("here: it", value)


def test_text_and_mappings_are_no_lists():
    """They are refused although they are iterable."""
    assert all(map(is_list, ([], (1,), {1}, iter([]), np.zeros(2))))
    assert not any(map(is_list, ("ab", {"a": 1}, 3, None)))


def test_an_unknown_key_is_refused_with_a_known_one_that_looks_alike():
    """If no known key looks alike, the message gives the advice instead."""
    check_keys("here", {"low": 1}, ("low", "high"))
    with pytest.raises(SchemaError, match=r'^here: unknown key "lo" \(did you mean "low"\?\)\. Known are: low, high\.$'):
        check_keys("here", {"lo": 1}, ("low", "high"), " (advice)")
    with pytest.raises(SchemaError, match=r'^here: unknown key "zzz" \(advice\)\. '):
        check_keys("here", {"zzz": 1}, ("low", "high"), " (advice)")
    assert suggestion("zzz", ("low",)) == ""


@dataclass
class Described:
    name: str
    size: int
    flag: bool = False


def test_a_mapping_must_hold_the_fields_that_have_no_default():
    """Fields that come from elsewhere must not be in it."""
    check_fields("here", {"size": 1}, Described, given=("name",))
    check_fields("here", {"size": 1, "flag": True}, Described, given=("name",))
    with pytest.raises(SchemaError, match=r'^here: the key "size" is missing; add it\.$'):
        check_fields("here", {"flag": True}, Described, given=("name",))
    with pytest.raises(SchemaError, match='unknown key "name"'):
        check_fields("here", {"size": 1, "name": "x"}, Described, given=("name",))


def test_a_date_as_a_bound_says_that_dates_are_not_read():
    """TOML reads 2019-01-01 as a date."""
    with pytest.raises(SchemaError, match="Dates are not read; turn them into a number"):
        finite_number('column "visit": low', date(2019, 1, 1))
