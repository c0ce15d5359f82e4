"""The working folders of tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from confide import Ledger
from tests.cli.commands import SCHEMA, rows_of, write_few_people, write_rows


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with people.csv and people.toml, without a terminal, so that prose has 80 columns."""
    monkeypatch.chdir(tmp_path)
    for name in ("COLUMNS", "CONFIDE_DEBUG", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    write_rows(Path("people.csv"), rows_of())
    Path("people.toml").write_text(SCHEMA, encoding="utf-8")
    return tmp_path


@pytest.fixture
def folder_with_ledger(tmp_path, monkeypatch):
    """A working folder with people.csv, people.toml and a ledger of epsilon 2, 200 columns wide."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("CONFIDE_DEBUG", raising=False)
    write_few_people()
    Ledger("study.db", limit=2.0)
    return tmp_path
