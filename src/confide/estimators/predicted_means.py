"""Intervals of predictions, for models that released what intervals need."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.special import expit

from confide.data.arrays import Blocks
from confide.erm.coded_rows import dense
from confide.erm.row_bounds import RowBound
from confide.estimators.coefficient_intervals import CoefficientIntervals
from confide.inference.evidence import Evidence
from confide.inference.intervals import checked_level, checked_target
from confide.inference.predictions import SCORES_AT_ONCE, ends_of_log_odds, ends_of_scores, scores_of
from confide.released_models.links import Link
from confide.types import Array


class PredictedMeans(CoefficientIntervals):
    """How sure a linear model is of the means that it predicts."""

    _row_bound: RowBound

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
        found, link = self._errors_of(rows, target), self._link
        if len(found) == 1:
            return link.mean(ends_of_scores(found[0], level))
        if not link.has_probabilities:
            return np.stack([ends_of_scores(each, level) for each in found], axis=1)
        evidence = self._evidence
        depend = isinstance(evidence, Evidence) and not evidence.separable
        log_odds, derivatives = link.log_odds(scores_of(found))
        answer: Array = expit(ends_of_log_odds(found, log_odds, derivatives, depend=depend, level=level))
        return answer

    @property
    @abstractmethod
    def _link(self) -> Link:
        """How scores become predictions."""

    @abstractmethod
    def _blocks_to_score(self, X: Any) -> Blocks:
        """The rows in the form in which the model scores them: checked, encoded and mapped."""
