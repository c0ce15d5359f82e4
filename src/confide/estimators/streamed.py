"""Rows that `open_rows` gave, for a fit: checked in a pass of their own before anything is charged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from confide.data.arrays import Blocks
from confide.data.on_disk import Stamp
from confide.data.opened import CheckedRows
from confide.data.partitions import NumericReading
from confide.data.passes import Pass
from confide.data.source import RowSource
from confide.data.streams import Numbers, Reading, StreamedSource
from confide.errors import InputError, ParameterError
from confide.estimators.fitting import Settings
from confide.estimators.validation import domain_sentence, labels_of, row_weights_of
from confide.features.encoder import Encoder
from confide.features.fourier import FourierMap
from confide.features.labels import targets_at
from confide.features.persons import RowsPerPerson
from confide.features.schema import Schema
from confide.types import Array, Indices, Targets


@dataclass(frozen=True, slots=True)
class FitRows:
    """What a fit knows of checked rows.

    Attributes
    ----------
    source : RowSource
    n_rows : how many were given, before those beyond a person's share were dropped
    domain : the classes in sorted order
    label_sentence : where they come from
    fourier : the public map that rows pass through, or None
    """

    source: RowSource
    n_rows: int
    domain: tuple[Any, ...]
    label_sentence: str
    fourier: FourierMap | None

    def part(self, positions: Indices) -> FitRows:
        """The rows at the positions, of a source that can be divided."""
        source: Any = self.source
        return replace(self, source=source.taken(positions), n_rows=positions.size)


@dataclass(frozen=True, slots=True)
class ReadRows:
    """Rows in memory that were read once and checked, before a public map and weights of classes. They hold data.

    Attributes
    ----------
    blocks : the rows that count
    kept : which of those given they are, None for all
    labels : of all that were given, as a loss reads them
    own_weights : what each of those given counts by itself, as it was given; None where each counts 1
    n_rows : how many were given
    domain, sentence : as in `FitRows`
    stamps : of the files where they lie
    """

    blocks: Blocks
    kept: Indices | None
    labels: Targets
    own_weights: Array | None
    n_rows: int
    domain: tuple[Any, ...]
    sentence: str
    stamps: tuple[Stamp, ...]


def schema_of(schema: Schema | None, X: Any) -> Schema | None:
    """The schema of a fit: that of opened rows, which the estimator's must not contradict, or else the estimator's."""
    if not is_opened(X):
        return schema
    opened: Schema | None = X.schema
    if schema is not None and schema != opened:
        raise ParameterError("the rows were opened with another schema than the estimator's, or none; give one of the two.")
    return opened


def is_opened(X: Any) -> bool:
    """Whether X is what `open_rows` gave, with labels of its own."""
    return hasattr(X, "checked") and hasattr(X, "schema")


@contextmanager
def streamed_numbers(
    estimator: Any, X: Any, encoder: Encoder | None, rows_per_person: RowsPerPerson, *, counts: bool
) -> Iterator[CheckedRows]:
    """The same for a regression."""
    target = getattr(X, "target", None)
    if encoder is not None and target is None:
        raise ParameterError("open the rows of a regression with the column of its numbers: open_rows(..., target=column).")
    numbers = Numbers(target or "", counts)
    reading = NumericReading(X.n_inputs, (), numbers=numbers) if encoder is None else Reading(encoder, (), numbers=numbers)
    with X.checked(reading, rows_per_person) as checked:
        _name_columns(estimator, X, encoder)
        yield checked


@contextmanager
def scored(
    model: Any, X: Any, rows_per_person: RowsPerPerson
) -> Iterator[tuple[int, Callable[[], Iterator[tuple[Array, Targets]]]]]:
    """Opened rows, checked, for a fitted classifier of two classes: how many were given, and their scores with labels.

    The scores come in a pass after the check, a piece at a time.
    """
    encoder = model._encoder
    if encoder is None or encoder.schema != X.schema or getattr(X, "target", None) is not None:
        raise ParameterError("the rows must be opened with the schema that the model was fitted with, and with its labels.")
    # Rows to be predicted need not use every column.
    reading = Reading(replace(encoder, of_part=True), tuple(model.classes_.tolist()), None, model._fourier)
    with X.checked(reading, rows_per_person) as checked:
        source = checked.source
        if not isinstance(source, StreamedSource):
            raise ParameterError(
                "scores are computed here, not by a cluster or other parties: open files, without a client."
            )

        scoring = model._model

        def pieces() -> Iterator[tuple[Array, Targets]]:
            passing = Pass("scoring", source.told)
            for memory in source.in_memory():
                yield scoring.scores_alone(memory.blocks), memory.labels
                passing.used(memory.n_rows)

        yield checked.n_rows, pieces


def _name_columns(estimator: Any, X: Any, encoder: Encoder | None) -> None:
    if encoder is None:
        estimator.n_features_in_ = X.n_inputs
        vars(estimator).pop("feature_names_in_", None)
    else:
        estimator.n_features_in_ = len(encoder.schema.column_names)
        estimator.feature_names_in_ = np.array(encoder.schema.column_names, dtype=object)


@contextmanager
def streamed(
    estimator: Any,
    X: Any,
    y: Any,
    settings: Settings,
    encoder: Encoder | None,
    domain: tuple[Any, ...] | None,
    sample_weight: Any,
    persons: RowsPerPerson,
) -> Iterator[FitRows]:
    """Check opened rows and give them for a fit; what was made of them is removed at the end.

    Raises
    ------
    InputError, FileError
        If they cannot be used; without any value from them.
    """
    if y is not None:
        raise ParameterError("rows from open_rows bring their labels; leave y out.")
    if sample_weight is not None:
        raise InputError("sample_weight is for rows in memory; rows from open_rows count alike, or by class_weight.")
    if getattr(X, "target", None) is not None:
        raise ParameterError(
            "the rows were opened with a target of numbers, for a regressor; classes are the schema's target."
        )
    if domain is None:
        present = X.labels_present()
        _, domain, sentence = labels_of(present, len(present), None)
    else:
        sentence = domain_sentence(domain, declared=True)
    each = targets_at(np.arange(len(domain)), len(domain))
    of_classes = row_weights_of(None, settings.largest_sample_weight, each, domain, settings.class_weight)
    counts = None if of_classes is None else tuple(of_classes.tolist())
    n_inputs = X.n_inputs if encoder is None else encoder.n_features
    fourier = estimator._fourier_map(n_inputs)
    reading = (
        NumericReading(n_inputs, domain, counts, fourier) if encoder is None else Reading(encoder, domain, counts, fourier)
    )
    with X.checked(reading, persons) as checked:
        _name_columns(estimator, X, encoder)
        source = checked.source
        if isinstance(source, StreamedSource):
            source = replace(source, n_threads=settings.n_threads)
        yield FitRows(source, checked.n_rows, domain, sentence, fourier)
