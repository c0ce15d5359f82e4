"""Confidence intervals and tables of coefficients, for estimators that released what intervals need."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from scipy.sparse import issparse
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from confide.array_types import Array, ClassLabels, Names
from confide.blocks import frame_of
from confide.data.arrays import Blocks
from confide.effects.effects import INTERCEPT, checked_units, encoded_units, in_original_units, members_of_groups
from confide.erm.coded_rows import dense
from confide.erm.row_bounds import RowBound
from confide.errors import ParameterError, checked_flag, wording
from confide.features.columns import with_unit
from confide.features.encoder import Encoder
from confide.features.forms import PublicMap
from confide.guarantee import Guarantee
from confide.inference.debiased import (
    Combination,
    InterestEvidence,
    supposed_of,
    uncertainty_of_interest,
    uncertainty_of_risks,
    with_known_zeros,
)
from confide.inference.intervals import (
    SCORES_AT_ONCE,
    JointUncertainty,
    Target,
    Uncertainty,
    WeightsEvidence,
    checked_level,
    checked_target,
    ends_of_log_odds,
    ends_of_scores,
    of_all_scores,
)
from confide.inference.table import CoefficientTable, Method, NamedUnit, margins_of_family
from confide.known_words import listed, listed_unknown
from confide.models.model import Link
from confide.training.settings import ScoreLoss

if TYPE_CHECKING:
    import pandas as pd

Units: TypeAlias = Literal["original", "encoded"]

# What the scores of a fitted model are: log-odds, the logarithm of a mean, a prediction, or a score without a unit.


def unit_of_scores(model: Any) -> str:
    """What the scores of a fitted model are, in a few words."""
    if not hasattr(model, "classes_"):
        return "logarithm of the mean" if getattr(model, "_has_counts", False) else "prediction"
    return "log-odds" if _loss_of(model).constants.scores == "log-odds" else "score"


def ratio_of_scores(model: Any) -> str:
    """The name of the exponential of a coefficient: "odds ratio", "rate ratio", or "" where it has no meaning.

    With softmax there is none: coefficients are relative to the mean over classes, and not to one class.
    """
    unit = unit_of_scores(model)
    if unit == "log-odds" and not depends_on_differences(model):
        return "odds ratio"
    return "rate ratio" if unit == "logarithm of the mean" else ""


def depends_on_differences(model: Any) -> bool:
    """Whether a model of several classes depends only on differences between their scores, as with softmax."""
    return hasattr(model, "classes_") and len(model.classes_) > 2 and not _loss_of(model).constants.separable


def _loss_of(model: Any) -> Any:
    """The loss of a fitted model's number of classes, from its parameters; None for least squares."""
    minimised = model._minimised(model._encoder)
    n_classes = len(model.classes_) if hasattr(model, "classes_") else 0
    return minimised.for_classes(n_classes).loss if isinstance(minimised, ScoreLoss) else None


_WITHOUT_INTERVALS = "Each fit spends anew. The coefficients without intervals are in coef_; `confide inspect` shows them."

_USUAL_TARGET: Target = "regularised"


SINGLE_WEIGHTS = "single weights of random features mean nothing, so there are no intervals for them."


