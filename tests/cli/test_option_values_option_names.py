"""Messages of the library in the words of the command line."""

from __future__ import annotations

import re

import pytest

from confide.cli.option_values import in_words_of_options
from tests.cli.commands import PRICES, refused
from tests.cli.refusals import SOURCE, names_of_python, refusals

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
    "cannot read old/n_rows/alpha=1/n_jobs.csv: no.": "cannot read old/n_rows/alpha=1/n_jobs.csv: no.",
    "postgresql://me@host/db?schema=alpha&sslmode=disable: alpha must be small.": (
        "postgresql://me@host/db?schema=alpha&sslmode=disable: --alpha must be small."
    ),
    "Ridge of HuberRegressor, or ApproxDP(1, 2).": "--model ridge of --model huber, or ApproxDP(1, 2).",
}


@pytest.mark.parametrize(("message", "expected"), SAID.items())
def test_parameters_become_options_and_words_stay_words(message, expected):
    """Names in double quotes are columns, and paths stay as they are."""
    assert in_words_of_options(message) == expected


def test_a_refused_parameter_is_named_by_its_option(folder):
    """But what a schema says is named by its key."""
    options = ("plan", "--schema", "people.toml", "--epsilon", "1")
    assert refused(*options, "--rows", "99", "--alpha", "0").startswith("error: --alpha must be")
    assert "--n-rows-bounds LOW HIGH" in refused(*options, "--rows", "99", "--neighbours", "add-or-remove-one")
    (folder / "people.toml").write_text("[columns]\nage = { low = 17, high = 90, knots = [80, 20] }\n", encoding="utf-8")
    assert 'column "age": knots must be in rising order' in refused(*options, "--rows", "99")


NOT_BY_A_COMMAND = {
    "audit/attacks.py": "the command has its own words",
    "audit/densities.py": "commands integrate no density",
    "audit/replays.py": "commands replay nothing",
    "estimators/coefficients.py": "commands show intervals where there are some",
    "intake/penalties.py": "functions of a user are given in Python",
    "privacy/events.py": "commands charge budgets and plans",
    "data/dask.py": "commands read files",
    "data/federated.py": "commands read files",
    "data/file_rows.py": "commands give every file a schema",
    "data/partitions.py": "commands refuse a schema without a target",
    "data/spark.py": "commands read files",
    "threads.py": "commands show progress by themselves",
    "accounting/attempts.py": "commands end the attempts that they began",
    "displays/counts.py": "no command draws with Matplotlib",
    "displays/plans.py": "no command draws with Matplotlib",
    "displays/coefficients.py": "no command draws with Matplotlib",
    "effects/effects.py": (
        "commands ask for original units where there are some; commands ask for effects where there are some"
    ),
    "effects/picture.py": "no command draws with Matplotlib",
    "erm/coded_rows.py": "made by the library",
    "erm/group_bounds.py": "a command takes a number as the bound on rows",
    "estimators/transformers.py": "no command has transformers",
    "estimators/calibration.py": "no command calibrates",
    "planning/kernels.py": "no command plans the features of a kernel by the statements of a paper",
    "planning/bounds.py": "no command bounds the risk of kernels",
    "features/columns.py": "a schema in a file has names and descriptions",
    "features/fourier.py": "made by the library",
    "report/contents.py": "commands load models",
    "report/writing.py": "commands have a list of formats",
    "intake/arrays.py": "commands read files; rows of files have no weights",
    "intake/rows.py": (
        "commands open files with the schema of the model; commands open files with a schema that has a target"
    ),
    "intake/targets.py": "a schema with a target has been read, and its kind suits the model",
    "privacy/mechanism.py": "made by the library",
}
"""Modules whose refusals no command meets, and the reason."""
NOT_BY_A_COMMAND_EITHER = (
    "fitted linear model of confide",
    "that its to_dict gave",
    "estimator must be an estimator of confide",
    "leave the limit out",
    "has no penalty of your own",
    "Leave `accounting` out",
    "leave `limit` out",
    "in-memory ledger",
    "this batch has no release",
    "passfile=",  # libpq's own word
    "a pair (coef, intercept) of public numbers",  # an option gives a path
    "In Python, ",
    "in Python, ",
    "leave sample_weight out",
    "n_classes must be",
    "bounds=(low, high)",
    "files name no ledger",
    "a report is written to a file, so give its path",
    "give the file to write the model to",
    "so give their price: budget=",
    "private_bounds releases quantiles",
    "target_low and target_high must both be given",  # a schema says the range
    "target_low and target_high are not needed",
    "or give target_low and target_high.",
    "the exposure of each row is needed where",
    "set CONFIDE_DEBUG=1",
    "must be a confide.",
    "max_sample_weight must be",
    "mean_sample_weight must be",
    "leave max_sample_weight and",
    "a schema needs a pandas or Polars frame",
    "open_rows needs the path",
    "open_rows was given no file",
    "open_rows takes rows",
    "each interaction must be a list",
    "must be True or False",
    "must be 'auto' or False",
    "random_features must be a table",  # which has these keys
    "features_not_found: a fit that left random features out",  # likewise
    "…: max_rows_per_person must be",  # a key of a schema
)
"""Parts of single refusals that no command meets: of memory, batches, arrays and values that options cannot have."""


