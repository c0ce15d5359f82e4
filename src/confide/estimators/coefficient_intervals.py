"""Confidence intervals and tables of coefficients, for estimators that released what intervals need."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from confide.errors import ParameterError
from confide.features.encoder import Encoder
from confide.inference.evidence import Evidence
from confide.inference.intervals import Uncertainty, uncertainty
from confide.inference.least_squares import SumsEvidence, uncertainty_of_sums
from confide.inference.sparse_columns import with_known_zeros
from confide.inference.table import CoefficientTable
from confide.types import Array


class CoefficientIntervals:
    """How sure a linear model is of its coefficients: standard errors, intervals and a table."""

    coef_: Array
    classes_: Any
    alpha_: float
    coefficient_names_: Any
    guarantee_: Any
    _evidence: Evidence | SumsEvidence | None = None
    _encoder: Encoder | None = None

    def uncertainty(self, target: str = "regularised") -> Uncertainty:
        """Estimate how far the released coefficients may lie from those of the population.

        This costs no privacy, because it uses only what was released. The intercept comes last. With three or more classes,
        the classes follow one another. With softmax, the mean over the classes is subtracted: it is 0 in the population and
        says nothing about a class.

        Parameters
        ----------
        target : {"regularised", "unregularised"}, default "regularised"
            Which coefficients of the population are meant: those that minimise its objective with the same alpha, or those
            that minimise it without a ridge. "unregularised" corrects the bias of the ridge by one Newton step; it is exact
            for `Ridge`, and not available after output perturbation, whose noise is too large for that step.

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
        check_is_fitted(self)
        if self._evidence is None:
            raise ParameterError(self._why_no_intervals())
        if isinstance(self._evidence, SumsEvidence):
            return uncertainty_of_sums(self._evidence, target)
        evidence = self._evidence
        if self._encoder is not None:
            # What a schema says of encoded columns takes noise out of the moments. Without it, intervals of rare levels
            # and hats are far too short (benchmarks/effect_bands.py).
            evidence = with_known_zeros(evidence, self._encoder)
        return uncertainty(evidence, target)

    def conf_int(self, level: float = 0.95, target: str = "regularised") -> Array:
        """Compute confidence intervals for the population's values of `coef_`.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level of each interval by itself, strictly between 0 and 1.
        target : {"regularised", "unregularised"}, default "regularised"
            As in `uncertainty`.

        Returns
        -------
        array (n_coefficients, 2)
            Lower and upper ends; (n_classes, n_coefficients, 2) for three or more classes.

        Raises
        ------
        ParameterError
            As in `uncertainty`, or if the level is out of range.
        """
        known = self.uncertainty(target)
        n_vectors, width = np.atleast_2d(self.coef_).shape
        ends = known.intervals(level).reshape(n_vectors, -1, 2)[:, :width]
        return ends[0] if n_vectors == 1 else ends

    def summary(self, level: float = 0.95, target: str = "regularised") -> CoefficientTable:
        """Make a table of coefficients with standard errors, intervals and p-values. It prints, and writes LaTeX and HTML.

        For a classifier with two classes, the coefficients are those for the schema's positive class, or without one for
        `classes_[1]`. With three or more classes, the table has the coefficients of every class, named "class: column".

        Parameters
        ----------
        level : float, default 0.95
            Confidence level of each interval by itself, strictly between 0 and 1.
        target : {"regularised", "unregularised"}, default "regularised"
            As in `uncertainty`.

        Returns
        -------
        CoefficientTable

        Raises
        ------
        ParameterError
            As in `conf_int`.
        """
        known = self.uncertainty(target)
        names = [str(name) for name in self.coefficient_names_]
        n_vectors = len(np.atleast_2d(self.coef_))
        if len(known.estimates) > n_vectors * len(names):
            names.append("(intercept)")
        if n_vectors > 1:
            names = [f"{label}: {name}" for label in self.classes_.tolist() for name in names]
        sign, outcome = self._shown_outcome()
        sums = isinstance(self._evidence, SumsEvidence)
        return CoefficientTable.of(
            known,
            names=names,
            level=level,
            target=target,
            sign=sign,
            model=type(self).__name__,
            outcome=outcome,
            alpha=self.alpha_,
            guarantee=self.guarantee_,
            assumes_equal_variance=sums,
            is_centred=isinstance(self._evidence, Evidence) and not self._evidence.separable,
        )

    def _why_no_intervals(self) -> str:
        """The message of the error that is raised where nothing was released for intervals."""
        return "intervals need a share of the budget: set inference_share, for example 0.3, and fit again."

    def _shown_outcome(self) -> tuple[float, str]:
        """The factor, 1 or -1, that makes coefficients speak for the outcome shown, and its name; "" for a number."""
        return 1.0, ""
