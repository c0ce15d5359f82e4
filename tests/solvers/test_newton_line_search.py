"""Searches along lines by slopes find the flattest point of each line."""

from __future__ import annotations

import numpy as np
import pytest

from confide.erm.row_sums import Totals
from confide.solvers.newton import flat_steps


class Lines:
    """Problems of one weight, each with a slope of its own. They count passes."""

    def __init__(self, *slopes):
        self.slopes, self.counted = slopes, [0]

    def restrict(self, which):
        """Some of the problems; one may be asked for several times."""
        some = Lines(*(self.slopes[j] for j in which))
        some.counted = self.counted
        return some

    def evaluate(self, weights, order):
        """The slopes at the weights."""
        self.counted[0] += 1
        gradient = np.array([[slope(w)] for slope, w in zip(self.slopes, weights[:, 0], strict=True)])
        return Totals(np.full(len(weights), np.nan), gradient, np.empty((len(weights), 0, 0)))


def searched(*slopes, flatness=1e-2):
    """Steps from 0 in the direction of 1, the slopes there, and the number of passes."""
    lines, k = Lines(*slopes), len(slopes)
    first = np.array([slope(0.0) for slope in slopes])
    steps, gradients = flat_steps(lines, np.zeros((k, 1)), np.ones((k, 1)), first, flatness)
    return steps, gradients[:, 0], lines.counted[0]


@pytest.mark.parametrize("at", [1e-12, 1e-5, 0.3, 1.0, 7.0, 1e4, 1e12])
def test_the_zero_of_a_slope_is_found_at_any_scale(at):
    """The slope is that of a parabola. The search takes few passes and returns the gradient at the point."""
    steps, found, passes = searched(lambda w: w / at - 1.0)
    assert abs(steps[0] / at - 1.0) <= 1e-2
    assert found[0] == steps[0] / at - 1.0
    assert passes <= 8


def test_several_lines_are_searched_in_the_same_passes():
    """Each search ends where the slope of its line is flat. One slope bends suddenly."""
    slopes = (lambda w: w - 1.0, lambda w: np.expm1(w - 3.0), lambda w: -1.0 if w < 0.37 else 40.0 * (w - 0.3701))
    steps, found, passes = searched(*slopes)
    assert (np.abs(found) <= 1e-2 * np.array([1.0, 1.0, 1.0])).all()
    np.testing.assert_allclose(steps, [1.0, 3.0, 0.3701], rtol=2e-2)
    assert passes <= 12


def test_what_cannot_be_computed_is_too_far():
    """Slopes of NaN beyond 2 bound the search from above. A line whose slopes are all NaN has no step."""
    steps, found, _ = searched(lambda w: np.nan if w > 2.0 else w - 1.5, lambda w: -1.0 if w == 0.0 else np.nan)
    assert abs(steps[0] - 1.5) <= 2e-2
    assert np.isnan(steps[1])
    assert np.isnan(found[1])
    # A point of the first pass is flat already, although others cannot be computed.
    assert searched(lambda w: np.nan if w > 2.0 else w - 1.0) == (1.0, 0.0, 1)


def test_a_slope_that_jumps_ends_at_its_flattest_point():
    """No point is flat enough, and the search ends all the same."""
    steps, found, passes = searched(lambda w: -1.0 if w < 0.5 else 0.25)
    assert found[0] == 0.25
    assert steps[0] >= 0.5
    assert passes <= 12
