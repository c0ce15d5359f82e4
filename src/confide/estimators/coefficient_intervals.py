"""Intervals and tables of coefficients, of estimators whose release holds what they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from confide.errors import ParameterError
from confide.inference.evidence import Evidence
from confide.inference.intervals import Uncertainty, uncertainty
from confide.inference.least_squares import SumsEvidence, uncertainty_of_sums
from confide.inference.table import CoefficientTable
from confide.types import Array


class CoefficientIntervals:
    """What a linear model says of its coefficients, beside their values."""

    coef_: Array
    classes_: Any
    alpha_: float
    coefficient_names_: Any
    guarantee_: Any
    _evidence: Evidence | SumsEvidence | None = None

    def uncertainty(self, target: str = "regularised") -> Uncertainty:
        """How far the released coefficients may lie from those of the population; intercept last.

        Of three classes and more one class after the other; with softmax less their mean over classes, which is 0 in the
        population and says nothing of a class. Costs no privacy: it is made of what was released.

        Parameters
        ----------
        target : "regularised" or "unregularised"
            The minimiser that the population has with the same alpha, or the one without a ridge. "unregularised" corrects
            the bias of the ridge by one Newton step; it is exact for `Ridge`, and not available after output perturbation,
            whose noise is too large for that step.

        Raises
        ------
        ParameterError
            If nothing was released for intervals.
        """
        check_is_fitted(self)
        if self._evidence is None:
            raise ParameterError(self._why_no_intervals())
        if isinstance(self._evidence, SumsEvidence):
            return uncertainty_of_sums(self._evidence, target)
        return uncertainty(self._evidence, target)

    def conf_int(self, level: float = 0.95, target: str = "regularised") -> Array:
        """Intervals (n_coefficients, 2) for the coefficients `coef_` of the population, each at this level by itself.

        Of three classes and more (n_classes, n_coefficients, 2). See `uncertainty` for the target, and for when there are
        none.
        """
        n_vectors, width = np.atleast_2d(self.coef_).shape
        ends = self.uncertainty(target).intervals(level).reshape(n_vectors, -1, 2)[:, :width]
        return ends[0] if n_vectors == 1 else ends

    def summary(self, level: float = 0.95, target: str = "regularised") -> CoefficientTable:
        """A table of coefficients with standard errors, intervals and p-values, which prints, and writes LaTeX and HTML.

        Of a classifier it speaks of the schema's positive class, or else of `classes_[1]`; of three classes and more it has
        the coefficients of each, named "class: column". See `uncertainty` for the target.
        """
        known = self.uncertainty(target)
        names = [str(name) for name in self.coefficient_names_]
        n_vectors = len(np.atleast_2d(self.coef_))
        if len(known.estimates) > n_vectors * len(names):
            names.append("(intercept)")
        if n_vectors > 1:
            names = [f"{label}: {name}" for label in self.classes_.tolist() for name in names]
        sign, outcome = self._spoken_of()
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
        """What to do for intervals where nothing was released for them."""
        return "intervals need a share of the budget: set inference_share, for example 0.3, and fit again."

    def _spoken_of(self) -> tuple[float, str]:
        """The sign that turns coefficients to the outcome they are shown for, and its name; "" for a number."""
        return 1.0, ""
