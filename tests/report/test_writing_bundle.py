"""The archive of a report: all parts, equal for equal reports, and a model that loads."""

from __future__ import annotations

import json
import zipfile

import pytest

from confide import FileError, Ledger, PureDP, Schema, load
from confide.report.contents import contents_of
from confide.report.writing import ledger_at, write_bundle
from tests.report.released import logistic


def test_an_archive_holds_everything_and_its_model_loads(tmp_path):
    model, ledger = logistic()
    contents = contents_of(model, ledger=ledger)
    names = write_bundle(contents, tmp_path / "a.zip")
    write_bundle(contents, tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert tuple(archive.namelist()) == names
        assert archive.testzip() is None
        archive.extractall(tmp_path / "out")
    out = tmp_path / "out"
    assert (load(out / "model.json").coef_ == model.coef_).all()
    assert Schema.from_toml(out / "schema.toml") == model.schema
    assert json.loads((out / "ledger.json").read_text())["entries"][0]["epsilon"] == 1.0
    assert (out / "report.html").read_text().startswith("<!doctype html>")
    assert json.loads((out / "report.json").read_text())["model_sha256"] == contents.sha256


def test_the_text_of_the_model_is_kept_and_files_are_not_replaced(tmp_path):
    contents = contents_of(logistic()[0])
    names = write_bundle(contents, tmp_path / "a.zip", model_text="as it was")
    assert "ledger.json" not in names
    assert zipfile.ZipFile(tmp_path / "a.zip").read("model.json") == b"as it was"
    with pytest.raises(FileError, match="exists already"):
        write_bundle(contents, tmp_path / "a.zip")


def test_the_readme_names_the_files_of_the_archive_and_an_export_is_no_ledger(tmp_path):
    model, ledger = logistic()
    write_bundle(contents_of(model, ledger=ledger, ledger_name="study.db"), tmp_path / "a.zip")
    card = zipfile.ZipFile(tmp_path / "a.zip").read("README.md").decode()
    assert "confide verify model.json --ledger study.db --schema schema.toml" in card
    assert "ask for the ledger itself" in card
    with pytest.raises(FileError, match="export of entries; ask for the ledger itself"):
        ledger_at("ledger.json")
    own = Ledger(tmp_path / "own.json", limit=PureDP(1.0))
    assert ledger_at(str(tmp_path / "own.json")).identity == own.identity
