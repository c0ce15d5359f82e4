"""A column that the rows do not use as the schema describes it is refused before a charge: its weights would be noise."""

from __future__ import annotations

import threading
from multiprocessing import Pipe

import numpy as np
import pandas as pd
import pytest

from confide import InputError, Ledger, LogisticRegression, Ridge, Schema, evaluate
from confide.data.federated import FederatedRows
from confide.estimators.parties import take_part
from confide.intake.rows import open_rows

AGE, SEX = {"low": 0, "high": 100}, {"categories": ["male", "female"]}
COLUMNS = {"age": AGE, "sex": SEX}
TARGET = {"column": "ill", "negative": "no", "positive": "yes"}
SCHEMA = Schema(columns=COLUMNS, target=TARGET)


def people(n=400, **columns):
    """Rows as the schema describes them, but for the columns given."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 80, n).astype(float),
            "sex": rng.choice(["male", "female"], n),
            "ill": ["no", "yes"] * (n // 2),
        }
    )
    return frame.assign(**columns)


def refused(schema, frame, name):
    """Whether a fit refuses the column alone, before its charge and without a value; and accepts one usual row more."""
    ledger = Ledger(limit=5.0)
    for model in (
        LogisticRegression(1.0, schema=schema, ledger=ledger),
        Ridge(schema=schema, target_bound=1.0, ledger=ledger),
    ):
        y = frame["ill"] if isinstance(model, LogisticRegression) else np.zeros(len(frame))
        with pytest.raises(InputError, match="schema does not describe") as caught:
            model.fit(frame, y)
        assert f'rows hold them: "{name}". ' in str(caught.value)
        assert "31415" not in str(caught.value)
        assert len(ledger.entries()) == 0
        assert not hasattr(model, "n_features_in_")
    return True


def described(**changed):
    """The schema with some columns described otherwise."""
    return Schema(columns=COLUMNS | changed, target=TARGET)


CASES = {
    "codes for categories": (SCHEMA, "sex", lambda n: np.arange(n) % 2 + 31415),
    "unlisted ones that have a level": (described(sex=SEX | {"other": True}), "sex", lambda n: ["31415"] * n),
    "unlisted ones that count as another": (
        described(sex=SEX | {"other": "male"}),
        "sex",
        lambda n: ["31415"] * n,
    ),
    "missing categories": (described(sex=SEX | {"missing": True}), "sex", lambda n: [None] * n),
    "numbers beyond": (SCHEMA, "age", lambda n: np.full(n, 31415.0)),
    "numbers on both sides": (SCHEMA, "age", lambda n: np.where(np.arange(n) % 2, 31415.0, -1.0)),
    "on a logarithmic scale": (described(age=AGE | {"scale": "log"}), "age", lambda n: np.full(n, 31415.0)),
    "with knots": (described(age=AGE | {"knots": [50]}), "age", lambda n: np.full(n, -31415.0)),
    "missing numbers": (described(age=AGE | {"missing": True}), "age", lambda n: np.full(n, np.nan)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_column_that_no_row_uses_is_refused(name):
    """Of every kind; one cell as described is enough, a category that others count as included, and a number at a bound."""
    schema, column, cells = CASES[name]
    frame = people().assign(**{column: cells(400)})
    assert refused(schema, frame, column)
    frame[column] = frame[column].astype(object)
    frame.loc[7, column] = {"sex": "male", "age": 100.0}[column]
    if column == "age":
        frame["age"] = frame["age"].astype(float)
    LogisticRegression(1.0, schema=schema).fit(frame, frame["ill"])


def test_rows_to_be_predicted_or_evaluated_need_not_use_every_column(tmp_path):
    """A single strange row has a prediction, and a table of them has rates, in memory and in a file."""
    model = LogisticRegression(1.0, schema=SCHEMA).fit(people(), people()["ill"])
    strange = people(sex="31415")
    assert len(model.predict(strange.head(1))) == 1
    strange.to_parquet(tmp_path / "strange.parquet")
    evaluate(model, strange, strange["ill"], budget=1.0)
    evaluate(model, open_rows(tmp_path / "strange.parquet", SCHEMA), budget=1.0)


def test_files_are_refused_where_none_of_them_uses_a_column(tmp_path):
    """The checking pass knows all files: one row of the last that is as described is enough."""
    people(sex="31415").to_parquet(tmp_path / "0.parquet")
    people(sex="27182").to_parquet(tmp_path / "1.parquet")
    ledger = Ledger(limit=5.0)
    with pytest.raises(InputError, match='rows hold them: "sex"'):
        LogisticRegression(1.0, ledger=ledger).fit(open_rows(str(tmp_path / "*.parquet"), SCHEMA))
    assert len(ledger.entries()) == 0
    people(2).to_parquet(tmp_path / "1.parquet")
    LogisticRegression(1.0, ledger=ledger).fit(open_rows(str(tmp_path / "*.parquet"), SCHEMA))


def test_partitions_are_refused_where_none_of_them_uses_a_column():
    """They are told together: a partition may have none."""
    dd = pytest.importorskip("dask.dataframe", reason="Dask is not installed")
    ledger = Ledger(limit=5.0)
    strange = people(sex="31415")
    with pytest.raises(InputError, match='rows hold them: "sex"'):
        LogisticRegression(1.0, ledger=ledger).fit(open_rows(dd.from_pandas(strange, npartitions=4), SCHEMA))
    assert len(ledger.entries()) == 0
    strange.loc[399, "sex"] = "male"
    LogisticRegression(1.0, ledger=ledger).fit(open_rows(dd.from_pandas(strange, npartitions=4), SCHEMA))


def test_a_party_with_rows_that_use_no_column_may_take_part():
    """Its few rows may rightly be so, where others know the column."""
    pairs = [Pipe() for _ in range(2)]
    frames = (people(), people(4, sex="31415"))
    model = LogisticRegression(1.0, schema=SCHEMA)
    threads = [
        threading.Thread(target=take_part, args=(theirs, model, frame, frame["ill"]), daemon=True)
        for (_, theirs), frame in zip(pairs, frames, strict=True)
    ]
    for thread in threads:
        thread.start()
    fitted = LogisticRegression(1.0).fit(FederatedRows(SCHEMA, [ours for ours, _ in pairs]))
    assert np.isfinite(fitted.coef_).all()


def test_the_guarantee_says_that_the_check_is_not_protected():
    """A refusal is an answer about the rows."""
    model = LogisticRegression(1.0, schema=SCHEMA).fit(people(), people()["ill"])
    assert "columns without any cell that the schema lists or bounds" in model.guarantee_.statement()
