"""Refusals of the library in the words of the command line: options in place of parameters and classes of Python."""

from __future__ import annotations

import re

_PHRASES = {
    "n_rows_bounds=(low, high)": "--n-rows-bounds LOW HIGH",
    "prior=confide.PublicPrior(model)": "--public-prior MODEL.json",
    "give a schema": "give --schema",
    "Without a schema": "Without --schema",
    "without a schema": "without --schema",
    "logistic_hinge": "logistic-hinge",
    "ApproxDP or ZCDP in place of PureDP": "--delta or --rho",
    "budget=inf": "--epsilon inf",
    "centre=False": "--no-centre",
    "Lower `budget`": "Lower --epsilon or --rho",
    'interactions="all"': "--interactions all",
    "a HuberRegressor": "--model huber",
    "HuberRegressor": "--model huber",
    "LogisticRegression": "--model logistic",
    "LinearSVC": "--model svm",
    "KernelSVC": "--model kernel-svm",
}
"""What is replaced wherever it stands."""
_OPTIONS = {
    "n_rows_bounds": "--n-rows-bounds",
    "max_rows_per_person": "--max-rows-per-person",
    "inference_share": "--intervals",
    "row_norm": "--row-norm",
    "length_scale": "--length-scale",
    "n_features": "--n-features",
    "n_rows": "--rows",
    "positive_rate": "--positive-rate",
}
"""Parameters that nobody takes for words."""
_WORDS = ("alpha", "mechanism", "neighbours", "loss", "knots", "interactions", "kernel", "epsilon", "delta", "rho", "error")
"""Parameters that are also words. Such a word stands for the option at the beginning of a sentence that says what it must
be, and before an equals sign."""

_PARAMETER = re.compile(rf"(?<![\w\"'-])({'|'.join(_OPTIONS)})(?![\w\"'])(=?)")
_VALUE = re.compile(rf"(?<![\w\"'-])({'|'.join(_WORDS)})='?([\w-]+)'?")
_SUBJECT = re.compile(rf"(^|[.;:] )({'|'.join(_WORDS)})(?= must )")


def in_words_of_options(message: str) -> str:
    """The message of a refused parameter, with the names of options.

    Names in double quotes are columns, and stay as they are.
    """
    for phrase, words in _PHRASES.items():
        message = message.replace(phrase, words)
    message = _PARAMETER.sub(lambda found: _OPTIONS[found[1]] + (" " if found[2] else ""), message)
    message = _VALUE.sub(lambda found: f"--{found[1]} {found[2]}", message)
    return _SUBJECT.sub(lambda found: f"{found[1]}--{found[2]}", message)
