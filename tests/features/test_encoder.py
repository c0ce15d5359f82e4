import copy
import math
import pickle
import traceback
from collections import Counter
from dataclasses import FrozenInstanceError, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from confide.errors import InputError, ParameterError, SchemaError
from confide.features.canonical_labels import canonical_label
from confide.features.columns import CategoryColumn, NumberColumn
from confide.features.encoder import Encoder
from confide.features.labels import read_labels
from confide.features.persons import RowsPerPerson
from confide.features.schema import Schema
from confide.privacy.noise import Entropy

SECRET = "SECRETVALUE"  # noqa: S105 - a cell that no message may hold
SECRET_NUMBER = 987654321

finite = st.floats(allow_nan=False, allow_infinity=False)
bounds = st.floats(-1e300, 1e300) | st.integers(-100, 100).map(float)
category_lists = st.lists(st.text("abc", min_size=1, max_size=2), min_size=1, max_size=4, unique=True) | st.lists(
    st.integers(-9, 9), min_size=1, max_size=4, unique=True
)


@st.composite
def number_columns(draw, name, missing):
    """A number with up to three knots; none where they cannot be told apart."""
    scale = draw(st.sampled_from(["linear", "log"]))
    low, *knots, high = sorted(draw(st.lists(bounds, min_size=2, max_size=5, unique=True)))
    try:
        return NumberColumn(name, low, high, scale, missing, tuple(knots))
    except SchemaError:
        return NumberColumn(name, low, high, scale, missing)


@st.composite
def tables(draw):
    """A schema, and lists of cells that it allows: inside and outside of the bounds, listed, unlisted and missing."""
    n_rows = draw(st.integers(1, 5))
    columns, cells = [], {}
    for position in range(draw(st.integers(1, 5))):
        name, missing = f"c{position}", draw(st.booleans())
        if draw(st.booleans()):
            columns.append(draw(number_columns(name, missing)))
            allowed = finite | st.sampled_from([columns[-1].low, *columns[-1].knots, columns[-1].high])
        else:
            categories = draw(category_lists)
            other = draw(st.booleans() | st.sampled_from(categories))
            columns.append(CategoryColumn(name, tuple(categories), other, missing))
            allowed = st.sampled_from([*categories, type(categories[0])(99)])
            missing = missing or other is not False
        allowed = allowed | st.none() if missing else allowed
        cells[name] = draw(st.lists(allowed, min_size=n_rows, max_size=n_rows))
    interact = ()
    if len(cells) > 1:
        members = st.lists(st.sampled_from(list(cells)), min_size=2, max_size=3, unique=True)
        interact = draw(st.lists(members, max_size=3, unique_by=frozenset))
    return Schema(columns, interact=interact), cells


def assert_silent(error):
    """Neither the error nor what it came from holds a secret, as printed or as an object."""
    seen = [error]
    for link in seen:
        seen += [next_link for next_link in (link.__cause__, link.__context__) if next_link is not None]
    printed = "".join("".join(traceback.format_exception_only(link)) + repr(link.args) for link in seen)
    for secret in (SECRET, str(SECRET_NUMBER)):
        assert secret not in printed
    assert "\n" not in str(error)


def encode(columns, **cells):
    return Encoder(Schema(columns=columns)).transform(pd.DataFrame(cells))


@settings(deadline=None)
@given(tables())
def test_every_row_obeys_the_bound_in_exact_arithmetic(table):
    """Group by group the L1 norm is at most 1, compared without rounding; so the L2 norm obeys the row bound."""
    schema, cells = table
    encoder = Encoder(schema)
    rows = encoder.transform(pd.DataFrame(cells))
    for row in rows:
        for group in encoder.groups:
            norm = sum(Fraction(abs(value)) for value in row[group.start : group.start + group.size])
            assert norm <= 1
        assert sum(Fraction(value) ** 2 for value in row) <= Fraction(encoder.row_bound.l2_norm) ** 2
    # The bound agrees: it has nothing to clip, so no entry is ever rounded a second time.
    assert encoder.row_bound.clip(rows) is rows


@settings(deadline=None)
@given(tables())
def test_every_row_has_exactly_one_level_where_the_bound_says_so(table):
    """A linked group holds one 1 and zeros: where every cell has a level, and there is one column a level."""
    schema, cells = table
    encoder = Encoder(schema)
    rows = encoder.transform(pd.DataFrame(cells))
    links = dict(zip([group.column for group in encoder.groups], encoder.row_bound.linked, strict=True))
    for column, group in zip(schema.columns, encoder.groups, strict=False):
        is_category = isinstance(column, CategoryColumn)
        assert links[column.name] == (is_category and group.size >= 3 and column.other is not False)
    for names in schema.interact:
        assert links[":".join(names)] == all(links[name] for name in names)
    for group in encoder.groups:
        if links[group.column]:
            part = np.sort(rows[:, group.start : group.start + group.size], axis=1)
            assert (part == [0.0] * (group.size - 1) + [1.0]).all()


