"""How good a model is on private rows: one noisy histogram of scores by class, and what follows from it.

Everything but the histogram is post-processing. Intervals hold both doubts: that the rows are a sample, and the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logit, ndtri

from confide.accounting.ledger import Batch, Ledger
from confide.data.mapped import MappedBlocks
from confide.data.on_disk import Stamp
from confide.data.opened import ArrayRows
from confide.errors import ParameterError
from confide.estimators import parameters
from confide.estimators.direction import Direction
from confide.estimators.fitting import charge_and_release, confirm_noise, rows_per_person
from confide.estimators.streamed import is_opened, scored
from confide.estimators.validation import rows_given
from confide.features.persons import RowsPerPerson
from confide.inference.intervals import checked_level
from confide.privacy.budgets import Budget, Neighbours, as_budget
from confide.privacy.counts import CountsPlan, NoisyCounts
from confide.privacy.noise import Entropy
from confide.types import Array, Targets

if TYPE_CHECKING:
    import pandas as pd

    from confide.estimators.linear import LinearClassifier

_LEAST_BINS, _MOST_BINS = 2, 1000
_LEAST_SIGNAL = 4.0
"""In standard deviations of the noise: below it a number of rows is not known well enough to divide by."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A number with its interval; all three are None where noise hides too much to tell.

    Attributes
    ----------
    value, low, high : float or None
    """

    value: float | None
    low: float | None
    high: float | None

    def __str__(self) -> str:
        if self.value is None:
            return "hidden by the noise"
        return f"{self.value:.4f}  [{self.low:.4f}, {self.high:.4f}]"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How good a model is on private rows. Public: made of a noisy histogram and public facts.

    Attributes
    ----------
    counts : array (2, n_bins)
        Noisy numbers of rows by class, the negative one first, and bin of the probability (of a support vector machine: of
        its score through the logistic function) of the positive class. Under replace-one they add up to the number of rows.
    plan : CountsPlan
        What the histogram cost, and its noise.
    level : float
        Of each interval by itself.
    outcome : str
        The positive class: the schema's, or else the second.
    n_rows : int or None
        None where it is private: of persons with a column in the schema, it is after rows beyond the cap were dropped.
    has_probabilities : bool
        Whether the bins are those of probabilities.
    void : str or None
        Why there is no guarantee; None if there is one.
    """

    counts: Array
    plan: CountsPlan
    level: float
    outcome: str
    n_rows: int | None
    has_probabilities: bool
    void: str | None

    @property
    def n_bins(self) -> int:
        """Bins of equal width; an edge lies where predictions change."""
        return int(self.counts.shape[1])

    @property
    def accuracy(self) -> Rate:
        """The part of rows that are predicted right."""
        return self._rate(_agreeing, np.ones_like(self.counts))

    @property
    def confusion(self) -> tuple[tuple[Rate, Rate], tuple[Rate, Rate]]:
        """Parts of all rows by true class (first index) and predicted class, negative first."""
        return (self._cell(0, 0), self._cell(0, 1)), (self._cell(1, 0), self._cell(1, 1))

    @property
    def sensitivity(self) -> Rate:
        """The part of the positive rows that are predicted so (recall)."""
        return self._rate(lambda counts: _part(counts, 1, 1), self._of_class(1))

    @property
    def specificity(self) -> Rate:
        """The part of the negative rows that are predicted so."""
        return self._rate(lambda counts: _part(counts, 0, 0), self._of_class(0))

    @property
    def auc(self) -> Rate:
        """How probable it is that a positive row scores above a negative one; half a point for two in the same bin."""
        needed = [self._of_class(0), self._of_class(1)]
        if not all(self._is_known(self.counts, which) for which in needed):
            return Rate(None, None, None)
        return self._interval(_area)

    @property
    def calibration(self) -> tuple[Rate, ...]:
        """For each bin the part of its rows that are positive: for a calibrated model it lies within the bin."""
        if not self.has_probabilities:
            raise ParameterError("a support vector machine gives no probabilities, so nothing to calibrate.")
        return tuple(map(self._rate_in_bin, range(self.n_bins)))

    def _rate_in_bin(self, place: int) -> Rate:
        which = np.zeros_like(self.counts)
        which[:, place] = 1.0
        return self._rate(lambda counts: float(counts[1, place]), which)

    def _cell(self, true: int, predicted: int) -> Rate:
        return self._rate(lambda counts: _part(counts, true, predicted), np.ones_like(self.counts))

    def _of_class(self, position: int) -> Array:
        which = np.zeros_like(self.counts)
        which[position] = 1.0
        return which

    def _is_known(self, counts: Array, which: Array) -> bool:
        noise = self.plan.deviation * math.sqrt(which.sum())
        return bool((which * counts).sum() > max(_LEAST_SIGNAL * noise, 0.0))

    def _rate(self, part: Callable[[Array], float], of: Array) -> Rate:
        """A sum of counts over the sum of those in `of`."""
        if not self._is_known(self.counts, of):
            return Rate(None, None, None)
        return self._interval(lambda counts: float(part(counts)) / float((of * counts).sum()))

    def _interval(self, statistic: Callable[[Array], float]) -> Rate:
        """The statistic with an interval by the delta method, within [0, 1]."""
        value, gradient = statistic(self.counts), np.empty(self.counts.size)
        step = 1e-4 * self.counts.sum()
        for cell in range(self.counts.size):
            moved = (step * (np.arange(self.counts.size) == cell)).reshape(self.counts.shape)
            gradient[cell] = (statistic(self.counts + moved) - statistic(self.counts - moved)) / (2.0 * step)
        # Rows are a sample: counts are multinomial, at rates that are not negative.
        chances = np.maximum(self.counts.ravel(), 0.0)
        chances = chances / chances.sum()
        sampling = self.counts.sum() * (chances @ gradient**2 - (chances @ gradient) ** 2)
        noise = self.plan.deviation**2 * (gradient @ gradient)
        if self.n_rows is not None:
            # The part of the noise that changes the total was taken out.
            noise -= self.plan.deviation**2 * gradient.sum() ** 2 / gradient.size
        margin = float(ndtri(0.5 + 0.5 * self.level)) * math.sqrt(max(sampling + noise, 0.0))
        value, low, high = (min(1.0, max(0.0, float(x))) for x in (value, value - margin, value + margin))
        return Rate(value, low, high)

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""

        def written(rate: Rate) -> dict[str, float | None]:
            return {"value": rate.value, "low": rate.low, "high": rate.high}

        return {
            "budget": self.plan.budget.to_dict(),
            "neighbours": str(self.plan.neighbours),
            "void": self.void,
            "level": self.level,
            "outcome": self.outcome,
            "n_rows": self.n_rows,
            "counts": self.counts.tolist(),
            "count_deviation": self.plan.deviation,
            "accuracy": written(self.accuracy),
            "sensitivity": written(self.sensitivity),
            "specificity": written(self.specificity),
            "auc": written(self.auc),
            "confusion": [[written(rate) for rate in row] for row in self.confusion],
            "calibration": [written(rate) for rate in self.calibration] if self.has_probabilities else None,
        }

    def to_frame(self) -> pd.DataFrame:
        """The rates as a pandas frame: value, low and high."""
        import pandas as pd

        rates = {name: getattr(self, name) for name in ("accuracy", "sensitivity", "specificity", "auc")}
        values = [[rate.value, rate.low, rate.high] for rate in rates.values()]
        return pd.DataFrame(values, index=pd.Index(list(rates), name="rate"), columns=["value", "low", "high"], dtype=float)

    def __str__(self) -> str:
        rows = "private rows" if self.n_rows is None else f"{self.n_rows:,} private rows"
        lines = [f"Evaluation on {rows}, intervals at {self.level:g}"]
        lines += [f"{name:<12} {getattr(self, name)}" for name in ("accuracy", "sensitivity", "specificity", "auc")]
        lines.append(
            f"positive: {self.outcome}. {2 * self.n_bins} counts with noise of standard deviation {self.plan.deviation:.4g}."
        )
        lines.append(
            f"NOT PRIVATE. {self.void}" if self.void else f"Released under {self.plan.budget} ({self.plan.neighbours})."
        )
        return "\n".join(lines)


