"""Private logistic regression."""

from __future__ import annotations

from typing import Any

import numpy as np

from confide.erm.losses import LogisticLoss
from confide.estimators.linear_classifier import LinearClassifier
from confide.estimators.shared_parameters import IntervalsParameter, RowNormParameter, estimator
from confide.features.encoder import Encoder
from confide.intake import parameters
from confide.training.settings import ScoreLoss
from confide.types import Array


@estimator
class LogisticRegression(IntervalsParameter, RowNormParameter, LinearClassifier):
    """Logistic regression released under differential privacy.

    Minimises mean log(1 + exp(-y w . x)) + alpha / 2 |w|^2 over clipped rows, perturbed so that the released weights are
    differentially private. The intercept is a penalised coordinate of w: its constant is part of every row.

    Three classes and more have a vector of weights each, all released together under the one budget: with one joint loss,
    minus the log-probability of a row's class (softmax), or one logistic loss for each class against all others.

    Parameters
    ----------
    multiclass : {"softmax", "one-vs-rest"}, default "softmax"
        The loss of three classes and more.
    other parameters : those that linear models share

    Attributes
    ----------
    coef_ : array (1, n_coefficients), or (n_classes, n_coefficients) for three classes and more
        Weights for `classes_[1]`, or for each class: one a column of X, or of the encoded columns with a schema.
    intercept_ : array (1,) or (n_classes,)
    classes_ : array (n_classes,), sorted
    coefficient_names_ : array (n_coefficients,) of str
    n_features_in_ : int
    feature_names_in_ : array of str, where X has names
    alpha_ : float
        The ridge used, a public number.
    guarantee_ : Guarantee

    Notes
    -----
    Guarantee: `coef_`, `intercept_` and what intervals are made of are together differentially private at the budget for the
    stated neighbour relation, in the sense and under the assumptions that `guarantee_.statement()` lists. Nothing else that
    depends on rows is kept.

    Sources: Chaudhuri, Monteleoni and Sarwate, Differentially Private Empirical Risk Minimization, JMLR 2011; proofs
    beside the mechanisms in confide/privacy/proofs.

    Examples
    --------
    >>> import confide
    >>> adult = confide.datasets.load_adult()
    >>> model = confide.LogisticRegression(budget=1.0, schema=adult.schema)
    >>> bool(model.fit(adult.X_train, adult.y_train).score(adult.X_test, adult.y_test) > 0.8)
    True
    """

    multiclass: str = "softmax"

    def decision_function(self, X: Any) -> Array:
        """Log-odds of `classes_[1]`, (n,). Rows are clipped to the bound of the fit, as the rows it learned from were.

        Of three classes and more the score of each, (n, k): the log-probability but for a number common to the row, or with
        one-vs-rest the log-odds of the class against all others.
        """
        return super().decision_function(X)

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, k) of the classes in `classes_`; with one-vs-rest those of each, divided by their sum."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of `predict_proba`, (n, k)."""
        from scipy.special import log_expit, log_softmax, logsumexp

        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        if self.multiclass == "softmax":
            return np.asarray(log_softmax(scores, axis=1))
        logs = log_expit(scores)
        return np.asarray(logs - logsumexp(logs, axis=1, keepdims=True))

    def _minimised(self, encoder: Encoder | None) -> ScoreLoss:
        multiclass = parameters.checked_choice("multiclass", self.multiclass, ("softmax", "one-vs-rest"))
        return ScoreLoss(LogisticLoss(), one_vs_rest=LogisticLoss(), softmax=multiclass == "softmax")
