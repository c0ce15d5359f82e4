"""Intervals for any linear model from private fits on disjoint parts of the rows: no moments, no formula of the loss.

Each row lies in one part, so the fits together cost what one of them costs. Their coefficients are independent draws of one
law, which holds sampling and noise alike, and their mean has Student's interval. What is paid: each fit has fewer rows under
the same noise, so that the noise of the mean is about the root of the number of parts times that of one fit on all rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtr, stdtrit
from sklearn.base import clone

from confide.accounting.events import as_events
from confide.accounting.ledger import Batch, Ledger
from confide.data.opened import ArrayRows
from confide.errors import InputTypeError, ParameterError
from confide.estimators import parameters
from confide.estimators.assumptions import guarantee_of
from confide.estimators.divided import GivenRows, check_before_charge, parts_of
from confide.estimators.fitting import charge_and_release
from confide.estimators.linear import LinearClassifier
from confide.estimators.linear_regression import LinearRegressor
from confide.estimators.streamed import is_opened
from confide.estimators.validation import labels_of
from confide.guarantee import Guarantee
from confide.inference.intervals import checked_level
from confide.privacy.budgets import Neighbours
from confide.privacy.mechanism import Plan
from confide.privacy.noise import Entropy
from confide.privacy.sufficient_statistics import StatisticsPlan
from confide.types import Array

if TYPE_CHECKING:
    import pandas as pd

_FEWEST_PARTS = 5
"""Fewer make intervals more than twice as wide as a normal law would."""


@dataclass(frozen=True, slots=True)
class PartIntervals:
    """Coefficients by part, and what follows from them. Public: private fits and public facts.

    Attributes
    ----------
    names : tuple of str
        Of several classes with the class before; the intercept last.
    of_parts : array (n_parts, n_coefficients)
        Released coefficients of each part.
    alpha : float
        The ridge of each fit, of the mean form: the intervals are for the minimiser that the population has with it.
    guarantee : Guarantee
        Of all parts together.
    """

    names: tuple[str, ...]
    of_parts: Array
    alpha: float
    guarantee: Guarantee

    @property
    def estimates(self) -> Array:
        """(n_coefficients,): means over the parts."""
        mean: Array = self.of_parts.mean(axis=0)
        return mean

    @property
    def total_error(self) -> Array:
        """(n_coefficients,): standard errors of the means, sampling and noise together."""
        error: Array = self.of_parts.std(axis=0, ddof=1) / math.sqrt(len(self.of_parts))
        return error

    def conf_int(self, level: float = 0.95) -> Array:
        """(n_coefficients, 2): Student's intervals, each at this level by itself."""
        quantile = stdtrit(len(self.of_parts) - 1, 0.5 + 0.5 * checked_level(level))
        return np.column_stack([self.estimates - quantile * self.total_error, self.estimates + quantile * self.total_error])

    def p_values(self) -> Array:
        """(n_coefficients,): of the null hypothesis that the population's coefficient is 0."""
        sizes = np.abs(self.estimates) / np.maximum(self.total_error, np.finfo(float).tiny)
        values: Array = 2.0 * stdtr(len(self.of_parts) - 1, -sizes)
        return values

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """A pandas frame, one row a coefficient."""
        import pandas as pd

        low, high = self.conf_int(level).T
        columns = {"estimate": self.estimates, "total_error": self.total_error, "low": low, "high": high}
        return pd.DataFrame(columns | {"p_value": self.p_values()}, index=pd.Index(self.names, name="coefficient"))

    def __str__(self) -> str:
        n_parts = len(self.of_parts)
        lines = [f"Coefficients, means over {n_parts} parts, with intervals of 95%", self.to_frame().round(4).to_string()]
        lines.append(f"For the minimiser that the population has with the ridge of a part, alpha = {self.alpha:.4g}.")
        lines.append(self.guarantee.statement().split("\n")[0])
        return "\n".join(lines)


