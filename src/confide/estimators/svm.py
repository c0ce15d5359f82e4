"""Private support vector machines, linear ones and ones with kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

from confide.erm.losses import Hinge, LogisticHinge
from confide.erm.row_bounds import BallBound, RowBound
from confide.errors import ParameterError, as_float, checked_count, wording
from confide.estimators.erm import MARGIN_LOSSES
from confide.estimators.linear_classifier import LinearClassifier
from confide.estimators.linear_model import NamesOfColumns
from confide.estimators.parameters import IntervalsParameter, PenaltyParameter, StraightLineParameters, estimator
from confide.features.encoder import Encoder
from confide.features.forms import PublicMap
from confide.features.fourier import CurvesAndFeatures, FourierMap
from confide.intake import parameters
from confide.models.model import ReleasedModel
from confide.parameters import checked_choice
from confide.privacy.budgets import Neighbours
from confide.training.alpha import usual_norm_of_rows
from confide.training.auto_features import feature_norm, length_scale, number_of_features
from confide.training.auto_loss import is_automatic
from confide.training.settings import ScoreLoss, Settings

_LOSSES = ("auto", "huber_hinge", "smooth_hinge", "logistic_hinge", "hinge")
"""With "auto", `training/auto_loss.py` may replace the Huber hinge by the logistic hinge."""
_NARROWEST = 2.0**-12
"""The smallest `smoothing` of a joint. The joint that loss="hinge" uses is not narrower."""


def hinge_loss(name: Any, smoothing: Any, bound_if_noisy: RowBound | None) -> ScoreLoss:
    """The loss of a support vector machine, from its parameters.

    Parameters
    ----------
    name, smoothing : as the user gave them
    bound_if_noisy : a smaller bound on rows that the automatic loss may choose, or None
    """
    name = checked_choice("loss", name, _LOSSES)
    if name == "hinge":
        return ScoreLoss(Hinge(), only_two=wording("hinge for two classes"))
    loss = MARGIN_LOSSES["huber_hinge" if name == "auto" else name](half_width := as_float(smoothing))
    if loss.constants.joint is not None and half_width < _NARROWEST:
        raise ParameterError(wording("smoothing too small", half_width=half_width))
    if name != "auto":
        return ScoreLoss(loss, one_vs_rest=loss)
    return ScoreLoss(loss, one_vs_rest=loss, if_noisy=LogisticHinge(half_width), bound_if_noisy=bound_if_noisy)


@estimator
class LinearSVC(IntervalsParameter, StraightLineParameters, PenaltyParameter, LinearClassifier):
    """A linear support vector machine with the hinge or a smoothed hinge, released under differential privacy.

    Minimises mean loss(y w . x) + alpha / 2 |w|^2 over clipped rows, perturbed so that the released weights are
    differentially private. The loss is the hinge max(0, 1 - z), whose corner at z = 1 is replaced by a smooth joint of
    half-width `smoothing`. With three or more classes, each class has a vector of weights against all others, and all are
    released together under the one budget.

    Parameters
    ----------
    loss : {"auto", "huber_hinge", "smooth_hinge", "logistic_hinge", "hinge"}, default "auto"
        - "huber_hinge": the joint is a parabola.
        - "smooth_hinge": the joint is a polynomial, and the loss is twice differentiable.
        - "logistic_hinge": the logistic loss with a margin of 1 / smoothing, log(1 + exp(1 / smoothing - z)). It is a hinge
          with a round corner at that margin. Its curvature costs nearly nothing of the budget.
        - "hinge": the hinge itself, up to the narrowest parabola with which double precision can certify a minimiser; the
          plan shows its width, 1/4096 to 1/32. The noise must be on the weights, so `mechanism` "auto" means "output".
        - "auto": "logistic_hinge" if the noise is large beside the rows, otherwise "huber_hinge". It is always "huber_hinge"
          without privacy, for three or more classes, and with noise on the weights. If it is "logistic_hinge", the noise is
          Gaussian, a schema is given and no intervals are asked for, then encoded rows are also clipped to the norm of a
          typical row, which follows from the schema. All of this is decided from public facts, and the plan shows it.
    smoothing : float, default 0.5
        Half-width of the joint: at least 2^-12, or 2^-20 for "logistic_hinge"; not used by "hinge". A narrower joint is
        closer to the hinge. With objective perturbation it costs more of the budget, or needs a larger alpha. For
        "logistic_hinge" it costs little and makes scores larger.
    other parameters : those that linear models share

    Attributes
    ----------
    coef_, intercept_, classes_, coefficient_names_, n_features_in_, feature_names_in_, alpha_, guarantee_ :
        As in `LogisticRegression`; the scores are not log-odds.

    Notes
    -----
    There are no intervals for "hinge", because its curvature is zero except at a point.

    With 20 classes and more, `LogisticRegression` is usually far more accurate: its softmax compares all classes at once. An
    `AccuracyWarning` says so.

    Guarantee: as for `LogisticRegression`. The curvature of a hinge with a joint costs a part of the budget; the curvature
    of the logistic loss, with a margin or without, often costs nothing. Scores and coefficients of the logistic hinge are
    1 / smoothing times as large as those of the hinge, so do not compare them between losses. If the plan clips encoded
    rows, the coefficients are those for clipped rows, and rows to be predicted are clipped in the same way.

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

    loss: Literal["auto", "huber_hinge", "smooth_hinge", "logistic_hinge", "hinge"] = "auto"
    smoothing: float = 0.5
    intercept_scaling: float = 1.0

    def _minimised(self, encoder: Encoder | None) -> ScoreLoss:
        return hinge_loss(self.loss, self.smoothing, None if encoder is None else BallBound(usual_norm_of_rows(encoder)))


