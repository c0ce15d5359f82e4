"""How good released models are on private rows, from one release of noisy counts.

The ledger is charged before any score is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from confide.accounting.ledger import Batch, Ledger
from confide.data.checked_source import CheckedSource
from confide.errors import ParameterError, checked_flag
from confide.estimators.linear_model import PrivateLinearModel, checksum_of_model, released_model
from confide.estimators.planned_evaluation import (
    USUAL_BINS,
    PlannedEvaluation,
    checked_bins,
    planned_evaluation,
    specifications,
)
from confide.evaluations.class_rates import ClassEvaluation
from confide.evaluations.expected import expected_of_tables
from confide.evaluations.layouts import ClassTables, NumberTables
from confide.evaluations.model_comparison import ModelComparison
from confide.evaluations.number_errors import NumberEvaluation
from confide.evaluations.result import Groups
from confide.evaluations.row_sums import RowSums, ScoreHistogram
from confide.features.columns import CategoryColumn
from confide.features.encoder import Encoder
from confide.features.schema import Schema
from confide.inference.expected_precision import expected_precision, refuse_hidden
from confide.inference.intervals import checked_level
from confide.inference.noisy_table import NoisyTable
from confide.inference.rates import Evaluation
from confide.intake import parameters
from confide.intake.given_rows import GivenRows, rows_given
from confide.intake.specification import RowSpecification
from confide.intake.targets import Classes
from confide.privacy.budgets import Budget, Neighbours, as_budget
from confide.privacy.counts import CountsPlan, NoisyCounts
from confide.privacy.noise import Entropy
from confide.privacy.tables import NoisyTables, TablesPlan, rows_of
from confide.released_models.shown_class import ShownClass, predicted_number
from confide.training.assumptions import attempts_sentence, void_because
from confide.training.charge import Charge, before_charge, charge_and_release, rows_per_person
from confide.types import Array

Evaluated: TypeAlias = Evaluation | ClassEvaluation | NumberEvaluation | ModelComparison


def evaluate(
    model: PrivateLinearModel,
    X: Any,
    y: Any = None,
    *,
    budget: float | Budget | None = None,
    ledger: Ledger | Batch | None = None,
    n_bins: int | None = None,
    groups: str | CategoryColumn | None = None,
    other: PrivateLinearModel | None = None,
    clip: float | None = None,
    level: float = 0.95,
    neighbours: str | Neighbours = "replace-one",
    max_rows_per_person: int = 1,
    allow_hidden: bool = False,
    random_state: int | None = None,
) -> Any:
    """Estimate how good a fitted model is on private rows, or which of two models is better, with intervals.

    Everything comes from one release of noisy counts, and one charge: for two classes a histogram of scores, otherwise a few
    tables. Each row adds one to each table, so groups and classes cost nothing.

    Parameters
    ----------
    model : a classifier or regressor of confide
        Fitted or loaded.
    X : array, SciPy sparse matrix or frame (n, d), or rows from `open_rows`
        Rows as in `fit`. The model must not have learned from them: otherwise the rates are too good, and the privacy costs
        of both releases add up. Rows from `open_rows` must be opened with the model's schema.
    y : (n,) labels or numbers, or None
        None for rows from `open_rows`, which bring their labels or numbers.
    budget : float, PureDP, ApproxDP or ZCDP
        What the counts cost; it must be given. A number is the epsilon of pure differential privacy.
    ledger : Ledger, batch of one, or None
        Charged before a score is computed.
    n_bins : int or None
        Number of bins of equal width, from 2 to 1000. For two classes they are those of the probability, their number is
        even, and None means 20. Otherwise they are those of calibration: None means 10, or none with `groups`; 0 means no
        calibration, with less noise on the rates. It is public, so choose it without looking at the rows.
    groups : str, CategoryColumn or None
        A column of categories. The rates of the rows of each of its levels are released too, in the same charge. It is the
        name of a column of the model's schema, or a `CategoryColumn` that describes one that the model does not use.
    other : a fitted model of the same kind, or None
        If given, the differences of the rates of `model` and of this model are released. Both score the same rows, so a
        difference is more precise than two evaluations.
    clip : float or None
        The largest log loss, or absolute error in the unit of the target, that a row counts with. A smaller clip means less
        noise, and more rows whose loss counts as the clip; choose it without looking at the rows. None means the width of
        the target's range, or twice the logarithm of the number of classes.
    level : float, default 0.95
        Confidence level of each interval, strictly between 0 and 1.
    neighbours : {"replace-one", "add-or-remove-one"}, default "replace-one"
        Which data sets the guarantee calls neighbours. With "add-or-remove-one" the number of rows is private.
    max_rows_per_person : int, default 1
        A public cap on the rows of one person. If the model's schema names a column of persons, that many rows of each
        person are kept, drawn at random, as in `fit`. Otherwise the cap is an assumption.
    allow_hidden : bool, default False
        Whether to charge even if the number of rows is public and so small that the noise will hide every rate.
    random_state : int or None
        For tests only: a seed makes the noise reproducible and the guarantee void.

    Returns
    -------
    Evaluation, ClassEvaluation, NumberEvaluation or ModelComparison
        Rates with intervals, and the plan that the noise was drawn by. Two classes give an `Evaluation`, unless `groups` or
        `clip` is given; other classifiers a `ClassEvaluation`, regressors a `NumberEvaluation`, and two models a
        `ModelComparison`.

    Raises
    ------
    ParameterError, InputError
        If an argument or the rows cannot be used, or the noise would hide every rate. Nothing was charged.
    BudgetExceeded
        If the ledger has too little left. Nothing was charged, and no score was computed.

    Notes
    -----
    Intervals account for the noise, and for the rows being a sample of a population, drawn independently. Each holds by
    itself; the bands of curves hold as a whole.

    Guarantee: the counts, and with them everything that is returned, are differentially private at the budget for the
    stated neighbour relation. Proof: confide/privacy/proofs/evaluation.md, and for two classes counts.md beside it.

    Examples
    --------
    >>> import confide
    >>> adult = confide.datasets.load_adult()
    >>> model = confide.LogisticRegression(1.0, schema=adult.schema).fit(adult.X_train, adult.y_train)
    >>> bool(confide.evaluate(model, adult.X_test, adult.y_test, budget=0.5).accuracy.low > 0.8)
    True
    >>> found = confide.evaluate(model, adult.X_test, adult.y_test, budget=0.5, groups="sex")
    >>> bool(found.difference("accuracy", "Female", "Male").low > 0.0)
    True
    """
    if budget is None:
        raise ParameterError(
            "evaluate releases noisy counts of these rows, so give their price: budget=0.5, or budget=confide.ApproxDP(0.5, "
            "1e-6), and ledger= to charge it. Nothing was charged."
        )
    allowed, relation = as_budget(budget), Neighbours.parse(neighbours)
    checked_level(level)
    allows_hidden = checked_flag("allow_hidden", allow_hidden)
    charge = Charge(parameters.checked_ledger(ledger), parameters.checked_seed(random_state), "evaluate")
    persons = parameters.checked_rows_per_person(max_rows_per_person)
    planned = planned_evaluation(
        model, allowed, n_bins=n_bins, neighbours=relation, rows_per_person=persons, groups=groups, other=other, clip=clip
    )
    void = void_because(allowed, charge.seed, "the counts may reveal any row")
    prepared, known = _prepared(planned), released_model(model)
    checksums = tuple(map(checksum_of_model, planned.models))
    # Rows beyond a person's cap are dropped, so the number of rows kept would reveal how many persons there are.
    names_persons = known.schema is not None and known.schema.person is not None
    given = rows_given(X, y)
    _refuse_unscorable(given, planned)
    before_charge(charge, allowed, [planned.plan.lattice])
    # Rows and labels are checked before the charge, and scored after it.
    with given.checked(specifications(planned, rows_per_person(persons, charge.seed))) as rows:
        n_rows = rows[0].n_rows if relation is Neighbours.REPLACE_ONE and not names_persons else None
        if not allows_hidden:
            refuse_hidden(planned.plan, planned.n_cells, n_rows, planned.plan_at)
        deciding = (checksums, planned.n_bins, planned.groups, clip, allowed, relation, persons, n_rows)
        charge = charge.of_release(planned.plan.event, *deciding)
        interrupted = attempts_sentence(charge.attempt)
        release = partial(_released, prepared, [each.source for each in rows])
        released = charge_and_release(release, planned.plan.event, relation, charge)
    found = prepared.rated(released, _Facts(n_rows, float(level), void))
    identity = None if charge.ledger is None else charge.ledger.identity
    return replace(found, model_checksums=checksums, charged_to=identity, interrupted=interrupted)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What every evaluation says of itself: number of rows, level, and why it has no guarantee."""

    n_rows: int | None
    level: float
    void: str | None


