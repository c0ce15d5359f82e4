"""Intervals for any linear model, from private fits on disjoint parts of the rows. They need no formula for the loss.

Each row lies in one part, so all fits together cost as much privacy as one of them (proofs/selection.md, section 3). The
coefficients of the parts are independent draws from one distribution, which contains the sampling error and the noise, so
their mean has Student's interval. The price is noise: each fit has fewer rows under the same noise, so with m parts the
noise of the mean is about sqrt(m) times the noise of one fit to all rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtr, stdtrit
from sklearn.base import clone

from confide.accounting.ledger import Batch, Ledger
from confide.array_types import Array
from confide.budget_warnings import cautions, tell_of_unknown_size
from confide.errors import ParameterError, is_whole
from confide.estimators.linear_classifier import LinearClassifier
from confide.estimators.regression import LinearRegressor
from confide.estimators.svm import KernelSVC
from confide.expected_noise import wasted
from confide.guarantee import Guarantee
from confide.inference.intervals import checked_level
from confide.intake import parameters
from confide.intake.rows import checked_input
from confide.intake.specification import CheckedRows
from confide.known_words import suggest_keywords_of
from confide.parameters import checked
from confide.privacy.budgets import Neighbours
from confide.privacy.noise import Entropy
from confide.training.assumptions import circumstances_of, guarantee_of, sentences_of_rows
from confide.training.auto_loss import is_automatic
from confide.training.charge import (
    Charge,
    before_charge,
    charge_and_release,
    deciding_fit,
    divided,
    keeps_released,
    refuse_persons,
    refuse_undivided,
)
from confide.training.fit import lattices_of, model_of_columns, released
from confide.training.plan import AnyPlan, of_all_rows, plan_for
from confide.training.settings import Settings, SquaredError

if TYPE_CHECKING:
    import pandas as pd

_FEWEST_PARTS = 5
"""With fewer parts, Student's intervals would be far wider than normal ones: for 95%, 1.42 times with 5 parts, 1.62 times
with 4 and 2.20 times with 3."""


@suggest_keywords_of
@dataclass(frozen=True, slots=True)
class PartIntervals:
    """Coefficients by part, and the intervals that follow from them. It may be published: all of it was released.

    Attributes
    ----------
    names : tuple of str
        Names of the coefficients, the intercept last; for three or more classes "class: column".
    of_parts : array (n_parts, n_coefficients)
        Released coefficients of each part.
    alpha : float
        The alpha of each fit. The intervals are for the minimiser that the population has with this alpha.
    guarantee : Guarantee
        The guarantee for all parts together.
    """

    names: tuple[str, ...]
    of_parts: Array
    alpha: float
    guarantee: Guarantee

    @property
    def estimates(self) -> Array:
        """(n_coefficients,): estimates of the coefficients, the means over the parts."""
        return np.asarray(self.of_parts.mean(axis=0))

    @property
    def total_error(self) -> Array:
        """(n_coefficients,): standard errors of the estimates, which contain the sampling error and the noise."""
        return np.asarray(self.of_parts.std(axis=0, ddof=1) / math.sqrt(len(self.of_parts)))

    def conf_int(self, level: float = 0.95) -> Array:
        """Compute Student's intervals (n_coefficients, 2), each at this level by itself; `level` is between 0 and 1."""
        quantile = stdtrit(len(self.of_parts) - 1, 0.5 + 0.5 * checked_level(level))
        return np.column_stack([self.estimates - quantile * self.total_error, self.estimates + quantile * self.total_error])

    def p_values(self) -> Array:
        """Compute p-values (n_coefficients,) of the null hypotheses that the population's coefficient is 0, two-sided."""
        sizes = np.abs(self.estimates) / np.maximum(self.total_error, np.finfo(float).tiny)
        return np.asarray(2.0 * stdtr(len(self.of_parts) - 1, -sizes))

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Make a pandas frame with one row for each coefficient; `level` is that of the intervals."""
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


@keeps_released
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
    """Make intervals for the coefficients of any linear model, from private fits on disjoint parts of the rows.

    One charge of the estimator's budget pays for all parts, because each row is in only one of them. A bootstrap would be
    worse: its fits use overlapping rows and would have to share the budget.

    Parameters
    ----------
    estimator : linear classifier or regressor of confide
        Not fitted, with neighbours "replace-one" and without ledger and seed; not a `KernelSVC`. Its budget is the budget
        of the whole call. `alpha="auto"` is chosen for the number of rows of a part, so give `alpha` a number if you compare
        the intervals with other fits. `loss="auto"` means "huber_hinge" here.
    X, y, sample_weight : as for the estimator's `fit`
    n_parts : int, default 10
        Number of parts, at least 5; choose it without looking at the rows. More parts estimate the spread of the
        coefficients better, and bring more noise.
    ledger : Ledger, batch of one, or None
        Charged once, before a row is used.
    random_state : int or None
        For tests only: a seed makes the noise reproducible and the guarantee void.

    Returns
    -------
    PartIntervals

    Raises
    ------
    ParameterError, InputError
        If an argument or the rows cannot be used. Nothing was charged.
    BudgetExceeded
        If the ledger has too little left. Nothing was charged, and no row was used.

    Notes
    -----
    The intervals are valid if rows are independent draws from a population, and if the fit to a part is unbiased. The fit is
    unbiased for the minimiser with the same alpha, up to terms that fall with the number of rows in a part. These terms do
    not average out over the parts, so intervals are too short if the parts have few rows. Then a larger `alpha` or fewer
    parts help.

    Guarantee: all parts together are differentially private at the estimator's budget, for replace-one neighbours. Proof:
    confide/privacy/proofs/selection.md, section 3.

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
    charge = Charge(parameters.checked_ledger(ledger), checked("random_state", random_state), "intervals_from_parts")
    _check_parameters(estimator, n_parts)
    given = checked_input(X, y, sample_weight, estimator)
    refuse_undivided(given)
    if sample_weight is not None and not hasattr(estimator, "max_sample_weight"):
        raise ParameterError(f"{type(estimator).__name__} does not take weights of rows; leave sample_weight out.")
    if is_automatic(getattr(estimator, "interactions", None)):
        # There are no intervals beside random features.
        estimator = clone(estimator).set_params(interactions=())
    schema = estimator._schema_of_rows(given)
    refuse_persons(schema, "intervals from parts need")
    estimator = clone(estimator)
    estimator._take_choices(schema, given.n_rows_given)
    # Rows as they are, and exact minimisers, are what intervals speak of.
    estimator.set_params(centre=False, **({"match_mean": False} if hasattr(estimator, "match_mean") else {}))
    if getattr(estimator, "loss", None) == "auto":
        # Parts may differ by one row in size, and then "auto" could choose different losses for them.
        estimator.set_params(loss=estimator._loss_in_parts)
    encoder = parameters.checked_schema(schema)
    tell_of_unknown_size(estimator, has_schema=encoder is not None)
    settings = estimator._settings(encoder, set_aside=math.log(n_parts), names=given.column_names)
    if isinstance(settings.minimised, SquaredError) and settings.mechanism == "auto":
        # Intervals are for least squares itself, without clipped slopes.
        settings = replace(settings, mechanism="sufficient-statistics")
    with given.checked([estimator._specification(settings, encoder, charge.seed)]) as (rows,):
        part_sizes, plans = _plans(settings, rows, n_parts)
        # Each row is in one part, so all fits together cost as much as one of them (proofs/selection.md, section 3).
        largest = plans[part_sizes[0]]
        whole = of_all_rows(largest, rows.n_rows)
        event = whole.problem.event(whole.budget)
        unusual = cautions(event.budget, rows.n_rows, rows.n_rows)
        facts = part_sizes, [plan.to_dict() for plan in plans.values()]
        charge = charge.of_release(event, lambda: (*facts, deciding_fit(settings, rows)))
        guarantee = _guarantee(whole, n_parts, rows, settings, charge, unusual)
        names = [*map(str, rows.coefficient_names), *(["(intercept)"] if settings.intercept > 0.0 else [])]
        if len(rows.domain) > 2:
            names = [f"{label}: {name}" for label in rows.domain for name in names]

        def release(entropy: Entropy) -> Array:
            parts = divided(part_sizes, entropy)
            return np.array([_coefficients(plans[part.size], rows.part(part), settings, entropy) for part in parts])

        noises = [noise for plan in plans.values() for noise in lattices_of(plan)]
        waste = min((wasted(plan) or "" for plan in plans.values()), key=len)
        learned = () if guarantee.circumstances is None else guarantee.circumstances.learned_steps
        before_charge(charge, event.budget, noises, unusual, learned, waste or None)
        of_parts = charge_and_release(release, event, Neighbours.REPLACE_ONE, charge)
    return PartIntervals(tuple(names), of_parts, largest.alpha, guarantee)


