"""The check of a table against its schema, before anything is spent: counts for its curator, which are not for release."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

from confide.blocks import Block, group, heading, html_of, table, text
from confide.data.files import SEPARATORS, FilePart, Stamp, arrow_schema, stated_by_folders
from confide.data.sources import kinds_read
from confide.errors import ConfideError
from confide.features.canonical_labels import MISSING_WORDS, canonical_label, na_is_a_code
from confide.features.cells import shown_days
from confide.features.columns import CategoryColumn, Column, NumberColumn, listed_codes
from confide.features.schema import Schema, Target
from confide.known_words import closest, listed, plain_name, printable_lines, sentences_of
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
        names = tuple(arrow_schema(path).names) if form is None else form.names
        found = cls(path, form, (*names, *(stated_by_folders(path).keys() - set(names))), wanted)
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
    cohort : the column of cohorts, whose one level is that of the rows to be used, or None
    rows_per_person : the largest number of rows of one person that a fit would be told
    n_rows : how many rows were counted
    shows_values : whether unlisted levels were remembered to be shown
    """

    files: tuple[FileCheck, ...]
    counted: tuple[ColumnCounts, ...]
    persons: dict[str, int] | None
    cohort: str | None
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
    # Weights and exposures are counted like any other number between public bounds.
    described |= {one.column: NumberColumn(one.column, one.low, one.high) for one in schema.beside}
    least = {one.column: min(one.low, math.ulp(0.0)) for one in schema.beside}
    if schema.cohort is not None:
        described[schema.cohort[0]] = CategoryColumn(schema.cohort[0], schema.cohort[1:], other=True, missing=True)
    if schema.target is not None:
        described[schema.target.column] = schema.target
        least |= {schema.target.column: 0.0} if schema.target.exposure else {}
    made = (ColumnCounts(name, kind, show_values, least.get(name, -math.inf)) for name, kind in described.items())
    counted = tuple(counts for counts in made if counts.raw_name not in absent)
    raw_names = list(dict.fromkeys(counts.raw_name for counts in counted))
    persons = None
    if schema.person is not None and schema.person not in absent:
        persons = PersonCounts(schema.person, tuple(raw_names))
    n_rows = 0
    names = raw_names + ([] if persons is None else [persons.name])
    for file in files if counted else ():
        for piece in table_pieces(file.path, names, file.form, file.skip):
            n_rows += piece.num_rows
            for counts in counted:
                counts.add(piece, from_text=file.form is not None)
            if persons is not None:
                persons.add(piece)
    summary = None if persons is None else persons.summary(rows_per_person)
    return TableCheck(files, counted, summary, schema.cohort and schema.cohort[0], rows_per_person, n_rows, show_values)


def share(count: int, of: int) -> float:
    """A share from 0 to 1; 0 of nothing."""
    return count / of if of else 0.0


# What a curator should do about a table, in sentences: what a fit would refuse first, then what deserves a look.

_LARGE_SHARE = 0.05
"""A share of clipped or unlisted cells above which the schema deserves a second look."""
_MOST_NAMES = 8


Findings: TypeAlias = tuple[list[str], list[str]]
"""Sentences: for what a fit would refuse the table, and what deserves a look. Each says what was found, and what to do."""
_Found: TypeAlias = Iterator[tuple[str, dict[str, Any]]]
"""Names of findings in `findings.ini`, and what stands for the words in braces."""
_SAID = sentences_of("findings.ini")


def findings_of(check: TableCheck) -> Findings:
    """All findings: those for which a fit would refuse the table, and the others."""
    found = [finding for file in check.files for finding in _of_file(file)]
    if check.n_rows == 0 and not any(name in _SAID["refused"] for name, _ in found):
        found.append(("no_rows", {}))
    counted = check.counted if check.n_rows else ()
    found += [finding for each in counted for finding in (_of_cohort if each.name == check.cohort else _of_column)(each)]
    if check.persons is not None:
        found += _of_persons(check.persons, check.rows_per_person)
    sentences: Findings = [], []
    for name, facts in found:
        is_noted = name in _SAID["noted"]
        sentence = _SAID["noted" if is_noted else "refused"][name].replace("\n", " ").format(**facts)
        if sentence not in sentences[is_noted]:  # files in folders of their own often have one name
            sentences[is_noted].append(sentence)
    return sentences


def percent(count: int, of: int) -> str:
    """A share for people: "0.3%", and never "0.0%" for a cell that is there."""
    value = 100.0 * share(count, of)
    if count == 0 or count == of:
        return f"{value:.0f}%"
    return "below 0.1%" if value < 0.1 else "above 99.9%" if value > 99.9 else f"{value:.1f}%"


def _of_file(file: FileCheck) -> _Found:
    named = {"file": Path(f"{file.path}").name}  # a private file has the name of what its rows came from
    if not file.is_header:
        yield "data_first" if file.form is not None and looks_like_data(file.present) else "no_header", named
    else:
        for absent, meant in file.absent.items():
            yield "absent", named | {"name": absent, "question": f' Did you mean "{meant}"?' if meant else ""}
        if file.repeated:
            yield "repeated", named | {"names": listed(file.repeated)}
        extra = [other for other in file.extra if other.strip() and other not in file.absent.values()]
        if extra:
            yield "extra", named | {"names": _first_of(extra)}
    encoding = "UTF-8" if file.form is None else ENCODING_NAMES[file.form.encoding]
    if file.form is not None and file.form.separator not in (",", "\t"):
        yield "separator", named | {"separator": SEPARATORS[file.form.separator]}
    if file.form is not None and encoding != "UTF-8":
        yield "encoding", named | {"encoding": encoding, "codec": file.form.encoding}
    if file.n_ragged:
        yield "ragged", named | {"rows": file.n_ragged}
    if file.refusal and not (file.absent or file.repeated or file.n_ragged or encoding != "UTF-8"):
        yield "other", {"refusal": file.refusal}


