"""Private support vector machines, linear and with kernels."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from confide.erm.hinges import Hinge, HuberHinge, LogisticHinge, SmoothHinge
from confide.erm.row_bounds import BallBound, RowBound
from confide.errors import ParameterError
from confide.estimators.linear_classifier import LinearClassifier
from confide.estimators.shared_parameters import IntervalsParameter, RowNormParameter, estimator
from confide.features.encoder import Encoder
from confide.features.fourier import FourierMap
from confide.intake import parameters
from confide.training.alpha import usual_norm
from confide.training.settings import ScoreLoss

_LOSSES: dict[str, type[HuberHinge] | type[SmoothHinge] | type[LogisticHinge]] = {
    "auto": HuberHinge,
    "huber_hinge": HuberHinge,
    "smooth_hinge": SmoothHinge,
    "logistic_hinge": LogisticHinge,
}
"""The losses by their names. For "auto" `training/loss_choice.py` may put the logistic hinge in the place of the hinge."""
_NARROWEST = 2.0**-12
"""The smallest `smoothing` of a joint. The joint of loss="hinge" is no narrower."""


def hinge_loss(name: Any, smoothing: Any, bound_if_noisy: RowBound | None) -> ScoreLoss:
    """The loss of a support vector machine, from its parameters.

    Parameters
    ----------
    name, smoothing : as the user gave them
    bound_if_noisy : a narrower bound on rows that an automatic loss may bring, or None
    """
    name = parameters.checked_choice("loss", name, (*_LOSSES, "hinge"))
    if name == "hinge":
        return ScoreLoss(
            Hinge(),
            only_two=(
                "Only binary classification is supported with loss='hinge'. The type of the target is multiclass: take "
                "loss='huber_hinge' with a small smoothing, such as 0.05."
            ),
        )
    try:
        half_width = float(smoothing) if isinstance(smoothing, Real) and not isinstance(smoothing, bool) else math.nan
        loss = _LOSSES[name](half_width)
    except (TypeError, ValueError):
        raise ParameterError("smoothing must be a positive finite number.") from None
    if isinstance(loss, (HuberHinge, SmoothHinge)) and half_width < _NARROWEST:
        raise ParameterError(
            f"smoothing must be at least 2^-12, about 0.00025, and is {half_width:g}: the narrower the joint, the longer "
            f"a fit may take. Take a larger smoothing, or loss='hinge', whose joint is chosen for you."
        )
    if name != "auto":
        return ScoreLoss(loss, one_vs_rest=loss)
    return ScoreLoss(loss, one_vs_rest=loss, if_noisy=LogisticHinge(half_width), bound_if_noisy=bound_if_noisy)


@estimator
class LinearSVC(IntervalsParameter, RowNormParameter, LinearClassifier):
    """A linear support vector machine with the hinge or a smoothed hinge, released under differential privacy.

    Minimises mean loss(y w . x) + alpha / 2 |w|^2 over clipped rows, perturbed so that the released weights are
    differentially private. The loss is the hinge max(0, 1 - z) with a joint of half-width `smoothing` around z = 1. Of three
    classes and more each has its weights, for the class against all others; all are released together under the one budget.

    Parameters
    ----------
    loss : {"auto", "huber_hinge", "smooth_hinge", "logistic_hinge", "hinge"}, default "auto"
        The joint is a parabola ("huber_hinge"), or a polynomial that is twice differentiable ("smooth_hinge").
        "logistic_hinge" is the logistic loss moved by a margin of 1 / smoothing, log(1 + exp(1 / smoothing - z)): the hinge
        with a round corner at that margin, whose curvature costs next to nothing. "hinge" is the hinge itself but for the
        narrowest parabola with which double precision can certify a minimiser, shown in the plan, from 1/4096 to 1/32
        wide; it needs noise on the weights, so `mechanism` "auto" is "output".

        "auto" is "huber_hinge" where noise is small beside the rows, without privacy, for three classes and more, for noise
        on the weights and in `intervals_from_parts`; and "logistic_hinge" where it is large.
        Then, if the noise is Gaussian, a schema is given and no intervals are asked for, encoded rows are clipped to the
        norm of a usual row that follows from the schema. All of it is decided from public facts, and the plan says it.
    smoothing : float, default 0.5
        Half-width of the joint, at least 2^-12 (of "logistic_hinge" 2^-20); not used by "hinge". A narrower one is closer
        to the hinge and costs objective perturbation more of the budget, or a larger alpha; of "logistic_hinge" it costs
        little, and scores are larger.
    other parameters : those that linear models share

    Attributes
    ----------
    coef_, intercept_, classes_, coefficient_names_, n_features_in_, feature_names_in_, alpha_, guarantee_ :
        As in `LogisticRegression`; the scores are no log-odds.

    Notes
    -----
    There are no intervals for the "hinge", which does not bend.

    Guarantee: as for `LogisticRegression`. The curvature of the hinges with a joint costs a part of the budget, which the
    logistic loss, with a margin or without, often does not pay. Scores and coefficients of the logistic hinge are 1 /
    smoothing times as large as those of the hinge, so do not compare them between losses. Where the plan clips encoded rows,
    coefficients speak of the clipped rows, and rows to predict are clipped alike.

    Sources: Chaudhuri, Monteleoni and Sarwate, Differentially Private Empirical Risk Minimization, JMLR 2011, equations (20)
    to (23); for the logistic hinge Zhang, Jin, Yang and Hauptmann, Modified Logistic Regression, ICML 2003; for the hinge
    with noise on the weights Rubinstein, Bartlett, Huang and Taft (2012).

    Examples
    --------
    >>> import confide
    >>> adult = confide.datasets.load_adult()
    >>> model = confide.LinearSVC(budget=1.0, schema=adult.schema)
    >>> bool(model.fit(adult.X_train, adult.y_train).score(adult.X_test, adult.y_test) > 0.8)
    True
    """

    loss: str = "auto"
    smoothing: float = 0.5

    def _minimised(self, encoder: Encoder | None) -> ScoreLoss:
        usual = None if encoder is None else BallBound(usual_norm(encoder.row_bound, 0.0))
        return hinge_loss(self.loss, self.smoothing, usual)


@estimator
class KernelSVC(LinearClassifier):
    """A support vector machine with a translation-invariant kernel, released under differential privacy.

    Rows pass through random Fourier features, whose kernel approximates the one asked for; on them it is `LinearSVC`. The
    features follow from public facts and a public seed, stored in the model; a mapped row has norm 1 whatever the row was.

    Parameters
    ----------
    kernel : {"rbf", "laplacian", "cauchy"}, default "rbf"
    length_scale : float, default 1.0
        Of the kernel, in the units of the columns of X (with a schema, of the encoded columns). Public, never learned.
    n_features : int, even, default 256
        Number of random features: more come closer to the kernel and bring more noise.
    orthogonal : bool, default False
        Orthogonal frequencies, for "rbf": closer to the kernel with as many features.
    map_seed : int, default 0
        Seed of the features. Public; it has nothing to do with the noise.
    loss : as in `LinearSVC`, default "huber_hinge"
        "auto" is the logistic hinge where noise is large; mapped rows have one norm and are not clipped further.
    smoothing : as in `LinearSVC`
    other parameters : those that linear models share

    Attributes
    ----------
    coef_ : array (1, n_features), or (n_classes, n_features) for three classes and more, weights of the random features
    intercept_, classes_, coefficient_names_, n_features_in_, feature_names_in_, alpha_, guarantee_ :
        As in `LogisticRegression`.

    Notes
    -----
    Guarantee: as for `LogisticRegression`.

    Sources: Rahimi and Recht (2008) for the features; Rubinstein, Bartlett, Huang and Taft (2012) and Chaudhuri, Monteleoni
    and Sarwate (2011), section 4, for private learning with them.

    Examples
    --------
    >>> import numpy as np
    >>> import confide
    >>> points = np.random.default_rng(0).uniform(-1, 1, size=(20_000, 2))
    >>> inside = np.linalg.norm(points, axis=1) < 0.75
    >>> model = confide.KernelSVC(1.0, length_scale=0.5, n_features=64).fit(points, inside)
    >>> bool(model.score(points, inside) > 0.9)
    True
    """

    kernel: str = "rbf"
    length_scale: float = 1.0
    n_features: int = 256
    orthogonal: bool = False
    map_seed: int = 0
    loss: str = "huber_hinge"
    smoothing: float = 0.5

    _accepts_sparse = False  # its features are dense

    def _minimised(self, encoder: Encoder | None) -> ScoreLoss:
        # The random features of a row have norm 1, whatever the row, so no narrower bound helps.
        return hinge_loss(self.loss, self.smoothing, None)

    def _fourier_map(self, n_inputs: int) -> FourierMap:
        return FourierMap(n_inputs, self.n_features, self.kernel, self.length_scale, self.map_seed, self.orthogonal)

    def _bound_of_rows(self, encoder: Encoder | None) -> RowBound:
        return self._fourier_map(1).row_bound
