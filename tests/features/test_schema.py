import copy
import json
import pickle
from dataclasses import FrozenInstanceError
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.errors import FileError, ParameterError, SchemaError
from confide.features.canonical_labels import canonical_label
from confide.features.columns import CategoryColumn, NumberColumn
from confide.features.schema import Schema
from confide.features.target import Target

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
    options = {"scale": draw(st.sampled_from(["linear", "log"])), "missing": draw(flags)}
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


@st.composite
def schemas(draw):
    columns = st.lists(number_columns() | category_columns(), min_size=1, max_size=4, unique_by=lambda c: c.name)
    target = draw(st.none() | st.lists(labels, min_size=2, max_size=2, unique_by=canonical_label).filter(of_one_kind))
    drawn = draw(columns)
    used = {column.name for column in drawn}
    column, person = draw(st.lists(names.filter(lambda name: name not in used), min_size=2, max_size=2, unique=True))
    interact = ()
    if len(drawn) > 1:
        members = st.lists(st.sampled_from(sorted(used)), min_size=2, max_size=3, unique=True)
        interact = draw(st.lists(members, max_size=2, unique_by=frozenset))
    chosen = None if target is None else Target(column, *target)
    return Schema(drawn, chosen, draw(st.sampled_from([None, person])), interact)


def test_a_toml_file_is_read_as_it_says(tmp_path):
    """Columns keep their order, and each key its meaning."""
    path = tmp_path / "example.toml"
    path.write_text(EXAMPLE, encoding="utf-8")
    schema = Schema.from_toml(path)
    assert schema.columns == (
        NumberColumn("age", 17.0, 90.0),
        NumberColumn("capital-gain", 0.0, 99999.0, scale="log", missing=True),
        CategoryColumn("work class", ("Private", "Self-emp-inc"), other=True),
    )
    assert schema.target == Target("income", "<=50K", ">50K")
    assert schema.column_names == ("age", "capital-gain", "work class")


def test_a_mapping_and_column_objects_give_equal_schemas():
    """The comfortable form and the explicit one are the same schema."""
    by_mapping = Schema(columns={"age": AGE, "sex": SEX}, target=TARGET)
    by_objects = Schema(
        [NumberColumn("age", 17, 90), CategoryColumn("sex", ("Female", "Male"))], Target("income", "<=50K", ">50K")
    )
    assert by_mapping == by_objects
    assert hash(by_mapping) == hash(by_objects)


@given(schemas())
def test_every_schema_survives_a_dict_and_json(schema):
    """Schema -> dict -> JSON text -> dict -> schema gives an equal one."""
    assert Schema.from_dict(schema.to_dict()) == schema
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


@given(schemas())
def test_every_schema_survives_toml(tmp_path_factory, schema):
    """Whatever is in a name or a category, the TOML text is read back as an equal schema."""
    path = tmp_path_factory.mktemp("schema") / "schema.toml"
    path.write_bytes(schema.to_toml().encode())
    assert Schema.from_toml(path) == schema


def test_a_schema_survives_copies_and_pickles():
    """Estimators are cloned and sent to workers with their schema."""
    schema = Schema(columns={"age": AGE, "sex": SEX}, target=TARGET)
    assert copy.deepcopy(schema) == schema
    assert pickle.loads(pickle.dumps(schema)) == schema


def test_a_schema_is_frozen():
    """It is part of a guarantee, so it does not change after it was made."""
    schema = Schema(columns={"age": AGE})
    for value, attribute in ((schema, "columns"), (schema.columns[0], "low")):
        with pytest.raises(FrozenInstanceError):
            setattr(value, attribute, 1)


def test_a_schema_prints_for_people():
    """One line a column in str, one short line in repr."""
    schema = Schema(
        columns={
            "age": AGE,
            "gain": {"low": 0, "high": 0.5, "scale": "log", "missing": True},
            "sex": {"categories": ["Female"], "other": True},
            "race": {"categories": ["Black", "Other"], "other": "Other", "missing": True},
        },
        target=TARGET,
        person="patient",
    )
    assert str(schema).splitlines() == [
        "Schema of 4 columns, target income: <=50K or >50K, person patient",
        "  age   number from 17 to 90",
        "  gain  number from 0 to 0.5, log scale, may be missing",
        "  sex   1 category, others allowed",
        "  race  2 categories, others count as Other, may be missing",
    ]
    assert repr(schema) == "Schema(4 columns, target='income', person='patient')"


OTHERS = {
    "text": (["a", "b"], " b ", "b"),
    "a number": ([1, 2.5], 2.5, "2.5"),
    "a whole number": ([0, 1], 1, "1"),
    "a number as text": ([0, 1], "1.0", "1"),
    "a boolean as text": ([False, True], "TRUE", "true"),
}


