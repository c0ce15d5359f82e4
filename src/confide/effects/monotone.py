"""Curves that may only rise, or only fall: a projection of released weights.

Somebody who knows that an effect is monotone may say so. The released weights are then replaced by the nearest ones whose
curves are monotone. This is post-processing: the guarantee stays, and no further release is made. A projection onto a convex
set brings weights nearer to every member of the set, in the metric of the projection. So where the effect of the population
is monotone, the weights get nearer to it, and where it is not, the curve is wrong.

Nearness is measured in the metric of the noise where its covariance is known: that is where intervals were bought. Weights
of other columns and the intercept then move with those of the curve, as their noise is correlated with it. Otherwise all
weights of a curve count alike, which is isotonic regression by least squares, and no other weight moves. The same is done
where the nearest weights in the metric of the noise cannot be computed, because the released moments are noise alone or
their covariance is nearly singular.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

import numpy as np
from scipy.optimize import isotonic_regression, nnls

from confide.array_types import Array, Indices
from confide.effects.effects import has_effects
from confide.errors import ParameterError, is_mapping, is_text, wording
from confide.features.encoder import Encoder
from confide.features.schema import Schema
from confide.inference.debiased import with_known_zeros
from confide.inference.intervals import WeightsEvidence
from confide.known_words import listed, listed_unknown, suggestion
from confide.models.model import ReleasedModel, ShownClass
from confide.models.prior import DIRECTIONS
from confide.models.scores import LinearModel


def checked_monotone(
    monotone: object, schema: Schema | None, declared: Iterable[tuple[str, str | float]] = ()
) -> dict[str, str]:
    """The directions of monotone effects by column, from what a user gave. No data is needed for it.

    Parameters
    ----------
    monotone : mapping from the name of a column to "up" or "down", or None
    schema : the description of the columns
    declared : the effects that a prior declares, see `models.prior.Prior`

    Raises
    ------
    ParameterError
        If it is no such mapping, a column is unknown, is a category or belongs to an interaction, or a prior says the
        opposite.
    """
    if monotone is None:
        return {}
    if not is_mapping(monotone):
        raise ParameterError('monotone must map names of columns to "up" or "down", as in {"age": "up"}.')
    if monotone and schema is None:
        raise ParameterError("monotone effects need a schema or bounds: they say which columns there are.")
    if monotone and schema is not None and schema.random_features is not None:
        raise ParameterError(wording("monotone beside random features"))
    columns = {} if schema is None else {column.name: column for column in schema.columns}
    said = {name: float(DIRECTIONS.get(str(effect), effect)) for name, effect in declared}
    for name, direction in monotone.items():
        if name not in columns:
            raise ParameterError(
                wording("monotone of no column", name=listed_unknown([name], columns), columns=listed(columns))
            )
        if not is_text(direction) or direction not in DIRECTIONS:
            raise ParameterError(f'monotone: say "up" or "down" for column "{name}"{suggestion(direction, DIRECTIONS)}.')
        if not columns[name].is_number:
            raise ParameterError(f'monotone: column "{name}" is a category, whose levels have no order; leave it out.')
        if getattr(columns[name], "atoms", ()):
            raise ParameterError(wording("monotone column with atoms", name=name))
        if schema is not None and any(name in interaction.columns for interaction in schema.interact):
            raise ParameterError(wording("monotone column with an interaction", name=name))
        if DIRECTIONS[direction] * said.get(name, 0.0) < 0.0:
            raise ParameterError(f'monotone and prior say opposite things of column "{name}"; leave out what is not known.')
    return dict(monotone)


def monotone_sentence(monotone: Mapping[str, str]) -> str:
    """What a plan and a report say of monotone effects; empty if there are none."""
    if not monotone:
        return ""
    words = {"up": "rise", "down": "fall"}
    curves = ", ".join(f'"{name}" may only {words[direction]}' for name, direction in monotone.items())
    return wording("curves replaced", curves=curves)


def monotone_weights(released: ReleasedModel, monotone: Mapping[str, str]) -> LinearModel:
    """The nearest weights whose curves are monotone, in place of those that were released.

    Parameters
    ----------
    released : a model of one score with a schema
    monotone : checked directions by column; a direction is that of the score in favour of the class that is shown

    Returns
    -------
    LinearModel
        The weights and the intercept, with the same bound on rows. Missing indicators take no part in the order. A straight
        line with the wrong sign becomes 0.
    """
    scoring = released.scoring
    if not monotone:
        return scoring
    if not has_effects(released) or released.encoder is None or len(scoring.coef) > 1:
        raise ParameterError("monotone effects need a model of one score with a schema.")
    sign = ShownClass.of(released).sign if released.domain else 1.0
    steps = _steps(released.encoder, {name: sign * DIRECTIONS[direction] for name, direction in monotone.items()})
    change = None
    if released.evidence is not None and released.evidence.noises:
        # The budget is charged by now. So nothing in this search for the nearest weights may lose the model: it may not end,
        # or the released moments may be noise alone, which give no covariance.
        with np.errstate(all="ignore"), suppress(ArithmeticError, ValueError, RuntimeError, MemoryError):
            change = _in_metric_of_noise(released.evidence, released.encoder, scoring, steps)
    if change is None or not np.isfinite(change).all():
        change = _by_least_squares(scoring, steps)
    return LinearModel(scoring.coef + change[:-1], scoring.intercept + change[-1], scoring.row_bound)


def _by_least_squares(scoring: LinearModel, steps: list[tuple[Indices, float]]) -> Array:
    """(n_features + 1,): the smallest change of weights that makes the curves monotone."""
    change = np.zeros(scoring.coef.shape[1] + 1)
    for places, direction in steps:
        own = direction * scoring.coef[0, places]
        nearest = isotonic_regression(own).x if len(places) > 1 else np.maximum(own, 0.0)
        change[places] = direction * (nearest - own)
    return change


def _steps(encoder: Encoder, directions: Mapping[str, float]) -> list[tuple[Indices, float]]:
    """For each monotone column, the places of its weights that are in order, and 1 or -1."""
    constraints = []
    for column, group in zip(encoder.schema.columns, encoder.groups, strict=False):
        if column.name in directions and column.is_number:
            places = np.arange(group.start, group.start + group.size - bool(column.missing))
            constraints.append((places, directions[column.name]))
    return constraints


def _in_metric_of_noise(
    evidence: WeightsEvidence, encoder: Encoder, scoring: LinearModel, steps: list[tuple[Indices, float]]
) -> Array:
    """(n_features + 1,): the change of weights and intercept that makes the curves monotone, smallest in the noise's metric.

    With C the covariance of the noise and A w >= 0 the order, the change is C A^T z, where z >= 0 minimises
    |C^(1/2) A^T z|^2 / 2 + z . A w: the dual problem, solved as non-negative least squares.
    """
    width = scoring.coef.shape[1] + (evidence.intercept > 0.0)
    errors = with_known_zeros(evidence, encoder).joint_uncertainty(np.eye(width))[0].privacy_errors
    if not len(errors):
        raise ArithmeticError("the released moments give no covariance of the noise")
    order: list[Array] = []
    for places, direction in steps:
        if len(places) == 1:
            order.append(direction * np.eye(width)[places])
        else:
            order.append(direction * (np.eye(width)[places[1:]] - np.eye(width)[places[:-1]]))
    constraints = np.concatenate(order)
    roots = errors @ constraints.T / np.sqrt(len(errors))  # its transpose times itself is A C A^T
    weights = np.append(scoring.coef[0], scoring.intercept)[:width]
    wrong = constraints @ weights
    # |roots z|^2 / 2 + z . wrong = |roots z - target|^2 / 2 + constant, with roots^T target = -wrong.
    target = -roots @ np.linalg.lstsq(roots.T @ roots, wrong, rcond=None)[0]
    multipliers, _ = nnls(roots, target)
    change = errors.T @ (roots @ multipliers) / np.sqrt(len(errors))
    answer: Array = np.append(change, np.zeros(scoring.coef.shape[1] + 1 - width))
    # Rounding may leave a step of the wrong sign and of the size of the last digit.
    for places, direction in steps:
        moved = weights[places] + answer[places]
        tidy = np.maximum.accumulate(direction * moved) if len(places) > 1 else np.maximum(direction * moved, 0.0)
        answer[places] = direction * tidy - weights[places]
    return answer
