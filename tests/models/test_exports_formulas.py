"""A model as a query in SQL, or as a file of Python, predicts what the model predicts."""

from __future__ import annotations

import csv
import io
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import confide
from confide.erm.row_bounds import BallBound
from confide.estimators.linear_model import released_model
from confide.models.model import ShownClass
from tests.accounting import postgres_server
from tests.effects.examples import COLUMNS, INTERACTIONS, TARGET, labels, table
from tests.exports.models import BUDGET, MAKERS, example

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")

WRITABLE = [name for name in MAKERS if name.startswith(("table", "additive", "curves", "atoms")) and "features" not in name]
STRANGE = confide.Schema(
    columns={
        'the "age", of a `row`': {"low": 1, "high": 99, "missing": [77, 88.5], "knots": 4},
        "it's": {"categories": ["o'clock", "a\\b", "é", 'say "no"', "7"], "other": "7", "missing": ["-9"]},
        "flag": {"categories": [True, False]},
        "grade": {"categories": ["low", "mid", "high"], "ordered": True},
        "copy": {"low": 0, "high": 2, "missing": True, "column": 'the "age", of a `row`'},
        "cents": {"low": 1, "high": 10_000, "scale": "log10", "knots": [10, 100]},
    },
    target={"column": "ill", "negative": "it's \\ not", "positive": "yes"},
)
"""Names, levels and labels that would break a query in which they are not quoted."""


def strange_rows(n=400):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            'the "age", of a `row`': rng.choice([0.0, 1.0, 20.5, 60.0, 77.0, 88.5, 99.0, 120.0, np.nan], n),
            "it's": rng.choice(["o'clock", "a\\b", "é", "e\u0301", 'say "no"', "7", " 7 ", "-9", "new", None], n),
            "flag": rng.choice([True, False], n),
            "grade": rng.choice(["low", "mid", "high"], n),
            "cents": rng.choice([0.5, 1.0, 3.0, 10.0, 55.0, 100.0, 9999.0, 1e6], n),
        }
    )
    return frame.assign(ill=np.where(frame["flag"], "yes", "it's \\ not"))


def expected(model, rows):
    """What `confide predict` adds to the rows."""
    released = released_model(model)
    found = {"prediction": model.predict(rows)}
    if released.domain:
        has_probabilities = hasattr(model, "predict_proba")
        values = model.predict_proba(rows) if has_probabilities else model.decision_function(rows)
        found["probability" if has_probabilities else "score"] = ShownClass.of(released).of_rows(values)
    return pd.DataFrame(found)


def in_duckdb(model, frame):
    with duckdb.connect() as connection:
        connection.register("people", frame)
        return connection.execute(model.to_sql("people", "duckdb")).df()


def in_python(model, frame):
    """What the file predicts for each row, a mapping, when it is a module."""
    module = {"__name__": "score"}
    exec(model.to_python(), module)  # noqa: S102 - the text that is tested
    return pd.DataFrame([module["predict"](row) for row in frame.to_dict("records")])


def check(found, wanted, frame):
    assert list(found.columns)[-len(wanted.columns) :] == list(wanted.columns)
    for name in wanted:
        if wanted[name].dtype.kind == "f":
            np.testing.assert_allclose(found[name].astype(float), wanted[name], rtol=1e-11, atol=1e-13)
        else:
            assert found[name].astype(str).tolist() == wanted[name].astype(str).tolist()
    assert len(found) == len(frame)


@pytest.mark.parametrize("name", WRITABLE)
def test_predictions_are_those_of_the_model(name):
    """Labels and probabilities of every kind, on rows beyond the bounds and with missing cells, in SQL and in Python."""
    model, rows = example(name)
    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows, columns=list(model.schema_.column_names))
    found = in_duckdb(model, frame)
    check(found, expected(model, rows), frame)
    pd.testing.assert_frame_equal(found[list(frame.columns)], frame, check_dtype=False)
    check(in_python(model, frame), expected(model, rows), frame)


def test_rows_that_are_shortened_are_shortened_there_too():
    """Long and short ones: with curves, gaps, log scales, categories, and products of these."""
    frame = table(900)
    schema = confide.Schema(columns=COLUMNS, target=TARGET, interact=[*INTERACTIONS, ["age", "income"]])
    model = confide.LogisticRegression(BUDGET, schema=schema, centre=False).fit(frame, labels(frame))
    model._row_bound = BallBound(1.9)
    rows = table(300, 5)
    lengths = np.linalg.norm(model._encoder.transform(rows), axis=1)
    assert 0.1 < (lengths > 1.9).mean() < 1.0
    check(in_duckdb(model, rows), expected(model, rows), rows)
    check(in_python(model, rows), expected(model, rows), rows)