@pytest.mark.parametrize(("categories", "other", "canonical"), OTHERS.values(), ids=OTHERS)
def test_other_may_be_a_listed_category(categories, other, canonical):
    """Compared and kept in canonical form, so that two ways to write it are one schema."""
    column = CategoryColumn("x", tuple(categories), other=other)
    assert column.other == canonical
    assert column == CategoryColumn("x", tuple(categories), other=canonical)
    assert column != CategoryColumn("x", tuple(categories), other=True)


def test_the_person_is_a_key_beside_the_target(tmp_path):
    """Read from TOML, part of the schema's value, and no column."""
    path = tmp_path / "example.toml"
    path.write_text('person = "patient_id"\n' + EXAMPLE, encoding="utf-8")
    schema = Schema.from_toml(path)
    assert schema.person == "patient_id"
    assert "patient_id" not in schema.column_names
    assert schema != Schema(schema.columns, schema.target)
    assert Schema(schema.columns, schema.target).person is None


PERSONS = {
    "among the columns": ("age", '"age": identifies the person'),
    "the target": ("income", '"income": identifies the person'),
    "blank": (" ", "person, the name of a column, must be text"),
    "no text": (3, "person, the name of a column, must be text"),
    "a mapping": ({"column": "id"}, "person, the name of a column, must be text"),
}


@pytest.mark.parametrize(("person", "words"), PERSONS.values(), ids=PERSONS)
def test_a_person_that_cannot_be_is_refused(person, words):
    """A column of its own, known by its name."""
    with pytest.raises(SchemaError, match=words):
        Schema(columns={"age": AGE}, target=TARGET, person=person)


CONTRADICTIONS = {
    "low equals high": ({"age": {"low": 1, "high": 1}}, "age"),
    "low above high": ({"age": {"low": 2, "high": 1}}, "age"),
    "not a number": ({"age": {"low": float("nan"), "high": 1}}, "age"),
    "infinite": ({"age": {"low": 0, "high": float("inf")}}, "age"),
    "infinite on a log scale": ({"age": {"low": 0, "high": float("inf"), "scale": "log"}}, "age"),
    "beyond the doubles": ({"age": {"low": 0, "high": 10**400}}, "age"),
    "too far apart": ({"age": {"low": -1.7e308, "high": 1.7e308}}, "age"),
    "a boolean bound": ({"age": {"low": False, "high": 1}}, "age"),
    "a text bound": ({"age": {"low": "0", "high": 1}}, "age"),
    "a complex bound": ({"age": {"low": 1j, "high": 1}}, "age"),
    "a bound alone": ({"age": {"low": 0}}, '"high" is missing'),
    "knots that do not rise": ({"age": AGE | {"knots": [40, 30]}}, "rising order"),
    "a knot at a bound": ({"age": AGE | {"knots": [17, 30]}}, "between low and high"),
    "a knot beyond the bounds": ({"age": AGE | {"knots": [30, 91]}}, "between low and high"),
    "a knot that is no number": ({"age": AGE | {"knots": [30, "x"]}}, "each of the knots must be a finite number"),
    "knots as text": ({"age": AGE | {"knots": "30"}}, "knots must be a list"),
    "a knot alone": ({"age": AGE | {"knots": 30}}, "knots must be a list"),
    "knots that rounding joins": ({"age": {"low": -1e300, "high": 1e300, "knots": [1, 2]}}, "too close"),
    "knots for categories": ({"sex": SEX | {"knots": [1]}}, '"knots"'),
    "unknown scale": ({"age": AGE | {"scale": "logarithm"}}, '"linear" or "log"'),
    "scale of another type": ({"age": AGE | {"scale": ["log"]}}, "age"),
    "flag of another type": ({"age": AGE | {"missing": 1}}, "missing must be true or false"),
    "other that is not listed": ({"sex": SEX | {"other": "male"}}, "one of the listed categories"),
    "other that is a number": ({"sex": SEX | {"other": 1}}, "one of the listed categories"),
    "other that is a list": ({"sex": SEX | {"other": ["Male"]}}, "one of the listed categories"),
    "other that is nothing": ({"sex": SEX | {"other": None}}, "one of the listed categories"),
    "other that is no number": ({"sex": {"categories": ["nan"], "other": float("nan")}}, "one of the listed categories"),
    "misspelt key": ({"sex": SEX | {"mising": True}}, 'did you mean "missing"'),
    "unknown key": ({"age": AGE | {"zzzz": 1}}, '"zzzz"'),
    "a key that is not text": ({"age": AGE | {1: 1}}, "age"),
    "other for a number": ({"age": AGE | {"other": True}}, '"other"'),
    "scale for categories": ({"sex": SEX | {"scale": "log"}}, '"scale"'),
    "bounds and categories": ({"age": AGE | SEX}, "both"),
    "neither": ({"age": {"missing": True}}, "neither"),
    "misspelt and therefore neither": ({"age": {"lo": 1, "hgh": 2}}, 'did you mean "low"'),
    "no categories": ({"sex": {"categories": []}}, "empty"),
    "categories as text": ({"sex": {"categories": "FM"}}, "list"),
    "categories as a number": ({"sex": {"categories": 3}}, "list"),
    "twice the same": ({"sex": {"categories": ["a", "b", "a"]}}, "'a'"),
    "the same number": ({"sex": {"categories": [1, 1.0]}}, "the same"),
    "the same number as text": ({"sex": {"categories": [1, "1"]}}, "the same"),
    "the same but for blanks": ({"sex": {"categories": ["a", " a"]}}, "the same"),
    "the same boolean": ({"sex": {"categories": [True, "TRUE"]}}, "the same"),
    "a blank category": ({"sex": {"categories": ["a", " "]}}, "blank"),
    "a missing category": ({"sex": {"categories": ["a", None]}}, "sex"),
    "a list as category": ({"sex": {"categories": ["a", ["b"]]}}, "sex"),
    "a number that is none as category": ({"sex": {"categories": [float("nan")]}}, "sex"),
    "no columns": ({}, "at least one"),
    "no description": ({"age": 3}, "age"),
    "a name that is not text": ({3: AGE}, "name"),
    "a blank name": ({"": AGE}, "name"),
    "the target among the columns": ({"age": AGE, "income": AGE}, "income"),
}