@dataclass(frozen=True, slots=True)
class _PreparedHistogram:
    """Before the charge: how rows of two classes fall into bins, and what the rates will be called."""

    plan: CountsPlan
    sums: ScoreHistogram
    outcome: str
    is_turned: bool
    has_probabilities: bool

    def rated(self, released: Sequence[Array], facts: _Facts) -> Evaluation:
        """The rates, from the released counts."""
        counts = released[0].reshape(2, -1)
        if self.is_turned:
            counts = counts[::-1, ::-1].copy()
        if facts.n_rows is not None:
            # The number of rows is public, so the error that the noise made in the total is taken evenly from all cells.
            counts = counts + (facts.n_rows - counts.sum()) / counts.size
        return Evaluation(counts, self.plan, facts.level, self.outcome, facts.n_rows, self.has_probabilities, facts.void)


@dataclass(frozen=True, slots=True)
class _PreparedTables:
    """Before the charge: how rows fall into tables, and what the rates will be called."""

    plan: TablesPlan
    sums: RowSums
    groups: Groups
    classes: tuple[str, ...]
    target: str

    def rated(self, released: Sequence[Array], facts: _Facts) -> ClassEvaluation | NumberEvaluation | ModelComparison:
        """The rates, from the released tables."""
        layout, level, n_rows = self.sums.layout, facts.level, facts.n_rows
        noise = (self.plan.deviation, n_rows, level, self.plan.excess_kurtosis)
        pairs = zip(released, layout.shapes, strict=True)
        tables = tuple(NoisyTable.of(counts, shape, *noise) for counts, shape in pairs)
        common = (tables, self.plan, level, self.groups, n_rows, facts.void)
        if isinstance(layout, ClassTables):
            return ClassEvaluation(*common, layout, self.classes)
        if isinstance(layout, NumberTables):
            return NumberEvaluation(*common, layout, self.target)
        return ModelComparison(*common, layout, self.classes, self.target)


