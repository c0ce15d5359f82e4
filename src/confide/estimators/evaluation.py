"""How good released models are on private rows, from one release of noisy counts.

The ledger is charged before any score is computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np

from confide.accounting.ledger import Batch, Ledger
from confide.array_types import Array
from confide.data.arrays import CheckedSource
from confide.errors import ParameterError, as_float, checked_flag, is_whole, wording
from confide.estimators.linear_classifier import LinearClassifier, classes_of
from confide.estimators.linear_model import PrivateLinearModel, checksum_of_model, released_model
from confide.estimators.regression import LinearRegressor
from confide.evaluations.class_rates import ClassEvaluation, usual_clip
from confide.evaluations.documents import REVEALED, rated, result_of
from confide.evaluations.model_comparison import ModelComparison
from confide.evaluations.number_errors import NumberEvaluation
from confide.evaluations.result import NOT_LISTED, Groups, expected_of_tables
from confide.evaluations.tables import (
    ClassPairTables,
    ClassTables,
    Layout,
    NumberPairTables,
    NumberTables,
    RowSums,
    Scorer,
    ScoreTable,
    largest_difference_of_losses,
    largest_difference_of_numbers,
    sizes_of,
)
from confide.features.columns import CategoryColumn
from confide.features.encoder import Encoder
from confide.features.forms import RowMap
from confide.features.schema import Schema
from confide.features.table import RowsPerPerson
from confide.inference.forecast import expected_precision, refuse_hidden
from confide.inference.intervals import checked_level
from confide.inference.rates import Evaluation
from confide.intake.rows import GivenRows, checked_input
from confide.intake.specification import RowSpecification
from confide.intake.targets import Classes
from confide.known_words import suggestion
from confide.models.model import ShownClass, predicted_number
from confide.parameters import checked
from confide.privacy.budgets import Budget, Neighbours
from confide.privacy.noise import Entropy
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.tables import Counts, ReleasedTables, Tables, rows_of
from confide.training.charge import OwnRelease, keeps_released, rows_per_person

# What an evaluation decides before a row is used: which models, which groups, which tables, at what noise.

LEAST_BINS, MOST_BINS = 2, 1000
USUAL_BINS, USUAL_BINS_OF_TABLES = 20, 10
_MOST_CELLS = 1_000_000
"""The largest number of cells of all tables together. More would be a mistake, and take the memory of a machine."""


@dataclass(frozen=True, slots=True, eq=False)
class PlannedEvaluation:
    """Everything that is decided from public facts.

    Attributes
    ----------
    models : the model, or both models of a comparison
    plan : what is charged, and the noise
    layout : the tables
    n_bins : bins of the probability of two classes, or of calibration
    groups : the groups
    scorers : how each model scores rows
    """

    models: tuple[PrivateLinearModel, ...]
    plan: SumPlan[Any]
    layout: Layout | ScoreTable
    n_bins: int
    groups: Groups
    scorers: tuple[Scorer, ...]

    @property
    def schema(self) -> Schema | None:
        """The schema by which rows are to be opened: that of the model, with the column of groups if it lacks that."""
        encoder = self.scorers[0].read_by
        return None if encoder is None else encoder.schema

    @property
    def n_cells(self) -> int:
        """How many counts are added up to the number of all rows."""
        return sizes_of(self.layout)[0]

    @property
    def reads_twice(self) -> bool:
        """Whether the two models read rows in different ways, so that each reads them by itself."""
        return any(_reading(scorer) != _reading(self.scorers[0]) for scorer in self.scorers)


def planned_evaluation(
    model: Any,
    budget: Budget,
    *,
    n_bins: int | None = None,
    neighbours: Neighbours = Neighbours.REPLACE_ONE,
    rows_per_person: int = 1,
    groups: Any = None,
    other: Any = None,
    clip: float | None = None,
) -> PlannedEvaluation:
    """The plan of `evaluate` for these arguments, from public facts alone.

    Raises
    ------
    ParameterError
        If the arguments cannot be used.
    """
    models = (_checked_model(model),) if other is None else _checked_pair(model, other)
    checked("max_rows_per_person", rows_per_person)
    chosen, column = _groups(models[0], groups)
    limit = _checked_clip(models[0], clip)
    scorers = tuple(_scorer(model, column, len(chosen.names)) for model in models)
    query: Counts | Tables
    if scorers[0].n_classes == 2 and other is None and groups is None and clip is None:
        bins = checked_bins(USUAL_BINS if n_bins is None else n_bins)
        layout: Layout | ScoreTable = ScoreTable(_edges(model, bins), ShownClass.of(released_model(model)).position == 0)
        query = Counts(2 * bins, neighbours, rows_per_person)
    else:
        bins = _bins_of_tables(n_bins, is_pair=other is not None, has_groups=groups is not None)
        layout = _layout(models, scorers, bins, len(chosen.names), limit)
        query = Tables(sizes_of(layout), 0, neighbours, rows_per_person)
    refuse_many_cells(sizes_of(layout), "take fewer bins or groups")
    return PlannedEvaluation(models, SumPlan.of(query, budget), layout, bins, chosen, scorers)


def refuse_many_cells(sizes: Sequence[int], advice: str) -> None:
    """Refuse tables of so many cells that nobody means them: they would take the memory of a machine."""
    if sum(sizes) > _MOST_CELLS:
        raise ParameterError(f"the tables would have {sum(sizes):,} cells, more than {_MOST_CELLS:,}; {advice}.")


def _reading(scorer: Scorer) -> tuple[Encoder | None, RowMap | None, int]:
    """What decides how a model reads rows: encoder, map and number of columns."""
    return scorer.read_by, scorer.row_map, int(scorer.scoring.coef.shape[1])


def group_column(text: str | None) -> str | CategoryColumn | None:
    """The parameter `groups` from a text: the name of a column, or NAME=LEVEL,LEVEL for one that the model does not use."""
    name, sign, levels = (text or "").partition("=")
    return CategoryColumn(name, tuple(level.strip() for level in levels.split(","))) if sign else text


def specifications(planned: PlannedEvaluation, persons: RowsPerPerson) -> list[RowSpecification]:
    """The requirements on rows: one, or one for each model where two models read rows in different ways."""
    # The same rows of a person are drawn each time that rows are read.
    drawn = replace(persons, permutation=cache(persons.permutation))
    pairs = list(zip(planned.models, planned.scorers, strict=True))
    return [specification_of(model, scorer, drawn) for model, scorer in (pairs if planned.reads_twice else pairs[:1])]


def specification_of(model: PrivateLinearModel, scorer: Scorer, persons: RowsPerPerson) -> RowSpecification:
    """The requirements on rows that a model is to score."""
    known = released_model(model)
    # Where rows are read with more columns than the model has, its own part is taken, and mapped, when they are scored.
    wider = scorer.read_by if scorer.reads_more else None
    # Predictions are of targets as they are: a fit shifts them, or divides their exposures.
    target = classes_of(model) if isinstance(model, LinearClassifier) else model._target(known.encoder)
    if not isinstance(target, Classes):
        target = replace(target, shift=0.0, unit=1.0)
    return RowSpecification(
        columns_of=model, encoder=scorer.read_by, target=target, rows_per_person=persons,
        row_bound=known.scoring.row_bound if wider is None else wider.row_bound,
        fourier_map=lambda _: known.fourier if wider is None else None,
        accepts_sparse=wider is None and model._accepts_sparse,
    )  # fmt: skip


def checked_bins(n_bins: Any) -> int:
    """The number of bins of the histogram, or a refusal."""
    if not is_whole(n_bins) or not LEAST_BINS <= n_bins <= MOST_BINS or n_bins % 2:
        raise ParameterError(f"n_bins must be an even whole number from {LEAST_BINS} to {MOST_BINS}.")
    return int(n_bins)


def _bins_of_tables(n_bins: Any, *, is_pair: bool, has_groups: bool) -> int:
    if is_pair:
        if n_bins is not None:
            raise ParameterError("a comparison of two models has no bins; leave n_bins out.")
        return 0
    if n_bins is None:
        return 0 if has_groups else USUAL_BINS_OF_TABLES
    if not is_whole(n_bins) or not (n_bins == 0 or LEAST_BINS <= n_bins <= MOST_BINS):
        raise ParameterError(f"n_bins must be a whole number from {LEAST_BINS} to {MOST_BINS}, or 0 for no calibration.")
    return int(n_bins)


def _checked_model(model: Any) -> PrivateLinearModel:
    if not isinstance(model, (LinearClassifier, LinearRegressor)) or not hasattr(model, "coef_"):
        raise ParameterError("evaluate needs a model of confide, such as LogisticRegression or Ridge, fitted or loaded.")
    known = released_model(model)
    n_scores = len(known.domain) if len(known.domain) > 2 else 1
    with suppress(TypeError, ValueError):  # text, or another number of rows
        weights = np.column_stack([known.scoring.coef, known.scoring.intercept])
        if weights.shape == (n_scores, len(known.coefficient_names) + 1) and np.isfinite(weights).all():
            return model
    raise ParameterError("coef_, intercept_ or classes_ of the model were changed, and fit each other no more. Fit it anew.")


def _checked_pair(model: Any, other: Any) -> tuple[PrivateLinearModel, ...]:
    first, second = _checked_model(model), _checked_model(other)
    if isinstance(first, LinearClassifier) != isinstance(second, LinearClassifier):
        raise ParameterError("a comparison needs two classifiers or two regressors; model and other are one of each.")
    if isinstance(first, LinearClassifier) and isinstance(second, LinearClassifier):
        if first.classes_.tolist() != second.classes_.tolist():
            raise ParameterError("model and other must have the same classes, or their rates cannot be compared.")
    elif isinstance(first, LinearRegressor) and isinstance(second, LinearRegressor):
        ranges = [model._target(model._encoder) for model in (first, second)]
        if (ranges[0].low, ranges[0].high) != (ranges[1].low, ranges[1].high) or first._has_counts != second._has_counts:
            raise ParameterError("model and other must clip targets to the same range, or their errors cannot be compared.")
    schemas = [released_model(model).schema for model in (first, second)]
    people = [None if schema is None else (schema.person, schema.cohort, schema.target) for schema in schemas]
    if people[0] != people[1]:
        raise ParameterError("model and other must have schemas with the same target, column of persons and cohort.")
    return first, second


def _groups(model: PrivateLinearModel, groups: Any) -> tuple[Groups, CategoryColumn | None]:
    """The groups, and the column of categories whose levels they are."""
    if groups is None:
        return Groups(), None
    schema = released_model(model).schema
    if schema is None:
        raise ParameterError("groups needs a model that was fitted with a schema, which declares the column's levels.")
    columns = {column.name: column for column in schema.columns}
    column = columns.get(groups) if isinstance(groups, str) else groups
    if isinstance(groups, CategoryColumn) and columns.get(groups.name, groups) != groups:
        raise ParameterError("the model's schema describes this column in another way; give groups its name alone.")
    if not isinstance(column, CategoryColumn):
        near = suggestion(groups, [name for name, column in columns.items() if not column.is_number])
        raise ParameterError(wording("no column of groups", near=near))
    if column.name in (schema.choosing, None if schema.target is None else schema.target.column):
        raise ParameterError("groups must not be the target or the column of persons or cohorts.")
    return Groups(column.name, levels_shown(column, Groups().names)), column


def levels_shown(column: CategoryColumn, taken: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The levels of a column, and what rows without one are called, which no level may be called, nor one of `taken`."""
    levels = [str(category) for category in column.categories]
    others = ["(other)"] * (column.other is True) + ["(missing)"] * bool(column.missing)
    others += [NOT_LISTED] * (column.other is False)
    if both := [level for level in levels if level in {*others, NOT_LISTED, *taken}]:
        raise ParameterError(wording("level with a reserved name", name=column.name, level=both[0]))
    return (*levels, *others)


