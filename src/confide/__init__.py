"""confide: models trained on data about people, released with a privacy guarantee that a sceptic can check."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from confide._version import __version__
from confide.submodules import on_first_use

if TYPE_CHECKING:
    from confide import datasets as datasets
    from confide import planning as planning
    from confide.accounting.ledger import Ledger as Ledger
    from confide.data.opened import open_rows as open_rows
    from confide.data.speed import progress as progress
    from confide.erm.group_bounds import BoxBound as BoxBound
    from confide.erm.group_bounds import GroupBound as GroupBound
    from confide.erm.row_bounds import BallBound as BallBound
    from confide.errors import BudgetExceeded as BudgetExceeded
    from confide.errors import BudgetWarning as BudgetWarning
    from confide.errors import ConfideError as ConfideError
    from confide.errors import FileError as FileError
    from confide.errors import InputError as InputError
    from confide.errors import LedgerError as LedgerError
    from confide.errors import NotCertified as NotCertified
    from confide.errors import ParameterError as ParameterError
    from confide.errors import PrivacyWarning as PrivacyWarning
    from confide.errors import SchemaError as SchemaError
    from confide.estimators.erm import ERMClassifier as ERMClassifier
    from confide.estimators.erm import ERMRegressor as ERMRegressor
    from confide.estimators.logistic import LogisticRegression as LogisticRegression
    from confide.estimators.loss_regression import HuberRegressor as HuberRegressor
    from confide.estimators.loss_regression import PoissonRegressor as PoissonRegressor
    from confide.estimators.parts import intervals_from_parts as intervals_from_parts
    from confide.estimators.persistence import load as load
    from confide.estimators.regression import Ridge as Ridge
    from confide.estimators.search import PrivateSearchCV as PrivateSearchCV
    from confide.estimators.svm import KernelSVC as KernelSVC
    from confide.estimators.svm import LinearSVC as LinearSVC
    from confide.estimators.transformers import RandomFourierFeatures as RandomFourierFeatures
    from confide.estimators.transformers import SchemaEncoder as SchemaEncoder
    from confide.features.schema import Schema as Schema
    from confide.guarantee import Guarantee as Guarantee
    from confide.inference.evaluation import evaluate as evaluate
    from confide.privacy.budgets import ZCDP as ZCDP
    from confide.privacy.budgets import ApproxDP as ApproxDP
    from confide.privacy.budgets import Neighbours as Neighbours
    from confide.privacy.budgets import PureDP as PureDP

# Public names and their modules, imported on first use: `import confide` stays light.
_EXPORTS = {
    "ApproxDP": "confide.privacy.budgets",
    "BallBound": "confide.erm.row_bounds",
    "BoxBound": "confide.erm.group_bounds",
    "BudgetExceeded": "confide.errors",
    "BudgetWarning": "confide.errors",
    "ConfideError": "confide.errors",
    "ERMClassifier": "confide.estimators.erm",
    "ERMRegressor": "confide.estimators.erm",
    "FileError": "confide.errors",
    "GroupBound": "confide.erm.group_bounds",
    "Guarantee": "confide.guarantee",
    "InputError": "confide.errors",
    "HuberRegressor": "confide.estimators.loss_regression",
    "KernelSVC": "confide.estimators.svm",
    "Ledger": "confide.accounting.ledger",
    "LedgerError": "confide.errors",
    "LinearSVC": "confide.estimators.svm",
    "LogisticRegression": "confide.estimators.logistic",
    "Neighbours": "confide.privacy.budgets",
    "NotCertified": "confide.errors",
    "ParameterError": "confide.errors",
    "PrivacyWarning": "confide.errors",
    "PoissonRegressor": "confide.estimators.loss_regression",
    "PrivateSearchCV": "confide.estimators.search",
    "PureDP": "confide.privacy.budgets",
    "RandomFourierFeatures": "confide.estimators.transformers",
    "Ridge": "confide.estimators.regression",
    "Schema": "confide.features.schema",
    "SchemaEncoder": "confide.estimators.transformers",
    "SchemaError": "confide.errors",
    "ZCDP": "confide.privacy.budgets",
    "evaluate": "confide.inference.evaluation",
    "intervals_from_parts": "confide.estimators.parts",
    "load": "confide.estimators.persistence",
    "open_rows": "confide.data.opened",
    "progress": "confide.data.speed",
}

_module_of = on_first_use(__name__)

__all__ = ["__version__", "datasets", "planning", *_EXPORTS]  # noqa: PLE0604 - every element is a string


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        value = getattr(importlib.import_module(_EXPORTS[name]), name)
        globals()[name] = value
        return value
    return _module_of(name)


def __dir__() -> list[str]:
    return sorted(__all__)
