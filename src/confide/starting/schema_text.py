"""The text of a schema that begins: TOML with comments for the person who fills it in."""

from __future__ import annotations

from confide.features.blanks import BLANK
from confide.features.toml_form import toml_key, toml_value
from confide.starting.drafts import ColumnDraft, SchemaDraft

_FILLED = """\
# What is publicly known of the columns. Bounds, levels and labels come from a codebook, the law or common sense, and
# never from the rows: a maximum that was looked up in the data is a fact about one person.
"""
_FROM_ROWS = """\
# Types, bounds and levels were suggested from the rows of {file}, which --public-file declared to be public.
# If a row of that file is about a person who is to be protected, this page reveals it: write these values anew, by
# what is publicly known. Correct them in any case.
"""
_BLANK = """\
#
# Replace each "{blank}". `confide plan` and `confide fit` name what is still to be filled in.
#   a number:    {{ low = 0, high = 120 }}                      values outside are clipped to these bounds
#                {{ low = 100, high = 1e6, scale = "log10" }}   only if values spread over powers of ten, all above 0
#                {{ low = 0, high = 1e6, scale = "log" }}       only if values spread over powers of ten from 0 on
#                {{ low = 0, high = 120, unit = "years" }}      the unit, for tables and pictures
#   a category:  {{ categories = ["a", "b"] }}                  all levels that are known to occur
#                {{ categories = ["a", "b"], other = true }}    all other levels together get a level of their own
#   missing = true         in any of them: cells may be empty.
#   missing = [999, -9]    the same, and these codes stand for empty cells.
# Where nobody knows bounds, `confide bounds` releases private ones, at a price.
# Delete the line of a column that the model does not need: every column adds noise.
"""
_TARGETS = """\
# What is predicted: two labels; or classes = ["a", "b", "c"]; or a number, low = 0, high = 20000, unit = "USD".
"""
_UNKNOWN_TARGET = """\
# Take the line of this column out of [columns] below.
"""


def schema_text(draft: SchemaDraft) -> str:
    """The text of the file, which reads as the schema when every blank is filled in."""
    introduction = _FROM_ROWS.format(file=_in_a_comment(draft.from_rows)) if draft.from_rows else _FILLED
    advice = _TARGETS + (_UNKNOWN_TARGET if draft.target["column"] == BLANK else "")
    lines = [introduction + (_BLANK.format(blank=BLANK) if draft.n_blank else ""), advice + _target_line(draft)]
    if draft.person is not None:
        lines.append(f"# Identifies the person a row belongs to; it is not a feature.\nperson = {toml_value(draft.person)}")
    kept = [column for column in draft.columns if column.description is not None]
    left_out = [column for column in draft.columns if column.description is None]
    lines.append("\n".join(["[columns]", *(_line(column) for column in kept)]))
    if left_out:
        lines.append("\n".join(f"# {_in_a_comment(column.name)}: {column.note or 'left out'}" for column in left_out))
    return "\n\n".join(line.rstrip("\n") for line in lines) + "\n"


def _target_line(draft: SchemaDraft) -> str:
    return f"target = {toml_value(draft.target)}"


def _line(column: ColumnDraft) -> str:
    note = f"  # {_in_a_comment(column.note)}" if column.note else ""
    return f"{toml_key(column.name)} = {toml_value(column.description)}{note}"


def _in_a_comment(text: str) -> str:
    """Text that cannot end a comment: a line break in a name would begin a line of TOML."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