def _plans(settings: Settings, rows: CheckedRows, n_parts: int) -> tuple[tuple[int, ...], dict[int, AnyPlan]]:
    """The numbers of rows of the parts, which differ by one at most, the largest first; and the plan for each number."""
    n_rows = rows.n_rows
    if n_rows < n_parts:
        raise ParameterError(f"{n_parts} parts need as many rows; there are {n_rows}. Use fewer parts.")
    sizes = tuple(n_rows // n_parts + (part < n_rows % n_parts) for part in range(n_parts))
    return sizes, {size: plan_for(settings, replace(rows, n_rows=size)) for size in sorted(set(sizes), reverse=True)}


def _guarantee(
    whole: AnyPlan, n_parts: int, rows: CheckedRows, settings: Settings, charge: Charge, unusual: tuple[str, ...]
) -> Guarantee:
    """The guarantee for all parts together, by the plan of the largest with the number of all rows in place of its own."""
    released_together = (
        f"What is released are the coefficients of {n_parts} models, each trained at the whole budget on a part of the rows "
        f"that no other model uses. The rows were divided by a secret random draw that depends only on their public number."
    )
    facts = circumstances_of(whole.problem, rows, settings.prior, charge)
    of_rows = sentences_of_rows(rows.target_sentence, settings, facts, rows.encoder, rows.fourier)
    return guarantee_of(whole, (*of_rows, released_together), rows.encoder, facts, unusual)


def _coefficients(plan: AnyPlan, part: CheckedRows, settings: Settings, entropy: Entropy) -> Array:
    """The released coefficients of one part: the classes follow one another, and in each the intercept comes last."""
    model = model_of_columns(released(plan, part.source, entropy)[0], settings)
    columns = [model.coef, model.intercept[:, None]] if plan.problem.intercept > 0.0 else [model.coef]
    return np.hstack(columns).ravel()


def refuse_in_parts(model: Any, what: str, why: str) -> None:
    """Refuse a model that cannot be fitted to parts of the rows, as one of several fits of one release.

    Parameters
    ----------
    model : the unfitted model
    what : what makes the release
    why : why it has no other intervals
    """
    if model.ledger is not None or model.random_state is not None:
        raise ParameterError(f"give ledger and random_state to {what}, not to the estimator: all fits are one release.")
    if Neighbours.parse(model.neighbours) is not Neighbours.REPLACE_ONE:
        private = "the number of rows is private under 'add-or-remove-one', and so would be the sizes of parts"
        raise ParameterError(f"{what} cannot be: {private}. Give neighbours='replace-one', if it may be public.")
    for name in ("inference_share", "intervals", "interest"):
        if str(getattr(model, name, None)) not in ("None", "0.0", "0", "False", "[]", "()"):
            raise ParameterError(f"intervals are not valid for {what}, because {why}: leave {name} at its default.")


def _check_parameters(estimator: Any, n_parts: Any) -> None:
    """Refuse what can be refused before any row is read."""
    if not isinstance(estimator, LinearClassifier | LinearRegressor):
        raise ParameterError("estimator must be a linear classifier or regressor of confide.")
    if isinstance(estimator, KernelSVC):
        raise ParameterError(
            "single weights of random features mean nothing, so a KernelSVC has no intervals. Use LinearSVC or "
            "LogisticRegression."
        )
    if getattr(estimator, "monotone", None):
        raise ParameterError("intervals from parts are for coefficients as they are released: leave monotone out.")
    refuse_in_parts(estimator, "intervals from parts", "they are for all coefficients of the parts")
    if not is_whole(n_parts) or n_parts < _FEWEST_PARTS:
        raise ParameterError(f"n_parts must be a whole number of at least {_FEWEST_PARTS}, chosen without the rows.")
