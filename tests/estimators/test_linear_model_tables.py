"""Models of tables as they come: dates, ordered levels, truth values and codes, from every kind of rows."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest

import confide
from confide.errors import FileError, LedgerError, ParameterError
from confide.planning.simulation import simulate
from confide.studies.table_check import check_table, findings_of

STAGES = ["I", "II", "III", "IV"]
TOML = """
target = { column = "died", negative = false, positive = true }
[columns]
seen = { low = 2010-01-01, high = 2030-12-31, parts = ["year", "month"], format = "%d.%m.%Y" }
stage = { categories = ["I", "II", "III", "IV"], ordered = true }
consent = { boolean = true }
zip = { categories = { file = "zip.txt" }, prefix = 2, other = true }
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A folder with a schema, a ledger, and one table in several forms; and that table with dates as text and as dates."""
    folder, rng, n = tmp_path_factory.mktemp("study"), np.random.default_rng(0), 3000
    (folder / "zip.txt").write_text("\n".join(f"{code:05d}" for code in range(1000, 4000, 10)))
    (folder / "people.toml").write_text(TOML)
    confide.Ledger(folder / "study.db", limit=1000.0)
    stage = rng.integers(0, 4, n)
    days = pd.Timestamp("2010-01-01") + pd.to_timedelta(rng.integers(0, 7000, n), unit="D")
    table = pd.DataFrame(
        {
            "seen": days,
            "stage": np.array(STAGES)[stage],
            "consent": rng.integers(0, 2, n).astype(bool),
            "zip": [f"{code:05d}" for code in rng.integers(1000, 4000, n)],
            "died": rng.random(n) < 1.0 / (1.0 + np.exp(1.5 - stage - 0.8 * (days.month.to_numpy() == 1))),
        }
    )
    text = table.assign(seen=days.strftime("%d.%m.%Y"), consent=table.consent.astype(int))
    text.to_csv(folder / "t.csv", index=False)
    table.to_parquet(folder / "t.parquet", index=False)
    return folder, table, text


def test_paths_stand_for_schema_and_ledger(study):
    """In the constructor and in set_params; the target is the column that the schema names."""
    folder, table, _ = study
    model = confide.LogisticRegression(2.0, schema=folder / "people.toml", ledger=str(folder / "study.db"), random_state=0)
    before = confide.Ledger(folder / "study.db").spent().epsilon
    model.fit(table)
    assert confide.Ledger(folder / "study.db").spent().epsilon == before + 2.0
    schema = confide.Schema.from_toml(folder / "people.toml")
    other = confide.LogisticRegression(2.0, random_state=0).set_params(schema=str(folder / "people.toml"))
    other.fit(table.drop(columns="died"), table.died)
    assert model.schema == schema
    assert np.array_equal(model.coef_, other.coef_)
    with pytest.raises(LedgerError, match=r"absent\.db"):
        model.set_params(ledger=folder / "absent.db").fit(table)
    with pytest.raises(FileError, match=r"absent\.toml"):
        confide.LogisticRegression(schema=folder / "absent.toml").fit(table)
    found = confide.describe(table, folder / "people.toml", budget=5.0, columns=["stage", "seen", "died"], random_state=0)
    assert all(words in str(found) for words in ("days since", "1970-01-01"))
    assert "III" in str(found)


def test_all_kinds_of_rows_give_one_model(study):
    """Frames with dates and with text of dates, CSV, Parquet, and Dask; and a file keeps all that the model needs."""
    dask = pytest.importorskip("dask.dataframe")
    folder, table, text = study
    schema = confide.Schema.from_toml(folder / "people.toml")
    model = confide.LogisticRegression(2.0, schema=schema, random_state=0).fit(table)
    rows = [
        *(confide.open_rows(folder / name, schema) for name in ("t.csv", "t.parquet")),
        confide.open_rows(dask.from_pandas(table, npartitions=1), schema),
    ]
    assert np.array_equal(confide.LogisticRegression(2.0, schema=schema, random_state=0).fit(text).coef_, model.coef_)
    for one in rows:
        assert np.array_equal(confide.LogisticRegression(2.0, random_state=0).fit(one).coef_, model.coef_)
    model.save(folder / "model.json", overwrite=True)
    (folder / "zip.txt").rename(folder / "gone.txt")
    loaded = confide.load(folder / "model.json")
    (folder / "gone.txt").rename(folder / "zip.txt")
    assert np.array_equal(loaded.predict_proba(text), model.predict_proba(table))
    assert loaded.feature_names_in_.tolist() == ["seen", "stage", "consent", "zip"]
    with pytest.raises(ParameterError, match="ONNX graph knows numbers and levels"):
        model.to_onnx()


def test_effects_speak_of_dates_and_levels(study):
    """In values, in contrasts and in the summary; an effect may only rise along an order."""
    folder, table, _ = study
    model = confide.AdditiveClassifier(
        confide.ApproxDP(20.0, 1e-6),
        schema=folder / "people.toml",
        inference_share=0.3,
        monotone={"stage": "up"},
        random_state=0,
    ).fit(table)
    effects = model.effects_
    of_stage = effects[effects.column == "stage"]
    assert of_stage.value.tolist() == STAGES
    assert of_stage.effect.is_monotonic_increasing
    dates = effects[effects.column == "seen"].value.tolist()
    assert (dates[0], dates[-1]) == ("2010-01-01", "2030-12-31")
    assert effects[effects.column == "seen (month)"].value.tolist()[:2] == ["Jan", "Feb"]
    change = model.contrast("stage", "I", "IV")
    assert change.estimate > 2.0
    assert change.estimate == pytest.approx(of_stage.effect.iloc[-1] - of_stage.effect.iloc[0])
    assert model.contrast("seen", "2012-01-01", dt.date(2012, 1, 1)).estimate == 0.0
    assert str(model.contrast("seen", "2012-01-01", "2020-01-01")).startswith("seen from 2012-01-01 to 2020-01-01: ")
    with pytest.raises(ParameterError, match="give a date from 2010-01-01 to 2030-12-31"):
        model.contrast("seen", "2012-01-01", "2050-01-01")
    with pytest.raises(ParameterError, match="give a level from I to IV"):
        model.contrast("stage", "I", "V")
    linear = confide.LogisticRegression(
        confide.ApproxDP(20.0, 1e-6), schema=folder / "people.toml", inference_share=0.3, random_state=0
    ).fit(table)
    lines = {line.name: line for line in linear.summary().coefficients}
    assert lines["stage"].unit == "per level"
    assert lines["seen"].unit == "per year"
    assert 0.5 < lines["stage"].estimate < 1.5
    assert -max(line.estimate for name, line in lines.items() if name.startswith("seen (month)")) + 1.5 > 0.2
    linear.report(folder / "report.html", overwrite=True)
    assert "2010-01-01" in (folder / "report.html").read_text()


def test_forecasts_and_checks_know_such_tables(study):
    """A forecast makes rows up; a check counts what a fit would refuse."""
    folder, _, text = study
    schema = confide.Schema.from_toml(folder / "people.toml")
    forecast = simulate(confide.AdditiveClassifier(2.0, schema=schema, interactions="all"), 3000, error=0.2, n_designs=1)
    assert 0.0 <= forecast.low <= forecast.high
    assert findings_of(check_table([folder / "t.csv"], schema))[0] == []
    assert findings_of(check_table([folder / "t.parquet"], schema))[0] == []
    wrong = text.assign(seen=text.seen.where(text.index > 0, "2012-01-01"), stage=text.stage.where(text.index > 29, "V"))
    wrong.to_csv(folder / "wrong.csv", index=False)
    refused = findings_of(check_table([folder / "wrong.csv"], schema))[0]
    assert any('"seen"' in sentence and 'dates in the form "%d.%m.%Y"' in sentence for sentence in refused)
    assert any('"stage"' in sentence and "1.0%" in sentence and "in their order" in sentence for sentence in refused)
