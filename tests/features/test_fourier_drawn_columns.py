"""Random features of few columns each: which columns are drawn, by what chances, and what stays if others are left out."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from confide.errors import ParameterError, SchemaError
from confide.features.encoder import Encoder
from confide.features.fourier import FourierMap
from confide.features.schema import Schema

ORIGINS = (0, 0, 0, 1, 2, 2, 3, 0, 0)
"""A column of three hats with two atoms at the end, and three others."""
SCALES = (2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 9.0, 9.0)


def drawn(number=2000, **changes):
    given = {"reach": 2, "origins": ORIGINS, "scales": SCALES, "seed": 3}
    return FourierMap(len(ORIGINS), number, **given | changes)


def used(features):
    """(frequencies, origins): whether a frequency is not 0 in the columns of an origin."""
    held, origins = features.frequencies != 0.0, np.array(features.origins)
    return np.array([held[:, origins == origin].any(axis=1) for origin in np.unique(origins)]).T


@pytest.mark.parametrize("reach", [1, 2, 3, 4, 9])
def test_a_feature_is_a_function_of_so_many_columns(reach):
    """Of all their encoded columns; of all columns, where there are no more."""
    counts = used(drawn(reach=reach)).sum(axis=1)
    assert counts.max() == min(reach, 4)
    assert (counts == min(reach, 4)).mean() > 0.99  # a number near 0 is rounded to it


def test_a_column_is_drawn_in_proportion_to_its_squared_scale():
    """Of which the first encoded column says what it is: 4 of 7 draws. Its scale, 2 of 5, is rejected, and equal chances."""
    n_drawn = int(used(drawn(8000, reach=1))[:, 0].sum())
    assert stats.binomtest(n_drawn, 4000, 4 / 7).pvalue > 0.01
    assert stats.binomtest(n_drawn, 4000, 2 / 5).pvalue < 1e-6
    assert stats.binomtest(int(used(drawn(8000, reach=1, scales=()))[:, 0].sum()), 4000, 1 / 4).pvalue > 0.01


def test_the_columns_of_a_feature_are_drawn_one_after_the_other():
    """Without replacement: the first of two is that of the large scale, or it is the second by its share of what is left."""
    n_drawn = int(used(drawn(8000))[:, 0].sum())
    assert stats.binomtest(n_drawn, 4000, 4 / 7 + 3 / 7 * 4 / 6).pvalue > 0.01


def test_frequencies_are_those_of_the_kernel_whatever_the_scales():
    """Scales are chances here, and multiply nothing."""
    for scale in (0.5, 2.0):
        numbers = drawn(20_000, length_scale=scale).frequencies[:, 0]
        assert stats.kstest(scale * numbers[numbers != 0.0], stats.norm.cdf).pvalue > 0.01


@pytest.mark.parametrize("left_out", [(8,), (7, 8), (5, 8)])
def test_columns_that_are_left_out_change_no_other_frequency(left_out):
    """Empty slots of atoms are the last of their origin. A larger map begins with the frequencies of a smaller one."""
    kept = [place for place in range(len(ORIGINS)) if place not in left_out]
    origins, scales = (tuple(np.array(values)[kept].tolist()) for values in (ORIGINS, SCALES))
    less = FourierMap(len(kept), 2000, reach=2, origins=origins, scales=scales, seed=3)
    np.testing.assert_array_equal(less.frequencies, drawn().frequencies[:, kept])
    np.testing.assert_array_equal(drawn(100).frequencies, drawn().frequencies[:50])


def test_a_seed_means_the_same_columns_for_ever():
    """Which columns are drawn, and two numbers, as they were when such features were introduced."""
    features = drawn(8)
    assert used(features).astype(int).tolist() == [[1, 1, 0, 0], [1, 0, 0, 1], [1, 1, 0, 0], [1, 0, 1, 0]]
    np.testing.assert_allclose(
        features.frequencies[0, features.frequencies[0] != 0.0][:2], [1.319061, 1.498474], rtol=2.0**-14
    )
    assert (drawn(seed=4).frequencies != drawn().frequencies).any()


def test_a_description_brings_back_the_map():
    """Other maps say nothing of it, as before."""
    features = drawn()
    described = json.loads(json.dumps(features.to_dict()))
    assert FourierMap.from_dict(described) == features
    assert described["reach"] == 2
    assert "each of 2 columns that are drawn" in str(features)
    assert not {"reach", "origins"} & FourierMap(3, 4).to_dict().keys()


@pytest.mark.parametrize(
    "changes",
    [
        {"reach": -1}, {"reach": 1.5}, {"origins": ()}, {"origins": ORIGINS[1:]}, {"origins": 3}, {"reach": 0},
        {"origins": (-1, *ORIGINS[1:])}, {"orthogonal": True}, {"kernel": "laplacian"},
    ],
)  # fmt: skip
def test_what_is_no_such_map_is_refused(changes):
    with pytest.raises(ParameterError):
        drawn(**changes)
    with pytest.raises(ParameterError):
        FourierMap.from_dict(drawn().to_dict() | changes)


COLUMNS = {
    "gain": {"low": 0, "high": 20_000, "scale": "log", "knots": 3},
    "age": {"low": 0, "high": 100, "knots": 3},
    "job": {"categories": ["a", "b", "c"], "other": True},
}
FEATURES = {"number": 40, "length_scale": 1.0, "norm": 2.0, "columns": 1}


def test_a_schema_says_of_how_many_columns_its_features_are(tmp_path):
    """It comes back from its file, and the encoder knows which columns come from one."""
    schema = Schema(COLUMNS, random_features=FEATURES)
    (tmp_path / "table.toml").write_text(schema.to_toml())
    assert "columns = 1" in schema.to_toml()
    assert Schema.from_toml(tmp_path / "table.toml") == schema
    assert "40 random features of 1 drawn columns each, length scale 1, norm 2" in str(schema)
    encoder = Encoder(schema, slots=4)
    sizes = [group.size for group in encoder.groups]
    assert encoder.appended.features.origins == tuple(np.repeat([0, 1, 2, 0], sizes).tolist())
    with pytest.raises(SchemaError, match="columns must be a whole number"):
        Schema(COLUMNS, random_features=FEATURES | {"columns": -1})


def test_atoms_that_are_found_leave_the_features_of_other_columns_as_they_are():
    """With slots, of which two are filled, and with two atoms: the same features of the same rows."""
    schema = Schema(COLUMNS, random_features=FEATURES)
    found = replace(schema.columns[0], atoms=(0.0, 7.0))
    slotted = Encoder(schema, slots=8)
    made, kept = slotted.with_found([found])
    np.testing.assert_array_equal(slotted.appended.features.frequencies[:, kept], made.appended.features.frequencies)


def test_the_bound_of_a_row_with_hats_atoms_and_features_is_attained_and_kept():
    """Three columns, an atom and features of norm 2: no row is longer than the root of 8, and one is nearly as long."""
    columns = COLUMNS | {"gain": COLUMNS["gain"] | {"atoms": [0]}, "age": COLUMNS["age"] | {"knots": 1}}
    encoder = Encoder(Schema(columns, random_features=FEATURES))
    rng = np.random.default_rng(0)
    gain = np.where(rng.uniform(size=500) < 0.5, 0, rng.integers(0, 20_000, 500))
    frame = pd.DataFrame({"gain": gain, "age": rng.integers(0, 101, 500), "job": rng.choice(list("abcd"), 500)})
    frame.loc[0] = [0, 0, "a"]
    lengths = np.linalg.norm(encoder.appended.transform(encoder.transform(frame)).astype(float), axis=1)
    assert encoder.appended.row_bound.norm == pytest.approx(math.sqrt(4.0 + 4.0))
    assert lengths.max() <= encoder.appended.row_bound.norm * (1.0 + 2.0**-24)  # rows in single precision
    assert lengths.max() > 0.99 * encoder.appended.row_bound.norm
