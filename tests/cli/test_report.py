"""`confide report`, and the page that `confide fit` writes."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import pandas as pd

import confide
from confide import Ledger
from confide.files import document_text
from tests.cli.commands import SENTINEL, fit, refused, run


def test_fit_and_report_write_the_same_page(folder):
    """With the table of intervals; `report` makes it of the model file alone."""
    run(
        "fit",
        "people.csv",
        "--schema",
        "people.toml",
        "--epsilon",
        "100",
        "--intervals",
        "0.3",
        "--knots",
        "0",
        "--report",
        "fit.html",
    )
    run("report", "model.json", "--out", "again.html")
    page = Path("fit.html").read_text(encoding="utf-8")
    assert page == Path("again.html").read_text(encoding="utf-8")
    model = confide.load("model.json")
    assert model.summary().to_html() in page
    narrow = run("report", "model.json", "--out", "narrow.html", "--level", "0.5")
    assert "Wrote narrow.html" in narrow.stdout
    assert model.summary(0.5).to_html() in Path("narrow.html").read_text(encoding="utf-8")


def test_a_report_never_replaces_an_input_or_the_model(folder):
    """Refused before anything is charged."""
    fit()
    Path("model.html").write_text(Path("model.json").read_text(encoding="utf-8"), encoding="utf-8")
    assert "would be lost" in refused("report", "model.html", "--out", "model.html")
    assert "would be lost" in refused("report", "model.json", "--out", "model.json")
    assert "must end in" in refused("report", "model.json", "--out", "page.html", "--format", "pdf")
    options = ("people.csv", "--schema", "people.toml", "--epsilon", "1")
    assert "would be lost" in refused("fit", *options, "--out", "one.html", "--report", "one.html")


def test_formats_follow_the_option_and_the_ending(folder):
    """HTML by default; Markdown, JSON and an archive of all with the ledger and the schema."""
    Ledger("study.db", limit=2.0)
    fit("--ledger", "study.db")
    run("report", "model.json")
    assert Path("report.html").exists()
    run("report", "model.json", "--format", "markdown")
    assert Path("report.md").read_text(encoding="utf-8").startswith("---\n")
    options = ("--ledger", "study.db", "--analyst", "A. Name", "--data-name", "people", "--fingerprint", "people.csv")
    shown = run("report", "model.json", "--out", "r.json", *options).stdout
    assert "Private, and charged" in shown
    document = json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert document["ledger"]["charge"] == 1
    assert document["facts"]["Analyst"] == "A. Name"
    assert document["model_sha256"] == hashlib.sha256(Path("model.json").read_bytes()).hexdigest()
    run("report", "model.json", "--zip", "--ledger", "study.db")
    with zipfile.ZipFile("report.zip") as archive:
        assert archive.read("model.json") == Path("model.json").read_bytes()
        assert {"report.html", "README.md", "report.json", "schema.toml", "ledger.json"} <= set(archive.namelist())
        assert all(SENTINEL.encode() not in archive.read(name) for name in archive.namelist())
    assert "--zip writes every format" in refused("report", "model.json", "--zip", "--format", "json")


def test_a_fingerprint_is_shown_only_if_asked_for_and_with_a_warning(folder):
    fit()
    run("report", "model.json", "--out", "without.html")
    run("report", "model.json", "--out", "with.html", "--fingerprint", "people.csv")
    checksum = hashlib.sha256(Path("people.csv").read_bytes()).hexdigest()
    assert checksum not in Path("without.html").read_text(encoding="utf-8")
    page = Path("with.html").read_text(encoding="utf-8")
    assert checksum in page
    assert "no guarantee covers it" in page


def test_rates_on_private_rows_are_read_from_a_file(folder):
    fit("--model", "logistic")
    rates = confide.evaluate(confide.load("model.json"), *private_rows(), budget=1.0)
    Path("rates.json").write_text(json.dumps(rates.to_dict()), encoding="utf-8")
    run("report", "model.json", "--evaluation", "rates.json")
    assert f"{rates.accuracy.value:.3f}" in Path("report.html").read_text(encoding="utf-8")
    Path("bad.json").write_text("{}", encoding="utf-8")
    assert "evaluation must be" in refused("report", "model.json", "--evaluation", "bad.json", "--force")
    assert "not JSON" in refused("report", "model.json", "--evaluation", "people.csv", "--force")


def private_rows():
    frame = pd.read_csv("people.csv", keep_default_na=False, na_values={"hours [x]": [""]})
    return frame, frame["income"]


def test_a_report_forecasts_the_accuracy_from_a_guess(folder):
    fit("--model", "logistic", "--epsilon", "1")
    run("report", "model.json", "--error", "0.2")
    assert "Expected at this budget and others" in Path("report.html").read_text(encoding="utf-8")


def test_a_pdf_needs_a_browser(folder, monkeypatch):
    monkeypatch.setenv("CONFIDE_BROWSER", "no-such-browser")
    fit()
    assert "CONFIDE_BROWSER" in refused("report", "model.json", "--format", "pdf")


def test_the_refusal_of_an_ending_names_those_of_all_formats(folder):
    fit()
    words = refused("report", "model.json", "--out", "r.docx")
    assert all(ending in words for ending in (".html", ".pdf", ".md", ".json"))
    assert ".html" not in refused("report", "model.json", "--format", "pdf", "--out", "r.docx")


def test_no_report_offers_a_signature_for_a_file_that_verify_rejects(folder):
    """An edited epsilon with a new checksum: the page is red, says what fails, and the exit code is that of verify."""
    Ledger("study.db", limit=2.0)
    fit("--ledger", "study.db")
    content = json.loads(Path("model.json").read_text(encoding="utf-8"))["content"]
    content["guarantee"]["budget"]["epsilon"] = content["parameters"]["budget"]["epsilon"] = 0.01
    Path("changed.json").write_text(document_text(content), encoding="utf-8")
    assert "does not hold together" in run("report", "changed.json", "--ledger", "study.db", code=3).stdout
    page = Path("report.html").read_text(encoding="utf-8")
    assert 'class="verdict void"' in page
    assert "made again from public facts, has another" in page
    assert "do not sign" in page
    assert "Approved by" not in page
    assert "released privately" not in page
    run("report", "changed.json", "--format", "json", code=3)
    assert json.loads(Path("report.json").read_text(encoding="utf-8"))["private"] is False
    confide.load("changed.json").report("python.html")
    assert "do not sign" in Path("python.html").read_text(encoding="utf-8")
    assert "confide verify" in run("inspect", "model.json").stdout