class CoefficientIntervals:
    """How sure a linear model is of its coefficients: standard errors, intervals and a table."""

    coef_: Array
    classes_: ClassLabels
    alpha_: float
    coefficient_names_: Names
    guarantee_: Guarantee
    _evidence: WeightsEvidence | None = None
    _interest: InterestEvidence | None = None
    _encoder: Encoder | None = None
    _fourier: PublicMap | None = None
    _row_bound: RowBound

    def uncertainty(self, target: Target | None = None) -> Uncertainty:
        """Estimate how far the released coefficients may lie from those of the population.

        This costs no privacy, because it uses only what was released. The intercept comes last. With three or more classes,
        the classes follow one another. With softmax, the mean over the classes is subtracted: it is 0 in the population and
        says nothing about a class.

        Parameters
        ----------
        target : {"regularised", "unregularised"} or None, default None
            Which coefficients of the population are meant: those that minimise its objective with the same alpha, or those
            that minimise it without a ridge. None means "regularised", but with `interest` "unregularised", which is the
            only target then; the coefficients are those of interest alone. "unregularised" corrects the bias of the ridge by
            one Newton step; it is exact for `Ridge`, and not available after output perturbation, whose noise is too large
            for that step, nor where the noise in the released curvature makes the step unreliable.

        Returns
        -------
        Uncertainty
            Estimates, standard errors due to sampling and to the noise, and intervals.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ParameterError
            If nothing was released for intervals, or the target is unknown or not available.
        """
        if self._interest is not None:
            if target is not None and checked_target(target) != "unregularised":
                raise ParameterError("intervals for interest are for coefficients without a ridge: leave target out.")
            return uncertainty_of_interest(self._interest)
        self._refuse_single_weights()
        return self._known_evidence().uncertainty(_USUAL_TARGET if target is None else target)

    def conf_int(self, level: float = 0.95, target: Target | None = None, *, simultaneous: bool = False) -> Array:
        """Compute confidence intervals for the population's values of `coef_`.

        The rows of the array have no names. They stand in the order of `coefficient_names_`, without the intercept, and
        speak of columns as they enter the fit, as `coef_` does; for a classifier with two classes they speak for
        `classes_[1]`. ``summary().to_frame()`` has the same intervals with names; with a schema, in the units of the table
        and for the schema's positive class. If that is not `classes_[1]`, the signs of the two differ.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level of each interval by itself, strictly between 0 and 1.
        target : {"regularised", "unregularised"} or None, default None
            As in `uncertainty`.
        simultaneous : bool, default False
            Whether all intervals together have the level, over all coefficients but intercepts, and over all classes. They
            follow from the joint law of the errors (the largest ratio of an error to its standard error) where it was
            released, and otherwise, with `interest` or one class against the rest, from Bonferroni's inequality.

        Returns
        -------
        array (n_coefficients, 2)
            Lower and upper ends; (n_classes, n_coefficients, 2) for three or more classes. With `interest`, a row for each
            line of `summary`, in its units.

        Raises
        ------
        ParameterError
            As in `uncertainty`, or if the level is out of range.
        """
        known = self._joint_uncertainty(target) if checked_flag("simultaneous", simultaneous) else self.uncertainty(target)
        n_vectors, width = np.atleast_2d(self.coef_).shape
        if self._interest is not None:
            n_vectors, width = 1, len(known.estimates)
        ends = known.intervals(level).reshape(n_vectors, -1, 2)[:, :width]
        if simultaneous:
            kept = np.arange(len(known.estimates)).reshape(n_vectors, -1)[:, :width]
            margins = margins_of_family(known.among(kept.ravel()), level).reshape(kept.shape)
            ends = known.estimates[kept][..., None] + margins[..., None] * np.array([-1.0, 1.0])
        return ends[0] if n_vectors == 1 else ends

    def summary(
        self, level: float = 0.95, target: Target | None = None, units: Units | None = None, *, adjust: Method | None = None
    ) -> CoefficientTable:
        """Make a table of coefficients with standard errors, intervals and p-values. It prints, and writes LaTeX and HTML.

        For a classifier with two classes, the coefficients are those for the schema's positive class, or without one for
        `classes_[1]`. With three or more classes, the table has the coefficients of every class, named "class: column".

        Parameters
        ----------
        level : float, default 0.95
            Confidence level of each interval by itself, strictly between 0 and 1.
        target : {"regularised", "unregularised"} or None, default None
            As in `uncertainty`.
        units : {"original", "encoded"} or None, default None
            "original": per unit of each column of the table, against a reference level, or per doubling on a log scale, with
            odds ratios for a logistic loss. "encoded": as in `coef_`. None means "original" where a schema exists. Intervals
            are transformed exactly, at no cost of privacy.
        adjust : {"single-step", "holm", "bonferroni", "fdr_by", "fdr_bh"} or None, default None
            How p-values are corrected for the family of all coefficients of the table but intercepts; the level is then that
            of all their intervals together. "single-step" uses the joint law of the errors, as `glht` of R's multcomp does:
            the largest ratio of an error to its standard error. It is not available with `interest`, nor for one class
            against the rest. The other names are those of statsmodels. Their intervals follow from Bonferroni's inequality.
            "fdr_by" holds under any dependence, "fdr_bh" if the tests are independent or positively dependent.

        Returns
        -------
        CoefficientTable
            Each line names its unit.

        Raises
        ------
        ParameterError
            As in `conf_int`; if `units` is unknown, or "original" without a schema; if `adjust` is unknown or not available.
        """
        if self._interest is None:
            self._refuse_single_weights()
        shown = checked_units(units, self._encoder)
        facts: dict[str, Any] = {"shown_units": shown, "ratio": ratio_of_scores(self)}
        if self._interest is not None:
            if self._encoder is not None and shown == "encoded":
                raise ParameterError("intervals of interest are in units of the table: leave units out, or give 'original'.")
            named = [NamedUnit(one.name, one.unit, one.columns, one.span) for one in self._interest.combinations]
            return self._table_of_interest(self.uncertainty(target), named, level, adjust, **facts)
        target = _USUAL_TARGET if target is None else checked_target(target)
        named, combinations = self._combinations(shown)
        is_alone = shown == "encoded" and adjust is None
        known = self.uncertainty(target) if is_alone else self._errors_of_all(combinations, target)
        if self._n_scores > 1:
            pairs = product(self.classes_.tolist(), named)
            named = [replace(coefficient, name=f"{label}: {coefficient.name}") for label, coefficient in pairs]
        evidence = self._known_evidence()
        facts |= {
            "target": target,
            "shortens_rows": self._encoder is not None and self._row_bound != self._encoder.row_bound,
            "assumes_equal_variance": evidence.equal_variance,
            "design": evidence.design,
            "is_centred": self._n_scores > 1 and not evidence.separable,
        }
        return self._table(known, named, level, adjust, **facts)

    def _table_of_interest(
        self, known: Uncertainty, named: list[NamedUnit], level: float, adjust: str | None, **facts: Any
    ) -> CoefficientTable:
        """A table of the columns of interest."""
        assert self._interest is not None  # noqa: S101 - the caller asks
        facts |= {"design": self._interest.facts.design, "supposed": supposed_of(self._interest), "is_of_interest": True}
        return self._table(known, named, level, adjust, target="unregularised", **facts)

    def _table(
        self, known: Uncertainty, named: list[NamedUnit], level: float, adjust: str | None, **facts: Any
    ) -> CoefficientTable:
        """A table with the public facts of this model."""
        sign, outcome = self._shown_outcome()
        number = None if outcome or self._encoder is None else self._encoder.schema.target
        facts["predicted"] = "" if number is None else with_unit(number.column, number.unit and f"in {number.unit}")
        facts |= {"model": type(self).__name__, "outcome": outcome, "alpha": self.alpha_, "guarantee": self.guarantee_}
        return CoefficientTable.of(known, named, level, sign, adjust, **facts)

    def average_risk_differences(self, level: float = 0.95, *, adjust: Method | None = None) -> CoefficientTable:
        """Make a table of differences of risks for the columns of `interest`, standardised over the rows, with intervals.

        For a level of a category, each row is given this level and then the reference, and the two probabilities of the
        outcome are compared; for a number, each row is compared with itself one unit higher. The table has the mean of these
        differences over the rows (the average marginal effect of a discrete change).

        Parameters
        ----------
        level : float, default 0.95
            Confidence level of each interval by itself, strictly between 0 and 1; with `adjust`, of all together.
        adjust : {"holm", "bonferroni", "fdr_by", "fdr_bh"} or None, default None
            As in `summary`.

        Returns
        -------
        CoefficientTable
            Each line names its unit. Differences lie between -1 and 1.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ParameterError
            If nothing was released for them, or an argument is out of range.

        Notes
        -----
        Guarantee: post-processing of the release, which costs nothing more. Errors follow by the delta method from those of
        the coefficient, of the other weights, of the mean over the rows as a sample, and from the noise.
        """
        check_is_fitted(self)
        if self._interest is None or self._interest.risks is None:
            raise ParameterError(wording("no differences of risks"))
        named = [NamedUnit(one.name, one.unit, one.columns) for one in self._interest.combinations]
        errors, facts = uncertainty_of_risks(self._interest), {"shown_units": "original", "quantity": "risk differences"}
        table = self._table_of_interest(errors, named, level, adjust, **facts)
        # An interval may be cut where no difference of two probabilities can lie.
        lines = (replace(one, low=max(one.low, -1.0), high=min(one.high, 1.0)) for one in table.coefficients)
        return replace(table, coefficients=tuple(lines))

    def covariance(self, target: Target | None = None, units: Units | None = None) -> pd.DataFrame:
        """Compute the covariance of the errors of coefficients, due to sampling and to the noise for privacy together.

        Parameters
        ----------
        target : {"regularised", "unregularised"} or None, default None
            As in `uncertainty`.
        units : {"original", "encoded"} or None, default None
            As in `summary`.

        Returns
        -------
        DataFrame (n_coefficients, n_coefficients)
            Rows and columns have the names of the lines of `summary`, in the same order. The diagonal holds the squares of
            its total errors.

        Raises
        ------
        ParameterError
            As in `summary`; or if the model has several scores, one for each class.

        Notes
        -----
        Guarantee: post-processing of the release, which costs nothing more.
        """
        if self._interest is not None:
            raise ParameterError("covariance is for intervals of all coefficients: give inference_share, not interest.")
        self._refuse_single_weights()
        if self._n_scores > 1:
            raise ParameterError("covariance is for models with one score, and this one has a score for each class.")
        named, combinations = self._combinations(checked_units(units, self._encoder))
        names = [coefficient.name for coefficient in named]
        errors = self._errors_of(combinations, _USUAL_TARGET if target is None else target)[0]
        return frame_of(errors.covariance, index=names, columns=names)

    def predict_interval(self, X: Any, level: float = 0.95, target: Target = "regularised") -> Array:
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
        errors, link = self._errors_of(rows, target), self._link
        if len(errors) == 1:
            return link.mean(ends_of_scores(errors[0], level))
        if not link.has_probabilities:
            return np.stack([ends_of_scores(errors_of_class, level) for errors_of_class in errors], axis=1)
        depend = not self._known_evidence().separable
        log_odds, derivatives = link.log_odds(np.column_stack([of_class.estimates for of_class in errors]))
        return np.asarray(expit(ends_of_log_odds(errors, log_odds, derivatives, depend=depend, level=level)))

    @property
    @abstractmethod
    def _link(self) -> Link:
        """How scores become predictions."""

    @abstractmethod
    def _blocks_to_score(self, X: Any) -> Blocks:
        """The rows in the form in which the model scores them: checked, encoded and mapped."""

    @property
    def _n_scores(self) -> int:
        return len(np.atleast_2d(self.coef_))

    def _combinations(self, units: str) -> tuple[list[NamedUnit], Array]:
        """The coefficients of one score in these units, the intercept last, and the combination of weights that each is."""
        if units == "original":
            assert self._encoder is not None  # noqa: S101 - `checked_units`
            each_weight = np.eye(self._encoder.n_features + 1)
            named, combinations = in_original_units(self._encoder, each_weight[:-1], each_weight[-1])
            return list(named), combinations
        names = list(map(str, self.coefficient_names_))
        of_columns = ("per 1, as given",) * len(names) if self._encoder is None else encoded_units(self._encoder)
        shown = [NamedUnit(name, unit, (name,)) for name, unit in zip(names, of_columns, strict=True)]
        if self._known_evidence().intercept != 0.0:
            shown.append(NamedUnit(INTERCEPT, "", ()))
        return shown, np.eye(len(names) + 1)[: len(shown)]

    def _errors_of_all(self, combinations: Array, target: Target) -> Uncertainty:
        """The errors of combinations of the weights of each score, one score after the other."""
        evidence = self._known_evidence()
        return of_all_scores(self._errors_of(combinations, target), released_together=not evidence.separable)

    def _joint_uncertainty(self, target: Target | None) -> Uncertainty:
        """As `uncertainty`, with the joint law of the errors where it was released."""
        if self._interest is not None:
            return self.uncertainty(target)
        self._refuse_single_weights()
        return self._errors_of_all(self._combinations("encoded")[1], target or _USUAL_TARGET)

    def _errors_of(self, combinations: Array, target: str) -> list[JointUncertainty]:
        """For each score, the errors of combinations of its weights; the last weight is the intercept, if there is one."""
        evidence = self._known_evidence()
        if evidence.intercept == 0.0:
            combinations = combinations[:, :-1]
        return evidence.joint_uncertainty(combinations, target)

    def _known_evidence(self) -> WeightsEvidence:
        """What intervals are computed from, with what a schema says of encoded columns.

        Without it, intervals of rare levels and hats would be far too short (benchmarks/effect_bands.py).
        """
        check_is_fitted(self)
        if self._evidence is None:
            raise ParameterError(f"{self._why_no_intervals()} {_WITHOUT_INTERVALS}")
        if self._encoder is None or self._fourier is not None:
            return self._evidence
        return with_known_zeros(self._evidence, self._encoder)

    def _refuse_single_weights(self) -> None:
        """Raise ParameterError if nothing was released for intervals, or single weights have no meaning."""
        self._known_evidence()
        if self._fourier is not None:
            raise ParameterError(f"{SINGLE_WEIGHTS} predict_interval has intervals of its predictions.")

    def _why_no_intervals(self) -> str:
        """The message of the error that is raised where nothing was released for intervals."""
        return "intervals need a share of the budget: set inference_share, for example 0.3, and fit again."

    def _shown_outcome(self) -> tuple[float, str]:
        """The factor, 1 or -1, that makes coefficients speak for the outcome shown, and its name; "" for a number."""
        return 1.0, ""


