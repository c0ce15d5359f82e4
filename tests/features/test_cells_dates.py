"""Dates as numbers of days, their parts, ordered levels, truth values, and prefixes of codes: tables as they come."""

from __future__ import annotations

import datetime as dt
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from confide import Schema, SchemaError
from confide.errors import InputError
from confide.features.cells import day_number, part_of, read_dates, shown_days
from confide.features.encoder import Encoder

SECRET = "SECRETVALUE"  # noqa: S105  # a cell
DATES = {"low": dt.date(2010, 1, 1), "high": dt.date(2030, 1, 1)}
DAYS = [dt.date(2012, 3, 31), dt.date(2029, 12, 31), dt.date(2020, 2, 29)]


def encoded(column, cells):
    """The encoded rows of one column, named x."""
    frame = cells if isinstance(cells, pa.Table | pd.DataFrame | pl.DataFrame) else pd.DataFrame({"x": cells})
    return Encoder(Schema(columns={"x": column})).transform(frame)


def expected(days):
    """Dates on their way from low to high, from -1 to 1."""
    low, high = DATES["low"].toordinal(), DATES["high"].toordinal()
    return [[2.0 * (day.toordinal() - low) / (high - low) - 1.0] for day in days]


FORMS = {
    "objects": pd.Series(DAYS, dtype=object),
    "datetime64": pd.Series(pd.to_datetime(DAYS)),
    "datetime64 of a zone": pd.Series(pd.to_datetime(DAYS)).dt.tz_localize("America/New_York"),
    "seconds": pd.Series(np.array(DAYS, dtype="datetime64[s]")),
    "text": pd.Series(list(map(str, DAYS))),
    "text with times and zones": pd.Series([f"{day}T00:00:00+05:00" for day in DAYS]),
    "Arrow date32": pa.table({"x": pa.array(DAYS, pa.date32())}),
    "Arrow date64": pa.table({"x": pa.array(DAYS, pa.date64())}),
    "Arrow timestamps": pa.table({"x": pa.array(DAYS, pa.date32()).cast(pa.timestamp("ns"))}),
    "Arrow dictionary": pa.table({"x": pa.array(list(map(str, DAYS))).dictionary_encode()}),
    "pieces": pa.table({"x": pa.chunked_array([DAYS[:1], DAYS[1:]], pa.date32())}),
    "Polars": pl.DataFrame({"x": DAYS}),
}


@pytest.mark.parametrize("cells", FORMS.values(), ids=FORMS)
def test_every_reader_gives_the_same_days(cells):
    """What the cell shows counts, whatever holds it, and in whatever zone."""
    assert encoded(DATES, cells).tolist() == expected(DAYS)


def test_the_time_of_day_is_a_share_of_a_day():
    """As timestamps and as text."""
    day = {"low": "2020-01-01", "high": "2020-01-03"}
    assert encoded(day, ["2020-01-01 12:00", "2020-01-02T18:00:00"]).tolist() == [[-0.5], [0.75]]
    assert encoded(day, pd.to_datetime(["2020-01-01 12:00"])).tolist() == [[-0.5]]


def test_dates_are_read_in_a_declared_form():
    """As text, and as whole numbers; cells that are dates need no form."""
    assert encoded(DATES | {"format": "%d.%m.%Y"}, [day.strftime("%d.%m.%Y") for day in DAYS]).tolist() == expected(DAYS)
    assert encoded(DATES | {"format": "%Y%m%d"}, [int(day.strftime("%Y%m%d")) for day in DAYS]).tolist() == expected(DAYS)
    assert encoded(DATES | {"format": "%Y%m%d"}, DAYS).tolist() == expected(DAYS)


def test_missing_dates_and_codes_for_them():
    """NaT, empty cells, and a date that stands for none."""
    column = DATES | {"missing": [dt.date(9999, 12, 31)]}
    rows = encoded(column, pd.Series([pd.NaT, None, dt.date(9999, 12, 31), DAYS[0]], dtype=object))
    assert rows[:, 1].tolist() == [1, 1, 1, 0]
    with pytest.raises(InputError, match="holds missing values"):
        encoded(DATES, pd.Series(pd.to_datetime([None, "2020-01-01"])))


