"""Docstrings of public names say what users need: parameters, errors, guarantee and source."""

from __future__ import annotations

import dataclasses
import inspect
import re
from itertools import pairwise

import pytest

import confide

PLUMBING = {
    "BallBound.check_width",
    "BallBound.clip",
    "BallBound.to_dict",
    "GroupBound.check_width",
    "GroupBound.clip",
    "GroupBound.to_dict",
    "FederatedRows.checked",
    "FederatedRows.count",
}
"""Methods by which rooms of the package talk to each other. Their protocols describe them."""
USING_ROWS = {"LogisticRegression", "LinearSVC", "KernelSVC", "ERMClassifier", "AdditiveClassifier"} | {
    *("AdditiveRegressor", "Ridge", "HuberRegressor", "PoissonRegressor", "ERMRegressor", "PrivateSearchCV"),
    *("describe", "evaluate", "private_bounds"),
}
"""Names that release something about rows."""
WITHOUT_ROWS = {
    **dict.fromkeys(("PureDP", "ApproxDP", "ZCDP", "Neighbours", "Guarantee"), "says what a guarantee is"),
    **dict.fromkeys(("BallBound", "BoxBound", "GroupBound", "Schema", "Smooth"), "public knowledge, written without rows"),
    "progress": "shows passes over rows to who fits",
}
"""Public names that are neither modules nor errors, and whose docstrings owe no guarantee; and the reason."""
SPEAKING_OF_ROWS = {
    name
    for name in set(confide.__all__) - set(WITHOUT_ROWS) - {"__version__"}
    if not inspect.ismodule(getattr(confide, name))
    and not (inspect.isclass(getattr(confide, name)) and issubclass(getattr(confide, name), BaseException))
}
NO_ARGUMENT_CAN_BE_WRONG = {"planning.Compared", "planning.Forecast", "planning.PrivacyRange", "planning.SampleSize"} | {
    *(
        "planning.ExcessRiskBound",
        "planning.FeatureApproximation",
        "planning.UtilityBound",
        "datasets.SplitData",
        "Guarantee",
    ),
    *(
        f"audit.{name}"
        for name in ("AuditResult", "ExactResult", "Leak", "LeaksResult", "OwnCheck", "Pair", "ReplayResult", "Step")
    ),
}
"""Results, which users do not make."""


def sections(text):
    """Heading -> lines of each section of a numpydoc docstring."""
    lines = text.split("\n")
    found, current = {}, None
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if below and set(below) == {"-"} and line.strip():
            current = line.strip()
            found[current] = []
        elif current and set(line) != {"-"}:
            found[current].append(line)
    return found


def described(lines):
    """The names of a section: `a, b : what they are`."""
    found = set()
    for line in lines:
        if match := re.match(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: :(?: |$)|$)", line):
            found |= {name.strip("* ") for name in match[1].split(",")}
    return found


def public():
    """Each public function, class and method of confide, with its dotted name."""
    for name in sorted(set(confide.__all__) - {"__version__"}):
        value = getattr(confide, name)
        if inspect.ismodule(value):
            inner = ((each, getattr(value, each)) for each in getattr(value, "__all__", dir(value)) if each[0] != "_")
            members = [(each, found) for each, found in inner if getattr(found, "__module__", "").startswith(value.__name__)]
            yield from ((f"{name}.{each}", found) for each, found in members)
            continue
        yield name, value
        if inspect.isclass(value) and not issubclass(value, BaseException):
            for each, found in inspect.getmembers(value, callable):
                ours = (getattr(found, "__module__", None) or "").startswith("confide")
                if ours and not each.startswith("_") and f"{name}.{each}" not in PLUMBING and each != "get_params":
                    yield f"{name}.{each}", found


def parameters_of(value):
    """Parameters that a caller gives by their names."""
    if inspect.isclass(value) and issubclass(value, str | BaseException):
        return []
    given = inspect.signature(value).parameters.values()
    return [each.name for each in given if each.name not in ("self", "cls") and each.kind is not each.VAR_KEYWORD]


NAMES = dict(public())


@pytest.mark.parametrize("name", NAMES)
def test_a_docstring_describes_every_parameter(name):
    """By its name, a colon, and what it is: shape, unit, range."""
    found = sections(inspect.getdoc(NAMES[name]) or "")
    known = described(found.get("Parameters", []))
    if dataclasses.is_dataclass(NAMES[name]):
        known |= described(found.get("Attributes", []))
    assert [each for each in parameters_of(NAMES[name]) if each not in known] == []


@pytest.mark.parametrize("name", NAMES)
def test_each_parameter_has_words_and_rows_have_shapes(name):
    """What it is stands behind the colon or below; rows and labels say (n, ...) or where that is said."""
    lines = sections(inspect.getdoc(NAMES[name]) or "").get("Parameters", [])
    for line, below in pairwise([*lines, ""]):
        if match := re.match(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: :(.*))?$", line):
            assert (match[2] or "").strip() or below.startswith("    "), f"say what {match[1]} is"
            if {"X", "y", "sample_weight"} & set(match[1].split(", ")):
                assert re.search(r"\(n|as (in|for) |as for the|ignored", line + below), f"give the shape of {match[1]}"


@pytest.mark.parametrize("name", NAMES)
def test_a_docstring_says_what_is_returned(name):
    """Of everything that takes arguments and gives a value. Without arguments, the first line says what it gives."""
    value = NAMES[name]
    if inspect.isclass(value) or not parameters_of(value):
        return
    gives = inspect.signature(value).return_annotation
    found = sections(inspect.getdoc(value) or "")
    if gives not in ("None", "Self", None, inspect.Signature.empty):
        assert [line for line in found.get("Returns", []) if line], "add a section Returns"


@pytest.mark.parametrize("name", NAMES)
def test_a_docstring_says_what_is_raised(name):
    """Where there are parameters; of estimators `fit` says it, of displays `plot`. Each exception is a known one."""
    value = NAMES[name]
    found = sections(inspect.getdoc(value) or "")
    if (
        parameters_of(value)
        and name not in NO_ARGUMENT_CAN_BE_WRONG
        and not (hasattr(value, "fit") or hasattr(value, "plot"))
    ):
        assert found.get("Raises"), "add a section Raises"
    from confide import errors

    for line in found.get("Raises", []):
        if line and not line.startswith(" "):
            assert all(hasattr(errors, each) or each in ("NotFittedError", "ValueError") for each in line.split(", ")), line


@pytest.mark.parametrize("name", sorted(SPEAKING_OF_ROWS))
def test_a_docstring_states_the_guarantee(name):
    """Whatever uses rows of people says what is promised; what releases something, where the theorem is from."""
    text = inspect.getdoc(getattr(confide, name))
    assert "Guarantee: " in text
    if name in USING_ROWS:
        assert re.search(r"Sources?:\s|Proof:\s|proof page", text)


def test_the_check_of_docstrings_sees_what_is_missing():
    """The tests above rest on these two functions."""
    found = sections(
        "Do it.\n\nParameters\n----------\na, b : numbers\n    Both.\nX : array (n, d)\n\nRaises\n------\nInputError\n"
    )
    assert described(found["Parameters"]) == {"a", "b", "X"}
    assert [line for line in found["Raises"] if line] == ["InputError"]
    assert "Returns" not in found
