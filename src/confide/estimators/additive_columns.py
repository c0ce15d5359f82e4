"""What additive models share: their parameters, and how knots are chosen before a fit or a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from confide.effects.monotone import checked_monotone
from confide.errors import ParameterError, SchemaError
from confide.estimators.column_effects import ColumnEffects
from confide.estimators.linear_model import NamesOfColumns, PrivateLinearModel
from confide.estimators.shared_parameters import AdditiveParameters
from confide.features.columns import NumberColumn
from confide.features.encoder import Encoder
from confide.features.schema import Schema
from confide.intake import parameters
from confide.intake.penalties import GivenForm, checked_penalty
from confide.known_words import listed_unknown, suggestion
from confide.privacy.budgets import Neighbours
from confide.released_models.model import ReleasedModel
from confide.training.interaction_choice import with_interactions
from confide.training.knot_choice import (
    refuse_too_many,
    with_chosen_knots,
    with_curves_of,
    with_interactions_of,
    with_knots,
    with_knots_of,
)
from confide.training.settings import Settings


class AdditiveColumns(ColumnEffects, AdditiveParameters, PrivateLinearModel):
    """The columns of an additive model: a schema, or bounds of the columns of an array, in which knots are chosen."""

    schema_: Schema | None

    _accepts_sparse = False  # a sparse matrix has no bounds for its columns

    def chosen_schema(self, n_rows: int | None = None, n_features: int | None = None) -> Schema:
        """The schema in which everything that a fit would choose is written out. Reads no data and charges nothing.

        Parameters
        ----------
        n_rows : int or None
            Number of rows, at least 1. Not used if `n_rows_bounds` is given.
        n_features : int or None
            Number of columns of an array, if `bounds` is one pair for all columns; otherwise leave it out.

        Returns
        -------
        Schema
            A fit with this schema chooses nothing more.

        Raises
        ------
        ParameterError
            If a parameter cannot be used.
        """
        if n_rows is None and self.n_rows_bounds is None:
            raise ParameterError("give n_rows, the number of rows: the number of knots depends on it.")
        schema = self._schema_of_plan(n_rows, n_features)
        if schema is None:
            raise ParameterError(_NO_COLUMNS)
        return schema

    def _own_schema(self, names: Callable[[int | None], tuple[str, ...]]) -> Schema | None:
        if self.bounds is None:
            return super()._own_schema(names)
        if self.schema is not None:
            raise ParameterError("give a schema or bounds, not both: a schema has the bounds of its columns.")
        return _schema_of_bounds(self.bounds, names)

    def _chosen_in(self, schema: Schema | None, count: Callable[[], int]) -> Schema | None:
        if parameters.checked_schema(schema) is None or schema is None:
            raise ParameterError(_NO_COLUMNS)
        automatic = isinstance(self.knots, str) and self.knots == "auto"
        described = schema if automatic else with_knots(schema, _checked_knots(self.knots, schema))
        refuse_too_many(described)
        prior = self._given_prior()
        fitted_to = None if prior is None else prior.fitted_to
        if fitted_to is not None and fitted_to.encoder is not None:
            described = with_curves_of(with_knots_of(described, fitted_to.encoder.schema), fitted_to.encoder.schema)
            if isinstance(self.interactions, str) and self.interactions == "auto":
                return with_interactions_of(described, fitted_to.encoder.schema)
        n_rows_is_public = Neighbours.parse(self.neighbours) is Neighbours.REPLACE_ONE
        public_count = count if n_rows_is_public else None
        # Monotone curves, and penalties that know knots, are for curves alone.
        may_bend = not self.monotone and getattr(self, "penalty", None) is None
        curves = with_chosen_knots(described, self._settings_of_choice, public_count, may_bend=may_bend)
        return with_interactions(described, curves, self.interactions, self._settings_of_choice, public_count)

    def _settings_of_choice(self, encoder: Encoder) -> Settings:
        """The settings by which knots and interactions are chosen.

        The weights of a prior, and a penalty that smooths curves, belong to one choice alone.
        """
        made = copy(self)
        made.prior = None
        penalty = checked_penalty(getattr(self, "penalty", None))
        if isinstance(penalty, GivenForm) and penalty.follows_knots:
            made.penalty = None
        return made._settings(encoder)

    def _settings(self, encoder: Encoder | None, *, set_aside: float = 0.0, names: NamesOfColumns | None = None) -> Settings:
        monotone = checked_monotone(self.monotone, None if encoder is None else encoder.schema)
        return replace(super()._settings(encoder, set_aside=set_aside, names=names), monotone=tuple(monotone.items()))

    def _take_schema(self, schema: Schema | None) -> None:
        self.set_params(schema=schema, bounds=None, interactions=())

    def _hold(self, released: ReleasedModel) -> None:
        super()._hold(released)
        self.schema_ = released.schema


_NO_COLUMNS = (
    "an additive model needs to know the range of each column: give a schema; or, for an array of numbers, "
    "bounds=(low, high) for all columns, or a list with such a pair for each column."
)


def _schema_of_bounds(bounds: Any, names: Callable[[int | None], tuple[str, ...]]) -> Schema:
    """A schema of number columns from one pair (low, high), or from a pair for each column, by position or by name."""
    message = (
        "bounds must be a pair (low, high) of finite numbers for all columns, a list with such a pair for each column, or a "
        "dict of pairs by the names of columns; low must be below high."
    )
    if isinstance(bounds, Mapping):
        pairs, titles = list(bounds.values()), tuple(map(str, bounds))
    else:
        try:
            table: Any = np.asarray(bounds, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterError(message) from None
        if table.shape == (2,):
            titles = names(None)
            pairs = [table] * len(titles)
        elif table.ndim == 2 and table.shape[1] == 2:
            pairs, titles = list(table), names(len(table))
            if len(titles) != len(pairs):
                described = f"{len(pairs)} column{'s'[: len(pairs) != 1]}"
                raise ParameterError(f"bounds describe {described}, and X has {len(titles)}; give a pair for each.")
        else:
            raise ParameterError(message)
    try:
        columns = tuple(NumberColumn(name, float(low), float(high)) for name, (low, high) in zip(titles, pairs, strict=True))
    except (SchemaError, TypeError, ValueError):
        raise ParameterError(message) from None
    return Schema(columns)


def _checked_knots(knots: Any, schema: Schema) -> Any:
    """The parameter `knots`: a number for all columns, or a mapping from the names of columns to a number or a list."""
    names = [column.name for column in schema.columns if isinstance(column, NumberColumn)]
    if isinstance(knots, Mapping):
        if unknown := [name for name in knots if name not in names]:
            raise ParameterError(f"knots: {listed_unknown(unknown, names)} is no number column of the schema; take it out.")
        return {name: tuple(value) if isinstance(value, (list, np.ndarray)) else value for name, value in knots.items()}
    if isinstance(knots, Integral) and not isinstance(knots, bool):
        return int(knots)
    near = suggestion(knots, ("auto",)) if isinstance(knots, str) else ""
    raise ParameterError(
        f'knots must be "auto"{near}, a whole number, or a dict from names of columns to a number or a list.'
    )
