"""The base class of all linear models: how a fit gets from X and y to a released model, and how the model is kept.

A fit has one path: given rows and checked parameters enter `training.fit.train`, which returns a released model.
"""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache, partial
from inspect import currentframe
from numbers import Integral
from pathlib import Path
from typing import Any, Self, TypeAlias, TypedDict
from weakref import WeakSet

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import issparse
from scipy.special import expit
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV, ParameterGrid, RandomizedSearchCV, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from confide.accounting.ledger import Batch, Ledger
from confide.array_types import Array
from confide.budget_warnings import tell_of_repeats, tell_of_unknown_size, warn
from confide.callers import module_of, steps_outside
from confide.data.arrays import Blocks, MappedBlocks
from confide.erm.coded_rows import dense
from confide.erm.penalties import StronglyConvex
from confide.erm.row_bounds import RowBound
from confide.errors import BudgetWarning, ParameterError
from confide.estimators.coefficients import CoefficientIntervals, checked_interest
from confide.estimators.parameters import ModelParameters
from confide.estimators.pipelines import pipeline_of
from confide.features.encoder import Encoder
from confide.features.forms import PublicMap, QuadraticForm
from confide.features.schema import Schema
from confide.files import document_text, write_text
from confide.first_use import done_above
from confide.inference.debiased import Combination, InterestEvidence
from confide.inference.intervals import Evidence, checked_level, checked_target
from confide.inference.least_squares import SumsEvidence
from confide.inference.predictions import SCORES_AT_ONCE, ends_of_log_odds, ends_of_scores, scores_of
from confide.intake import parameters
from confide.intake.arrays import rows_to_score
from confide.intake.penalties import GivenForm, checked_penalty, form_of, refuse_without_functions
from confide.intake.rows import GivenRows, checked_input
from confide.intake.specification import Columns, RowSpecification
from confide.intake.targets import TargetKind, domain_sentence
from confide.known_words import names_by_position, suggestion, with_suggestions
from confide.models.files import document_of, read_model
from confide.models.model import Link, ReleasedModel
from confide.models.onnx import onnx_model_of
from confide.models.prior import Prior, checked_prior
from confide.models.scores import LinearModel
from confide.parameters import PARAMETERS, checked, checked_choice
from confide.privacy.budgets import Budget, Neighbours, as_budget
from confide.training.alpha import has_curves, usual_norm_of_curves
from confide.training.auto_mechanism import MECHANISM_NAMES
from confide.training.charge import Charge, note_checksum, rows_per_person
from confide.training.fit import train
from confide.training.plan import AnyPlan, make_plan
from confide.training.settings import ScoreLoss, Settings, SquaredError, penalised, with_own_penalty

# Intervals of predictions, for models that released what intervals need.


