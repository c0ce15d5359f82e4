"""The base class of all linear models: how a fit gets from X and y to a released model, and how the model is kept.

A fit has one path: given rows and checked parameters enter `training.fit.train`, which returns a released model.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias
from weakref import WeakSet

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from confide.accounting.ledger import Batch, Ledger
from confide.array_types import Array, Names
from confide.budget_warnings import tell_of_repeats, tell_of_unknown_size, warn
from confide.callers import calls, steps_outside
from confide.data.arrays import Blocks, MappedBlocks
from confide.erm.penalties import StronglyConvex
from confide.erm.row_bounds import RowBound
from confide.errors import BudgetWarning, ParameterError, checked_count, is_text, wording
from confide.estimators.coefficients import CoefficientIntervals, checked_interest
from confide.estimators.parameters import BaseEstimator, ModelParameters
from confide.estimators.pipelines import pipeline_of
from confide.features.encoder import Encoder
from confide.features.forms import PublicMap, QuadraticForm
from confide.features.fourier import has_found_scales
from confide.features.schema import Schema
from confide.files import document_text, write_text
from confide.first_use import done_above
from confide.intake import parameters
from confide.intake.arrays import rows_to_score
from confide.intake.penalties import GivenForm, checked_penalty, form_of, refuse_without_functions
from confide.intake.rows import GivenRows, checked_input
from confide.intake.specification import Columns, RowSpecification
from confide.intake.targets import Numbers, TargetKind, domain_sentence
from confide.known_words import names_by_position
from confide.models.exports import onnx_model_of, python_of, sql_of
from confide.models.files import document_of, is_reproduced, read_model
from confide.models.model import ReleasedModel
from confide.models.prior import Prior, declared_prior
from confide.models.scores import LinearModel
from confide.parameters import PARAMETERS, checked, checked_choice
from confide.privacy.budgets import Budget, Neighbours, as_budget
from confide.training.alpha import ridges_of_curves, usual_norm_of_curves
from confide.training.auto_mechanism import MECHANISM_NAMES
from confide.training.charge import Charge, keeps_released, note_checksum, rows_per_person
from confide.training.fit import train
from confide.training.plan import AnyPlan, make_plan
from confide.training.settings import ScoreLoss, Settings, SquaredError, penalised, with_own_penalty

# Warnings of fits that spend privacy without the caller's notice: given once, before the first of these fits.

_already_warned: WeakSet[Any] = WeakSet()
"""Searches and estimators for which the warning was given."""


class TellsOfRepeatedFits:
    """A private estimator that warns when scikit-learn is about to fit many clones of it."""

    budget: float | Budget
    ledger: Ledger | Batch | None

    def __sklearn_clone__(self) -> Any:
        # Every function of sklearn.model_selection clones the estimator in the caller's process before it starts workers, so
        # this is where the warning reaches the user, and before the first fit.
        with suppress(ParameterError):  # every fit will refuse such a budget
            if (budget := as_budget(self.budget)).is_private:
                self._tell_of_repeated_fits(budget)
        return super().__sklearn_clone__()  # type: ignore[misc]  # defined by scikit-learn's BaseEstimator

    def _tell_of_repeated_fits(self, budget: Budget) -> None:
        """Warn once for each search, each estimator that is scored and each fit of many."""
        outermost = None
        for steps, (frame, module, _) in enumerate(calls()):
            # Calls of `model_selection` are recognised by the public names of their parameters.
            if module.startswith("sklearn.model_selection"):
                facts = {**frame.f_locals, **getattr(frame.f_locals.get("self"), "__dict__", {})}
                if {"estimator", "cv"} <= facts.keys():
                    outermost = steps + 1 + steps_outside(frame), facts, frame.f_code.co_name
        asked, is_charged = type(self).__name__, self.ledger is not None
        if outermost is None:
            if not isinstance(self.ledger, Batch):
                tell_of_repeats(f"{asked}.fit", str(budget), is_charged=is_charged, is_clone=True)
            return
        level, facts, name = outermost
        warned = facts.get("self", facts["estimator"])
        if warned in _already_warned:
            return
        _already_warned.add(warned)
        ledger = "charged to the ledger" if is_charged else "charged to no ledger"
        kind = type(facts["self"]).__name__ if "self" in facts else name
        said = wording("many fits", kind=kind, asked=asked, budget=budget, ledger=ledger)
        warnings.warn(said, BudgetWarning, stacklevel=level)


# The parameter `prior`: what users may give for it, and the public weights that it stands for.


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
    >>> # as if the first 500 rows were public
    >>> public, private = adult.X_train[:500], adult.X_train[500:]
    >>> before = confide.LogisticRegression(budget=float("inf"), schema=adult.schema)
    >>> prior = confide.PublicPrior(before.fit(public, adult.y_train[:500]))
    >>> model = confide.LogisticRegression(budget=0.1, schema=adult.schema, prior=prior)
    >>> bool(model.fit(private, adult.y_train[500:]).score(adult.X_test, adult.y_test) > 0.8)
    True
    """

    model: PrivateLinearModel | str | os.PathLike[str] | tuple[ArrayLike, ArrayLike]


