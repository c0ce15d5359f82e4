"""Which rows of a person count, and when two rows belong to one person."""

from __future__ import annotations

import math
from collections import Counter
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from confide.errors import InputError
from confide.features.encoder import Encoder
from confide.features.schema import Schema
from confide.features.table import RowsPerPerson, read_identities
from confide.privacy.noise import Entropy
from tests.features.tables import SECRET, SECRET_NUMBER, assert_silent
from tests.features.test_cells import HELD_AS

VISITS = Schema(columns={"x": {"low": 0, "high": 100}, "c": {"categories": ["a", "b", "c"]}}, person="id")


def visits(persons, **kind):
    """A frame in which row i holds the number i."""
    n_rows = len(persons)
    return pd.DataFrame({"id": pd.Series(persons, **kind), "x": range(n_rows), "c": ["a"] * n_rows})


def in_order(rows_per_person):
    """A choice that keeps the order of the frame, which is one of the orders that may be drawn."""
    return RowsPerPerson(rows_per_person, np.arange)


def kept_rows(frame, rows_per_person):
    """Which rows are kept, read from the numbers in them, and compared with `kept`."""
    codes = Encoder(VISITS).read(frame, in_order(rows_per_person))
    numbers = codes.columns[0].astype(int).tolist()
    assert codes.n_rows == len(numbers) == len(codes.columns[1])
    assert (list(range(len(frame))) if codes.kept is None else codes.kept.tolist()) == numbers
    assert (codes.kept is None) == (len(numbers) == len(frame))
    return numbers


def test_the_first_rows_of_each_person_are_kept():
    """It is so if the drawn order is that of the frame. Without a number of rows, the column of persons is not needed."""
    frame = visits(["p", "q", "p", "p", "q", "r"])
    assert kept_rows(frame, 1) == [0, 1, 5]
    assert kept_rows(frame, 2) == [0, 1, 2, 4, 5]
    assert kept_rows(frame, np.int64(3)) == [0, 1, 2, 3, 4, 5]
    encoder = Encoder(VISITS)
    assert encoder.read(frame).kept is None
    assert encoder.read(frame.drop(columns="id")).n_rows == 6
    assert encoder.transform(frame.drop(columns="id")).shape == (6, 4)
    with pytest.raises(InputError, match='describes: "id"'):
        encoder.read(frame.drop(columns="id"), in_order(1))


def test_without_a_person_in_the_schema_all_rows_are_kept():
    """A column with the name of a person's column is ignored like any other."""
    codes = Encoder(Schema(VISITS.columns)).read(visits(["p", "p"]), in_order(1))
    assert codes.n_rows == 2
    assert codes.kept is None


def test_kept_rows_are_read_only():
    """They are read-only like all codes."""
    codes = Encoder(VISITS).read(visits([1, 1]), in_order(1))
    for array in (codes.kept, *codes.columns):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_each_row_of_a_person_is_as_likely_to_count():
    """The chi-square test at 99.9% accepts the sets of rows that 3,000 drawn orders keep."""
    persons = np.array([7, 3, 7, 7, 3, 7, 3, 9])
    entropy = Entropy.seeded(0)
    sets = Counter()
    for _ in range(3000):
        kept = RowsPerPerson(2, entropy.permutation).drawn(persons)
        assert 7 in kept
        assert (np.diff(kept) > 0).all()
        assert Counter(persons[kept].tolist()) == {7: 2, 3: 2, 9: 1}
        sets[tuple(kept.tolist())] += 1
    # 6 pairs of one person and 3 of the other, independent of each other.
    assert len(sets) == 18
    assert chisquare(list(sets.values())).pvalue > 1e-3


def test_the_rows_of_a_person_that_count_do_not_depend_on_the_order_of_the_others():
    """If the drawn order moves with the rows, the same rows of each person count wherever they are."""
    persons, rng = np.repeat(np.arange(50), 4), np.random.default_rng(1)
    drawn = rng.permutation(200)
    kept = set(RowsPerPerson(2, lambda n: drawn).drawn(persons).tolist())
    shuffled = rng.permutation(200)
    # Row i lies at where[i], and the order drawn moves with the rows.
    where = np.argsort(shuffled)
    again = RowsPerPerson(2, lambda n: where[drawn]).drawn(persons[shuffled])
    assert {int(shuffled[position]) for position in again} == kept


IDENTITIES_AS = {
    "integers": pd.Series([7, 8, 7]),
    "floats of a reader that saw gaps": pd.Series([7.0, 8.0, 7.0]),
    "text": pd.Series(["7", "8", " 7"]),
    "text objects": pd.Series(["u", "v", "u "], dtype=object),
    "mixed": pd.Series([7, "7a", "7"], dtype=object),
    "mixed numbers": pd.Series([7, 8.0, np.float32(7)], dtype=object),
    "integers beyond 2^64": pd.Series([10**30, 10**30 + 1, str(10**30)], dtype=object),
    "categorical": pd.Series(["7", "8", "7 "]).astype("category"),
    "Polars text": pl.Series(["7", "8", " 7"]),
    "Polars objects": pl.Series([7, "8", "7"], dtype=pl.Object),
    "Polars Int128": pl.Series([7, 8, 7], dtype=pl.Int128),
}