# The parameter `interest`: which combinations of weights the named columns stand for.

_MOST = 20
"""The largest number of coefficients. The noise on each sum grows with the root of their number."""


def checked_interest(given: Any, encoder: Encoder | None, names: Callable[[], Sequence[str]]) -> tuple[Combination, ...]:
    """The combinations of weights of the named columns; empty if none is named.

    Parameters
    ----------
    given : what the user gave: names of columns of the table, or of an array of numbers
    encoder : the encoder of the schema, or None
    names : gives the names of the columns of an array or a frame of numbers

    Raises
    ------
    ParameterError
        If it is no list of names, a name is unknown or comes twice, or its coefficient is not one number for each level.
    """
    if given is None or (isinstance(given, tuple | list) and not given):
        return ()
    if isinstance(given, str):
        raise ParameterError(f'interest must be a list of names of columns, also for one: ["{given}"].')
    if not isinstance(given, tuple | list) or not all(isinstance(name, str) for name in given):
        raise ParameterError('interest must be a list of names of columns, for example ["treatment"].')
    if len(set(given)) < len(given):
        raise ParameterError("interest names a column twice; name it once.")
    known = list(map(str, names())) if encoder is None else list(encoder.schema.column_names)
    unknown = [name for name in given if name not in known]
    if unknown:
        what = "is no column" if len(unknown) == 1 else "are no columns"
        raise ParameterError(f"interest names {listed_unknown(unknown, known)}, which {what}. Columns are {listed(known)}.")
    if encoder is None:
        chosen_sums = [Combination(name, "per 1, as given", (name,), 1.0, ((known.index(name), 1.0),)) for name in given]
    else:
        chosen_sums = [one for name in given for one in _of_column(name, encoder)]
    if len(chosen_sums) > _MOST:
        raise ParameterError(f"interest is for at most {_MOST} coefficients, not {len(chosen_sums)}. Name fewer columns.")
    return tuple(chosen_sums)