# In pandas before 3, convert_dtypes itself warns of numbers beyond its integers.
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
@settings(deadline=None)
@given(tables(), st.randoms(use_true_random=False))
def test_pandas_polars_and_arrow_give_the_same_rows_in_any_order_of_columns(table, shuffler):
    """What holds a table, the order of its columns and further columns do not matter; the frame is left as it was."""
    schema, cells = table
    encoder = Encoder(schema)
    expected = encoder.transform(pd.DataFrame(cells))
    for build in (
        pd.DataFrame,
        lambda cells: pd.DataFrame(cells).convert_dtypes(),
        lambda cells: pd.DataFrame(cells).astype(object),
        lambda cells: pd.DataFrame(cells).astype("category"),
        lambda cells: pl.DataFrame(cells, strict=False),
        pa.table,
    ):
        names = [*cells, "an extra column"]
        shuffler.shuffle(names)
        frame = build({name: cells.get(name, [SECRET] * len(cells["c0"])) for name in names})
        before = copy.deepcopy(frame)
        assert np.array_equal(encoder.transform(frame), expected)
        assert frame.equals(before)


@settings(deadline=None)
@given(tables(), st.data())
def test_a_row_is_encoded_alike_alone_and_in_any_block(table, data):
    """What happens to a row depends on that row and on the schema."""
    schema, cells = table
    frame, encoder = pd.DataFrame(cells), Encoder(schema)
    codes, rows = encoder.read(frame), encoder.transform(frame)
    start = data.draw(st.integers(0, len(frame)))
    stop = data.draw(st.integers(start, len(frame)))
    assert np.array_equal(encoder.expand(codes, start, stop), rows[start:stop])
    for position in range(len(frame)):
        assert np.array_equal(encoder.transform(frame.iloc[[position]]), rows[position : position + 1])


@settings(deadline=None)
@given(tables(), st.sampled_from(["float32", "float64"]))
def test_blocks_in_single_precision_are_the_same_to_six_digits(table, dtype):
    """Every kind of column; entries are between -1 and 1."""
    schema, cells = table
    encoder = Encoder(schema)
    codes = encoder.read(pd.DataFrame(cells))
    with np.errstate(over="ignore"):
        codes = replace(codes, numbers=codes.numbers.astype(dtype))
    rows = encoder.block(codes, 0, codes.n_rows, np.float32)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, encoder.block(codes, 0, codes.n_rows), rtol=0, atol=1e-6)


@pytest.mark.parametrize("low", [0.0, 1900.0, 1e6, 1e6 + 0.3, -17.1])
def test_single_precision_loses_nothing_where_numbers_are_large_beside_their_range(low):
    """The low end is taken off before anything is rounded."""
    encoder = Encoder(Schema({"x": {"low": low, "high": low + 1.0}}))
    numbers = np.float32(low) + np.linspace(0.25, 0.75, 9, dtype=np.float32)
    codes = encoder.read(pd.DataFrame({"x": numbers}))
    assert codes.numbers.dtype == np.float32
    rows = encoder.block(codes, 0, 9, np.float32)
    np.testing.assert_allclose(rows, encoder.block(codes, 0, 9), rtol=0, atol=2e-7)


def test_numbers_are_clipped_and_stretched():
    """The bounds are the ends of [-1, 1]; below and above them nothing changes."""
    cells = [-5, 0, 2.5, 5, 10, 1e308]
    assert encode({"x": {"low": 0, "high": 10}}, x=cells)[:, 0].tolist() == [-1, -1, -0.5, 0, 1, 1]


def test_the_log_scale_is_the_documented_one():
    """log(1 + x - low) / log(1 + high - low), stretched from [0, 1] to [-1, 1]."""
    encoded = encode({"x": {"low": 5, "high": 8, "scale": "log"}}, x=[5, 6, 8, 9])[:, 0]
    assert encoded == pytest.approx([-1, 0, 1, 1], abs=1e-15)
    assert encoded[[0, 2, 3]].tolist() == [-1, 1, 1]


def test_a_number_with_knots_becomes_hats():
    """One column for low, each knot and high, 1 there and 0 at the neighbours; between them straight lines add up to 1."""
    columns = {"age": {"low": 20, "high": 60, "knots": [30, 50]}}
    rows = encode(columns, age=[20, 30, 35, 50, 60, 99, -1])
    expected = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0.75, 0.25, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1], [1, 0, 0, 0]]
    assert rows == pytest.approx(np.array(expected), abs=1e-10)
    assert Encoder(Schema(columns=columns)).feature_names == ("age~20", "age~30", "age~50", "age~60")


def test_knots_on_the_log_scale_are_joined_by_lines_of_the_logarithm():
    """Knots are in the column's own unit; halfway between 0 and 99 on the scale of log(1 + x) lies 9."""
    rows = encode({"income": {"low": 0, "high": 9999, "scale": "log", "knots": [99]}}, income=[0, 9, 99, 999])
    assert rows == pytest.approx(np.array([[1, 0, 0], [0.5, 0.5, 0], [0, 1, 0], [0, 0.5, 0.5]]), abs=1e-10)


def test_a_missing_number_with_knots_has_an_indicator_alone():
    """All hats are 0 in its place."""
    columns = {"age": {"low": 20, "high": 60, "knots": [30], "missing": True}}
    rows = encode(columns, age=[None, 30.0])
    assert rows == pytest.approx(np.array([[0, 0, 0, 1], [0, 1, 0, 0]]), abs=1e-10)
    with pytest.raises(InputError, match='column "age": holds missing values'):
        encode({"age": {"low": 20, "high": 60, "knots": [30]}}, age=[None, 30.0])


