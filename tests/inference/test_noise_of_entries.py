"""The noise on each coordinate, against draws and against the whole."""

import numpy as np
import pytest

from confide.inference.noise_of_entries import deviations_of_entries
from confide.privacy.bundled_shapes import Bundles, shapes_of_groups
from confide.privacy.group_shapes import Groups, Linked
from confide.privacy.noise import Entropy
from confide.privacy.shapes import Ball, Cylinder

LINKED = ((1, 2, 4, 1), (1.0, 1.0, 1.0, 0.5), (False, True, True, False))
LONG = ((1, 1, 1, 12, 1), (1.0, 1.0, 2.0, 1.0, 1.0), (False, False, False, True, False))
BUNDLES = next(shape for shape in shapes_of_groups(*LONG) if isinstance(shape, Bundles))
SHAPES = [Ball(3, 2.0), Cylinder(5, 1.0, 0.5), Groups((1, 3, 1), (1.0, 2.0, 1.0)), Linked(*LINKED), BUNDLES]
CASES = [(shape, "laplace") for shape in SHAPES]
CASES += [(shape, "gaussian") for shape in SHAPES if shape is not BUNDLES]


@pytest.mark.parametrize(("shape", "law"), CASES, ids=lambda each: getattr(each, "name", each))
def test_the_mean_squares_are_those_of_draws_and_add_up_to_that_of_the_norm(shape, law):
    scale = 0.7
    found = deviations_of_entries(shape, law, scale)
    whole = shape.laplace_norm(scale) if law == "laplace" else shape.gaussian_norm(scale)
    assert np.sum(found**2) == pytest.approx(whole**2, rel=1e-9)
    entropy = Entropy.seeded(3)
    draws = (entropy.laplace if law == "laplace" else entropy.gaussian)(shape, 4_000, scale)
    # The largest relative error of 4,000 draws: Laplace draws have a kurtosis of about 6.
    np.testing.assert_allclose(found, np.sqrt(np.mean(draws**2, axis=0)), rtol=0.08)


def test_bundles_hold_a_group_away_from_the_constant():
    assert BUNDLES.away or len({BUNDLES.bundles}) == 1
    found = deviations_of_entries(BUNDLES, "laplace", 1.0)
    assert found.max() > 1.5 * found.min()
