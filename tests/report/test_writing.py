"""Reports as files, and that none of them shows a value of the rows."""

from __future__ import annotations

import json

import pytest

from confide import FileError, Ledger, ParameterError, evaluate
from confide.estimators.linear_model import checksum_of_model
from confide.report.contents import contents_of
from confide.report.writing import format_of, text_of, write_report
from tests.report.released import SECRET_NUMBER, SECRET_WORD, additive, logistic, people, with_intervals


def test_the_ending_says_the_format_unless_one_is_asked_for():
    assert [format_of(f"a.{ending}", None) for ending in ("html", "HTM", "pdf", "md", "json", "txt")] == [
        "html", "html", "pdf", "markdown", "json", "html",
    ]  # fmt: skip
    assert format_of("a.txt", "json") == "json"
    with pytest.raises(ParameterError, match="file_format"):
        format_of("a.txt", "docx")


def test_a_model_writes_its_own_report(tmp_path):
    """By the ending, with what is known besides; never over another file unasked."""
    model, ledger = logistic.__wrapped__()
    ledger.note(1, {"sha256": checksum_of_model(model)})
    rated = evaluate(model, *people(400, 1), budget=1.0, ledger=Ledger(limit=2.0))
    model.report(tmp_path / "report.json", ledger=ledger, analyst="A. Name", evaluation=rated)
    assert json.loads((tmp_path / "report.json").read_text())["verdict"]["kind"] == "private"
    model.report(tmp_path / "report.md")
    assert (tmp_path / "report.md").read_text().startswith("---\n")
    with pytest.raises(FileError, match="exists already"):
        write_report(model, tmp_path / "report.md")
    write_report(model, tmp_path / "report.md", overwrite=True)


@pytest.mark.parametrize("made", [lambda: logistic()[0], with_intervals, additive])
@pytest.mark.parametrize("kind", ["html", "markdown", "json"])
def test_no_format_shows_a_value_of_the_rows(made, kind):
    """Neither a number that occurs in the rows nor a word of a cell; the same report for rows in another order."""
    model = made()
    text = text_of(contents_of(model, evaluation=evaluate(model, *people(400, 1), budget=1.0)), kind)
    assert SECRET_WORD not in text
    assert f"{SECRET_NUMBER}" not in text
    assert f"{SECRET_NUMBER:.4g}" not in text
