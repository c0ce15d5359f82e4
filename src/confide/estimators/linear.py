"""What private linear classifiers have in common; they differ in their loss."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Self, TypedDict, Unpack

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from confide.accounting.ledger import Batch, Ledger
from confide.data.arrays import MemorySource
from confide.data.federated import FederatedRows, FederatedSource
from confide.data.mapped import MappedBlocks
from confide.data.on_disk import Stamp
from confide.data.opened import ArrayRows, StampedSource
from confide.erm.losses import Loss
from confide.erm.row_bounds import RowBound
from confide.errors import ParameterError
from confide.estimators import parameters
from confide.estimators.assumptions import guarantee_of, place_sentences, weight_sentences
from confide.estimators.coefficients import CoefficientIntervals
from confide.estimators.direction import Direction
from confide.estimators.fitting import (
    Fit,
    Settings,
    before_charge,
    charge_and_release,
    make_plan,
    release_by,
    rows_per_person,
)
from confide.estimators.notebook import ShownWithGuarantee
from confide.estimators.scores import LinearModel, favoured
from confide.estimators.spending import TellsOfRepeatedFits, tell_of_no_ledger
from confide.estimators.streamed import FitRows, ReadRows, is_opened, schema_of, streamed
from confide.estimators.validation import (
    labels_of,
    refuse_unused,
    row_weights_of,
    rows_given,
    rows_of,
    weight_array,
    weights_of,
)
from confide.features.encoder import Encoder
from confide.features.fourier import FourierMap
from confide.features.labels import positions_of, read_labels
from confide.features.persons import RowsPerPerson
from confide.features.schema import Schema
from confide.guarantee import Guarantee
from confide.privacy.budgets import Budget, Neighbours, as_budget
from confide.privacy.mechanism import Plan
from confide.types import Array, Labels


class FactsOfRows(TypedDict, total=False):
    """What may be given of each row besides X and y."""

    sample_weight: Any


class LinearClassifier(CoefficientIntervals, TellsOfRepeatedFits, ShownWithGuarantee, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A linear classifier, released under differential privacy. Its loss is that of a subclass."""

    _accepts_sparse = True
    # How scikit-learn is told of a parameter that is not written out in `fit`, see there.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sample_weight": None}

    coef_: Array
    intercept_: Array
    classes_: Any
    guarantee_: Any

    def __init__(
        self,
        budget: float | Budget = 1.0,
        *,
        alpha: float | str = "auto",
        schema: Schema | None = None,
        row_norm: Any = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        classes: Any = None,
        mechanism: str = "auto",
        neighbours: str | Neighbours = "replace-one",
        n_rows_bounds: tuple[int, int] | None = None,
        max_rows_per_person: int = 1,
        class_weight: Mapping[Any, float] | None = None,
        max_sample_weight: float = 1.0,
        inference_share: float | str = 0.0,
        ledger: Ledger | Batch | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.budget = budget
        self.alpha = alpha
        self.schema = schema
        self.row_norm = row_norm
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.classes = classes
        self.mechanism = mechanism
        self.neighbours = neighbours
        self.n_rows_bounds = n_rows_bounds
        self.max_rows_per_person = max_rows_per_person
        self.class_weight = class_weight
        self.max_sample_weight = max_sample_weight
        self.inference_share = inference_share
        self.ledger = ledger
        self.n_jobs = n_jobs
        self.random_state = random_state

    def plan(self, n_rows: int | None = None, n_features: int | None = None, *, n_classes: int | None = None) -> Plan:
        """Everything a fit would decide from public facts. Reads no data and charges nothing.

        Parameters
        ----------
        n_rows : int
            Number of rows; not used where `n_rows_bounds` are given.
        n_features : int
            Number of columns of X; with a schema its own, and not needed.
        n_classes : int
            Number of classes; where they are declared theirs, and not needed; otherwise 2 by default.
        """
        return self._plan_one_of_several(n_rows, n_features, n_classes, set_aside=0.0)

    def _plan_one_of_several(
        self, n_rows: int | None, n_features: int | None, n_classes: int | None, *, set_aside: float
    ) -> Plan:
        """The same, where the fit is one of several that leave together, or of which one leaves; see `Problem`."""
        settings, encoder, domain = self._settings(self.schema)
        declared = 2 if domain is None else len(domain)
        n_classes = declared if n_classes is None else n_classes
        whole = isinstance(n_classes, (int, np.integer)) and not isinstance(n_classes, bool)
        if not whole or not 2 <= n_classes <= parameters.MOST_CLASSES or (domain is not None and n_classes != declared):
            raise ParameterError(
                f"n_classes must be a whole number from 2 to {parameters.MOST_CLASSES}, that of declared classes."
            )
        settings = replace(settings, loss=self._loss(int(n_classes)), set_aside=set_aside)
        columns = parameters.checked_shape(n_rows, n_features, encoder, settings.n_rows_bounds)
        fourier = self._fourier_map(columns)
        return make_plan(settings, columns if fourier is None else fourier.n_features, n_rows)

    def fit(self, X: Any, y: Any = None, **row_facts: Unpack[FactsOfRows]) -> Self:
        """Train and release.

        Parameters
        ----------
        X : array, SciPy sparse matrix or frame (n, d) of real numbers; with a schema a frame of raw columns. Frames are of
            any library that narwhals reads. float32 stays float32, in a frame where all columns are. Or rows from
            `open_rows`, which bring their schema
        y : (n,) labels; None for rows from `open_rows`
        sample_weight : (n,) numbers from 0 to `max_sample_weight`, or None for 1 each. Part of the data: each must be made
            from its own row alone.

        Returns
        -------
        self

        Raises
        ------
        ParameterError, InputError
            Before anything is charged.
        BudgetExceeded
            If the ledger has too little left; no row was used.

        Notes
        -----
        `sample_weight` is given by name. It is not written out in the signature because ensembles that find it
        there pass how often they drew a row, far above any cap on a weight. So they draw rows instead.
        """
        sample_weight = row_facts.pop("sample_weight", None)
        if row_facts:
            raise TypeError(f"fit() got an unexpected keyword argument {next(iter(row_facts))!r}")
        schema = schema_of(self.schema, X)
        settings, encoder, domain = self._settings(schema)
        seed = parameters.checked_seed(self.random_state)
        ledger = parameters.checked_ledger(self.ledger)
        tell_of_no_ledger(self, ledger)

        if isinstance(X, FederatedRows) and settings.inference_share != 0.0:
            raise ParameterError("the parties send no sums for intervals; leave inference_share at 0 for their rows.")
        before = dict(vars(self))
        try:
            with self._checked_rows(X, y, settings, encoder, domain, sample_weight, seed) as rows:
                if isinstance(rows.source, FederatedSource):
                    rows.source.check(replace(settings, loss=self._loss(len(rows.domain))).row_sums)
                plan = self._plan_for(settings, rows)
                person = None if schema is None else schema.person
                cap, given = settings.largest_sample_weight, sample_weight is not None
                sentences = (*weight_sentences(given, cap, settings.class_weight), *place_sentences(rows.source))
                guarantee = guarantee_of(plan, rows.label_sentence, person, ledger, seed, sentences)
                names = self._coefficient_names(encoder, rows.fourier)
                before_charge(plan, ledger)
                purpose, source = f"{type(self).__name__}.fit", rows.source
                fit = charge_and_release(
                    lambda entropy: release_by(plan, source, entropy), plan.event, settings.neighbours, ledger, seed, purpose
                )
                self._keep(fit, rows, encoder, names, guarantee)
        except BaseException:
            # A refused fit leaves the estimator as it was, with the columns of an earlier fit.
            self.__dict__ = before
            raise
        return self

    def _plan_for(self, settings: Settings, rows: FitRows) -> Plan:
        """The plan of a fit to these rows, from public facts alone."""
        settings = replace(settings, loss=self._loss(len(rows.domain)))
        public = rows.n_rows if settings.neighbours is Neighbours.REPLACE_ONE else None
        plan = make_plan(settings, rows.source.n_features, public)
        plan.problem.check(rows.n_rows, rows.source.n_features)
        return plan

    def _keep(self, fit: Fit, rows: FitRows, encoder: Encoder | None, names: Any, guarantee: Guarantee) -> None:
        """Hold what was released, and the public facts beside it."""
        model = LinearModel.of(fit.release)
        self.coef_ = model.coef
        self.intercept_ = model.intercept
        self.classes_ = np.array(rows.domain)
        self.alpha_ = fit.release.plan.alpha
        self.guarantee_ = guarantee
        self.coefficient_names_ = names
        self._evidence = fit.evidence
        self._encoder = encoder
        self._fourier = rows.fourier
        self._row_bound = model.row_bound

    @contextmanager
    def _checked_rows(
        self,
        X: Any,
        y: Any,
        settings: Settings,
        encoder: Encoder | None,
        domain: tuple[Any, ...] | None,
        sample_weight: Any,
        seed: int | None = None,
    ) -> Iterator[FitRows]:
        """Rows as a fit takes them, checked; what was made of them for a fit is removed at the end."""
        persons = rows_per_person(settings.rows_per_person, seed)
        if is_opened(X):
            with streamed(self, X, y, settings, encoder, domain, sample_weight, persons) as rows:
                yield rows
        else:
            yield self._prepared(self._read(X, y, encoder, domain, sample_weight, persons), settings)

    def _read(
        self,
        X: Any,
        y: Any,
        encoder: Encoder | None,
        domain: tuple[Any, ...] | None,
        sample_weight: Any,
        persons: RowsPerPerson,
    ) -> ReadRows:
        """Rows in memory, read once and checked."""
        stamps: tuple[Stamp, ...] = ()
        if isinstance(X, ArrayRows):
            if y is not None:
                raise ParameterError("rows from open_rows bring their labels; leave y out.")
            X, y, stamps = X.rows, X.labels, X.stamps
        blocks, kept, n_rows = rows_given(
            self, X, encoder, reset=True, rows_per_person=persons, accept_sparse=self._accepts_sparse
        )
        refuse_unused(encoder, blocks)
        labels, domain, sentence = self._labels(y, n_rows, domain)
        own = None if sample_weight is None else weight_array(sample_weight)
        return ReadRows(blocks, kept, labels, own, n_rows, domain, sentence, stamps)

    def _prepared(self, read: ReadRows, settings: Settings) -> FitRows:
        """Rows that were read, as a fit with these settings takes them: mapped and weighted."""
        # A bound that cannot clip such rows says so here, before anything is charged.
        settings.row_bound.clip(read.blocks.block(0, 0))
        fourier = self._fourier_map(read.blocks.n_features)
        blocks = read.blocks if fourier is None else MappedBlocks(read.blocks, fourier)
        cap, labels, kept = settings.largest_sample_weight, read.labels, read.kept
        weights = row_weights_of(read.own_weights, cap, labels, read.domain, settings.class_weight)
        if kept is not None:
            labels, weights = labels[kept], None if weights is None else weights[kept]
        source = MemorySource(blocks, labels, weights, settings.n_threads)
        stamped = StampedSource(source, read.stamps) if read.stamps else source
        return FitRows(stamped, read.n_rows, read.domain, read.sentence, fourier)

    def decision_function(self, X: Any) -> Array:
        """Scores in favour of `classes_[1]`, (n,); of three classes and more those of each, (n, k).

        Rows are clipped to the bound of the fit, as in the fit.
        """
        check_is_fitted(self)
        blocks = rows_of(self, X, self._encoder, reset=False, accept_sparse=self._accepts_sparse)
        return self._model.scores(blocks if self._fourier is None else MappedBlocks(blocks, self._fourier))

    @property
    def _model(self) -> LinearModel:
        """What was released, as it scores rows."""
        return LinearModel(self.coef_, self.intercept_, self._row_bound)

    def predict(self, X: Any) -> Any:
        """The class that the score of each row is in favour of, (n,)."""
        positions = favoured(self.decision_function(X))
        return self.classes_[positions]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on the given rows; labels are read as in `fit`. On private rows it is outside every guarantee."""
        check_is_fitted(self)
        scores = self.decision_function(X)
        labels, domain, _ = self._labels(y, scores.shape[0], tuple(self.classes_.tolist()))
        right = favoured(scores) == positions_of(labels, len(domain))
        return float(np.average(right, weights=weights_of(sample_weight, scores.shape[0])))

    def _why_no_intervals(self) -> str:
        if self._fourier is not None:
            return (
                "weights of random features mean nothing one by one, so there are no intervals for them; use LinearSVC or "
                "LogisticRegression."
            )
        return super()._why_no_intervals()

    def _spoken_of(self) -> tuple[float, str]:
        direction = Direction.of(self)
        return direction.sign, "the class named before each" if direction.position is None else str(direction)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model as JSON: weights, schema, guarantee, version and a checksum. `confide.load` reads it.

        A file that exists is refused, unless `overwrite` is true and it may be written.
        """
        from confide.estimators.persistence import save_model

        save_model(self, path, overwrite=overwrite)

    def _loss(self, n_classes: int) -> Loss:
        """The loss for so many classes, from checked parameters."""
        raise NotImplementedError

    def _fourier_map(self, n_inputs: int) -> FourierMap | None:
        """The public map that rows of so many columns pass through, None for none."""
        return None

    def _bound_of_rows(self, encoder: Encoder | None, budget: Budget) -> RowBound:
        """The bound on rows as they enter the objective."""
        return parameters.checked_row_bound(self.row_norm, encoder, budget)

    def _settings(self, schema: Schema | None) -> tuple[Settings, Encoder | None, tuple[Any, ...] | None]:
        """The parameters, checked: settings, encoder and declared label domain. No data.

        Without declared classes the loss is that for two.
        """
        budget = as_budget(self.budget)
        encoder = parameters.checked_schema(schema)
        neighbours = Neighbours.parse(self.neighbours)
        domain = parameters.checked_classes(self.classes, schema)
        settings = Settings(
            budget=budget,
            mechanism=parameters.checked_choice(
                "mechanism", self.mechanism, ("auto", "objective", "output", "output-laplace")
            ),
            alpha=parameters.checked_alpha(self.alpha),
            loss=self._loss(2 if domain is None else len(domain)),
            row_bound=self._bound_of_rows(encoder, budget),
            intercept=parameters.checked_intercept(self.fit_intercept, self.intercept_scaling),
            neighbours=neighbours,
            n_rows_bounds=parameters.checked_bounds(self.n_rows_bounds, neighbours),
            rows_per_person=parameters.checked_rows_per_person(self.max_rows_per_person),
            largest_sample_weight=parameters.checked_largest_sample_weight(self.max_sample_weight),
            class_weight=parameters.checked_class_weight(self.class_weight),
            inference_share=parameters.checked_share(self.inference_share),
            n_threads=parameters.checked_jobs(self.n_jobs),
        )
        return settings, encoder, domain

    def _labels(self, y: Any, n_rows: int, domain: tuple[Any, ...] | None) -> tuple[Labels, tuple[Any, ...], str]:
        schema = self.schema if self.schema is not None else getattr(getattr(self, "_encoder", None), "schema", None)
        if schema is not None and schema.target is not None and domain is not None and y is not None:
            # The schema's labels match raw values however a file wrote them (1, 1.0, "1").
            positions = positions_of(read_labels(y, *domain), len(domain))
            return labels_of(np.array(domain, dtype=object)[positions], n_rows, domain)
        return labels_of(y, n_rows, domain)

    def _coefficient_names(self, encoder: Encoder | None, fourier: FourierMap | None) -> Any:
        if fourier is not None:
            return np.array(fourier.names, dtype=object)
        if encoder is not None:
            return np.array(encoder.feature_names, dtype=object)
        names = getattr(self, "feature_names_in_", None)
        return names if names is not None else np.array([f"x{i}" for i in range(self.n_features_in_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.schema is None and self._accepts_sparse
        try:
            self._loss(3)
        except ParameterError:
            tags.classifier_tags.multi_class = False
        return tags