def test_interactions_are_products_of_the_encoded_columns():
    """Of two numbers, a category and a number, two categories; an unlisted category takes no part, a gap its indicator."""
    columns = {
        "age": {"low": 0, "high": 100, "missing": True},
        "sex": {"categories": ["F", "M"]},
        "work": {"categories": ["a", "b", "c"]},
        "hours": {"low": 0, "high": 10},
    }
    interact = [["age", "hours"], ["sex", "hours"], ["sex", "work"], ["work", "age"]]
    encoder = Encoder(Schema(columns=columns, interact=interact))
    frame = pd.DataFrame({"age": [100, None], "sex": ["F", "M"], "work": ["b", "z"], "hours": [10, 2.5]})
    rows = pd.DataFrame(encoder.transform(frame), columns=list(encoder.feature_names))
    products = rows.iloc[:, 7:].to_dict("list")
    assert products == {
        "age:hours": [1, 0], "age=(missing):hours": [0, -0.5],
        "sex=M:hours": [-1, -0.5],
        "sex=M:work=a": [0, 0], "sex=M:work=b": [-1, 0], "sex=M:work=c": [0, 0],
        "work=a:age": [0, 0], "work=a:age=(missing)": [0, 0], "work=b:age": [1, 0], "work=b:age=(missing)": [0, 0],
        "work=c:age": [0, 0], "work=c:age=(missing)": [0, 0],
    }  # fmt: skip
    assert [(group.column, group.size) for group in encoder.groups[4:]] == [
        ("age:hours", 2), ("sex:hours", 1), ("sex:work", 3), ("work:age", 6),
    ]  # fmt: skip


def test_an_interaction_of_categories_that_always_have_a_level_is_linked():
    """Exactly one product is 1 in every row; with a category that may be none of the levels it is not."""
    columns = {name: {"categories": ["a", "b", "c"], "other": name != "open"} for name in ("one", "two", "open")}
    encoder = Encoder(Schema(columns=columns, interact=[["one", "two"], ["one", "open"]]))
    assert encoder.row_bound.linked == (True, True, False, True, False)


def test_knots_fit_a_curve_that_a_straight_line_cannot():
    """A least-squares fit on hats follows a bend at a declared knot."""
    values = np.linspace(0.0, 10.0, 41)
    rows = encode({"x": {"low": 0, "high": 10, "knots": [3]}}, x=values)
    curve = np.abs(values - 3.0)
    weights = np.linalg.lstsq(rows, curve, rcond=None)[0]
    assert rows @ weights == pytest.approx(curve, abs=1e-8)
    assert weights == pytest.approx([3.0, 0.0, 7.0], abs=1e-8)  # a weight is the effect at its value


def test_a_number_that_may_be_missing_has_an_indicator():
    """Value and indicator are one group: one of the two is zero."""
    encoder = Encoder(Schema(columns={"x": {"low": 0, "high": 1, "missing": True}}))
    rows = encoder.transform(pd.DataFrame({"x": [1.0, None, 0.5]}))
    assert rows.tolist() == [[1, 0], [0, 1], [0, 0]]
    assert encoder.feature_names == ("x", "x=(missing)")
    assert [group.size for group in encoder.groups] == [2]


LEVELS = {
    "two levels, either side of zero": ({"categories": ["a", "b"]}, ["x=b"], {"a": [-1], "b": [1], "z": [0]}),
    "two levels by other": ({"categories": ["a"], "other": True}, ["x=(other)"], {"a": [-1], "z": [1], None: [1]}),
    "two levels by missing": (
        {"categories": ["a"], "missing": True},
        ["x=(missing)"],
        {"a": [-1], "z": [0], None: [1]},
    ),
    "one level": ({"categories": ["a"]}, ["x=a"], {"a": [1], "z": [0]}),
    "three levels": (
        {"categories": ["a", "b", 3]},
        ["x=a", "x=b", "x=3"],
        {"a": [1, 0, 0], "b": [0, 1, 0], "3.0": [0, 0, 1], "z": [0, 0, 0]},
    ),
    "all kinds of levels": (
        {"categories": ["a"], "other": True, "missing": True},
        ["x=a", "x=(other)", "x=(missing)"],
        {"a": [1, 0, 0], "z": [0, 1, 0], None: [0, 0, 1], " ": [0, 0, 1]},
    ),
    "others count as a listed level": (
        {"categories": ["a", "b", 3], "other": "3.0"},
        ["x=a", "x=b", "x=3"],
        {"a": [1, 0, 0], "3": [0, 0, 1], "z": [0, 0, 1], None: [0, 0, 1]},
    ),
    "others count as a listed level, gaps do not": (
        {"categories": ["a", "b"], "other": "a", "missing": True},
        ["x=a", "x=b", "x=(missing)"],
        {"a": [1, 0, 0], "z": [1, 0, 0], None: [0, 0, 1]},
    ),
    "others count as one of two levels": (
        {"categories": ["a", "b"], "other": "b"},
        ["x=b"],
        {"a": [-1], "b": [1], "z": [1], None: [1]},
    ),
    "others count as the only level": ({"categories": ["a"], "other": "a"}, ["x=a"], {"a": [1], "z": [1], None: [1]}),
    "missing goes to other": (
        {"categories": ["a", "b"], "other": True},
        ["x=a", "x=b", "x=(other)"],
        {"a": [1, 0, 0], "z": [0, 0, 1], None: [0, 0, 1]},
    ),
}


