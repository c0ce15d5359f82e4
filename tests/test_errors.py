"""The tree of exceptions is the one that the module's docstring draws."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import string
from pathlib import Path

import numpy as np
import pytest

import confide
from confide import errors

CLASSES = {name: each for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, Exception)}


def test_the_drawing_shows_every_exception_with_its_bases():
    """The drawing in the docstring shows the depth of each class, and its built-in base in parentheses."""
    drawn = re.findall(r"^    ([│├└─ ]*)(\w+)(?: \((\w+)\))?(?:  .*)?$", inspect.getdoc(errors), re.MULTILINE)
    above, found = [], set()
    for branch, name, builtin in drawn:
        kind = CLASSES[name]
        depth = len(branch) // 4
        del above[depth:]
        bases = {base.__name__ for base in kind.__bases__}
        assert bases == {*([above[-1]] if above else []), *([builtin] if builtin else [])} or name == "ConfideError"
        above.append(name)
        found.add(name)
    assert found == set(CLASSES)


def test_every_exception_says_what_it_means_and_is_raised_on_purpose():
    """All exceptions except warnings have one root, and each has a docstring."""
    for name, kind in CLASSES.items():
        assert kind.__doc__, name
        assert issubclass(kind, errors.ConfideError) != issubclass(kind, UserWarning)


def test_each_sentence_is_asked_for_by_its_name_with_the_facts_that_it_shows():
    """In the source: a name without a sentence, or a fact that is missing, would hide a refusal behind another error."""
    asked, texts = {}, set()
    for path in Path(confide.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant):
                texts.add(node.value)
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "wording" and isinstance(node.args[0], ast.Constant):
                facts = {fact.arg for fact in node.keywords}
                assert asked.setdefault(node.args[0].value, facts) == facts
    shown = {
        name: {re.split(r"[.\[]", field)[0] for _, field, _, _ in string.Formatter().parse(text) if field}
        for name, text in errors.SENTENCES.items()
    }
    assert asked.items() <= shown.items()
    assert {name: shown[name] for name in shown.keys() - asked.keys() if shown[name] or name not in texts} == {}
    assert errors.wording("file exists", path="a.json").startswith("a.json exists already; give another name")


def test_those_that_users_catch_are_public():
    """They are attributes of the package."""
    public = {name for name in CLASSES if hasattr(confide, name)}
    assert public >= {"ConfideError", "ParameterError", "SchemaError", "InputError", "FileError", "LedgerError"}
    assert all(getattr(confide, name) is CLASSES[name] for name in public)


@functools.cache
def fitted():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (300, 2))
    return confide.LogisticRegression(5.0, classes=[0, 1], inference_share=0.3).fit(X, X[:, 0] > 0), X, X[:, 0] > 0


def fit_of(kind, **given):
    return lambda **flag: kind(1.0, **given, **flag).fit(*fitted()[1:])


FITTED_BY = {
    "AdditiveClassifier": fit_of(confide.AdditiveClassifier, bounds=[(-1, 1)] * 2),
    "AdditiveRegressor": fit_of(confide.AdditiveRegressor, bounds=[(-1, 1)] * 2, target_bound=1.0),
    "ERMClassifier": fit_of(confide.ERMClassifier),
    "ERMRegressor": fit_of(confide.ERMRegressor, target_bound=1.0),
    "KernelSVC": fit_of(confide.KernelSVC),
    "LinearSVC": fit_of(confide.LinearSVC),
    "LogisticRegression": fit_of(confide.LogisticRegression),
    **{name: fit_of(getattr(confide, name), target_bound=1.0) for name in ("HuberRegressor", "PoissonRegressor", "Ridge")},
}
CALLS = {
    **FITTED_BY,
    "Ledger": lambda **flag: confide.Ledger(limit=1.0, **flag),
    "Ledger.sublimit": lambda **flag: confide.Ledger(limit=1.0).sublimit("study", 1.0, **flag),
    "RandomFourierFeatures": lambda **flag: confide.RandomFourierFeatures(**flag).fit(fitted()[1]),
    "GroupBound": lambda linked: confide.GroupBound((1, 1), (1.0, 0.5), (linked, linked)),
    "CoefficientIntervals.conf_int": lambda **flag: fitted()[0].conf_int(**flag),
    "PrivateLinearModel.report": lambda **flag: fitted()[0].report("no/such/folder.html", **flag),
    "PrivateLinearModel.save": lambda **flag: fitted()[0].save("no/such/folder.json", **flag),
    "CalibratedClassifier.save": lambda **flag: calibrated().save("no/such/folder.json", **flag),
    "PrivateSearchCV.save": lambda **flag: searched().save("no/such/folder.json", **flag),
    "attack": lambda **flag: confide.audit.attack(lambda _: [0.0], ([1.0],), ([2.0],), budget=1.0, n_releases=40, **flag),
    "describe": lambda **flag: confide.describe(None, FLAGS_SCHEMA, budget=1.0, **flag),
    "evaluate": lambda **flag: confide.evaluate(*fitted(), budget=1.0, **flag),
    "open_rows": lambda **flag: confide.open_rows("no.csv", FLAGS_SCHEMA, **flag),
    "sample_size": lambda **flag: confide.planning.sample_size(fitted()[0], 2, excess=0.1, **flag),
}
FLAGS_SCHEMA = confide.Schema({"a": {"low": 0, "high": 1}}, target={"column": "y", "negative": "n", "positive": "y"})
NOT_OURS = {"deep", "sample_weight", "exposure", "same_release"}
"""Parameters of scikit-learn's own methods, and a part of a result."""


