"""Losses made of other losses: with clipped or joined slopes, or declared by a user."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from confide.array_types import Array, Targets
from confide.erm.losses import Loss, LossConstants, Terms
from confide.errors import NotCertified, ParameterError

# A loss whose gradient is clipped row by row: what noisy gradients sum. Proof: privacy/proofs/gradient.md, section 3.


@dataclass(frozen=True, slots=True)
class ClippedSlopes(Loss):
    """The slopes of a loss, those of a row x scaled down together to |slopes| |x| <= `limit` R, R the bound on rows.

    Only its slopes can be summed: there need not be a function whose slopes these are.

    Parameters
    ----------
    loss : of one score or of several
    limit : the largest norm of the slopes of a row of length R
    """

    loss: Loss
    limit: float

    @property
    def constants(self) -> LossConstants:
        """Of the slopes before they are clipped, which the rounding of scores and rows is multiplied with.

        Clipping to a ball is a contraction, so the smoothness stays. The norm of o slopes, a quotient and a product are
        rounded too. The length of a row is counted where losses are `by_length`.
        """
        own = self.loss.constants
        return own._replace(
            rounding=own.rounding + (0.5 * own.n_outputs + 4.0 if own.n_outputs > 1 else 0.0), slope_limit=self.limit,
            by_length=True, separable=own.n_outputs == 1, convex=False, monotone=False, tapered=False, self_concordant=False,
        )  # fmt: skip

    def with_joint(self, half_width: float, *, slopes_alone: bool = False) -> Any:
        # Clipped slopes are summed and no more, whoever asks.
        return replace(self, loss=self.loss.with_joint(half_width, slopes_alone=True))

    def of_scores(self, scores: Array, targets: Targets, order: int, stretch: Array | float = 1.0) -> Terms:
        """The slopes (m, k o) alone: order 1. `stretch` (m, 1) is R / |x|, inf for a row of zeros, which adds nothing."""
        if order != 1:
            raise ParameterError("clipped slopes have sums of order 1 alone.")
        slope = np.asarray(self.loss.of_scores(scores, targets, 1, stretch).slope)
        limits, n_outputs = self.limit * stretch, self.loss.constants.n_outputs
        if n_outputs == 1:
            # What is not a number, as a user's loss may give, counts as the steepest slope downwards.
            return Terms(slope=np.fmin(np.fmax(slope, -limits), limits))
        parts = slope.reshape(len(slope), -1, n_outputs)
        norms = np.sqrt(np.einsum("mko,mko->mk", parts, parts))
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = np.fmin(1.0, limits / norms)
        return Terms(slope=(parts * factors[:, :, None]).reshape(slope.shape))


# Losses that a user wrote. The user declares their constants, and the guarantee says so.


def asked(answer: Any, shape: tuple[int, ...] | None) -> Any:
    """What code of a user answers when it is called: numbers of this shape, or anything if the shape is None.

    None if it raises, or answers anything else: its message might show scores or weights without noise. What would end the
    program is a failure like others. An interrupt still is one, without what was said in it.
    """
    try:
        with np.errstate(all="ignore"):
            answers = answer()
            if shape is None:
                return answers
            numbers: Array = np.asarray(answers, dtype=np.float64)
            return numbers if numbers.shape == shape else None
    except KeyboardInterrupt:
        is_interrupted = True
    except BaseException:  # noqa: BLE001 - a user's code may raise anything
        is_interrupted = False
    if is_interrupted:
        raise KeyboardInterrupt
    return None


@dataclass(frozen=True, slots=True)
class DeclaredLoss(Loss):
    """A user's loss, and the constants it declared when the fit began.

    Derivatives are clipped here to the declared constants and the declared sign, so noise covers every slope. Three
    assumptions remain: the loss is convex, its derivative changes no faster than `smoothness` says, and each value depends
    on its own score and target alone. Where the user's code fails, the release is refused.

    Parameters
    ----------
    loss : has `value`, `derivative` and `second_derivative`, of a one-dimensional array of margins, or of two such arrays,
        scores and targets
    target_bound : targets are clipped to [-target_bound, target_bound]; None for a loss of the margin
    name, lipschitz, smoothness, value_at_zero, rounding, monotone : see `LossConstants`; a loss with kinks has an infinite
        smoothness and no `second_derivative`
    """

    loss: Any
    target_bound: float | None
    name: str
    lipschitz: float
    smoothness: float
    value_at_zero: float
    rounding: float
    monotone: bool

    @property
    def constants(self) -> LossConstants:
        bound = self.target_bound
        # The unit is a power of two, so that multiples of a width are exact.
        return LossConstants(
            name=self.name, scores="score" if bound is None else "prediction", is_declared=True, monotone=self.monotone,
            lipschitz=self.lipschitz, smoothness=self.smoothness, trace=self.smoothness, target_bound=bound,
            value_at_zero=self.value_at_zero, rounding=self.rounding,
            unit=1.0 if bound is None else 2.0 ** math.floor(math.log2(bound)),
        )  # fmt: skip

    def with_joint(self, half_width: float, *, slopes_alone: bool = False) -> Any:
        # Multiples of a power of two are exact.
        width = 2.0 ** math.floor(math.log2(2.0 * half_width))
        return InterpolatedSlopes(self, width, rises=not slopes_alone)

    def of_scores(self, scores: Array, targets: Targets, order: int, stretch: Array | float = 1.0) -> Terms:
        signs: Array | float = 1.0
        if self.target_bound is None:
            signs = targets[:, None].astype(np.float64)
            arguments = [signs * scores]
        else:
            within = np.fmin(np.fmax(targets, -self.target_bound), self.target_bound)
            arguments = [scores, np.broadcast_to(within[:, None], scores.shape)]
        given = tuple(argument.ravel() for argument in arguments)
        for argument in given:
            argument.flags.writeable = False

        # A declared sign is enforced too: the cheaper account of Gaussian noise is false for slopes of both signs.
        steepest = 0.0 if self.monotone else self.lipschitz

        def clipped(name: str, low: float, high: float) -> Array:
            answers: Array | None = asked(lambda: getattr(self.loss, name)(*given), given[0].shape)
            if answers is None:
                raise self._failed()
            return np.fmin(np.fmax(answers.reshape(scores.shape), low), high)

        return Terms(
            clipped("value", 0.0, np.inf) if order == 0 else None,
            signs * clipped("derivative", -self.lipschitz, steepest) if order >= 1 else None,
            clipped("second_derivative", 0.0, self.smoothness) if order >= 2 else None,
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """For solvers. The user's code may decide how its object is copied."""
        copied = asked(lambda: deepcopy(self.loss, memo), None)
        if copied is None:
            raise self._failed()
        return replace(self, loss=copied)

    def _failed(self) -> NotCertified:
        return NotCertified(
            f"the loss {self.name} raised an error, or did not return an array of numbers of the shape of its argument. So "
            f"nothing is released; what was charged stays charged. What it raised is not shown, because it may tell of the "
            f"rows: call its functions with made-up scores to see it."
        )