@estimator
class KernelSVC(IntervalsParameter, LinearClassifier):
    """A support vector machine with a translation-invariant kernel, released under differential privacy.

    Rows are mapped to random Fourier features, whose inner products approximate the kernel, and a `LinearSVC` is trained on
    the features. With a schema, the encoded columns of a row stand beside its features: where the noise hides what the
    features tell, the model is still as good as a linear one. The map follows from public facts and a public seed, and is
    stored in the model.

    Parameters
    ----------
    kernel : {"rbf", "laplacian", "cauchy"}, default "rbf"
        The kernel; `RandomFourierFeatures` has the formulas.
    length_scale : "auto" or float, default "auto"
        Distance over which the kernel falls, positive, in the units of the columns of X (with a schema, of the encoded
        columns). It is public and never learned. "auto" follows from the norm of a typical encoded row, which the schema
        tells. Without a schema it is half of the root of the number of columns, which suits columns of mean 0 and standard
        deviation 1: scale them so by public knowledge, or give a length. It is too long where the longest row has norm 1.
    n_features : "auto" or int, default "auto"
        Number of random features, even. More features approximate the kernel better and bring more noise. "auto" chooses
        from public facts, 120 to 1,000: number of rows, budget and law of the noise. Without privacy it is 1,000. With a
        schema it is 0 if the noise is so large that features do not pay: then the model is one of the encoded columns
        alone, as `LinearSVC` is. 0 needs a schema.
    feature_norm : "auto", float or None, default "auto"
        The L2 norm of the features of a row, positive, where the encoded columns of the row stand beside them. The larger
        it is, the more the model is one of the kernel. None means that the model has the features alone, whose norm is 1.
        "auto" is a multiple of the norm of a typical encoded row; without a schema it is None, because the norm of rows is
        not known. A number needs a schema.
    orthogonal : "auto" or bool, default "auto"
        Whether frequencies are orthogonal, for "rbf": a better approximation with the same number of features. "auto" is
        True for "rbf" where encoded columns stand beside the features, and otherwise False.
    map_seed : int, default 0
        Seed of the map. It is public and has nothing to do with the noise.
    loss : {"auto", "huber_hinge", "smooth_hinge", "logistic_hinge", "hinge"}, default "auto"
        As in `LinearSVC`. "auto" is the logistic hinge if the noise is large. The features of a row have the same norm for
        every row, so a row of features alone is never clipped to a smaller norm.
    smoothing : float, default 0.5
        As in `LinearSVC`.
    intercept_scaling : float, default 0.5
        As in `LinearSVC`, where it is 1. Mapped rows have norm 1, and random features can shift scores by themselves, so a
        smaller constant is enough, and it brings less noise.
    other parameters : those that linear models share

    Attributes
    ----------
    coef_ : array (1, k), or (n_classes, k) for three or more classes
        Weights of the encoded columns, if there are any beside the features, and then of the random features.
    fourier_map_ : FourierMap or None
        The public map to the features, with the length scale and the number of features that the fit had. None if it had
        no features.
    intercept_, classes_, coefficient_names_, n_features_in_, feature_names_in_, alpha_, guarantee_ :
        As in `LogisticRegression`.

    Notes
    -----
    With `inference_share`, `predict_interval` has intervals of scores. Single weights of random features mean nothing, so
    there are no intervals for them: `conf_int`, `summary` and `uncertainty` refuse.

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

    kernel: Literal["rbf", "laplacian", "cauchy"] = "rbf"
    length_scale: float | Literal["auto"] = "auto"
    n_features: int | Literal["auto"] = "auto"
    feature_norm: float | Literal["auto"] | None = "auto"
    orthogonal: bool | Literal["auto"] = "auto"
    map_seed: int = 0
    loss: Literal["auto", "huber_hinge", "smooth_hinge", "logistic_hinge", "hinge"] = "auto"
    smoothing: float = 0.5
    intercept_scaling: float = 0.5

    _accepts_sparse = False  # its features are dense

    def _minimised(self, encoder: Encoder | None) -> ScoreLoss:
        usual = self._usual_norm(encoder)
        # The random features of a row have norm 1, whatever the row is, so a smaller bound does not help them alone.
        return hinge_loss(self.loss, self.smoothing, None if usual is None else BallBound(usual))

    def _usual_norm(self, encoder: Encoder | None) -> float | None:
        """The L2 norm of a typical row with its features; None if the model has the features alone."""
        norm = self._norm_beside_columns(encoder)
        return None if norm is None or encoder is None else math.hypot(usual_norm_of_rows(encoder), norm)

    def _norm_beside_columns(self, encoder: Encoder | None) -> float | None:
        """The norm of the features of a row whose encoded columns stand beside them; None if the features are alone."""
        if self._has_columns_alone(encoder):
            return 0.0
        if is_automatic(self.feature_norm):
            return None if encoder is None else feature_norm(encoder)
        if self.feature_norm is not None and encoder is None:
            raise ParameterError(wording("feature_norm needs a schema"))
        return self.feature_norm  # type: ignore[return-value]  # the map checks that it is a number

    def _has_columns_alone(self, encoder: Encoder | None) -> bool:
        """Whether the model has no features."""
        if as_float(self.n_features) != 0.0:
            return False
        if encoder is None:
            raise ParameterError(wording("columns alone need a schema"))
        return True

    def _fourier_map(self, n_inputs: int, encoder: Encoder | None) -> PublicMap | None:
        return self._map_of(self.n_features, n_inputs, encoder)

    def _map_of(self, number: Any, n_inputs: int, encoder: Encoder | None) -> PublicMap | None:
        if self._has_columns_alone(encoder):
            return None
        if encoder is not None and encoder.appended is not None:
            raise ParameterError("the schema has random_features, and a kernel its own: take them out, or use LinearSVC.")
        norm = self._norm_beside_columns(encoder)
        length: Any = self.length_scale
        if is_automatic(length):
            kernel = FourierMap(1, 2, self.kernel).kernel  # refuses what is no kernel
            length = length_scale(kernel, n_inputs, encoder)
        orthogonal: Any = (self.kernel == "rbf" and norm is not None) if is_automatic(self.orthogonal) else self.orthogonal
        features = FourierMap(n_inputs, number, self.kernel, length, self.map_seed, orthogonal)
        return features if norm is None or encoder is None else CurvesAndFeatures(features, norm, encoder.row_bound.l2_norm)

    def _bound_of_rows(self, encoder: Encoder | None) -> RowBound:
        # The map itself is made when the number of features is chosen; here its other parameters are checked.
        feature_map = self._map_of(2 if is_automatic(self.n_features) else self.n_features, 1, encoder)
        return super()._bound_of_rows(encoder) if feature_map is None else feature_map.row_bound

    def _settings(self, encoder: Encoder | None, *, set_aside: float = 0.0, names: NamesOfColumns | None = None) -> Settings:
        settings = super()._settings(encoder, set_aside=set_aside, names=names)
        if self._has_columns_alone(encoder):
            return settings
        return replace(settings, random_features=True, usual_norm=self._usual_norm(encoder))

    def _with_chosen_features(self, encoder: Encoder | None, count: Callable[[], int]) -> Self:
        is_chosen = is_automatic(self.n_features)
        of_prior = any(map(is_automatic, (self.length_scale, self.feature_norm, self.orthogonal)))
        if not is_chosen and (self.prior is None or not of_prior):
            return self
        settings = self._settings(encoder)
        if settings.prior is not None and settings.prior.fitted_to is not None:
            return self._with_features_of(settings.prior.fitted_to.fourier)
        if not is_chosen:
            return self
        is_public = settings.neighbours is Neighbours.REPLACE_ONE
        named = copy(self)
        kept = None if self._norm_beside_columns(encoder) is None else encoder
        named.n_features = number_of_features(settings, kept, count if is_public else None)
        return named

    def _with_features_of(self, fourier: PublicMap | None) -> Self:
        named = copy(self)
        features = _features_in(fourier)
        if features is None:
            # Without a schema there is no model without features.
            if is_automatic(self.n_features) and self.schema is not None:
                named.n_features = 0
            return named
        if is_automatic(self.feature_norm):
            named.feature_norm = fourier.feature_norm if isinstance(fourier, CurvesAndFeatures) else None
        for name in ("n_features", "length_scale", "orthogonal"):
            if is_automatic(getattr(self, name)):
                setattr(named, name, getattr(features, name))
        return named

    def _hold(self, released: ReleasedModel) -> None:
        super()._hold(released)
        self.fourier_map_ = _features_in(released.fourier)

    def chosen_map(self, n_rows: int | None = None, n_features: int | None = None) -> FourierMap | None:
        """The public map of a fit to features, with their length scale and number. Reads no data and charges nothing.

        Parameters
        ----------
        n_rows : int or None
            Number of rows, at least 1. Not used if `n_rows_bounds` or the number of features is given.
        n_features : int or None
            Number of columns of X, at least 1. With a schema leave it out: the schema has the number.

        Returns
        -------
        FourierMap or None
            A fit with its `length_scale` and its `n_features` chooses nothing more. None if the fit would have no features;
            so has a fit with `n_features` 0.

        Raises
        ------
        ParameterError
            If a parameter cannot be used.

        Examples
        --------
        >>> import confide
        >>> model = confide.KernelSVC(confide.ApproxDP(1.0, 1e-6))
        >>> model.chosen_map(n_rows=100_000, n_features=3).n_features
        1000
        """
        encoder = parameters.checked_schema(self.schema)
        chosen = self._with_chosen_features(encoder, partial(checked_count, "n_rows", n_rows))
        columns = parameters.checked_shape(n_rows, n_features, encoder, chosen._settings(encoder).n_rows_bounds)
        return _features_in(chosen._fourier_map(columns, encoder))


def _features_in(fourier: PublicMap | None) -> FourierMap | None:
    """The map to the features alone, of a map that may keep the columns beside them."""
    if isinstance(fourier, CurvesAndFeatures):
        return fourier.features
    return fourier if isinstance(fourier, FourierMap) else None
