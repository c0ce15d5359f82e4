"""What a fit requires of rows, which follows from parameters only, and what it knows about rows that passed the checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from confide.array_types import Indices, Names
from confide.data.arrays import CheckedSource
from confide.erm.row_bounds import RowBound
from confide.errors import ParameterError
from confide.features.canonical_labels import Label
from confide.features.encoder import Encoder
from confide.features.forms import PenalisedRows, PublicMap, QuadraticForm, RowMap
from confide.features.schema import RowWeight
from confide.features.table import RowsPerPerson
from confide.intake.targets import OpenedTarget, TargetKind
from confide.known_words import names_by_position


@dataclass(frozen=True, slots=True, eq=False)
class RowSpecification:
    """The requirements on rows, and how rows enter a fit. These are public facts: no row is needed to know them.

    Attributes
    ----------
    encoder : the encoder of the schema, None for rows of numbers
    target : whether classes or numbers are to be predicted
    row_bound : the bound to which rows are clipped
    rows_per_person : which rows of each person are used
    columns_of : an estimator on which scikit-learn records the columns of X (`n_features_in_`, `feature_names_in_`): for a
        fit a copy of the estimator, for scoring the fitted estimator
    is_fit : True for a fit, which records the columns; False for scoring, which compares them with those recorded
    fourier_map : a function from the number of columns to the public feature map, or to None
    accepts_sparse : whether a SciPy sparse matrix is accepted
    weighs : whether rows count by the weight of the schema, where it has one
    largest_sample_weight : the declared cap on a row's own weight
    class_weight : pairs of class and public weight, or None
    with_moments : whether the fit also asks for the moments that intervals are made of
    n_threads : number of threads that share the rows
    penalty : the quadratic form in whose norm rows enter the fit; None for |w|^2
    norm_before_penalty : the L2 norm to which rows are clipped before they are brought to that norm; None if an encoder
        bounds them
    """

    encoder: Encoder | None
    target: TargetKind
    row_bound: RowBound
    rows_per_person: RowsPerPerson
    columns_of: object = None
    is_fit: bool = False
    fourier_map: Callable[[int], PublicMap | None] = lambda _: None
    accepts_sparse: bool = False
    weighs: bool = False
    largest_sample_weight: float = 1.0
    class_weight: tuple[tuple[Label, float], ...] | None = None
    with_moments: bool = False
    n_threads: int = 1
    penalty: QuadraticForm | None = None
    norm_before_penalty: float | None = None

    @property
    def weight(self) -> RowWeight | None:
        """The column by which rows count, or None."""
        return self.encoder.schema.weight if self.weighs and self.encoder is not None else None

    def map_of(self, n_inputs: int) -> tuple[PublicMap | None, RowMap | None]:
        """For rows of so many columns: the public map that belongs to the model, and the whole map of rows of the fit."""
        fourier = self.fourier_map(n_inputs)
        if self.penalty is None:
            return fourier, fourier
        if n_inputs != self.penalty.n_features:
            raise ParameterError(f"the penalty has {self.penalty.n_features} columns, and rows of the fit have {n_inputs}.")
        return fourier, PenalisedRows(self.penalty, fourier, self.norm_before_penalty)


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of X by scikit-learn's conventions.

    Attributes
    ----------
    n_features_in : number of columns; with a schema, of its raw columns
    feature_names_in : (n_features_in,) names of the columns, None if X has none
    """

    n_features_in: int
    feature_names_in: Names | None

    @classmethod
    def of_schema(cls, encoder: Encoder) -> Columns:
        """The raw columns of a schema."""
        names = encoder.schema.raw_names
        # The columns of an array have no names of their own.
        return cls(len(names), np.array(names, dtype=object) if names != names_by_position(len(names)) else None)

    @classmethod
    def recorded_by(cls, estimator: Any) -> Columns:
        """The columns that scikit-learn's validation has recorded on an estimator."""
        return cls(estimator.n_features_in_, getattr(estimator, "feature_names_in_", None))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CheckedRows:
    """Rows that passed every check, and the public facts about them.

    Attributes
    ----------
    source : the rows, over which sums can be taken
    n_rows : number of rows given, before rows beyond a person's cap were dropped
    domain : the classes in sorted order; empty for a regression
    target_sentence : what the guarantee says about labels or targets
    has_weights : whether rows came with weights of their own
    columns : the columns of X
    coefficient_names : (n_features,) one name for each column as it enters the fit
    encoder : the encoder of the schema, or None
    fourier : the public feature map, or None
    labels_declared : False if the labels were taken from the rows
    """

    source: CheckedSource
    n_rows: int
    domain: tuple[Label, ...]
    target_sentence: str
    has_weights: bool
    columns: Columns
    coefficient_names: Names
    encoder: Encoder | None
    fourier: PublicMap | None
    labels_declared: bool = True

    @classmethod
    def of(
        cls,
        specification: RowSpecification,
        source: CheckedSource,
        n_rows: int,
        target: OpenedTarget,
        columns: Columns,
        fourier: PublicMap | None,
        *,
        has_weights: bool,
    ) -> CheckedRows:
        """The rows of a fit, and the public facts about them."""
        return cls(
            source=source,
            n_rows=n_rows,
            domain=target.domain,
            target_sentence=target.sentence,
            has_weights=has_weights,
            columns=columns,
            coefficient_names=coefficient_names(columns, specification.encoder, fourier),
            encoder=specification.encoder,
            fourier=fourier,
            labels_declared=target.declared,
        )

    def part(self, positions: Indices) -> CheckedRows:
        """The rows at these positions. Only for rows that this process reads."""
        return replace(self, source=self.source.taken(positions), n_rows=positions.size)


def coefficient_names(columns: Columns, encoder: Encoder | None, fourier: PublicMap | None) -> Names:
    """(n_features,) one name for each column as it enters a fit."""
    if encoder is not None:
        names = np.array(encoder.feature_names, dtype=object)
    elif columns.feature_names_in is not None:
        names = columns.feature_names_in
    else:
        names = np.array(names_by_position(columns.n_features_in), dtype=object)
    return names if fourier is None else np.array(fourier.names_for(tuple(names)), dtype=object)
