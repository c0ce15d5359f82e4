"""Additive models: every number column is a curve, every category a level, and the effects of columns are added up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from confide.array_types import Array, as_array
from confide.effects.effects import Contrast, Effect
from confide.effects.monotone import checked_monotone
from confide.effects.picture import Display, draw_effects
from confide.erm.losses import LogisticHinge, LogisticLoss
from confide.erm.row_bounds import BallBound
from confide.errors import ParameterError, SchemaError, checked_count, is_list, is_text, is_whole, wording
from confide.estimators.linear_classifier import LinearClassifier
from confide.estimators.linear_model import (
    NamesByNumber,
    NamesOfColumns,
    PrivateLinearModel,
    SchemaReader,
    names_of_plan,
)
from confide.estimators.logistic import LogisticRegression
from confide.estimators.parameters import (
    AdditiveParameters,
    CountParameters,
    IntervalsParameter,
    PenaltyParameter,
    estimator,
)
from confide.estimators.regression import LOSSES_OF_MEANS, LossRegressor, mean_loss, squared_loss
from confide.estimators.released import effects_of
from confide.features.columns import NumberColumn
from confide.features.encoder import Encoder
from confide.features.schema import Schema
from confide.inference.intervals import checked_level
from confide.intake import parameters
from confide.intake.penalties import GivenForm, checked_penalty
from confide.intake.targets import Numbers
from confide.known_words import listed, listed_unknown, suggestion
from confide.models.model import Link, ReleasedModel
from confide.parameters import checked, checked_choice
from confide.privacy.budgets import Neighbours
from confide.training.alpha import usual_norm_of_rows
from confide.training.auto_features import (
    refuse_too_many,
    with_choices_of,
    with_chosen_knots,
    with_interactions,
    with_knots,
    with_slots,
)
from confide.training.auto_loss import MECHANISMS_OF_LEAST_SQUARES, is_automatic, squared_error
from confide.training.settings import ScoreLoss, Settings, SquaredError

if TYPE_CHECKING:
    import pandas as pd


# Pictures of effects by scikit-learn's convention: a display made from an estimator.


class EffectsDisplay(Display):
    """A picture of the effects of columns: a curve for each number, a point for each level of a category.

    Bands cover sampling and the noise for privacy. The inner band is for each value by itself, the outer one for all values
    of a column together. Small marks on the axis are the knots, between which a curve is straight, unless random features
    bend it. What interactions add is not drawn, and the title names them. No row is drawn.

    Parameters
    ----------
    effects : sequence of Effect
        The effects of single columns.
    outcome : str
        What a larger score stands for.
    level : float
        Confidence level of the bands.
    left_out : str
        What is said of interactions, which are not drawn; empty where there are none.

    Attributes
    ----------
    figure_ : Matplotlib figure
    axes_ : list of Matplotlib axes, one for each effect
    ax_ : the first of them

    Raises
    ------
    ParameterError
        By `plot`, if Matplotlib is not installed.

    Notes
    -----
    Guarantee: that of the model. The picture is made of its release alone, and costs nothing more.
    """

    def __init__(self, effects: Iterable[Effect], *, outcome: str, level: float = 0.95, left_out: str = "") -> None:
        self.effects, self.outcome, self.level, self.left_out = tuple(effects), outcome, level, left_out

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Any = None, columns: Any = None, level: float = 0.95, label: Any = None
    ) -> EffectsDisplay:
        """Draw the effects of a fitted model with a schema.

        Parameters
        ----------
        estimator : fitted or loaded model with a schema
        ax : Matplotlib axes or None
            Their place is divided among the columns. None: a new figure.
        columns : str, list of str or None
            Names of columns. None: all, those that stand out most first.
        level : float, in (0, 1)
            Confidence level of the bands, where a share of the budget paid for them.
        label : class label or None
            The class that a larger score stands for. None: the one that the model shows.

        Returns
        -------
        EffectsDisplay
            Drawn: `figure_` and `axes_`.

        Raises
        ------
        ParameterError
            If the model has no effects, a column is not one of its own, or Matplotlib is not installed.
        """
        effects = effects_of(estimator)
        names = effects.encoder.schema.column_names
        wanted = names if columns is None else tuple(columns) if is_list(columns) else (columns,)
        unknown = [name for name in wanted if not is_text(name) or name not in names]
        if unknown or not wanted:
            none = f" {listed_unknown(unknown, names)} is none." if unknown else ""
            raise ParameterError(f"columns must be some of the model's columns, which are {listed(names)}.{none}")
        effects.check_label(label)
        level = checked_level(level)
        shown = (effect for effect in effects.with_bands(level) if len(effect.columns) == 1)
        by_name = {effect.name: effect for effect in shown if effect.label == label}
        if columns is None:
            wanted = tuple(sorted(by_name, key=lambda name: by_name[name].size, reverse=True))
        outcome = effects.outcome if label is None else f"{effects.unit} of class {label}"
        drawn = (by_name[name] for name in wanted)
        return cls(drawn, outcome=outcome, level=level, left_out=effects.left_out(wanted)).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        self.axes_ = draw_effects(self.effects, self.outcome, self.level, ax, self.left_out)[1]


# Effects of columns, as attributes and methods of a fitted model whose rows a schema describes.


class ColumnEffects:
    """What each column adds to the score of a linear model. Everything here is made from the release only."""

    @property
    def effects_(self) -> pd.DataFrame:
        """The effect of each column at its values, with intervals at level 0.95 where a share of the budget paid for them.

        The columns are "column", "value" and "effect" and, with intervals, "standard_error", the ends "low" and "high" of
        the interval of each value by itself, and the ends "joint_low" and "joint_high" of intervals that hold for all values
        of one effect together. With three or more classes, the first column is "class".

        For a number, values are its low, its knots and its high, and the effect between two of them is a straight line on
        the column's own scale. Missing cells have the value "(missing)". For an interaction, "column" has the names of its
        columns with colons between, and "value" is a tuple.

        Effects and intercept add up to the score in favour of the class that is shown: the schema's positive class, or
        without a target in the schema `classes_[1]`. For a curve the mean over the column's own scale is 0 (by the trapezoid
        rule). For a category the plain mean over its levels is 0. What an interaction adds has mean 0 along each of its
        columns, by the same weights. With softmax, the mean over classes is subtracted from effects.

        With random features of all columns, the effect of a column is its mean over all other columns, as if they were
        independent and had these weights. It bends between knots, and is given at three values between two of them, too. Of
        interactions, the frame has the two strongest pairs; `effects_.attrs["share_of_interactions"]` is the part of the
        variance of scores, over such columns, that all interactions make up.
        """
        return effects_of(self).to_frame()

    def contrast(self, column: str, first: Any, second: Any, *, level: float = 0.95, label: Any = None) -> Contrast:
        """How much the score changes if one column changes from one value to another, and all other columns stay.

        What interactions add is left out: it depends on the other columns, and has mean 0 over them.

        Parameters
        ----------
        column : str
            Name of a column of the schema.
        first, second : number or level
            Numbers within the column's bounds, or levels of a category. None means a missing cell.
        level : float, default 0.95
            Confidence level of the interval.
        label : class
            With three or more classes: the class whose score is meant.

        Returns
        -------
        Contrast
            The estimate; its standard error and interval too, if a share of the budget paid for intervals.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ParameterError
            If the model has no schema, the column is unknown, a number lies outside the bounds, or a level is not listed.
        """
        return effects_of(self).contrast(column, first, second, level=level, label=label)

    def plot_effects(self, ax: Any = None, columns: Any = None, *, level: float = 0.95, label: Any = None) -> EffectsDisplay:
        """Draw the effects of columns with Matplotlib: a curve for each number, a point for each level.

        Parameters
        ----------
        ax : Matplotlib axes or None
            Where to draw; its place is divided among the columns. None makes a new figure.
        columns : sequence of str, str or None
            Columns to be drawn; None means all. Interactions are not drawn.
        level : float, default 0.95
            Confidence level of the bands, if a share of the budget paid for them.
        label : class
            With three or more classes: the class whose effects are drawn.

        Returns
        -------
        EffectsDisplay
            With `figure_` and `axes_`.

        Raises
        ------
        ParameterError
            If Matplotlib is not installed, or as for `contrast`.
        """
        return EffectsDisplay.from_estimator(self, ax=ax, columns=columns, level=level, label=label)


# What additive models share: their parameters, and how knots are chosen before a fit or a plan.


class AdditiveColumns(ColumnEffects, AdditiveParameters, PrivateLinearModel):
    """The columns of an additive model: a schema, or bounds of the columns of an array, in which knots are chosen."""

    schema_: Schema | None

    _accepts_sparse = False  # a sparse matrix has no bounds for its columns
    _written_in_schema: ClassVar[dict[str, object]] = {"bounds": None, "interactions": (), "atoms": False}

    def chosen_schema(self, n_rows: int | None = None, n_features: int | None = None) -> Schema:
        """The schema in which everything that a fit would choose is written out. Reads no data and charges nothing.

        Parameters
        ----------
        n_rows : int or None
            Number of rows, at least 1. Not used if `n_rows_bounds` is given.
        n_features : int or None
            Number of columns of an array, if `bounds` is one pair for all columns; otherwise leave it out.

        Returns
        -------
        Schema
            A fit with this schema chooses nothing more but atoms, and whether columns act together: it finds both in its
            rows.

        Raises
        ------
        ParameterError
            If a parameter cannot be used.
        """
        if n_rows is None and self.n_rows_bounds is None:
            raise ParameterError("give n_rows, the number of rows: the number of knots depends on it.")
        count = partial(checked_count, "n_rows", n_rows)
        return self._schema_of(lambda schema: schema, partial(names_of_plan, n_features), count)

    def _schema_of(
        self, read_by: SchemaReader, names: NamesByNumber, count: Callable[[], int], n_classes: Callable[[], int] = lambda: 2
    ) -> Schema:
        if self.bounds is not None and self.schema is not None:
            raise ParameterError("give a schema or bounds, not both: a schema has the bounds of its columns.")
        schema = read_by(self.schema if self.bounds is None else _schema_of_bounds(self.bounds, names))
        if parameters.checked_schema(schema) is None or schema is None:
            raise ParameterError(wording("range of each column"))
        described = schema if is_automatic(self.knots) else with_knots(schema, _checked_knots(self.knots, schema))
        refuse_too_many(described)
        prior = None if isinstance(self.prior, Mapping) else self._given_prior()
        fitted_to, takes_all = None if prior is None else prior.fitted_to, is_automatic(self.interactions)
        if fitted_to is not None and fitted_to.encoder is not None:
            takes_its = takes_all and not described.interact
            described = with_choices_of(described, fitted_to.encoder.schema, interactions=takes_its)
            if takes_its:
                return described
        public_count = self._if_public(count)
        # Monotone curves, and penalties that know knots, are for curves alone.
        is_plain = not checked_monotone(self.monotone, described) and getattr(self, "penalty", None) is None
        curves = with_chosen_knots(described, self._settings_of_choice, public_count, may_bend=is_plain)
        if takes_all and not (is_plain and self.prior is None):
            return curves  # what a prior says is about its own columns

        def known_classes() -> int:
            domain = getattr(self._target(Encoder(described)), "domain", None)
            return n_classes() if domain is None else len(domain)

        known = (self._settings_of_choice, public_count, known_classes)
        return with_interactions(described, curves, self.interactions, *known)

    def _with_slots(self, encoder: Encoder | None, count: Callable[[], int]) -> Encoder | None:
        if encoder is None or checked("atoms", self.atoms) != "auto":
            return encoder
        return with_slots(encoder, self._settings(encoder), self._if_public(count))

    def _if_public(self, count: Callable[[], int]) -> Callable[[], int] | None:
        """What gives the number of rows; None where that number is private."""
        return count if Neighbours.parse(self.neighbours) is Neighbours.REPLACE_ONE else None

    def _settings_of_choice(self, encoder: Encoder) -> Settings:
        """The settings by which knots and interactions are chosen.

        The weights of a prior, and a penalty that smooths curves, belong to one choice alone.
        """
        made = copy(self)
        made.prior = None
        penalty = checked_penalty(getattr(self, "penalty", None))
        if isinstance(penalty, GivenForm) and penalty.follows_knots:
            made.penalty = None
        return made._settings(encoder)

    def _settings(self, encoder: Encoder | None, *, set_aside: float = 0.0, names: NamesOfColumns | None = None) -> Settings:
        settings = super()._settings(encoder, set_aside=set_aside, names=names)
        features = None if encoder is None else encoder.schema.random_features
        is_asked = features is not None and features.if_found and settings.may_scale and settings.mechanism == "auto"
        if encoder is not None and is_asked:
            others = self._settings(Encoder(encoder.schema.without_features), names=names)
            settings = replace(settings, without=replace(others, mechanism="gradient"))
        monotone = checked_monotone(self.monotone, getattr(encoder, "schema", None), getattr(settings.prior, "declared", ()))
        return replace(settings, monotone=tuple(monotone.items()))

    def _hold(self, released: ReleasedModel) -> None:
        super()._hold(released)
        self.schema_ = released.schema


def _schema_of_bounds(bounds: Any, names: NamesByNumber) -> Schema:
    """A schema of number columns from one pair (low, high), or from a pair for each column, by position or by name."""
    message = wording("bounds of columns")
    if isinstance(bounds, Mapping):
        pairs, titles = list(bounds.values()), tuple(map(str, bounds))
    else:
        table: Any = as_array(bounds, np.float64)
        if table.shape == (2,):
            titles = names(None)
            pairs = [table] * len(titles)
        elif table.ndim == 2 and table.shape[1] == 2:
            pairs, titles = list(table), names(len(table))
            if len(titles) != len(pairs):
                described = f"{len(pairs)} column{'s'[: len(pairs) != 1]}"
                raise ParameterError(f"bounds describe {described}, and X has {len(titles)}; give a pair for each.")
        else:
            raise ParameterError(message)
    try:
        columns = tuple(NumberColumn(name, float(low), float(high)) for name, (low, high) in zip(titles, pairs, strict=True))
    except (SchemaError, TypeError, ValueError, OverflowError):
        raise ParameterError(message) from None
    return Schema(columns)


def _checked_knots(knots: Any, schema: Schema) -> Any:
    """The parameter `knots`: a number for all columns, or a mapping from the names of columns to a number or a list."""
    names = [column.name for column in schema.columns if column.is_number]
    if isinstance(knots, Mapping):
        if unknown := [name for name in knots if name not in names]:
            raise ParameterError(f"knots: {listed_unknown(unknown, names)} is no number column of the schema; take it out.")
        return {name: tuple(value) if isinstance(value, (list, np.ndarray)) else value for name, value in knots.items()}
    if is_whole(knots):
        return int(knots)
    near = suggestion(knots, ("auto",)) if isinstance(knots, str) else ""
    raise ParameterError(f'knots must be "auto"{near}, a whole number, or a dict from columns to a number or a list.')


MARGIN = 2.0
"""The margin of the logistic hinge that "auto" stands for: that of the support vector machines. Compared on the data of
benchmarks/peers."""
SHARE_OF_COUNTS = 0.4
"""The threshold of counts that None means, as a share of `target_bound`."""


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

    loss: Literal["auto", "logistic", "logistic_hinge"] = "auto"
    intercept_scaling: float = 1.0

    def _minimised(self, encoder: Encoder | None) -> ScoreLoss:
        name = checked_choice("loss", self.loss, ("auto", "logistic", "logistic_hinge"))
        hinge, score_loss = LogisticHinge(1.0 / MARGIN), ScoreLoss(LogisticLoss(), one_vs_rest=LogisticLoss(), softmax=True)
        if name == "logistic_hinge":
            score_loss = ScoreLoss(hinge, one_vs_rest=hinge)
        elif name == "auto":
            usual = None if encoder is None else BallBound(usual_norm_of_rows(encoder))
            score_loss = ScoreLoss(hinge, softmax=True, if_noisy=hinge, bound_if_noisy=usual)
        if not self.monotone:
            return score_loss
        # Each of several classes has a score, and none of them speaks for the order of the others.
        return replace(score_loss, one_vs_rest=None, softmax=False, only_two=wording("monotone for two classes"))

    @property
    def _link(self) -> Link:
        several = len(self.classes_) > 2
        if self.loss == "logistic" or (several and self.loss != "logistic_hinge"):
            return Link("softmax" if several else "logistic")
        return Link("one-vs-rest" if several else "logistic", MARGIN)

    def _scores_at(self, probabilities: Array) -> Array:
        return super()._scores_at(probabilities) if self.loss == "logistic" else self._link.scores_at(probabilities)

    predict_proba: ClassVar[Callable[..., Array]] = LogisticRegression.predict_proba
    predict_log_proba: ClassVar[Callable[..., Array]] = LogisticRegression.predict_log_proba


@estimator
class AdditiveRegressor(CountParameters, AdditiveColumns, IntervalsParameter, PenaltyParameter, LossRegressor):
    """An additive regression (a generalised additive model), released under differential privacy.

    The score of a row is the sum of the effects of its columns: a curve for each number, a value for each level of a
    category. It is the prediction, or its logarithm for counts. Knots and other choices follow from public facts, never from
    the rows.

    Parameters
    ----------
    loss : {"huber", "squared", "poisson", "negative_binomial", "gamma", "tweedie"}, default "huber"
        - "huber": half the squared residual, and linear beyond `threshold`, as in `HuberRegressor`.
        - "squared": least squares, as in `Ridge`.
        - "poisson": for counts, as in `PoissonRegressor`. The effects are those on the logarithm of the mean.
        - "negative_binomial": for counts that vary more than those.
        - "gamma": for costs above 0, whose range is declared with a low end above 0. The effects are as for "poisson".
        - "tweedie": for costs of which many are 0.
    threshold : "auto", float or None, default "auto"
        Residual, or difference between a count and its mean, beyond which the influence of a row no longer grows; positive.
        "auto" is that of `HuberRegressor` or `PoissonRegressor`. None means a tenth of `target_bound` for "huber", and two
        fifths for "poisson". Not used by "squared". For "gamma" it is the largest difference between a cost and its mean,
        as a share of the mean, and for the others see docs/how_to/counts_and_rates.md.
    power : float, default 1.5
        For "tweedie": the variance of a cost grows with this power of its mean, above 1 and below 2. It is public.
    dispersion : float, default 1.0
        For "negative_binomial": the variance of a count is its mean plus this times the square of the mean. It is public.
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

    loss: Literal["huber", "squared", "poisson", "gamma", "tweedie", "negative_binomial"] = "huber"
    threshold: Literal["auto"] | float | None = "auto"
    power: float = 1.5
    dispersion: float = 1.0
    intercept_scaling: float | Literal["auto"] = "auto"

    def _train(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None) -> Self:
        if self._named_loss == "squared" and sample_weight is not None:
            raise ParameterError("loss='squared' takes no weights of rows; leave sample_weight out, or take loss='huber'.")
        return super()._train(X, y, sample_weight, exposure)

    @property
    def _named_loss(self) -> str:
        return checked_choice("loss", self.loss, ("huber", "squared", *LOSSES_OF_MEANS))

    @property
    def _mechanisms(self) -> tuple[str, ...]:  # type: ignore[override]  # what is allowed depends on the loss
        return MECHANISMS_OF_LEAST_SQUARES if self._named_loss == "squared" else super()._mechanisms

    def _minimised(self, encoder: Encoder | None) -> ScoreLoss | SquaredError:  # type: ignore[override]  # "squared" has none
        if self._named_loss == "squared" and self.inference_share != 0.0:
            raise ParameterError("loss='squared' has no intervals: set inference_share to 0, or take another loss.")
        if self._named_loss == "squared":
            return squared_error(self._target(encoder).bound)
        return super()._minimised(encoder)

    def _loss(self, target: Numbers) -> ScoreLoss:
        if self._has_counts:
            return mean_loss(self, target, SHARE_OF_COUNTS)
        return squared_loss("huber", target.bound, self.threshold)