def given_prior(value: object) -> Prior:
    """The prior that the parameter `prior` stands for."""
    if type(value) is Prior:
        return value
    if type(value) is PublicPrior:
        return given_prior(value.model).declared_public()
    if isinstance(value, PrivateLinearModel):
        return released_model(value).as_prior()
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return Prior.of_numbers(*value)
    if not isinstance(value, (str, os.PathLike)):
        raise ParameterError(wording("kinds of prior"))
    try:
        status = Path(value).stat()
    except (OSError, ValueError):
        return read_model(value).as_prior()  # which says what is wrong
    # A fit asks for it more than once, so a file is read once as long as it stays the same.
    return _remembered(Path(value).absolute(), (status.st_ino, status.st_mtime_ns, status.st_size)).as_prior()


@lru_cache(maxsize=8)
def _remembered(path: Path, stamp: tuple[int, ...]) -> ReleasedModel:  # noqa: ARG001 - another stamp is another file
    return read_model(path)


_DECIDING_NOTHING = ("random_state", "n_jobs")
"""Parameters that change neither the plan nor what a release is of: plans with others are the same plan."""

_CHECKED_BY_THE_TABLE = [row for row in PARAMETERS.values() if row.group and row.must]

NamesOfColumns: TypeAlias = Callable[[], tuple[str, ...]]
"""Gives the names of the columns of an array or a frame of numbers."""
NamesByNumber: TypeAlias = Callable[[int | None], tuple[str, ...]]
"""The same, for so many columns where the parameters say how many."""
SchemaReader: TypeAlias = Callable[[Schema | None], Schema | None]
"""Gives the schema by which rows are read, from that of the parameters."""

_MOST_NAMED_COLUMNS = 10**6
"""Names of so many columns still take little time and memory."""


