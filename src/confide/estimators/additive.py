"""Additive models: every number column is a curve, every category a level, and the effects of columns are added up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from confide.erm.hinges import LogisticHinge
from confide.erm.losses import LogisticLoss, Loss
from confide.erm.row_bounds import BallBound
from confide.errors import ParameterError
from confide.estimators.additive_columns import AdditiveColumns
from confide.estimators.linear_classifier import LinearClassifier
from confide.estimators.loss_regression import LossRegressor, poisson_loss, squared_loss
from confide.estimators.shared_parameters import IntervalsParameter, MeanParameter, PenaltyParameter, estimator
from confide.features.encoder import Encoder
from confide.intake import parameters
from confide.released_models.links import Link
from confide.training.alpha import usual_norm_of_rows
from confide.training.least_squares_choice import MECHANISMS_OF_LEAST_SQUARES, squared_error
from confide.training.settings import ScoreLoss, SquaredError, Thresholds
from confide.types import Array

MARGIN = 2.0
"""The margin of the logistic hinge that "auto" stands for: that of the support vector machines. Compared on the data of
benchmarks/peers."""
SHARE_OF_COUNTS = 0.4
"""The threshold of counts that None means, as a share of `target_bound`."""
_MONOTONE_FOR_TWO = (
    "Only binary classification is supported with monotone effects. The type of the target is multiclass: leave monotone "
    "out."
)


@estimator
class AdditiveClassifier(AdditiveColumns, IntervalsParameter, PenaltyParameter, LinearClassifier):
    """An additive classifier (a generalised additive model), released under differential privacy.

    The score of a row is the sum of the effects of its columns: a curve for each number, a value for each level of a
    category. A curve is a straight line between neighbouring knots. Knots and other choices follow from public facts, never
    from the rows: the schema, the number of rows, and the noise of the plan.

    Parameters
    ----------
    loss : {"auto", "logistic", "logistic_hinge"}, default "auto"
        "logistic" is logistic regression. "logistic_hinge" is the logistic loss with a margin of 2, log(1 + exp(2 - z)),
        which errs less at small budgets. "auto" is "logistic_hinge", and if the noise is Gaussian and large beside the rows,
        encoded rows are also clipped to the norm of a typical row, which follows from the schema; with three or more
        classes it is "logistic", of all classes together (softmax).
    other parameters : those that linear models share

    Attributes
    ----------
    coef_ : array (1, n_coefficients), or (n_classes, n_coefficients) for three or more classes
        The effects at knots and levels, in favour of `classes_[1]`, or of each class.
    intercept_, classes_, coefficient_names_, n_features_in_, feature_names_in_, alpha_, guarantee_ :
        As in `LogisticRegression`.
    schema_ : Schema
        The schema with all that was chosen written out: `Schema.to_toml` writes it.

    Notes
    -----
    Guarantee: as for `LogisticRegression`. The choice of knots costs nothing, because it uses public facts alone.

    Probabilities: of the logistic hinge with margin m, the score that minimises the expected loss where the probability is p
    satisfies p = (1 + e^(z - m)) / (2 + e^(z - m) + e^(-z - m)).

    Sources: Hastie and Tibshirani, Generalized Additive Models, 1990; Chaudhuri, Monteleoni and Sarwate, JMLR 2011; Zhang,
    Jin, Yang and Hauptmann, Modified Logistic Regression, ICML 2003.

    Examples
    --------
    >>> import confide
    >>> adult = confide.datasets.load_adult()
    >>> model = confide.AdditiveClassifier(budget=1.0, schema=adult.schema)
    >>> bool(model.fit(adult.X_train, adult.y_train).score(adult.X_test, adult.y_test) > 0.84)
    True
    """

    loss: str = "auto"
    intercept_scaling: float = 1.0

    _loss_in_parts = "logistic_hinge"

    def _minimised(self, encoder: Encoder | None) -> ScoreLoss:
        name = parameters.checked_choice("loss", self.loss, ("auto", "logistic", "logistic_hinge"))
        found = self._loss_named(name, encoder)
        if not self.monotone:
            return found
        # Each of several classes has a score, and none of them speaks for the order of the others.
        return replace(found, one_vs_rest=None, softmax=False, only_two=_MONOTONE_FOR_TWO)

    def _loss_named(self, name: str, encoder: Encoder | None) -> ScoreLoss:
        if name == "logistic":
            return ScoreLoss(LogisticLoss(), one_vs_rest=LogisticLoss(), softmax=True)
        hinge = LogisticHinge(1.0 / MARGIN)
        if name == "logistic_hinge":
            return ScoreLoss(hinge, one_vs_rest=hinge)
        usual = None if encoder is None else BallBound(usual_norm_of_rows(encoder))
        return ScoreLoss(hinge, softmax=True, if_noisy=hinge, bound_if_noisy=usual)

    @property
    def _link(self) -> Link:
        several = len(self.classes_) > 2
        if self.loss == "logistic" or (several and self.loss != "logistic_hinge"):
            return Link("softmax" if several else "logistic")
        return Link("one-vs-rest" if several else "logistic", MARGIN)

    def _scores_at(self, probabilities: Array) -> Array:
        return super()._scores_at(probabilities) if self.loss == "logistic" else self._link.scores_at(probabilities)

    def predict_proba(self, X: Any) -> Array:
        """Compute the probability of each class in `classes_`, (n, n_classes).

        With three or more classes and loss="logistic_hinge", the probabilities of a row are divided by their sum.

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
        scores = self.decision_function(X)
        return self._link.log_probabilities(scores)