@pytest.mark.parametrize("cells", [["2020-13-01"], [SECRET], [737.0], ["31.12.2020"], [True], ["2020-01-01 SECRETVALUE"]])
def test_what_is_no_date_is_refused(cells):
    """The message says how dates are written, and shows no cell."""
    with pytest.raises(InputError, match="not dates") as refusal:
        encoded(DATES, cells)
    assert SECRET not in str(refusal.value)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (DATES | {"format": "%d.%m"}, "format must say"),
        (DATES | {"format": 3}, "format must say"),
        (DATES | {"scale": "log10"}, "these are dates"),
        (DATES | {"knots": ["x"]}, "must be a date"),
        (DATES | {"parts": ["minute"]}, "part must be one of"),
        ({"low": 0, "high": 1, "parts": ["year"]}, "parts are for dates"),
        ({"low": 0, "high": 1, "format": "%d.%m.%Y"}, "format is for dates"),
        ({"low": "2030-01-01", "high": "2010-01-01"}, "not 2030-01-01 and 2010-01-01"),
        ({"low": "2010-01-01", "high": "soon"}, "must be a date"),
        ({"categories": ["a", "a"], "ordered": True}, "are the same"),
        ({"categories": ["a"], "ordered": True}, "low must be below high"),
        ({"categories": ["a", "b"], "ordered": "yes"}, "ordered is true or false"),
        ({"categories": ["a", "b"], "ordered": True, "other": True}, 'unknown key "other"'),
        ({"low": 0, "high": 1, "ordered": True}, "is for categories"),
        ({"categories": ["a", "b"], "prefix": 0}, "whole number from 1"),
        ({"categories": {"file": "absent.txt"}}, "cannot be read from absent.txt"),
        ({"categories": {"files": "a.txt"}}, 'unknown key "files"'),
    ],
)
def test_descriptions_that_contradict_themselves_are_refused(column, words):
    """In the words of the schema."""
    with pytest.raises(SchemaError, match=words):
        Schema(columns={"x": column})


def test_parts_are_columns_of_their_own():
    """Named after the date, with fixed levels; the year is a number. All read one column of the table."""
    parts = ["year", "quarter", "month", "weekday", "hour"]
    schema = Schema(columns={"seen": DATES | {"parts": parts, "missing": True}})
    assert schema.column_names == ("seen", *(f"seen ({part})" for part in parts))
    assert schema.raw_names == ("seen",)
    encoder = Encoder(schema)
    rows = encoder.transform(pd.DataFrame({"seen": pd.to_datetime(["2012-03-31 23:59:59", None])}))
    by_name = dict(zip(encoder.feature_names, rows.T.tolist(), strict=True))
    assert by_name["seen (year)"] == [-0.8, 0]
    for name in ("seen (quarter)=Q1", "seen (month)=Mar", "seen (weekday)=Sat", "seen (hour)=23"):
        assert by_name[name] == [1, 0]
    for part in parts:
        assert by_name[f"seen ({part})=(missing)"] == [0, 1]


def test_parts_of_dates_agree_with_pandas():
    """For every hour of forty years around 1970, and far away."""
    times = pd.date_range("1950-01-01", "1990-01-01", freq="7h").append(
        pd.to_datetime(["1700-03-01 23:00", "2261-12-31 00:00"])
    )
    days = np.array([day_number(time) for time in times])
    pairs = {"year": times.year, "quarter": times.quarter - 1, "month": times.month - 1}
    pairs |= {"weekday": times.day_of_week, "hour": times.hour}
    for part, values in pairs.items():
        assert part_of(days, part).tolist() == values.tolist()


def test_dates_are_written_as_dates():
    """With the time only where it counts; a schema is the same after it was written as TOML and as JSON."""
    assert shown_days([0.0, 0.5]) == ("1970-01-01", "1970-01-01 12:00")
    assert shown_days([0.25]) == ("1970-01-01",)
    columns = {
        "seen": DATES | {"knots": [dt.date(2020, 1, 1)], "atoms": ["2015-01-01"], "missing": [dt.date(9999, 1, 1)]},
        "month": {"column": "seen", "part": "month", "missing": ["9999-01-01"]},
        "at": {"low": "2020-01-01 06:30", "high": "2021-01-01", "knots": 0, "format": "%d.%m.%y"},
        "stage": {"categories": ["I", "II", "III"], "ordered": True, "missing": ["-9"], "knots": 1},
        "code": {"categories": ["01234", "99999"], "prefix": 2},
        "flag": {"boolean": True},
    }
    schema = Schema(columns=columns)
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    text = schema.to_toml()
    assert 'knots = ["2020-01-01"]' in text
    assert "2020-01-01 06:30" in text
    assert "from 2010-01-01 to 2030-01-01, knots at 2020-01-01, atoms at 2015-01-01, may be missing (9999-01-01)" in str(
        schema
    )


def test_a_toml_file_has_dates_and_lists_beside_it(tmp_path):
    """A path is one from the file's folder, and what is kept names no file."""
    (tmp_path / "codes.txt").write_text("A01\n\nA02 \nB07\nA01\n")
    text = "[columns]\nx = { low = 2010-01-01, high = 2030-01-01 }\ncode = { categories = { file = 'codes.txt' } }\n"
    (tmp_path / "s.toml").write_text(text)
    schema = Schema.from_toml(tmp_path / "s.toml")
    assert schema.columns[1].categories == ("A01", "A02", "B07")
    assert "codes.txt" not in schema.to_toml()
    assert schema.columns[0].dates