def _prepared(planned: PlannedEvaluation) -> _PreparedHistogram | _PreparedTables:
    """Everything that is known before the charge, so that nothing that could fail is left for afterwards."""
    model, known = planned.models[0], released_model(planned.models[0])
    if isinstance(planned.plan, TablesPlan) and planned.layout is not None:
        sums, target = RowSums(planned.layout, planned.scorers), "" if known.domain else predicted_number(known)
        return _PreparedTables(planned.plan, sums, planned.groups, tuple(map(str, known.domain)), target)
    if not isinstance(planned.plan, CountsPlan):
        raise ParameterError("an evaluation from tables needs their layout.")
    shown, histogram = ShownClass.of(known), ScoreHistogram(known.scoring, _edges(model, planned.n_bins))
    return _PreparedHistogram(planned.plan, histogram, str(shown), shown.position == 0, hasattr(model, "predict_proba"))


def _released(
    prepared: _PreparedHistogram | _PreparedTables, sources: Sequence[CheckedSource], entropy: Entropy
) -> Sequence[Array]:
    """Score the rows, count them, and release the counts."""
    if isinstance(prepared, _PreparedHistogram):
        return (NoisyCounts().release(prepared.plan, prepared.sums.of_sources(sources), entropy),)
    tables = prepared.sums.of_sources(sources)
    moments = np.zeros((0, 2), dtype=np.int64)
    return NoisyTables().release(prepared.plan, [rows_of(each) for each in tables], moments, entropy).counts


