"""Schemas: their forms, and the contradictions that are refused in them."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given

from confide.errors import ParameterError, SchemaError
from confide.features.columns import CategoryColumn, NumberColumn
from confide.features.schema import Interaction, Schema, Target
from tests.features.schemas import AGE, EXAMPLE, SEX, TARGET, schemas


def test_a_toml_file_is_read_as_it_says(tmp_path):
    """Columns keep their order, and each key has its meaning."""
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
    """The short form and the explicit form give the same schema."""
    by_mapping = Schema(columns={"age": AGE, "sex": SEX}, target=TARGET)
    by_objects = Schema(
        [NumberColumn("age", 17, 90), CategoryColumn("sex", ("Female", "Male"))], Target("income", "<=50K", ">50K")
    )
    assert by_mapping == by_objects
    assert hash(by_mapping) == hash(by_objects)


@given(schemas())
def test_every_schema_survives_a_dict_and_json(schema):
    """A schema that goes through a dict and JSON text is equal afterwards."""
    assert Schema.from_dict(schema.to_dict()) == schema
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


@given(schemas())
def test_every_schema_survives_toml(tmp_path_factory, schema):
    """The TOML text is read back as an equal schema, whatever is in names and categories."""
    path = tmp_path_factory.mktemp("schema") / "schema.toml"
    path.write_bytes(schema.to_toml().encode())
    assert Schema.from_toml(path) == schema


def test_a_schema_survives_copies_and_pickles():
    """Estimators are cloned and sent to workers with their schema."""
    schema = Schema(columns={"age": AGE, "sex": SEX}, target=TARGET)
    assert copy.deepcopy(schema) == schema
    assert pickle.loads(pickle.dumps(schema)) == schema


def test_a_schema_is_frozen():
    """A schema is part of a guarantee, so it must not change after it was made."""
    schema = Schema(columns={"age": AGE})
    for value, attribute in ((schema, "columns"), (schema.columns[0], "low")):
        with pytest.raises(FrozenInstanceError):
            setattr(value, attribute, 1)


def test_a_schema_prints_for_people():
    """str has one line for each column, and repr is one short line."""
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


def test_the_person_is_a_key_beside_the_target(tmp_path):
    """It is read from TOML, is part of the schema's value, and is not a column."""
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
    """The person must be a column of its own, given by its name."""
    with pytest.raises(SchemaError, match=words):
        Schema(columns={"age": AGE}, target=TARGET, person=person)


@pytest.mark.parametrize("line", ['interact = [["age", "sex"]]', 'person = "id"'])
def test_a_key_below_the_columns_is_sent_above_them(tmp_path, line):
    """TOML counts a key below [columns] as a column, so the message says where to put it."""
    path = tmp_path / "people.toml"
    path.write_text(f"[columns]\nage = {{ low = 17, high = 90 }}\n{line}\n")
    with pytest.raises(SchemaError, match=r"put it above \[columns\]"):
        Schema.from_toml(path)


def test_knots_and_interactions_are_read_from_toml_and_printed(tmp_path):
    """They are read as documented, and schemas that differ in them are not equal."""
    path = tmp_path / "people.toml"
    path.write_text(
        'interact = [["age", "sex"]]\n[columns]\nage = { low = 17, high = 90, knots = [25, 65.5] }\n'
        'sex = { categories = ["Female", "Male"] }\n'
    )
    schema = Schema.from_toml(path)
    assert schema.interact == (Interaction(("age", "sex")),)
    assert schema.columns[0] == NumberColumn("age", 17, 90, knots=(25, 65.5))
    assert schema != Schema(schema.columns)
    assert "age  number from 17 to 90, knots at 25, 65.5" in str(schema)
    assert str(schema).endswith("age x sex  interact")
    assert repr(schema) == "Schema(2 columns, 1 interaction)"


def test_coarse_interactions_are_read_from_toml_and_written_again(tmp_path):
    """A table stands in place of a list. What has its default value is not written."""
    path = tmp_path / "people.toml"
    path.write_text(
        'interact = [["age", "hours"], { columns = ["age", "sex"], knots = 1, scale = 0.3 }, '
        '{ columns = ["sex", "hours"] }]\n'
        "[columns]\nage = { low = 17, high = 90 }\nhours = { low = 1, high = 99 }\n"
        'sex = { categories = ["Female", "Male"] }\n'
    )
    schema = Schema.from_toml(path)
    assert schema.interact == (
        Interaction(("age", "hours")), Interaction(("age", "sex"), 1, 0.3), Interaction(("sex", "hours")),
    )  # fmt: skip
    assert schema.to_dict()["interact"] == [
        ["age", "hours"], {"columns": ["age", "sex"], "knots": 1, "scale": 0.3}, ["sex", "hours"],
    ]  # fmt: skip
    assert 'interact = [["age", "hours"], { columns = ["age", "sex"], knots = 1, scale = 0.3 }, ' in schema.to_toml()
    assert str(schema).splitlines()[-2] == "  age x sex  interact, 1 even knot, scale 0.3"
    path.write_text(schema.to_toml())
    assert Schema.from_toml(path) == schema == Schema(schema.columns, interact=schema.interact)


def test_a_column_object_given_twice_is_refused():
    """A mapping cannot repeat a name, but a list of objects can."""
    with pytest.raises(SchemaError, match="twice"):
        Schema([NumberColumn("age", 0, 1), NumberColumn("age", 0, 2)])


@pytest.mark.parametrize("mapping", [[], {}, {"target": TARGET}, {"age": AGE}, {"columns": {"age": AGE}, "colums": {}}])
def test_a_mapping_of_another_shape_is_refused(mapping):
    """The top level holds the known keys and must hold the columns."""
    with pytest.raises(SchemaError):
        Schema.from_dict(mapping)


def test_a_contradiction_in_a_file_names_the_file_and_the_column(tmp_path):
    """The message says in which file and column to look."""
    path = tmp_path / "bad.toml"
    path.write_text("[columns]\nage = { low = 3, high = 2 }\n", encoding="utf-8")
    with pytest.raises(SchemaError, match=r'bad\.toml: column "age": low must be below high, not 3 and 2'):
        Schema.from_toml(path)


CONTRADICTIONS = {
    "no columns": ({}, "at least one"),
    "the target among the columns": ({"age": AGE, "income": AGE}, "income"),
}


@pytest.mark.parametrize(("columns", "words"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_columns_that_do_not_fit_together_are_refused(columns, words):
    """They give a SchemaError in one line, which is a ParameterError."""
    with pytest.raises(SchemaError, match=words) as refusal:
        Schema(columns=columns, target=TARGET)
    assert isinstance(refusal.value, ParameterError)
    assert "\n" not in str(refusal.value)