@pytest.mark.parametrize(("column", "feature_names", "rows"), LEVELS.values(), ids=LEVELS)
def test_categories_become_levels(column, feature_names, rows):
    """Every kind of level set, with listed, unlisted and missing cells."""
    encoder = Encoder(Schema(columns={"x": column}))
    assert encoder.feature_names == tuple(feature_names)
    encoded = encoder.transform(pd.DataFrame({"x": list(rows)}))
    assert encoded.tolist() == list(rows.values())


@pytest.mark.parametrize("n_levels", [3, 126, 127, 128, 40_000])
def test_many_categories_have_room(n_levels):
    """Levels are held in the smallest integers that count them all."""
    column = CategoryColumn("x", tuple(range(n_levels)), other=True, missing=True)
    encoder = Encoder(Schema([column]))
    codes = encoder.read(pd.DataFrame({"x": ["0", str(n_levels - 1), "unlisted", None]}))
    assert codes.others[0].tolist() == [0, n_levels - 1, n_levels, n_levels + 1]


@pytest.mark.parametrize("n_groups", [1, 2, 14, 1000])
def test_all_groups_have_scale_one(n_groups):
    """So the L2 norm of a row is at most the root of the number of groups."""
    encoder = Encoder(Schema([NumberColumn(f"x{i}", 0, 1) for i in range(n_groups)]))
    assert encoder.row_bound.scales == (1.0,) * n_groups
    assert encoder.row_bound.l2_norm == pytest.approx(n_groups**0.5, rel=1e-14)


VISITS = Schema(columns={"x": {"low": 0, "high": 100}, "c": {"categories": ["a", "b", "c"]}}, person="id")


def visits(persons, **kind):
    """A frame whose row i holds the number i."""
    n_rows = len(persons)
    return pd.DataFrame({"id": pd.Series(persons, **kind), "x": range(n_rows), "c": ["a"] * n_rows})


def in_order(rows_per_person):
    """Rows are drawn in the order of the frame, as one of the orders that may come."""
    return RowsPerPerson(rows_per_person, np.arange)


def kept_rows(frame, rows_per_person):
    """Which rows are kept, told by the numbers in them, after a look at `kept`."""
    codes = Encoder(VISITS).read(frame, in_order(rows_per_person))
    numbers = codes.numbers[0].astype(int).tolist()
    assert codes.n_rows == len(numbers) == len(codes.others[0])
    assert (list(range(len(frame))) if codes.kept is None else codes.kept.tolist()) == numbers
    assert (codes.kept is None) == (len(numbers) == len(frame))
    return numbers


def test_the_first_rows_of_each_person_are_kept():
    """In the order of the frame; without a number of rows nobody is asked who it is."""
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
    """A column of that name in the frame is one of the others."""
    codes = Encoder(Schema(VISITS.columns)).read(visits(["p", "p"]), in_order(1))
    assert codes.n_rows == 2
    assert codes.kept is None


def test_kept_rows_are_read_only():
    """Like all codes."""
    codes = Encoder(VISITS).read(visits([1, 1]), in_order(1))
    for array in (codes.kept, codes.numbers, *codes.others):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_each_row_of_a_person_is_as_likely_to_count():
    """Two of the four rows of one person and one of the three of another, over 3,000 drawn orders: chi-square at 99.9%."""
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
    """With one order drawn for the rows, however they lie: the same rows of each person."""
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
    """The first and the last are one person, however they are held."""
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
    """Every row is somebody's; the message names the column alone."""
    with pytest.raises(InputError, match=f'column "id": holds .*{words}') as refusal:
        Encoder(VISITS).read(visits(cells, dtype=object), in_order(1))
    assert_silent(refusal.value)


def identity(value):
    """What a person is told apart by, written once more."""
    if isinstance(value, (str, bool)):
        return str(value).strip()
    return str(int(value)) if value == int(value) else str(value)


identities = st.sampled_from([1, 2, "1", "2", " 1", "a", "A", 1.0, np.float32(0.1), 0.1, "0.1", True, "true", 2**60, 2.5])


@settings(deadline=None)
@given(st.lists(identities, min_size=2, max_size=12), st.integers(1, 3), st.data())
def test_the_rows_of_one_person_never_decide_which_of_another_are_kept(persons, rows_per_person, data):
    """Neither by their number nor by how their identity is written: drop a row, or rename it, and all others' stay."""
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


def test_an_encoder_describes_its_columns():
    """Names, groups and bound belong together."""
    encoder = Encoder(
        Schema(
            columns={
                "age": {"low": 17, "high": 90},
                "sex": {"categories": ["Female", "Male"]},
                "workclass": {"categories": ["Private", "State-gov"], "missing": True},
            }
        )
    )
    assert encoder.feature_names == (
        "age",
        "sex=Male",
        "workclass=Private",
        "workclass=State-gov",
        "workclass=(missing)",
    )
    assert encoder.n_features == 5
    assert [(group.column, group.start, group.size) for group in encoder.groups] == [
        ("age", 0, 1),
        ("sex", 1, 1),
        ("workclass", 2, 3),
    ]
    assert encoder.row_bound.sizes == (1, 1, 3)
    assert encoder.row_bound.n_features == encoder.n_features


