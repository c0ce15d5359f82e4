"""The page as a PDF."""

from __future__ import annotations

import pytest

from confide import FileError, ParameterError
from confide.report.writing import browser, write_pdf


def test_without_a_browser_the_error_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("CONFIDE_BROWSER", "no-such-browser")
    assert browser() is None
    with pytest.raises(ParameterError, match="CONFIDE_BROWSER"):
        write_pdf("<p>page</p>", tmp_path / "page.pdf")
    assert list(tmp_path.iterdir()) == []


def test_a_browser_that_prints_nothing_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setenv("CONFIDE_BROWSER", "true")
    with pytest.raises(FileError, match="printed nothing"):
        write_pdf("<p>page</p>", tmp_path / "page.pdf")
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("CONFIDE_BROWSER", "true")
    (tmp_path / "page.pdf").write_text("mine")
    with pytest.raises(FileError, match="exists already"):
        write_pdf("<p>page</p>", tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_text() == "mine"
