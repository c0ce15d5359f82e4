"""What a curator should do about a table, in sentences: what a fit would refuse first, then what deserves a look."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from confide.curation.column_counts import ColumnCounts
from confide.curation.table_check import FileCheck, TableCheck, share
from confide.curation.text_form import ENCODING_NAMES
from confide.data.on_disk import SEPARATORS
from confide.features.canonical_labels import MISSING_WORDS, canonical_label, na_is_a_code
from confide.features.columns import CategoryColumn, NumberColumn, listed_codes
from confide.features.target import Target
from confide.known_words import listed

_LARGE_SHARE = 0.05
"""A share of clipped or unlisted cells above which the schema deserves a second look."""
_MOST_NAMES = 8


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence about the table.

    Parameters
    ----------
    text : what was found, and what to do
    refused : whether a fit would refuse the table because of it
    """

    text: str
    refused: bool


def findings_of(check: TableCheck) -> list[Finding]:
    """All findings, those for which a fit would refuse the table first."""
    found = [finding for file in check.files for finding in _of_file(file)]
    if check.n_rows == 0 and not any(finding.refused for finding in found):
        found.append(Finding("There are no rows below the names of the columns.", refused=True))
    for column in check.counted if check.n_rows else ():
        found += _of_column(column)
    found += _of_persons(check)
    return sorted(found, key=lambda finding: not finding.refused)


def percent(count: int, of: int) -> str:
    """A share for people: "0.3%", and never "0.0%" for a cell that is there."""
    value = 100.0 * share(count, of)
    if count == 0 or count == of:
        return f"{value:.0f}%"
    return "below 0.1%" if value < 0.1 else "above 99.9%" if value > 99.9 else f"{value:.1f}%"


def _of_file(file: FileCheck) -> Iterator[Finding]:
    name = file.path.name
    if file.header_is_data:
        yield Finding(
            f"{name}: the first line looks like data. Put a line with the names of the columns first.", refused=True
        )
    elif not file.names.is_header:
        yield Finding(
            f"{name}: no column of the schema is in the first line, which may be data; so it is not shown. Put a line with "
            f"the names of the columns first, or correct the names in the schema.",
            refused=True,
        )
    else:
        yield from _of_names(file)
    if file.form is not None:
        yield from _of_form(file)
    if file.ragged.n_rows:
        yield Finding(
            f"{name}: {file.ragged.n_rows:,} rows have more or fewer cells than the first line has names. They are not "
            "counted "
            f"here. Decimal commas, or text with separators that is not in quotes, are usual reasons.",
            refused=True,
        )
    explained = file.names.absent or file.names.repeated or file.ragged.n_rows or not _is_utf8(file)
    if file.refusal and not explained:
        yield Finding(f"A fit refuses the file: {file.refusal}", refused=True)


def _of_names(file: FileCheck) -> Iterator[Finding]:
    name = file.path.name
    for absent, meant in file.names.absent.items():
        question = f' Did you mean "{meant}"?' if meant else ""
        yield Finding(f'{name}: has no column "{absent}".{question} Correct the schema or the file.', refused=True)
    if file.names.repeated:
        yield Finding(f"{name}: has more than one column of the name {listed(file.names.repeated)}.", refused=True)
    extra = [each for each in file.names.extra if each.strip() and each not in file.names.absent.values()]
    if extra:
        more = f" and {len(extra) - _MOST_NAMES} more" if len(extra) > _MOST_NAMES else ""
        yield Finding(
            f"{name}: the schema does not describe {listed(extra[:_MOST_NAMES])}{more}; a fit leaves that out.", False
        )


def _of_form(file: FileCheck) -> Iterator[Finding]:
    form, name = file.form, file.path.name
    if form is None:
        return
    if form.separator not in (",", "\t"):
        yield Finding(f"{name}: {SEPARATORS[form.separator]} stand between cells, and a fit reads them so.", refused=False)
    if not _is_utf8(file):
        yield Finding(
            f"{name}: the text is in {ENCODING_NAMES[form.encoding]}, and a fit expects UTF-8. Write it anew in UTF-8.",
            refused=True,
        )


def _is_utf8(file: FileCheck) -> bool:
    return file.form is None or ENCODING_NAMES[file.form.encoding] == "UTF-8"


def _of_column(column: ColumnCounts) -> Iterator[Finding]:
    what = f'{"target" if isinstance(column.described, Target) else "column"} "{column.name}"'
    rows = column.rows
    if column.decimal_commas:
        yield Finding(
            f"{what}: {percent(column.decimal_commas, rows)} of the cells are numbers with a decimal comma. Write them with "
            f"a point: save the table anew from the spreadsheet, or with pandas.read_csv(..., decimal=',').to_csv(...).",
            refused=True,
        )
    if others := column.unreadable - column.decimal_commas:
        kind = "numbers" if column.bounds is not None else "text, numbers or booleans"
        yield Finding(
            f"{what}: {percent(others, rows)} of the cells are not {kind} and not empty. Correct them, leave them empty, or "
            f"describe the column as a category. Dates are not read: turn them into a number, such as days since a date.",
            refused=True,
        )
    if column.infinite:
        yield Finding(f"{what}: {percent(column.infinite, rows)} of the cells are infinite. Leave them empty.", refused=True)
    yield from _of_missing(column, what)
    if isinstance(column.described, Target):
        yield from _of_target(column, what)
    elif not column.as_described and not column.unreadable:
        yield Finding(
            f"{what}: no cell is as the schema describes it, so its weight would be noise alone. Correct the description or "
            f"leave the column out.",
            refused=True,
        )
    elif column.unlisted:
        yield _of_unlisted(column, what)
    yield from _of_codes(column, what)
    if share(column.clipped, rows) > _LARGE_SHARE:
        yield Finding(
            f"{what}: {percent(column.clipped, rows)} of the cells lie outside the bounds ({percent(column.below, rows)} "
            "below, "
            f"{percent(column.above, rows)} above), and a fit clips them. Is the unit right?",
            refused=False,
        )
    unused = [str(level) for level, count in zip(column.listed, column.by_level, strict=False) if not count]
    if unused and column.as_described:
        shown = listed(unused[:_MOST_NAMES]) + (
            f" and {len(unused) - _MOST_NAMES} more" if len(unused) > _MOST_NAMES else ""
        )
        yield Finding(f"{what}: no row has {shown}. Is it spelled as in the table?", refused=False)


