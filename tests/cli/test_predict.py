"""`confide predict`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import confide
from confide import Ledger
from confide.budget_warnings import void_because
from confide.estimators.logistic import LogisticRegression
from confide.files import read_document, write_document
from tests.cli.commands import SENTINEL, fit, line_of, read_rows, refused, rows_of, run, spoil, write_rows


def test_predict_adds_two_columns_and_keeps_the_rest(folder):
    """Rows, their order and the text of every cell are kept; the target is not needed."""
    fit()
    rows = [{key: value for key, value in row.items() if key != "income"} for row in rows_of()]
    write_rows(Path("new.csv"), rows)
    result = run("predict", "model.json", "new.csv", "--out", "scored.csv", "--force")
    assert result.stdout == 'Wrote scored.csv: prediction, and probability of income = "high".\n'
    scored = read_rows(Path("scored.csv"))
    assert list(scored[0]) == [*rows[0], "prediction", "probability"]
    assert [{key: row[key] for key in rows[0]} for row in scored] == rows
    assert {row["prediction"] for row in scored} <= {"low", "high"}


def test_predict_agrees_with_the_library(folder):
    """The file written by fit, loaded in Python, gives the same labels and probabilities, digit by digit."""
    fit()
    run("predict", "model.json", "people.csv", "--out", "scored.csv")
    scored = read_rows(Path("scored.csv"))
    model = confide.load("model.json")
    frame = pd.DataFrame(rows_of())
    assert [row["prediction"] for row in scored] == model.predict(frame).tolist()
    positive = list(model.classes_).index("high")
    assert [float(row["probability"]) for row in scored] == model.predict_proba(frame)[:, positive].tolist()
    assert all((row["prediction"] == "high") == (float(row["probability"]) > 0.5) for row in scored)


def test_probabilities_are_calibrated_by_an_evaluation(folder):
    """By the file that `confide evaluate` wrote of the model, or by that of a calibrated model, which export takes too."""
    fit("--model", "svm")
    write_rows(Path("held_out.csv"), rows_of(300))
    run("evaluate", "model.json", "held_out.csv", "--epsilon", "1", "--no-ledger", "--out", "evaluation.json")
    made = confide.CalibratedClassifier(confide.load("model.json"), "evaluation.json")
    made.save("calibrated.json")
    run("predict", "model.json", "people.csv", "--calibration", "evaluation.json", "--out", "scored.csv")
    run("predict", "calibrated.json", "people.csv", "--out", "same.csv")
    frame, scored = pd.DataFrame(rows_of()), read_rows(Path("scored.csv"))
    positive = list(made.classes_).index("high")
    assert [float(row["probability"]) for row in scored] == made.predict_proba(frame)[:, positive].tolist()
    assert [row["prediction"] for row in scored] == made.predict(frame).tolist()
    assert Path("same.csv").read_text(encoding="utf-8") == Path("scored.csv").read_text(encoding="utf-8")
    run("export", "calibrated.json", "--out", "score.sql")
    assert "AS calibrated" in Path("score.sql").read_text(encoding="utf-8")


def test_what_cannot_be_calibrated_is_refused(folder):
    """Another model, intervals, and a file that is no evaluation, in the words of the option that gave it."""
    fit("--model", "svm")
    write_rows(Path("held_out.csv"), rows_of(300))
    run("evaluate", "model.json", "held_out.csv", "--epsilon", "1", "--no-ledger", "--out", "evaluation.json")
    given = ("people.csv", "--out", "scored.csv", "--calibration", "evaluation.json")
    assert "--interval is for the model's own" in refused("predict", "model.json", *given, "--interval", "0.9")
    assert "--calibration must be the JSON document" in refused("predict", "model.json", *given[:-1], "model.json")
    grouped = ("--groups", "work", "--out", "groups.json")
    run("evaluate", "model.json", "held_out.csv", "--epsilon", "1", "--no-ledger", *grouped)
    said = refused("predict", "model.json", *given[:-1], "groups.json")
    assert "with --calibration its evaluation" in said
    assert "confide.evaluate" not in said
    written = json.loads(Path("evaluation.json").read_text())
    reversed_counts = [written["counts"][0][::-1], written["counts"][1]]
    for name, named, part in (("counts", "auc", reversed_counts), ("charge", "charge", {"ledger": "other.db"})):
        Path("changed.json").write_text(json.dumps(written | {name: part}))
        said = refused("predict", "model.json", *given[:-1], "changed.json")
        assert "--calibration: Not everything that the evaluation says follows from its counts" in said
        assert f'"{named}"' in said
    fit("--force")
    assert "--calibration: these rates are of another model" in refused("predict", "model.json", *given)
    assert not Path("scored.csv").exists()


def test_a_calibrated_file_is_inspected_verified_and_reported(folder):
    """It says what the model and what the counts cost, and finds both charges; a false one fails."""
    Ledger("study.db", limit=2.0)
    fit("--model", "svm", "--ledger", "study.db")
    write_rows(Path("held_out.csv"), rows_of(300))
    run("evaluate", "model.json", "held_out.csv", "--epsilon", "0.75", "--ledger", "study.db", "--out", "evaluation.json")
    made = confide.CalibratedClassifier(confide.load("model.json"), "evaluation.json")
    made.save("calibrated.json")
    shown = json.loads(run("inspect", "calibrated.json", "--format", "json").stdout)
    assert (shown["estimator"], shown["statement"]) == ("CalibratedClassifier", made.statement())
    for epsilon in ("epsilon = 1 (", "epsilon = 0.75 ("):
        assert epsilon in shown["statement"]
    said = " ".join(run("verify", "calibrated.json", "--ledger", "study.db").stdout.split())
    assert "Charge 1 of the ledger names the checksum of this model's file" in said
    assert "follow from counts that name its model. Released under pure differential privacy with epsilon = 0.75" in said
    run("report", "calibrated.json", "--ledger", "study.db", "--out", "card.md")
    card = Path("card.md").read_text(encoding="utf-8")
    assert "Calibrated probabilities of this model" in card
    assert "names the checksum of this model's file" in card
    assert "leave it out" in refused("report", "calibrated.json", "--evaluation", "evaluation.json", "--out", "again.md")
    content = read_document("calibrated.json")
    content["evaluation"]["budget"]["epsilon"] = 1.9
    write_document("false.json", content)
    assert "It holds no such charge" in " ".join(run("verify", "false.json", "--ledger", "study.db", code=3).stdout.split())
    content["evaluation"]["budget"]["epsilon"] = 1e-9
    write_document("cheap.json", content)
    assert '"count_deviation"' in run("verify", "cheap.json", code=3).stdout
    content["evaluation"]["budget"]["epsilon"] = 0.75
    counts = content["evaluation"]["counts"]
    for key, value in {
        "charge": {"ledger": "x.\n\nVerified: what can be checked holds."},
        "count_deviation": "secret",
        "counts": [[f"{one}" for one in part] for part in counts],
    }.items():
        forged = {**content, "evaluation": {**content["evaluation"], key: value}}
        write_document(f"{key}.json", forged)
        assert "Verified" not in refused("verify", f"{key}.json")
    write_document("words.json", {**content, "evaluation": content["evaluation"] | {"void": "The noise is not random."}})
    assert "Verified" not in refused("verify", "words.json")
    content["evaluation"]["void"] = void_because(True, 0, "")
    write_document("void.json", content)
    for command in ("inspect", "verify"):
        assert "from a fixed seed" in run(command, "void.json", code=3).stdout


def test_predict_writes_to_standard_output(folder):
    """The table alone; there JSON has no place."""
    fit()
    run("predict", "model.json", "people.csv", "--out", "scored.csv")
    shown = run("predict", "model.json", "people.csv", "--out", "-")
    assert shown.stderr == ""
    assert shown.stdout == Path("scored.csv").read_text(encoding="utf-8")
    assert "--format json" in refused("predict", "model.json", "people.csv", "--out", "-", "--format", "json")


def test_predict_speaks_json(folder):
    """Where the table is, and whose probability it holds."""
    fit()
    result = run("predict", "model.json", "people.csv", "--out", "scored.csv", "--format", "json")
    assert json.loads(result.stdout) == {
        "out": "scored.csv",
        "rows": 200,
        "cells_outside_schema": {},
        "rows_without_prediction": {},
        "target": "income",
        "probability_of": "high",
    }


def test_predict_refuses_to_name_two_columns_alike(folder):
    """A table that was scored before has the names already."""
    fit()
    run("predict", "model.json", "people.csv", "--out", "scored.csv")
    assert "rename" in refused("predict", "model.json", "scored.csv", "--out", "again.csv")


def test_predict_shows_no_cell_either(folder):
    """A bad number and a missing column are refused in one line."""
    fit()
    spoil(age=SENTINEL)
    assert 'column "age"' in refused("predict", "model.json", "people.csv", "--out", "scored.csv")
    Path("people.csv").write_text(f"age,work\n1,{SENTINEL}\n", encoding="utf-8")
    assert 'lacks the columns "hours [x]"' in refused("predict", "model.json", "people.csv", "--out", "scored.csv")
    assert not Path("scored.csv").exists()


def test_predict_warns_of_a_model_without_privacy(folder):
    """On standard error, so that the table stays clean."""
    fit("--epsilon", "inf", code=3)
    result = run("predict", "model.json", "people.csv", "--out", "-")
    assert result.stderr.startswith("warning: this model is NOT PRIVATE.")
    assert "NOT PRIVATE" not in result.stdout


def test_predict_counts_cells_that_the_schema_does_not_describe(folder):
    """Once, on standard error and in JSON, by column; the table is written all the same, and no cell is shown."""
    fit()
    rows = rows_of()
    for place, cells in enumerate([{"age": "4321"}, {"age": "-7"}, {"hours [x]": "5e9"}]):
        rows[place] |= cells
    write_rows(Path("new.csv"), rows)
    result = run("predict", "model.json", "new.csv", "--out", "-")
    assert result.stderr.count("warning: ") == 1
    assert '"age": 2 cells lie outside' in result.stderr
    assert '"hours [x]": 1 cell lies outside' in result.stderr
    assert "4321" not in result.stderr
    assert len(result.stdout.splitlines()) == 201
    document = json.loads(run("predict", "model.json", "new.csv", "--out", "scored.csv", "--format", "json").stdout)
    assert document["cells_outside_schema"] == {"age": 2, "hours [x]": 1}


def test_a_model_without_a_schema_finds_its_columns_by_name(folder):
    """Trained on a frame in Python, it reads the numbers of the columns it knows."""
    frame = pd.DataFrame({"age": [0.1, 0.2, 0.9, 0.8], "size": [0.0, 0.1, 0.3, 0.5]})
    model = LogisticRegression(5.0).fit(frame, [0, 0, 1, 1])
    model.save("model.json")
    Path("new.csv").write_text("size,note,age\n0.1,a,0.2\n0.5,b,0.7\n", encoding="utf-8")
    run("predict", "model.json", "new.csv", "--out", "scored.csv", "--force")
    scored = read_rows(Path("scored.csv"))
    expected = model.predict_proba(pd.DataFrame({"age": [0.2, 0.7], "size": [0.1, 0.5]}))[:, 1]
    assert [float(row["probability"]) for row in scored] == expected.tolist()
    assert [row["note"] for row in scored] == ["a", "b"]
    Path("new.csv").write_text(f"size,age\n0.1,{SENTINEL}\n", encoding="utf-8")
    assert 'column "age"' in refused("predict", "model.json", "new.csv", "--out", "scored.csv", "--force")
    Path("new.csv").write_text("size,age\n0.1,\n", encoding="utf-8")
    assert "missing or infinite" in refused("predict", "model.json", "new.csv", "--out", "scored.csv", "--force")


def test_a_model_without_names_says_why_it_cannot_score_a_file(folder):
    """An array has no names of columns to look for."""
    LogisticRegression(5.0).fit(np.array([[0.1], [0.9]]), [0, 1]).save("model.json")
    message = refused("predict", "model.json", "people.csv", "--out", "scored.csv")
    assert "without names; use confide.load" in message


def test_predict_adds_intervals_of_the_class_that_is_shown(tmp_path):
    """Those of the library, turned where the positive class sorts first; of scores too; a model without a share says so."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.uniform(-1, 1, 2_000)})
    frame["y"] = np.where(rng.uniform(size=2_000) < 1 / (1 + np.exp(-3 * frame["a"])), "bad", "good")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    target = {"column": "y", "negative": "good", "positive": "bad"}
    schema = confide.Schema(columns={"a": {"low": -1, "high": 1}}, target=target)
    for kind, column in ((confide.LogisticRegression, "probability"), (confide.LinearSVC, "score")):
        model = kind(4.0, schema=schema, inference_share=0.3, random_state=0).fit(frame, frame["y"])
        assert model.classes_.tolist() == ["bad", "good"]
        model.save(tmp_path / "model.json", overwrite=True)
        asked = ("predict", tmp_path / "model.json", tmp_path / "rows.csv", "--interval", "0.9", "--force", "--out")
        run(*asked, tmp_path / "scored.csv")
        scored = pd.read_csv(tmp_path / "scored.csv")
        assert ((scored["low"] < scored[column]) & (scored[column] < scored["high"])).all()
        ends = model.predict_interval(frame, 0.9)
        turned = 1.0 - ends[:, ::-1] if column == "probability" else -ends[:, ::-1]
        np.testing.assert_allclose(scored[["low", "high"]], turned, rtol=1e-12)
    confide.LogisticRegression(4.0, schema=schema, random_state=0).fit(frame, frame["y"]).save(
        tmp_path / "model.json", overwrite=True
    )
    wrong = ("predict", tmp_path / "model.json", tmp_path / "rows.csv", "--interval", "1", "--out", tmp_path / "more.csv")
    assert line_of(*wrong, code=2).startswith("error: --interval must be a number strictly between 0 and 1")
    assert "set --intervals" in line_of(*asked, tmp_path / "scored.csv", code=2)


