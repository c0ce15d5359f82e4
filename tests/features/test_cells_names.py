"""Names that look like data."""

from __future__ import annotations

import pytest

from confide.features.cells import looks_like_number


@pytest.mark.parametrize("name", ["1", " 2.5", "-1e3", "inf"])
def test_text_that_reads_as_a_number_looks_like_a_cell(name):
    """Such names occur when the first row of a file was taken for its names."""
    assert looks_like_number(name)


@pytest.mark.parametrize("name", ["age", "x1", "", " ", "nan", "1_000", 1, None, 2.5])
def test_other_names_do_not(name):
    """Words, blank text, text that means missing, and names that are not text do not look like numbers."""
    assert not looks_like_number(name)
