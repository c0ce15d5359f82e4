"""The settings of a fit with a penalty: of rows in the norm of a quadratic form, or with a function of the user's."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from confide.erm.row_bounds import LARGEST_BOUND, BallBound
from confide.erm.strongly_convex import StronglyConvex
from confide.errors import ParameterError
from confide.features.column_encodings import ColumnEncoding, NumberEncoding
from confide.features.encoder import Encoder
from confide.features.quadratic_forms import QuadraticForm
from confide.privacy.budgets import PureDP
from confide.privacy.grouped_form import may_keep_groups
from confide.training.alpha import usual_norm_of_rows
from confide.training.settings import ScoreLoss, Settings, SquaredError
from confide.types import Array

_NO_INTERVALS = "there are no intervals with a penalty of your own. Leave out inference_share or intervals."


def with_own_penalty(settings: Settings, penalty: StronglyConvex) -> Settings:
    """The same settings with a strongly convex penalty of the user's own in place of the ridge.

    Noise is in the objective or on the weights, and rows are not moved by a centre.
    """
    minimised = settings.minimised
    if settings.has_intervals or (isinstance(minimised, SquaredError) and minimised.with_square):
        raise ParameterError(_NO_INTERVALS)
    if settings.prior is not None:
        raise ParameterError("a prior has the ridge |w|^2, and penalty is another one. Leave out prior, or penalty.")
    if settings.mechanism in ("gradient", "sufficient-statistics"):
        raise ParameterError(
            f"mechanism={settings.mechanism!r} has no penalty of your own. Take 'auto', 'objective' or, where there is one, "
            f"'output'; or give a quadratic form as penalty."
        )
    if isinstance(minimised, SquaredError):
        if minimised.nearly_squared is None:
            raise ParameterError("least squares with a penalty of your own needs a finite target_bound.")
        minimised = minimised.nearly_squared
    return replace(settings, minimised=minimised, own_penalty=penalty, centres=False)


def penalised(settings: Settings, form: QuadraticForm, encoder: Encoder | None, *, of_two_classes: bool = False) -> Settings:
    """The same settings for rows in the norm of a form: their bound, and the norm of a typical one.

    Two classes under a pure budget keep rows as they are, and the noise has the shape of their groups.
    Where the noise is large, rows may be shortened to the norm of a typical one, as without a form. With a prior the ridge
    pulls towards it in the same norm (`Settings.weights_of_prior`).
    """
    minimised = settings.minimised
    if settings.has_intervals or (isinstance(minimised, SquaredError) and minimised.with_square):
        raise ParameterError(_NO_INTERVALS)
    if encoder is None and not isinstance(settings.row_bound, BallBound):
        raise ParameterError("a penalty needs row_norm as a number, or a schema.")
    if of_two_classes and encoder is not None and _keeps_groups(settings, form, encoder):
        if isinstance(minimised, ScoreLoss):
            minimised = replace(minimised, bound_if_noisy=None)
        return replace(
            settings,
            minimised=minimised,
            usual_norm=usual_norm_in(form, encoder),
            penalty=form,
            bound_before_penalty=settings.row_bound,
            keeps_groups=True,
        )
    own = settings.row_bound if encoder is None else encoder.row_bound
    appended = None if encoder is None else encoder.appended
    norm = form.longest(own)
    bound = BallBound(norm) if appended is None else appended.bound_for(norm)
    if math.isfinite(norm) and not norm <= LARGEST_BOUND:
        raise ParameterError("the penalty makes rows too long. Raise its strengths.")
    usual = None if encoder is None else usual_norm_in(form, encoder)
    if isinstance(minimised, ScoreLoss) and minimised.bound_if_noisy is not None and usual is not None:
        # With random features beside the columns, rows to be predicted could not be shortened as in the fit.
        shorter = BallBound(min(usual, bound.norm)) if appended is None else None
        minimised = replace(minimised, bound_if_noisy=shorter)
    return replace(
        settings,
        row_bound=bound,
        usual_norm=usual,
        minimised=minimised,
        penalty=form,
        bound_before_penalty=settings.row_bound,
    )


def _keeps_groups(settings: Settings, form: QuadraticForm, encoder: Encoder) -> bool:
    """Whether rows stay as they are: under a pure budget the noise of groups of columns is smaller than that of a ball."""
    return (
        isinstance(settings.budget, PureDP)
        and settings.budget.is_private
        and encoder.appended is None
        and settings.row_bound == encoder.row_bound
        and may_keep_groups(form, settings.row_bound)
    )


def usual_norm_in(form: QuadraticForm, encoder: Encoder) -> float:
    """The norm of a typical encoded row with this form, without the intercept, from public facts."""
    appended = encoder.appended
    features = 0.0 if appended is None else appended.feature_norm**2
    plain = usual_norm_of_rows(encoder) ** 2 - features
    unchanged = QuadraticForm.of(np.ones(encoder.n_features))
    ratio = _typical_square(form, encoder) / _typical_square(unchanged, encoder)
    return math.sqrt(plain * ratio + features)


def _typical_square(form: QuadraticForm, encoder: Encoder) -> float:
    """The mean squared norm of a row whose entries are spread evenly over levels, and between knots."""
    groups = zip(encoder.groups, encoder.factors, encoder.row_bound.scales, strict=True)
    return math.fsum(scale**2 * _of_group(form, group.start, group.size, factors) for group, factors, scale in groups)


def _of_group(form: QuadraticForm, start: int, size: int, factors: tuple[ColumnEncoding, ...]) -> float:
    squares, encoding = form.column_squares[start : start + size], factors[0]
    if len(factors) > 1 or size == 1 or not isinstance(encoding, NumberEncoding) or not encoding.n_hats:
        # As `usual_norm` has it for a single column.
        return float(squares.mean()) / (3.0 if size == 1 else 1.0)
    hats = form.rows(np.eye(form.n_features)[start : start + encoding.n_hats])
    left, right = hats[:-1], hats[1:]
    # At a share f of the way between two knots a row is (1 - f) of one hat and f of the next, and f is uniform.
    return float((_squares(left) + _squares(right) + (left * right).sum(axis=1)).mean()) / 3.0


def _squares(rows: Array) -> Array:
    found: Array = (rows * rows).sum(axis=1)
    return found