# A loss without kinks in place of one that may have kinks anywhere. Proofs: privacy/proofs/gradient.md, section 5, and
# privacy/proofs/declared_slopes.md for a convex loss.


@dataclass(frozen=True, slots=True)
class InterpolatedSlopes(Loss):
    """The slopes of a user's loss at the multiples of `width`, and straight lines between them.

    So slopes change by at most 2 lipschitz / width times the change of the score, whatever the loss is: it need be neither
    convex nor smooth. Its value at each multiple must depend on that score and the target alone. Slopes that rise with the
    score do so between multiples too. Then these are the slopes of a convex function without kinks.

    Parameters
    ----------
    loss : the user's loss, whose slopes are clipped to its `lipschitz`
    width : a power of two
    rises : whether the loss is convex, so that its slopes rise, and is minimised. Otherwise slopes alone are summed
    """

    loss: DeclaredLoss
    width: float
    rises: bool = False

    @property
    def constants(self) -> LossConstants:
        own = self.loss.constants
        rise = (1.0 if self.rises and own.monotone else 2.0) * own.lipschitz
        bend, joint = rise / self.width, 0.5 * self.width
        # Two products, a difference and a sum of numbers of at most 2 lipschitz.
        joined = own._replace(
            smoothness=bend, trace=bend, rounding=8.0, monotone=False, joint=joint, has_straight_joints=True
        )
        if not self.rises:
            return joined._replace(convex=False, unit=1.0)
        # The function is lifted, so that it is nowhere negative. Beside interpolation computed slopes may lie from slopes
        # that rise by their own rounding.
        return joined._replace(value_at_zero=own.value_at_zero + 0.5 * self.width * rise, rounding=8.0 + own.rounding)

    def with_joint(self, half_width: float, *, slopes_alone: bool = False) -> Any:
        return self.loss.with_joint(half_width, slopes_alone=slopes_alone)

    def of_scores(self, scores: Array, targets: Targets, order: int, stretch: Array | float = 1.0) -> Terms:
        """The slopes (m, k), and for order 2 of slopes that rise the curvatures. There are no values; solvers need none."""
        if order != 1 and not self.rises:
            raise ParameterError("interpolated slopes have sums of order 1 alone.")
        # The width is a power of two, so that nodes and shares are exact.
        position = scores / self.width
        left = np.floor(position)
        share = position - left
        at_left, at_right = (
            np.asarray(self.loss.of_scores(node * self.width, targets, 1).slope) for node in (left, left + 1.0)
        )
        curvature = np.fmax((at_right - at_left) / self.width, 0.0) if order >= 2 else None
        return Terms(slope=(1.0 - share) * at_left + share * at_right, curvature=curvature)
