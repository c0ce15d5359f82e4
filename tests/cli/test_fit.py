"""`confide fit`: what it shows and writes, for which tables."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import confide
from confide.estimators.logistic import LogisticRegression
from tests.cli.commands import (
    SCHEMA,
    SENTINEL,
    SENTINEL_NUMBER,
    fit,
    line_of,
    read_rows,
    refused,
    rows_of,
    run,
    spent,
    spoil,
    write_kinds,
    write_rows,
)


def test_fit_shows_the_plan_the_guarantee_and_the_largest_weights(folder):
    """In this order; the file then holds a private model."""
    text = fit("--out", "release.json").stdout
    parts = ["Plan", "Guarantee", "This model was released under", "Released coefficients", "Wrote release.json"]
    assert sorted(parts, key=text.index) == parts
    assert max(map(len, text.splitlines())) <= 80
    model = confide.load("release.json")
    assert model.guarantee_.void is None
    assert model.guarantee_.budget == confide.PureDP(1.0)


def test_fit_with_intervals_shows_them_and_keeps_them(folder):
    """A table on the screen and in JSON, again by inspect; the plan shows what the share buys."""
    write_rows(Path("people.csv"), rows_of(6000))
    text = fit("--intervals", "0.3", "--epsilon", "4", "--knots", "0").stdout
    assert "0.3 of the whole budget" in text
    assert "expected interval" in text
    assert re.search(r"^column +unit +coef +total err +\[0.025 +0.975\] +p$", text, re.MULTILINE)
    inspected = run("inspect", "model.json").stdout
    table = [line for line in inspected.splitlines() if re.match(r"(age|\(intercept\)) ", line)]
    assert len(table) == 4  # errors have a table of their own
    assert all(line in text for line in table)
    document = json.loads(run("inspect", "model.json", "--format", "json").stdout)
    assert document["intervals"] == confide.load("model.json").summary().to_dict()
    with_intervals, without = document["intervals"]["coefficients"], document["coefficients"]["coefficients"]
    assert document["intervals"]["units"] == document["coefficients"]["units"] == "original"
    assert [(row["name"], row["unit"]) for row in with_intervals] == [(row["name"], row["unit"]) for row in without]
    np.testing.assert_allclose([row["estimate"] for row in with_intervals], [row["estimate"] for row in without])
    assert json.loads(fit("--format", "json").stdout)["intervals"] is None


def test_fit_with_interest_shows_intervals_of_named_columns(folder):
    """Beside all weights, on the screen, in JSON and again by inspect; the plan forecasts them before any row is read."""
    write_rows(Path("people.csv"), rows_of(3000))
    options = ("--model", "logistic", "--epsilon", "8", "--delta", "1e-6", "--interest", "age")
    planned = run("plan", "--rows", "3000", "--schema", "people.toml", *options).stdout
    assert re.search(r"- age \(per 1\): about \+- [0-9.e-]+ at 95% if the column", planned)
    text = " ".join(fit(*options, "--out", "named.json").stdout.split())
    assert text.index("Released coefficients") < text.index("with intervals of 0.95") < text.index("The odds ratio is")
    shown = json.loads(run("inspect", "named.json", "--format", "json").stdout)["intervals"]
    assert [row["name"] for row in shown["coefficients"]] == ["age"]
    assert "with intervals of 0.95" in " ".join(run("inspect", "named.json").stdout.split())
    assert "Verified: what can be checked holds" in run("verify", "named.json").stdout
    assert "--interest is for --model logistic alone" in refused(
        "fit", "people.csv", "--schema", "people.toml", "--epsilon", "1", "--interest", "age"
    )


def test_fit_counts_rows_by_the_weight_of_the_schema(folder):
    """As `sample_weight` does in Python; plan and table say what weights, clusters and a finite population mean."""
    rows = [row | {"design": str(1 + place % 30)} for place, row in enumerate(rows_of(4000))]
    write_rows(Path("people.csv"), rows)
    weight = 'weight = { column = "design", high = 20, mean = 12 }\n'
    Path("people.toml").write_text(weight + SCHEMA, encoding="utf-8")
    options = ("--model", "logistic", "--epsilon", "8", "--delta", "1e-6", "--intervals", "0.3")
    design = ("--cluster-effect", "1.5", "--population-size", "50000")
    planned = run("plan", "--rows", "4000", "--schema", "people.toml", *options, *design, "--details").stdout
    assert "the effective sample is at least 0.6 of the rows" in " ".join(planned.split())
    command = ("fit", "people.csv", "--schema", "people.toml", "--out", "model.json", *options, *design, "--seed", "1")
    text = " ".join(run(*command, code=3).stdout.split())
    assert "the declared design effect of clustering, 1.5" in text
    assert "50,000 units of the population as it is" in text
    frame = pd.DataFrame(rows).replace("", np.nan)
    schema = confide.Schema.from_toml("people.toml")
    beside = LogisticRegression(
        confide.ApproxDP(8.0, 1e-6),
        schema=replace(schema, weight=None),
        inference_share=0.3,
        random_state=1,
        max_sample_weight=20.0,
        mean_sample_weight=12.0,
    ).fit(frame, frame["income"], sample_weight=np.minimum(frame["design"].astype(float), 20.0))
    np.testing.assert_array_equal(confide.load("model.json").coef_, beside.coef_)
    checked = run("check", "people.csv", "--schema", "people.toml").stdout
    assert re.search(r"^design +66\.\d%", checked, re.MULTILINE)


def test_fit_reads_all_files_of_a_pattern(folder):
    """Two files are the rows of both, with and without a cache; a pattern that matches nothing is refused."""
    Path("parts").mkdir()
    rows = rows_of(400)
    write_rows(Path("parts/b.csv"), rows[250:])
    write_rows(Path("parts/a.csv"), rows[:250])
    Path("cache").mkdir()
    for options in ((), ("--cache", "cache")):
        text = fit(*options, data="parts/*.csv").stdout
        assert "The number of rows, 400, is public." in " ".join(text.split())
    assert list(Path("cache").iterdir()) == []
    assert "no file matches" in refused("fit", "parts/*.parquet", "--schema", "people.toml", "--epsilon", 1)


def test_fit_never_tells_a_private_number_of_rows(folder):
    """Neither on the screen nor in JSON nor in the file."""
    write_rows(Path("people.csv"), rows_of(187))
    private = ("--neighbours", "add-or-remove-one", "--n-rows-bounds", "150", "300")
    shown = fit(*private).output + fit(*private, "--format", "json").output
    numbers = re.findall(r"(?<![\d.])187(?!\d)", shown + Path("model.json").read_text(encoding="utf-8"))
    assert numbers == []


def test_fit_shows_the_same_for_any_rows_but_for_the_weights(folder):
    """Two tables with nothing in common but their size give the same lines, weights taken out."""

    def without_weights(text):
        return re.sub(
            r"^\S.* (±\S+|-?\d+\.\d+(e[+-]\d+)?) *$|^(Larger|No larger) than noise .*(\n\S.*)*|^column .*$",
            "",
            text,
            flags=re.MULTILINE,
        )

    first = without_weights(fit().stdout)
    write_rows(Path("people.csv"), rows_of(reverse=True)[::-1])
    assert without_weights(fit().stdout) == first
    assert not re.search(
        r"accuracy|score|iteration|second|converged",
        first.replace("Scores computed", "").replace("in score of", "").replace("second account", ""),
    )


def test_fit_speaks_json(folder):
    """One document: where the model is, the plan, the guarantee and the released weights."""
    document = json.loads(fit("--format", "json").stdout)
    model = confide.load("model.json")
    assert document["model"] == "model.json"
    assert document["private"] is True
    assert document["plan"]["n_rows_bounds"] == [200, 200]
    assert document["guarantee"] == model.guarantee_.to_dict()
    assert document["statement"] == model.guarantee_.statement()
    assert list(document["weights"]) == list(model.coefficient_names_)


def test_weights_are_turned_towards_the_positive_class(folder):
    """Sorted classes are high and low, so the model's own weights speak of low; what is shown speaks of high."""
    document = json.loads(fit("--format", "json").stdout)
    model = confide.load("model.json")
    assert list(model.classes_) == ["high", "low"]
    assert document["weights_speak_of"] == "high"
    assert list(document["weights"].values()) == (-model.coef_[0]).tolist()
    assert document["intercept"] == -model.intercept_[0]
    assert 'in score of income = "high"' in run("inspect", "model.json").stdout
    for options in (("--model", "logistic"), ("--loss", "logistic")):
        fit(*options)
        assert 'in log-odds of income = "high"' in run("inspect", "model.json").stdout