def test_encoders_are_values():
    """Equal by schema, frozen, and whole after a copy or a pickle."""
    encoder = Encoder(Schema(columns={"x": {"categories": ["a", "b", "c"]}}))
    assert encoder == Encoder(Schema(columns={"x": {"categories": ["a", "b", "c"]}}))
    assert repr(encoder) == "Encoder(schema=Schema(1 column))"
    with pytest.raises(FrozenInstanceError):
        encoder.n_features = 3
    frame = pd.DataFrame({"x": ["a", "c"]})
    for twin in (copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))):
        assert twin == encoder
        assert np.array_equal(twin.transform(frame), encoder.transform(frame))


def test_codes_are_frozen_and_print_no_data():
    """They hold data, so nothing of it is shown, and they are small."""
    encoder = Encoder(Schema(columns={"x": {"low": 0, "high": 1e10}, "y": {"categories": ["a", "b"]}}))
    codes = encoder.read(pd.DataFrame({"x": [SECRET_NUMBER] * 3, "y": ["a"] * 3}))
    assert repr(codes) == "Codes(Schema(2 columns))"
    assert codes.n_rows == 3
    assert (codes.numbers.dtype, codes.others[0].dtype) == (np.float64, np.int8)
    for column in (codes.numbers, *codes.others):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 0


def test_expanded_rows_are_fresh_and_contiguous():
    """A block may be written to without a trace in the next one."""
    encoder = Encoder(Schema(columns={"x": {"low": 0, "high": 1}, "y": {"categories": ["a", "b", "c"]}}))
    codes = encoder.read(pd.DataFrame({"x": [0.25] * 3000, "y": ["b"] * 3000}))
    rows = encoder.expand(codes, 1, 2500)
    assert rows.dtype == np.float64
    assert rows.flags.c_contiguous
    assert rows.shape == (2499, 4)
    again = encoder.expand(codes, 1, 2500)
    rows[:] = 7.0
    assert (again == again[0]).all()
    assert np.array_equal(encoder.expand(codes, 1, 2500), again)


def test_numbers_encoded_together_are_those_of_each_column():
    """To the bit, of single and double precision, inside the bounds and outside, with gaps and without, in both orders."""
    rng = np.random.default_rng(0)
    columns = [
        NumberColumn("a", -3, 0.7),
        NumberColumn("b", 17, 90, missing=True),
        NumberColumn("c", 1, 1e5, scale="log"),
        NumberColumn("d", 1e-3, 1e9),
        NumberColumn("e", 0, 1, knots=(0.5,)),
        NumberColumn("f", 0.1, 0.2, missing=True),
    ]
    encoder = Encoder(Schema(columns))
    places = {group.column: group.start for group in encoder.groups}
    for dtype in (np.float32, np.float64):
        for spread in (0.2, 2.0):
            frame = pd.DataFrame(
                {
                    c.name: ((c.low + c.high) / 2 + spread * (c.high - c.low) * rng.normal(size=2500)).astype(dtype)
                    for c in columns
                }
            )
            frame.loc[::7, "b"] = frame.loc[2000:, "f"] = np.nan
            codes = encoder.read(frame)
            assert codes.numbers.dtype == dtype
            rows = encoder.expand(codes, 0, 2500)
            assert np.array_equal(rows[1000:2100], encoder.block(codes, 1000, 2100))
            for column in (c for c in columns if not c.knots):
                expected = column.stretched(frame[column.name].to_numpy().astype(np.float64))
                absent = np.isnan(expected)
                expected[absent] = 0.0
                assert np.array_equal(rows[:, places[column.name]], expected)
                assert column.missing or not absent.any()
                if column.missing:
                    assert np.array_equal(rows[:, places[column.name] + 1], absent.astype(float))


def test_expand_refuses_rows_that_do_not_exist_and_codes_of_another_schema():
    """No silent cut at the end, no columns mixed up."""
    encoder = Encoder(Schema(columns={"x": {"low": 0, "high": 1}}))
    codes = encoder.read(pd.DataFrame({"x": [0.5]}))
    for start, stop in ((0, 2), (-1, 1), (1, 0)):
        with pytest.raises(ParameterError, match="number of rows"):
            encoder.expand(codes, start, stop)
    with pytest.raises(ParameterError, match="another schema"):
        Encoder(Schema(columns={"x": {"low": 0, "high": 2}})).expand(codes, 0, 1)


NUMBERS_AS = {
    "int8": pd.Series([0, 1, 100], dtype="int8"),
    "uint64": pd.Series([0, 1, 2**64 - 1], dtype="uint64"),
    "int64 beyond 2^53": pd.Series([0, 1, 2**53 + 1]),
    "float32": pd.Series([0, 1, 100], dtype="float32"),
    "float16": pd.Series([0, 1, 100], dtype="float16"),
    "Int64": pd.Series([0, 1, 100], dtype="Int64"),
    "text": pd.Series(["0", " 1.0", "1e2"]),
    "text objects": pd.Series(["0", "1", "100"], dtype=object),
    "categorical of numbers": pd.Series([0, 1, 100]).astype("category"),
    "categorical of text": pd.Series(["0", "1", "100"]).astype("category"),
    "mixed": pd.Series([0, "1", 100.0], dtype=object),
    "decimals": pd.Series([Decimal(0), Decimal("1.00"), Decimal(100)]),
    "integers beyond 2^64": pd.Series([0, 1, 10**30], dtype=object),
    "sparse": pd.Series([0.0, 1.0, 100.0]).astype("Sparse[float64]"),
    "Polars Int128": pl.Series([0, 1, 100], dtype=pl.Int128),
    "Polars Float32": pl.Series([0, 1, 100], dtype=pl.Float32),
    "Polars text": pl.Series(["0", "1", "100"]),
    "Polars Categorical": pl.Series(["0", "1", "100"], dtype=pl.Categorical),
    "Polars Decimal": pl.Series([Decimal(0), Decimal("1.00"), Decimal(100)]),
    "Polars objects": pl.Series([0, "1", 100.0], dtype=pl.Object),
}