def test_rows_that_a_middle_moves_are_scored_as_they_are():
    """The weights hold the middle; rows are shortened to their typical length, as in the fit of this budget."""
    adult = confide.datasets.load_adult()
    model = confide.AdditiveClassifier(confide.ApproxDP(1.0, 1e-5), schema=adult.schema, random_state=0)
    model.fit(adult.X_train, adult.y_train)
    rows = adult.X_test.head(500)
    assert model._row_bound != model._encoder.row_bound
    check(in_duckdb(model, rows), expected(model, rows), rows)
    check(in_python(model, rows), expected(model, rows), rows)


@pytest.fixture(scope="module")
def strange():
    frame = strange_rows()
    return confide.LogisticRegression(BUDGET, schema=STRANGE).fit(frame, frame["ill"]), frame.drop(columns="ill")


def test_names_levels_and_labels_are_quoted(strange):
    """Quotes of all kinds, backslashes, accents, numbers as levels, codes for missing cells, truth values, ranks, copies."""
    model, frame = strange
    check(in_duckdb(model, frame), expected(model, frame), frame)
    check(in_python(model, frame), expected(model, frame), frame)


@pytest.mark.server
def test_predictions_in_postgresql_are_those_of_the_model(strange):
    import sqlalchemy

    model, frame = strange
    with postgres_server.running_with("people") as server:
        engine = sqlalchemy.create_engine(f"postgresql+psycopg://owner@127.0.0.1:{server.port}/people")
        frame.to_sql("people", engine, index=False)
        with engine.connect() as connection:
            rows = connection.exec_driver_sql(model.to_sql(), execution_options={"no_parameters": True})
            found = pd.DataFrame(rows.fetchall(), columns=list(rows.keys()))
        engine.dispose()
    check(found, expected(model, frame), frame)


def test_the_file_of_python_is_a_program_on_tables_of_text(strange, tmp_path):
    """It reads standard input and writes standard output, with no library: -I -S hides all that are installed."""
    model, frame = strange
    (tmp_path / "score.py").write_text(model.to_python(), encoding="utf-8")
    given = io.StringIO()
    frame.to_csv(given, index=False)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "utf8", tmp_path / "score.py"],
        input=given.getvalue(), capture_output=True, text=True, check=True, encoding="utf-8",
    )  # fmt: skip
    written = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["it's"] for row in written] == frame["it's"].fillna("").tolist()
    check(pd.DataFrame(written), expected(model, frame), frame)


def test_a_query_holds_the_guarantee_in_lines_of_comments(strange):
    model, _ = strange
    comments = [line[3:] for line in model.to_sql().splitlines() if line.startswith("-- ")]
    assert comments == model.guarantee_.statement().splitlines()
    assert model.guarantee_.statement().splitlines()[0] in model.to_python()


def test_an_effect_that_is_wrong_by_a_little_is_seen(strange):
    """So that the comparisons above compare."""
    model, frame = strange
    changed = model.to_sql("people", "duckdb").replace("THEN -", "THEN 1e-6 - ")
    with duckdb.connect() as connection:
        connection.register("people", frame)
        found = connection.execute(changed).df()
    with pytest.raises(AssertionError):
        check(found, expected(model, frame), frame)


@pytest.mark.parametrize(
    ("name", "why"),
    [("logistic", "it has no schema"), ("table with features", "has random features"), ("kernel of a table", "ONNX graph")],
)
def test_what_no_short_text_can_hold_is_refused(name, why):
    model, _ = example(name)
    for write in (model.to_sql, model.to_python):
        with pytest.raises(confide.ParameterError, match=why):
            write()


def test_columns_that_are_read_in_parts_are_refused():
    schema = confide.Schema(
        columns={"born": {"low": "1950-01-01", "high": "2000-01-01"}, "age": {"low": 0, "high": 99}}, target=TARGET
    )
    frame = table(200).assign(born=pd.Timestamp("1980-01-01"))
    model = confide.LogisticRegression(BUDGET, schema=schema).fit(frame, np.where(frame["rank"] > 0.5, "yes", "no"))
    with pytest.raises(confide.ParameterError, match=r"dates.*born"):
        model.to_sql()


def test_table_and_dialect_are_checked(strange):
    model, _ = strange
    with pytest.raises(confide.ParameterError, match=r"dialect must be.*postgresql"):
        model.to_sql(dialect="oracle")
    with pytest.raises(confide.ParameterError, match="table must be the name of a table"):
        model.to_sql("")


def test_names_that_look_like_marks_of_the_template_stay_names():
    """They could otherwise put what the file holds into its text, outside of any quotes."""
    planted = '"""; raise SystemExit; """'
    schema = confide.Schema({"x": {"low": -1, "high": 1}, "c": {"categories": ["a", planted]}}, person="None  # the model")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": rng.uniform(-1, 1, 600), "c": rng.choice(["a", planted], 600), schema.person: range(600)})
    model = confide.LogisticRegression(1.0, schema=schema, max_rows_per_person=1).fit(rows, rows["x"] > 0)
    assert "None  # the model" in model.guarantee_.statement()
    exec(model.to_python(), {"__name__": "scoring"})  # noqa: S102 - the text that is tested
