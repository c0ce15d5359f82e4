"""`confide report`, and the page that `confide fit` writes."""

from __future__ import annotations

from pathlib import Path

import confide
from tests.cli.commands import fit, refused, run


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
    assert "must end in" in refused("report", "model.json", "--out", "model.json")
    options = ("people.csv", "--schema", "people.toml", "--epsilon", "1")
    assert "would be lost" in refused("fit", *options, "--out", "one.html", "--report", "one.html")
