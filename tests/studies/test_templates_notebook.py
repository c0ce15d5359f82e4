"""The notebook of a study."""

from __future__ import annotations

import ast
import json
import re

import pytest

from confide.studies.templates import notebook_text, steps_of
from tests.starting.studies import SCHEMA, STUDY


def test_the_notebook_has_the_format_of_notebooks() -> None:
    """Version 4.5: cells with different identifiers, code without outputs."""
    document = json.loads(notebook_text(STUDY, steps_of(SCHEMA, STUDY)))
    assert set(document) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    identifiers = [cell["id"] for cell in document["cells"]]
    assert len(set(identifiers)) == len(identifiers)
    assert all(re.fullmatch("[a-zA-Z0-9-_]{1,64}", identifier) for identifier in identifiers)
    for cell in document["cells"]:
        expected = {"cell_type", "id", "metadata", "source"}
        if cell["cell_type"] == "code":
            expected |= {"execution_count", "outputs"}
            assert (cell["execution_count"], cell["outputs"]) == (None, [])
            ast.parse("".join(cell["source"]))
        assert set(cell) == expected


def test_nbformat_finds_it_valid() -> None:
    """Where nbformat is installed."""
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    nbformat.validate(nbformat.reads(notebook_text(STUDY, steps_of(SCHEMA, STUDY)), as_version=4))
