"""Confidence intervals and tables of coefficients, for estimators that released what intervals need."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from confide.effects.original_units import INTERCEPT, checked_units, encoded_units, in_original_units
from confide.errors import ParameterError
from confide.estimators.score_units import ratio_of_scores
from confide.features.columns import with_unit
from confide.features.encoder import Encoder
from confide.features.public_maps import PublicMap
from confide.inference.evidence import Evidence
from confide.inference.interest import InterestEvidence, uncertainty_of_interest
from confide.inference.intervals import JointUncertainty, Uncertainty, joint_uncertainty, of_all_scores, uncertainty
from confide.inference.least_squares import SumsEvidence, joint_uncertainty_of_sums, uncertainty_of_sums
from confide.inference.sparse_columns import with_known_zeros
from confide.inference.table import CoefficientTable, NamedUnit
from confide.types import Array

if TYPE_CHECKING:
    import pandas as pd

_WITHOUT_INTERVALS = (
    "Each fit spends budget anew. The released coefficients without intervals are in coef_; `confide inspect` shows them."
)

_USUAL_TARGET = "regularised"


SINGLE_WEIGHTS = "single weights of random features mean nothing, so there are no intervals for them."


class CoefficientIntervals:
    """How sure a linear model is of its coefficients: standard errors, intervals and a table."""

    coef_: Array
    classes_: Any
    alpha_: float
    coefficient_names_: Any
    guarantee_: Any
    _evidence: Evidence | SumsEvidence | None = None
    _interest: InterestEvidence | None = None
    _encoder: Encoder | None = None
    _fourier: PublicMap | None = None
    _row_bound: Any

    def uncertainty(self, target: str | None = None) -> Uncertainty:
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
            _refuse_other_target(target)
            return uncertainty_of_interest(self._interest)
        self._refuse_single_weights()
        evidence, target = self._known_evidence(), target or _USUAL_TARGET
        if isinstance(evidence, SumsEvidence):
            return uncertainty_of_sums(evidence, target)
        return uncertainty(evidence, target)

    def conf_int(self, level: float = 0.95, target: str | None = None) -> Array:
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
        known = self.uncertainty(target)
        if self._interest is not None:
            return known.intervals(level)
        n_vectors, width = np.atleast_2d(self.coef_).shape
        ends = known.intervals(level).reshape(n_vectors, -1, 2)[:, :width]
        return ends[0] if n_vectors == 1 else ends

    def summary(self, level: float = 0.95, target: str | None = None, units: str | None = None) -> CoefficientTable:
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

        Returns
        -------
        CoefficientTable
            Each line names its unit.

        Raises
        ------
        ParameterError
            As in `conf_int`; if `units` is unknown, or "original" without a schema.
        """
        if self._interest is None:
            self._refuse_single_weights()
        sign, outcome = self._shown_outcome()
        shown = checked_units(units, self._encoder)
        if self._interest is not None:
            return self._summary_of_interest(level, target, shown, sign, outcome)
        target = target or _USUAL_TARGET
        if shown == "original":
            named, known = self._in_original_units(target)
        else:
            named, known = self._encoded_coefficients(), self.uncertainty(target)
            named = named if len(known.estimates) == self._n_scores * len(named) else named[:-1]
        if self._n_scores > 1:
            named = [replace(each, name=f"{label}: {each.name}") for label in self.classes_.tolist() for each in named]
        return CoefficientTable.of(
            known,
            units=named,
            level=level,
            sign=sign,
            target=target,
            shown_units=shown,
            ratio=ratio_of_scores(self),
            shortens_rows=self._encoder is not None and self._row_bound != self._encoder.row_bound,
            model=type(self).__name__,
            outcome=outcome,
            predicted="" if outcome else self._shown_number(),
            alpha=self.alpha_,
            guarantee=self.guarantee_,
            assumes_equal_variance=isinstance(self._evidence, SumsEvidence),
            design=self._known_evidence().design,
            is_centred=isinstance(self._evidence, Evidence) and not self._evidence.separable,
        )

    def _summary_of_interest(
        self, level: float, target: str | None, shown: str, sign: float, outcome: str
    ) -> CoefficientTable:
        """The table of the coefficients of interest."""
        assert self._interest is not None  # noqa: S101 - the caller asks
        if self._encoder is not None and shown == "encoded":
            raise ParameterError("intervals for interest are in units of the table: leave units out, or give 'original'.")
        named = [NamedUnit(one.name, one.unit, one.columns, one.span) for one in self._interest.combinations]
        return CoefficientTable.of(
            self.uncertainty(target),
            units=named,
            level=level,
            sign=sign,
            target="unregularised",
            shown_units=shown,
            ratio=ratio_of_scores(self),
            model=type(self).__name__,
            outcome=outcome,
            alpha=self.alpha_,
            guarantee=self.guarantee_,
            is_of_interest=True,
            design=self._interest.facts.design,
        )

    def covariance(self, target: str | None = None, units: str | None = None) -> pd.DataFrame:
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
        import pandas as pd

        if self._interest is not None:
            raise ParameterError(
                "covariance is for models with intervals for all coefficients: give inference_share in place of interest."
            )
        self._refuse_single_weights()
        if self._n_scores > 1:
            raise ParameterError("covariance is for models with one score, and this one has a score for each class.")
        if checked_units(units, self._encoder) == "original":
            assert self._encoder is not None  # noqa: S101 - `checked_units`
            each_weight = np.eye(self._encoder.n_features + 1)
            named, combinations = in_original_units(self._encoder, each_weight[:-1], each_weight[-1])
            shown = list(named)
        else:
            shown = self._encoded_coefficients()
            combinations = np.eye(len(shown))
            if self._known_evidence().intercept == 0.0:
                shown, combinations = shown[:-1], combinations[:-1]
        names = [each.name for each in shown]
        return pd.DataFrame(self._errors_of(combinations, target or _USUAL_TARGET)[0].covariance, index=names, columns=names)

    @property
    def _n_scores(self) -> int:
        return len(np.atleast_2d(self.coef_))

    def _encoded_coefficients(self) -> list[NamedUnit]:
        """The coefficients of one score as they entered the fit, the intercept last."""
        names = list(map(str, self.coefficient_names_))
        units = ("per 1, as given",) * len(names) if self._encoder is None else encoded_units(self._encoder)
        return [*(NamedUnit(*pair, ()) for pair in zip(names, units, strict=True)), NamedUnit(INTERCEPT, "", ())]

    def _in_original_units(self, target: str) -> tuple[list[NamedUnit], Uncertainty]:
        """The coefficients of one score in the units of the table, and the errors of those of all scores."""
        assert self._encoder is not None  # noqa: S101 - `checked_units`
        each_weight = np.eye(self._encoder.n_features + 1)
        named, combinations = in_original_units(self._encoder, each_weight[:-1], each_weight[-1])
        return list(named), of_all_scores(self._errors_of(combinations, target))

    def _errors_of(self, combinations: Array, target: str) -> list[JointUncertainty]:
        """For each score, the errors of combinations of its weights; the last weight is the intercept, if there is one."""
        evidence = self._known_evidence()
        if evidence.intercept == 0.0:
            combinations = combinations[:, :-1]
        if isinstance(evidence, SumsEvidence):
            return [joint_uncertainty_of_sums(evidence, combinations, target)]
        return joint_uncertainty(evidence, combinations, target)

    def _known_evidence(self) -> Evidence | SumsEvidence:
        """What intervals are computed from, with what a schema says of encoded columns.

        Without it, intervals of rare levels and hats would be far too short (benchmarks/effect_bands.py).
        """
        check_is_fitted(self)
        if self._evidence is None:
            raise ParameterError(f"{self._why_no_intervals()} {_WITHOUT_INTERVALS}")
        if self._encoder is None or self._fourier is not None or isinstance(self._evidence, SumsEvidence):
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

    def _shown_number(self) -> str:
        """The number that a regression predicts, in words; "" if no schema names it."""
        target = None if self._encoder is None else self._encoder.schema.target
        return "" if target is None else with_unit(target.column, target.unit and f"in {target.unit}")

    def _shown_outcome(self) -> tuple[float, str]:
        """The factor, 1 or -1, that makes coefficients speak for the outcome shown, and its name; "" for a number."""
        return 1.0, ""


def _refuse_other_target(target: str | None) -> None:
    """Refuse what is no target of intervals for named coefficients."""
    if target not in (None, "unregularised"):
        raise ParameterError("intervals for interest are for coefficients without a ridge: leave target out.")