def test_a_kernel_machine_is_fitted_shown_and_scores(folder):
    """With the kernel of its options, by the file that was written."""
    options = ("--model", "kernel-svm", "--kernel", "laplacian", "--length-scale", "0.5", "--n-features", "16")
    fit(*options, "--epsilon", "5")
    model = confide.load("model.json")
    assert (model.kernel, model.length_scale, model.n_features) == ("laplacian", 0.5, 16)
    assert "KernelSVC" in run("inspect", "model.json").stdout
    run("predict", "model.json", "people.csv", "--out", "scored.csv")
    scores = [float(row["score"]) for row in read_rows(Path("scored.csv"))]
    table = pd.read_csv("people.csv", dtype={"work": str}, keep_default_na=False, na_values=[""])
    assert scores == pytest.approx(-model.decision_function(table))  # "high" is the first of the sorted classes
    planned = ("plan", "--model", "kernel-svm", "--n-features", "16", "--schema", "people.toml", "--rows", "200")
    document = json.loads(run(*planned, "--epsilon", "5", "--format", "json").stdout)
    n_columns = 7  # of age, hours and work, which the rows keep beside the random features
    assert document["n_features"] == 16 + n_columns


def test_a_file_without_a_line_of_names_is_refused_with_advice(folder):
    """And its first row is not quoted."""
    Path("bare.csv").write_text(f"{SENTINEL_NUMBER},40.5,private,high\n30,20,state,low\n", encoding="utf-8")
    message = refused("fit", "bare.csv", "--schema", "people.toml", "--epsilon", "1")
    assert "its first line looks like data. Does the file lack a header line?" in message