@pytest.mark.parametrize("series", IDENTITIES_AS.values(), ids=IDENTITIES_AS)
def test_persons_are_told_apart_by_their_exact_text(series):
    """The first and the last cell are the same person, whatever type holds them."""
    module = pl if isinstance(series, pl.Series) else pd
    frame = module.DataFrame({"id": series, "x": [0, 1, 2], "c": ["a", "b", "c"]})
    assert Encoder(VISITS).read(frame, in_order(1)).kept.tolist() == [0, 1]


REFUSED_IDENTITIES = {
    "missing": ([SECRET, None], "missing"),
    "blank": ([SECRET, " "], "missing"),
    "no number": ([SECRET_NUMBER, math.nan], "missing"),
    "pandas' NA": ([SECRET_NUMBER, pd.NA], "missing"),
    "all missing": ([None, None], "missing"),
    "bytes": ([SECRET.encode(), b"1"], "convert"),
    "dates": ([date(2021, 1, 1), SECRET], "convert"),
    "lists": ([[SECRET], [SECRET]], "convert"),
    "an integer too long to print": ([10**5000, SECRET], "convert"),
}


@pytest.mark.parametrize(("cells", "words"), REFUSED_IDENTITIES.values(), ids=REFUSED_IDENTITIES)
def test_rows_without_a_person_are_refused_without_naming_any(cells, words):
    """Every row needs a person. The message names only the column."""
    with pytest.raises(InputError, match=f'column "id": holds .*{words}') as refusal:
        Encoder(VISITS).read(visits(cells, dtype=object), in_order(1))
    assert_silent(refusal.value)


def identity(value):
    """What distinguishes persons, computed independently of the package."""
    if isinstance(value, (str, bool)):
        return str(value).strip()
    return str(int(value)) if value == int(value) else str(value)


identities = st.sampled_from([1, 2, "1", "2", " 1", "a", "b", 1.0, np.float32(0.1), 0.1, "0.1", True, 2**60, 2.5])


@settings(deadline=None)
@given(st.lists(identities, min_size=2, max_size=12), st.integers(1, 3), st.data())
def test_the_rows_of_one_person_never_decide_which_of_another_are_kept(persons, rows_per_person, data):
    """If a row of one person is dropped or renamed, the rows that are kept of all others stay the same."""
    position = data.draw(st.integers(0, len(persons) - 1))
    person = identity(persons[position])

    def kept_of_others(frame):
        kept = kept_rows(frame.assign(x=range(len(frame))), rows_per_person)
        return [int(frame["x"].iloc[row]) for row in kept if identity(frame["id"].iloc[row]) != person]

    frame = visits(persons, dtype=object)
    expected = kept_of_others(frame)
    assert kept_of_others(frame.drop(index=position)) == expected
    stranger = visits([*persons[:position], "a stranger", *persons[position + 1 :]], dtype=object)
    assert [row for row in kept_of_others(stranger) if row != position] == expected
    counts = {}
    by_hand = [
        row
        for row, label in enumerate(map(identity, persons))
        if counts.update({label: counts.get(label, 0) + 1}) or counts[label] <= rows_per_person
    ]
    assert kept_rows(frame, rows_per_person) == by_hand


@pytest.mark.parametrize(
    "identifiers",
    [
        ["1", "10", "5e3", "5000", "true", "7.1", "7.11", "0e585696", "0e123456", "1+2", "+12"],
        [Decimal(10**18 + i) for i in range(10)],
        [10**18 + i for i in range(10)],
        [Decimal("7.1"), Decimal("7.2"), Decimal("0.1")],
    ],
    ids=["text", "decimals", "integers", "fractions"],
)
@pytest.mark.parametrize("kind", ["objects", "arrow"])
def test_two_persons_never_become_one(identifiers, kind):
    """Identifiers are compared exactly: text is not read as a number, and no number is rounded."""
    if kind == "arrow":
        frame = pa.table({"age": [30.0] * len(identifiers), "patient": identifiers})
    else:
        frame = pd.DataFrame({"age": 30.0, "patient": pd.Series(identifiers, dtype=object)})
    schema = Schema(columns={"age": {"low": 0, "high": 100}}, person="patient")
    assert Encoder(schema).read(frame, in_order(1)).kept is None