def test_a_list_of_levels_has_a_limit(tmp_path):
    """100,000 levels are the most."""
    (tmp_path / "codes.txt").write_text("\n".join(map(str, range(100_001))))
    with pytest.raises(SchemaError, match="more than 100,000 levels"):
        Schema(columns={"x": {"categories": {"file": str(tmp_path / "codes.txt")}}})


ORDERED = {"categories": ["I", "II", "III"], "ordered": True}


def test_ordered_levels_are_their_ranks():
    """A straight line by rank, or with a knot at each rank a weight for each level."""
    assert encoded(ORDERED, ["III", "I", "II"]).tolist() == [[1], [-1], [0]]
    encoder = Encoder(Schema(columns={"x": ORDERED | {"knots": 1}}))
    assert encoder.feature_names == ("x~I", "x~II", "x~III")
    assert encoder.transform(pd.DataFrame({"x": ["III", "I"]})).round(9).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_an_unlisted_level_has_no_rank():
    """It counts as missing where cells may be missing, and is refused otherwise, before anything is charged."""
    assert encoded(ORDERED | {"missing": True}, ["II", SECRET, None]).tolist() == [[0, 0], [0, 1], [0, 1]]
    with pytest.raises(InputError, match="no place in its order") as refusal:
        encoded(ORDERED, ["II", SECRET])
    assert SECRET not in str(refusal.value)
    codes = Encoder(Schema(columns={"x": ORDERED})).read(pd.DataFrame({"x": ["II", SECRET]}), refuse=False)
    assert np.isnan(codes.columns[0]).tolist() == [False, True]


@pytest.mark.parametrize("column", [{"boolean": True}, {"categories": [False, True]}])
@pytest.mark.parametrize("cells", [[False, True], [0, 1], ["F", "T"], ["0", "1"], ["FALSE", "true"], [0.0, 1.0]])
def test_truth_values_come_in_many_forms(column, cells):
    """As booleans, numbers, and as R and other programs write them."""
    assert encoded(column, cells).tolist() == [[-1], [1]]


def test_zero_and_one_may_come_as_truth_values():
    """The other way round; words are levels only where they are listed."""
    assert encoded({"categories": [0, 1]}, [False, True]).tolist() == [[-1], [1]]
    assert encoded({"categories": ["no", "yes"]}, ["no", "yes"]).tolist() == [[-1], [1]]
    assert encoded({"categories": ["no", "yes"], "other": True}, ["no", "F"]).tolist() == [[1, 0, 0], [0, 0, 1]]


ZIP = {"categories": ["01067", "01099", "99999"], "prefix": 2, "other": True}


def test_a_prefix_of_a_code_is_its_level():
    """Codes that are not listed count by their first characters; numbers get back the zeros that they have lost."""
    assert Schema(columns={"x": ZIP}).columns[0].levels == ("01", "99", "(other)")
    for cells in (["01555", " 99", "7"], [1555, 99000, 70000]):
        assert encoded(ZIP, cells).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_numbers_are_no_codes_of_unknown_length():
    """Where listed codes have several lengths, or none beyond the prefix, nobody knows which zeros a number has lost."""
    for codes in (["01", "99"], ["1", "012"]):
        with pytest.raises(InputError, match="zeros in front"):
            encoded({"categories": codes, "prefix": 2, "other": True}, [1555])
    assert encoded({"categories": ["01", "99"], "prefix": 2, "length": 5}, [1555, 99000]).tolist() == [[-1], [1]]


def test_text_of_numbers_that_were_codes_is_refused():
    """A table of text or a query gives 1067 as text; it is not of the place 10. What may be a prefix alone stays one."""
    with pytest.raises(InputError, match="zeros in front"):
        encoded(ZIP, ["01067", "1067"])
    assert encoded(ZIP, ["01067", "99", "A1067", "010671"]).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]


def test_two_columns_may_read_one():
    """A code and its chapter, under names of their own."""
    columns = {"code": {"categories": ["A01", "B07"]}, "chapter": {"column": "code", "categories": ["A", "B"], "prefix": 1}}
    rows = Encoder(Schema(columns=columns)).transform(pd.DataFrame({"code": ["B99", "A01"]}))
    assert rows.tolist() == [[0, 1], [-1, -1]]
    with pytest.raises(SchemaError, match="is the target"):
        Schema(columns={"y": {"column": "x", "low": 0, "high": 1}}, target={"column": "x", "low": 0, "high": 1})


def test_a_time_zone_that_the_machine_does_not_know_is_refused():
    """In words, and not by an error of Arrow."""
    cells = pa.chunked_array([pa.array([0], pa.timestamp("s", "Nowhere/Nothing"))])
    with pytest.raises(InputError, match="is not known here"):
        read_dates('column "seen"', cells)