def intervals_from_parts(
    estimator: LinearClassifier | LinearRegressor,
    X: Any,
    y: Any,
    *,
    n_parts: int = 10,
    split_seed: int = 0,
    ledger: Ledger | Batch | None = None,
    random_state: int | None = None,
) -> PartIntervals:
    """Intervals for the coefficients of any model, from private fits on disjoint parts of the rows.

    One charge of the estimator's budget pays for all parts, as each row is in one of them. It takes the place of a
    bootstrap, whose fits on overlapping rows would have to share the budget.

    Parameters
    ----------
    estimator : a linear classifier or regressor of confide, not fitted, without ledger and seed
        Its budget is that of the whole. Give `alpha` a number if you compare with other fits: "auto" is that for the rows of
        a part. The loss "auto" is "huber_hinge".
    X, y : as for the estimator
    n_parts : int, at least 5
        More parts know better how coefficients vary, and have more noise.
    split_seed : int
        Public, chosen without the rows: it decides which row lies in which part.
    ledger : Ledger, batch of one, or None
        Charged once, before a row is used.
    random_state : int or None
        For tests: a seed makes the noise reproducible and the guarantee void.

    Returns
    -------
    PartIntervals

    Raises
    ------
    ParameterError, InputError
        Before anything is charged.
    BudgetExceeded
        If the ledger has too little left; no row was used.

    Notes
    -----
    Valid where rows are independent draws of a population and a fit on a part is right on average: it is about the minimiser
    with the same ridge, up to terms that fall with the rows of a part and do not average out. Few rows in a part make
    intervals that are too short for that reason; a larger `alpha` or fewer parts help.

    Guarantee: proofs/selection.md, section 3.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(20_000, 2))
    >>> y = rng.poisson(np.exp(X @ [1.0, -1.0]))
    >>> import confide
    >>> model = confide.PoissonRegressor(4.0, target_bound=5.0, threshold=2.0)
    >>> confide.intervals_from_parts(model, X, y).conf_int().shape
    (3, 2)
    """
    charged, seed = parameters.checked_ledger(ledger), parameters.checked_seed(random_state)
    _check_parameters(estimator, n_parts, split_seed)
    if isinstance(X, ArrayRows) or is_opened(X):
        raise InputTypeError("rows are divided in memory; read them with pandas.")
    check_before_charge(estimator, GivenRows(X, y, {}))
    rows = GivenRows.divisible(X, y, {})
    n_rows = int(rows.X.shape[0])
    if n_rows < n_parts:
        raise ParameterError(f"{n_parts} parts need as many rows.")
    estimator, facts, sentence = clone(estimator), {}, _rule_for_targets(estimator)
    if getattr(estimator, "loss", None) == "auto":
        # Of parts that differ by a row one could take another loss than the others.
        estimator.set_params(loss="huber_hinge")
    if isinstance(estimator, LinearClassifier):
        domain = parameters.checked_classes(estimator.classes, estimator.schema)
        _, classes, sentence = labels_of(y, n_rows, domain)
        if domain is None:
            estimator.set_params(classes=list(classes))
        facts["n_classes"] = len(classes)
    if estimator.schema is None:
        facts["n_features"] = rows.X.shape[1]
    sizes = tuple(n_rows // n_parts + (part < n_rows % n_parts) for part in range(n_parts))
    by_size: Mapping[int, Plan | StatisticsPlan] = {size: clone(estimator).plan(size, **facts) for size in set(sizes)}
    plans = [by_size[size] for size in sizes]
    parts = [rows.at(positions) for positions in parts_of(sizes, split_seed)]
    for part in parts:
        check_before_charge(estimator, part)

    def release(entropy: Entropy) -> list[Any]:
        # Of exactly these releases: a fit that asks for anything else is refused.
        batch = Batch(Ledger(limit=1.0), tuple(as_events(plan) for plan in plans))
        models = []
        for part in parts:
            own = None if entropy.is_secret else entropy.below(2**31)
            models.append(clone(estimator).set_params(ledger=batch, random_state=own).fit(part.X, part.y))
        return models

    # Each row is in one part: together the fits cost a row what its own costs (proofs/selection.md).
    problem: Any = replace(plans[0].problem, n_rows_low=n_rows, n_rows_high=n_rows)
    whole: Plan | StatisticsPlan = replace(plans[0], problem=problem)
    event = whole.problem.event(whole.budget)
    models = charge_and_release(release, event, Neighbours.REPLACE_ONE, charged, seed, "intervals_from_parts")
    said = (
        f"What is released are the coefficients of {n_parts} models, each trained at the whole budget on a part of the rows "
        f"that no other sees. The rows were divided by a rule of their public number and a public seed alone."
    )
    guarantee = guarantee_of(whole, sentence, None, charged, seed, (said,))
    return PartIntervals(_names(models[0]), np.array([_coefficients(model) for model in models]), plans[0].alpha, guarantee)


def _check_parameters(estimator: Any, n_parts: Any, split_seed: Any) -> None:
    """What can be refused before rows are looked at."""
    if not isinstance(estimator, LinearClassifier | LinearRegressor):
        raise ParameterError("estimator must be a linear classifier or regressor of confide.")
    if hasattr(estimator, "kernel"):
        raise ParameterError("weights of random features mean nothing one by one; use LinearSVC or LogisticRegression.")
    if estimator.ledger is not None or estimator.random_state is not None:
        raise ParameterError("give ledger and random_state to the call, not to the estimator: all parts are one release.")
    if Neighbours.parse(estimator.neighbours) is not Neighbours.REPLACE_ONE:
        raise ParameterError(
            "parts need neighbours='replace-one': with rows added or removed the sizes of the parts would be private."
        )
    if estimator.schema is not None and getattr(estimator.schema, "person", None) is not None:
        raise ParameterError(
            "rows are divided by their position, so those of one person cannot be kept together. Keep at most k rows of "
            "each person, give max_rows_per_person=k, and a schema that names no column of persons."
        )
    if getattr(estimator, "inference_share", 0.0) != 0.0 or getattr(estimator, "intervals", False):
        raise ParameterError("these intervals need nothing beside the coefficients: leave inference_share or intervals out.")
    for name, value, least in (("n_parts", n_parts, _FEWEST_PARTS), ("split_seed", split_seed, 0)):
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
            raise ParameterError(f"{name} must be a whole number of at least {least}, chosen without the rows.")


def _rule_for_targets(estimator: Any) -> str:
    return "" if isinstance(estimator, LinearClassifier) else estimator._target_sentence()


def _names(model: Any) -> tuple[str, ...]:
    names = [*map(str, model.coefficient_names_), *(["(intercept)"] if model.fit_intercept else [])]
    if np.ndim(model.coef_) < 2 or len(model.coef_) == 1:
        return tuple(names)
    return tuple(f"{label}: {name}" for label in model.classes_.tolist() for name in names)


def _coefficients(model: Any) -> Array:
    """(n_coefficients,): those of each class, its intercept last."""
    weights = np.atleast_2d(model.coef_)
    if model.fit_intercept:
        weights = np.column_stack([weights, np.ravel(model.intercept_)])
    return weights.ravel()
