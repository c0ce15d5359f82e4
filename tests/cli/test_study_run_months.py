"""Twelve months of a PostgreSQL table that grows, by the command that a scheduler gives: kills, and a change of schema."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import confide
from confide.privacy.budgets import ApproxDP
from tests.accounting import postgres_server

MONTHS = tuple(f"2025-{month:02d}" for month in range(1, 13))
KILLED = {"2025-03": "planning", "2025-06": "charged", "2025-09": "noted"}
"""When a run is killed: while it plans, once its charge stands in the ledger, once its state says what it releases."""
CHANGED = "2025-07"
"""From this month on the schema has a column more."""

SCHEMA = """[columns]
age = { low = 18, high = 90 }
ward = { categories = ["a", "b", "c"] }
MORE
[target]
column = "late"
negative = "no"
positive = "yes"
"""
STUDY = """[study]
name = "Waiting"

[data]
file = "URL"
query = "rows.sql"
schema = "people.toml"

[budget]
epsilon = 0.5
delta = 1e-6
neighbours = "add-or-remove-one"
n_rows_bounds = [2000, 100000]

[ledger]
file = "study.db"

[schedule]
every = "month"
cohorts = "admitted"
prior = "last"

[model]
kind = "logistic"

[outputs]
model = "model.json"
"""


def rows_of(month, n=2500):
    """New persons of one month."""
    rng = np.random.default_rng(MONTHS.index(month))
    age = rng.uniform(18, 90, n)
    late = np.where(rng.uniform(size=n) < 1 / (1 + np.exp(-(age - 54) / 12)), "yes", "no")
    columns = {"age": age, "ward": rng.choice(["a", "b", "c"], n), "extra": rng.uniform(0, 1, n), "late": late}
    return pd.DataFrame(columns).assign(admitted=month)


def started(folder, *arguments):
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-m", "confide", *arguments], cwd=folder, env=dict(os.environ), **given)


def finished(folder, *arguments):
    process = started(folder, *arguments)
    out, error = process.communicate(timeout=120)
    return process.returncode, out, error


def purposes(folder):
    return confide.Ledger(folder / "study.db").entries()["purpose"].tolist()


def killed(folder, month, when):
    """Kill a run of the month at a moment."""
    before, state, start = len(purposes(folder)), folder / f"study.{month}.state.json", time.monotonic()
    process = started(folder, "run", "study.toml", "--release", month)
    is_time = {
        "planning": lambda: time.monotonic() - start > 1.0,
        "charged": lambda: len(purposes(folder)) > before,
        "noted": state.exists,
    }[when]
    while process.poll() is None and not is_time():
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.mark.server
def test_a_year_of_cohorts_loses_no_epsilon_and_releases_no_stale_model(tmp_path):
    """Each month has one charge, which its own persons pay, and one model of its own rows, also where a run was killed."""
    import sqlalchemy

    with postgres_server.running_with("hospital") as server:
        url = f"postgresql://owner@127.0.0.1:{server.port}/hospital"
        engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
        (tmp_path / "rows.sql").write_text("SELECT * FROM visits")
        (tmp_path / "people.toml").write_text(SCHEMA.replace("MORE", ""))
        study, text = tmp_path / "study.toml", STUDY.replace("URL", url)
        study.write_text(text)
        amounts = ("--epsilon", "0.5", "--delta", "1e-6", "--neighbours", "add-or-remove-one")
        code, _, error = finished(tmp_path, "ledger", "init", "study.db", *amounts, "--cohorts", "admitted")
        assert code == 0, error
        for month in MONTHS:
            rows_of(month).to_sql("visits", engine, index=False, if_exists="append")
            if month == CHANGED:
                (tmp_path / "people.toml").write_text(SCHEMA.replace("MORE", "extra = { low = 0, high = 1 }"))
                code, _, error = finished(tmp_path, "run", "study.toml", "--release", month)
                assert (code, "the prior was fitted to columns that are encoded in another way" in error) == (2, True)
                study.write_text(text.replace('prior = "last"', ""))
            if month in KILLED:
                killed(tmp_path, month, KILLED[month])
            code, out, error = finished(tmp_path, "run", "study.toml", "--release", month, "--format", "json")
            assert code == 0, f"{month}: {error}"
            assert set(json.loads(out)["steps"]) == {"fit"}
            study.write_text(text)
        engine.dispose()
        assert finished(tmp_path, "run", "study.toml", "--release", MONTHS[-1])[0] == 0
    ledger = confide.Ledger(tmp_path / "study.db")
    assert ledger.entries()["cohort"].tolist() == list(MONTHS)
    assert {str(ledger.spent(month)) for month in MONTHS} == {str(ApproxDP(0.5, 1e-6))}
    assert finished(tmp_path, "ledger", "verify", "study.db")[0] == 0
    models = [confide.load(tmp_path / f"model.{month}.json") for month in MONTHS]
    assert len({tuple(model.coef_.ravel().tolist()) for model in models}) == len(MONTHS)
    assert [model.schema.cohort for model in models] == [("admitted", month) for month in MONTHS]
    assert ["extra" in model.schema.column_names for model in models] == [month >= CHANGED for month in MONTHS]
    assert ledger.entries()["sha256"].notna().all()
