"""The canonical form, by which labels are compared."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from confide.features.canonical_labels import canonical_label
from tests.features.schemas import labels

SAME = {
    "1": [1, 1.0, "1", " 1 ", "1.0", "01", "+1", "1e0", np.int8(1), np.uint64(1), np.float32(1), Decimal("1.00")],
    "0": [0, -0.0, "0", "-0", "0.0", np.float64(0)],
    "-2.5": [-2.5, "-2.50", np.float32(-2.5), Decimal("-2.5")],
    "0.1": [0.1, "0.1", "0.10", np.float32(0.1), np.float16(0.1)],
    "9007199254740993": [2**53 + 1, "9007199254740993"],
    "true": [True, "True", "true", "TRUE", np.True_],
    "false": [False, "False", np.False_],
    "Private": ["Private", " Private", "Private\n"],
    "1_000": ["1_000"],
    "1,000": ["1,000"],
    "1e999": ["1e999"],
    "nan": ["nan"],
    "9" * 5000: ["9" * 5000],
    None: [None, "", "  ", float("nan"), np.float32("nan"), Decimal("nan"), pd.NA, pd.NaT],
}


@pytest.mark.parametrize(("canonical", "values"), SAME.items(), ids=lambda value: str(value)[:20])
def test_equal_labels_have_one_canonical_form(canonical, values):
    """All spellings and types of a label have the same canonical form, whatever reader made them."""
    assert [canonical_label(value) for value in values] == [canonical] * len(values)


@given(labels)
def test_the_canonical_form_is_its_own(label):
    """The canonical form of a canonical form is itself, and a label and its text have the same one."""
    canonical = canonical_label(label)
    assert canonical_label(canonical) == canonical
    assert canonical_label(str(label)) == canonical


@pytest.mark.parametrize("value", [b"1", [1], (1,), {}, 1j, object()])
def test_what_cannot_be_a_label_has_no_canonical_form(value):
    """It raises a TypeError that does not hold the value."""
    with pytest.raises(TypeError, match=r"^a label is text, a number or a boolean\.$"):
        canonical_label(value)
