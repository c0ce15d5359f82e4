"""Spark DataFrames: the weights of memory to the last sealed digit, each partition counted once.

Needs PySpark and Java: the optional part `spark`.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import traceback
import warnings

import numpy as np
import pandas as pd
import pytest

import confide
from confide.intake.rows import open_rows
from tests.data.tables import SCHEMA, made_up
from tests.models.test_exports_formulas import STRANGE, check, expected, strange_rows

pytest.importorskip("pyspark", reason="PySpark is not installed: make test EXTRAS=spark")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.skipif(shutil.which("java") is None and "JAVA_HOME" not in os.environ, reason="Java is not installed"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Spark leaves its gateway to the end of the process
]


@pytest.fixture(scope="module")
def spark():
    """Spark in one process of Java, with two Python workers of this interpreter; a task that fails is tried three times."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        # For some hundred queries over few rows, most of the time is that of compiling code.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.python.daemon.module": "tests.data.spark_daemon",
    }
    builder = SparkSession.builder.master("local[2, 3]")
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


def killing_its_worker(path, moments):
    """Rows of a partition whose process is killed (SIGKILL) amid them when they are read for these times."""

    def tables_of(batches):
        def tables(names, n_rows):
            from pyspark import TaskContext

            for number, batch in enumerate(batches):
                yield batch.select(list(names))
                if TaskContext.get().partitionId() == 1 and number == 0:
                    n_before = path.stat().st_size if path.exists() else 0
                    path.write_bytes(bytes(n_before + 1))
                    if n_before in moments:
                        os.kill(os.getpid(), signal.SIGKILL)

        return tables

    return tables_of


@pytest.fixture
def parts(spark, tmp_path):
    """Rows in two partitions, of several batches each."""
    made_up(600).to_parquet(tmp_path / "t.parquet")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "50")
    yield spark.read.parquet(str(tmp_path / "t.parquet")).repartition(2)
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def test_workers_that_are_killed_amid_passes_change_no_bit_of_a_fit(parts, tmp_path, monkeypatch):
    """In the check and in two passes of the fit, amid a partition: the task is repeated, and each row counts once."""
    never, killed = tmp_path / "never", tmp_path / "killed"
    monkeypatch.setattr("confide.data.spark._tables", killing_its_worker(never, ()))
    undisturbed = confide.LogisticRegression(2.0, random_state=3).fit(open_rows(parts, SCHEMA))
    ledger = confide.Ledger(limit=5.0)
    model = confide.LogisticRegression(2.0, random_state=3, ledger=ledger)
    monkeypatch.setattr("confide.data.spark._tables", killing_its_worker(killed, (0, 2, 4)))
    model.fit(open_rows(parts, SCHEMA))
    assert killed.stat().st_size == never.stat().st_size + 3
    assert np.array_equal(model.coef_, undisturbed.coef_)
    assert np.array_equal(model.intercept_, undisturbed.intercept_)
    assert len(ledger.entries()) == 1


def test_a_partition_that_kills_every_worker_stops_the_fit_in_words(parts, tmp_path, monkeypatch):
    """Spark gives up on it. Nothing is released, the charge stands, and the ledger and Spark go on."""
    ledger = confide.Ledger(tmp_path / "ledger.db", limit=5.0)
    model = confide.LogisticRegression(1.0, ledger=ledger)
    with monkeypatch.context() as patched:
        patched.setattr("confide.data.spark._tables", killing_its_worker(tmp_path / "killed", range(1, 100)))
        with pytest.raises(confide.FileError, match=r"cluster failed with .*what was charged stays charged"):
            model.fit(open_rows(parts, SCHEMA))
    assert not hasattr(model, "coef_")
    assert len(confide.Ledger(tmp_path / "ledger.db").entries()) == 1
    model.fit(open_rows(parts, SCHEMA))
    assert len(ledger.entries()) == 2


def failing(frame, path, moments):
    """The frame, of which one partition fails amid its rows, with a cell in the message, when computed for these times."""

    def partition(batches):
        from pyspark import TaskContext

        for number, batch in enumerate(batches):
            yield batch
            if TaskContext.get().partitionId() == 1 and number == 0:
                n_before = path.stat().st_size if path.exists() else 0
                path.write_bytes(bytes(n_before + 1))
                if n_before in moments:
                    raise LookupError("secret 7")

    return frame.mapInArrow(partition, frame.schema)


def test_tasks_that_are_repeated_count_once(parts, tmp_path, monkeypatch):
    """A task fails in the check and in two passes, and is tried again. No partition is kept, so all passes compute them."""
    monkeypatch.setattr(type(parts), "persist", lambda self, level=None: self)
    never, failed = tmp_path / "never", tmp_path / "failed"
    undisturbed, model = (confide.LogisticRegression(2.0, random_state=3) for _ in range(2))
    undisturbed.fit(open_rows(failing(parts, never, ()), SCHEMA))
    model.fit(open_rows(failing(parts, failed, (0, 2, 4)), SCHEMA))
    assert failed.stat().st_size == never.stat().st_size + 3
    assert np.array_equal(model.coef_, undisturbed.coef_)
    ledger = confide.Ledger(limit=5.0)
    with pytest.raises(confide.FileError, match=r"cluster failed with .*what was charged stays charged") as caught:
        confide.LogisticRegression(1.0, ledger=ledger).fit(
            open_rows(failing(parts, tmp_path / "again", range(1, 100)), SCHEMA)
        )
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    assert len(ledger.entries()) == 1


def test_a_query_predicts_in_spark_what_the_model_predicts(spark):
    """Names and levels with quotes and backslashes, log scales, truth values and ranks among them."""
    frame = strange_rows()
    model = confide.LogisticRegression(2.0, schema=STRANGE).fit(frame, frame["ill"])
    spark.createDataFrame(frame.astype(object).where(frame.notna(), None)).createOrReplaceTempView("people")
    given = spark.sql(model.to_sql("people", "spark"))
    found = pd.DataFrame([row.asDict() for row in given.collect()], columns=given.columns)
    check(found, expected(model, frame), frame)
