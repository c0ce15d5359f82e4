"""Columns that a schema describes and a table lacks, and the names in the table that were probably meant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from confide.known_words import closest, plain_name


@dataclass(frozen=True, slots=True)
class NameCheck:
    """How the names of a table and those of a schema agree.

    Parameters
    ----------
    absent : names of the schema that the table lacks, each with the name that was probably meant, or ""
    extra : names of the table that the schema does not describe; a fit does not read them
    repeated : names of the schema that come twice in the table
    is_header : whether the first line shares a name with the schema, so that it is a line of names; otherwise it may be
        data, and its cells must not be shown
    """

    absent: dict[str, str]
    extra: tuple[str, ...]
    repeated: tuple[str, ...]
    is_header: bool


def check_names(present: Sequence[str], wanted: Sequence[str]) -> NameCheck:
    """Compare the names of a table with those that a schema describes.

    Parameters
    ----------
    present : the names in the table
    wanted : the names in the schema: columns, target and person
    """
    others = [name for name in present if name not in wanted]
    absent = {name: closest(name, others, cutoff=0.75) for name in wanted if name not in present}
    repeated = tuple(name for name in wanted if list(present).count(name) > 1)
    plain = {plain_name(name) for name in others}
    is_header = len(absent) < len(wanted) or any(plain_name(name) in plain for name in absent)
    return NameCheck(absent, tuple(others), repeated, is_header)
