"""Spark DataFrames: the weights of memory to the last sealed digit. Needs PySpark and Java: the optional part `spark`."""

from __future__ import annotations

import os
import shutil
import sys
import traceback
import warnings

import numpy as np
import pytest

import confide
from confide.intake.opening import open_rows
from tests.data.tables import SCHEMA, made_up

pytest.importorskip("pyspark", reason="PySpark is not installed: make test EXTRAS=spark")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None and "JAVA_HOME" not in os.environ, reason="Java is not installed"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Spark leaves its gateway to the end of the process
]


@pytest.fixture(scope="module")
def spark():
    """Spark in one process of Java, with two Python workers of this interpreter."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def test_a_fit_on_spark_is_the_fit_in_memory(spark, tmp_path, monkeypatch):
    """Nine partitions and one that is empty, added up by workers first; the frame is not left persisted."""
    monkeypatch.setattr("confide.data.spark._MOST_OUTCOMES_TO_DRIVER", 2)
    frame = made_up(600)
    frame.to_parquet(tmp_path / "t.parquet")
    whole = spark.read.parquet(str(tmp_path / "t.parquet"))
    rows = whole.repartition(9).union(whole.limit(0))
    memory = confide.LogisticRegression(2.0, schema=SCHEMA, random_state=3).fit(frame, frame["ill"])
    model = confide.LogisticRegression(2.0, random_state=3).fit(open_rows(rows, SCHEMA))
    assert np.array_equal(model.coef_, memory.coef_)
    assert set(memory.guarantee_.assumptions) < set(model.guarantee_.assumptions)
    assert "each partition came out the same whenever it was computed" in model.guarantee_.statement()
    assert not spark.sparkContext._jsc.getPersistentRDDs()


def test_partitions_that_come_out_different_are_refused(spark, tmp_path, monkeypatch):
    """As where what was kept was dropped, and computed again with other rows. The charge stands."""
    frame = made_up(300)
    frame.to_parquet(tmp_path / "t.parquet")
    whole = spark.read.parquet(str(tmp_path / "t.parquet"))

    def shuffled(batches):
        rng = np.random.default_rng()
        for batch in batches:
            yield batch.take(rng.permutation(batch.num_rows))

    monkeypatch.setattr(type(whole), "persist", lambda self, level=None: self)
    ledger = confide.Ledger(limit=confide.PureDP(5.0))
    model = confide.LogisticRegression(1.0, ledger=ledger)
    with pytest.raises(ValueError, match="what the partitions hold changed while it was read"):
        model.fit(open_rows(whole.mapInArrow(shuffled, whole.schema), SCHEMA))
    assert len(ledger.entries()) == 1
    model.fit(open_rows(whole, SCHEMA))


def test_an_error_in_the_users_own_partitions_is_named_by_its_type(spark, tmp_path):
    """What it says may be a cell."""
    frame = made_up(100)
    frame.to_parquet(tmp_path / "t.parquet")
    whole = spark.read.parquet(str(tmp_path / "t.parquet"))

    def failing(batches):
        raise LookupError("secret")
        yield

    with pytest.raises(ValueError, match="the cluster failed with ") as caught:
        confide.LogisticRegression(1.0).fit(open_rows(whole.mapInArrow(failing, whole.schema), SCHEMA))
    assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_bad_rows_are_refused_before_the_charge(spark, tmp_path):
    """One label of one partition, persons, absent columns."""
    frame = made_up(100)
    frame.loc[99, "ill"] = "secret"
    frame.to_parquet(tmp_path / "t.parquet")
    whole = spark.read.parquet(str(tmp_path / "t.parquet"))
    ledger = confide.Ledger(limit=confide.PureDP(5.0))
    with pytest.raises(ValueError, match="neither 'no' nor 'yes'"):
        confide.LogisticRegression(1.0, ledger=ledger).fit(open_rows(whole, SCHEMA))
    assert len(ledger.entries()) == 0
    persons = confide.Schema(columns=SCHEMA.columns, target=SCHEMA.target, person="note")
    with pytest.raises(ValueError, match="several partitions"):
        confide.LogisticRegression(1.0).fit(open_rows(whole, persons))
    with pytest.raises(ValueError, match='twice: "age"'):
        open_rows(whole.drop("age"), SCHEMA)