@pytest.mark.parametrize("series", NUMBERS_AS.values(), ids=NUMBERS_AS)
def test_numbers_are_read_from_any_type(series):
    """0, 1 and something above the bounds, however they are held."""
    frame = (pl if isinstance(series, pl.Series) else pd).DataFrame({"x": series})
    encoder = Encoder(Schema(columns={"x": {"low": 0, "high": 2}}))
    assert encoder.transform(frame)[:, 0].tolist() == [-1.0, 0.0, 1.0]


def test_booleans_are_numbers_where_a_number_is_declared():
    """False is 0 and True is 1, with gaps or without."""
    column = {"x": {"low": 0, "high": 1, "missing": True}}
    assert encode(column, x=[False, True])[:, 0].tolist() == [-1, 1]
    assert encode(column, x=[False, True, None]).tolist() == [[-1, 0], [1, 0], [0, 1]]


CATEGORIES_AS = {
    "int8": ([1, 2, 3], pd.Series([1, 2, 9], dtype="int8")),
    "floats of a reader that saw gaps": ([1, 2, 3], pd.Series([1.0, 2.0, 9.0])),
    "text of numbers": ([1, 2, 3], pd.Series(["1", "2.0", "9"])),
    "float32": ([0.1, 0.2, 0.3], pd.Series([0.1, 0.2, 9], dtype="float32")),
    "Polars Float32": ([0.1, 0.2, 0.3], pl.Series([0.1, 0.2, 9], dtype=pl.Float32)),
    "numbers for text": (["1", "2", "3"], pd.Series([1, 2, 9])),
    "text": (["a", "b", "c"], pd.Series(["a", " b", "z"])),
    "text objects": (["a", "b", "c"], pd.Series(["a", "b", "z"], dtype=object)),
    "string": (["a", "b", "c"], pd.Series(["a", "b", "z"], dtype="string")),
    "arrow string": (["a", "b", "c"], pd.Series(["a", "b", "z"], dtype=pd.ArrowDtype(pa.string()))),
    "arrow string view": (["a", "b", "c"], pd.Series(pd.array(["a", "b", "z"], dtype=pd.ArrowDtype(pa.string_view())))),
    "categorical": (["a", "b", "c"], pd.Categorical(["a", "b", "z"], categories=["z", "y", "b", "a"])),
    "mixed": (["a", 2, True], pd.Series(["a", 2, 1], dtype=object)),
    "booleans for text": (["true", "x", "y"], pd.Series([True, "x", False], dtype=object)),
    "Polars text": (["a", "b", "c"], pl.Series(["a", "b", "z"])),
    "Polars Categorical": (["a", "b", "c"], pl.Series(["a", "b", "z"], dtype=pl.Categorical)),
    "Polars Enum": (["a", "b", "c"], pl.Series(["a", "b", "z"], dtype=pl.Enum(["z", "b", "a"]))),
    "Polars Int8": ([1, 2, 3], pl.Series([1, 2, 9], dtype=pl.Int8)),
}


@pytest.mark.parametrize(("categories", "series"), CATEGORIES_AS.values(), ids=CATEGORIES_AS)
def test_categories_are_read_from_any_type(categories, series):
    """The first category, the second, and one that is not listed, however they are held."""
    frame = (pl if isinstance(series, pl.Series) else pd).DataFrame({"x": series})
    encoder = Encoder(Schema(columns={"x": {"categories": categories}}))
    assert encoder.transform(frame).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]


def test_booleans_are_categories():
    """Declared as booleans or as text, held as booleans or as text."""
    for categories in ([False, True], ["False", "true"]):
        for cells in ([False, True], ["FALSE", "True"]):
            assert encode({"x": {"categories": categories}}, x=cells)[:, 0].tolist() == [-1, 1]


def test_an_unused_level_of_a_categorical_does_not_matter():
    """A categorical keeps categories that occur in no row; what they are is nobody's concern."""
    cells = pd.Categorical(["1"], categories=["1", "no number"])
    assert encode({"x": {"low": 0, "high": 1}}, x=cells).tolist() == [[1.0]]