def _first_of(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    return listed(names[:_MOST_NAMES]) + (f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else "")


def _of_column(column: ColumnCounts) -> _Found:
    what = {"what": f'{"target" if column.is_target else "column"} "{column.name}"'}
    part = partial(percent, of=column.rows)
    if column.decimal_commas:
        yield "commas", what | {"share": part(column.decimal_commas)}
    if others := column.unreadable - column.decimal_commas:
        yield "unreadable", what | {"share": part(others), "kind": _cells_of(column)}
    if column.zeros == column.rows and column.least == 0.0 and not column.is_target:
        yield "no_weight", what
    if column.infinite:
        yield "infinite", what | {"share": part(column.infinite)}
    if column.refused:
        yield "too_low", what | {"share": part(column.refused), "low": "0 or less" if column.least else "below 0"}
    if column.missing:
        words = f" or hold a word such as NA ({part(column.missing_words)}), which is a missing cell unless it is listed"
        cells = f"{part(column.missing)} of the cells are empty{words if column.missing_words else ''}"
        if name := _of_missing(column):
            level = next(filter(_is_missing_word, column.described.labels), "")
            yield name, what | {"cells": cells, "share": part(column.missing_words), "level": level}
    if column.is_target:
        if column.unlisted:
            yield "labels", what | {"share": part(column.unlisted)}
    elif not column.as_described and not column.unreadable:
        yield "none_described", what
    elif column.unlisted:
        other = getattr(column.described, "other", False)
        many = "many_others" if share(column.unlisted, column.rows) > _LARGE_SHARE else "others"
        where = "share one level" if other is True else f'count as "{other}"'
        yield "unlisted" if other is False else many, what | {"share": part(column.unlisted), "where": where}
    if codes := column.likely_codes:
        which = "a number" if len(codes) == 1 else f"{len(codes)} numbers"
        dates = getattr(column.described, "dates", False)
        listing = ", ".join(shown_days(codes[:_MOST_NAMES])) if dates else listed_codes(codes[:_MOST_NAMES])
        shown = f" ({listing})" if column.remembers else ""
        repeated = part(sum(column.outside[code] for code in codes))
        yield "codes_of_target" if column.is_target else "codes", what | {"share": repeated, "which": which, "shown": shown}
    if share(column.clipped, column.rows) > _LARGE_SHARE:
        ends = {"below": part(column.below), "above": part(column.above)}
        yield "clipped", what | {"share": part(column.clipped)} | ends
    unused = [str(level) for level, count in zip(column.described.labels, column.by_level, strict=False) if not count]
    if unused and column.as_described:
        yield "unused", what | {"levels": _first_of(unused)}


def _of_cohort(column: ColumnCounts) -> _Found:
    own, (value,) = sum(column.by_level), column.described.labels
    yield "cohort" if own else "no_cohort", {"name": column.name, "value": value, "share": percent(own, column.rows)}


def _cells_of(column: ColumnCounts) -> str:
    """What cells must be."""
    described: Any = column.described
    if column.is_target:
        return "numbers" if described.bounds is not None else "text, numbers or booleans"
    if described.part:
        return f'dates in the form "{described.format}"' if described.format else "dates as 2024-03-31 (others need format)"
    if described.is_number:
        return "levels that the schema lists in their order" if described.ordered else "numbers (dates have dates as bounds)"
    return "codes as text" if described.prefix else "text, numbers or booleans"


def _of_missing(column: ColumnCounts) -> str:
    """Which finding missing cells are; empty if they are as described."""
    described, has_words = column.described, column.missing_words > 0
    if isinstance(described, Target):
        return "missing_target"
    if column.least > -math.inf:
        return "missing_beside"
    if described.is_number:
        return "" if described.missing else "missing_number"
    if described.missing or described.other:
        return "words" if has_words else ""
    if has_words:
        return "missing_code" if na_is_a_code([canonical_label(level) for level in described.labels]) else "missing_word"
    return "missing_listed" if any(map(_is_missing_word, described.labels)) else "missing_level"


def _is_missing_word(level: object) -> bool:
    """Whether many programs take this level for an empty cell."""
    return canonical_label(level) in MISSING_WORDS


def _of_persons(persons: dict[str, int], most: int) -> _Found:
    """What is to be said of persons, by the name of their count."""
    numbers = {name: f"{count:,}" for name, count in persons.items()} | {"most": f"{most} row{'s'[: most > 1]}"}
    for name in ("rows_without_person", "rounded_rows", "respelled", "persons_above", "repeated_rows"):
        if persons[name]:
            yield name, numbers


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
    names = ("as_described", "missing", "unreadable", "infinite", "below", "above", "unlisted", "decimal_commas")
    counts = {f"{'clipped_' * (name in ('below', 'above'))}{name}": getattr(column, name) for name in names}
    return {"rows": column.rows, **{name: {"cells": n, "share": share(n, column.rows)} for name, n in counts.items()}}