class PrivateLinearModel(CoefficientIntervals, TellsOfRepeatedFits, ModelParameters, BaseEstimator, ABC):
    """A linear model, released under differential privacy. A subclass says what is minimised and what is predicted."""

    intercept_: Array | float
    n_features_in_: int
    feature_names_in_: Names
    _read_from: Mapping[str, object] | None = None
    """The content of the file from which the model was read."""
    _prior: Prior | None = None
    _charged_to: str | None = None
    """The identity of the ledger to which the fit was charged."""
    _charge_number: int | None = None
    """The number of its charge there, where it is known."""

    if not TYPE_CHECKING:  # to a type checker it is not there

        @property
        def predict_proba(self):
            """Absent, so `hasattr` is false, where a model has no probabilities."""
            others = "LogisticRegression has some, and confide.CalibratedClassifier makes some of private counts"
            raise AttributeError(f"{type(self).__name__} has no probabilities. {others}.")

        predict_log_proba = predict_proba

    if TYPE_CHECKING:  # each kind of estimator has these
        penalty: Any

        def fit(self, *rows: Any, **more: Any) -> Self: ...
        def plan(self, *rows: Any, **more: Any) -> Any: ...
        def predict(self, *rows: Any, **more: Any) -> Array: ...
        def decision_function(self, *rows: Any, **more: Any) -> Array: ...
        def score(self, *rows: Any, **more: Any) -> float: ...

    _accepts_sparse = True
    _mechanisms = MECHANISM_NAMES
    _written_in_schema: ClassVar[dict[str, object]] = {}
    """The values of parameters that say nothing more, once a schema has all that was chosen."""

    @keeps_released
    def _train(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None) -> Self:
        """Do the work of `fit`: check, train, release, and keep what was released."""
        given = checked_input(X, y, sample_weight, self, exposure)
        encoder = parameters.checked_schema(self._schema_of_rows(given))
        if given.scores_rows:  # parties send no counts
            encoder = self._with_slots(encoder, given.n_rows_given)
        elif encoder is not None:
            encoder = Encoder(encoder.schema.with_features_always)
        chosen = self._with_chosen_features(encoder, given.n_rows_given)
        settings = chosen._settings(encoder, names=given.column_names)
        if settings.own_penalty is not None:
            refuse_without_functions(settings.own_penalty)
        if settings.risk_differences and sample_weight is not None:
            raise ParameterError("risk_differences are means over rows that all count alike: leave out weights of rows.")
        seed, ledger = checked("random_state", self.random_state), parameters.checked_ledger(self.ledger)
        if self.__dict__.pop("_read_from", None) and ledger is None and settings.budget.is_private:
            warn((wording("fit of a file without a ledger"),), BudgetWarning)
        tell_of_unknown_size(self, has_schema=encoder is not None)
        charge, charged_to = Charge(ledger, seed, f"{type(self).__name__}.fit"), None if ledger is None else ledger.identity
        self._hold(train(given, chosen._specification(settings, encoder, seed), settings, charge))
        self._charged_to = charged_to
        self._charge_number = getattr(ledger, "last_charge", None)  # a batch was charged as a whole, before
        return self

    def refit(self, X: Any, y: Any = None, *, sample_weight: Any = None, exposure: Any = None, **parameters: Any) -> Self:
        """Fit a new model to new rows, with this one as its prior. This model stays as it is.

        Parameters
        ----------
        X, y : as for `fit`
            The new rows. Rows of the earlier fit may be among them; then the costs of both fits add up for them.
        sample_weight : (n,) numbers from 0 to `max_sample_weight`, or None
            As for `fit`.
        exposure : (n,) numbers above 0, or None
            As for `fit` of counts.
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
        # New rows need not hold every class.
        undeclared = hasattr(self, "classes_") and self._target(self._encoder).domain is None
        classes = {"classes": self.classes_.tolist()} if undeclared else {}
        made.set_params(**{"prior": given_prior(self), **classes, **parameters})
        if self._read_from and "ledger" not in parameters and made.ledger is None and as_budget(made.budget).is_private:
            raise ParameterError(wording("refit of a file needs a ledger"))
        given = {"sample_weight": sample_weight, "exposure": exposure}
        return made.fit(X, y, **{name: one for name, one in given.items() if one is not None})

    def _given_prior(self, encoder: Encoder | None = None) -> Prior | None:
        """The public weights that the parameter `prior` stands for. Declared effects need an encoder."""
        if self.prior is None:
            return None
        if isinstance(self.prior, Mapping):
            return declared_prior(self.prior, encoder, *self._units_of_effects(encoder), self._shift_of_targets(encoder))
        prior = given_prior(self.prior)
        is_void = prior.guarantee is not None and prior.guarantee.void is not None
        if is_void and as_budget(self.budget).is_private and self.random_state is None:
            raise ParameterError(wording("prior without a guarantee"))
        return prior

    @abstractmethod
    def _units_of_effects(self, encoder: Encoder | None) -> tuple[float, Callable[[float], float]]:
        """What "up" stands for over the range of a number, and the change of scores for a declared change."""

    def _plan(
        self, n_rows: int | None, n_features: int | None, n_classes: int | None = None, *, set_aside: float = 0.0
    ) -> AnyPlan:
        """The plan for these numbers of rows, columns and classes. `set_aside` is explained in `Problem`."""
        n_classes = n_classes or 0
        schema, count = self._schema_of_plan(n_rows, n_features, n_classes), partial(checked_count, "n_rows", n_rows)
        encoder = self._with_slots(parameters.checked_schema(schema), count)
        chosen = self._with_chosen_features(encoder, count)
        names = partial(self._names_of_plan, n_features)
        settings = chosen._settings(encoder, set_aside=set_aside, names=names).for_classes(n_classes)
        if self.schema is None and schema is not None:
            n_features = None  # it was used for the schema
        columns = parameters.checked_shape(n_rows, n_features, encoder, settings.n_rows_bounds)
        fourier = chosen._fourier_map(columns, encoder)
        if settings.prior is not None:
            settings.prior.refuse_map(fourier)
        plan = make_plan(settings, columns if fourier is None else fourier.n_features, n_rows)
        told = [wording("no interactions beside intervals")] * (plan.intervals is not None and hasattr(self, "interactions"))
        return replace(plan, reasons=(*plan.reasons, *told))

    def _names_of_plan(self, n_features: int | None) -> tuple[str, ...]:
        """Names of so many columns of numbers: those of the fit, if there was one, so that its plan can be made again."""
        names = getattr(self, "feature_names_in_", None)
        return names_of_plan(n_features, None) if names is None or len(names) != n_features else tuple(names)

    def _schema_of_plan(self, n_rows: int | None, n_features: int | None, n_classes: int = 2) -> Schema | None:
        """The schema by which so many rows of so many classes would be read and encoded."""
        count, names = partial(checked_count, "n_rows", n_rows), partial(names_of_plan, n_features)
        return self._schema_of(lambda schema: schema, names, count, lambda: n_classes)

    def _schema_of(
        self, read_by: SchemaReader, names: NamesByNumber, count: Callable[[], int], n_classes: Callable[[], int]
    ) -> Schema | None:
        """The schema by which rows are read and encoded, with all that is chosen from public facts.

        `read_by` gives the schema by which the rows are read, from that of the parameters. `names` gives the names of the
        columns of an array; it is called with their number, if the parameters say it. `count` gives the number of rows,
        where that is public, and `n_classes` that of classes, 0 for a number, where parameters and schema do not name them.
        """
        return read_by(self.schema)

    def _schema_of_rows(self, given: GivenRows) -> Schema | None:
        """The schema by which these rows are read and encoded."""
        return self._schema_of(given.schema_for, lambda _: given.column_names(), given.n_rows_given, given.n_classes_given)

    def _with_slots(self, encoder: Encoder | None, count: Callable[[], int]) -> Encoder | None:
        """The encoder, with slots for atoms if the fit looks for some. `count` gives the number of rows, if it is public."""
        return encoder

    def _with_chosen_features(self, encoder: Encoder | None, count: Callable[[], int]) -> Self:
        """Give this estimator, or a copy that names a number of random features that was chosen from public facts.

        `count` gives the number of rows, where that is public.
        """
        return self

    def _with_features_of(self, fourier: PublicMap | None) -> Self:
        """Give this estimator, or a copy whose parameters name what was chosen for this public map, or for none."""
        return self

    def _take_choices(self, schema: Schema | None, count: Callable[[], int], names: NamesOfColumns | None = None) -> None:
        """Make all that is chosen from public facts parameters of this estimator. The schema has its choices already.

        A penalty that names columns of numbers becomes one strength for each column, in their order, if `names` are given.
        """
        # Fits of a search, of which there may be several, do not find whether columns act together.
        schema = None if schema is None else schema.with_features_always
        self.set_params(schema=schema, **self._written_in_schema)
        chosen = self._with_chosen_features(parameters.checked_schema(schema), count)
        self.set_params(**chosen.get_params(deep=False))
        penalty = checked_penalty(getattr(self, "penalty", None))
        if names is not None and schema is None and isinstance(penalty, GivenForm) and penalty.entries is None:
            self.set_params(penalty=form_of(penalty, None, names).scales ** -2.0)

    def _settings(self, encoder: Encoder | None, *, set_aside: float = 0.0, names: NamesOfColumns | None = None) -> Settings:
        """The checked parameters. No data is needed for them.

        `names` gives the names of the columns of an array or a frame of numbers, for parameters that name them.
        """
        budget, neighbours, names = as_budget(self.budget), Neighbours.parse(self.neighbours), names or _no_names
        row_bound, prior = self._bound_of_rows(encoder), self._given_prior(encoder)
        own = {"intercept_scaling": self._constant_of(row_bound)}
        rows = _CHECKED_BY_THE_TABLE
        given = {row.name: row.checked(own.get(row.name, getattr(self, row.name, row.default))) for row in rows}
        penalty, interest, class_weight = map(vars(self).get, ("penalty", "interest", "class_weight"))
        penalty = None if penalty is None else checked_penalty(penalty)
        interest = () if interest is None else checked_interest(interest, encoder, names)
        form = form_of(penalty, encoder, names) if isinstance(penalty, GivenForm) else None
        if prior is not None:
            prior.refuse_columns(encoder)
        parameters.refuse_combinations(
            given | {"intervals": getattr(self, "intervals", False), "interest": interest, "class_weight": class_weight},
            encoder,
            row_bound,
            budget=budget,
            drops_rows=neighbours is Neighbours.REPLACE_ONE,
            has_prior=prior is not None,
            has_penalty=penalty is not None,
        )
        minimised = self._minimised(encoder)
        domain = None if class_weight is None and form is None else self._target(encoder).domain
        largest, mean = parameters.declared_weights(
            encoder, given["max_sample_weight"], given["mean_sample_weight"], takes=not isinstance(minimised, SquaredError)
        )
        given |= {"max_sample_weight": largest, "mean_sample_weight": mean}
        of_few = encoder is not None and getattr(encoder.schema.random_features, "columns", 0) > 0
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
            class_weight=None if class_weight is None else parameters.checked_class_weight(class_weight, domain),
            inference_share=given["inference_share"],
            target_shift=self._shift_of_targets(encoder),
            set_aside=set_aside,
            centre=given["centre"] == "auto",
            match_mean=hasattr(self, "match_mean") and given["match_mean"] == "auto",
            usual_norm=usual_norm_of_curves(encoder) if encoder and (of_few or row_bound is encoder.row_bound) else None,
            ridges_of_curves=ridges_of_curves(encoder) if encoder else (),
            appending=encoder if encoder is not None and encoder.appended is not None else None,
            finding=encoder if encoder is not None and encoder.slots else None,
            prior=prior,
            l1_ratio=given["l1_ratio"],
            has_schema=encoder is not None,
            interest=interest,
            risk_differences=given["risk_differences"],
        )
        if form is not None:
            return penalised(settings, form, encoder, of_two_classes=len(domain or ()) == 2)
        return with_own_penalty(settings, penalty) if isinstance(penalty, StronglyConvex) else settings

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
        self._evidence, self._interest = released.evidence, released.interest
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
            raise ParameterError(wording("report needs a path"))
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

    def to_sql(self, table: str = "people", dialect: Literal["postgresql", "duckdb", "spark"] = "postgresql") -> str:
        """The fitted model as a query, which gives the rows of a table in a database with their predictions beside them.

        Parameters
        ----------
        table : str, default "people"
            The table, as its name is written in SQL: with quotes where it needs some, and with its database or schema.
        dialect : {"postgresql", "duckdb", "spark"}, default "postgresql"
            The dialect of SQL.

        Returns
        -------
        str
            A SELECT statement. It adds the columns of `confide predict`: "prediction", and for classes "probability" or
            "score". A column is a CASE expression, so the query needs nothing but the table.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ParameterError
            If the dialect is unknown, the model has no schema, or it has random features.

        Notes
        -----
        Guarantee: that of the model. The query is made of what was released.
        """
        return sql_of(released_model(self), self._link, table, dialect)

    def to_python(self) -> str:
        """The fitted model as a file of Python that needs neither confide nor any other library.

        Returns
        -------
        str
            The text of the file. As a program it reads a table of text from standard input, and writes it with the columns
            of `confide predict`; as a module it has ``predict(row)``, for a mapping of names of columns to cells.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ParameterError
            If the model has no schema, or it has random features.

        Notes
        -----
        Guarantee: that of the model. The file is made of what was released.
        """
        return python_of(released_model(self), self._link)

    def _released_labels(self) -> tuple[Any, ...]:
        """The classes in sorted order; empty for a regressor."""
        return ()

    def _shift_of_targets(self, encoder: Encoder | None) -> float:
        """The public number that is subtracted from all targets."""
        return 0.0

    @property
    def _quantile(self) -> float | None:
        """The quantile of the target that is predicted; None where it is a class or a mean."""
        return None

    @property
    def _has_own_loss(self) -> bool:
        """Whether a user wrote the loss."""
        return not is_text(getattr(self, "loss", ""))

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
        if encoder is None or encoder.appended is None:
            return None
        prior, appended = self._given_prior(encoder), encoder.appended
        fitted = None if prior is None or prior.fitted_to is None else prior.fitted_to.fourier
        # Columns have the scales that were found for the prior.
        return fitted if has_found_scales(fitted, appended) else appended

    @property
    def _repr_html_(self) -> Callable[[], str]:
        # If scikit-learn is set to show text, this raises AttributeError, and then the notebook shows text.
        diagram: Callable[[], str] = super()._repr_html_
        return lambda: self._guarantee_as_html() + diagram()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] = self._guarantee_as_html() + bundle["text/html"]
        return bundle

    def _guarantee_as_html(self) -> str:
        """The guarantee, which a notebook shows above scikit-learn's diagram, once there is one."""
        return str(self.guarantee_.to_html()) if hasattr(self, "guarantee_") else ""

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