def _of_column(name: str, encoder: Encoder) -> list[Combination]:
    """The coefficients of one column in units of the table: one for a number, one for each level of a category."""
    column = encoder.schema.columns[encoder.schema.column_names.index(name)]
    if any(name in interaction.columns for interaction in encoder.schema.interact):
        raise ParameterError(wording("interest in a column with an interaction", name=name))
    if column.is_number and (column.knots_with_bounds or column.atoms):
        raise ParameterError(wording("interest in a curve", name=name))
    each_weight = np.eye(encoder.n_features + 1)
    units, combinations = in_original_units(encoder, each_weight[:-1], each_weight[-1])
    named, has_levels = [], not column.is_number
    own: tuple[int, ...] = ()
    base: tuple[tuple[int, float], ...] = ()
    if has_levels:
        # The places of the category in a row, and the entries of its reference there: the last combination is the intercept
        # in units of the table, the score of a row at its references.
        groups = zip(members_of_groups(encoder), encoder.groups, strict=True)
        (group,) = (group for members, group in groups if members == (name,))
        own = tuple(range(*group.place.indices(encoder.n_features)))
        base = tuple((place, float(combinations[-1][place])) for place in own if combinations[-1][place])
    n_levels = sum(unit.columns == (name,) for unit in units) + 1
    for unit, row in zip(units, combinations, strict=True):
        if unit.columns != (name,):
            continue
        places = np.flatnonzero(row).tolist()
        factors = tuple((-1 if place == encoder.n_features else place, float(row[place])) for place in places)
        usual = _usual(factors, n_levels if has_levels else 0)
        span = float(unit.span)
        named.append(Combination(unit.name, unit.unit, unit.columns, span, factors, has_levels, *usual, own, base))
    return named


def _usual(factors: tuple[tuple[int, float], ...], n_levels: int) -> tuple[float, float]:
    """The usual variance of rows along a direction along which the combination has the size 1, and its clip.

    Levels are taken to be equally frequent: the rows of the two that are compared lie at -1/2 and 1/2. Encoded numbers are
    taken to be uniform in [-1, 1].
    """
    if n_levels:
        return 0.5 / n_levels, 0.5
    factor = max(abs(factor) for place, factor in factors if place >= 0)
    return 1.0 / (3.0 * factor**2), 3.0**0.5 / factor
