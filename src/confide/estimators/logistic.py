"""Private logistic regression."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from confide.array_types import Array
from confide.erm.losses import LogisticLoss
from confide.erm.row_bounds import BallBound
from confide.estimators.linear_classifier import LinearClassifier
from confide.estimators.parameters import (
    InterestParameter,
    IntervalsParameter,
    PenaltyParameter,
    StraightLineParameters,
    estimator,
)
from confide.features.encoder import Encoder
from confide.models.model import Link
from confide.parameters import checked
from confide.training.alpha import usual_norm_of_rows
from confide.training.settings import ScoreLoss


@estimator
class LogisticRegression(InterestParameter, IntervalsParameter, StraightLineParameters, PenaltyParameter, LinearClassifier):
    """Logistic regression released under differential privacy.

    Minimises mean log(1 + exp(-y w . x)) + alpha / 2 |w|^2 over clipped rows, perturbed so that the released weights are
    differentially private. The intercept is a penalised coordinate of w: a constant is appended to every row.

    With three or more classes, each class has a vector of weights, and all are released together under the one budget.
    Either all classes share one loss, minus the log-probability of a row's class (softmax), or each class has a logistic
    loss against all others (one-vs-rest).

    Parameters
    ----------
    multiclass : {"softmax", "one-vs-rest"}, default "softmax"
        The loss for three or more classes.
    other parameters : those that linear models share

    Attributes
    ----------
    coef_ : array (1, n_coefficients), or (n_classes, n_coefficients) for three or more classes
        Weights in favour of `classes_[1]`, or of each class; one for each column of X, or with a schema for each encoded
        column.
    intercept_ : array (1,) or (n_classes,)
        Added to the scores; 0 without an intercept.
    classes_ : array (n_classes,)
        The label domain, sorted.
    coefficient_names_ : array (n_coefficients,) of str
        Names of the columns of X, or of the encoded columns.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of str
        Names of the columns of X; missing if X has none.
    alpha_ : float
        The alpha that was used. It is a public number.
    guarantee_ : Guarantee
        What is promised, and the assumptions it rests on.

    Notes
    -----
    Guarantee: `coef_`, `intercept_` and what is released for intervals are together differentially private at the budget,
    for the stated neighbour relation and under the assumptions that `guarantee_.statement()` lists. Nothing else that
    depends on rows is kept.

    Sources: Chaudhuri, Monteleoni and Sarwate, Differentially Private Empirical Risk Minimization, JMLR 2011. Each
    mechanism has a proof page in confide/privacy/proofs.

    Examples
    --------
    >>> import confide
    >>> adult = confide.datasets.load_adult()
    >>> model = confide.LogisticRegression(budget=1.0, schema=adult.schema)
    >>> bool(model.fit(adult.X_train, adult.y_train).score(adult.X_test, adult.y_test) > 0.8)
    True
    """

    multiclass: Literal["softmax", "one-vs-rest"] = "softmax"
    intercept_scaling: float = 1.0

    def predict_proba(self, X: Any) -> Array:
        """Compute the probability of each class in `classes_`, (n, n_classes).

        With one-vs-rest, the probabilities of a row are divided by their sum.

        Parameters
        ----------
        X : array, SciPy sparse matrix or frame (n, d)
            Rows, in the units of the fit; with a schema a frame that has its columns.

        Returns
        -------
        array (n, n_classes) of float64
            In [0, 1]; each row adds up to 1. The columns are in the order of `classes_`.

        Raises
        ------
        InputError
            If the rows cannot be used. The message shows no value from them.
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Compute the logarithms of `predict_proba`, (n, n_classes).

        Parameters
        ----------
        X : array, SciPy sparse matrix or frame (n, d)
            Rows, in the units of the fit; with a schema a frame that has its columns.

        Returns
        -------
        array (n, n_classes) of float64
            At most 0, in the order of `classes_`.

        Raises
        ------
        InputError
            If the rows cannot be used. The message shows no value from them.
        """
        scores = self.decision_function(X)  # an unfitted model is refused here
        return self._link.log_probabilities(scores)

    @property
    def _link(self) -> Link:
        return Link("logistic" if len(self.classes_) == 2 else self.multiclass)

    def _minimised(self, encoder: Encoder | None) -> ScoreLoss:
        multiclass = checked("multiclass", self.multiclass)
        loss = LogisticLoss()
        score_loss = ScoreLoss(loss, one_vs_rest=loss, softmax=multiclass == "softmax")
        if encoder is None or self.centre is False:
            return score_loss
        # If the noise is large, rows are clipped to their typical norm, and then centred.
        return replace(score_loss, if_noisy=loss, bound_if_noisy=BallBound(usual_norm_of_rows(encoder)))
