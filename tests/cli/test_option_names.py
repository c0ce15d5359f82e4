"""Messages of the library in the words of the command line."""

from __future__ import annotations

import pytest

from confide.cli.option_names import in_words_of_options
from tests.cli.commands import refused

SAID = {
    "alpha must be 'auto' or a positive number.": "--alpha must be 'auto' or a positive number.",
    "give n_rows_bounds=(low, high), public.": "give --n-rows-bounds LOW HIGH, public.",
    "n_rows_bounds is for neighbours='add-or-remove-one'.": "--n-rows-bounds is for --neighbours add-or-remove-one.",
    "give a schema or row_norm, not both.": "give --schema or --row-norm, not both.",
    "row_norm=inf needs budget=inf.": "--row-norm inf needs --epsilon inf.",
    "A larger inference_share, or loss='logistic_hinge'.": "A larger --intervals, or --loss logistic-hinge.",
    "Use ApproxDP or ZCDP in place of PureDP. knots must be few.": "Use --delta or --rho. --knots must be few.",
    "the noise in the loss at this alpha must be small.": "the noise in the loss at this alpha must be small.",
    'column "n_rows": "alpha" is no number.': 'column "n_rows": "alpha" is no number.',
}


@pytest.mark.parametrize(("message", "expected"), SAID.items())
def test_parameters_become_options_and_words_stay_words(message, expected):
    """Names in double quotes are columns."""
    assert in_words_of_options(message) == expected


def test_a_refused_parameter_is_named_by_its_option(folder):
    """But what a schema says is named by its key."""
    options = ("plan", "--schema", "people.toml", "--epsilon", "1")
    assert refused(*options, "--rows", "99", "--alpha", "0").startswith("error: --alpha must be")
    assert "--n-rows-bounds LOW HIGH" in refused(*options, "--rows", "99", "--neighbours", "add-or-remove-one")
    (folder / "people.toml").write_text("[columns]\nage = { low = 17, high = 90, knots = [80, 20] }\n", encoding="utf-8")
    assert 'column "age": knots must be in rising order' in refused(*options, "--rows", "99")
