"""A quadratic form with noise of the shape of the columns' groups, over rows as they are.

The problem is stated in the norm of the form, where the penalty is the ridge. So calibration and seal are those of the
ridge. Proof: proofs/penalty.md, section 8.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from confide.data.source import RowSource
from confide.erm.group_bounds import GroupBound
from confide.erm.mapped_objective import MappedObjective
from confide.erm.row_bounds import BallBound, norm_with_intercept
from confide.errors import ParameterError
from confide.features.quadratic_forms import QuadraticForm
from confide.privacy.certificate import GradientRounding
from confide.privacy.group_shapes import Groups, Linked
from confide.privacy.mapped_shapes import LARGEST_BLOCK, shape_of_groups
from confide.privacy.mechanism import Problem, shapes_of
from confide.privacy.shapes import Shape
from confide.types import Weights

_UNIT = 2.0**-53


@dataclass(frozen=True, slots=True)
class MappedRounding(GradientRounding):
    """A bound on the rounding of one gradient whose sums are over rows as they are.

    Parameters
    ----------
    stretch : the largest factor by which the map stretches a row or noise
    plain_norm : largest L2 norm of a row as it is, with its intercept
    """

    stretch: float = 1.0
    plain_norm: float = 0.0

    def bound(self, weights_norm: float, noise_norm: float, gradient_norm: float) -> float:
        """L2 distance between the computed and the exact gradient: theorem 5 of proofs/penalty.md."""
        loss, stretch = self.loss, self.stretch
        plain = GradientRounding(loss, self.plain_norm, self.n_rows, self.row_width, self.summation_depth, 0.0)
        of_sums = stretch * plain.bound(1.01 * stretch * weights_norm, 0.0, 0.0)
        products = LARGEST_BLOCK * (loss.lipschitz + 2.0 * loss.smoothness * self.row_norm * weights_norm)
        of_map = 1.03 * _UNIT * self.n_rows * self.row_norm * products
        return of_sums + of_map + GradientRounding.bound(self, weights_norm, noise_norm, gradient_norm)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedFormProblem(Problem):
    """The public facts of a problem in the norm of a form, whose rows stay as they are, in groups of columns.

    Attributes
    ----------
    form : the form, no block of which reaches across groups of `row_bound`
    """

    form: QuadraticForm

    def __post_init__(self) -> None:
        Problem.__post_init__(self)
        if not may_keep_groups(self.form, self.row_bound) or self.loss.n_outputs > 1 or self.loss.by_length:
            raise ParameterError("noise of groups needs a form whose blocks lie within groups, and a loss of one margin.")

    @classmethod
    def of(cls, problem: Problem, form: QuadraticForm) -> GroupedFormProblem:
        """The same problem in the norm of a form, its ridge that of the form."""
        facts = {each.name: getattr(problem, each.name) for each in fields(problem)}
        return cls(**facts, form=form)

    @property
    def row_norm(self) -> float:
        """Largest L2 norm of a clipped and mapped row with its intercept."""
        return norm_with_intercept(BallBound(self.form.longest(self.row_bound)), self.intercept)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The images of the shapes of groups that the rows allow."""
        shapes = shapes_of(self.row_bound, self.intercept, self.n_features)
        plain = [shape for shape in shapes if isinstance(shape, Groups | Linked)]
        return tuple(shape_of_groups(shape, self.form, self.row_norm) for shape in plain)

    def rounding(self, l2: float) -> MappedRounding:
        """The rounding bound of the gradients at a given total ridge."""
        own = Problem.rounding(self, l2)
        facts = {name: getattr(own, name) for name in GradientRounding.__slots__}
        stretch, plain_norm = max(1.0, self.form.longest_map), norm_with_intercept(self.row_bound, self.intercept)
        return MappedRounding(**facts, stretch=stretch, plain_norm=plain_norm)

    def objective(self, source: RowSource, l2: float, noise: Weights) -> MappedObjective[RowSource]:
        """The objective over the rows of `source`; see `Problem`."""
        own = Problem.objective(self, source, l2, noise)
        bound, weight = self.row_bound, self.largest_weight
        return MappedObjective(
            source, self.loss, bound, self.intercept, l2, own.linear, weight, form=self.form, mapped_norm=self.row_norm
        )


def may_keep_groups(form: QuadraticForm, row_bound: object) -> bool:
    """Whether every block of a form lies within one group of columns, and none is too large."""
    if type(row_bound) is not GroupBound or row_bound.n_features != form.n_features:
        return False
    group_of = [group for group, size in enumerate(row_bound.sizes) for _ in range(size)]
    return all(
        len(part) <= LARGEST_BLOCK and group_of[start] == group_of[start + len(part) - 1] for start, part in form.blocks
    )