def _of_missing(column: ColumnCounts, what: str) -> Iterator[Finding]:
    described = column.described
    if not column.missing:
        return
    words, is_level = column.missing_words, isinstance(described, CategoryColumn)
    empty = f"{what}: {percent(column.missing, column.rows)} of the cells are empty."
    if words:
        part = percent(words, column.rows)
        empty = f"{empty[:-1]} or hold a word such as NA ({part}), which is a missing cell unless it is listed."
    advice = "Declare missing = true or other = true."
    if is_level and words and na_is_a_code([canonical_label(level) for level in column.listed]):
        advice = 'If NA is a code like the listed ones (Namibia), list "NA" too. Declare missing = true only if it is none.'
    elif words:
        advice = "Declare missing = true; or, if such a word is a category, list it."
    elif lost := [level for level in column.listed if canonical_label(level) in MISSING_WORDS]:
        advice = (
            f'Many programs take the listed "{lost[0]}" for an empty cell: write the file anew so that the level is kept. '
            f"Declare missing = true only if these cells are empty in the original."
        )
    if isinstance(described, Target):
        yield Finding(f"{empty} Give only rows whose target is known.", refused=True)
    elif isinstance(described, NumberColumn) and not described.missing:
        yield Finding(
            f"{empty} Declare missing = true, or fill them in by a rule that does not depend on the data.", refused=True
        )
    elif isinstance(described, CategoryColumn) and not (described.missing or described.other):
        yield Finding(f"{empty} {advice}", refused=True)
    elif is_level and words:
        part = percent(words, column.rows)
        yield Finding(
            f"{what}: {part} of the cells hold a word such as NA and are missing. If it is a category, list it.", False
        )


def _of_codes(column: ColumnCounts, what: str) -> Iterator[Finding]:
    codes = column.likely_codes
    if not codes:
        return
    shown = f" ({listed_codes(codes[:_MOST_NAMES])})" if column.remembers else ""
    part = percent(sum(column.outside[code] for code in codes), column.rows)
    remedy = "Leave such rows out by a rule that is public."
    if isinstance(column.described, NumberColumn):
        remedy = "If the codebook says so, declare them, as in missing = [999, -9]; otherwise a fit clips them to the bound."
    which = "a number" if len(codes) == 1 else f"{len(codes)} numbers"
    yield Finding(
        f"{what}: {part} of the cells repeat {which} outside the bounds, as codes for missing cells do{shown}. {remedy}",
        False,
    )


def _of_target(column: ColumnCounts, what: str) -> Iterator[Finding]:
    if column.unlisted:
        yield Finding(
            f"{what}: {percent(column.unlisted, column.rows)} of the cells are none of the labels of the schema. Correct "
            "the "
            f"labels, or leave these rows out by a rule that is public.",
            refused=True,
        )


def _of_unlisted(column: ColumnCounts, what: str) -> Finding:
    part = percent(column.unlisted, column.rows)
    other = column.described.other if isinstance(column.described, CategoryColumn) else False
    if other is False:
        return Finding(
            f"{what}: {part} of the cells hold no listed category, so they have no effect at all. Declare other = true.",
            False,
        )
    where = "share one level" if other is True else f'count as "{other}"'
    if share(column.unlisted, column.rows) > _LARGE_SHARE:
        return Finding(
            f"{what}: {part} of the cells hold no listed category; they {where}. Are frequent ones forgotten?", False
        )
    return Finding(f"{what}: {part} of the cells hold no listed category; they {where}.", refused=False)


def _of_persons(check: TableCheck) -> Iterator[Finding]:
    persons = check.persons
    if persons is None:
        return
    if persons["rows_without_person"]:
        yield Finding(f"{persons['rows_without_person']:,} rows name no person; a fit refuses them.", refused=True)
    if persons["rounded_rows"]:
        yield Finding(
            f"{persons['rounded_rows']:,} rows name a person by a floating-point number so large that its type rounds it. "
            f"Write identifiers as integers or as text.",
            refused=True,
        )
    if persons["respelled"]:
        yield Finding(
            f"{persons['respelled']:,} of {persons['persons']:,} identifiers of persons are another one in another "
            f"spelling, as 7, 7.0 and 007 are, or A1 and a1. Write each person in one way in all files; different persons "
            f"need identifiers that differ in more than spelling.",
            refused=True,
        )
    if persons["persons_above"]:
        yield Finding(
            f"{persons['persons_above']:,} of {persons['persons']:,} persons have more than {check.rows_per_person} row"
            f"{'s' if check.rows_per_person > 1 else ''}; a fit leaves out {persons['rows_above']:,} rows, drawn at "
            "random. The "
            f"largest number of rows of one person is {persons['most_rows']:,}; choose --max-rows-per-person by what is "
            "publicly "
            f"known, not by this number.",
            refused=False,
        )
    if persons["repeated_rows"]:
        yield Finding(
            f"{persons['repeated_rows']:,} rows repeat another row of the same person in every described column. Were rows "
            f"copied?",
            refused=False,
        )
