"""Made-up schemas and tables, and cells that no message may hold."""

from __future__ import annotations

import traceback

import pandas as pd
from hypothesis import strategies as st

from confide.errors import SchemaError
from confide.features.columns import CategoryColumn, NumberColumn
from confide.features.encoder import Encoder
from confide.features.schema import Schema
from tests.features.schemas import interactions

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
    atoms = draw(st.sampled_from([(), (low,), (low, high)]))
    try:
        return NumberColumn(name, low, high, scale, missing, tuple(knots), atoms)
    except SchemaError:
        return NumberColumn(name, low, high, scale, missing, (), atoms)


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
    interact = []
    if len(cells) > 1:
        members = st.lists(st.sampled_from(list(cells)), min_size=2, max_size=3, unique=True)
        lists = draw(st.lists(members, max_size=3, unique_by=frozenset))
        interact = [draw(interactions(names)) for names in lists]
    try:
        return Schema(columns, interact=interact), cells
    except SchemaError:  # even knots of an extreme column cannot be told apart
        return Schema(columns, interact=[entry.columns for entry in interact]), cells


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