def _scorer(model: PrivateLinearModel, column: CategoryColumn | None, n_groups: int) -> Scorer:
    known = released_model(model)
    # A fit refuses a schema's column that no row uses, because its weight would be noise alone. Scoring does not.
    read_by = encoder = None if known.encoder is None else replace(known.encoder, of_part=True)
    if column is not None and encoder is not None and column.name not in encoder.schema.column_names:
        own = encoder.schema
        read_by = Encoder(replace(own, columns=(*own.columns, column), random_features=None), of_part=True)
    of_groups: Any = {"groups": None if column is None else column.name, "n_groups": n_groups}
    return Scorer(known.scoring, model._link, len(known.domain), encoder, read_by, known.fourier, **of_groups)


def _checked_clip(model: PrivateLinearModel, clip: Any) -> float | None:
    if clip is None:
        return None
    if not 0.0 < (limit := as_float(clip)) < math.inf:
        raise ParameterError("clip must be a positive number: the largest loss or absolute error of a row that counts.")
    if isinstance(model, LinearClassifier) and not model._link.has_probabilities:
        raise ParameterError("this model gives no probabilities, so it has no log loss to be clipped; leave clip out.")
    return limit


def _layout(
    models: tuple[PrivateLinearModel, ...], scorers: tuple[Scorer, ...], n_bins: int, n_groups: int, clip: float | None
) -> Layout:
    first = models[0]
    if isinstance(first, LinearRegressor):
        limits = first._target(first._encoder)
        width = limits.high - limits.low
        largest = width if clip is None else min(clip, width)
        if len(models) == 1:
            return NumberTables(n_groups, n_bins, limits.low, limits.high, largest)
        apart = largest_difference_of_numbers(scorers[0], scorers[1], largest)
        return NumberPairTables(n_groups, limits.low, limits.high, largest, apart)
    n_classes = scorers[0].n_classes
    has_chances = all(scorer.link.has_probabilities for scorer in scorers)
    if clip is None and has_chances and (n_classes > 2 or len(models) == 2):
        clip = usual_clip(n_classes)
    if len(models) == 1:
        return ClassTables(n_groups, n_classes, n_bins if has_chances else 0, clip)
    if not has_chances or clip is None:
        return ClassPairTables(n_groups, n_classes, None)
    return ClassPairTables(n_groups, n_classes, clip, largest_difference_of_losses(scorers[0], scorers[1], clip))