REFUSED_CELLS = {
    "a missing number": ({"low": 0, "high": 1}, [SECRET_NUMBER, None], "missing = true"),
    "a blank number": ({"low": 0, "high": 1}, [str(SECRET_NUMBER), " "], "missing = true"),
    "infinity": ({"low": 0, "high": 1}, [SECRET_NUMBER, math.inf], "infinite"),
    "an integer beyond the doubles": ({"low": 0, "high": 1}, [SECRET_NUMBER, 10**400], "infinite"),
    "infinity as text": ({"low": 0, "high": 1, "missing": True}, [str(SECRET_NUMBER), "-inf"], "infinite"),
    "text": ({"low": 0, "high": 1}, ["1", SECRET], "not numbers"),
    "text among numbers": ({"low": 0, "high": 1}, [SECRET_NUMBER, SECRET], "not numbers"),
    "a number with a separator": ({"low": 0, "high": 1}, ["987654321_0", "1"], "not numbers"),
    "bytes": ({"low": 0, "high": 1}, [SECRET.encode(), b"1"], "not numbers"),
    "dates": ({"low": 0, "high": 1}, pd.to_datetime(["2021-01-01", "2021-01-02"]), "not numbers"),
    "complex": ({"low": 0, "high": 1}, [SECRET_NUMBER * 1j, 1j], "not numbers"),
    "lists": ({"low": 0, "high": 1}, [[SECRET], [SECRET_NUMBER]], "convert"),
    "objects": ({"low": 0, "high": 1}, [Exception(SECRET), 1], "not numbers"),
    "a missing category": ({"categories": ["a", "b"]}, [SECRET, None], "missing = true"),
    "a blank category": ({"categories": ["a", "b"]}, [SECRET, ""], "missing = true"),
    "bytes for a category": ({"categories": ["a", "b"]}, [SECRET.encode(), b"a"], "convert"),
    "dates for a category": ({"categories": ["a", "b"]}, [date(2021, 1, 1), SECRET], "convert"),
    "lists for a category": ({"categories": ["a", "b"]}, [[SECRET], ["a"]], "convert"),
    "sets for a category": ({"categories": ["a", "b"]}, [{SECRET}, "a"], "convert"),
    "objects for a category": ({"categories": ["a", "b"]}, [Exception(SECRET), "a"], "convert"),
    "an integer too long to print": ({"categories": ["a", "b"]}, [10**5000, SECRET], "convert"),
}


@pytest.mark.parametrize(("column", "cells", "words"), REFUSED_CELLS.values(), ids=REFUSED_CELLS)
def test_cells_that_cannot_be_used_are_refused_by_the_name_of_their_column_alone(column, cells, words):
    """An InputError in one line says which column and what to do; no cell is in it or in what it came from."""
    with pytest.raises(InputError) as refusal:
        # Objects: older pandas cannot hold huge integers in a column that it types itself.
        Encoder(Schema(columns={"the column": column})).transform(pd.DataFrame({"the column": cells}, dtype=object))
    assert 'column "the column"' in str(refusal.value)
    assert words in str(refusal.value)
    assert_silent(refusal.value)


FRAMES = {
    "an array": (np.full((2, 1), SECRET_NUMBER), "pandas or Polars frame"),
    "a mapping": ({"x": [SECRET]}, "pandas or Polars frame"),
    "a series": (pd.Series([SECRET], name="x"), "pandas or Polars frame"),
    "nothing": (None, "pandas or Polars frame"),
    "lazy": (pl.LazyFrame({"x": [SECRET], "y": [1]}), r"\.collect\(\)"),
    "no rows": (pd.DataFrame({"x": [], "y": []}), "no rows"),
    "no rows in Polars": (pl.DataFrame({"x": [], "y": []}), "no rows"),
    "columns absent": (pd.DataFrame({SECRET: [1], "z": [SECRET]}), 'describes: "x", "y"'),
    "one column absent": (pl.DataFrame({SECRET: [1], "y": [1]}), 'describes: "x"'),
    "numbers as names": (pd.DataFrame({SECRET_NUMBER: [1], "y": [1]}), 'describes: "x"'),
    "a name twice": (pd.DataFrame([[1, SECRET_NUMBER, 3]], columns=["x", "y", "x"]), 'more than once: "x"'),
    "a further name twice": (pd.DataFrame([[1, 2, 3, 4]], columns=["x", "y", SECRET, SECRET]), "all be different"),
    "a name twice in Arrow": (pa.table([[1], [2], [3]], names=["x", "y", "x"]), "all be different"),
}


@pytest.mark.parametrize(("frame", "words"), FRAMES.values(), ids=FRAMES)
def test_what_is_no_frame_of_the_schema_is_refused(frame, words):
    """An InputError says what is wanted. Only the schema's own names are named: a header may be a row of data."""
    encoder = Encoder(Schema(columns={"x": {"low": 0, "high": 1}, "y": {"low": 0, "high": 1}}))
    with pytest.raises(InputError, match=words) as refusal:
        encoder.read(frame)
    assert_silent(refusal.value)


def test_two_features_of_one_name_are_refused():
    """A coefficient is known by its name."""
    with pytest.raises(SchemaError, match=r'"x=\(other\)"'):
        Encoder(Schema(columns={"x": {"categories": ["a", "(other)"], "other": True}}))
    with pytest.raises(SchemaError, match='"x=b"'):
        Encoder(Schema(columns={"x": {"categories": ["a", "b"]}, "x=b": {"low": 0, "high": 1}}))


LABELS = {
    "pandas": (pd.Series(["no", "yes", "yes"]), "no", "yes"),
    "pandas objects": (pd.Series(["no", "yes", " yes"], dtype=object), "no", "yes"),
    "categorical": (pd.Series(["no", "yes", "yes"]).astype("category"), "no", "yes"),
    "Polars": (pl.Series(["no", "yes", "yes"]), "no", "yes"),
    "Polars Categorical": (pl.Series(["no", "yes", "yes"], dtype=pl.Categorical), "no", "yes"),
    "Arrow": (pa.array(["no", "yes", "yes"]), "no", "yes"),
    "Arrow in chunks": (pa.chunked_array([["no"], ["yes", "yes"]]).dictionary_encode(), "no", "yes"),
    "a list": (["no", "yes", "yes"], "no", "yes"),
    "text array": (np.array(["no", "yes", "yes"]), "no", "yes"),
    "object array": (np.array(["no", "yes", "yes"], dtype=object), "no", "yes"),
    "integers": (np.array([-1, 1, 1]), -1, 1),
    "floats for integers": (np.array([0.0, 1.0, 1.0]), 0, 1),
    "text for integers": (["0", "1.0", "1"], 0, 1),
    "booleans": (np.array([False, True, True]), False, True),
    "text for booleans": (["False", "TRUE", "true"], False, True),
    "positive below negative": ([2, 1, 1], 2, 1),
    "strided": (np.array([0, 7, 1, 7, 1, 7])[::2], 0, 1),
}


