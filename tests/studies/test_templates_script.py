"""The script of a study."""

from __future__ import annotations

import ast
from dataclasses import replace

from confide.studies.templates import script_text, steps_of
from tests.starting.studies import SCHEMA, STUDY


def test_the_script_spends_only_if_it_is_asked_to() -> None:
    """Every step that uses rows stands under the question for --fit."""
    text = script_text(STUDY, steps_of(SCHEMA, STUDY))
    tree = ast.parse(text)
    (asked,) = [node for node in tree.body if isinstance(node, ast.If) and "--fit" in ast.unparse(node.test)]
    outside = "\n".join(ast.unparse(node) for node in tree.body if node is not asked)
    for word in ("open_rows", "Ledger", "fit", "save"):
        assert word in ast.unparse(asked)
        assert word not in outside
    assert text.endswith("\n")


def test_a_name_cannot_become_code() -> None:
    """A line break in it ends no comment."""
    text = script_text(replace(STUDY, name="x\nimport os"), steps_of(SCHEMA, STUDY))
    assert "\nimport os" not in text