class _Options(TypedDict, total=False):
    """The options of every evaluation, for type checkers, who learn from the model which kind it is."""

    exposure: object
    budget: float | Budget | None
    ledger: Ledger | Batch | None
    n_bins: int | None
    groups: str | CategoryColumn | None
    clip: float | None
    level: float
    neighbours: Literal["replace-one", "add-or-remove-one"] | Neighbours
    max_rows_per_person: int
    allow_hidden: bool
    random_state: int | None


@overload
def evaluate(
    model: LinearRegressor, X: Any, y: Any = None, *, other: None = None, **options: Unpack[_Options]
) -> NumberEvaluation: ...
@overload
def evaluate(
    model: LinearClassifier, X: Any, y: Any = None, *, other: None = None, **options: Unpack[_Options]
) -> Evaluation | ClassEvaluation: ...
@overload
def evaluate(
    model: PrivateLinearModel, X: Any, y: Any = None, *, other: PrivateLinearModel, **options: Unpack[_Options]
) -> ModelComparison: ...
@keeps_released
def evaluate(
    model: PrivateLinearModel,
    X: Any,
    y: Any = None,
    *,
    exposure: Any = None,
    budget: float | Budget | None = None,
    ledger: Ledger | Batch | None = None,
    n_bins: int | None = None,
    groups: str | CategoryColumn | None = None,
    other: PrivateLinearModel | None = None,
    clip: float | None = None,
    level: float = 0.95,
    neighbours: Literal["replace-one", "add-or-remove-one"] | Neighbours = "replace-one",
    max_rows_per_person: int = 1,
    allow_hidden: bool = False,
    random_state: int | None = None,
) -> Evaluation | ClassEvaluation | NumberEvaluation | ModelComparison:
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
    exposure : (n,) numbers above 0, or None
        Of counts, for a model with `exposure_range`; one with a schema reads the column that its target names.
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
    >>> model = confide.LogisticRegression(1.0, schema=adult.schema)
    >>> model = model.fit(adult.X_train, adult.y_train)
    >>> found = confide.evaluate(model, adult.X_test, adult.y_test, budget=0.5)
    >>> bool(found.accuracy.low > 0.8)
    True
    >>> found = confide.evaluate(model, adult.X_test, adult.y_test, budget=0.5, groups="sex")
    >>> bool(found.difference("accuracy", "Female", "Male").low > 0.0)
    True
    """
    if budget is None:
        raise ParameterError(wording("evaluation needs a price"))
    level = checked_level(level)
    allows_hidden = checked_flag("allow_hidden", allow_hidden)
    asked = OwnRelease.of("evaluate", budget, neighbours, max_rows_per_person, ledger, random_state)
    whom: Any = {"neighbours": asked.neighbours, "rows_per_person": asked.most_rows}
    planned = planned_evaluation(model, asked.budget, n_bins=n_bins, groups=groups, other=other, clip=clip, **whom)
    plan, schema = planned.plan, released_model(model).schema
    words = said_by_model(model) | {"layout": planned.layout, "plan": plan, "level": level, "groups": planned.groups}
    checksums, identity = tuple(map(checksum_of_model, planned.models)), getattr(asked.charge.ledger, "identity", None)
    given = checked_input(X, y, estimator=planned, exposure=exposure)
    _refuse_unscorable(given, planned)
    # Rows and labels are checked before the charge, and scored after it.
    with given.checked(specifications(planned, asked.persons)) as rows:
        n_rows = asked.public_number(rows[0].n_rows, schema)
        if not allows_hidden:
            refuse_hidden(plan, planned.n_cells, n_rows)
        whom = (asked.budget, asked.neighbours, asked.most_rows, n_rows)
        asked = asked.decided_by(plan.event, checksums, planned.n_bins, planned.groups, clip, *whom, schema=schema)
        words |= {"model_checksums": checksums, "charged_to": identity, "interrupted": asked.interrupted, "n_rows": n_rows}
        result, noise = result_of(words | {"void": asked.void(REVEALED)})
        released = asked.charged(partial(_released, planned, [row.source for row in rows]), plan.event, [plan.lattice])
    return rated(result, released, planned.layout.shapes, noise)


def _released(planned: PlannedEvaluation, sources: Sequence[CheckedSource], entropy: Entropy) -> Sequence[Array]:
    """Score the rows, count them in tables, and release the tables."""
    sums, plan = RowSums(planned.layout, planned.scorers).of_sources(sources), planned.plan
    if isinstance(planned.layout, ScoreTable):
        # The cells of the negative class stand first.
        counts: Array = plan.release(sums[0], entropy)
        return (counts[::-1].copy() if planned.layout.shows_first else counts,)
    released: ReleasedTables = plan.release((list(map(rows_of, sums)), np.zeros(0, dtype=np.int64)), entropy)
    return released.counts


def said_by_model(model: PrivateLinearModel) -> dict[str, Any]:
    """What an evaluation says of the target of its model. What could fail is done before the charge."""
    known = released_model(model)
    outcome = str(ShownClass.of(known)) if known.domain else predicted_number(known, as_rate=False)
    words = {"has_probabilities": hasattr(model, "predict_proba"), "classes": tuple(map(str, known.domain))}
    if isinstance(model, LinearRegressor):
        limits = model._target(known.encoder)
        words |= {"target": outcome, "low": limits.low, "high": limits.high}
    return {"target": "", "outcome": outcome} | words


def plan_of_evaluation(
    budget: Budget, *, n_bins: int = USUAL_BINS, neighbours: str = "replace-one", max_rows_per_person: int = 1
) -> SumPlan[Counts]:
    """The plan that `evaluate` makes for a model of two classes, from public facts alone."""
    persons = checked("max_rows_per_person", max_rows_per_person)
    return SumPlan.of(Counts(2 * checked_bins(n_bins), Neighbours.parse(neighbours), persons), budget)


def expected_of(plan: SumPlan[Counts], rows: Any, level: float = 0.95, *, otherwise: str | None = None) -> str:
    """How precise the rates of opened rows will be, in sentences. The rows are counted only where their number is public.

    Raises
    ------
    ParameterError
        If the noise will hide every rate and `otherwise` says what else can be done.
    """
    n_rows = _public_number(plan, rows)
    if otherwise is not None:
        refuse_hidden(plan, plan.query.n_cells, n_rows, otherwise)
    return expected_precision(plan, n_rows, checked_level(level))


def expected_of_planned(planned: PlannedEvaluation, rows: Any, level: float = 0.95) -> str:
    """The same for any evaluation. Nothing is refused."""
    if isinstance(planned.layout, ScoreTable):
        return expected_of(planned.plan, rows, level)
    n_rows = _public_number(planned.plan, rows)
    return expected_of_tables(planned.plan, planned.layout, planned.groups, n_rows, checked_level(level))


def _public_number(plan: SumPlan[Any], rows: Any) -> int | None:
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
    persons = rows_per_person(checked("max_rows_per_person", max_rows_per_person), None)
    target, row_bound = Classes.declared(None, schema), encoder.row_bound
    specification = RowSpecification(encoder=encoder, target=target, row_bound=row_bound, rows_per_person=persons)
    with checked_input(X, None).checked([specification]):
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
        raise ParameterError("evaluate cannot use rows that lie with other parties: let each evaluate the model on its own.")
    if planned.reads_twice and not given.lies_here:
        raise ParameterError("models that encode rows in different ways need rows in memory, or files without a client.")
    reads = [scorer.read_by for scorer in planned.scorers]
    if not all(given.is_described_by(None if read is None else read.schema) for read in reads):
        raise ParameterError(wording("rows of another schema than the model's"))