def test_an_infinite_epsilon_is_loud_about_it(folder):
    """It must be asked for by name; the model is written and marked."""
    result = fit("--epsilon", "inf", code=3)
    assert "\nNOT PRIVATE." in result.stdout
    assert confide.load("model.json").guarantee_.void


def test_types_come_from_the_schema_and_not_from_the_rows(folder):
    """A category may look like a number, and a number may be missing; neither changes what another row means."""
    Path("people.toml").write_text(
        'target = { column = "y", negative = 0, positive = 1 }\n[columns]\n'
        'code = { categories = ["01", "2", "x"] }\nsize = { low = 0, high = 9, missing = true }\n',
        encoding="utf-8",
    )
    cells = [("1", "2.5", "1"), ("2", "NA", "0"), ("01", "", "1.0"), ("x", "8", "0")]
    Path("people.csv").write_text("code,size,y\n" + "".join(",".join(row) + "\n" for row in cells), encoding="utf-8")
    fit("--epsilon", "inf", "--out", "a.json", "--model", "logistic", code=3)
    frame = pd.DataFrame({"code": ["1", "2", "1", "x"], "size": [2.5, None, None, 8.0]})
    expected = LogisticRegression(float("inf"), schema=confide.Schema.from_toml("people.toml")).fit(frame, [1, 0, 1, 0])
    assert np.array_equal(confide.load("a.json").coef_, expected.coef_)


@pytest.mark.parametrize(
    ("cells", "advice"),
    [
        ({"age": SENTINEL}, 'column "age" holds cells that are not numbers'),
        ({"hours": f"{SENTINEL_NUMBER} h"}, 'column "hours [x]" holds cells that are not numbers'),
        ({"age": ""}, 'column "age": holds missing values'),
        ({"age": "inf"}, 'column "age": holds infinite numbers'),
        ({"income": SENTINEL}, 'people.csv: column "income": some are neither'),
        ({"income": SENTINEL_NUMBER}, 'people.csv: column "income": some are neither'),
        ({"income": ""}, 'people.csv: column "income": some are missing'),
    ],
)
def test_a_bad_cell_is_refused_without_being_shown(folder, cells, advice):
    """One line names the column, exit code 2, and no model is written."""
    spoil(**cells)
    message = refused("fit", "people.csv", "--schema", "people.toml", "--epsilon", 1, "--format", "json")
    assert advice in message
    assert not Path("model.json").exists()
    # As a person sees it: the plan may come before.
    result = fit(code=2)
    assert advice in result.stderr
    assert SENTINEL not in result.output
    assert SENTINEL_NUMBER not in result.output


def test_a_schema_without_a_target_cannot_train(folder):
    """The message shows the line to add."""
    Path("people.toml").write_text(SCHEMA.partition("[columns]")[2].join(["[columns]", ""]), encoding="utf-8")
    assert "names no target; add a line such as target = {" in refused(
        "fit", "people.csv", "--schema", "people.toml", "--epsilon", 1
    )


def test_three_classes_have_intervals(folder):
    """In the plan, on the screen, in JSON, on the page and again by inspect: each column of each class."""
    write_rows(Path("people.csv"), rows_of(6000))
    write_kinds()
    options = ("--epsilon", "8", "--intervals", "0.3", "--knots", "0", "--out", "kinds.json", "--report", "kinds.html")
    text = run("fit", "kinds.csv", "--schema", "kinds.toml", *options).output
    assert "coefficients in favour of the class named before each, with intervals of 0.95" in " ".join(text.split())
    assert "0.3 of the whole budget" in text
    assert "minus their mean over classes" in text.replace("\n", " ")
    model = confide.load("kinds.json")
    names = [one.name for one in model.summary().coefficients]
    assert len(names) == 3 * (len(model.coefficient_names_) - 1 + 1)
    assert [name for name in names if re.search(rf"^{re.escape(name)} .* -?\d", text, re.MULTILINE)] == names
    document = json.loads(run("inspect", "kinds.json", "--format", "json").stdout)
    assert [row["name"] for row in document["intervals"]["coefficients"]] == names
    page = Path("kinds.html").read_text(encoding="utf-8")
    assert model.summary().to_html() in page
    drawn = re.findall(r"text-anchor=\"end\"[^>]*>([^<]+)</text>", page)
    assert len([name for name in names if escape(name) in drawn]) >= 12  # the largest, and no intercepts


