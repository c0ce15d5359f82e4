"""What an evaluation decides before a row is used: which models, which groups, which tables, at what noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from confide.errors import ParameterError
from confide.estimators.linear_classifier import LinearClassifier, classes_of
from confide.estimators.linear_model import PrivateLinearModel, released_model
from confide.estimators.linear_regressor import LinearRegressor
from confide.evaluations.class_rates import usual_clip
from confide.evaluations.differences import largest_difference_of_losses, largest_difference_of_numbers
from confide.evaluations.layouts import (
    ClassPairTables,
    ClassTables,
    Layout,
    NumberPairTables,
    NumberTables,
    sizes_of,
)
from confide.evaluations.result import NOT_LISTED, Groups
from confide.evaluations.scorers import Scorer
from confide.features.columns import CategoryColumn
from confide.features.encoder import Encoder
from confide.features.persons import RowsPerPerson
from confide.features.public_maps import RowMap
from confide.features.schema import Schema
from confide.intake import parameters
from confide.intake.specification import RowSpecification
from confide.known_words import suggestion
from confide.privacy.budgets import Budget, Neighbours
from confide.privacy.counts import CountsPlan, NoisyCounts
from confide.privacy.tables import NoisyTables, TablesPlan
from confide.released_models.model import ReleasedModel

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
    layout : the tables; None for the histogram of a classifier of two classes
    n_bins : bins of the histogram, or of calibration
    groups : the groups
    scorers : how each model scores rows; empty for the histogram
    plan_at : the plan at another budget
    """

    models: tuple[PrivateLinearModel, ...]
    plan: CountsPlan | TablesPlan
    layout: Layout | None
    n_bins: int
    groups: Groups
    scorers: tuple[Scorer, ...]
    plan_at: Callable[[Budget], CountsPlan | TablesPlan]

    @property
    def schema(self) -> Schema | None:
        """The schema by which rows are to be opened: that of the model, with the column of groups if it lacks that."""
        encoder = self.scorers[0].read_by if self.scorers else released_model(self.models[0]).encoder
        return None if encoder is None else encoder.schema

    @property
    def n_cells(self) -> int:
        """How many counts are added up to the number of all rows."""
        return self.plan.n_cells if isinstance(self.plan, CountsPlan) else self.plan.sizes[0]

    @property
    def reads_twice(self) -> bool:
        """Whether the two models read rows in different ways, so that each reads them by itself."""
        return any(_reading(each) != _reading(self.scorers[0]) for each in self.scorers)


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
    parameters.checked_rows_per_person(rows_per_person)
    chosen, column = _groups(models[0], groups)
    limit = _checked_clip(models[0], clip)
    if (
        isinstance(model, LinearClassifier)
        and len(model.classes_) == 2
        and other is None
        and groups is None
        and clip is None
    ):
        bins = checked_bins(USUAL_BINS if n_bins is None else n_bins)

        def counts_at(at: Budget) -> CountsPlan:
            return NoisyCounts().plan(2 * bins, at, neighbours, rows_per_person)

        return PlannedEvaluation(models, counts_at(budget), None, bins, chosen, (), counts_at)
    scorers = tuple(_scorer(each, column, len(chosen.names)) for each in models)
    bins = _bins_of_tables(n_bins, is_pair=other is not None, has_groups=groups is not None)
    layout = _layout(models, scorers, bins, len(chosen.names), limit)
    if sum(sizes_of(layout)) > _MOST_CELLS:
        raise ParameterError(f"the tables would have more than {_MOST_CELLS:,} cells; take fewer bins or groups.")

    def tables_at(at: Budget) -> TablesPlan:
        return NoisyTables().plan(sizes_of(layout), 0, at, neighbours, rows_per_person)

    return PlannedEvaluation(models, tables_at(budget), layout, bins, chosen, scorers, tables_at)


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
    if not planned.scorers:
        return [specification_of(planned.models[0], None, drawn)]
    pairs = list(zip(planned.models, planned.scorers, strict=True))
    return [specification_of(model, scorer, drawn) for model, scorer in (pairs if planned.reads_twice else pairs[:1])]


def specification_of(model: PrivateLinearModel, scorer: Scorer | None, persons: RowsPerPerson) -> RowSpecification:
    """The requirements on rows that a model is to score."""
    known = released_model(model)
    # Where rows are read with more columns than the model has, its own part is taken, and mapped, when they are scored.
    wider = scorer.read_by if scorer is not None and scorer.reads_more else None
    return RowSpecification(
        columns_of=model,
        is_fit=False,
        encoder=_encoder_for_scores(known) if wider is None else wider,
        target=_target_of(model),
        row_bound=known.scoring.row_bound if wider is None else wider.row_bound,
        rows_per_person=persons,
        fourier_map=lambda _: known.fourier if wider is None else None,
        accepts_sparse=wider is None and model._accepts_sparse,
    )


def _encoder_for_scores(known: ReleasedModel) -> Encoder | None:
    """The encoder of the model's schema, as it reads rows to be scored.

    A fit refuses a schema's column that no row uses, because its weight would be noise alone. Scoring does not.
    """
    return None if known.encoder is None else replace(known.encoder, of_part=True)


