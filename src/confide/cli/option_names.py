"""Refusals of the library in the words of the command line: options in place of parameters and classes of Python.

`parameters.OPTION_OF` names the option of each parameter. A test collects every refusal that the library can raise, puts it
into these words, and looks for names of Python that are left.
"""

from __future__ import annotations

import re

from confide.cli.parameters import OPTION_OF

_PHRASES = {
    " If targets are far from 0, give target_low and target_high in its place.": "",
    "n_rows_bounds=(low, high)": "--n-rows-bounds LOW HIGH",
    "evaluation must be what confide.evaluate gives, or the": "--evaluation must be the",
    "class_weight must be a dict of public weights, label: number": "class_weight must give public weights, as label:number",
    "one for each class, or None": "one for each class",
    "the number of features must be even": "--n-features must be even",
    "the seed of a public map must": "--map-seed must",
    "prior=confide.PublicPrior(model)": "--public-prior MODEL.json",
    "give a schema": "give --schema",
    "Without a schema": "Without --schema",
    "without a schema": "without --schema",
    "an approximate charge without a finer account": "a charge with --delta and no finer account",
    ("Charge a plan or a ZCDP budget, or use a ledger with an ApproxDP limit"): (
        "Charge a fit or --rho, or use a ledger whose limit has --delta"
    ),
    "a ledger with an ApproxDP or ZCDP limit": "a ledger whose limit has --delta or --rho",
    ("delta is for ledgers that add epsilons and deltas under an ApproxDP limit"): (
        "--delta is for ledgers that add epsilons and deltas"
    ),
    (
        "a ZCDP charge has neither. Charge its joint epsilon at a delta with `ledger.plan([...])` if "
        "delta is left, or use a new ledger with accounting='renyi' for what is left"
    ): (
        "a charge of --rho has neither. Charge --epsilon and --delta instead, or use a new ledger, made "
        "with --accounting renyi, for what is left"
    ),
    "a budget ApproxDP(epsilon, delta) or ZCDP(rho)": "--delta or --rho",
    "ApproxDP or ZCDP in place of PureDP": "--delta or --rho",
    "Give a PureDP budget": "Give --epsilon without --delta",
    "confide.Ledger(path, limit=...) or `confide": "`confide",
    "confide.Ledger(url, limit=...) or `confide": "`confide",
    " on the command line or overwrite=True in Python": "",
    "None (noise from the operating system) or ": "",
    "n_jobs must be None, a": "n_jobs must be a",
    "cache is not a folder": "--cache is not a folder",
    "leave cache out": "leave --cache out",
    "a positive number, a row bound, or None for 1": "a positive number",
    ", or an object with a loss of your own": "",
    "expected_tries must be None, or a number": "expected_tries must be a number",
    "held_out must be None, or a number": "held_out must be a number",
    "Use utility_bound on plans with the bounds that you consider": "`confide plan` shows a bound for --n-rows-bounds",
    "sample_size needs": "a sample size needs",
    "`chosen_schema(n_rows)` makes": "`confide plan` shows",
    "that of `chosen_map(n_rows)`": "that which `confide plan` shows",
    "leave inference_share at 0": "leave --intervals out",
    "Leave inference_share at 0": "Leave --intervals out",
    "set inference_share to 0": "leave --intervals out",
    "set intervals to False": "leave --intervals out",
    "set intervals=True": "give --intervals auto",
    "set fit_intercept to True": "leave --no-intercept out",
    "fit_intercept=True": "--intercept",
    "fit_intercept=False": "--no-intercept",
    "units='original' needs a schema": "original units need a schema",
    "budget=inf": "--epsilon inf",
    "the budget is inf": "--epsilon is inf",
    "centre=False": "--no-centre",
    "match_mean=False": "--no-match-mean",
    "or a CategoryColumn for a column that the model does not use": "or that of another with its levels (see the help)",
    "set allow_hidden=True": "give --allow-hidden",
    "Lower `budget`": "Lower --epsilon or --rho",
    "a HuberRegressor": "--model huber",
}
"""What is replaced wherever it stands, because word by word would not do."""

_CLASSES = {
    "AdditiveClassifier": "--model additive",
    "AdditiveRegressor": "--model additive",
    "ERMClassifier": "--model erm",
    "ERMRegressor": "--model erm",
    "HuberRegressor": "--model huber",
    "KernelSVC": "--model kernel-svm",
    "LinearSVC": "--model svm",
    "LogisticRegression": "--model logistic",
    "PoissonRegressor": "--model poisson",
    "PrivateSearchCV": "confide search",
    "Ridge": "--model ridge",
    "ApproxDP": "--delta",
    "PureDP": "--epsilon",
    "ZCDP": "--rho",
}
_VALUES = ("logistic_hinge", "huber_hinge", "smooth_hinge", "clipped_squared")
"""Values of options that have dashes on the command line."""

_NAMES = [name for name in OPTION_OF if "_" in name]
"""Parameters that nobody takes for words."""
_WORDS = [name for name in OPTION_OF if "_" not in name]
"""Parameters that are also words. Such a word stands for the option where a sentence says what it must be, before an equals
sign, and between backticks."""

_OUTSIDE = r"(?<![\w\"'/.-])"
"""Not within a word, a path or a quoted name: names in double quotes are columns, and stay as they are."""
_CLASS = re.compile(rf"{_OUTSIDE}({'|'.join(_CLASSES)})(?![\w\"'/(-])")
_ANY_VALUE = re.compile(rf"(?<![\w\"/.-])({'|'.join(_VALUES)})(?![\w\"/.-])")
_IN_BACKTICKS = re.compile(rf"`({'|'.join(OPTION_OF)})`")
_PARAMETER = re.compile(rf"{_OUTSIDE}({'|'.join(_NAMES)})(?!\w)(?![\"'/.-]*[/\"])(?:=(?=\S))?")
_VALUE = re.compile(rf"{_OUTSIDE}({'|'.join(_WORDS)})=(?:'([^']+)'|\"([^\"]+)\"|([\w-]+))")
_SUBJECT = re.compile(rf"(^|[.;:,] )({'|'.join(_WORDS)})(?= (?:must|is|does|needs) )")
_URL = re.compile(r"\w[\w+.-]*://\S*[^\s.:;,]")
_IN_PLACE_OF_A_URL = "\ue000"
"""A letter of private use, which no message has."""


def in_words_of_options(message: str) -> str:
    """The message of a refusal, with the names of options. URLs stay as they are: theirs are the words of a server."""
    urls = iter(_URL.findall(message))
    message = _renamed(_URL.sub(_IN_PLACE_OF_A_URL, message))
    return re.sub(_IN_PLACE_OF_A_URL, lambda found: next(urls, found[0]), message)


def _renamed(message: str) -> str:
    for phrase, words in _PHRASES.items():
        message = message.replace(phrase, words)
    message = _ANY_VALUE.sub(lambda found: found[1].replace("_", "-"), message)
    message = _CLASS.sub(lambda found: _CLASSES[found[1]], message)
    message = _IN_BACKTICKS.sub(lambda found: OPTION_OF[found[1]], message)
    message = _VALUE.sub(lambda found: f"{OPTION_OF[found[1]]} {found[2] or found[3] or found[4]}", message)
    message = _PARAMETER.sub(lambda found: OPTION_OF[found[1]] + (" " if found[0].endswith("=") else ""), message)
    return _SUBJECT.sub(lambda found: f"{found[1]}{OPTION_OF[found[2]]}", message)