def test_export_writes_the_model_for_other_programs(folder):
    """By the ending of the file; the query and the program predict what `confide predict` does. Nothing is overwritten."""
    fit()
    run("predict", "model.json", "people.csv", "--out", "scored.csv")
    wanted = [float(row["probability"]) for row in read_rows(Path("scored.csv"))]
    model = confide.load("model.json")
    assert (
        run("export", "model.json", "--out", "s.sql", "--table", "a.people", "--dialect", "duckdb").stdout
        == "Wrote s.sql.\n"
    )
    assert Path("s.sql").read_text(encoding="utf-8") == model.to_sql("a.people", "duckdb")
    run("export", "model.json", "--out", "s.py")
    names = {"__name__": "s"}
    exec(Path("s.py").read_text(encoding="utf-8"), names)  # noqa: S102 - the file that is tested
    assert [names["predict"](row)["probability"] for row in rows_of()] == pytest.approx(wanted, rel=1e-12)
    assert "exists already" in refused("export", "model.json", "--out", "s.sql")
    assert 'must end in ".sql", ".py", ".onnx"' in refused("export", "model.json", "--out", "s.txt")
    fit("--epsilon", "inf", "--force", code=3)
    assert (
        "NOT PRIVATE" in run("export", "model.json", "--out", "s.sql", "--force", code=3).stdout + Path("s.sql").read_text()
    )


