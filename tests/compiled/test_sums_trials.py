"""A kernel that fails its trial is not used, and the warning says what NumPy does in its place."""

from __future__ import annotations

import warnings

import pytest

from confide.compiled.sums import tried


def test_a_kernel_that_is_right_is_given(compiled):
    assert tried(lambda module: module is compiled, "sums", None) is compiled


def test_another_is_not_and_a_warning_says_so(compiled):
    with pytest.warns(RuntimeWarning, match=r"so sums are made by NumPy.*CONFIDE_COMPILED=0"):
        assert tried(lambda module: False, "sums", None) is None


def test_nothing_is_raised_where_warnings_are_errors(compiled):
    """The budget may be charged already."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tried(lambda module: False, "sums", None) is None


def test_without_a_kernel_nothing_is_tried(by_numpy_alone):
    assert tried(lambda module: pytest.fail("there is nothing to try"), "sums", None) is None
