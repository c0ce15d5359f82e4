"""Intervals for any linear model from private fits on disjoint parts of the rows: no moments, no formula of the loss.

Each row lies in one part, so the fits together cost what one of them costs. Their coefficients are independent draws of one
law, which holds sampling and noise alike, and their mean has Student's interval. What is paid: each fit has fewer rows under
the same noise, so that the noise of the mean is about the root of the number of parts times that of one fit on all rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtr, stdtrit
from sklearn.base import clone

from confide.accounting.ledger import Batch, Ledger
from confide.cautions import cautions, warn
from confide.data.source import RowSource
from confide.errors import ParameterError
from confide.estimators import parameters
from confide.estimators.assumptions import guarantee_of, weight_sentences
from confide.estimators.divided import divided, refuse_undivided
from confide.estimators.fitting import Settings, charge_and_release, confirm_noise, lattices_of, release_by
from confide.estimators.linear import LinearClassifier
from confide.estimators.linear_regression import LinearRegressor
from confide.estimators.scores import LinearModel
from confide.estimators.streamed import schema_of
from confide.guarantee import Guarantee
from confide.inference.intervals import checked_level
from confide.privacy.budgets import Neighbours
from confide.privacy.mechanism import Plan
from confide.privacy.noise import Entropy
from confide.privacy.sufficient_statistics import StatisticsPlan
from confide.types import Array

if TYPE_CHECKING:
    import pandas as pd

_NO_PERSONS = (
    "intervals from parts need a schema without a column of persons: how many rows are left of them is private, and the "
    "sizes of the parts are public. Keep at most k rows of each person yourself, and give max_rows_per_person=k."
)
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
    y: Any = None,
    *,
    sample_weight: Any = None,
    n_parts: int = 10,
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
    X, y, sample_weight : as for the estimator's `fit`
    n_parts : int, at least 5
        More parts know better how coefficients vary, and have more noise.
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
    _check_parameters(estimator, n_parts)
    refuse_undivided(X)
    if sample_weight is not None and not hasattr(estimator, "max_sample_weight"):
        raise ParameterError(f"{type(estimator).__name__} takes no weights of rows; leave sample_weight out.")
    estimator, schema = clone(estimator), schema_of(estimator.schema, X)
    if schema is not None and schema.person is not None:
        raise ParameterError(_NO_PERSONS)
    estimator.set_params(schema=schema)
    if getattr(estimator, "loss", None) == "auto":
        # Of parts that differ by a row one could take another loss than the others.
        estimator.set_params(loss="huber_hinge")
    training = _of_classifier if isinstance(estimator, LinearClassifier) else _of_regressor
    with training(estimator, X, y, sample_weight, n_parts, seed) as (rows, sentence, weighting, plan_for, release):
        n_rows = rows.n_rows
        if n_rows < n_parts:
            raise ParameterError(f"{n_parts} parts need as many rows.")
        sizes = tuple(n_rows // n_parts + (part < n_rows % n_parts) for part in range(n_parts))
        by_size = {size: plan_for(replace(rows, n_rows=size)) for size in sorted(set(sizes), reverse=True)}
        # Each row is in one part: together the fits cost a row what its own costs (proofs/selection.md).
        plan = by_size[sizes[0]]
        problem: Any = replace(plan.problem, n_rows_low=n_rows, n_rows_high=n_rows)
        whole: Plan | StatisticsPlan = replace(plan, problem=problem)
        said = (
            f"What is released are the coefficients of {n_parts} models, each trained at the whole budget on a part of the "
            f"rows that no other sees. The rows were divided by a secret draw that knew their public number alone."
        )
        guarantee = guarantee_of(whole, sentence, None, charged, seed, (*weighting, said))
        names = _names(estimator, rows)

        def released(entropy: Entropy) -> Array:
            parts = divided(sizes, entropy)
            return np.array([release(by_size[part.size], rows.part(part).source, entropy) for part in parts])

        event = whole.problem.event(whole.budget)
        confirm_noise(*(noise for its_plan in by_size.values() for noise in lattices_of(its_plan)))
        warn(cautions(event.budget, n_rows, n_rows))
        of_parts = charge_and_release(released, event, Neighbours.REPLACE_ONE, charged, seed, "intervals_from_parts")
    return PartIntervals(names, of_parts, plan.alpha, guarantee)


_Training = tuple[
    Any, str, tuple[str, ...], Callable[[Any], Plan | StatisticsPlan], Callable[[Any, RowSource, Entropy], Array]
]
"""Checked rows; where labels or targets come from; what weights rest on; the plan for rows; what releases coefficients."""


@contextmanager
def _of_classifier(
    estimator: LinearClassifier, X: Any, y: Any, sample_weight: Any, n_parts: int, seed: int | None
) -> Iterator[_Training]:
    settings, encoder, domain = estimator._settings(estimator.schema)
    settings = replace(settings, set_aside=math.log(n_parts))
    with estimator._checked_rows(X, y, settings, encoder, domain, sample_weight, seed) as rows:
        estimator.coefficient_names_ = estimator._coefficient_names(encoder, rows.fourier)

        def release(plan: Plan, source: RowSource, entropy: Entropy) -> Array:
            model = LinearModel.of(release_by(plan, source, entropy).release)
            columns = [model.coef, model.intercept[:, None]] if settings.intercept > 0.0 else [model.coef]
            return np.hstack(columns).ravel()

        given, cap = sample_weight is not None, settings.largest_sample_weight
        weighting = weight_sentences(given, cap, settings.class_weight)
        yield rows, rows.label_sentence, weighting, partial(estimator._plan_for, settings), release


@contextmanager
def _of_regressor(
    estimator: LinearRegressor, X: Any, y: Any, sample_weight: Any, n_parts: int, seed: int | None
) -> Iterator[_Training]:
    settings, encoder = estimator._settings(estimator.schema)
    if isinstance(settings, Settings):
        settings = replace(settings, set_aside=math.log(n_parts))
    cap = getattr(settings, "largest_sample_weight", 1.0)
    with estimator._checked_rows(X, y, settings, encoder, sample_weight, cap, seed) as rows:
        estimator.coefficient_names_ = estimator._coefficient_names(encoder)

        def release(plan: Any, source: RowSource, entropy: Entropy) -> Array:
            weights, _ = estimator._released(plan, source, entropy)
            if settings.intercept > 0.0:
                weights = np.append(weights[:-1], settings.intercept * weights[-1])
            return weights

        weighting = weight_sentences(sample_weight is not None, cap, None)
        yield rows, estimator._target_sentence(), weighting, partial(estimator._plan_for, settings), release


def _check_parameters(estimator: Any, n_parts: Any) -> None:
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
    if getattr(estimator, "inference_share", 0.0) != 0.0 or getattr(estimator, "intervals", False):
        raise ParameterError("these intervals need nothing beside the coefficients: leave inference_share or intervals out.")
    whole = isinstance(n_parts, (int, np.integer)) and not isinstance(n_parts, bool)
    if not whole or n_parts < _FEWEST_PARTS:
        raise ParameterError(f"n_parts must be a whole number of at least {_FEWEST_PARTS}, chosen without the rows.")


def _names(model: Any, rows: Any) -> tuple[str, ...]:
    """Names of the coefficients, of several classes with the class before; the intercept's last."""
    names = [*map(str, model.coefficient_names_), *(["(intercept)"] if model.fit_intercept else [])]
    classes = getattr(rows, "domain", ())
    if len(classes) < 3:
        return tuple(names)
    return tuple(f"{label}: {name}" for label in classes for name in names)