def _no_names() -> tuple[str, ...]:
    """What stands for the names of columns where nobody knows them."""
    raise ParameterError("names of columns, in penalty or interest, need a schema, or rows whose columns have names.")


def names_of_plan(n_features: int | None, n_described: int | None) -> tuple[str, ...]:
    """Names of the columns of an array in a plan.

    Parameters
    ----------
    n_features : the number of columns as a user gave it, or None
    n_described : the number of columns that the parameters describe, or None
    """
    if n_features is None and n_described is None:
        raise ParameterError("bounds=(low, high) are for all columns of an array, so give n_features, their number.")
    count = checked_count("n_features", n_described if n_features is None else n_features)
    if count > _MOST_NAMED_COLUMNS:
        raise ParameterError(f"columns that have names, or bounds, are {_MOST_NAMED_COLUMNS:,} at most; n_features is more.")
    return names_by_position(count)


def released_model(model: PrivateLinearModel) -> ReleasedModel:
    """What a fitted model released, as a value. It is made of the public attributes, which a user may have changed.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    ParameterError
        If it is no linear model of confide.
    """
    if not isinstance(model, PrivateLinearModel):
        raise ParameterError("this needs a fitted linear model of confide, or one that confide.load read.")
    check_is_fitted(model)
    return ReleasedModel(
        scoring=LinearModel(np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_), model._row_bound),
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