def test_rows_that_cannot_be_read_are_left_out_or_kept_without_a_prediction(folder):
    """By --on-error; the others are predicted as alone. Why is said by column, and shows no cell."""
    fit()
    run("predict", "model.json", "people.csv", "--out", "all.csv")
    wanted = read_rows(Path("all.csv"))
    rows = rows_of()
    for place, cells in {
        3: {"age": SENTINEL},
        5: {"hours [x]": "2020-01-01"},
        6: {"age": ""},
        199: {"age": SENTINEL},
    }.items():
        rows[place] |= cells
    write_rows(Path("new.csv"), rows)
    assert f"row 4 of {Path('new.csv').resolve()}: column " in refused(
        "predict", "model.json", "new.csv", "--out", "scored.csv"
    )
    Path("more").mkdir()
    write_rows(Path("more/1.csv"), rows_of())
    write_rows(Path("more/2.csv"), rows)
    told = run("predict", "model.json", "more/*.csv", "--out", "more.csv", "--on-error", "skip").stderr
    assert f"2, first in row 4 of {Path('more/2.csv').resolve()}: column" in told
    assert f"1, first in row 6 of {Path('more/2.csv').resolve()}: column" in told
    skipped = run("predict", "model.json", "new.csv", "--out", "scored.csv", "--on-error", "skip")
    assert "4 of 200 rows are left out" in skipped.stderr
    assert SENTINEL not in skipped.stderr + skipped.stdout
    kept = [row for place, row in enumerate(wanted) if place not in (3, 5, 6, 199)]
    assert read_rows(Path("scored.csv")) == kept
    document = run("predict", "model.json", "new.csv", "--out", "n.csv", "--on-error", "null", "--format", "json").stdout
    whys = json.loads(document)["rows_without_prediction"]
    assert sorted(whys.values()) == [1, 1, 2]
    scored = read_rows(Path("n.csv"))
    assert [row["prediction"] for row in scored if not row["reason"]] == [row["prediction"] for row in kept]
    assert [place for place, row in enumerate(scored) if row["reason"]] == [3, 5, 6, 199]
    assert "dates or times" in scored[5]["reason"]
    assert "missing" in scored[6]["reason"]
    assert not any(scored[place]["prediction"] + scored[place]["probability"] for place in (3, 5, 6, 199))


