"""The estimator that `--model` names: an additive model unless another is asked for."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Literal

from confide.cli.parameters import OPTION_OF
from confide.errors import ParameterError

if TYPE_CHECKING:
    from confide.estimators.linear_model import PrivateLinearModel
    from confide.features.schema import Schema
    from confide.privacy.budgets import Budget

Kind = Literal["additive", "logistic", "svm", "kernel-svm", "huber", "poisson", "ridge", "erm"]
"""The names of models."""

_FOR_NUMBERS = ("huber", "poisson", "ridge")


def new_estimator(kind: str, budget: Budget, schema: Schema | None, **parameters: Any) -> PrivateLinearModel:
    """The estimator that `--model` names, with these parameters.

    For an additive model, the target of the schema says whether classes or numbers are predicted.

    Raises
    ------
    ParameterError
        If the model does not predict what the schema's target holds, or needs a schema and has none.
    """
    predicts_numbers = predicts_a_number(schema)
    _check_suited(kind, schema, predicts_numbers=predicts_numbers)
    found = classes_of_kinds()[kind]
    chosen = found[-1] if predicts_numbers else found[0]
    unknown = [name for name in parameters if name not in inspect.signature(chosen).parameters]
    if unknown:
        what = "numbers" if predicts_numbers else "labels"
        raise ParameterError(f"{OPTION_OF[unknown[0]]} does nothing for --model {kind} that predicts {what}; leave it out.")
    estimator: PrivateLinearModel = chosen(budget, schema=schema, **parameters)
    return estimator


def classes_of_kinds() -> dict[str, tuple[Any, ...]]:
    """The estimators of each kind of model: for classes or for numbers, or first for classes and then for numbers."""
    from confide.estimators.additive import AdditiveClassifier, AdditiveRegressor
    from confide.estimators.erm import ERMClassifier, ERMRegressor
    from confide.estimators.logistic import LogisticRegression
    from confide.estimators.loss_regression import HuberRegressor, PoissonRegressor
    from confide.estimators.regression import Ridge
    from confide.estimators.svm import KernelSVC, LinearSVC

    return {
        "additive": (AdditiveClassifier, AdditiveRegressor),
        "logistic": (LogisticRegression,),
        "svm": (LinearSVC,),
        "kernel-svm": (KernelSVC,),
        "huber": (HuberRegressor,),
        "poisson": (PoissonRegressor,),
        "ridge": (Ridge,),
        "erm": (ERMClassifier, ERMRegressor),
    }


def models_with(parameter: str) -> list[str]:
    """The kinds of models that have a parameter."""
    return [
        kind
        for kind, found in classes_of_kinds().items()
        if any(parameter in inspect.signature(each).parameters for each in found)
    ]


def predicts_a_number(schema: Schema | None) -> bool:
    """Whether the target of a schema is a column of numbers."""
    return schema is not None and schema.target is not None and schema.target.bounds is not None


def _check_suited(kind: str, schema: Schema | None, *, predicts_numbers: bool) -> None:
    if kind == "additive" and schema is None:
        raise ParameterError(
            "an additive model, which is the default, needs the bounds of each column: give --schema; or --model logistic "
            "for straight lines."
        )
    if kind in _FOR_NUMBERS and not predicts_numbers:
        raise ParameterError(
            f"--model {kind} predicts numbers, so it needs --schema with a target of numbers, for example target = {{ "
            f'column = "price", low = 0, high = 20000 }}. For labels take --model additive, logistic, svm or kernel-svm.'
        )
    if predicts_numbers and kind not in (*_FOR_NUMBERS, "additive", "erm"):
        raise ParameterError(
            f"--model {kind} predicts labels, and the schema's target is a column of numbers. Take --model additive, huber, "
            f"poisson, ridge or erm."
        )