@estimator
class AdditiveRegressor(MeanParameter, AdditiveColumns, IntervalsParameter, PenaltyParameter, LossRegressor):
    """An additive regression (a generalised additive model), released under differential privacy.

    The score of a row is the sum of the effects of its columns: a curve for each number, a value for each level of a
    category. It is the prediction, or its logarithm for counts. Knots and other choices follow from public facts, never from
    the rows.

    Parameters
    ----------
    loss : {"huber", "squared", "poisson"}, default "huber"
        - "huber": half the squared residual, and linear beyond `threshold`, as in `HuberRegressor`.
        - "squared": least squares, as in `Ridge`.
        - "poisson": for counts, as in `PoissonRegressor`. The effects are those on the logarithm of the mean.
    threshold : "auto", float or None, default "auto"
        Residual, or difference between a count and its mean, beyond which the influence of a row no longer grows; positive.
        "auto" is that of `HuberRegressor` or `PoissonRegressor`. None means a tenth of `target_bound` for "huber", and two
        fifths for "poisson". Not used by "squared".
    intercept_scaling : "auto" or float, default "auto"
        The constant that is appended to every clipped row, positive. A larger constant shrinks the intercept less and brings
        more noise. "auto" is half the largest norm of a row, and at least 1 for "poisson"; otherwise it is 1.
    other parameters : those that linear models share

    Attributes
    ----------
    coef_ : array (n_coefficients,)
        The effects at knots and levels.
    intercept_, coefficient_names_, n_features_in_, feature_names_in_, alpha_, guarantee_ :
        As in `Ridge`.
    schema_ : Schema
        The schema with all that was chosen written out: `Schema.to_toml` writes it.

    Notes
    -----
    Guarantee: as for `HuberRegressor`, `Ridge` and `PoissonRegressor`. The choice of knots costs nothing, because it uses
    public facts alone.

    Sources: those of these estimators; each mechanism has a proof page in confide/privacy/proofs.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(20_000, 2))
    >>> y = X[:, 0] ** 2 - np.abs(X[:, 1])
    >>> model = AdditiveRegressor(budget=1.0, bounds=(-1, 1), target_bound=1.0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    loss: str = "huber"
    threshold: str | float | None = "auto"
    intercept_scaling: float | str = "auto"

    def _train(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        if self.loss == "squared" and sample_weight is not None:
            raise ParameterError("loss='squared' takes no weights of rows; leave sample_weight out, or take loss='huber'.")
        return super()._train(X, y, sample_weight)

    @property
    def _has_counts(self) -> bool:
        return bool(self.loss == "poisson")

    @property
    def _mechanisms(self) -> tuple[str, ...]:  # type: ignore[override]  # what is allowed depends on the loss
        return MECHANISMS_OF_LEAST_SQUARES if self.loss == "squared" else super()._mechanisms

    def _minimised(self, encoder: Encoder | None) -> ScoreLoss | SquaredError:  # type: ignore[override]  # "squared" has none
        parameters.checked_choice("loss", self.loss, ("huber", "squared", "poisson"))
        if self.inference_share != 0.0 and self.loss == "squared":
            raise ParameterError(
                "there are no intervals with loss='squared': set inference_share to 0, or take loss='huber' or 'poisson'."
            )
        if self.loss == "squared":
            return squared_error(self._target_range(encoder).bound)
        return super()._minimised(encoder)

    def _loss(self, target_bound: float) -> Loss | Thresholds:
        if self._has_counts:
            return poisson_loss(target_bound, self.threshold, SHARE_OF_COUNTS * target_bound)
        return squared_loss("huber", target_bound, self.threshold)