@pytest.mark.parametrize(("columns", "words"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_every_contradiction_is_refused_in_one_line_that_names_the_column(columns, words):
    """A SchemaError, which is a ParameterError, says where and what; nothing else escapes."""
    with pytest.raises(SchemaError) as refusal:
        Schema(columns=columns, target=TARGET)
    assert isinstance(refusal.value, ParameterError)
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


TARGETS = {
    "the same label": (TARGET | {"positive": "<=50K"}, "same"),
    "the same label in canonical form": (TARGET | {"negative": 1, "positive": "1.0"}, "same"),
    "no positive": ({"column": "income", "negative": 0}, '"positive" is missing'),
    "unknown key": (TARGET | {"negativ": 0}, 'did you mean "negative"'),
    "a blank label": (TARGET | {"positive": ""}, "positive"),
    "a column that is not text": (TARGET | {"column": 1}, "column"),
    "no mapping": ("income", "target"),
}


@pytest.mark.parametrize(("target", "words"), TARGETS.values(), ids=TARGETS)
def test_every_contradiction_of_the_target_is_refused(target, words):
    """A SchemaError says what is wrong with the target."""
    with pytest.raises(SchemaError, match=words):
        Schema(columns={"age": AGE}, target=target)


INTERACTIONS = {
    "a name alone": ("age", "list of lists"),
    "names alone": (["age", "sex"], "list of lists"),
    "a number": (3, "list of lists"),
    "an unknown column": ([["agee", "sex"]], 'did you mean "age"'),
    "the target": ([["age", "income"]], '"income" is not among the columns'),
    "a number for a name": ([["age", 1]], "must be text"),
    "one column": ([["age"]], "two or more"),
    "a column with itself": ([["age", "age"]], "all different"),
    "the same pair twice": ([["age", "sex"], ["sex", "age"]], "twice"),
}


@pytest.mark.parametrize(("interact", "words"), INTERACTIONS.values(), ids=INTERACTIONS)
def test_every_contradiction_of_the_interactions_is_refused(interact, words):
    """A SchemaError says what is wrong with them, from Python and from a mapping."""
    for build in (lambda **parts: Schema(**parts), lambda **parts: Schema.from_dict(parts)):
        with pytest.raises(SchemaError, match=words):
            build(columns={"age": AGE, "sex": SEX}, target=TARGET, interact=interact)


@pytest.mark.parametrize("line", ['interact = [["age", "sex"]]', 'person = "id"'])
def test_a_key_below_the_columns_is_sent_above_them(tmp_path, line):
    """TOML takes it for a column there."""
    path = tmp_path / "people.toml"
    path.write_text(f"[columns]\nage = {{ low = 17, high = 90 }}\n{line}\n")
    with pytest.raises(SchemaError, match=r"put it above \[columns\]"):
        Schema.from_toml(path)


def test_knots_and_interactions_are_read_from_toml_and_printed(tmp_path):
    """As on the page of the schema; both are part of what makes two schemas equal."""
    path = tmp_path / "people.toml"
    path.write_text(
        'interact = [["age", "sex"]]\n[columns]\nage = { low = 17, high = 90, knots = [25, 65.5] }\n'
        'sex = { categories = ["Female", "Male"] }\n'
    )
    schema = Schema.from_toml(path)
    assert schema.interact == (("age", "sex"),)
    assert schema.columns[0] == NumberColumn("age", 17, 90, knots=(25, 65.5))
    assert schema != Schema(schema.columns)
    assert "age  number from 17 to 90, knots at 25, 65.5" in str(schema)
    assert str(schema).endswith("age x sex  interact")
    assert repr(schema) == "Schema(2 columns, 1 interaction)"


def test_a_column_object_given_twice_is_refused():
    """The mapping cannot repeat a name, a list of objects can."""
    with pytest.raises(SchemaError, match="twice"):
        Schema([NumberColumn("age", 0, 1), NumberColumn("age", 0, 2)])


@pytest.mark.parametrize("columns", ["age", 3, [AGE], None])
def test_columns_of_another_kind_are_refused(columns):
    """Neither a mapping nor column objects: a SchemaError, no AttributeError."""
    with pytest.raises(SchemaError, match="columns"):
        Schema(columns)


@pytest.mark.parametrize("mapping", [[], {}, {"target": TARGET}, {"age": AGE}, {"columns": {"age": AGE}, "colums": {}}])
def test_a_mapping_of_another_shape_is_refused(mapping):
    """The top level holds the columns and the target, nothing else."""
    with pytest.raises(SchemaError):
        Schema.from_dict(mapping)


def test_a_missing_file_is_named(tmp_path):
    """One line with the path."""
    with pytest.raises(FileError, match=r"nowhere\.toml: there is no such file"):
        Schema.from_toml(tmp_path / "nowhere.toml")
    with pytest.raises(FileError, match="cannot be read"):
        Schema.from_toml(tmp_path)


def test_a_table_given_as_a_schema_is_refused_without_quoting_it(tmp_path):
    """A data file in the place of the schema: the message has the path and the place, and no cell."""
    path = tmp_path / "people.csv"
    for content in ("age,sex\n987654321,SECRETVALUE\n", '["SECRETVALUE"]\n["SECRETVALUE"]\n', "x = 'SECRETVALUE"):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(FileError, match=r"people\.csv: is not valid TOML \(") as refusal:
            Schema.from_toml(path)
        assert "SECRETVALUE" not in str(refusal.value)
        assert "\n" not in str(refusal.value)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(FileError, match="UTF-8"):
        Schema.from_toml(path)


def test_a_contradiction_in_a_file_names_the_file_and_the_column(tmp_path):
    """The reader of the message knows where to look."""
    path = tmp_path / "bad.toml"
    path.write_text("[columns]\nage = { low = 3, high = 2 }\n", encoding="utf-8")
    with pytest.raises(SchemaError, match=r'bad\.toml: column "age": low must be below high; low is 3 and high is 2'):
        Schema.from_toml(path)


SAME = {
    "1": [1, 1.0, "1", " 1 ", "1.0", "01", "+1", "1e0", np.int8(1), np.uint64(1), np.float32(1), Decimal("1.00")],
    "0": [0, -0.0, "0", "-0", "0.0", np.float64(0)],
    "-2.5": [-2.5, "-2.50", np.float32(-2.5), Decimal("-2.5")],
    "0.1": [0.1, "0.1", "0.10", np.float32(0.1), np.float16(0.1)],
    "9007199254740993": [2**53 + 1, "9007199254740993"],
    "true": [True, "True", "true", "TRUE", np.True_],
    "false": [False, "False", np.False_],
    "Private": ["Private", " Private", "Private\n"],
    "1_000": ["1_000"],
    "1,000": ["1,000"],
    "1e999": ["1e999"],
    "nan": ["nan"],
    "9" * 5000: ["9" * 5000],
    None: [None, "", "  ", float("nan"), np.float32("nan"), Decimal("nan"), pd.NA, pd.NaT],
}


@pytest.mark.parametrize(("canonical", "values"), SAME.items(), ids=lambda value: str(value)[:20])
def test_equal_labels_have_one_canonical_form(canonical, values):
    """Whatever reader and type a label comes through."""
    assert [canonical_label(value) for value in values] == [canonical] * len(values)


@given(labels)
def test_the_canonical_form_is_its_own(label):
    """Taking it twice changes nothing, and text of a label is the label."""
    canonical = canonical_label(label)
    assert canonical_label(canonical) == canonical
    assert canonical_label(str(label)) == canonical


@pytest.mark.parametrize("value", [b"1", [1], (1,), {}, 1j, object()])
def test_what_cannot_be_a_label_has_no_canonical_form(value):
    """A TypeError that does not hold the value."""
    with pytest.raises(TypeError, match=r"^a label is text, a number or a boolean\.$"):
        canonical_label(value)