@pytest.mark.parametrize(("values", "negative", "positive"), LABELS.values(), ids=LABELS)
def test_labels_are_read_from_any_type(values, negative, positive):
    """One negative and two positives, however they are held."""
    labels = read_labels(values, negative, positive)
    assert labels.dtype == np.int8
    assert labels.tolist() == [-1, 1, 1]


REFUSED_LABELS = {
    "another label": (["no", SECRET], "neither 'no' nor 'yes'"),
    "another number": (np.array([SECRET_NUMBER, 1]), "neither"),
    "a missing label": (["no", None, SECRET], "missing"),
    "a label that is not a number": (np.array([SECRET_NUMBER, np.nan]), "missing"),
    "a masked label": (np.ma.array([SECRET_NUMBER, 1], mask=[False, True]), "missing"),
    "bytes": (np.array([SECRET.encode(), b"no"]), "convert"),
    "lists": ([[SECRET], ["no"]], "convert"),
    "two columns": (pd.DataFrame({"a": [SECRET], "b": [SECRET]}), "one column"),
    "one column of a Polars frame": (pl.DataFrame({"a": [SECRET]}), "one column"),
    "a matrix": (np.full((2, 1), SECRET_NUMBER), "one column"),
    "text": (SECRET, "one column"),
    "a mapping": ({SECRET: SECRET}, "one column"),
    "nothing": (None, "one column"),
    "no labels": ([], "there are none"),
}


@pytest.mark.parametrize(("values", "words"), REFUSED_LABELS.values(), ids=REFUSED_LABELS)
def test_labels_outside_the_domain_are_refused_without_naming_them(values, words):
    """The two declared labels may be named, the cells may not."""
    with pytest.raises(InputError, match=words) as refusal:
        read_labels(values, "no", "yes")
    assert_silent(refusal.value)


@given(st.lists(st.one_of(st.text(max_size=3), st.integers(-3, 3), st.booleans(), st.none()), min_size=1, max_size=6))
def test_mixed_columns_are_read_or_refused_and_never_fail_otherwise(cells):
    """Whatever a column of Python objects holds, levels agree with the canonical form of each cell."""
    column = CategoryColumn("x", ("a", 1, True), other=True, missing=True)
    codes = Encoder(Schema([column])).read(pd.DataFrame({"x": pd.Series(cells, dtype=object)}))
    levels = {"a": 0, "1": 1, "true": 2, None: 4}
    assert codes.others[0].tolist() == [levels.get(canonical_label(cell), 3) for cell in cells]


@pytest.mark.parametrize(
    ("column", "common", "first", "second"),
    [
        ({"categories": [0.1, 0.2, 0.3]}, np.float32(0.1), np.float32(0.1), 0.2),
        ({"categories": [True, False]}, np.True_, np.True_, 1),
        ({"low": 0, "high": 1}, np.float16(0.1), np.float16(0.1), 1),
        ({"categories": ["a", "1"]}, "1", "a", 1),
    ],
    ids=["float32 beside double", "boolean beside integer", "half beside integer", "text beside integer"],
)
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_one_cell_never_changes_what_the_other_rows_mean(column, common, first, second, kind):
    """The property that the guarantee rests on: replacing one row leaves the encoding of every other row alone."""

    def encoded(last):
        cells = [common] * 6 + [last]
        series = pd.Series(cells, dtype=object)
        frame = pd.DataFrame({"x": series})
        if kind == "polars":
            frame = pl.DataFrame({"x": pl.Series(cells, dtype=pl.Object)})
        return Encoder(Schema(columns={"x": column})).transform(frame)[:6]

    assert np.array_equal(encoded(first), encoded(second))


def test_labels_are_read_one_by_one():
    """A label of another type at the end does not change the others."""
    plain = read_labels([np.float32(0.1)] * 5 + [0.2], 0.1, 0.2)
    assert plain.tolist() == [-1] * 5 + [1]
    assert read_labels(np.array([np.float32(0.1)] * 5 + [0.2], dtype=object), 0.1, 0.2).tolist() == plain.tolist()


@pytest.mark.parametrize(
    "identifiers",
    [
        ["01", "1", "5e3", "5000", "TRUE", "true", "7.1", "7.10", "0e585696", "0e123456"],
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


def test_one_person_is_the_same_in_every_type_that_readers_make():
    """1, 1.0, "1" and Decimal("1") in one column of objects."""
    frame = pd.DataFrame({"age": 30.0, "patient": pd.Series([1, 1.0, "1", Decimal(1), np.int8(1)], dtype=object)})
    schema = Schema(columns={"age": {"low": 0, "high": 100}}, person="patient")
    assert Encoder(schema).read(frame, in_order(1)).kept.tolist() == [0]
