"""Linear models with a choice of losses: one of the library's, by its name, or one that the user wrote."""

from __future__ import annotations

from typing import Any, Literal

from confide.erm.losses import HuberHinge, LogisticHinge, LogisticLoss, OneMargin, SmoothHinge
from confide.erm.target_losses import TiltedLoss
from confide.erm.transformed_losses import DeclaredLoss
from confide.errors import ParameterError, wording
from confide.estimators.linear_classifier import LinearClassifier
from confide.estimators.parameters import PenaltyParameter, StraightLineParameters, estimator
from confide.estimators.regression import LOSSES_OF_MEANS, LossRegressor, mean_loss, squared_loss
from confide.features.encoder import Encoder
from confide.intake.targets import Numbers
from confide.intake.user_losses import declared_loss, loss_with_slopes
from confide.known_words import words_of
from confide.parameters import checked
from confide.privacy.budgets import as_budget
from confide.training.settings import ScoreLoss

MARGIN_LOSSES: dict[str, type[Any]] = {
    "logistic": LogisticLoss,
    "logistic_hinge": LogisticHinge,
    "huber_hinge": HuberHinge,
    "smooth_hinge": SmoothHinge,
}
_TARGET_LOSSES = ("huber", "clipped_squared", *LOSSES_OF_MEANS, "quantile", "absolute")


def _user_loss(model: Any, names: tuple[str, ...], target_bound: float | None) -> DeclaredLoss:
    loss = model.loss
    if isinstance(loss, str) or loss is None:
        # A file cannot hold a loss that a user wrote, so a model that was read from a file has None in its place.
        raise ParameterError(f"loss must be one of {words_of(names, loss)}, or an object with a loss of your own.")
    if model.mechanism == "gradient" and as_budget(model.budget).is_private:
        return loss_with_slopes(loss, target_bound)
    return declared_loss(loss, target_bound)


