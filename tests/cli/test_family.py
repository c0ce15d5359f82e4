"""`confide family`, and `--adjust` of other commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import confide
from confide import Ledger
from tests.cli.commands import refused, run
from tests.studies.examples import TEXT

FIT = ("fit", "people.csv", "--schema", "people.toml", "--model", "logistic", "--epsilon", "60")


@pytest.fixture
def fitted(folder):
    """Two models with intervals and one without, all charged to a ledger."""
    Ledger("study.db", limit=1000.0)
    run(*FIT, "--intervals", "0.3", "--ledger", "study.db", "--purpose", "primary", "--out", "all.json")
    run(*FIT, "--intervals", "0.3", "--alpha", "0.3", "--ledger", "study.db", "--purpose", "second", "--out", "more.json")
    run(*FIT, "--ledger", "study.db", "--out", "bare.json")
    return folder


def test_a_family_of_files_and_of_a_ledger(fitted):
    """Every fit of the ledger, or those of one purpose; what has no test is named; JSON says the same."""
    text = run("family", "--ledger", "study.db").stdout
    count = 2 * sum(bool(one.unit) for one in confide.load("all.json").summary().coefficients)
    assert f"A family of {count} tests" in text
    assert "bought no intervals" in " ".join(text.split())
    primary = json.loads(run("family", "--ledger", "study.db", "--purpose", "primary", "--format", "json").stdout)
    assert {one["analysis"] for one in primary["tests"]} == {"all"}
    of_age = ("family", "all.json", "more.json", "--columns", "age", "--p-value", "survey=0.2", "--adjust", "bonferroni")
    found = json.loads(run(*of_age, "--format", "json").stdout)
    assert [one["analysis"] for one in found["tests"]] == ["survey", "all", "more"]
    assert found["tests"][0]["adjusted_p_value"] == pytest.approx(0.6)


def test_what_makes_no_family_is_refused_in_one_line(fitted):
    """A fit that is left out, names, numbers, and models without intervals."""
    Path("more.json").unlink()
    assert "charge 2 of the ledger is a fit" in refused("family", "--ledger", "study.db")
    assert "same name" in refused("family", "all.json", "--p-value", "all=0.5")
    assert "must be like survey=0.012" in refused("family", "all.json", "--p-value", "0.5")
    assert "must be like 3=0.012" in refused("family", "--ledger", "study.db", "--p-value", "a=0.5")
    assert "released nothing for intervals" in refused("family", "bare.json")
    assert "--columns must name columns" in refused("family", "all.json", "--columns", "age,")
    assert "has no test" in refused("family")


def test_inspect_and_report_correct_for_the_family_of_all_coefficients(fitted):
    """On the screen, on the page, on the card and in JSON; refused where there are no intervals."""
    text = run("inspect", "all.json", "--adjust", "single-step").stdout
    assert "intervals of 0.95 together" in " ".join(text.split())
    assert "adjusted p" in text
    said = json.loads(run("inspect", "all.json", "--adjust", "holm", "--format", "json").stdout)
    table = confide.load("all.json").summary(adjust="holm")
    assert said["intervals"] == table.to_dict()
    for name in ("page.html", "card.md", "report.json"):
        run("report", "all.json", "--adjust", "holm", "--out", name)
    assert table.to_html() in Path("page.html").read_text(encoding="utf-8")
    assert "| Adjusted p |" in Path("card.md").read_text(encoding="utf-8")
    assert json.loads(Path("report.json").read_text(encoding="utf-8"))["intervals"]["adjust"] == "holm"
    assert "--adjust is for models with intervals" in refused("inspect", "bare.json", "--adjust", "holm")
    assert "for models with intervals" in refused("report", "bare.json", "--adjust", "holm", "--out", "no.html")


def test_a_study_corrects_the_p_values_of_its_report(folder_with_ledger):
    """[outputs] adjust; refused before the charge where the report could not be made."""
    text = TEXT.replace('"logistic"', '"logistic"\nalpha = 0.5').replace("[outputs]", '[outputs]\nadjust = "holm"')
    Path("study.toml").write_text(text, encoding="utf-8")
    assert "[outputs] adjust: is for models with intervals" in refused("run", "study.toml")
    Path("study.toml").write_text(text.replace('"holm"', '"fdr"'), encoding="utf-8")
    assert '[outputs] adjust: must be one of "single-step"' in refused("run", "study.toml")
    assert len(Ledger("study.db").entries()) == 0


RISKS = """
target = { column = "ill", negative = "no", positive = "yes" }
[columns]
age = { low = 17, high = 90 }
drug = { categories = ["none", "some"] }
"""


def test_differences_of_risks_are_planned_fitted_and_shown(folder):
    """`plan` forecasts them; `fit`, `inspect` and `report` show them; `verify` makes their plan again."""
    Path("trial.toml").write_text(RISKS, encoding="utf-8")
    lines = [f"{17 + i % 74},{'none' if i % 3 else 'some'},{'yes' if (i * 7) % 11 < 5 else 'no'}" for i in range(20_000)]
    Path("trial.csv").write_text("\n".join(["age,drug,ill", *lines]), encoding="utf-8")
    options = ("--schema", "trial.toml", "--model", "logistic", "--epsilon", "2", "--delta", "1e-6", "--interest", "drug")
    planned = run("plan", "--rows", "20000", *options, "--risk-differences").stdout
    assert "Its difference of risks: about +-" in " ".join(planned.split())
    text = run("fit", "trial.csv", *options, "--risk-differences").stdout
    assert "risk differences in favour of ill" in text
    model = confide.load("model.json")
    said = json.loads(run("inspect", "model.json", "--format", "json").stdout)
    assert said["risk_differences"] == model.average_risk_differences().to_dict()
    for name in ("page.html", "card.md", "report.json"):
        run("report", "model.json", "--out", name)
    assert "Risk differences, standardised over the rows" in Path("page.html").read_text(encoding="utf-8")
    assert "## Risk differences" in Path("card.md").read_text(encoding="utf-8")
    assert "risk_differences" in json.loads(Path("report.json").read_text(encoding="utf-8"))
    assert "Verified: what can be checked holds." in run("verify", "model.json", "--schema", "trial.toml").stdout
    refusal = refused("fit", "trial.csv", *options[:-2], "--risk-differences", "--out", "other.json")
    assert "--risk-differences are for columns that interest names" in refusal
