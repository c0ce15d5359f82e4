"""The base class of all linear models: how a fit gets from X and y to a released model, and how the model is kept.

A fit has one path: given rows and checked parameters enter `training.fit.train`, which returns a released model.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any, Self, TypeAlias, TypedDict

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from confide.accounting.ledger import Ledger
from confide.cautions import tell_of_unknown_size, warn
from confide.data.arrays import Blocks
from confide.data.mapped import MappedBlocks
from confide.erm.row_bounds import RowBound
from confide.erm.strongly_convex import StronglyConvex
from confide.errors import ParameterError
from confide.estimators.columns_of_interest import checked_interest
from confide.estimators.notebook import ShownWithGuarantee
from confide.estimators.predicted_means import PredictedMeans
from confide.estimators.priors import given_prior
from confide.estimators.repeated_fits import TellsOfRepeatedFits, tell_of_no_ledger
from confide.estimators.shared_parameters import ModelParameters
from confide.exports.onnx_models import onnx_model_of
from confide.exports.scikit_learn import pipeline_of
from confide.features.column_names import names_by_position
from confide.features.encoder import Encoder
from confide.features.public_maps import PublicMap
from confide.features.quadratic_forms import QuadraticForm
from confide.features.schema import Schema
from confide.files import document_text, write_text
from confide.inference.evidence import Evidence
from confide.inference.interest import Combination, InterestEvidence
from confide.inference.least_squares import SumsEvidence
from confide.intake import parameters
from confide.intake.arrays import rows_to_score
from confide.intake.given_rows import GivenRows, rows_given
from confide.intake.penalties import GivenForm, checked_penalty, form_of
from confide.intake.specification import Columns, RowSpecification
from confide.intake.targets import TargetKind, domain_sentence
from confide.intake.user_penalties import refuse_without_functions
from confide.privacy.budgets import Neighbours, as_budget
from confide.released_models.links import Link
from confide.released_models.model import ReleasedModel
from confide.released_models.prior import Prior, checked_prior
from confide.released_models.scores import LinearModel
from confide.saved_models.writing import document_of
from confide.training.alpha import has_curves, usual_norm_of_curves
from confide.training.charge import Charge, note_checksum, rows_per_person
from confide.training.fit import train
from confide.training.mechanism_choice import MECHANISM_NAMES
from confide.training.penalised_settings import penalised, with_own_penalty
from confide.training.plan import AnyPlan, make_plan
from confide.training.settings import ScoreLoss, Settings, SquaredError
from confide.types import Array

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
        raise TypeError(f"fit() got an unexpected keyword argument {unknown[0]!r}")
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
        given = rows_given(X, y, sample_weight)
        encoder = parameters.checked_schema(self._schema_of(given))
        chosen = self._with_chosen_features(encoder, given.n_rows_given)
        settings = chosen._settings(encoder, names=given.column_names)
        if settings.own_penalty is not None:
            refuse_without_functions(settings.own_penalty)
        if settings.has_risks and sample_weight is not None:
            raise ParameterError("risk_differences are means over rows that all count alike: leave out weights of rows.")
        seed, ledger = parameters.checked_seed(self.random_state), parameters.checked_ledger(self.ledger)
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
        inference_share = parameters.checked_share(getattr(self, "inference_share", 0.0))
        parameters.refuse_intervals_of_features(inference_share, encoder)
        prior = self._given_prior()
        if prior is not None:
            prior.refuse_columns(encoder)
        penalty, form = checked_penalty(getattr(self, "penalty", None)), self._form(encoder, names)
        interest, minimised = self._interest_in(encoder, names), self._minimised(encoder)
        largest, mean = self._weights_of_rows(encoder, takes=not isinstance(minimised, SquaredError))
        persons = parameters.checked_rows_per_person(self.max_rows_per_person)
        settings = Settings(
            minimised=minimised,
            budget=budget,
            mechanism=parameters.checked_choice("mechanism", self.mechanism, self._mechanisms),
            alpha=parameters.checked_alpha(self.alpha),
            row_bound=row_bound,
            intercept=parameters.checked_intercept(self.fit_intercept, self._constant_of(row_bound)),
            neighbours=neighbours,
            n_rows_bounds=parameters.checked_bounds(self.n_rows_bounds, neighbours),
            rows_per_person=persons,
            largest_sample_weight=largest,
            mean_sample_weight=mean,
            cluster_effect=parameters.checked_cluster_effect(getattr(self, "cluster_effect", None)),
            population_size=parameters.checked_population_size(getattr(self, "population_size", None), persons, encoder),
            class_weight=self._checked_class_weight(encoder),
            inference_share=inference_share,
            target_shift=self._shift_of_targets(encoder),
            set_aside=set_aside,
            n_threads=parameters.checked_jobs(self.n_jobs),
            centres=parameters.checked_auto("centre", self.centre),
            matches=parameters.checked_auto("match_mean", getattr(self, "match_mean", False)),
            usual_norm=None if encoder is None or row_bound is not encoder.row_bound else usual_norm_of_curves(encoder),
            has_curves=encoder is not None and has_curves(encoder),
            appends_features=encoder is not None and encoder.appended is not None,
            prior=prior,
            l1_ratio=parameters.checked_l1_ratio(
                getattr(self, "l1_ratio", 0.0),
                has_intervals=self._asks_for_intervals,
                has_prior=prior is not None,
                has_form=penalty is not None,
            ),
            has_schema=encoder is not None,
            interest=interest,
            has_risks=parameters.checked_risk_differences(
                getattr(self, "risk_differences", False),
                has_interest=bool(interest),
                has_weights=largest != 1.0 or self._counts_rows_unalike(encoder),
                has_own_norm=encoder is not None and row_bound is not encoder.row_bound,
                drops_uncounted_rows=(
                    neighbours is Neighbours.REPLACE_ONE and encoder is not None and encoder.schema.person is not None
                ),
            ),
        )
        if isinstance(penalty, StronglyConvex):
            return with_own_penalty(settings, penalty)
        two = form is not None and self._has_two_classes(encoder)
        return settings if form is None else penalised(settings, form, encoder, of_two_classes=two)

    def _shift_of_targets(self, encoder: Encoder | None) -> float:
        """The public number that is subtracted from all targets."""
        return 0.0

    def _weights_of_rows(self, encoder: Encoder | None, *, takes: bool) -> tuple[float, float | None]:
        """The cap on the weights of rows, and their declared mean or None, from parameters or from the schema."""
        largest = parameters.checked_largest_sample_weight(getattr(self, "max_sample_weight", 1.0))
        mean = parameters.checked_mean_sample_weight(getattr(self, "mean_sample_weight", None), largest)
        weight = parameters.weight_of_schema(encoder, largest, mean, takes=takes)
        return (largest, mean) if weight is None else (weight.high, weight.mean)

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
        found = checked_interest(getattr(self, "interest", ()), encoder, names or _no_names_of_interest)
        if found:
            parameters.refuse_with_interest(
                has_share=getattr(self, "inference_share", 0.0) != 0.0,
                has_prior=self.prior is not None,
                has_penalty=getattr(self, "penalty", None) is not None,
                has_features=encoder is not None and encoder.appended is not None,
            )
        return found

    def _form(self, encoder: Encoder | None, names: NamesOfColumns | None) -> QuadraticForm | None:
        """The quadratic form that the parameter `penalty` stands for; None for |w|^2 and for functions of the user's."""
        given = checked_penalty(getattr(self, "penalty", None))
        return form_of(given, encoder, names or _no_names) if isinstance(given, GivenForm) else None

    @property
    def _asks_for_intervals(self) -> bool:
        """Whether a part of the budget is asked for intervals."""
        has_share = parameters.checked_share(getattr(self, "inference_share", 0.0)) != 0.0
        return has_share or bool(getattr(self, "interest", ()))

    def _specification(self, settings: Settings, encoder: Encoder | None, seed: int | None = None) -> RowSpecification:
        """The requirements of a fit with these settings on rows."""
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
            n_threads=settings.n_threads,
            penalty=None if settings.keeps_groups else settings.penalty,
            norm_before_penalty=None if encoder is not None else settings.norm_before_penalty,
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
        # The room of reports lies above this one and knows estimators, so it is found when it is asked for.
        writing = importlib.import_module("confide.report.writing")
        writing.write_report(self, path, overwrite=overwrite, **given)

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


def _no_names() -> tuple[str, ...]:
    """What stands for the names of columns where nobody knows them."""
    raise ParameterError("a penalty by the names of columns needs a schema, or rows whose columns have names.")


def _no_names_of_interest() -> tuple[str, ...]:
    """What stands for the names of columns where nobody knows them."""
    raise ParameterError("interest names columns, so it needs a schema, or rows whose columns have names.")


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