def form_of_model(model: PrivateLinearModel) -> QuadraticForm | None:
    """The quadratic form in whose norm a model was fitted, from public facts; None for |w|^2."""
    penalty, names = checked_penalty(getattr(model, "penalty", None)), partial(model._names_of_plan, model.n_features_in_)
    return form_of(penalty, released_model(model).encoder, names) if isinstance(penalty, GivenForm) else None


def settings_of_model(model: PrivateLinearModel) -> Settings:
    """The checked parameters of a fitted model, from public facts."""
    return model._settings(released_model(model).encoder, names=partial(model._names_of_plan, model.n_features_in_))


def said_of_target(model: PrivateLinearModel, *, declared: bool) -> str:
    """What the guarantee of a fitted model says of its labels or targets."""
    released = released_model(model)
    if released.domain:
        return domain_sentence(released.domain, declared)
    target = model._target(released.encoder)
    return target.sentence if isinstance(target, Numbers) else ""


def document_of_model(model: PrivateLinearModel) -> dict[str, Any]:
    """The content of a fitted model's file, as JSON values: that of the file which it was read from, unless it changed.

    So a file of an earlier version stays the same, to the bit, and with it the checksum that evaluations and ledgers name.
    """
    content = document_of(type(model).__name__, model.get_params(deep=False), released_model(model))
    written, read = json.loads(json.dumps(content)), model._read_from
    return dict(read if read is not None and is_reproduced(written, read) else written)


def checksum_of_model(model: PrivateLinearModel) -> str:
    """SHA-256 of the file that `save` writes of a fitted model."""
    return hashlib.sha256(document_text(document_of_model(model)).encode()).hexdigest()


def version_of(model: PrivateLinearModel) -> str:
    """The version that wrote the file from which a model was read; without a file, this one."""
    return str(document_of_model(model)["version"])