@functools.cache
def calibrated():
    model, X, labels = fitted()
    return confide.CalibratedClassifier(model, confide.evaluate(model, X, labels, budget=5.0))


def searched():
    search = confide.PrivateSearchCV(confide.LogisticRegression(classes=[0, 1]), {"alpha": [0.1, 1.0]}, budget=5.0)
    return search.fit(*fitted()[1:])


def flags():
    """Each parameter of the public interface that is True or False, with the name of what takes it."""
    found = set()
    modules = [getattr(confide, name) for name in confide.__all__ if inspect.ismodule(getattr(confide, name))]
    public = [(name, getattr(module, name)) for module in (confide, *modules) for name in getattr(module, "__all__", [])]
    for name, thing in public:
        methods = inspect.getmembers(thing, inspect.isfunction) if inspect.isclass(thing) else []
        named = [(method.__qualname__, method) for what, method in methods if not what.startswith("_")]
        own = [(name, thing)] if callable(thing) and name not in CLASSES else []
        for where, taker in [*own, *named]:
            for parameter in inspect.signature(taker).parameters.values():
                if re.search(r"\bbool\b", str(parameter.annotation)) or isinstance(parameter.default, bool):
                    found |= {(where, parameter.name)} if parameter.name not in NOT_OURS else set()
    return sorted(found)


@pytest.mark.parametrize(("where", "name"), flags())
@pytest.mark.parametrize("value", ["False", 1, None])
@pytest.mark.filterwarnings("ignore")
def test_no_text_or_number_counts_as_true_or_false(where, name, value):
    """The text "False" is true for Python. A command line or a configuration file may bring it."""
    with pytest.raises(errors.ParameterError):
        CALLS[where](**{name: value})


def test_a_flag_is_true_or_false_of_python_or_of_numpy():
    assert errors.checked_flag("intervals", np.True_) is True
    assert errors.checked_flag("intervals", False) is False
    for wrong in (1, 0, "True", None, [], np.array([True])):
        with pytest.raises(errors.ParameterError, match="intervals must be True or False"):
            errors.checked_flag("intervals", wrong)


NUMBERS = {"a float": 1.5, "an int": 2, "NumPy's": np.float32(0.5), "NumPy's whole one": np.int8(3)}
NO_NUMBERS = {"true": True, "NumPy's true": np.True_, "text": "1", "nothing": None, "a complex number": 1j}


@pytest.mark.parametrize("value", NUMBERS.values(), ids=NUMBERS)
def test_numbers_of_every_library_are_numbers(value):
    """Whole ones are whole whatever their type is, and a checked number has the type of Python."""
    assert errors.is_number(value)
    assert errors.is_whole(value) == (value in (2, 3))
    assert type(errors.checked_number("it", value, 0.0, 10.0, "0 to 10")) is float


@pytest.mark.parametrize("value", NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_truth_values_and_text_are_no_numbers(value):
    """The message says what is expected, in the error that was asked for."""
    assert not errors.is_number(value)
    assert not errors.is_whole(value)
    with pytest.raises(errors.SchemaError, match=r"^it must be a whole number from 1 to 4\.$"):
        errors.checked_whole("it", value, 1, 4, errors.SchemaError)


def test_the_ends_of_a_range_are_in_it_and_what_is_no_number_is_not():
    """A number beyond the range of doubles and a NaN are refused like any other."""
    assert [errors.checked_whole("it", end, 1, 4) for end in (1, 4)] == [1, 4]
    for value in (0.999, 4.001, float("nan"), float("inf"), 10**400):
        with pytest.raises(errors.ParameterError, match=r"^it must be a number from 1 to 4\.$"):
            errors.checked_number("it", value, 1.0, 4.0, "1 to 4")