def _target_of(model: PrivateLinearModel) -> Any:
    """What is predicted, as predictions are: a fit subtracts a public number from targets, and adds it to the intercept."""
    if isinstance(model, LinearClassifier):
        return classes_of(model)
    target: Any = model._target(model._encoder)
    return replace(target, shift=0.0)


def checked_bins(n_bins: Any) -> int:
    """The number of bins of the histogram, or a refusal."""
    if not _is_whole(n_bins) or not LEAST_BINS <= n_bins <= MOST_BINS or n_bins % 2:
        raise ParameterError(f"n_bins must be an even whole number from {LEAST_BINS} to {MOST_BINS}.")
    return int(n_bins)


def _bins_of_tables(n_bins: Any, *, is_pair: bool, has_groups: bool) -> int:
    if is_pair:
        if n_bins is not None:
            raise ParameterError("a comparison of two models has no bins; leave n_bins out.")
        return 0
    if n_bins is None:
        return 0 if has_groups else USUAL_BINS_OF_TABLES
    if not _is_whole(n_bins) or not (n_bins == 0 or LEAST_BINS <= n_bins <= MOST_BINS):
        raise ParameterError(
            f"n_bins must be a whole number from {LEAST_BINS} to {MOST_BINS}, or 0 for no calibration, which has less noise."
        )
    return int(n_bins)


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _checked_model(model: Any) -> PrivateLinearModel:
    if not isinstance(model, (LinearClassifier, LinearRegressor)) or not hasattr(model, "coef_"):
        raise ParameterError(
            "evaluate needs a model of confide, such as LogisticRegression or Ridge, that is fitted or loaded."
        )
    return model


def _checked_pair(model: Any, other: Any) -> tuple[PrivateLinearModel, ...]:
    first, second = _checked_model(model), _checked_model(other)
    if isinstance(first, LinearClassifier) != isinstance(second, LinearClassifier):
        raise ParameterError("a comparison needs two classifiers or two regressors; model and other are one of each.")
    if isinstance(first, LinearClassifier) and isinstance(second, LinearClassifier):
        if first.classes_.tolist() != second.classes_.tolist():
            raise ParameterError("model and other must have the same classes, or their rates cannot be compared.")
    elif isinstance(first, LinearRegressor) and isinstance(second, LinearRegressor):
        ranges = [each._target_range(each._encoder) for each in (first, second)]
        if (ranges[0].low, ranges[0].high) != (ranges[1].low, ranges[1].high) or first._has_counts != second._has_counts:
            raise ParameterError("model and other must clip targets to the same range, or their errors cannot be compared.")
    schemas = [released_model(each).schema for each in (first, second)]
    people = [None if schema is None else (schema.person, schema.target) for schema in schemas]
    if people[0] != people[1]:
        raise ParameterError("model and other must have schemas with the same target and the same column of persons.")
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
        near = suggestion(groups, [name for name, each in columns.items() if isinstance(each, CategoryColumn)])
        raise ParameterError(
            'groups must be the name of a column of categories of the model\'s schema, such as "sex", or a CategoryColumn '
            f"for a column that the model does not use{near}."
        )
    taken = (schema.person, None if schema.target is None else schema.target.column)
    if column.name in taken:
        raise ParameterError("groups must not be the target or the column of persons.")
    return Groups(column.name, levels_shown(column, Groups().names)), column


def levels_shown(column: CategoryColumn, taken: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The levels of a column, and what rows without one are called, which no level may be called, nor one of `taken`."""
    levels = [str(category) for category in column.categories]
    others = ["(other)"] * (column.other is True) + ["(missing)"] * bool(column.missing)
    others += [NOT_LISTED] * (column.other is False)
    if found := [each for each in levels if each in {*others, NOT_LISTED, *taken}]:
        raise ParameterError(
            f'column "{column.name}" lists the category "{found[0]}", and so are other rows called here, such as those '
            f"without a listed category. Give it another name."
        )
    return (*levels, *others)


def _scorer(model: PrivateLinearModel, column: CategoryColumn | None, n_groups: int) -> Scorer:
    known = released_model(model)
    read_by = encoder = _encoder_for_scores(known)
    if column is not None and encoder is not None and column.name not in encoder.schema.column_names:
        own = encoder.schema
        read_by = Encoder(replace(own, columns=(*own.columns, column), random_features=None), of_part=True)
    return Scorer(
        scoring=known.scoring,
        link=model._link,
        n_classes=len(known.domain),
        encoder=encoder,
        read_by=read_by,
        row_map=known.fourier,
        groups=None if column is None else column.name,
        n_groups=n_groups,
    )


def _checked_clip(model: PrivateLinearModel, clip: Any) -> float | None:
    if clip is None:
        return None
    is_number = isinstance(clip, (int, float, np.number)) and not isinstance(clip, bool)
    if not is_number or not 0.0 < clip < math.inf:
        raise ParameterError("clip must be a positive number: the largest loss or absolute error of a row that counts.")
    if isinstance(model, LinearClassifier) and not model._link.has_probabilities:
        raise ParameterError("this model gives no probabilities, so it has no log loss to be clipped; leave clip out.")
    return float(clip)


def _layout(
    models: tuple[PrivateLinearModel, ...], scorers: tuple[Scorer, ...], n_bins: int, n_groups: int, clip: float | None
) -> Layout:
    first = models[0]
    if isinstance(first, LinearRegressor):
        limits = first._target_range(first._encoder)
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