def test_three_classes_are_fitted_shown_and_predicted(folder):
    """The schema names the classes; weights by class, and the probability of the predicted one."""
    rows = write_kinds()
    shown = run("fit", "kinds.csv", "--schema", "kinds.toml", "--epsilon", "1", "--out", "kinds.json").output
    assert "Released coefficients" in shown or "largest of" in shown
    assert "z: (intercept)" in shown
    document = json.loads(run("inspect", "kinds.json", "--format", "json").output)
    assert list(document["weights"]) == list(document["intercept"]) == ["x", "y", "z"]
    assert document["weights_speak_of"] is None
    assert "probability of the predicted species" in run("predict", "kinds.json", "kinds.csv", "--out", "out.csv").output
    out, model = pd.read_csv("out.csv"), confide.load("kinds.json")
    np.testing.assert_allclose(out["probability"], model.predict_proba(rows).max(axis=1), rtol=1e-12)
    assert (out["prediction"] == model.predict(rows)).all()


def test_declared_effects_are_a_prior_and_their_refusals_name_their_option(folder):
    """Signs and sizes by column or level; the statement lists them, and so does a plan's release."""
    command = ("fit", "people.csv", "--schema", "people.toml", "--epsilon", "1")
    said = " ".join(fit("--effects", "age:up,work=state:-0.5", "--out", "declared.json").stdout.split())
    assert 'effects that were declared, without looking at the rows: "age" up, "work=state" -0.5.' in said
    assert confide.load("declared.json").prior.declared == (("age", "up"), ("work=state", -0.5))
    for text in ("agee:up", "age:upp", "work:up", "age:900"):
        said = refused(*command, "--effects", text, "--out", "x.json")
        assert "--effects" in said
        assert "prior" not in said
    assert "with a colon between" in refused(*command, "--effects", "age", "--out", "x.json")
    assert "one of --prior" in refused(*command, "--effects", "age:up", "--prior", "declared.json", "--out", "x.json")


def test_an_earlier_release_is_the_prior_of_new_rows(folder):
    """Its file, or a model that was fitted to public rows; plan and statement say it; others are refused."""
    command = ("fit", "people.csv", "--schema", "people.toml", "--epsilon", "1")
    fit("--out", "before.json")
    text = fit("--prior", "before.json", "--out", "after.json").stdout
    assert "the ridge pulls towards public weights of length" in text
    assert "a model that confide released under" in " ".join(text.split())
    assert confide.load("after.json").prior.coef == tuple(map(tuple, confide.load("before.json").coef_.tolist()))
    run("fit", "people.csv", "--schema", "people.toml", "--epsilon", "inf", "--out", "public.json", code=3)
    assert "--public-prior MODEL.json" in refused(*command, "--prior", "public.json", "--out", "x.json")
    assert "declared public" in " ".join(fit("--public-prior", "public.json", "--out", "y.json").stdout.split())
    assert "not both" in refused(*command, "--prior", "before.json", "--public-prior", "public.json", "--out", "x.json")
    assert "before.json" in refused(*command, "--prior", "before.json", "--out", "before.json", "--force")
    planned = run(
        "plan", "--schema", "people.toml", "--rows", 800, "--epsilon", 1, "--prior", "before.json", "--details"
    ).stdout
    assert "the ridge pulls towards public weights of length" in planned


def test_a_fit_that_was_interrupted_is_finished_under_its_charge(folder_with_ledger, monkeypatch):
    """With the same options; without a ledger, or with nothing to finish, it is refused."""

    def stopped(*_):
        raise KeyboardInterrupt

    fit = ("fit", "people.csv", "--schema", "people.toml", "--epsilon", "0.5")
    with monkeypatch.context() as patched:
        patched.setattr("confide.training.fit.released", stopped)
        run(*fit, "--ledger", "study.db", code=130)
    assert "give it with --ledger" in refused(*fit, "--finish")
    other = line_of(*fit, "--alpha", "0.25", "--ledger", "study.db", "--finish", code=2)
    assert "parameters or version differ" in other
    assert "Finished a charge of epsilon = 0.5" in run(*fit, "--ledger", "study.db", "--finish").stdout
    assert "nothing to be finished" in line_of(*fit, "--ledger", "study.db", "--finish", "--force", code=2)
    assert spent() == 0.5
