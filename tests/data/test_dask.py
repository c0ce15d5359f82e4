"""Dask collections and clusters: the weights of memory to the last sealed digit, each partition counted once."""

from __future__ import annotations

import logging
import math
import os
import signal
import traceback
from dataclasses import replace

import numpy as np
import pytest

import confide
from confide.data.dask import DaskRows, outcome_of
from confide.data.partitions import Task
from confide.data.streams import Reading
from confide.erm.losses import LogisticLoss
from confide.erm.row_sums import RowSum
from confide.errors import ParameterError
from confide.features.encoder import Encoder
from confide.intake.rows import open_rows
from tests.data.back_end_contract import check_back_end
from tests.data.tables import SCHEMA, made_up, written

dask = pytest.importorskip("dask", reason="Dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="Dask is not installed")
da = pytest.importorskip("dask.array", reason="Dask is not installed")
distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")


@pytest.fixture(scope="module")
def client():
    """A cluster of two processes, which gives up on a task that has killed three workers."""
    silent = {"silence_logs": logging.CRITICAL, "dashboard_address": ":0"}  # a free port, for clusters side by side
    settings = {
        "distributed.scheduler.allowed-failures": 2,
        # Who calls a worker that was killed does not wait half a minute for it; one that starts again may take its time.
        "distributed.comm.timeouts.connect": "10s",
        "distributed.deploy.lost-worker-timeout": "5 minutes",
        # Workers are forked from a process that has imported what they need.
        "distributed.worker.multiprocessing-method": "forkserver",
    }
    with dask.config.set(settings):
        needed = ["distributed", "dask.dataframe", "pandas", "pyarrow.parquet", "confide.data.dask", __name__]
        distributed.utils.get_mp_context().set_forkserver_preload(needed)
    with (
        dask.config.set(settings),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **silent) as cluster,
        distributed.Client(cluster) as found,
    ):
        yield found


@pytest.fixture(scope="module")
def memory():
    """The frame, and the fit in memory."""
    frame = made_up()
    return frame, confide.LogisticRegression(2.0, schema=SCHEMA, random_state=3).fit(frame, frame["ill"])


def test_dask_keeps_the_contract_of_a_back_end():
    """By Dask's threads, in this process."""
    check_back_end(lambda frame, schema, n: open_rows(dd.from_pandas(frame, npartitions=n), schema))


def without_place(guarantee):
    """The guarantee without the sentence on partitions, which must be there."""
    others = tuple(sentence for sentence in guarantee.assumptions if "came out the same whenever" not in sentence)
    assert len(others) == len(guarantee.assumptions) - 1
    return replace(guarantee, assumptions=others, circumstances=replace(guarantee.circumstances, place="here"))


def fitted(rows):
    return confide.LogisticRegression(2.0, random_state=3).fit(rows)


def test_a_fit_on_a_cluster_is_the_fit_in_memory(client, memory, tmp_path):
    """A DataFrame of 11 partitions, more than one node of the tree adds up, and files read by the workers."""
    frame, model = memory
    for rows in (
        open_rows(dd.from_pandas(frame, npartitions=11), SCHEMA),
        open_rows(written(frame, tmp_path, "parquet"), SCHEMA, client=client),
        open_rows(written(frame, tmp_path, "feather"), SCHEMA, client=client),
    ):
        found = fitted(rows)
        assert np.array_equal(found.coef_, model.coef_)
        assert without_place(found.guarantee_) == model.guarantee_