def plan_of_evaluation(
    budget: Budget, *, n_bins: int = USUAL_BINS, neighbours: str = "replace-one", max_rows_per_person: int = 1
) -> CountsPlan:
    """The plan that `evaluate` makes for a model of two classes, from public facts alone."""
    persons = parameters.checked_rows_per_person(max_rows_per_person)
    return NoisyCounts().plan(2 * checked_bins(n_bins), budget, Neighbours.parse(neighbours), persons)


def expected_of(plan: CountsPlan, rows: Any, level: float = 0.95, *, otherwise: str | None = None) -> str:
    """How precise the rates of opened rows will be, in sentences. The rows are counted only where their number is public.

    Raises
    ------
    ParameterError
        If the noise will hide every rate and `otherwise` says what else can be done.
    """
    n_rows = _public_number(plan, rows)
    if otherwise is not None:

        def plan_at(at: Budget) -> CountsPlan:
            return NoisyCounts().plan(plan.n_cells, at, plan.neighbours, plan.event.rows_per_person)

        refuse_hidden(plan, plan.n_cells, n_rows, plan_at, otherwise)
    return expected_precision(plan, n_rows, checked_level(level))


def expected_of_planned(planned: PlannedEvaluation, rows: Any, level: float = 0.95) -> str:
    """The same for any evaluation. Nothing is refused."""
    if isinstance(planned.plan, CountsPlan):
        return expected_of(planned.plan, rows, level)
    if planned.layout is None:
        return ""
    n_rows = _public_number(planned.plan, rows)
    return expected_of_tables(planned.plan, planned.layout, planned.groups, n_rows, checked_level(level))


def _public_number(plan: CountsPlan | TablesPlan, rows: Any) -> int | None:
    is_public = plan.neighbours is Neighbours.REPLACE_ONE and (rows.schema is None or rows.schema.person is None)
    return int(rows.count()) if is_public else None


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


def _edges(model: Any, n_bins: int) -> Array:
    """The scores at which one bin ends and the next begins. One edge is 0, where predictions change."""
    edges: Array = model._scores_at(np.arange(1, n_bins) / n_bins)
    # The middle edge is 0 up to rounding. It is set to 0 exactly, so that bins agree with predictions.
    edges[n_bins // 2 - 1] = 0.0
    return edges


def _refuse_unscorable(given: GivenRows, planned: PlannedEvaluation) -> None:
    """Refuse rows that no process scores, and rows that were opened with another schema."""
    if not given.scores_rows:
        raise ParameterError(
            "evaluate cannot use rows that lie with other parties, which send sums for a fit alone. Let each party evaluate "
            "the model on its own rows."
        )
    if planned.reads_twice and not given.lies_here:
        raise ParameterError(
            "the two models encode rows in different ways, and rows on a cluster can be read in one way alone. Give rows in "
            "memory, or files opened without a client."
        )
    reads = [each.read_by for each in planned.scorers] or [released_model(planned.models[0]).encoder]
    if not all(given.is_described_by(None if each is None else each.schema) for each in reads):
        raise ParameterError(
            "the rows were opened with another schema than the model was fitted with. Open them with the schema that the "
            "model was fitted with, which also says how labels are read; if `groups` describes a column that the model does "
            "not use, with that column as the last."
        )
