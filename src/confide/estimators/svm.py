"""Private support vector machines, linear and with kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from confide.accounting.ledger import Batch, Ledger
from confide.erm.class_losses import OneVsRest
from confide.erm.hinges import Hinge, HuberHinge, LogisticHinge, SmoothHinge
from confide.erm.losses import Loss
from confide.erm.row_bounds import BallBound, RowBound
from confide.errors import ParameterError
from confide.estimators import parameters
from confide.estimators.fitting import Settings, Smoother
from confide.estimators.linear import LinearClassifier
from confide.estimators.regularisation import usual_norm
from confide.features.encoder import Encoder
from confide.features.fourier import FourierMap
from confide.features.schema import Schema
from confide.privacy.budgets import Budget, Neighbours

_LOSSES: dict[str, type[HuberHinge] | type[SmoothHinge] | type[LogisticHinge]] = {
    "auto": HuberHinge,
    "huber_hinge": HuberHinge,
    "smooth_hinge": SmoothHinge,
    "logistic_hinge": LogisticHinge,
}
"""What "auto" gives way to where noise is large is `LinearSVC._smoother`."""
_NARROWEST = 2.0**-12
"""The narrowest joint: that of loss="hinge" is no narrower."""


class LinearSVC(LinearClassifier):
    """A linear support vector machine with the hinge or a smoothed hinge, released under differential privacy.

    Minimises mean loss(y w . x) + alpha / 2 |w|^2 over clipped rows, perturbed so that the released weights are
    differentially private. The loss is the hinge max(0, 1 - z) with a joint of half-width `smoothing` around z = 1. Of three
    classes and more each has its weights, for the class against all others; all are released together under the one budget.

    Parameters
    ----------
    budget : float, PureDP, ApproxDP or ZCDP, default 1.0
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
    alpha, schema, row_norm, fit_intercept, intercept_scaling, classes, mechanism, neighbours, n_rows_bounds, \
max_rows_per_person, class_weight, max_sample_weight, inference_share, ledger, n_jobs, random_state :
        As in `LogisticRegression`. There are no intervals for the "hinge", which does not bend.

    Attributes
    ----------
    coef_, intercept_, classes_, coefficient_names_, n_features_in_, feature_names_in_, alpha_, guarantee_ :
        As in `LogisticRegression`; the scores are no log-odds.

    Notes
    -----
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

    def __init__(
        self,
        budget: float | Budget = 1.0,
        *,
        loss: str = "auto",
        smoothing: float = 0.5,
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
        super().__init__(
            budget,
            alpha=alpha,
            schema=schema,
            row_norm=row_norm,
            fit_intercept=fit_intercept,
            intercept_scaling=intercept_scaling,
            classes=classes,
            mechanism=mechanism,
            neighbours=neighbours,
            n_rows_bounds=n_rows_bounds,
            max_rows_per_person=max_rows_per_person,
            class_weight=class_weight,
            max_sample_weight=max_sample_weight,
            inference_share=inference_share,
            ledger=ledger,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.loss = loss
        self.smoothing = smoothing

    def _loss(self, n_classes: int) -> Loss:
        name = parameters.checked_choice("loss", self.loss, (*_LOSSES, "hinge"))
        if name == "hinge" and n_classes > 2:
            raise ParameterError(
                "Only binary classification is supported with loss='hinge'. The type of the target is multiclass: take "
                "loss='huber_hinge' with a small smoothing, such as 0.05."
            )
        try:
            smoothing = float(self.smoothing)
            loss = Hinge() if name == "hinge" else _LOSSES[name](smoothing)
        except (TypeError, ValueError):
            raise ParameterError("smoothing must be a positive finite number.") from None
        if isinstance(loss, (HuberHinge, SmoothHinge)) and smoothing < _NARROWEST:
            raise ParameterError(
                f"smoothing must be at least 2^-12, about 0.00025, and is {smoothing:g}: the narrower the joint, the longer "
                f"a fit may take. Take a larger smoothing, or loss='hinge', whose joint is chosen for you."
            )
        return loss if n_classes == 2 else OneVsRest(loss, n_classes)

    def _settings(self, schema: Schema | None) -> tuple[Settings, Encoder | None, tuple[Any, ...] | None]:
        settings, encoder, domain = super()._settings(schema)
        if self.loss == "auto":
            settings = replace(settings, smoother=self._smoother(encoder))
        return settings, encoder, domain

    def _smoother(self, encoder: Encoder | None) -> Smoother | None:
        """What "auto" gives way to where noise is large."""
        usual = None if encoder is None else BallBound(usual_norm(encoder.row_bound, 0.0))
        return Smoother(LogisticHinge(float(self.smoothing)), usual)


class KernelSVC(LinearSVC):
    """A support vector machine with a translation-invariant kernel, released under differential privacy.

    Rows pass through random Fourier features, whose kernel approximates the one asked for; on them it is `LinearSVC`. The
    features follow from public facts and a public seed, stored in the model; a mapped row has norm 1 whatever the row was.

    Parameters
    ----------
    budget : float, PureDP, ApproxDP or ZCDP, default 1.0
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
    alpha, schema, fit_intercept, intercept_scaling, classes, mechanism, neighbours, n_rows_bounds, \
max_rows_per_person, class_weight, max_sample_weight, ledger, n_jobs, random_state :
        As in `LogisticRegression`.

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

    _accepts_sparse = False  # its features are dense

    def __init__(
        self,
        budget: float | Budget = 1.0,
        *,
        kernel: str = "rbf",
        length_scale: float = 1.0,
        n_features: int = 256,
        orthogonal: bool = False,
        map_seed: int = 0,
        loss: str = "huber_hinge",
        smoothing: float = 0.5,
        alpha: float | str = "auto",
        schema: Schema | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        classes: Any = None,
        mechanism: str = "auto",
        neighbours: str | Neighbours = "replace-one",
        n_rows_bounds: tuple[int, int] | None = None,
        max_rows_per_person: int = 1,
        class_weight: Mapping[Any, float] | None = None,
        max_sample_weight: float = 1.0,
        ledger: Ledger | Batch | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__(
            budget,
            loss=loss,
            smoothing=smoothing,
            alpha=alpha,
            schema=schema,
            fit_intercept=fit_intercept,
            intercept_scaling=intercept_scaling,
            classes=classes,
            mechanism=mechanism,
            neighbours=neighbours,
            n_rows_bounds=n_rows_bounds,
            max_rows_per_person=max_rows_per_person,
            class_weight=class_weight,
            max_sample_weight=max_sample_weight,
            ledger=ledger,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.kernel = kernel
        self.length_scale = length_scale
        self.n_features = n_features
        self.orthogonal = orthogonal
        self.map_seed = map_seed

    def _fourier_map(self, n_inputs: int) -> FourierMap:
        return FourierMap(n_inputs, self.n_features, self.kernel, self.length_scale, self.map_seed, self.orthogonal)

    def _bound_of_rows(self, encoder: Encoder | None, budget: Budget) -> RowBound:
        return self._fourier_map(1).row_bound

    def _smoother(self, encoder: Encoder | None) -> Smoother | None:
        # The random features of a row have norm 1, whatever the row.
        return super()._smoother(None)