def test_no_refusal_that_a_command_meets_names_what_only_python_has():
    """All refusals of the source, with … for what is filled in. A new one must be put into words of options."""
    found = refusals()
    assert len(found) > 400
    left = {}
    for place, kind, text in found:
        if place in NOT_BY_A_COMMAND or any(part in text for part in NOT_BY_A_COMMAND_EITHER):
            continue
        shown = text if kind == "SchemaError" else in_words_of_options(text)
        if names := names_of_python(shown):
            left[f"{place}: {shown}"] = names
    assert left == {}
    assert all((SOURCE / place).exists() for place in NOT_BY_A_COMMAND)


CLASSES = ("plan", "--schema", "people.toml", "--rows", "200", "--epsilon", "1")
NUMBERS = ("plan", "--schema", "prices.toml", "--rows", "200", "--epsilon", "1")
REFUSED = [
    (*CLASSES, "--alpha", "-1"),
    (*CLASSES, "--intervals", "0.95"),
    (*CLASSES, "--intervals", "0.1"),
    (*CLASSES, "--mechanism", "gradient"),
    (*CLASSES, "--mechanism", "sufficient-statistics"),
    (*CLASSES, "--n-rows-bounds", "9", "3", "--neighbours", "add-or-remove-one"),
    (*CLASSES, "--neighbours", "add-or-remove-one"),
    (*CLASSES, "--model", "svm", "--smoothing", "0"),
    (*CLASSES, "--model", "svm", "--loss", "huber"),
    (*CLASSES, "--model", "svm", "--loss", "hinge", "--intervals", "0.2"),
    (*CLASSES, "--model", "erm", "--loss", "auto"),
    (*CLASSES, "--model", "logistic", "--row-norm", "2"),
    (*CLASSES, "--model", "kernel-svm", "--n-features", "3"),
    (*CLASSES, "--model", "kernel-svm", "--length-scale", "-1"),
    (*CLASSES, "--model", "kernel-svm", "--map-seed", "-1"),
    (*CLASSES, "--intercept-scaling", "-1"),
    (*CLASSES, "--class-weight", "high:-1"),
    (*CLASSES, "--monotone", "salary:up"),
    (*CLASSES, "--target-bound", "3"),
    (*CLASSES, "--error", "0.7"),
    (*NUMBERS, "--target-bound", "-3"),
    (*NUMBERS, "--threshold", "-3"),
    (*NUMBERS, "--model", "ridge", "--mechanism", "output"),
    (*NUMBERS, "--loss", "squared", "--intervals", "0.2"),
    (*NUMBERS, "--loss", "logistic"),
    (*NUMBERS, "--model", "huber", "--loss", "clipped-squared", "--intervals", "0.2"),
    ("plan", "--model", "svm", "--features", "3", "--rows", "9", "--epsilon", "1", "--row-norm", "inf"),
    ("plan", "--model", "svm", "--features", "3", "--n-rows-bounds", "9", "99", "--epsilon", "1"),
    ("fit", "people.csv", "--schema", "people.toml", "--epsilon", "1", "--jobs", "0"),
    ("fit", "people.csv", "--schema", "people.toml", "--epsilon", "1", "--seed", "-1"),
    ("fit", "people.csv", "--schema", "people.toml", "--epsilon", "1", "--ledger", "missing.db"),
    ("fit", "people.*", "--schema", "people.toml", "--epsilon", "1"),
]


@pytest.mark.parametrize("arguments", REFUSED, ids=lambda arguments: " ".join(arguments[1:]))
def test_refusals_of_commands_speak_of_options(folder, arguments):
    """As they are shown: one line, which names an option or a file and nothing that only Python has."""
    (folder / "prices.toml").write_text(PRICES, encoding="utf-8")
    line = refused(*arguments)
    assert names_of_python(line) == []
    assert re.search(r"--[a-z]|\.(csv|db|toml)|schema|column|knots|files", line), line
