"""confide: models trained on data about people, released with a privacy guarantee that a sceptic can check.

The names below are all that users need. Modules of the package are plumbing, and may change between versions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from confide._version import __version__
from confide.first_use import DONE_ABOVE, public_names

# The only list of public names. Each is imported on first use, so that `import confide` stays light.
if TYPE_CHECKING:
    from confide import audit as audit
    from confide import datasets as datasets
    from confide import planning as planning
    from confide.accounting.ledger import Ledger as Ledger
    from confide.data.federated import FederatedRows as FederatedRows
    from confide.displays.coefficients import CoefficientsDisplay as CoefficientsDisplay
    from confide.displays.counts import CalibrationDisplay as CalibrationDisplay
    from confide.displays.counts import RocDisplay as RocDisplay
    from confide.displays.plans import LedgerDisplay as LedgerDisplay
    from confide.displays.plans import PrivacyAccuracyDisplay as PrivacyAccuracyDisplay
    from confide.erm.group_bounds import BoxBound as BoxBound
    from confide.erm.group_bounds import GroupBound as GroupBound
    from confide.erm.penalties import StronglyConvex as StronglyConvex
    from confide.erm.row_bounds import BallBound as BallBound
    from confide.errors import AccuracyWarning as AccuracyWarning
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
    from confide.errors import SchemaWarning as SchemaWarning
    from confide.errors import StudyError as StudyError
    from confide.estimators.additive import AdditiveClassifier as AdditiveClassifier
    from confide.estimators.additive import AdditiveRegressor as AdditiveRegressor
    from confide.estimators.additive import EffectsDisplay as EffectsDisplay
    from confide.estimators.calibration import CalibratedClassifier as CalibratedClassifier
    from confide.estimators.description import describe as describe
    from confide.estimators.erm import ERMClassifier as ERMClassifier
    from confide.estimators.erm import ERMRegressor as ERMRegressor
    from confide.estimators.evaluation import evaluate as evaluate
    from confide.estimators.linear_model import PublicPrior as PublicPrior
    from confide.estimators.loading import load as load
    from confide.estimators.logistic import LogisticRegression as LogisticRegression
    from confide.estimators.parties import take_part as take_part
    from confide.estimators.private_bounds import private_bounds as private_bounds
    from confide.estimators.regression import HuberRegressor as HuberRegressor
    from confide.estimators.regression import PoissonRegressor as PoissonRegressor
    from confide.estimators.regression import Ridge as Ridge
    from confide.estimators.search import PrivateSearchCV as PrivateSearchCV
    from confide.estimators.svm import KernelSVC as KernelSVC
    from confide.estimators.svm import LinearSVC as LinearSVC
    from confide.estimators.transformers import RandomFourierFeatures as RandomFourierFeatures
    from confide.estimators.transformers import SchemaEncoder as SchemaEncoder
    from confide.features.forms import Smooth as Smooth
    from confide.features.schema import Schema as Schema
    from confide.guarantee import Guarantee as Guarantee
    from confide.intake.rows import open_rows as open_rows
    from confide.privacy.budgets import ZCDP as ZCDP
    from confide.privacy.budgets import ApproxDP as ApproxDP
    from confide.privacy.budgets import Neighbours as Neighbours
    from confide.privacy.budgets import PureDP as PureDP
    from confide.report.families import family as family
    from confide.threads import progress as progress
else:  # type checkers know the names above, and no others
    __all__, __getattr__, __dir__ = public_names(__name__, __file__)
    __all__ += ["__version__"]

# A fitted model has a method for its report, and the room of reports lies above that of the estimators.
DONE_ABOVE["write_report"] = "confide.report.writing"
