"""What private linear regressors have in common; they differ in how weights are made and what is minimised."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from confide.accounting.ledger import Batch, Ledger
from confide.data.arrays import MemorySource
from confide.data.on_disk import Stamp
from confide.data.opened import ArrayRows, CheckedRows, StampedSource
from confide.data.source import RowSource
from confide.data.streams import StreamedSource
from confide.errors import InputError, ParameterError
from confide.estimators import parameters
from confide.estimators.assumptions import guarantee_of, place_sentences, weight_sentences
from confide.estimators.coefficients import CoefficientIntervals
from confide.estimators.fitting import before_charge, charge_and_release, rows_per_person
from confide.estimators.notebook import ShownWithGuarantee
from confide.estimators.spending import TellsOfRepeatedFits, tell_of_no_ledger
from confide.estimators.streamed import is_opened, schema_of, streamed_numbers
from confide.estimators.validation import refuse_unused, row_weights_of, rows_given, rows_of, targets_of, weights_of
from confide.features.encoder import Encoder
from confide.features.schema import Schema
from confide.guarantee import Guarantee
from confide.inference.evidence import Evidence
from confide.inference.least_squares import SumsEvidence
from confide.privacy.budgets import Budget, Neighbours
from confide.privacy.noise import Entropy
from confide.types import Array


class LinearRegressor(CoefficientIntervals, TellsOfRepeatedFits, ShownWithGuarantee, RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A linear regressor, released under differential privacy. What is minimised is a subclass's."""

    _accepts_sparse = False

    coef_: Array
    intercept_: float
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
        target_bound: float | None = None,
        mechanism: str = "auto",
        neighbours: str | Neighbours = "replace-one",
        n_rows_bounds: tuple[int, int] | None = None,
        max_rows_per_person: int = 1,
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
        self.target_bound = target_bound
        self.mechanism = mechanism
        self.neighbours = neighbours
        self.n_rows_bounds = n_rows_bounds
        self.max_rows_per_person = max_rows_per_person
        self.ledger = ledger
        self.n_jobs = n_jobs
        self.random_state = random_state

    def plan(self, n_rows: int | None = None, n_features: int | None = None) -> Any:
        """Everything a fit would decide from public facts. Reads no data and charges nothing.

        Parameters
        ----------
        n_rows : int
            Number of rows; not used where `n_rows_bounds` are given.
        n_features : int
            Number of columns of X; with a schema its own, and not needed.
        """
        settings, encoder = self._settings(self.schema)
        columns = parameters.checked_shape(n_rows, n_features, encoder, settings.n_rows_bounds)
        return self._plan(settings, columns, n_rows)

    def _fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train and release; `sample_weight` as in `LossRegressor.fit`."""
        schema = schema_of(self.schema, X)
        settings, encoder = self._settings(schema)
        largest = getattr(settings, "largest_sample_weight", 1.0)
        seed = parameters.checked_seed(self.random_state)
        ledger = parameters.checked_ledger(self.ledger)
        tell_of_no_ledger(self, ledger)

        before = dict(vars(self))
        try:
            with self._checked_rows(X, y, settings, encoder, sample_weight, largest, seed) as rows:
                plan = self._plan_for(settings, rows)
                person = None if schema is None else schema.person
                sentences = (*weight_sentences(sample_weight is not None, largest, None), *place_sentences(rows.source))
                guarantee = guarantee_of(plan, self._target_sentence(), person, ledger, seed, sentences)
                names = self._coefficient_names(encoder)
                before_charge(plan, ledger)
                purpose, source = f"{type(self).__name__}.fit", rows.source
                released, evidence = charge_and_release(
                    lambda entropy: self._released(plan, source, entropy),
                    plan.event,
                    settings.neighbours,
                    ledger,
                    seed,
                    purpose,
                )
                self._keep(released, evidence, plan, encoder, names, guarantee)
        except BaseException:
            # A refused fit leaves the estimator as it was, with the columns of an earlier fit.
            self.__dict__ = before
            raise
        return self

    def _plan_for(self, settings: Any, rows: CheckedRows) -> Any:
        """The plan of a fit to these rows, from public facts alone."""
        plan = self._plan(
            settings, rows.source.n_features, rows.n_rows if settings.neighbours is Neighbours.REPLACE_ONE else None
        )
        plan.problem.check(rows.n_rows, rows.source.n_features)
        return plan

    def _keep(
        self,
        released: Array,
        evidence: Evidence | SumsEvidence | None,
        plan: Any,
        encoder: Encoder | None,
        names: Any,
        guarantee: Guarantee,
    ) -> None:
        """Hold what was released, and the public facts beside it."""
        problem = plan.problem
        self.coef_ = released[: problem.n_features].copy()
        self.intercept_ = float(problem.intercept * released[-1]) if problem.intercept > 0.0 else 0.0
        self.alpha_ = plan.alpha
        self.guarantee_ = guarantee
        self.coefficient_names_ = names
        self._evidence = evidence
        self._encoder = encoder
        self._row_bound = problem.row_bound

    @contextmanager
    def _checked_rows(
        self,
        X: Any,
        y: Any,
        settings: Any,
        encoder: Encoder | None,
        sample_weight: Any,
        largest: float,
        seed: int | None = None,
    ) -> Iterator[CheckedRows]:
        """Rows as a fit takes them, checked; what was made of them for a fit is removed at the end."""
        stamps: tuple[Stamp, ...] = ()
        if is_opened(X) or isinstance(X, ArrayRows):
            if y is not None:
                raise ParameterError("rows from open_rows bring their targets; leave y out.")
            if sample_weight is not None and is_opened(X):
                raise InputError("sample_weight is for rows in memory; rows from open_rows count alike.")
        persons = rows_per_person(settings.rows_per_person, seed)
        if is_opened(X):
            with streamed_numbers(self, X, encoder, persons, counts=self._has_counts) as checked:
                source = checked.source
                if isinstance(source, StreamedSource):
                    source = replace(source, n_threads=settings.n_threads)
                yield CheckedRows(source, checked.n_rows)
            return
        if isinstance(X, ArrayRows):
            X, y, stamps = X.rows, X.labels, X.stamps
        blocks, kept, n_rows = rows_given(
            self, X, encoder, reset=True, rows_per_person=persons, accept_sparse=self._accepts_sparse
        )
        refuse_unused(encoder, blocks)
        # A bound that cannot clip such rows says so here, before anything is charged.
        settings.row_bound.clip(blocks.block(0, 0))
        targets = self._targets(y, n_rows)
        weights = row_weights_of(sample_weight, largest, targets, (), None)
        if kept is not None:
            targets, weights = targets[kept], None if weights is None else weights[kept]
        memory = MemorySource(blocks, targets, weights, settings.n_threads)
        yield CheckedRows(StampedSource(memory, stamps) if stamps else memory, n_rows)

    def predict(self, X: Any) -> Array:
        """Predicted targets, (n,). Rows are clipped to the bound of the fit, as the rows it learned from were."""
        check_is_fitted(self)
        blocks = rows_of(self, X, self._encoder, reset=False, accept_sparse=self._accepts_sparse)
        scores = np.empty(blocks.n_rows)
        step = blocks.rows_in_block
        for start in range(0, blocks.n_rows, step):
            stop = min(start + step, blocks.n_rows)
            scores[start:stop] = self._row_bound.clip(blocks.block(start, stop)) @ self.coef_
        return self._mean(scores + self.intercept_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 on the given rows and targets, which are not clipped here. On private rows it is outside every guarantee."""
        predicted = self.predict(X)
        targets, weights = targets_of(y, len(predicted)), weights_of(sample_weight, len(predicted))
        return float(r2_score(targets, predicted, sample_weight=weights))

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model as JSON: weights, schema, guarantee, version and a checksum. `confide.load` reads it.

        A file that exists is refused, unless `overwrite` is true and it may be written.
        """
        from confide.estimators.persistence import save_model

        save_model(self, path, overwrite=overwrite)

    @property
    def _has_counts(self) -> bool:
        """Whether targets are counts, whose mean is the exponential of the score."""
        return False

    def _settings(self, schema: Schema | None) -> tuple[Any, Encoder | None]:
        """The parameters, checked: settings and encoder. No data."""
        raise NotImplementedError

    def _plan(self, settings: Any, n_features: int, n_rows: int | None) -> Any:
        """The plan for these settings."""
        raise NotImplementedError

    def _released(self, plan: Any, source: RowSource, entropy: Entropy) -> tuple[Array, Evidence | SumsEvidence | None]:
        """Released weights (D,), and what intervals are made of if it was released."""
        raise NotImplementedError

    def _targets(self, y: Any, n_rows: int) -> Array:
        """Checked targets."""
        return targets_of(y, n_rows)

    def _target_sentence(self) -> str:
        """What is done to targets."""
        return f"Every target is clipped to its declared bound, {self.target_bound:.6g} in absolute value."

    def _mean(self, scores: Array) -> Array:
        """What is predicted at a score."""
        return scores

    def _coefficient_names(self, encoder: Encoder | None) -> Any:
        if encoder is not None:
            return np.array(encoder.feature_names, dtype=object)
        names = getattr(self, "feature_names_in_", None)
        return names if names is not None else np.array([f"x{i}" for i in range(self.n_features_in_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.schema is None and self._accepts_sparse
        return tags
