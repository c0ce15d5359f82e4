"""The written signatures of the parameters that several estimators share, as type checkers must see them.

All else about a parameter is its row in `confide/parameters.py`. Estimators are dataclasses. So `__init__` has explicit
keyword arguments, as scikit-learn requires, and they need not be repeated in each class.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, wraps
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeAlias, TypeVar, cast, dataclass_transform

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from confide.accounting.ledger import Batch, Ledger
from confide.array_types import Array
from confide.erm.penalties import StronglyConvex
from confide.erm.row_bounds import RowBound
from confide.errors import ParameterError
from confide.features.canonical_labels import Label
from confide.features.schema import Schema
from confide.features.toml_form import is_path
from confide.intake.parameters import checked_ledger, schema_at
from confide.known_words import closest
from confide.parameters import PARAMETERS
from confide.privacy.budgets import Budget, Neighbours

if TYPE_CHECKING:
    Given = TypeVar("Given")

    class Opened(Generic[Given]):
        """A parameter that may be given as a path, and is what stands there once it is set."""

        def __get__(self, model: object, kind: object) -> Given | None: ...
        def __set__(self, model: object, value: Given | str | PathLike[str] | None) -> None: ...

    class BaseEstimator:
        """What estimators have of scikit-learn, which ships no types. Beside an untyped base any keyword would pass."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def set_fit_request(self, **asked: Any) -> Self: ...
        def set_score_request(self, **asked: Any) -> Self: ...
        def __sklearn_clone__(self) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...
        @property
        def _repr_html_(self) -> Callable[[], str]: ...
        def _repr_mimebundle_(self, **options: Any) -> dict[str, str]: ...

    class ClassifierMixin:
        """The same, of models."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...

    class TransformerMixin:
        """The same, of steps before a model."""

        def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any: ...
        def set_output(self, *, transform: str | None = None) -> Self: ...

    RegressorMixin: TypeAlias = ClassifierMixin
    MetaEstimatorMixin: TypeAlias = ClassifierMixin
else:
    from sklearn.base import BaseEstimator as BaseEstimator
    from sklearn.base import ClassifierMixin as ClassifierMixin
    from sklearn.base import MetaEstimatorMixin as MetaEstimatorMixin
    from sklearn.base import RegressorMixin as RegressorMixin
    from sklearn.base import TransformerMixin as TransformerMixin

# Parameters that an estimator does not have: the name of ours where scikit-learn or diffprivlib have another one.
#
# A parameter that cannot be honoured is refused, and the refusal says what to write in its place.


@cache
def advice() -> dict[str, dict[str, Any]]:
    """What is said of names that an estimator does not have, in three tables; see `advice.toml`."""
    return tomllib.loads(Path(__file__).with_name("advice.toml").read_text(encoding="utf-8"))


def advice_on(name: str, kind: str, parameters: Collection[str]) -> str:
    """What to say of a parameter that an estimator does not have.

    Parameters
    ----------
    name : the parameter that was given
    kind : the name of the estimator
    parameters : the names of the parameters that it has

    Returns
    -------
    str
        Two sentences: that the parameter is not there, and what to write in its place.
    """
    ours, words = advice()["ours"].get(name, ("", ""))
    if any(name in parameters for name in ours.split()):
        return f"{name}= is not a parameter of {kind}: {words}."
    if name in advice()["none"]:
        return f"{name}= is not a parameter of {kind}: {advice()['none'][name]}."
    meant = f"did you mean {close}=?" if (close := closest(name, parameters)) else f"it has {', '.join(sorted(parameters))}."
    return f"{name}= is not a parameter of {kind}: {meant}"


def _opened(given: dict[str, Any]) -> dict[str, Any]:
    """Parameters in which a path of a schema or of a ledger stands for what is there. A fit refuses a path of nothing."""
    for name, read in (("schema", schema_at), ("ledger", checked_ledger)):
        if is_path(value := given.get(name)) and ("://" in str(value) or Path(value).exists()):
            given[name] = read(value)
    return given


Stores = TypeVar("Stores", bound=Callable[..., None])


def with_advice(stores: Stores) -> Stores:
    """An `__init__` with the same signature, whose refusal of an unknown parameter says what to write in its place.

    Parameters
    ----------
    stores : the `__init__` of an estimator
    """
    known = frozenset(inspect.signature(stores).parameters) - {"self"}

    @wraps(stores)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807  # it takes the place of one
        for name in [name for name in kwargs if name not in known]:
            raise TypeError(advice_on(name, type(self).__name__, known))
        stores(self, *args, **_opened(kwargs))

    __init__.suggests = True  # type: ignore[attr-defined]  # see known_words.with_suggestions
    return cast("Stores", __init__)


_MARK = "other parameters : those that linear models share"
"""In a docstring, this line is replaced by the descriptions of all shared parameters that the docstring leaves out."""
Class = TypeVar("Class")


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
def estimator(cls: type[Class]) -> type[Class]:
    """Make a class an estimator: give it an `__init__` that stores its parameters, and complete its docstring.

    As scikit-learn requires, `__init__` has explicit keyword arguments, and checks and changes nothing, but that the path of
    a schema or of a ledger becomes what lies there, so that copies of the estimator share it.
    """
    made = dataclass(eq=False, repr=False, kw_only=True)(cls)
    made.__init__ = with_advice(made.__init__)  # type: ignore[method-assign]  # the one that dataclass has just written
    if made.__doc__ is not None and _MARK in made.__doc__:
        text = inspect.cleandoc(made.__doc__)
        shared = [PARAMETERS[name] for name in inspect.signature(made).parameters if name in PARAMETERS]
        entries = (f"{row.name} : {row.text}" for row in shared if row.text and f"\n{row.name} :" not in text)
        made.__doc__ = text.replace(_MARK, "\n".join(entries))
    return made


class AdviceOnParameters:
    """An estimator whose `set_params` says what to write in place of a parameter that it does not have."""

    def set_params(self, **params: Any) -> Any:
        """Set parameters by name.

        Parameters
        ----------
        **params : parameters of this estimator, or ``part__parameter`` for those of a part
            As in scikit-learn.

        Returns
        -------
        self

        Raises
        ------
        ParameterError
            If the estimator has no such parameter. Nothing was set.
        """
        known = inspect.signature(type(self)).parameters
        for name in [name for name in params if "__" not in name and name not in known]:
            # The first words are scikit-learn's.
            raise ParameterError(f"Invalid parameter {name!r}. {advice_on(name, type(self).__name__, known)}")
        return super().set_params(**_opened(params))  # type: ignore[misc]  # defined by scikit-learn's BaseEstimator


@estimator
class ModelParameters(AdviceOnParameters):
    """Parameters of every linear model."""

    budget: float | Budget = field(default=1.0, kw_only=False)
    alpha: float | Literal["auto"] = "auto"
    schema: Opened[Schema] = cast(Any, None)
    fit_intercept: bool = True
    intercept_scaling: float | Literal["auto"] = 1.0
    mechanism: Literal["auto", "objective", "output", "output-laplace", "gradient", "sufficient-statistics"] = "auto"
    centre: Literal["auto"] | bool = "auto"
    neighbours: Literal["replace-one", "add-or-remove-one"] | Neighbours = "replace-one"
    n_rows_bounds: tuple[int, int] | None = None
    max_rows_per_person: int = 1
    prior: object = None
    ledger: Opened[Ledger | Batch] = cast(Any, None)
    n_jobs: int | None = None
    random_state: int | None = None


@estimator
class StraightLineParameters:
    """The share of an l1 penalty and the bound on rows, for models of the columns as they are given or encoded."""

    l1_ratio: float = 0.0
    row_norm: float | RowBound | None = None

    @property
    def support_(self) -> NDArray[np.bool_]:
        """Which coefficients are not 0, (n_coefficients,); for three or more classes, not 0 for some class.

        It follows from `coef_`, so it costs no privacy.
        """
        check_is_fitted(self)
        return (np.atleast_2d(self.coef_) != 0.0).any(axis=0)  # type: ignore[attr-defined,no-any-return]  # fitted


Listed: TypeAlias = list[Any] | tuple[Any, ...]
"""A list or a tuple. Type checkers take any text for a `Sequence` and for an `ArrayLike`: they would find no wrong word."""


@estimator
class PenaltyParameter:
    """What is penalised in place of |w|^2, for models whose columns have a meaning."""

    penalty: Literal["smooth"] | Mapping[str, object] | Listed | Array | StronglyConvex | None = None


@estimator
class ClassParameters:
    """Parameters of every classifier."""

    classes: ArrayLike | None = None
    class_weight: Mapping[Label, float] | None = None


@estimator
class SampleWeightParameter:
    """The cap on the weights of rows, for models whose `fit` takes such weights."""

    max_sample_weight: float = 1.0
    mean_sample_weight: float | None = None


@estimator
class TargetParameter:
    """The bound on targets, or both ends of their range, for every regressor."""

    target_bound: float | None = None
    target_low: float | None = None
    target_high: float | None = None


@estimator
class CountParameters:
    """Whether predicted counts are made right in the mean, and the bounds on exposures, for models of counts."""

    match_mean: Literal["auto"] | bool = "auto"
    exposure_range: tuple[float, float] | None = None


@estimator
class AdditiveParameters:
    """The columns of additive models, their knots and their interactions."""

    knots: Literal["auto"] | int | Mapping[str, object] = "auto"
    interactions: Literal["auto", "pairs", "all"] | Listed = "auto"
    atoms: Literal["auto"] | bool = "auto"
    monotone: Mapping[str, str] | None = None
    bounds: Sequence[object] | Mapping[str, object] | None = None


@estimator
class InterestParameter:
    """The columns whose coefficients have intervals of their own, for models with one score."""

    interest: Sequence[str] | None = None
    risk_differences: bool = False


@estimator
class DesignParameters:
    """What is declared about the sample, for models that have intervals."""

    cluster_effect: float | None = None
    population_size: int | None = None


@estimator
class IntervalsParameter(DesignParameters):
    """The share of the budget that is kept for intervals, for models that release second moments for them."""

    inference_share: float | Literal["auto"] = 0.0