class PredictedMeans(CoefficientIntervals):
    """How sure a linear model is of the means that it predicts."""

    _row_bound: RowBound

    @with_suggestions
    def predict_interval(self, X: Any, level: float = 0.95, target: str = "regularised") -> Array:
        """Compute confidence intervals of the means that the model predicts for rows, on the scale of the target.

        An interval is for the mean that the population's model predicts for such a row: the probability of a class, the
        mean of a number or of a count, or the score if the model has no probabilities. It accounts for the rows of the fit
        being a sample, and for the noise. It is not an interval for a single new target, which also varies about its mean,
        and it does not account for a model of the wrong form. It costs no privacy, because it uses only what was released.

        Parameters
        ----------
        X : array, SciPy sparse matrix or frame (n, d)
            Rows, in the units of the fit; with a schema a frame that has its columns.
        level : float, default 0.95
            Confidence level of each interval by itself, strictly between 0 and 1.
        target : {"regularised", "unregularised"}, default "regularised"
            Whose predictions are meant, as in `uncertainty`. With "unregularised", intervals are about predictions without
            the bias of the ridge, which differ from those of `predict`.

        Returns
        -------
        array (n, 2)
            Lower and upper ends. For two classes, of the probability of `classes_[1]`; without probabilities, of the score
            in its favour. For three or more classes (n, n_classes, 2). Where the noise hides what the rows tell, the ends
            are the smallest and largest possible values.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ParameterError
            If nothing was released for intervals, the level is out of range, or the target is unknown or not available.
        InputError
            If the rows cannot be used. The message shows no value from them.

        Notes
        -----
        With three or more classes and one vector of weights against all others for each, it is not known how the sampling
        errors of the scores depend on each other. Their sizes are added up there, so intervals of probabilities are wider
        than they need be.
        """
        checked_level(level), checked_target(target)
        self._known_evidence()
        blocks = self._blocks_to_score(X)
        ends = np.empty((blocks.n_rows, *(() if self._n_scores == 1 else (self._n_scores,)), 2))
        step = max(1, min(blocks.rows_in_block, SCORES_AT_ONCE // self._n_scores))
        for start in range(0, blocks.n_rows, step):
            stop = min(start + step, blocks.n_rows)
            rows = dense(self._row_bound.clip(blocks.block(start, stop)))
            rows = np.asarray(rows.toarray() if issparse(rows) else rows, dtype=np.float64)
            ends[start:stop] = self._ends_of_means(np.column_stack([rows, np.ones(len(rows))]), level, target)
        return ends

    def _ends_of_means(self, rows: Array, level: float, target: str) -> Array:
        """The intervals of rows as they enter the score, the constant 1 of the intercept last."""
        errors, link = self._errors_of(rows, target), self._link
        if len(errors) == 1:
            return link.mean(ends_of_scores(errors[0], level))
        if not link.has_probabilities:
            return np.stack([ends_of_scores(errors_of_class, level) for errors_of_class in errors], axis=1)
        evidence = self._evidence
        depend = isinstance(evidence, Evidence) and not evidence.separable
        log_odds, derivatives = link.log_odds(scores_of(errors))
        answer: Array = expit(ends_of_log_odds(errors, log_odds, derivatives, depend=depend, level=level))
        return answer

    @property
    @abstractmethod
    def _link(self) -> Link:
        """How scores become predictions."""

    @abstractmethod
    def _blocks_to_score(self, X: Any) -> Blocks:
        """The rows in the form in which the model scores them: checked, encoded and mapped."""


# How an estimator is shown in a notebook: its guarantee, once it has one, above scikit-learn's diagram.


class ShownWithGuarantee:
    """Adds the guarantee to the diagram of scikit-learn's BaseEstimator, before which it must stand among the base classes.

    IPython prescribes the names of the methods.
    """

    guarantee_: Any

    @property
    def _repr_html_(self) -> Callable[[], str]:
        # If scikit-learn is set to show text, this raises AttributeError, and then the notebook shows text.
        diagram: Callable[[], str] = super()._repr_html_  # type: ignore[misc]  # defined by the next base class
        return lambda: self._guarantee_as_html() + diagram()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = self._guarantee_as_html() + bundle["text/html"]
        return bundle

    def _guarantee_as_html(self) -> str:
        guarantee = getattr(self, "guarantee_", None)
        return "" if guarantee is None else str(guarantee.to_html())


# Warnings of fits that spend privacy without the caller's notice: given once, before the first of these fits.

_ONE_FIT_A_FOLD = ("cross_validate", "cross_val_score", "cross_val_predict")
_already_warned: WeakSet[Any] = WeakSet()
"""Searches and estimators for which the warning was given."""


class TellsOfRepeatedFits:
    """A private estimator that warns when scikit-learn is about to fit many clones of it."""

    def __sklearn_clone__(self) -> Any:
        # Every function of sklearn.model_selection clones the estimator in the caller's process before it starts workers, so
        # this is where the warning reaches the user, and before the first fit.
        _tell_of_repeated_fits(self)
        return super().__sklearn_clone__()  # type: ignore[misc]  # defined by scikit-learn's BaseEstimator


def _tell_of_repeated_fits(estimator: Any) -> None:
    """Warn once for each search, each estimator that is scored and each fit of many, unless the budget is infinite."""
    try:
        budget = as_budget(estimator.budget)
    except ParameterError:
        return  # every fit will refuse this budget
    calls = list(_calls_of_model_selection())
    if not calls:
        if budget.is_private and not isinstance(estimator.ledger, Batch):
            asked = f"{type(estimator).__name__}.fit"
            tell_of_repeats(asked, str(budget), is_charged=estimator.ledger is not None, is_clone=True)
        return
    level, facts, name = calls[-1]  # the outermost call
    warned = facts.get("self", facts["estimator"])
    if not budget.is_private or warned in _already_warned:
        return
    _already_warned.add(warned)
    n_fits = _number_of_fits(estimator, facts, name)
    fits = "many fits" if n_fits is None else f"up to {n_fits:,} fits"
    cost = "" if n_fits is None else f", together up to {_times(budget, n_fits)} where such costs add up"
    ledger = "charged to no ledger" if estimator.ledger is None else "charged to the ledger"
    kind = type(facts["self"]).__name__ if "self" in facts else name
    warnings.warn(
        f"{kind} makes {fits} of {type(estimator).__name__}. Each is a release of its own under {budget}, {ledger}{cost}. "
        f"The scores, and a choice made from them, are not private. confide.PrivateSearchCV chooses parameters under one "
        f"budget.",
        BudgetWarning,
        stacklevel=level,
    )


def tell_of_no_ledger(estimator: Any, ledger: Batch | Ledger | None) -> None:
    """Warn if a model that was read from a file is fitted again without a ledger: a file does not name one."""
    if estimator.__dict__.pop("_was_loaded", False) and ledger is None and as_budget(estimator.budget).is_private:
        warnings.warn(
            "this model was read from a file, and files name no ledger, so this fit is charged to none. If there is a "
            "ledger for these rows, give it first: model.set_params(ledger=confide.Ledger(path)).",
            BudgetWarning,
            stacklevel=1 + steps_outside(sys._getframe()),
        )


def _calls_of_model_selection() -> Iterator[tuple[int, dict[str, Any], str]]:
    """Calls of functions of sklearn.model_selection on the stack, the innermost first.

    Of each call: the number of steps from here to its caller, its parameters, and its name. The calls are recognised by the
    public names of their parameters, `estimator` and `cv`.
    """
    frame, steps = currentframe(), 0
    while frame is not None:
        if module_of(frame).startswith("sklearn.model_selection"):
            names = frame.f_locals
            names = {**names, **getattr(names.get("self"), "__dict__", {})}
            if {"estimator", "cv"} <= names.keys():
                yield steps + steps_outside(frame), names, frame.f_code.co_name
        frame, steps = frame.f_back, steps + 1


def _number_of_fits(estimator: Any, facts: dict[str, Any], name: str) -> int | None:
    """The largest number of fits of clones of the estimator; None if it does not follow from the parameters."""
    cloned = facts["estimator"]
    cloned = cloned.steps[-1][1] if isinstance(cloned, Pipeline) else cloned
    search, cv = facts.get("self"), facts["cv"]
    # Folds may be given as an iterator. Counting them would use it up.
    if not (cv is None or isinstance(cv, Integral) or hasattr(cv, "get_n_splits")):
        return None
    if type(cloned) is not type(estimator) or not (search is None or type(search) in (GridSearchCV, RandomizedSearchCV)):
        return None
    try:
        # The rows are not passed: the warning must not depend on them, so splitters that need them are not counted.
        n_splits = int(check_cv(cv).get_n_splits())
    except (TypeError, ValueError):
        return None
    if search is None:
        return n_splits if name in _ONE_FIT_A_FOLD else None
    grid = search.param_grid if isinstance(search, GridSearchCV) else search.param_distributions
    varied = {key.split("__")[-1] for point in (grid if isinstance(grid, list) else [grid]) for key in point}
    if "budget" in varied:
        return None
    n_candidates = len(ParameterGrid(grid)) if isinstance(search, GridSearchCV) else int(search.n_iter)
    return n_splits * n_candidates + (search.refit is not False)


def _times(budget: Budget, number: int) -> str:
    return ", ".join(f"{name} {number * getattr(budget, name):.6g}" for name in budget.ranges)


# The parameter `prior`: what users may give for it, and the public weights that it stands for.

_WRONG = (
    "prior must be a fitted model of confide, the path of a saved one, a pair (coef, intercept) of public numbers, "
    "confide.PublicPrior of one of these, or None."
)


@dataclass(frozen=True, slots=True)
class PublicPrior:
    """A prior that was made from public rows alone, such as a model that was fitted to them without privacy.

    Models without a guarantee are refused as priors, because they may reveal the rows that they were fitted to. This
    declares that these rows need no protection. It is an assumption, which the statement of the fit names.

    Parameters
    ----------
    model : fitted model of confide, path of a saved one, or pair (coef, intercept)
        The public weights.

    Raises
    ------
    ParameterError
        By the fit, if the columns, the kernel or the classes of the model are not those of the fit. Nothing was charged.

    Notes
    -----
    Guarantee: the prior costs no budget, because it is public; that of the fit holds as it stands. Proof:
    confide/privacy/proofs/objective_perturbation.md, section 4.

    Examples
    --------
    >>> import confide
    >>> adult = confide.datasets.load_adult()
    >>> public, private = adult.X_train[:500], adult.X_train[500:]  # as if the first 500 rows were public
    >>> before = confide.LogisticRegression(budget=float("inf"), schema=adult.schema).fit(public, adult.y_train[:500])
    >>> model = confide.LogisticRegression(budget=0.1, schema=adult.schema, prior=confide.PublicPrior(before))
    >>> bool(model.fit(private, adult.y_train[500:]).score(adult.X_test, adult.y_test) > 0.8)
    True
    """

    model: Any


def given_prior(value: Any, of_model: Callable[[Any], Prior | None]) -> Prior | None:
    """The prior that the parameter `prior` stands for.

    Parameters
    ----------
    value : the parameter
    of_model : gives the weights of a fitted model, and None for what is no model
    """
    if value is None or type(value) is Prior:
        return value
    if type(value) is PublicPrior:
        if value.model is None:
            raise ParameterError(_WRONG)
        prior = given_prior(value.model, of_model)
        return None if prior is None else prior.declared_public()
    if isinstance(value, (str, os.PathLike)):
        return _read(value).as_prior()
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return Prior.of_numbers(*value)
    prior = of_model(value)
    if prior is None:
        raise ParameterError(_WRONG)
    return prior


def _read(path: str | os.PathLike[str]) -> ReleasedModel:
    """The model in a file. A fit asks for it more than once, so it is read once as long as the file stays the same."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return read_model(path)  # which says what is wrong
    return _remembered(Path(path).absolute(), (status.st_ino, status.st_mtime_ns, status.st_size))


@lru_cache(maxsize=8)
def _remembered(path: Path, stamp: tuple[int, ...]) -> ReleasedModel:  # noqa: ARG001 - another stamp is another file
    return read_model(path)


_DECIDING_NOTHING = ("random_state", "n_jobs")
"""Parameters that change neither the plan nor what a release is of: plans with others are the same plan."""

NamesOfColumns: TypeAlias = Callable[[], Sequence[str]]
"""Gives the names of the columns of an array or a frame of numbers."""

_MOST_NAMED_COLUMNS = 10**6
"""Names of so many columns still take little time and memory."""


class WeightsOfRows(TypedDict, total=False):
    """What may be given for each row besides X and y."""

    sample_weight: Any


def sample_weight_of(given: WeightsOfRows) -> Any:
    """The weights of rows among the keyword arguments of `fit`, or None. Any other argument is refused."""
    if unknown := sorted(given.keys() - {"sample_weight"}):
        meant = suggestion(unknown[0], ["sample_weight"])
        raise TypeError(f"fit() got an unexpected keyword argument {unknown[0]!r}{meant}")
    return given.get("sample_weight")


class PrivateLinearModel(PredictedMeans, TellsOfRepeatedFits, ShownWithGuarantee, ModelParameters, BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn ships no types
    """A linear model, released under differential privacy. A subclass says what is minimised and what is predicted."""

    coef_: Array
    alpha_: float
    guarantee_: Any
    coefficient_names_: Any
    intercept_: Any
    classes_: Any
    n_features_in_: int
    feature_names_in_: Any
    _encoder: Encoder | None
    _fourier: PublicMap | None
    _row_bound: RowBound
    _was_loaded: bool
    _prior: Prior | None = None
    _charged_to: str | None = None
    """The identity of the ledger to which the fit was charged."""
    _charge_number: int | None = None
    """The number of its charge there, where it is known."""

    _accepts_sparse = True
    _mechanisms = MECHANISM_NAMES

    def _train(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Do the work of `fit`: check, train, release, and keep what was released."""
        given = checked_input(X, y, sample_weight)
        encoder = parameters.checked_schema(self._schema_of(given))
        chosen = self._with_chosen_features(encoder, given.n_rows_given)
        settings = chosen._settings(encoder, names=given.column_names)
        if settings.own_penalty is not None:
            refuse_without_functions(settings.own_penalty)
        if settings.risk_differences and sample_weight is not None:
            raise ParameterError("risk_differences are means over rows that all count alike: leave out weights of rows.")
        seed, ledger = checked("random_state", self.random_state), parameters.checked_ledger(self.ledger)
        tell_of_no_ledger(self, ledger)
        tell_of_unknown_size(self, has_schema=encoder is not None)
        charge, charged_to = Charge(ledger, seed, f"{type(self).__name__}.fit"), None if ledger is None else ledger.identity
        self._hold(train(given, chosen._specification(settings, encoder, seed), settings, charge))
        self._charged_to = charged_to
        self._charge_number = getattr(ledger, "last_charge", None)  # a batch was charged as a whole, before
        return self

    def refit(self, X: Any, y: Any = None, *, sample_weight: Any = None, **parameters: Any) -> Self:
        """Fit a new model to new rows, with this one as its prior. This model stays as it is.

        Parameters
        ----------
        X, y : as for `fit`
            The new rows. Rows of the earlier fit may be among them; then the costs of both fits add up for them.
        sample_weight : (n,) numbers from 0 to `max_sample_weight`, or None
            As for `fit`.
        **parameters
            Parameters of the new model that differ from those of this one, such as `budget`.

        Returns
        -------
        estimator
            The new model. It is charged to the ledger that this model names.

        Raises
        ------
        NotFittedError
            If this model is not fitted.
        ParameterError, InputError
            As for `fit`; and if this model was read from a file, which names no ledger, and none is given: `ledger=`.
        BudgetExceeded
            If the ledger has too little left. Nothing was charged, and no row was used.
        """
        check_is_fitted(self)
        made: Self = clone(self)
        made.set_params(**{"prior": _prior_of_model(self), **self._parameters_of_refit(), **parameters})
        was_loaded = getattr(self, "_was_loaded", False)
        if was_loaded and "ledger" not in parameters and made.ledger is None and as_budget(made.budget).is_private:
            raise ParameterError(
                "this model was read from a file, and files name no ledger. Give the ledger of these rows to refit: "
                "ledger=confide.Ledger(path); or ledger=None, if there is none."
            )
        return made.fit(X, y, **({} if sample_weight is None else {"sample_weight": sample_weight}))  # type: ignore[no-any-return]

    def _parameters_of_refit(self) -> dict[str, Any]:
        """Parameters of a refit that follow from this fit."""
        return {}

    def _given_prior(self) -> Prior | None:
        """The public weights that the parameter `prior` stands for."""
        is_guaranteed = as_budget(self.budget).is_private and self.random_state is None
        return checked_prior(given_prior(self.prior, _prior_of_model), needs_guarantee=is_guaranteed)

    def _plan(self, n_rows: int | None, n_features: int | None, n_classes: int = 0, *, set_aside: float = 0.0) -> AnyPlan:
        """The plan for these numbers of rows, columns and classes. `set_aside` is explained in `Problem`."""
        schema = self._schema_of_plan(n_rows, n_features)
        encoder = parameters.checked_schema(schema)
        chosen = self._with_chosen_features(encoder, partial(parameters.checked_count, "n_rows", n_rows))
        names = partial(self._names_of_plan, n_features)
        settings = chosen._settings(encoder, set_aside=set_aside, names=names).for_classes(n_classes)
        if self.schema is None and schema is not None:
            n_features = None  # it was used for the schema
        columns = parameters.checked_shape(n_rows, n_features, encoder, settings.n_rows_bounds)
        fourier = chosen._fourier_map(columns, encoder)
        if settings.prior is not None:
            settings.prior.refuse_map(fourier)
        return make_plan(settings, columns if fourier is None else fourier.n_features, n_rows)

    def _names_of_plan(self, n_features: int | None) -> Sequence[str]:
        """Names of so many columns of numbers: those of the fit, if there was one, so that its plan can be made again."""
        names = getattr(self, "feature_names_in_", None)
        return names_of_plan(n_features, None) if names is None or len(names) != n_features else tuple(names)

    def _schema_of(self, given: GivenRows) -> Schema | None:
        """The schema by which these rows are read and encoded. It follows from public facts."""
        own = self._own_schema(lambda _: given.column_names())
        return self._chosen_in(given.schema_for(own), given.n_rows_given)

    def _schema_of_plan(self, n_rows: int | None, n_features: int | None) -> Schema | None:
        """The schema by which so many rows would be read and encoded."""
        own = self._own_schema(partial(names_of_plan, n_features))
        return self._chosen_in(own, partial(parameters.checked_count, "n_rows", n_rows))

    def _own_schema(self, names: Callable[[int | None], tuple[str, ...]]) -> Schema | None:
        """The schema that the parameters describe, or None.

        `names` gives the names of the columns of an array. It is called with their number, if the parameters say it.
        """
        return self.schema

    def _chosen_in(self, schema: Schema | None, count: Callable[[], int]) -> Schema | None:
        """The schema with all that is chosen from public facts. `count` gives the number of rows, where that is public."""
        return schema

    def _with_chosen_features(self, encoder: Encoder | None, count: Callable[[], int]) -> Self:
        """Give this estimator, or a copy that names a number of random features that was chosen from public facts.

        `count` gives the number of rows, where that is public.
        """
        return self

    def _with_features_of(self, fourier: PublicMap | None) -> Self:
        """Give this estimator, or a copy whose parameters name what was chosen for this public map, or for none."""
        return self

    def _take_choices(self, schema: Schema | None, count: Callable[[], int]) -> None:
        """Make all that is chosen from public facts parameters of this estimator. The schema has its choices already."""
        self._take_schema(schema)
        chosen = self._with_chosen_features(parameters.checked_schema(schema), count)
        self.set_params(**chosen.get_params(deep=False))

    def _take_names(self, schema: Schema | None, names: NamesOfColumns) -> None:
        """Replace a penalty that names columns of numbers by one strength for each column, in their order."""
        if schema is None and isinstance(getattr(self, "penalty", None), Mapping):
            form = self._form(None, names)
            if form is not None:
                self.set_params(penalty=form.scales**-2.0)

    def _take_schema(self, schema: Schema | None) -> None:
        """Make this schema, in which nothing is left to be chosen, the parameter of this estimator."""
        self.set_params(schema=schema)

    def _settings(self, encoder: Encoder | None, *, set_aside: float = 0.0, names: NamesOfColumns | None = None) -> Settings:
        """The checked parameters. No data is needed for them.

        `names` gives the names of the columns of an array or a frame of numbers, for parameters that name them.
        """
        budget, neighbours = as_budget(self.budget), Neighbours.parse(self.neighbours)
        row_bound = self._bound_of_rows(encoder)
        parameters.refuse_unbounded(budget, row_bound, getattr(self, "target_bound", None))
        given = self._checked_parameters(row_bound)
        parameters.refuse_intervals_of_features(given["inference_share"], encoder)
        prior = self._given_prior()
        if prior is not None:
            prior.refuse_columns(encoder)
        penalty, form = checked_penalty(getattr(self, "penalty", None)), self._form(encoder, names)
        interest, minimised = self._interest_in(encoder, names), self._minimised(encoder)
        largest, mean = parameters.declared_weights(
            encoder, given["max_sample_weight"], given["mean_sample_weight"], takes=not isinstance(minimised, SquaredError)
        )
        given |= {"max_sample_weight": largest, "mean_sample_weight": mean}
        if given["population_size"] is not None:
            parameters.refuse_several_rows(encoder, given["max_rows_per_person"])
        if given["l1_ratio"] > 0.0:
            parameters.refuse_with_l1(
                has_intervals=self._asks_for_intervals, has_prior=prior is not None, has_form=penalty is not None
            )
        if given["risk_differences"]:
            self._refuse_risk_differences(encoder, row_bound, largest, has_interest=bool(interest))
        settings = Settings(
            minimised=minimised,
            budget=budget,
            mechanism=checked_choice("mechanism", self.mechanism, self._mechanisms),
            alpha=None if given["alpha"] == "auto" else given["alpha"],
            row_bound=row_bound,
            intercept=given["intercept_scaling"] if given["fit_intercept"] else 0.0,
            neighbours=neighbours,
            n_rows_bounds=parameters.checked_bounds(self.n_rows_bounds, neighbours),
            rows_per_person=given["max_rows_per_person"],
            given=tuple(item for item in given.items() if item[0] not in _DECIDING_NOTHING),
            largest_sample_weight=largest,
            class_weight=self._checked_class_weight(encoder),
            inference_share=given["inference_share"],
            target_shift=self._shift_of_targets(encoder),
            set_aside=set_aside,
            centre=given["centre"] == "auto",
            match_mean=hasattr(self, "match_mean") and given["match_mean"] == "auto",
            usual_norm=None if encoder is None or row_bound is not encoder.row_bound else usual_norm_of_curves(encoder),
            has_curves=encoder is not None and has_curves(encoder),
            appends_features=encoder is not None and encoder.appended is not None,
            prior=prior,
            l1_ratio=given["l1_ratio"],
            has_schema=encoder is not None,
            interest=interest,
            risk_differences=given["risk_differences"],
        )
        if isinstance(penalty, StronglyConvex):
            return with_own_penalty(settings, penalty)
        two = form is not None and self._has_two_classes(encoder)
        return settings if form is None else penalised(settings, form, encoder, of_two_classes=two)

    def _refuse_risk_differences(
        self, encoder: Encoder | None, row_bound: RowBound, largest: float, *, has_interest: bool
    ) -> None:
        """Refuse differences of risks that these parameters do not go with."""
        has_persons = encoder is not None and encoder.schema.person is not None
        parameters.refuse_risk_differences(
            has_interest=has_interest,
            has_weights=largest != 1.0 or self._counts_rows_unalike(encoder),
            has_own_norm=encoder is not None and row_bound is not encoder.row_bound,
            drops_uncounted_rows=has_persons and Neighbours.parse(self.neighbours) is Neighbours.REPLACE_ONE,
        )

    def _checked_parameters(self, row_bound: RowBound) -> dict[str, Any]:
        """The checked value of each parameter for which the table has the check; the default of those that are not here."""
        own = {"intercept_scaling": self._constant_of(row_bound)}
        rows = [row for row in PARAMETERS.values() if row.group and row.must]
        return {row.name: row.checked(own.get(row.name, getattr(self, row.name, row.default))) for row in rows}

    def _shift_of_targets(self, encoder: Encoder | None) -> float:
        """The public number that is subtracted from all targets."""
        return 0.0

    def _counts_rows_unalike(self, encoder: Encoder | None) -> bool:
        """Whether classes have weights, or the schema names those of rows."""
        has_own = encoder is not None and encoder.schema.weight is not None
        return has_own or getattr(self, "class_weight", None) is not None

    def _has_two_classes(self, encoder: Encoder | None) -> bool:
        """Whether two classes, and no more, were declared."""
        return False

    def _checked_class_weight(self, encoder: Encoder | None) -> tuple[tuple[Any, float], ...] | None:
        """Public weights of classes; their labels are those that are declared, if some are."""
        given = getattr(self, "class_weight", None)
        classes = None if given is None else getattr(self._target(encoder), "domain", None)
        return parameters.checked_class_weight(given, classes)

    def _interest_in(self, encoder: Encoder | None, names: NamesOfColumns | None) -> tuple[Combination, ...]:
        """The combinations of weights that the parameter `interest` stands for; empty without it."""
        combinations = checked_interest(
            getattr(self, "interest", ()), encoder, names or partial(_no_names, "interest names columns, so it")
        )
        if combinations:
            parameters.refuse_with_interest(
                has_share=getattr(self, "inference_share", 0.0) != 0.0,
                has_prior=self.prior is not None,
                has_penalty=getattr(self, "penalty", None) is not None,
                has_features=encoder is not None and encoder.appended is not None,
            )
        return combinations

    def _form(self, encoder: Encoder | None, names: NamesOfColumns | None) -> QuadraticForm | None:
        """The quadratic form that the parameter `penalty` stands for; None for |w|^2 and for functions of the user's."""
        given = checked_penalty(getattr(self, "penalty", None))
        return (
            form_of(given, encoder, names or partial(_no_names, "a penalty by the names of columns"))
            if isinstance(given, GivenForm)
            else None
        )

    @property
    def _asks_for_intervals(self) -> bool:
        """Whether a part of the budget is asked for intervals."""
        has_share = checked("inference_share", getattr(self, "inference_share", 0.0)) != 0.0
        return has_share or bool(getattr(self, "interest", ()))

    def _specification(self, settings: Settings, encoder: Encoder | None, seed: int | None = None) -> RowSpecification:
        """The requirements of a fit with these settings on rows."""
        before = settings.bound_before_penalty if encoder is None else None
        return RowSpecification(
            # A copy, so that a refused fit leaves the estimator as it was, with the columns of an earlier fit.
            columns_of=copy(self),
            is_fit=True,
            encoder=encoder,
            target=self._target(encoder),
            row_bound=settings.row_bound,
            rows_per_person=rows_per_person(settings.rows_per_person, seed),
            fourier_map=partial(self._fourier_map, encoder=encoder),
            accepts_sparse=self._accepts_sparse and settings.penalty is None,
            weighs=True,
            largest_sample_weight=settings.largest_sample_weight,
            class_weight=settings.class_weight,
            with_moments=settings.has_intervals,
            n_threads=int(effective_n_jobs(checked("n_jobs", self.n_jobs))),
            penalty=None if settings.keeps_groups else settings.penalty,
            norm_before_penalty=None if before is None else before.l2_norm,
        )

    def _hold(self, released: ReleasedModel) -> None:
        """Keep what was released, and the public facts that came with it, as attributes."""
        self.coef_ = released.scoring.coef
        self.alpha_ = released.alpha
        self.guarantee_ = released.guarantee
        self.coefficient_names_ = released.coefficient_names
        self.n_features_in_ = released.columns.n_features_in
        # As in scikit-learn, the attribute is missing if X has no column names.
        self.__dict__.pop("feature_names_in_", None)
        if released.columns.feature_names_in is not None:
            self.feature_names_in_ = released.columns.feature_names_in
        self._encoder = released.encoder
        self._fourier = released.fourier
        self._row_bound = released.scoring.row_bound
        self._evidence: Evidence | SumsEvidence | None = released.evidence
        self._interest: InterestEvidence | None = released.interest
        self._prior, self._charged_to = released.prior, None

    def _blocks_to_score(self, X: Any) -> Blocks:
        """The rows in the form in which the model scores them: checked, encoded and mapped."""
        check_is_fitted(self)
        blocks = rows_to_score(X, self, self._encoder, accepts_sparse=self._accepts_sparse)
        return blocks if self._fourier is None else MappedBlocks(blocks, self._fourier)

    def save(self, path: str | os.PathLike[str] | None = None, *, overwrite: bool = False) -> None:
        """Write the model as JSON: weights, schema, guarantee, version and a checksum. `confide.load` reads it.

        The SHA-256 of the file is noted beside the charge of the fit, in the ledger that the model names. It shows later
        that this model was charged. A warning says so if the model is written and the note fails.

        Parameters
        ----------
        path : str or path
            Where to write. It must be given.
        overwrite : bool, default False
            Whether to replace a file that exists.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ParameterError
            If no path is given.
        FileError
            If the file exists and `overwrite` is false, or it cannot be written.
        """
        text = document_text(document_of_model(self))
        if path is None:
            raise ParameterError("give the file to write the model to, as JSON: model.save('model.json').")
        write_text(path, text, overwrite=overwrite)
        ledger, number = getattr(self, "ledger", None), self._charge_number
        if number is not None and isinstance(ledger, Ledger) and ledger.identity == self._charged_to:
            failed = note_checksum(ledger, number, text)
            warn(() if failed is None else (failed,))

    def report(self, path: str | os.PathLike[str] | None = None, *, overwrite: bool = False, **given: Any) -> None:
        """Write a report that people can sign: a page of HTML, or a PDF, a Markdown card or JSON by the ending of the file.

        It costs no privacy: it is made of the release and of public facts.

        Parameters
        ----------
        path : str or path
            Where to write: .html, .pdf (which needs Chromium or Chrome), .md or .json. It must be given.
        overwrite : bool, default False
            Whether to replace a file that exists.
        **given
            What is known besides: `ledger` (a Ledger) and `ledger_name`, `analyst`, `data_name`, `evaluation` (what
            `confide.evaluate` gives), `level` of intervals, in (0, 1), and `adjust`, how p-values are corrected for the
            family of all coefficients, as in `summary`; see `confide.report.contents.contents_of`.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ParameterError
            If no path is given, something that is given is of another kind, or a PDF is asked for and no browser is found.
        FileError
            If the file exists and `overwrite` is false, or it cannot be written.
        """
        check_is_fitted(self)
        if path is None:
            raise ParameterError(
                "a report is written to a file, so give its path: model.report('report.html'), or with the ending .pdf, .md "
                "or .json. model.guarantee_.statement() is the guarantee as text."
            )
        done_above("write_report")(self, path, overwrite=overwrite, **given)

    def to_sklearn(self) -> Any:
        """The fitted model as a pipeline of scikit-learn: it encodes, clips and predicts as this model does.

        Returns
        -------
        sklearn.pipeline.Pipeline
            Fitted. Its last step is an estimator of scikit-learn with the released weights: LogisticRegression, LinearSVC,
            OneVsRestClassifier, LinearRegression or PoissonRegressor; for the logistic hinge a LinearSVC with
            probabilities. The steps before it are transformers of confide, so confide must be installed where the pipeline
            is used.

        Raises
        ------
        NotFittedError
            If the model is not fitted.

        Notes
        -----
        Guarantee: that of the model. The pipeline is made of what was released. It can be fitted again, and that is a fit of
        scikit-learn, without privacy.
        """
        return pipeline_of(released_model(self), self._link)

    def to_onnx(self) -> Any:
        """The fitted model as an ONNX graph, which programs run without Python and without confide.

        Returns
        -------
        onnx.ModelProto
            With a schema, each raw column is an input (n, 1): numbers as double, NaN where one is missing, and categories as
            text, "" where one is missing. Otherwise the input is "X", a double (n, n_features_in_). The outputs of a
            classifier are "label" (n,), "scores" (n, 1) or (n, n_classes), and "probabilities" (n, n_classes) if it has
            them; of a regression "prediction" (n, 1). The guarantee and the version stand in the metadata.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ParameterError
            If onnx is not installed, or rows are clipped to a `GroupBound` of the user's own.

        Notes
        -----
        Guarantee: that of the model. The graph is made of what was released.
        """
        return onnx_model_of(released_model(self), self._link)

    def _released_labels(self) -> tuple[Any, ...]:
        """The classes in sorted order; empty for a regressor."""
        return ()

    @property
    @abstractmethod
    def _link(self) -> Link:
        """How scores become predictions."""

    @abstractmethod
    def _minimised(self, encoder: Encoder | None) -> ScoreLoss | SquaredError:
        """What is minimised, from checked parameters. For a classifier: the loss for two classes."""

    @abstractmethod
    def _target(self, encoder: Encoder | None) -> TargetKind:
        """Whether classes or numbers are predicted, and how they are read."""

    def _bound_of_rows(self, encoder: Encoder | None) -> RowBound:
        """The bound on rows as they enter the objective."""
        return parameters.checked_row_bound(getattr(self, "row_norm", None), encoder)

    def _constant_of(self, row_bound: RowBound) -> Any:
        """The constant that is appended to rows with this bound, not yet checked."""
        return self.intercept_scaling

    def _fourier_map(self, n_inputs: int, encoder: Encoder | None) -> PublicMap | None:
        """The public map for rows with this number of columns, or None if rows are not mapped."""
        return None if encoder is None else encoder.appended

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters of this estimator by name. Those of a model that is its prior are not among them."""
        params: dict[str, Any] = super().get_params(deep)
        return {name: value for name, value in params.items() if not name.startswith("prior__")}

    def __sklearn_clone__(self) -> Any:
        # A clone of the prior would lose its weights, which are public and never fitted again. So clones share it.
        bare = copy(self)
        bare.prior = None
        made = super(PrivateLinearModel, bare).__sklearn_clone__()
        made.prior = self.prior
        return made

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        has_penalty = getattr(self, "penalty", None) is not None and not isinstance(self.penalty, StronglyConvex)
        tags.input_tags.sparse = self.schema is None and self._accepts_sparse and not has_penalty
        return tags


def _no_names(what: str) -> tuple[str, ...]:
    """What stands for the names of columns where nobody knows them. `what` asks for them, and begins the message."""
    raise ParameterError(f"{what} needs a schema, or rows whose columns have names.")


def names_of_plan(n_features: int | None, n_described: int | None) -> tuple[str, ...]:
    """Names of the columns of an array in a plan.

    Parameters
    ----------
    n_features : the number of columns as a user gave it, or None
    n_described : the number of columns that the parameters describe, or None
    """
    if n_features is None and n_described is None:
        raise ParameterError("bounds=(low, high) are for all columns of an array, so give n_features, their number.")
    count = parameters.checked_count("n_features", n_described if n_features is None else n_features)
    if count > _MOST_NAMED_COLUMNS:
        raise ParameterError(
            f"columns that have names, or bounds, may be {_MOST_NAMED_COLUMNS:,} at most; n_features is more."
        )
    return names_by_position(count)


def released_model(model: PrivateLinearModel) -> ReleasedModel:
    """What a fitted model released, as a value. It is made of the public attributes, which a user may have changed.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    """
    check_is_fitted(model)
    scoring = LinearModel(np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_), model._row_bound)
    return ReleasedModel(
        scoring=scoring,
        alpha=model.alpha_,
        guarantee=model.guarantee_,
        coefficient_names=model.coefficient_names_,
        columns=Columns.recorded_by(model),
        domain=model._released_labels(),
        encoder=model._encoder,
        fourier=model._fourier,
        evidence=model._evidence,
        prior=model._prior,
        interest=model._interest,
    )


def _prior_of_model(model: Any) -> Prior | None:
    """The weights of a fitted model as a prior; None for what is no model of confide."""
    if not isinstance(model, PrivateLinearModel):
        return None
    return released_model(model).as_prior(model._charged_to)


def form_of_model(model: PrivateLinearModel) -> QuadraticForm | None:
    """The quadratic form in whose norm a model was fitted, from public facts; None for |w|^2."""
    encoder = released_model(model).encoder
    return model._form(encoder, partial(model._names_of_plan, model.n_features_in_))


def settings_of_model(model: PrivateLinearModel) -> Settings:
    """The checked parameters of a fitted model, from public facts."""
    return model._settings(released_model(model).encoder, names=partial(model._names_of_plan, model.n_features_in_))


def said_of_target(model: PrivateLinearModel, *, declared: bool) -> str:
    """What the guarantee of a fitted model says of its labels or targets."""
    released = released_model(model)
    if released.domain:
        return domain_sentence(released.domain, declared)
    sentence: str = getattr(model._target(released.encoder), "sentence", "")
    return sentence


def document_of_model(model: PrivateLinearModel) -> dict[str, Any]:
    """The content of a fitted model's file, as JSON values."""
    return document_of(type(model).__name__, model.get_params(deep=False), released_model(model))


def checksum_of_model(model: PrivateLinearModel) -> str:
    """SHA-256 of the file that `save` writes of a fitted model."""
    return hashlib.sha256(document_text(document_of_model(model)).encode()).hexdigest()


def restore(model: PrivateLinearModel, released: ReleasedModel) -> None:
    """Turn an estimator into the fitted model that a file describes. Its next private fit warns if it has no ledger."""
    model._hold(released)
    model._was_loaded = True


def may_have_map(model: PrivateLinearModel, fourier: PublicMap | None, n_inputs: int, encoder: Encoder | None) -> bool:
    """Whether a fit with a model's parameters and its schema could have had this public map, or None if rows are not mapped.

    What was chosen from public facts may have been chosen by the rule of another version.
    """
    named = model._with_features_of(fourier)
    return fourier == named._fourier_map(n_inputs, encoder)
