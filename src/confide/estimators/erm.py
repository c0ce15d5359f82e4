"""Linear models with any loss of a kind: one of the library's by its name, or one that a user wrote."""

from __future__ import annotations

from typing import Any

from confide.erm.declared_losses import DeclaredLoss
from confide.erm.hinges import HuberHinge, LogisticHinge, SmoothHinge
from confide.erm.losses import LogisticLoss, Loss, MarginLoss
from confide.errors import ParameterError
from confide.estimators.linear_classifier import LinearClassifier
from confide.estimators.loss_regression import LossRegressor, poisson_loss, squared_loss
from confide.estimators.shared_parameters import RowNormParameter, estimator
from confide.features.encoder import Encoder
from confide.intake.user_losses import declared_loss
from confide.training.settings import ScoreLoss

MARGIN_LOSSES: dict[str, type[Any]] = {
    "logistic": LogisticLoss,
    "logistic_hinge": LogisticHinge,
    "huber_hinge": HuberHinge,
    "smooth_hinge": SmoothHinge,
}
_TARGET_LOSSES = ("huber", "clipped_squared", "poisson")


def _of_user(loss: Any, names: tuple[str, ...], target_bound: float | None) -> DeclaredLoss:
    if isinstance(loss, str) or loss is None:
        # A model that was read from a file has no loss in the place of one that a user wrote.
        raise ParameterError(f"loss must be one of {', '.join(map(repr, names))}, or an object with a loss of your own.")
    return declared_loss(loss, target_bound)


@estimator
class ERMClassifier(RowNormParameter, LinearClassifier):
    """A linear classifier with a loss of the margin, released under differential privacy.

    Minimises mean loss(y w . x) + alpha / 2 |w|^2 over clipped rows, perturbed so that the released weights are
    differentially private. Of three classes and more each has its weights, for the class against all others (`LinearSVC`);
    a loss of your own is for two classes.

    Parameters
    ----------
    loss : {"logistic", "logistic_hinge", "huber_hinge", "smooth_hinge"} or object, default "logistic"
        An object of your own has

        - ``value(margin)``, ``derivative(margin)``, ``second_derivative(margin)``: functions of a one-dimensional array,
          entry by entry; the loss is convex and nowhere negative;
        - ``lipschitz`` and ``smoothness``: the largest absolute value of the first and of the second derivative;
        - if wanted ``monotone = True``, where the derivative is nowhere positive: the account of Gaussian noise is cheaper;
          ``rounding``, the error of the computed derivative in units of 2^-53 lipschitz, default 1024; ``value_at_zero``;
          ``name``.

        The constants are read in `fit` and `plan`, and checked on a grid of public numbers before anything is charged. The
        guarantee rests on them, and names them as an assumption. With `n_jobs` the functions are called from several
        threads, so they keep no state.
    other parameters : those that linear models share

    Attributes
    ----------
    coef_, intercept_, classes_, coefficient_names_, n_features_in_, feature_names_in_, alpha_, guarantee_ :
        As in `LogisticRegression`.

    Notes
    -----
    Guarantee: as for `LogisticRegression`. A file of a model with a loss of your own holds the weights and not the loss:
    what `confide.load` reads predicts, and needs its loss again for another fit.

    Examples
    --------
    >>> import numpy as np
    >>> class HyperbolicHinge:
    ...     '''(sqrt(1 + (1 - z)^2) + (1 - z)) / 2: a hinge with a hyperbola for its corner.'''
    ...
    ...     lipschitz, smoothness, monotone = 1.0, 0.5, True
    ...
    ...     def value(self, margin):
    ...         return 0.5 * (np.hypot(1.0, 1.0 - margin) + (1.0 - margin))
    ...
    ...     def derivative(self, margin):
    ...         return -0.5 * ((1.0 - margin) / np.hypot(1.0, 1.0 - margin) + 1.0)
    ...
    ...     def second_derivative(self, margin):
    ...         return 0.5 / np.hypot(1.0, 1.0 - margin) ** 3
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(5_000, 2))
    >>> model = ERMClassifier(1.0, loss=HyperbolicHinge()).fit(X, X[:, 0] > 0.0)
    >>> bool(model.score(X, X[:, 0] > 0.0) > 0.9)
    True
    """

    loss: Any = "logistic"

    def _minimised(self, encoder: Encoder | None) -> ScoreLoss:
        if isinstance(self.loss, str) and self.loss in MARGIN_LOSSES:
            known: MarginLoss = MARGIN_LOSSES[self.loss]()
            return ScoreLoss(known, one_vs_rest=known)
        return ScoreLoss(
            _of_user(self.loss, tuple(MARGIN_LOSSES), None),
            only_two=(
                "Only binary classification is supported with a loss of your own. The type of the target is multiclass: say "
                "which class against all others."
            ),
        )


@estimator
class ERMRegressor(LossRegressor):
    """A linear regressor with a loss of score and target, released under differential privacy.

    Minimises mean loss(w . x, y) + alpha / 2 |w|^2 over clipped rows and targets, perturbed so that the released weights are
    differentially private.

    Parameters
    ----------
    loss : {"huber", "clipped_squared", "poisson"} or object, default "huber"
        As in `HuberRegressor` and `PoissonRegressor`; or an object of your own, as in `ERMClassifier`, but its functions
        take two one-dimensional arrays, ``value(score, target)`` and so on, with derivatives in the score, and it has no
        `monotone`.
    target_bound : float
        Needed in every fit and plan: every target is clipped to [-target_bound, target_bound], counts to [0, target_bound].
    threshold : float or None
        For the losses that go by a name; None is a tenth of `target_bound`, of counts 1, as in their estimators.
    other parameters : those that linear models share

    Attributes
    ----------
    coef_, intercept_, coefficient_names_, n_features_in_, feature_names_in_, alpha_, guarantee_ :
        As in `Ridge`.

    Notes
    -----
    Guarantee: as for `LogisticRegression`, and as in `ERMClassifier` for a loss of your own, whose score is the prediction.

    Examples
    --------
    >>> import numpy as np
    >>> class PseudoHuber:
    ...     '''h^2 (sqrt(1 + (r / h)^2) - 1), h = 0.1: Huber's loss without a kink.'''
    ...
    ...     lipschitz, smoothness = 0.1, 1.0
    ...
    ...     def value(self, score, target):
    ...         return 0.01 * (np.hypot(1.0, (score - target) / 0.1) - 1.0)
    ...
    ...     def derivative(self, score, target):
    ...         return (score - target) / np.hypot(1.0, (score - target) / 0.1)
    ...
    ...     def second_derivative(self, score, target):
    ...         return np.hypot(1.0, (score - target) / 0.1) ** -3.0
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(10_000, 2))
    >>> model = ERMRegressor(1.0, loss=PseudoHuber(), target_bound=0.5).fit(X, X @ [0.5, -0.5])
    >>> bool(model.score(X, X @ [0.5, -0.5]) > 0.9)
    True
    """

    loss: Any = "huber"
    threshold: float | None = None

    @property
    def _has_counts(self) -> bool:
        return isinstance(self.loss, str) and self.loss == "poisson"

    def _loss(self, target_bound: float) -> Loss:
        if self._has_counts:
            return poisson_loss(target_bound, self.threshold)
        if isinstance(self.loss, str) and self.loss in _TARGET_LOSSES:
            return squared_loss(self.loss, target_bound, self.threshold)
        if target_bound == float("inf"):
            raise ParameterError("a loss of your own needs a finite target_bound.")
        return _of_user(self.loss, _TARGET_LOSSES, target_bound)