def test_arrays_on_a_cluster_are_those_in_memory(client):
    """Chunks that do not fit each other; labels declared by none; a kernel too."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 4))
    y = (X[:, 0] > 0).astype(int)
    rows = open_rows(da.from_array(X, chunks=(370, 3)), labels=da.from_array(y, chunks=333))
    for estimator in (
        confide.LogisticRegression(2.0, random_state=0),
        confide.KernelSVC(2.0, random_state=0, n_features=16),
    ):
        there = estimator.fit(rows)
        weights, guarantee, width = there.coef_, there.guarantee_, there.n_features_in_
        here = estimator.fit(X, y)
        assert np.array_equal(weights, here.coef_)
        assert without_place(guarantee) == here.guarantee_
        assert width == 4


def test_a_regression_on_a_cluster_is_that_in_memory(client, tmp_path):
    """A DataFrame, files read by the workers, and arrays, with targets in place of labels."""
    frame = made_up(1500, age="float64")
    frame = frame.assign(visits=np.random.default_rng(1).poisson(3.0, 1500))
    schema = confide.Schema(columns=SCHEMA.columns)
    model = confide.PoissonRegressor(2.0, random_state=3, target_bound=10.0)
    memory = (
        confide.PoissonRegressor(2.0, random_state=3, schema=schema, target_bound=10.0).fit(frame, frame["visits"]).coef_
    )
    for rows in (
        open_rows(dd.from_pandas(frame, npartitions=11), schema, target="visits"),
        open_rows(written(frame, tmp_path, "parquet"), schema, target="visits", client=client),
    ):
        assert np.array_equal(model.fit(rows).coef_, memory)
    X = np.random.default_rng(0).normal(size=(1500, 4))
    rows = open_rows(da.from_array(X, chunks=(370, 3)), labels=da.from_array(X[:, 0], chunks=333))
    there = confide.HuberRegressor(2.0, random_state=0, target_bound=1.0).fit(rows)
    assert np.array_equal(there.coef_, confide.HuberRegressor(2.0, random_state=0, target_bound=1.0).fit(X, X[:, 0]).coef_)
    assert there.n_features_in_ == 4


def test_a_task_that_is_run_again_counts_once(memory, client):
    """A pass while a worker is lost: its partitions are computed anew elsewhere, and the sums are the same to the bit."""
    frame, _ = memory
    reading = Reading(Encoder(SCHEMA), ("no", "yes"))
    row_sum = RowSum(LogisticLoss(), reading.encoder.row_bound, 1.0, 2)
    weights = np.full((1, reading.n_features + 1), 0.1)
    rows = open_rows(dd.from_pandas(frame, npartitions=9), SCHEMA)
    with rows.checked(reading, 1) as (source, _):
        first = source.sum_over_rows(row_sum, weights)
        client.restart_workers([next(iter(client.scheduler_info()["workers"]))])
        again = source.sum_over_rows(row_sum, weights)
    assert np.array_equal(first.hessian, again.hessian)


def test_equal_tasks_have_equal_keys(memory):
    """So that a cluster that is handed one twice computes it once."""
    from dask.delayed import delayed

    frame, _ = memory
    reading = Reading(Encoder(SCHEMA), ("no", "yes"))

    def key(weight):
        row_sum = RowSum(LogisticLoss(), reading.encoder.row_bound, 1.0, 1)
        task = Task(reading, row_sum, np.full((1, reading.n_features + 1), weight))
        return delayed(outcome_of, pure=True)(delayed(task, pure=True), 0, frame).key

    assert key(0.5) == key(0.5)
    assert key(0.5) != key(0.25)


def killing_its_worker(frame, path, moments):
    """One partition; the process that computes it is killed (SIGKILL) when it is computed for these times."""
    n_before = path.stat().st_size if path.exists() else 0
    path.write_bytes(bytes(n_before + 1))
    if n_before in moments:
        os.kill(os.getpid(), signal.SIGKILL)
    return frame


def rows_whose_workers_die(frame, path, moments, client):
    from dask.delayed import delayed

    parts = [delayed(frame[i::5]) for i in range(4)] + [delayed(killing_its_worker)(frame[4::5], path, moments)]
    return open_rows(dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False), SCHEMA, client=client)


def test_workers_that_are_killed_amid_passes_change_no_bit_of_a_fit(client, memory, tmp_path):
    """In the check and in a pass of the fit: their tasks are run again elsewhere, and each row counts once."""
    frame, _ = memory
    undisturbed = fitted(rows_whose_workers_die(frame, tmp_path / "never", (), client))
    ledger = confide.Ledger(limit=5.0)
    model = confide.LogisticRegression(2.0, random_state=3, ledger=ledger)
    model.fit(rows_whose_workers_die(frame, tmp_path / "killed", (0, 2), client))
    assert (tmp_path / "killed").stat().st_size == (tmp_path / "never").stat().st_size + 2
    assert np.array_equal(model.coef_, undisturbed.coef_)
    assert np.array_equal(model.intercept_, undisturbed.intercept_)
    assert len(ledger.entries()) == 1


def test_a_partition_that_kills_every_worker_stops_the_fit_in_words(client, memory, tmp_path):
    """Dask gives up on it. Nothing is released, the charge stands, and the ledger and the cluster go on."""
    frame, _ = memory
    ledger = confide.Ledger(tmp_path / "ledger.db", limit=5.0)
    model = confide.LogisticRegression(1.0, ledger=ledger)
    with pytest.raises(confide.FileError, match=r"cluster failed with KilledWorker.*what was charged stays charged"):
        model.fit(rows_whose_workers_die(frame, tmp_path / "n", range(1, 100), client))
    assert not hasattr(model, "coef_")
    assert len(confide.Ledger(tmp_path / "ledger.db").entries()) == 1
    model.fit(rows_whose_workers_die(frame, tmp_path / "m", (), client))
    assert len(ledger.entries()) == 2


def other_rows_each_time(frame, path, fail_at=None):
    """One partition that has other ages whenever it is computed; or that fails then, with a cell in the message."""
    n_before = path.stat().st_size if path.exists() else 0
    path.write_bytes(bytes(n_before + 1))
    if n_before == fail_at:
        raise LookupError("secret 7")
    return frame.assign(age=np.random.default_rng(n_before).uniform(0, 100, len(frame)).astype("float32"))


def test_partitions_that_come_out_different_are_refused_unless_they_are_kept(client, tmp_path, caplog):
    """As a file that changed is. The charge stands; persisted, they are computed once, and fitted."""
    from dask.delayed import delayed

    frame = made_up(400)
    parts = [delayed(frame), delayed(other_rows_each_time)(frame, tmp_path / "n")]
    collection = dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)
    ledger = confide.Ledger(limit=confide.PureDP(5.0))
    model = confide.LogisticRegression(1.0, ledger=ledger)
    with pytest.raises(ValueError, match="what the partitions hold changed while it was read, so nothing is released"):
        model.fit(open_rows(collection, SCHEMA))
    assert len(ledger.entries()) == 1
    assert caplog.text == ""
    model.fit(open_rows(collection.persist(), SCHEMA))
    assert len(ledger.entries()) == 2


@pytest.mark.parametrize(("fail_at", "charges"), [(0, 0), (1, 1)])
def test_an_error_in_the_users_own_partitions_is_named_by_its_type(fail_at, charges, tmp_path):
    """Before the charge and after it; what it says may be a cell."""
    from dask.delayed import delayed

    frame = made_up(100)
    collection = dd.from_delayed(
        [delayed(other_rows_each_time)(frame, tmp_path / "n", fail_at)], meta=frame.iloc[:0], verify_meta=False
    )
    ledger = confide.Ledger(limit=confide.PureDP(5.0))
    with pytest.raises(ValueError, match="failed with LookupError") as caught:
        confide.LogisticRegression(1.0, ledger=ledger).fit(open_rows(collection, SCHEMA))
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    assert len(ledger.entries()) == charges


def test_bad_rows_are_refused_before_the_charge_and_not_in_logs(client, memory, caplog):
    """One label of one partition: the message of rows in memory."""
    frame, _ = memory
    bad = frame.copy()
    bad.loc[2500, "ill"] = "secret"
    ledger = confide.Ledger(limit=confide.PureDP(5.0))
    with pytest.raises(ValueError, match="neither 'no' nor 'yes'"):
        confide.LogisticRegression(1.0, ledger=ledger).fit(open_rows(dd.from_pandas(bad, npartitions=4), SCHEMA))
    assert len(ledger.entries()) == 0
    assert "secret" not in caplog.text


def test_what_cannot_be_fitted_is_refused(memory):
    """Persons, absent columns, arrays of unknown sizes or of other lengths, a schema for an array."""
    frame, _ = memory
    collection = dd.from_pandas(frame, npartitions=2)
    persons = confide.Schema(columns=SCHEMA.columns, target=SCHEMA.target, person="note")
    with pytest.raises(ValueError, match="several partitions"):
        fitted(open_rows(collection, persons))
    with pytest.raises(ValueError, match='lacks columns that the schema describes, or has them twice: "age"'):
        open_rows(collection.drop(columns="age"), SCHEMA)
    X, y = da.ones((10, 2), chunks=5), da.ones(9, chunks=3)
    with pytest.raises(ValueError, match="one label for each row"):
        open_rows(X, labels=y)
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        open_rows(X[X[:, 0] > 0], labels=y)
    with pytest.raises(TypeError, match="Dask DataFrame"):
        open_rows(X, SCHEMA)
    with pytest.raises(ValueError, match="targets as `labels`"):
        open_rows(X)
    with pytest.raises(TypeError, match="real numbers"):
        open_rows(X.astype(complex), labels=da.ones(10, chunks=5))
    assert isinstance(open_rows(X, labels=da.ones(10, chunks=5)), DaskRows)


def test_rows_on_a_cluster_are_evaluated_by_its_workers(client, memory, tmp_path):
    """The integers of memory, in whatever partitions; models that read rows in two ways are refused before the charge."""
    frame, model = memory
    other = confide.LogisticRegression(math.inf, schema=SCHEMA, alpha=0.5).fit(frame, frame["ill"])
    rows = open_rows(dd.from_pandas(frame, npartitions=4), SCHEMA, client=client)
    for asked in ({}, {"clip": 1.0}, {"other": other}):
        here = confide.evaluate(model, frame, frame["ill"], budget=math.inf, **asked)
        there = confide.evaluate(model, rows, budget=math.inf, **asked)
        assert there.to_dict() == here.to_dict()
    ledger = confide.Ledger(limit=1.0)
    kernel = confide.KernelSVC(math.inf, schema=SCHEMA, n_features=8).fit(frame, frame["ill"])
    with pytest.raises(ParameterError, match="encode rows in different ways"):
        confide.evaluate(model, rows, budget=1.0, other=kernel, ledger=ledger)
    assert len(ledger.entries()) == 0
