"""Public maps: what all of them have in common, and reading them from a file."""

from __future__ import annotations

import json

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.features.forms import map_from_dict
from confide.features.fourier import CurvesAndFeatures, FourierMap

FEATURES = FourierMap(2, 6, seed=3)
MAPS = [FEATURES, CurvesAndFeatures(FEATURES, 0.5, 2.0)]


@pytest.mark.parametrize("public_map", MAPS)
def test_every_map_comes_back_from_its_file(public_map):
    """The kind in the file decides which map it is."""
    assert map_from_dict(json.loads(json.dumps(public_map.to_dict()))) == public_map


@pytest.mark.parametrize("public_map", MAPS)
def test_the_bound_of_a_map_holds_its_rows(public_map):
    """Names and columns agree, and the bound clips no mapped row."""
    mapped = public_map.transform(np.random.default_rng(0).uniform(-1, 1, (20, 2)))
    assert mapped.shape[1] == public_map.n_features == len(public_map.names_for(("a", "b")))
    np.testing.assert_array_equal(public_map.row_bound.clip(mapped), mapped)
    assert public_map.may_have(public_map.row_bound)


@pytest.mark.parametrize("value", [{"kind": "other"}, {}, [], "fourier"])
def test_an_unknown_map_is_refused(value):
    """The message says that the map or its keys are not understood."""
    with pytest.raises(ParameterError, match=r"Fourier map is described|does not understand"):
        map_from_dict(value)