RESPELLED = {
    "decimals": ["7", "7.0"],
    "leading zeros": ["7", "007"],
    "a sign": ["7", "+7"],
    "an exponent": ["100000", "1e+05"],
    "decimals of fractions": ["7.1", "7.10"],
    "case": ["Anna", "anna"],
    "case beyond ASCII": ["STRASSE", "straße"],
    "composed letters": ["Jos\u00e9", "Jose\u0301"],
    "wide letters": ["A1", "\uff21\uff11"],
    "blanks": ["A 1", "A\u00a0 1"],
    "an invisible letter": ["A1", "A\u200b1"],
    "a control character": ["A1", "A1\0"],
    "a variation selector": ["A1", "A1\ufe0f"],
    "a joiner of letters": ["A1", "A\u034f1"],
    "a filler": ["A1", "A1\u3164"],
    "an invisible letter before an accent": ["Jos\u00e9", "Jose\u034f\u0301"],
    "a control character before an accent": ["Jos\u00e9", "Jose\0\u0301"],
    "capitals of an i without a dot": ["KARI", "kar\u0131"],
    "a capital I with a dot": ["\u0130zmir", "izmir"],
    "digits of another script": ["17", "\u0661\u0667"],
    "a hyphen that breaks no line": ["A-1", "A\u20111"],
    "a dash": ["A-1", "A\u20131"],
    "a minus sign": ["-7", "\u22127"],
    "truth": ["TRUE", "true"],
    "a number beside text": [7, "7.0"],
}


@pytest.mark.parametrize("cells", RESPELLED.values(), ids=RESPELLED)
@pytest.mark.parametrize("parts", [1, 2])
def test_identifiers_that_differ_in_spelling_alone_are_refused(cells, parts):
    """In one part of a column or in two, among others, without showing one. Each of them alone is a person."""
    columns = [[*cells, SECRET]] if parts == 1 else [[cells[0], SECRET], [cells[1]]]
    with pytest.raises(InputError, match="differ in spelling alone") as refusal:
        read_identities('column "id"', *columns)
    assert_silent(refusal.value)
    assert cells[0] not in str(refusal.value).split("as 7")[0] if isinstance(cells[0], str) else True
    for cell in cells:
        assert read_identities("the column", [cell, SECRET, cell]).tolist() == [0, 1, 0]


def test_identifiers_of_thousands_of_digits_are_text():
    """Python refuses to read or to write such integers, with an error of its own."""
    cells = ["9" * 5000 + ".0", "9" * 900 + "e+999", "9" * 4000 + "e+999", "9" * 5000 + ".0"]
    assert read_identities("the column", cells).tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize(
    "column", [[2.0**53], np.array([2.0**60]), np.array([2.0**24], dtype="float32"), pa.array([1e17]), [np.float32(2**24)]]
)
def test_numbers_that_their_type_rounds_identify_nobody(column):
    """Two persons may have become one; the same numbers as integers are taken, and so is the largest that is exact."""
    with pytest.raises(InputError, match="type rounds them"):
        read_identities("the column", column)
    assert read_identities("the column", [2**53, 2**53 + 1, 2.0**53 - 1, np.float32(2**24 - 1)]).tolist() == [0, 1, 2, 3]


def test_parts_of_a_column_may_have_different_types():
    """Integers of two sizes, text, and text in a dictionary give one person the same identity."""
    text = pa.array(["7", "8"])
    parts = (pa.array([7, 8], pa.int32()), pa.array([8, 9], pa.int64()), text, text.dictionary_encode(), [7.0, "9"])
    assert read_identities("the column", *parts).tolist() == [0, 1, 1, 2, 0, 1, 0, 1, 0, 2]


@pytest.mark.parametrize("hold", HELD_AS.values(), ids=HELD_AS)
def test_identities_are_the_same_however_they_are_held(hold):
    """Two cells have the same identity exactly if their texts are equal."""
    identities = read_identities("the column", hold(["b", "a", "b", "10", "1"]))
    assert len(set(identities.tolist())) == 4
    assert identities[0] == identities[2]


def test_words_for_missing_cells_identify_nobody():
    """As in every other column: their rows may be of several persons."""
    for word in ("NA", " NaN ", "null"):
        with pytest.raises(InputError, match="missing"):
            read_identities("the column", ["a", word])


def test_one_person_is_the_same_in_every_type_that_readers_make():
    """1, 1.0, "1" and Decimal("1") in one column are the same person."""
    frame = pd.DataFrame({"age": 30.0, "patient": pd.Series([1, 1.0, "1", Decimal(1), np.int8(1)], dtype=object)})
    schema = Schema(columns={"age": {"low": 0, "high": 100}}, person="patient")
    assert Encoder(schema).read(frame, in_order(1)).kept.tolist() == [0]


HALF = np.array([2049, 2048, 3], dtype=np.float16)


@pytest.mark.parametrize(
    "cells",
    [HALF, pd.Series(HALF), pa.array(HALF), pa.chunked_array([pa.array(HALF[:1]), pa.array(HALF[1:])]), list(HALF)]
    + [np.array(numbers, dtype=kind) for kind, numbers in ((np.float16, [1000.3, 1000.4]), (np.float32, [12345.671, 1.0]))],
)
def test_narrow_numbers_that_may_be_rounded_are_no_identifiers(cells):
    """In half precision 2049 is 2048, and 1000.3 is 1000.4: two persons would be one."""
    with pytest.raises(InputError, match="their type rounds them"):
        read_identities("id", cells)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_numbers_that_their_type_holds_exactly_are_identifiers(kind):
    assert read_identities("id", np.array([2047, 7, 0.5, 2047], dtype=kind)).tolist() == [0, 1, 2, 0]
