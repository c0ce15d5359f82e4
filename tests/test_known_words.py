"""Which word or name was meant, and that every list of words asks so."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import is_dataclass
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import confide
from confide import (
    ApproxDP,
    HuberRegressor,
    Ledger,
    LogisticRegression,
    ParameterError,
    Schema,
    SchemaError,
    audit,
    planning,
)
from confide.accounting.batches import Batch
from confide.effects.effects import Effects
from confide.estimators.private_bounds import PrivateBounds
from confide.evaluations.class_rates import ClassEvaluation
from confide.evaluations.model_comparison import ModelComparison
from confide.evaluations.number_errors import NumberEvaluation
from confide.inference.intervals import JointUncertainty, Uncertainty
from confide.inference.rates import Evaluation
from confide.inference.table import CoefficientTable
from confide.known_words import closest, listed_unknown, words_of
from confide.report.families import Family


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("Age", "age"),
        (" hours  [x] ", "hours [x]"),
        ("educaton", "education"),
        ("CAPITAL_GAIN", "capital-gain"),
        ("zip", ""),
        ("!", ""),
    ],
)
def test_a_name_that_was_meant_is_found_in_spite_of_case_blanks_and_separators(given, meant):
    """A name that is not alike has none."""
    assert closest(given, ["age", "hours [x]", "education", "capital-gain"]) == meant


def test_unknown_names_and_words_are_followed_by_what_was_meant():
    """Each unknown name by the known one that is like it, and a list of words by one question."""
    assert listed_unknown(["Age", "zip"], ["age", "sex"]) == '"Age" (did you mean "age"?), "zip"'
    assert words_of(("rbf", "cauchy"), "Cauchy ") == "'rbf', 'cauchy' (did you mean \"cauchy\"?)"
    assert words_of((1, 2), None) == "'1', '2'"


_PUBLIC = [getattr(place, name) for place in (confide, planning, audit) for name in place.__all__]
_RESULTS = [
    *(Batch, PrivateBounds),
    *(Effects, ClassEvaluation, NumberEvaluation, ModelComparison, CoefficientTable),
    *(Uncertainty, JointUncertainty, Family, *Evaluation.__subclasses__()),
]
"""Classes of what fits and functions give, which users do not name."""
_METHODS = [
    method
    for kind in dict.fromkeys([*(kind for kind in _PUBLIC if inspect.isclass(kind)), *_RESULTS])
    for name in dir(kind)
    if name[0] != "_"
    and inspect.isroutine(method := getattr(kind, name))
    and str(getattr(method, "__module__", "")).startswith("confide.")
    and hasattr(method, "__code__" if inspect.isfunction(method) else "__func__")
    and "_available_if" not in inspect.getfile(getattr(method, "__code__", confide))  # scikit-learn asks its first argument
]
_PUBLIC_FUNCTIONS = [each for each in _PUBLIC if inspect.isfunction(each)]
_CLASSES = [
    each for name in confide.__all__ if is_dataclass(each := getattr(confide, name)) and not issubclass(each, BaseEstimator)
]


@pytest.mark.parametrize("function", [*_PUBLIC_FUNCTIONS, *_METHODS], ids=lambda each: each.__qualname__)
def test_a_misspelt_keyword_argument_is_refused_with_the_one_that_was_meant(function):
    """Of public functions and methods, each longer keyword argument without its last but one letter; nothing was done."""
    known = inspect.signature(function).parameters.items()
    passes_on = any(each.kind is each.VAR_KEYWORD for _, each in known)  # and refuses by words of its own
    names = [name for name, each in known if each.default is not each.empty and len(name) > 4 and not passes_on]
    for name in names:
        with pytest.raises(TypeError, match=f"Did you mean '{name}'"):
            function(**{name[:-2] + name[-1]: 1})
    with pytest.raises(TypeError, match="argument"):
        function(zyx=1)


@pytest.mark.parametrize("kind", _CLASSES)
def test_a_misspelt_keyword_of_a_budget_or_another_public_class_is_refused_with_the_one_that_was_meant(kind):
    """As for functions. Estimators have words of their own for this."""
    for name in inspect.signature(kind).parameters:
        with pytest.raises(TypeError, match=f"Did you mean '{name}'"):
            kind(**{name + name[-1]: 1})
    with pytest.raises(TypeError, match="argument"):
        kind(zyx=1)


def test_the_classes_that_users_write_by_hand_are_among_those_that_were_tried():
    """Budgets, a schema, penalties and a prior."""
    written = {"PureDP", "ApproxDP", "ZCDP", "Schema", "Smooth", "StronglyConvex", "PublicPrior"}
    assert written <= {kind.__name__ for kind in _CLASSES}


def test_a_misspelt_weight_of_rows_is_refused_with_the_one_that_was_meant():
    """`fit` passes its keywords on, and refuses them itself."""
    with pytest.raises(TypeError, match=r"'sampl_weight'\. Did you mean 'sample_weight'\?"):
        LogisticRegression(1.0).fit([[0.0], [1.0]], [0, 1], sampl_weight=[1.0, 1.0])


def test_every_refusal_that_lists_words_or_columns_asks_which_was_meant():
    """In the source: where a text says that something must be a certain word, or is no column, a suggestion is filled in."""
    lists = re.compile(
        r"must be one of \{|must be (?:one of )?\\?['\"]\w|"
        r"\w\W+(?:is|are) no (?:number )?column|there is no column|\{what\}\. The"
    )
    asks = re.compile(r"suggestion\(|words_of\(|listed_unknown\(|listed_absent\(|\{near\}|\{meant\}")
    seen, silent = 0, []
    package = Path(confide.__file__).parent
    for path in package.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        filled_in = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
        parts = {id(part) for node in filled_in for part in ast.walk(node)} - {id(node) for node in filled_in}
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.JoinedStr | ast.Constant)
                and id(node) not in parts
                and lists.search(text := ast.unparse(node))
            ):
                seen += 1
                silent += [] if asks.search(text) else [(path.name, text)]
    assert seen > 10
    assert silent == []


def refused(make):
    """What is said when it is refused."""
    with pytest.raises(ParameterError) as caught:
        make()
    return str(caught.value)


@pytest.mark.parametrize(
    ("make", "meant"),
    [
        (lambda: LogisticRegression(1.0, neighbours="replace_one").plan(1000, 2), "replace-one"),
        (lambda: Ledger(limit=1.0, neighbours="Add or remove one"), "add-or-remove-one"),
        (lambda: Ledger(limit=ApproxDP(1.0, 1e-6), accounting="renyi_"), "renyi"),
        (lambda: LogisticRegression(1.0, alpha="atuo").plan(1000, 2), "auto"),
        (lambda: LogisticRegression(1.0, centre="Auto").plan(1000, 2), "auto"),
        (lambda: LogisticRegression(1.0, inference_share="auto ").plan(1000, 2), "auto"),
        (lambda: HuberRegressor(1.0, target_bound=1.0, threshold="atuo").plan(1000, 2), "auto"),
    ],
)
def test_parameters_that_take_words_ask_which_was_meant(make, meant):
    """Relations, ways of adding, and "auto" beside numbers; a word that is like none is answered without a question."""
    assert f'(did you mean "{meant}"?)' in refused(make)
    assert "did you mean" not in refused(lambda: Ledger(limit=1.0, neighbours="zip"))


def test_the_scale_of_a_column_asks_which_was_meant():
    """In a schema."""
    with pytest.raises(SchemaError, match=r"\"log10\" \(did you mean \"log10\"\?\)"):
        Schema.from_dict({"columns": {"x": {"low": 0, "high": 1, "scale": "Log-10"}}})