def test_a_cell_with_the_other_decimal_sign_is_told_which_one_is_expected(folder):
    """By a fit, by predict in each row, and by an evaluation; never with the cell itself."""
    schema = Path("people.toml").read_text()
    fit()
    rows = rows_of()
    rows[3] |= {"age": "41,27"}
    write_rows(Path("new.csv"), rows)
    run("predict", "model.json", "new.csv", "--out", "n.csv", "--on-error", "null")
    reason = read_rows(Path("n.csv"))[3]["reason"]
    assert "a comma, where a point is expected before decimals" in reason
    assert "41" not in reason
    Path("people.toml").write_text('table = { decimal = "," }\n' + schema)
    rows = [row | {"hours [x]": f"{row['hours [x]']}".replace(".", ",")} for row in rows_of()]
    write_rows(Path("people.csv"), rows)
    fit("--force")
    rows[3] |= {"age": "41.27"}
    rows[4] |= {"age": "41?27"}
    write_rows(Path("new.csv"), rows)
    expected = "a point, where the schema says that a comma stands before decimals"
    run("predict", "model.json", "new.csv", "--out", "n.csv", "--on-error", "null", "--force")
    written = read_rows(Path("n.csv"))
    assert [written[place]["age"] for place in (3, 4)] == ["41.27", "41?27"]
    assert "cells that are not numbers" in written[4]["reason"]
    said = [
        written[3]["reason"],
        refused("predict", "model.json", "new.csv", "--out", "m.csv"),
        refused("evaluate", "model.json", "new.csv", "--epsilon", "5", "--no-ledger"),
        refused("fit", "new.csv", "--schema", "people.toml", "--epsilon", "1", "--no-ledger", "--force"),
    ]
    for words in said:
        assert expected in words
        assert "41" not in words


