"""The table of options and parameters. `test_options.py` compares it with all estimators."""

from __future__ import annotations

from confide.cli.option_values import OPTION_OF, WITHOUT_OPTION


def test_options_and_reasons_have_their_form():
    """Options begin with two dashes and have no underscores; reasons are words; no parameter has both."""
    assert all(option.startswith("--") and "_" not in option for option in OPTION_OF.values())
    assert all(" " in reason for reason in WITHOUT_OPTION.values())
    assert not set(OPTION_OF) & set(WITHOUT_OPTION)
