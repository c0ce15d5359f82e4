"""A target of counts names the column of their exposure, and its bounds."""

from __future__ import annotations

import numpy as np
import pytest

from confide import InputError, Schema, SchemaError
from confide.features.cells import Exposure, NumberTarget

COLUMNS = {"age": {"low": 0, "high": 100}}
TARGET = {"column": "visits", "low": 0, "high": 20, "exposure": {"column": "years", "low": 0.5, "high": 5}}


def test_a_schema_with_an_exposure_is_the_same_after_it_was_written(tmp_path):
    """As TOML and as JSON; the exposure is compared, and shown."""
    schema = Schema(COLUMNS, TARGET)
    assert Schema.from_dict(schema.to_dict()) == schema
    (tmp_path / "schema.toml").write_text(schema.to_toml(), encoding="utf-8")
    assert Schema.from_toml(tmp_path / "schema.toml") == schema
    assert schema.target.exposure == Exposure("years", 0.5, 5.0)
    assert schema != Schema(COLUMNS, {**TARGET, "exposure": {"column": "years", "low": 0.5, "high": 4}})
    assert "visits: number from 0 to 20 per unit of years" in str(schema)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"exposure": "years"}, "exposure must be a table such as"),
        ({"exposure": {"column": "years", "low": 1}}, '"high" is missing'),
        ({"exposure": {"column": "", "low": 1, "high": 2}}, "exposure: column"),
        ({"exposure": {"column": "years", "low": 0, "high": 2}}, "low must be above 0"),
        ({"exposure": {"column": "years", "low": 2, "high": 2}}, "below high"),
        ({"exposure": {"column": "years", "low": 1e-7, "high": 1e3}}, "between 1e-9 and 1e9"),
        ({"exposure": {"column": "years", "low": 1, "high": "many"}}, "high must be a finite number"),
        ({"exposure": {"column": "age", "low": 1, "high": 2}}, "is the exposure, so it must not be among the columns"),
        ({"exposure": {"column": "visits", "low": 1, "high": 2}}, "cannot be the target"),
        ({"low": -1}, "exposure is for counts"),
    ],
)
def test_an_exposure_that_contradicts_itself_is_refused(change, message):
    """The message says where it stands."""
    with pytest.raises(SchemaError, match=message):
        Schema(COLUMNS, {**TARGET, **change})
    with pytest.raises(SchemaError, match="exposure is for counts"):
        Schema(COLUMNS, {"column": "visits", "negative": 0, "positive": 1, "exposure": TARGET["exposure"]})


def test_exposures_are_read_beside_their_counts():
    """Clipped and divided by the unit; after the check what cannot be used counts as the least."""
    target = NumberTarget("visits", True, 0.0, 20.0, exposure=Exposure("years", 0.5, 5.0), unit=2.5)
    table = {"years": np.array([0.1, 2.5, 9.0])}
    read = target.read(np.array([1.0, 30.0, 3.0]), table=table)
    assert read["count"].tolist() == [1.0, 20.0, 3.0]
    assert read["exposure"].tolist() == [0.2, 1.0, 2.0]
    for wrong in (0.0, -1.0, np.nan, np.inf):
        table = {"years": np.array([1.0, wrong])}
        with pytest.raises(InputError, match='column "years": each must be a finite number above 0'):
            target.read(np.ones(2), table=table)
        least = 2.0 if wrong == np.inf else 0.2
        assert target.read(np.ones(2), table=table, refuse=False)["exposure"].tolist() == [0.4, least]