def test_a_day_that_no_month_has_is_told_as_such(folder):
    """In the reason of its row, which shows no cell."""
    Path("days.toml").write_text(
        'target = { column = "t", negative = "no", positive = "yes" }\n'
        '[columns.day]\nlow = 2024-01-01\nhigh = 2024-12-31\nformat = "%d.%m.%Y"\n'
    )
    write_rows(Path("days.csv"), [{"day": f"{1 + i % 28:02}.02.2024", "t": ("no", "yes")[i % 2]} for i in range(50)])
    run("fit", "days.csv", "--schema", "days.toml", "--epsilon", "1", "--no-ledger", "--out", "days.json")
    write_rows(Path("new.csv"), [{"day": day} for day in ("29.02.2024", "31.02.2024")])
    run("predict", "days.json", "new.csv", "--out", "n.csv", "--on-error", "null")
    first, second = read_rows(Path("n.csv"))
    assert first["reason"] == ""
    assert "days that no month has, such as the 31st of February" in second["reason"]
    assert 'no dates in the form "%d.%m.%Y", which the schema declares' in second["reason"]


def test_a_table_in_which_no_row_can_be_read_has_no_prediction(folder):
    fit()
    write_rows(Path("new.csv"), [row | {"age": SENTINEL} for row in rows_of()])
    run("predict", "model.json", "new.csv", "--out", "n.parquet", "--on-error", "null")
    scored = pd.read_parquet("n.parquet")
    assert scored["prediction"].isna().all()
    assert scored["reason"].nunique() == 1
    assert scored["probability"].dtype == float
    run("predict", "model.json", "new.csv", "--out", "s.csv", "--on-error", "skip")
    assert len(Path("s.csv").read_text(encoding="utf-8").splitlines()) == 1


