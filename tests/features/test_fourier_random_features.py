"""Random features that a schema asks for."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from confide.errors import SchemaError
from confide.features.encoder import Encoder
from confide.features.fourier import RandomFeatures
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