def evaluate(
    model: LinearClassifier,
    X: Any,
    y: Any = None,
    *,
    budget: float | Budget,
    ledger: Ledger | Batch | None = None,
    n_bins: int = 20,
    level: float = 0.95,
    neighbours: str | Neighbours = "replace-one",
    max_rows_per_person: int = 1,
    random_state: int | None = None,
) -> Evaluation:
    """Accuracy, confusion, calibration and AUC of a fitted classifier on private rows, each with an interval.

    One histogram, class by bin of the score, is released with exact noise; all else is made of it.

    Parameters
    ----------
    model : LogisticRegression, LinearSVC or KernelSVC, fitted
    X, y : rows and labels as in `fit`, which the model has not learned from: otherwise the rates are too good, and the
        privacy costs of both releases add up. Rows from `open_rows`, of files and the model's schema, bring their labels
    budget : float, PureDP, ApproxDP or ZCDP
        What the histogram costs.
    ledger : Ledger, batch of one, or None
        Charged before a score is computed.
    n_bins : int, even
        Bins of equal width between the probabilities 0 and 1. Public, chosen without the rows.
    level : float
        Of the intervals.
    neighbours : {"replace-one", "add-or-remove-one"}
        Under the second the number of rows is private.
    max_rows_per_person : int
        A public cap on the rows of one person. Where the model's schema names a column of persons, rows beyond so
        many of each are dropped at random, as in `fit`; otherwise the cap is an assumption.
    random_state : int or None
        For tests: a seed makes the noise reproducible and the guarantee void.

    Returns
    -------
    Evaluation

    Raises
    ------
    ParameterError, InputError
        Before anything is charged.
    BudgetExceeded
        If the ledger has too little left; no score was computed.

    Examples
    --------
    >>> import confide
    >>> adult = confide.datasets.load_adult()
    >>> model = confide.LogisticRegression(1.0, schema=adult.schema).fit(adult.X_train, adult.y_train)
    >>> bool(confide.evaluate(model, adult.X_test, adult.y_test, budget=0.5).accuracy.low > 0.8)
    True
    """
    from confide.estimators.linear import LinearClassifier

    if not isinstance(model, LinearClassifier) or not hasattr(model, "coef_"):
        raise ParameterError("evaluate is for LogisticRegression, LinearSVC and KernelSVC, fitted or loaded.")
    if len(model.classes_) != 2:
        raise ParameterError("evaluate is for models of two classes.")
    allowed, relation = as_budget(budget), Neighbours.parse(neighbours)
    whole = isinstance(n_bins, (int, np.integer)) and not isinstance(n_bins, bool)
    if not whole or not _LEAST_BINS <= n_bins <= _MOST_BINS or n_bins % 2:
        raise ParameterError(f"n_bins must be an even number from {_LEAST_BINS} to {_MOST_BINS}.")
    checked_level(level)
    charged, seed = parameters.checked_ledger(ledger), parameters.checked_seed(random_state)
    persons = parameters.checked_rows_per_person(max_rows_per_person)
    encoder, direction = model._encoder, Direction.of(model)
    # The bins in scores, of which 0 is one.
    edges = logit(np.arange(1, n_bins) / n_bins)
    edges[n_bins // 2 - 1] = 0.0
    plan = NoisyCounts().plan(2 * int(n_bins), allowed, relation, persons)

    void = None
    if not allowed.is_private:
        void = "The budget is infinite: no noise was added, and the counts may reveal any row."
    elif seed is not None:
        void = "The noise came from a fixed seed (random_state): whoever knows or guesses the seed can take it away."
    outcome, has_probabilities = str(direction), hasattr(model, "predict_proba")
    # How many rows were left of a public number tells how many persons there are.
    names_persons = encoder is not None and encoder.schema.person is not None
    confirm_noise(plan.lattice)
    # Rows and labels are checked before the charge, and scored after it.
    with _checked_pieces(model, X, y, rows_per_person(persons, seed)) as (n_given, pieces):

        def release(entropy: Entropy) -> Array:
            # A score on an edge belongs to the bin below it, as a score of 0 is no vote for the second class.
            cells = [np.searchsorted(edges, scores, side="left") + n_bins * (labels > 0) for scores, labels in pieces()]
            return NoisyCounts().release(plan, np.concatenate(cells), entropy)

        counts = charge_and_release(release, plan.event, relation, charged, seed, "evaluate").reshape(2, int(n_bins))
    if direction.position == 0:
        counts = counts[::-1, ::-1].copy()
    n_rows = n_given if relation is Neighbours.REPLACE_ONE and not names_persons else None
    if n_rows is not None:
        # The number of rows is public: what the noise added to the total goes, evenly.
        counts = counts + (n_rows - counts.sum()) / counts.size
    return Evaluation(counts, plan, float(level), outcome, n_rows, has_probabilities, void)


@contextmanager
def _checked_pieces(
    model: LinearClassifier, X: Any, y: Any, persons: RowsPerPerson
) -> Iterator[tuple[int, Callable[[], Iterable[tuple[Array, Targets]]]]]:
    """How many rows were given, all checked, and what scores them, each alone: pieces of scores with labels."""
    stamps: tuple[Stamp, ...] = ()
    if is_opened(X) or isinstance(X, ArrayRows):
        if y is not None:
            raise ParameterError("rows from open_rows bring their labels; leave y out.")
        if is_opened(X):
            with scored(model, X, persons) as rows:
                yield rows
            return
        X, y, stamps = X.rows, X.labels, X.stamps
    blocks, kept, n_given = rows_given(
        model, X, model._encoder, reset=False, rows_per_person=persons, accept_sparse=model._accepts_sparse
    )
    labels, _, _ = model._labels(y, n_given, tuple(model.classes_.tolist()))
    labels = labels if kept is None else labels[kept]
    scoring, mapped = model._model, blocks if model._fourier is None else MappedBlocks(blocks, model._fourier)

    def pieces() -> Iterator[tuple[Array, Targets]]:
        scores = scoring.scores_alone(mapped)
        for stamp in stamps:
            stamp.check()
        yield scores, labels

    yield n_given, pieces


def _part(counts: Array, true: int, predicted: int) -> float:
    """Rows of one class that are predicted as one class."""
    half = counts.shape[1] // 2
    return float(counts[true, half:].sum() if predicted else counts[true, :half].sum())


def _agreeing(counts: Array) -> float:
    return _part(counts, 0, 0) + _part(counts, 1, 1)


def _area(counts: Array) -> float:
    negative, positive = counts
    below = np.cumsum(negative) - 0.5 * negative
    return float(positive @ below / (positive.sum() * negative.sum()))