def test_predict_reads_standard_input_and_writes_standard_output(folder):
    """So it stands in a pipe between other programs."""
    fit()
    run("predict", "model.json", "people.csv", "--out", "scored.csv")
    piped = run("predict", "model.json", "-", "--out", "-", given=Path("people.csv").read_bytes())
    assert piped.stdout == Path("scored.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather"])
def test_predict_takes_tables_batch_by_batch(folder, suffix):
    """Files whose types and columns differ, dictionaries among them; cells outside of the schema are added up."""
    fit()
    frame = pd.DataFrame(rows_of()).assign(extra=1)
    frame[["age", "hours [x]"]] = frame[["age", "hours [x]"]].apply(pd.to_numeric)
    frame.loc[[1, 150], "age"] = 4321.0
    Path("many").mkdir()
    write = {"csv": pd.DataFrame.to_csv, "parquet": pd.DataFrame.to_parquet, "feather": pd.DataFrame.to_feather}[suffix]
    options = {"index": False} if suffix != "feather" else {}
    first = frame.head(120).astype({"work": "category"})
    write(first, Path("many", f"a.{suffix}"), **options)
    write(frame.tail(80).drop(columns="extra").reset_index(drop=True), Path("many", f"b.{suffix}"), **options)
    shown = run("predict", "model.json", "many", "--out", f"scored.{suffix}")
    assert shown.stderr.count('"age": 2 cells lie outside') == 1
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet, "feather": pd.read_feather}[suffix]
    scored = read(f"scored.{suffix}")
    assert scored["extra"].isna().sum() == 80
    model = confide.load("model.json")
    with pytest.warns(confide.SchemaWarning):
        assert scored["prediction"].tolist() == model.predict(frame).tolist()
