"""How good a fitted classifier is on private rows, from one noisy histogram of its scores for each class.

The ledger is charged before any score is computed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from confide.accounting.ledger import Batch, Ledger
from confide.errors import ParameterError
from confide.estimators.linear_classifier import LinearClassifier, classes_of
from confide.estimators.linear_model import released_model
from confide.features.encoder import Encoder
from confide.features.persons import RowsPerPerson
from confide.features.schema import Schema
from confide.inference.expected_precision import expected_precision
from confide.inference.intervals import checked_level
from confide.inference.rates import Evaluation
from confide.intake import parameters
from confide.intake.given_rows import GivenRows, rows_given
from confide.intake.specification import CheckedRows, RowSpecification
from confide.intake.targets import Classes
from confide.privacy.budgets import Budget, Neighbours, as_budget
from confide.privacy.counts import CountsPlan, NoisyCounts
from confide.privacy.noise import Entropy
from confide.released_models.model import ReleasedModel
from confide.released_models.shown_class import ShownClass
from confide.training.assumptions import void_because
from confide.training.charge import Charge, before_charge, charge_and_release, rows_per_person
from confide.types import Array

_LEAST_BINS, _MOST_BINS = 2, 1000
USUAL_BINS = 20


def evaluate(
    model: LinearClassifier,
    X: Any,
    y: Any = None,
    *,
    budget: float | Budget | None = None,
    ledger: Ledger | Batch | None = None,
    n_bins: int = USUAL_BINS,
    level: float = 0.95,
    neighbours: str | Neighbours = "replace-one",
    max_rows_per_person: int = 1,
    random_state: int | None = None,
) -> Evaluation:
    """Estimate accuracy, confusion, calibration and AUC of a fitted classifier on private rows, each with an interval.

    One histogram is released with exact noise: the number of rows by class and bin of the score. Everything else is computed
    from it.

    Parameters
    ----------
    model : LogisticRegression, LinearSVC, KernelSVC or ERMClassifier
        Fitted or loaded, with two classes.
    X : array, SciPy sparse matrix or frame (n, d), or rows from `open_rows`
        Rows as in `fit`. The model must not have learned from them: otherwise the rates are too good, and the privacy costs
        of both releases add up. Rows from `open_rows` must lie in files and be opened with the model's schema.
    y : (n,) labels, or None
        None for rows from `open_rows`, which bring their labels.
    budget : float, PureDP, ApproxDP or ZCDP
        What the histogram costs; it must be given. A number is the epsilon of pure differential privacy.
    ledger : Ledger, batch of one, or None
        Charged before a score is computed.
    n_bins : int, default 20
        Number of bins of equal width between the probabilities 0 and 1: an even number from 2 to 1000. It is public, so
        choose it without looking at the rows.
    level : float, default 0.95
        Confidence level of each interval, strictly between 0 and 1.
    neighbours : {"replace-one", "add-or-remove-one"}, default "replace-one"
        Which data sets the guarantee calls neighbours. With "add-or-remove-one" the number of rows is private.
    max_rows_per_person : int, default 1
        A public cap on the rows of one person. If the model's schema names a column of persons, that many rows of each
        person are kept, drawn at random, as in `fit`. Otherwise the cap is an assumption.
    random_state : int or None
        For tests only: a seed makes the noise reproducible and the guarantee void.

    Returns
    -------
    Evaluation
        Rates with intervals, and the plan that the noise was drawn by.

    Raises
    ------
    ParameterError, InputError
        If an argument or the rows cannot be used. Nothing was charged.
    BudgetExceeded
        If the ledger has too little left. Nothing was charged, and no score was computed.

    Notes
    -----
    Guarantee: the histogram, and with it everything in the `Evaluation`, is differentially private at the budget for the
    stated neighbour relation. Proof: confide/privacy/proofs/counts.md.

    Examples
    --------
    >>> import confide
    >>> adult = confide.datasets.load_adult()
    >>> model = confide.LogisticRegression(1.0, schema=adult.schema).fit(adult.X_train, adult.y_train)
    >>> bool(confide.evaluate(model, adult.X_test, adult.y_test, budget=0.5).accuracy.low > 0.8)
    True
    """
    _check_model(model)
    if budget is None:
        raise ParameterError(
            "evaluate releases noisy counts of these rows, so give their price: budget=0.5, or budget=confide.ApproxDP(0.5, "
            "1e-6), and ledger= to charge it. Nothing was charged."
        )
    allowed, relation = as_budget(budget), Neighbours.parse(neighbours)
    _check_bins(n_bins)
    checked_level(level)
    charge = Charge(parameters.checked_ledger(ledger), parameters.checked_seed(random_state), "evaluate")
    persons = parameters.checked_rows_per_person(max_rows_per_person)
    known, edges = released_model(model), _edges(model, int(n_bins))
    plan = NoisyCounts().plan(2 * int(n_bins), allowed, relation, persons)
    void = void_because(allowed, charge.seed, "the counts may reveal any row")
    shown = ShownClass.of(known)
    outcome, has_probabilities = str(shown), hasattr(model, "predict_proba")
    # Rows beyond a person's cap are dropped, so the number of rows kept would reveal how many persons there are.
    names_persons = known.schema is not None and known.schema.person is not None
    given = rows_given(X, y)
    _refuse_unscorable(given, known)
    before_charge([plan.lattice])
    # Rows and labels are checked before the charge, and scored after it.
    with given.checked([_specification(model, known, rows_per_person(persons, charge.seed))]) as (rows,):
        counts = charge_and_release(
            lambda entropy: _counts(plan, known, rows, edges, entropy), plan.event, relation, charge
        ).reshape(2, int(n_bins))
    if shown.position == 0:
        counts = counts[::-1, ::-1].copy()
    n_rows = rows.n_rows if relation is Neighbours.REPLACE_ONE and not names_persons else None
    if n_rows is not None:
        # The number of rows is public, so the error that the noise made in the total is taken evenly from all cells.
        counts = counts + (n_rows - counts.sum()) / counts.size
    return Evaluation(counts, plan, float(level), outcome, n_rows, has_probabilities, void)


def plan_of_evaluation(
    budget: Budget, *, n_bins: int = USUAL_BINS, neighbours: str = "replace-one", max_rows_per_person: int = 1
) -> CountsPlan:
    """The plan that `evaluate` makes of the same arguments, from public facts alone."""
    _check_bins(n_bins)
    persons = parameters.checked_rows_per_person(max_rows_per_person)
    return NoisyCounts().plan(2 * n_bins, budget, Neighbours.parse(neighbours), persons)


def expected_of(plan: CountsPlan, rows: Any, level: float = 0.95) -> str:
    """How precise the rates of opened rows will be, in sentences. The rows are counted only where their number is public."""
    is_public = plan.neighbours is Neighbours.REPLACE_ONE and (rows.schema is None or rows.schema.person is None)
    return expected_precision(plan, rows.count() if is_public else None, checked_level(level))


def _check_bins(n_bins: Any) -> None:
    whole = isinstance(n_bins, (int, np.integer)) and not isinstance(n_bins, bool)
    if not whole or not _LEAST_BINS <= n_bins <= _MOST_BINS or n_bins % 2:
        raise ParameterError(f"n_bins must be an even whole number from {_LEAST_BINS} to {_MOST_BINS}.")


def check_rows_to_score(X: Any, schema: Schema, *, max_rows_per_person: int = 1) -> None:
    """Refuse rows that `evaluate` would refuse, before there is a model. Nothing is released.

    Parameters
    ----------
    X : rows from `open_rows`
    schema : Schema
        That of the model, with a target of labels.
    max_rows_per_person : int, default 1

    Raises
    ------
    ParameterError, InputError, FileError
        If the rows cannot be used. The message shows no value from them.
    """
    encoder = Encoder(schema, of_part=True)
    specification = RowSpecification(
        columns_of=None,
        is_fit=False,
        encoder=encoder,
        target=Classes.declared(None, schema),
        row_bound=encoder.row_bound,
        rows_per_person=rows_per_person(parameters.checked_rows_per_person(max_rows_per_person), None),
        fourier_map=lambda _: None,
        accepts_sparse=False,
    )
    with rows_given(X, None).checked([specification]):
        pass


def _check_model(model: Any) -> None:
    if not isinstance(model, LinearClassifier) or not hasattr(model, "coef_"):
        raise ParameterError("evaluate needs a classifier of confide, such as LogisticRegression, that is fitted or loaded.")
    if len(model.classes_) != 2:
        raise ParameterError(f"evaluate needs a model of two classes; this one has {len(model.classes_)}.")


def _edges(model: LinearClassifier, n_bins: int) -> Array:
    """The scores at which one bin ends and the next begins. One edge is 0, where predictions change."""
    edges = model._scores_at(np.arange(1, n_bins) / n_bins)
    # The middle edge is 0 up to rounding. It is set to 0 exactly, so that bins agree with predictions.
    edges[n_bins // 2 - 1] = 0.0
    return edges


def _refuse_unscorable(given: GivenRows, known: ReleasedModel) -> None:
    if not given.lies_here:
        raise ParameterError(
            "evaluate computes scores in this process and cannot use rows that lie on a cluster or at other parties. Give "
            "rows in memory, or files opened without a client."
        )
    if not given.is_described_by(known.schema):
        raise ParameterError(
            "the rows were opened with another schema than the model was fitted with. Open them with the schema that the "
            "model was fitted with, which also says how labels are read."
        )


def _specification(model: LinearClassifier, known: ReleasedModel, persons: RowsPerPerson) -> RowSpecification:
    """The requirements on rows that the model is to score."""
    return RowSpecification(
        columns_of=model,
        is_fit=False,
        # A fit refuses a schema's column that no row uses, because its weight would be noise alone. Scoring does not.
        encoder=None if known.encoder is None else replace(known.encoder, of_part=True),
        target=classes_of(model),
        row_bound=known.scoring.row_bound,
        rows_per_person=persons,
        fourier_map=lambda _: known.fourier,
        accepts_sparse=model._accepts_sparse,
    )


def _counts(plan: CountsPlan, known: ReleasedModel, rows: CheckedRows, edges: Array, entropy: Entropy) -> Array:
    """The noisy histogram: negative rows by bin, then positive ones."""
    n_bins = edges.size + 1
    cells = [
        # A score that equals an edge belongs to the bin below it, because a score of 0 predicts the first class.
        np.searchsorted(edges, known.scoring.scores_alone(memory.blocks), side="left") + n_bins * (memory.labels > 0)
        for memory in rows.source.in_memory("scoring")
    ]
    return NoisyCounts().release(plan, np.concatenate(cells), entropy)
