"""Random features that a schema asks for."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from confide.errors import ParameterError, SchemaError
from confide.features.encoder import Encoder
from confide.features.fourier import FourierMap, RandomFeatures
from confide.features.schema import Schema

COLUMNS = {"age": {"low": 0, "high": 100, "knots": 3}, "job": {"categories": ["a", "b", "c"], "other": True}}
BAD = {
    "an odd number": ({"number": 3, "length_scale": 1}, "must be even"),
    "no features": ({"number": 0, "length_scale": 1}, "number must be a whole number from 2"),
    "half a feature": ({"number": 2.5, "length_scale": 1}, "number must be a whole number"),
    "no length scale": ({"number": 2}, '"length_scale" is missing'),
    "a length scale of 0": ({"number": 2, "length_scale": 0}, "length_scale must be a number from"),
    "a norm that is not a number": ({"number": 2, "length_scale": 1, "norm": math.nan}, "norm must be a number from"),
    "a norm that is text": ({"number": 2, "length_scale": 1, "norm": "2"}, "norm must be a number from"),
    "a seed below 0": ({"number": 2, "length_scale": 1, "seed": -1}, "seed must be a whole number from 0"),
    "a scale of 0": (
        {"number": 2, "length_scale": 1, "scales": [1, 0]},
        "each of random_features: scales must be a number from",
    ),
    "one scale for all": ({"number": 2, "length_scale": 1, "scales": 2}, "scales must be a list with a number for each"),
    "an unknown key": ({"number": 2, "length_scale": 1, "lenght": 1}, "unknown key"),
    "a number": (1000, "must be a table"),
}


@pytest.mark.parametrize(("described", "words"), BAD.values(), ids=BAD)
def test_a_description_that_is_not_valid_is_refused(described, words):
    """The message says what is expected, for schemas from Python and from a mapping."""
    for build in (lambda **parts: Schema(**parts), lambda **parts: Schema.from_dict(parts)):
        with pytest.raises(SchemaError, match=words):
            build(columns=COLUMNS, random_features=described)


def test_a_schema_with_random_features_comes_back_from_a_file(tmp_path):
    """What has its default value is not written. Schemas that differ in random features are not equal."""
    schema = Schema(COLUMNS, random_features={"number": 10, "length_scale": 1.5, "norm": 4})
    assert schema.random_features == RandomFeatures(10, 1.5, 4.0)
    assert "random_features = { number = 10, length_scale = 1.5, norm = 4 }\n" in schema.to_toml()
    path = tmp_path / "table.toml"
    path.write_text(schema.to_toml())
    assert Schema.from_toml(path) == schema != Schema(COLUMNS)
    assert str(schema).endswith("\n  10 random features of all columns, length scale 1.5, norm 4")
    assert repr(schema) == "Schema(2 columns, 10 random features)"
    assert Schema({"a": {"low": 0, "high": 1}}, random_features=None).random_features is None


def test_the_encoder_says_how_models_append_them():
    """The map takes the encoded columns, and its bound holds every row. The encoder's own columns do not change."""
    schema = Schema(COLUMNS, random_features={"number": 8, "length_scale": 0.5, "norm": 3.0, "seed": 7})
    encoder, plain = Encoder(schema), Encoder(Schema(COLUMNS))
    assert plain.appended is None
    assert encoder.feature_names == plain.feature_names
    frame = pd.DataFrame({"age": [0.0, 33.0, 100.0], "job": ["a", "c", "z"]})
    mapped = encoder.appended.transform(encoder.transform(frame))
    assert mapped.shape == (3, encoder.n_features + 8)
    np.testing.assert_allclose(np.linalg.norm(mapped[:, -8:], axis=1), 3.0, rtol=1e-6)
    assert encoder.appended.features.seed == 7
    assert encoder.appended.features.orthogonal
    assert encoder.appended.row_bound.norm == pytest.approx(math.sqrt(2.0 + 9.0))
    np.testing.assert_allclose(encoder.appended.row_bound.clip(mapped), mapped, rtol=2.0**-22)


