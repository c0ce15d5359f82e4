"""The check of a table against its schema, before anything is spent: counts for its curator, which are not for release."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

from confide.blocks import Block, group, heading, html_of, table, text
from confide.data.file_rows import kinds_read
from confide.data.files import SEPARATORS, FilePart, Stamp, arrow_schema
from confide.errors import ConfideError
from confide.features.canonical_labels import MISSING_WORDS, canonical_label, na_is_a_code
from confide.features.columns import Column, NumberColumn, listed_codes
from confide.features.schema import Schema, Target
from confide.known_words import closest, listed, plain_name, printable_lines
from confide.studies.counting import ColumnCounts, PersonCounts
from confide.studies.text_tables import ENCODING_NAMES, TextForm, form_of, is_text_table, looks_like_data, table_pieces

NOT_FOR_RELEASE = "Computed from the rows; not for release."


@dataclass
class FileCheck:
    """What was found of one file, and how its names and those of the schema agree.

    Parameters
    ----------
    path : the file
    form : how it is written; None for Parquet and Feather files
    present : the names in its first line, or those that it declares
    wanted : the names in the schema: columns, target, person and weight
    refusal : the message with which a fit refuses the file, or ""
    n_ragged : how many rows have more or fewer cells than the first line has names
    """

    path: Path
    form: TextForm | None
    present: Sequence[str]
    wanted: Sequence[str]
    refusal: str = ""
    n_ragged: int = 0

    @classmethod
    def of(cls, path: Path, schema: Schema) -> FileCheck:
        """What is found of a file before its rows are read."""
        wanted = tuple(kinds_read(schema))
        form = form_of(path, wanted, whole=True) if is_text_table(path) else None
        found = cls(path, form, tuple(arrow_schema(path).names) if form is None else form.names, wanted)
        try:
            FilePart(Stamp.of(path), kinds_read(schema)).check()
        except ConfideError as error:
            found.refusal = str(error)
        return found

    @cached_property
    def absent(self) -> dict[str, str]:
        """Names of the schema that the table lacks, each with the name that was probably meant, or ""."""
        return {name: closest(name, self.extra, cutoff=0.75) for name in self.wanted if name not in self.present}

    @cached_property
    def extra(self) -> list[str]:
        """Names of the table that the schema does not describe; a fit does not read them."""
        return [name for name in self.present if name not in self.wanted]

    @cached_property
    def repeated(self) -> list[str]:
        """Names of the schema that come twice in the table."""
        return [name for name in self.wanted if self.present.count(name) > 1]

    @cached_property
    def is_header(self) -> bool:
        """Whether the first line shares a name with the schema. Otherwise it may be data, and must not be shown."""
        plain = set(map(plain_name, self.extra))
        return len(self.absent) < len(self.wanted) or any(plain_name(name) in plain for name in self.absent)

    def skip(self, _row: object) -> str:
        """Count a row with more or fewer cells than there are names, and have it skipped."""
        self.n_ragged += 1
        return "skip"


@dataclass(frozen=True, slots=True)
class TableCheck:
    """A table compared with its schema.

    Parameters
    ----------
    files : one entry for each file
    counted : counts of the columns of the schema that all files have, and of the target
    persons : as `PersonCounts.summary` gives them; None without a column of persons
    rows_per_person : the largest number of rows of one person that a fit would be told
    n_rows : how many rows were counted
    shows_values : whether unlisted levels were remembered to be shown
    """

    files: tuple[FileCheck, ...]
    counted: tuple[ColumnCounts, ...]
    persons: dict[str, int] | None
    rows_per_person: int
    n_rows: int
    shows_values: bool


def check_table(paths: Sequence[Path], schema: Schema, *, rows_per_person: int = 1, show_values: bool = False) -> TableCheck:
    """Compare the rows of files with a schema.

    The rows are read once, piece by piece. Memory grows with their number only if the schema names a column of persons.

    Parameters
    ----------
    paths : files of text, Parquet or Feather files
    schema : the public description of the columns
    rows_per_person : as for a fit
    show_values : whether unlisted levels are remembered to be shown

    Raises
    ------
    FileError
        If a file cannot be read at all. The message shows no cell.
    """
    files = tuple(FileCheck.of(path, schema) for path in paths)
    absent = {name for file in files for name in (*file.absent, *file.repeated)}
    described: dict[str, Column | Target] = {column.name: column for column in schema.columns}
    if schema.weight is not None:  # weights of rows are counted like any other number between public bounds
        described[schema.weight.column] = NumberColumn(schema.weight.column, low=0.0, high=schema.weight.high)
    if schema.target is not None:
        described[schema.target.column] = schema.target
    counted = tuple(ColumnCounts(name, kind, show_values) for name, kind in described.items() if name not in absent)
    persons = None
    if schema.person is not None and schema.person not in absent:
        persons = PersonCounts(schema.person, tuple(column.name for column in counted))
    n_rows = 0
    names = [column.name for column in counted] + ([] if persons is None else [persons.name])
    for file in files if counted else ():
        for piece in table_pieces(file.path, names, file.form, file.skip):
            n_rows += piece.num_rows
            for counts in counted:
                counts.add(piece, from_text=file.form is not None)
            if persons is not None:
                persons.add(piece)
    summary = None if persons is None else persons.summary(rows_per_person)
    return TableCheck(files, counted, summary, rows_per_person, n_rows, show_values)


def share(count: int, of: int) -> float:
    """A share from 0 to 1; 0 of nothing."""
    return count / of if of else 0.0


# What a curator should do about a table, in sentences: what a fit would refuse first, then what deserves a look.

_LARGE_SHARE = 0.05
"""A share of clipped or unlisted cells above which the schema deserves a second look."""
_MOST_NAMES = 8


Findings: TypeAlias = tuple[list[str], list[str]]
"""Sentences: for what a fit would refuse the table, and what deserves a look. Each says what was found, and what to do."""
_Say: TypeAlias = Callable[[str], None]


def findings_of(check: TableCheck) -> Findings:
    """All findings: those for which a fit would refuse the table, and the others."""
    refused, noted = list[str](), list[str]()
    for file in check.files:
        _of_file(file, refused.append, noted.append)
    if check.n_rows == 0 and not refused:
        refused.append("There are no rows below the names of the columns.")
    for column in check.counted if check.n_rows else ():
        _of_column(column, refused.append, noted.append)
    if check.persons is not None:
        for name, sentence in _of_persons(check.persons, check.rows_per_person).items():
            if check.persons[name]:
                (noted if name in ("persons_above", "repeated_rows") else refused).append(sentence)
    return refused, noted


def percent(count: int, of: int) -> str:
    """A share for people: "0.3%", and never "0.0%" for a cell that is there."""
    value = 100.0 * share(count, of)
    if count == 0 or count == of:
        return f"{value:.0f}%"
    return "below 0.1%" if value < 0.1 else "above 99.9%" if value > 99.9 else f"{value:.1f}%"


def _of_file(file: FileCheck, refuse: _Say, note: _Say) -> None:
    name = file.path.name
    if file.form is not None and not file.is_header and looks_like_data(file.present):
        refuse(f"{name}: the first line looks like data. Put a line with the names of the columns first.")
    elif not file.is_header:
        refuse(
            f"{name}: no column of the schema is in the first line, which may be data; so it is not shown. Put a line with "
            f"the names of the columns first, or correct the names in the schema."
        )
    else:
        for absent, meant in file.absent.items():
            question = f' Did you mean "{meant}"?' if meant else ""
            refuse(f'{name}: has no column "{absent}".{question} Correct the schema or the file.')
        if file.repeated:
            refuse(f"{name}: has more than one column of the name {listed(file.repeated)}.")
        extra = [other for other in file.extra if other.strip() and other not in file.absent.values()]
        if extra:
            note(f"{name}: the schema does not describe {_first_of(extra)}; a fit leaves that out.")
    encoding = "UTF-8" if file.form is None else ENCODING_NAMES[file.form.encoding]
    if file.form is not None and file.form.separator not in (",", "\t"):
        separator = SEPARATORS[file.form.separator]
        note(f"{name}: {separator} stand between cells, and a fit reads them so.")
    if encoding != "UTF-8":
        refuse(f"{name}: the text is in {encoding}, and a fit expects UTF-8. Write it anew in UTF-8.")
    if file.n_ragged:
        refuse(
            f"{name}: {file.n_ragged:,} rows have more or fewer cells than the first line has names. They are not "
            f"counted here. Decimal commas, or text with separators that is not in quotes, are usual reasons."
        )
    explained = file.absent or file.repeated or file.n_ragged or encoding != "UTF-8"
    if file.refusal and not explained:
        refuse(f"A fit refuses the file: {file.refusal}")


def _first_of(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    return listed(names[:_MOST_NAMES]) + (f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else "")


def _of_column(column: ColumnCounts, refuse: _Say, note: _Say) -> None:
    what = f'{"target" if column.is_target else "column"} "{column.name}"'
    rows = column.rows
    if column.decimal_commas:
        refuse(
            f"{what}: {percent(column.decimal_commas, rows)} of the cells are numbers with a decimal comma. Write them with "
            f"a point: save the table anew from the spreadsheet, or with pandas.read_csv(..., decimal=',').to_csv(...)."
        )
    if others := column.unreadable - column.decimal_commas:
        kind = "numbers" if column.described.bounds is not None else "text, numbers or booleans"
        refuse(
            f"{what}: {percent(others, rows)} of the cells are not {kind} and not empty. Correct them, leave them empty, or "
            f"describe the column as a category. Dates are not read: turn them into a number, such as days since a date."
        )
    if column.infinite:
        refuse(f"{what}: {percent(column.infinite, rows)} of the cells are infinite. Leave them empty.")
    _of_missing(column, what, refuse, note)
    if column.is_target:
        if column.unlisted:
            refuse(
                f"{what}: {percent(column.unlisted, rows)} of the cells are none of the labels of the schema. Correct the "
                f"labels, or leave these rows out by a rule that is public."
            )
    elif not column.as_described and not column.unreadable:
        refuse(
            f"{what}: no cell is as the schema describes it, so its weight would be noise alone. Correct the description or "
            f"leave the column out."
        )
    elif column.unlisted:
        note(_of_unlisted(column, what))
    _of_codes(column, what, note)
    if share(column.clipped, rows) > _LARGE_SHARE:
        below, above = percent(column.below, rows), percent(column.above, rows)
        note(
            f"{what}: {percent(column.clipped, rows)} of the cells lie outside the bounds ({below} below, {above} above), "
            f"and a fit clips them. Is the unit right?"
        )
    unused = [str(level) for level, count in zip(column.described.labels, column.by_level, strict=False) if not count]
    if unused and column.as_described:
        note(f"{what}: no row has {_first_of(unused)}. Is it spelled as in the table?")


def _of_missing(column: ColumnCounts, what: str, refuse: _Say, note: _Say) -> None:
    if not column.missing:
        return
    described, words, part = column.described, column.missing_words, percent(column.missing_words, column.rows)
    is_level = described.bounds is None
    empty = f"{what}: {percent(column.missing, column.rows)} of the cells are empty."
    if words:
        empty = f"{empty[:-1]} or hold a word such as NA ({part}), which is a missing cell unless it is listed."
    advice = "Declare missing = true or other = true."
    if is_level and words and na_is_a_code([canonical_label(level) for level in column.described.labels]):
        advice = 'If NA is a code like the listed ones (Namibia), list "NA" too. Declare missing = true only if it is none.'
    elif words:
        advice = "Declare missing = true; or, if such a word is a category, list it."
    elif lost := [level for level in column.described.labels if canonical_label(level) in MISSING_WORDS]:
        advice = (
            f'Many programs take the listed "{lost[0]}" for an empty cell: write the file anew so that the level is kept. '
            f"Declare missing = true only if these cells are empty in the original."
        )
    if isinstance(described, Target):
        refuse(f"{empty} Give only rows whose target is known.")
    elif described.is_number and not described.missing:
        refuse(f"{empty} Declare missing = true, or fill them in by a rule that does not depend on the data.")
    elif not described.is_number and not (described.missing or described.other):
        refuse(f"{empty} {advice}")
    elif is_level and words:
        note(f"{what}: {part} of the cells hold a word such as NA and are missing. If it is a category, list it.")


def _of_codes(column: ColumnCounts, what: str, note: _Say) -> None:
    codes = column.likely_codes
    if not codes:
        return
    shown = f" ({listed_codes(codes[:_MOST_NAMES])})" if column.remembers else ""
    part = percent(sum(column.outside[code] for code in codes), column.rows)
    remedy = "Leave such rows out by a rule that is public."
    if not column.is_target:
        remedy = "If the codebook says so, declare them, as in missing = [999, -9]; otherwise a fit clips them to the bound."
    which = "a number" if len(codes) == 1 else f"{len(codes)} numbers"
    note(f"{what}: {part} of the cells repeat {which} outside the bounds, as codes for missing cells do{shown}. {remedy}")


def _of_unlisted(column: ColumnCounts, what: str) -> str:
    cells = f"{what}: {percent(column.unlisted, column.rows)} of the cells hold no listed category"
    other = getattr(column.described, "other", False)
    if other is False:
        return f"{cells}, so they have no effect at all. Declare other = true."
    where = "share one level" if other is True else f'count as "{other}"'
    question = (
        " Are frequent ones forgotten? Where they are too many to list, `confide bounds --levels` finds them, at a price."
        if share(column.unlisted, column.rows) > _LARGE_SHARE
        else ""
    )
    return f"{cells}; they {where}.{question}"


def _of_persons(persons: dict[str, int], most: int) -> dict[str, str]:
    """What is to be said of persons where there are some, by the name of their count."""
    n, several = {name: f"{count:,}" for name, count in persons.items()}, "s" if most > 1 else ""
    return {
        "rows_without_person": f"{n['rows_without_person']} rows name no person; a fit refuses them.",
        "rounded_rows": f"{n['rounded_rows']} rows name a person by a floating-point number so large that its type rounds "
        f"it. Write identifiers as integers or as text.",
        "respelled": f"{n['respelled']} of {n['persons']} identifiers of persons are another one in another spelling, as 7, "
        f"7.0 and 007 are, or A1 and a1. Write each person in one way in all files; different persons need identifiers that "
        f"differ in more than spelling.",
        "persons_above": f"{n['persons_above']} of {n['persons']} persons have more than {most} "
        f"row{several}; a fit leaves out {n['rows_above']} rows, drawn at random. The largest number of rows of one person "
        f"is {n['most_rows']}; choose --max-rows-per-person by what is publicly known, not by this number.",
        "repeated_rows": f"{n['repeated_rows']} rows repeat another row of the same person in every described column. Were "
        f"rows copied?",
    }


# The check of a table as JSON for programs, and as a page for its curator. Both say that they are not for release.

HEADS = ("column", "as described", "clipped", "unlisted", "missing", "unreadable")
MOST_LEVELS_SHOWN = 20


def rows_of_table(check: TableCheck) -> list[tuple[str, ...]]:
    """One row of text for each column: its name, and the share of cells of each kind. The heads are `HEADS`."""
    return [
        (
            f"{column.name} (target)" if column.is_target else column.name,
            percent(column.as_described, column.rows),
            "" if column.described.bounds is None else percent(column.clipped, column.rows),
            "" if column.described.bounds is not None else percent(column.unlisted, column.rows),
            percent(column.missing, column.rows),
            percent(column.unreadable + column.infinite, column.rows),
        )
        for column in check.counted
    ]


def verdict(findings: Findings) -> str:
    """One sentence: whether a fit would take the table."""
    count = len(findings[0])
    if not count:
        return "A fit would take this table."
    return f"A fit would refuse this table, for {count} reason{'s'[: count != 1]}."


def check_document(check: TableCheck, findings: Findings) -> dict[str, Any]:
    """The check, for programs."""
    targets = [column for column in check.counted if column.is_target]
    document: dict[str, Any] = {
        "note": NOT_FOR_RELEASE,
        "verdict": verdict(findings),
        "rows": check.n_rows,
        "findings": [
            {"refused": is_refused, "text": sentence}
            for is_refused, sentences in zip((True, False), findings, strict=True)
            for sentence in sentences
        ],
        "columns": {column.name: _counts(column) for column in check.counted if column not in targets},
        "target": {"column": targets[0].name, **_counts(targets[0])} if targets else None,
        "persons": check.persons,
    }
    if check.shows_values:
        document["unlisted_levels"] = {name: dict(levels) for name, levels in _unlisted_levels(check)}
    return document


def _unlisted_levels(check: TableCheck) -> list[tuple[str, list[tuple[str, int]]]]:
    """The most frequent unlisted levels of each column, if they were remembered to be shown."""
    return [(column.name, column.levels.most_common(MOST_LEVELS_SHOWN)) for column in check.counted if column.levels]


def blocks_of_check(check: TableCheck, findings: Findings) -> Iterator[Block]:
    """The check, for a page and for a terminal."""
    yield group([text(NOT_FOR_RELEASE, style="bold red")], style="mark")
    yield text(f"{verdict(findings)} {check.n_rows:,} rows were read.", style="bold")
    yield group([Block("list", [f"REFUSED: {sentence}" for sentence in findings[0]])], style="refused")
    yield Block("list", findings[1])
    if check.n_rows and check.counted:
        yield heading("Shares of the cells")
        yield table(HEADS, rows_of_table(check))
    if levels := _unlisted_levels(check):
        yield heading("Unlisted levels, with the number of their rows")
        for name, counts in levels:
            yield text(f"{name}: {', '.join(f'{level} ({count:,})' for level, count in counts)}")


def check_page(check: TableCheck, findings: Findings, title: str) -> str:
    """The check as a page of HTML; the title says what was checked."""
    style = files("confide.studies").joinpath("texts", "check.css").read_text(encoding="utf-8")
    return printable_lines(
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{style}</style></head>\n<body><main>\n<h1>{escape(title)}</h1>\n"
        f"{html_of(*blocks_of_check(check, findings))}\n</main></body></html>\n"
    )


def _counts(column: ColumnCounts) -> dict[str, Any]:
    """Counts and shares of a column."""
    counts = {
        "as_described": column.as_described,
        "missing": column.missing,
        "unreadable": column.unreadable,
        "infinite": column.infinite,
        "clipped_below": column.below,
        "clipped_above": column.above,
        "unlisted": column.unlisted,
        "decimal_commas": column.decimal_commas,
    }
    return {"rows": column.rows, **{name: {"cells": n, "share": share(n, column.rows)} for name, n in counts.items()}}