@estimator
class ERMClassifier(StraightLineParameters, PenaltyParameter, LinearClassifier):
    """A linear classifier with a loss of the margin, released under differential privacy.

    Minimises mean loss(y w . x) + alpha / 2 |w|^2 over clipped rows, perturbed so that the released weights are
    differentially private. With three or more classes, each class has a vector of weights against all others, as in
    `LinearSVC`. A loss of your own is for two classes only.

    Parameters
    ----------
    loss : {"logistic", "logistic_hinge", "huber_hinge", "smooth_hinge"} or object, default "logistic"
        The name of a loss, or an object with a loss of your own. The object must have

        - ``value(margin)``, ``derivative(margin)``, ``second_derivative(margin)``: functions that take a one-dimensional
          array and work entry by entry. The loss must be convex and nowhere negative;
        - ``lipschitz`` and ``smoothness``: the largest absolute value of the first and of the second derivative.

        A loss with kinks, such as a hinge, leaves out ``second_derivative`` and ``smoothness``; its derivative at a kink is
        any slope between those on both sides. The noise is then in gradients, or on the weights (for `PureDP`, or with
        ``mechanism="output"``): the fit takes its slopes at multiples of a narrow width, and straight lines between them.

        It may have

        - ``monotone = True``, if the derivative is nowhere positive: Gaussian noise then costs less of the budget;
        - ``rounding``: the error of the computed derivative, in units of 2^-53 lipschitz; default 1024;
        - ``value_at_zero``: an upper bound on the loss at margin 0; ``name``: how messages name the loss.

        `fit` and `plan` read the constants and check them on a grid of public numbers, before anything is charged. The
        guarantee rests on them and lists them as an assumption. With `n_jobs` the functions are called from several
        threads, so they must not keep state.

        With ``mechanism="gradient"`` the object needs nothing but ``derivative``. The loss may have kinks and need not be
        convex, slopes steeper than `lipschitz` are clipped, and the guarantee assumes nothing but that a slope depends on
        its own score and label alone.
    other parameters : those that linear models share

    Attributes
    ----------
    coef_, intercept_, classes_, coefficient_names_, n_features_in_, feature_names_in_, alpha_, guarantee_ :
        As in `LogisticRegression`.

    Notes
    -----
    Guarantee: as for `LogisticRegression`. A saved model does not contain a loss of your own. What `confide.load` reads can
    predict; before another fit, set `loss` again. Source: that of the mechanism; each has a proof page in
    confide/privacy/proofs.

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

    loss: object = "logistic"
    intercept_scaling: float = 1.0

    def _minimised(self, encoder: Encoder | None) -> ScoreLoss:
        if isinstance(self.loss, str) and self.loss in MARGIN_LOSSES:
            known: OneMargin = MARGIN_LOSSES[self.loss]()
            return ScoreLoss(known, one_vs_rest=known)
        return ScoreLoss(_user_loss(self, tuple(MARGIN_LOSSES), None), only_two=wording("own loss for two classes"))


@estimator
class ERMRegressor(StraightLineParameters, PenaltyParameter, LossRegressor):
    """A linear regressor with a loss of the score and the target, released under differential privacy.

    Minimises mean loss(w . x, y) + alpha / 2 |w|^2 over clipped rows and targets, perturbed so that the released weights are
    differentially private.

    Parameters
    ----------
    loss : {"huber", "clipped_squared", "poisson", "quantile", "absolute", ...} or object, default "huber"
        The name of a loss, as in `HuberRegressor` and `PoissonRegressor`; "negative_binomial", "gamma" and "tweedie", as in
        `AdditiveRegressor`; "quantile", for predictions with a given share of the targets below them; "absolute", the
        absolute error, for medians; or an object with a loss of your own, as in `ERMClassifier`. The functions of the object
        take two one-dimensional arrays, ``value(score, target)`` and so on; derivatives are with respect to the score. It
        must not declare `monotone`.
    target_bound : float or None, default None
        Required by `fit` and `plan` unless the schema has a target of numbers; positive. Every target is clipped to
        [-target_bound, target_bound], and counts are clipped to [0, target_bound]; or both to the range in the schema.
    threshold : "auto", float or None, default "auto"
        For losses that are given by name, as in their estimators. None means a tenth of `target_bound`; for "poisson" it
        means 1.
    power : float, default 1.5
        For "tweedie", as in `AdditiveRegressor`.
    dispersion : float, default 1.0
        For "negative_binomial", as in `AdditiveRegressor`.
    quantile : float, default 0.5
        For "quantile": the share of targets that should lie below the predictions, from 0.001 to 0.999.
    intercept_scaling : "auto" or float, default "auto"
        The constant that is appended to every clipped row, positive. A larger constant shrinks the intercept less and brings
        more noise. "auto" is half the largest norm of a row, and at least 1 for "poisson"; otherwise it is 1.
    other parameters : those that linear models share

    Attributes
    ----------
    coef_, intercept_, coefficient_names_, n_features_in_, feature_names_in_, alpha_, guarantee_ :
        As in `Ridge`.

    Notes
    -----
    Guarantee: as for `LogisticRegression`; with a loss of your own it has the assumptions stated in `ERMClassifier`. Then
    the prediction is the score.

    Source: that of the mechanism; each has a proof page in confide/privacy/proofs, and losses of score and target have
    one of their own, target_losses.md.

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

    loss: object = "huber"
    threshold: Literal["auto"] | float | None = "auto"
    quantile: float = 0.5
    power: float = 1.5
    dispersion: float = 1.0
    intercept_scaling: float | Literal["auto"] = "auto"

    @property
    def _quantile(self) -> float | None:
        return {"absolute": 0.5, "quantile": checked("quantile", self.quantile)}.get(str(self.loss))

    @property
    def _may_shift(self) -> bool:
        # A loss of the user's own may be no function of residuals.
        return not self._has_own_loss and super()._may_shift

    def _loss(self, target: Numbers) -> ScoreLoss:
        target_bound = target.bound
        if self._has_counts:
            return mean_loss(self, target)
        name = self._named_loss
        if name in ("huber", "clipped_squared"):
            return squared_loss(name, target_bound, self.threshold)
        if target_bound == float("inf"):
            raise ParameterError("this loss needs a finite target_bound, also without privacy; it is inf.")
        if name == "absolute":
            return ScoreLoss(TiltedLoss.absolute(target_bound))
        if name == "quantile":
            return ScoreLoss(TiltedLoss.of_quantile(checked("quantile", self.quantile), target_bound))
        return ScoreLoss(_user_loss(self, _TARGET_LOSSES, target_bound))
