"""Made-up schemas, and parts of them."""

from __future__ import annotations

from hypothesis import strategies as st

from confide.errors import SchemaError
from confide.features.canonical_labels import canonical_label
from confide.features.columns import CategoryColumn, NumberColumn
from confide.features.schema import Interaction, Schema, Target

AGE = {"low": 17, "high": 90}
SEX = {"categories": ["Female", "Male"]}
TARGET = {"column": "income", "negative": "<=50K", "positive": ">50K"}
EXAMPLE = """
target = { column = "income", negative = "<=50K", positive = ">50K" }
[columns]
age = { low = 17, high = 90 }
capital-gain = { low = 0, high = 99999, scale = "log", missing = true }
"work class" = { categories = ["Private", "Self-emp-inc"], other = true }
"""


names = st.text(min_size=1).filter(str.strip)
finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)
labels = st.one_of(st.text().filter(str.strip), st.integers(-(2**70), 2**70), finite, st.booleans())
flags = st.booleans()


@st.composite
def number_columns(draw):
    low, *knots, high = sorted(draw(st.lists(finite, min_size=2, max_size=4, unique=True)))
    atoms = draw(st.sampled_from([(), (low,), (low, high)]))
    options = {"scale": draw(st.sampled_from(["linear", "log"])), "missing": draw(flags), "atoms": atoms}
    try:
        return NumberColumn(draw(names), low, high, knots=tuple(knots), **options)
    except SchemaError:  # knots that rounding cannot tell apart
        return NumberColumn(draw(names), low, high, **options)


@st.composite
def category_columns(draw):
    categories = draw(st.lists(labels, min_size=1, max_size=4, unique_by=canonical_label))
    other = draw(flags | st.sampled_from(categories))
    return CategoryColumn(draw(names), tuple(categories), other=other, missing=draw(flags))


def of_one_kind(pair):
    """Two texts, two booleans or two numbers."""
    return len({str if isinstance(x, str) else bool if isinstance(x, bool) else float for x in pair}) == 1


def interactions(names):
    """Interactions of these columns: with and without coarse effects and a scale."""
    knots, scales = st.none() | st.integers(0, 3), st.sampled_from([1.0, 0.3]) | st.floats(0.01, 1.0)
    return st.builds(Interaction, st.just(tuple(names)), knots, scales)


@st.composite
def schemas(draw):
    columns = st.lists(number_columns() | category_columns(), min_size=1, max_size=4, unique_by=lambda c: c.name)
    target = draw(st.none() | st.lists(labels, min_size=2, max_size=2, unique_by=canonical_label).filter(of_one_kind))
    drawn = draw(columns)
    used = {column.name for column in drawn}
    column, person = draw(st.lists(names.filter(lambda name: name not in used), min_size=2, max_size=2, unique=True))
    interact = []
    if len(drawn) > 1:
        members = st.lists(st.sampled_from(sorted(used)), min_size=2, max_size=3, unique=True)
        lists = draw(st.lists(members, max_size=2, unique_by=frozenset))
        interact = [draw(interactions(names)) for names in lists]
    chosen = None if target is None else Target(column, *target)
    if draw(flags):
        low, high = sorted(draw(st.lists(finite, min_size=2, max_size=2, unique=True)))
        chosen = Target(column, low=low, high=high)
    person = draw(st.sampled_from([None, person]))
    try:
        return Schema(drawn, chosen, person, interact)
    except SchemaError:  # even knots of an extreme column cannot be told apart
        return Schema(drawn, chosen, person, [entry.columns for entry in interact])