def test_too_many_columns_for_so_many_features_are_refused():
    """The schema says that its random features are the reason."""
    columns = {f"x{i}": {"low": 0, "high": 1} for i in range(600)}
    with pytest.raises(SchemaError, match="random_features: the map is too large"):
        Encoder(Schema(columns, random_features={"number": 2**16, "length_scale": 1}))


def test_scales_multiply_the_frequencies_of_their_columns(tmp_path):
    """Each has one number for all encoded columns of a column, atoms and interactions included; none may be left out."""
    schema = Schema(COLUMNS, random_features={"number": 8, "length_scale": 0.5, "scales": [2, 0.25]})
    plain = Encoder(Schema(COLUMNS, random_features={"number": 8, "length_scale": 0.5})).appended.features
    encoder = Encoder(schema)
    features = encoder.appended.features
    assert features.scales == (2.0,) * 5 + (0.25,) * 4
    np.testing.assert_allclose(features.frequencies, plain.frequencies * features.scales, atol=2.0**-13 * 4)
    assert features != plain
    path = tmp_path / "table.toml"
    path.write_text(schema.to_toml())
    assert Schema.from_toml(path) == schema
    assert str(schema).endswith("length scale 0.5 over a scale for each column, norm 1")
    with pytest.raises(SchemaError, match="there are 1 scales; give 2"):
        Encoder(Schema(COLUMNS, random_features={"number": 8, "length_scale": 0.5, "scales": [2]}))
    atoms = {"age": COLUMNS["age"] | {"atoms": [0]}, "job": COLUMNS["job"]}
    more = Schema(atoms, interact=[["age", "job"]], random_features={"number": 2, "length_scale": 1, "scales": [1, 2, 3, 4]})
    encoder = Encoder(more)
    assert encoder.signed == (False, False, True, False)
    sizes = [group.size for group in encoder.groups]
    assert encoder.appended.features.scales == tuple(np.repeat([1.0, 2.0, 3.0, 4.0], sizes))


@pytest.mark.parametrize("scales", [(), (2.0, 0.5, 1.0, 1.0)])
def test_features_may_see_fewer_knots_than_curves_have(scales):
    """Curves with 13 knots hold those with 6 among them, and features that see 6 are the same function of a row."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.uniform(-1, 11, 300), "b": rng.uniform(0, 1, 300), "c": rng.choice(["x", "y", "z"], 300)})
    rows.loc[:20, "a"] = np.nan

    def features(knots, seen):
        columns = {
            "a": {"low": 0, "high": 10, "knots": knots, "missing": True}, "c": {"categories": ["x", "y", "z"]},
            "b": {"low": 0, "high": 1, "knots": 2},
        }  # fmt: skip
        described = {"number": 40, "length_scale": 1.5, "knots": seen} | ({"scales": scales} if scales else {})
        schema = Schema(columns, interact=[["c", "b"]], random_features=described)
        encoder = Encoder(Schema.from_dict(schema.to_dict()))
        appended = encoder.appended
        assert FourierMap.from_dict(appended.features.to_dict()) == appended.features
        return appended.transform(encoder.transform(rows))[:, encoder.n_features :]

    np.testing.assert_allclose(features(13, 6), features(6, 0), atol=1e-3)
    assert np.abs(features(13, 0) - features(6, 0)).max() > 0.1
    for few in (6, 7):  # curves without more knots are seen as they are
        np.testing.assert_array_equal(features(6, few), features(6, 0))


def test_places_are_checked():
    """They begin at 0 and leave none out, and features of a few drawn columns have none."""
    for wrong in ((0.0,), (0.0, 1.5), (1.5, 2.0), (1.0, 0.5), (0.0, math.nan), "01"):
        with pytest.raises(ParameterError, match="places"):
            FourierMap(2, 4, places=wrong)
    assert FourierMap(2, 4, places=(0.0, 0.5)) == FourierMap.from_dict(FourierMap(2, 4, places=(0.0, 0.5)).to_dict())
    columns = {"a": {"low": 0, "high": 1, "knots": 9}, "b": {"low": 0, "high": 1}}
    with pytest.raises(SchemaError, match="random_features: a reach needs"):
        Encoder(Schema(columns, random_features={"number": 4, "length_scale": 1.0, "columns": 1, "knots": 6}))
