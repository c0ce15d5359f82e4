"""The table of options and parameters. `test_options.py` compares it with all estimators."""

from __future__ import annotations

from confide.cli.option_values import OPTION_OF


def test_options_have_their_form():
    """Options begin with two dashes and have no underscores."""
    assert all(option.startswith("--") and "_" not in option for option in OPTION_OF.values())
