"""The public description of a table: its columns, its target, and which columns interact.

A schema is written from public knowledge (a codebook, the law, common sense) by a person who has not looked at the
data, as a TOML file or in Python. The library learns no part of it from rows::

    target = { column = "income", negative = "<=50K", positive = ">50K" }
    interact = [["sex", "education"], ["age", "sex"]]
    [columns]
    age = { low = 17, high = 90, knots = [25, 35, 45, 55, 65] }
    sex = { categories = ["Female", "Male"] }
    education = { categories = ["School", "University"], other = true }
    capital-gain = { low = 0, high = 99999, scale = "log" }
    workclass = { categories = ["Private", "State-gov"], other = true, missing = true }
    race = { categories = ["White", "Black", "Other"], other = "Other" }

A column is either a number with bounds or a category with a list of values.

- `scale = "log"` is for numbers with a long right tail, in a unit in which 1 is small. They are encoded evenly in
  log(1 + value - low), so the first unit above `low` counts as much as each later doubling. It suits numbers that are mostly
  near `low`, not numbers on both sides of 0.
- `scale = "log10"` is for positive numbers that spread over powers of ten, such as incomes from 1,000 to 1,000,000. They are
  encoded evenly in the logarithm of the value itself, so each doubling counts the same, wherever it begins. `low` must be
  above 0.
- `knots` let the effect of a number bend: the effect is a straight line between neighbouring knots, instead of one line from
  low to high. On a logarithmic scale, the lines are straight in the logarithm. `knots = 6` means six knots, evenly spaced
  on the column's scale, and `knots = 0` one straight line. A column without `knots` has a straight line in linear
  models, and in additive models a number of knots that is chosen from public facts.
- `unit = "USD"` names the unit of a number, for readers of tables, pictures and reports. It changes no number.
- `missing = true` says that cells of the column may be missing. `missing = [999, -9]` says so too, and that these codes
  stand for missing cells: for numbers a list of numbers, for categories a list of labels.
- `released = { ... }` beside low and high says that these bounds are not public knowledge but came from rows, by a private
  release whose price it states. `confide bounds` writes it, and statements of models name it.
- `other = true` gives all categories that are not listed one level of their own. `other = "Other"` counts them as that
  listed category. In both cases every row has exactly one level. This is public knowledge, and it makes the noise smaller.

Each list in `interact` names columns whose effects depend on each other: the products of their encoded columns enter the
model beside the columns themselves. Every knot and every product adds noise, so declare only those that are known to matter.
A table in place of a list says more:

    interact = [["sex", "education"], { columns = ["age", "hours"], knots = 1, scale = 0.3 }]

With `knots`, numbers enter the products as coarse effects with so many evenly spaced knots, whatever knots they have beside
the products. `scale` multiplies the products: they then take a smaller part of the norm of a row, and the model expects them
to be small (`confide.features.interactions`). One number alone, as in { columns = ["age"], knots = 3 }, gets a curve beside
its straight line.

`random_features = { number = 1000, length_scale = 1.5, norm = 4 }` above [columns] makes every linear model with the schema
append random Fourier features of the encoded row to it, so that it also has a smooth function of all columns together
(`confide.features.random_features`).

A target of three or more classes lists all its labels:

    target = { column = "species", classes = ["adelie", "chinstrap", "gentoo"] }

A target of numbers has bounds, like a column. Numbers outside are clipped to them:

    target = { column = "price", low = 0, high = 20000, unit = "USD" }

If one person may have several rows, `person = "patient_id"` above [columns] names the column that identifies the person. It
is not a feature.

If rows count differently, as in a survey, a weight names the column that says how much, and its public cap:

    weight = { column = "design_weight", high = 20, mean = 3.9 }

It is not a feature either. A weight above `high` counts as `high`. `mean` is the mean weight, if that is public knowledge.

Categories and labels are compared in canonical form (`confide.features.canonical_labels`): 1 in a schema is the same as the
1.0 and the "1" that different readers make of one file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from confide.errors import SchemaError
from confide.features.blanks import refuse_blanks
from confide.features.columns import Column, NumberColumn, columns_of
from confide.features.interactions import Interaction, interactions_of
from confide.features.random_features import RandomFeatures, random_features_of
from confide.features.row_weight import RowWeight, row_weight_of
from confide.features.schema_checks import check_keys, column_title
from confide.features.target import Target, target_of
from confide.features.toml_form import read_toml, toml_text


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Schema:
    """The public description of a table: its columns, in the order in which they are encoded, and its target.

    Parameters
    ----------
    columns : a mapping from the name of a column to its description, as in a TOML file, or column objects
    target : a mapping with the keys column, and negative and positive, or classes, or low and high; or a `Target`; optional
    person : name of the column that identifies the person a row belongs to, if one person may have several rows; it is not a
        feature
    interact : lists of two or more names of columns whose encoded columns are also multiplied with each other; or mappings
        with the keys columns, knots and scale, or `Interaction` objects; optional. One number alone, with knots, gets a
        curve beside its straight line
    random_features : a mapping with the keys number, length_scale, norm and seed, or a `RandomFeatures`: models append
        random Fourier features of the encoded row to it; optional
    weight : a mapping with the keys column, high and mean, or a `RowWeight`: the column that says how much each row counts
        in a fit, its cap, and its mean if that is public; optional

    Raises
    ------
    SchemaError
        If the schema contradicts itself. The message names the column and says what to do.

    Examples
    --------
    >>> print(Schema(columns={"age": {"low": 17, "high": 90}, "sex": {"categories": ["Female", "Male"]}}))
    Schema of 2 columns
      age  number from 17 to 90
      sex  2 categories
    """

    columns: tuple[Column, ...]
    target: Target | None
    person: str | None
    interact: tuple[Interaction, ...]
    random_features: RandomFeatures | None
    weight: RowWeight | None

    def __init__(
        self,
        columns: Mapping[str, Mapping[str, Any]] | Iterable[Column],
        target: Target | Mapping[str, Any] | None = None,
        person: str | None = None,
        interact: Iterable[Interaction | Iterable[str] | Mapping[str, Any]] = (),
        random_features: RandomFeatures | Mapping[str, Any] | None = None,
        weight: RowWeight | Mapping[str, Any] | None = None,
    ) -> None:
        object.__setattr__(self, "columns", columns_of(columns))
        object.__setattr__(self, "target", target_of(target))
        object.__setattr__(self, "person", person)
        object.__setattr__(self, "weight", row_weight_of(weight))
        self._check_names()
        object.__setattr__(self, "interact", interactions_of(interact, self.columns_by_name))
        object.__setattr__(self, "random_features", random_features_of(random_features))

    def _check_names(self) -> None:
        """Columns, target, person and weight are different columns of the table."""
        if not self.columns:
            raise SchemaError("a schema needs at least one column.")
        names = set()
        for name in self.column_names:
            if name in names:
                raise SchemaError(f"{column_title(name)}: described twice; keep one description.")
            names.add(name)
        target = None if self.target is None else self.target.column
        if target in names:
            raise SchemaError(
                f"{column_title(target)}: is the target, so it must not be among the columns; remove it there."
            )
        if self.person is not None:
            where = column_title(self.person, "person, the name of a column,")
            if self.person in names:
                raise SchemaError(f"{where}: identifies the person, so it must not be among the columns; remove it there.")
            if self.person == target:
                raise SchemaError(f"{where}: identifies the person, so it cannot be the target; correct one of the two.")
        if self.weight is None:
            return
        where = column_title(self.weight.column)
        if self.weight.column in names:
            raise SchemaError(f"{where}: is the weight of rows, so it must not be among the columns; remove it there.")
        if self.weight.column in (target, self.person):
            raise SchemaError(f"{where}: is the weight of rows, so it cannot be the target or the person; correct one.")

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> Schema:
        """Read what `to_dict` gives, which has the form of a TOML file.

        Parameters
        ----------
        mapping : {"target": {...}, "person": name, "weight": {...}, "interact": [[name, name], ...], "columns": {...}}; only
            the columns, {name: {...}, ...}, are required, and their order is kept. An interaction may also be a mapping,
            {"columns": [name, name], "knots": 1, "scale": 0.3}

        Returns
        -------
        Schema
            What the mapping says.

        Raises
        ------
        SchemaError
            If a key is unknown or the schema contradicts itself.
        """
        if not isinstance(mapping, Mapping):
            raise SchemaError(
                'a schema must be a mapping with the key "columns" and, optionally, "target", "person", "weight" and '
                '"interact".'
            )
        known = ("columns", "target", "person", "weight", "interact", "random_features")
        check_keys("the schema", mapping, known, " (columns are described below [columns])")
        if not isinstance(mapping.get("columns"), Mapping):
            raise SchemaError('the schema has no table "columns"; describe each column there, by its name.')
        others = {key: mapping[key] for key in known[1:] if key in mapping}
        return cls(mapping["columns"], **others)

    @classmethod
    def from_toml(cls, path: str | Path) -> Schema:
        """Read a schema from a TOML file.

        Parameters
        ----------
        path : path of the file

        Returns
        -------
        Schema
            What the file says.

        Raises
        ------
        FileError
            If the file is missing, cannot be read, or is not TOML.
        SchemaError
            If the schema contradicts itself, or has blanks that are not filled in. The message begins with the name of the
            file.
        """
        mapping = read_toml(path)
        try:
            refuse_blanks(mapping)
            return cls.from_dict(mapping)
        except SchemaError as error:
            raise SchemaError(f"{path}: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able form, read by `from_dict`. The order of the columns matters, so do not sort the keys."""
        target = {} if self.target is None else {"target": self.target.to_dict()}
        person = {} if self.person is None else {"person": self.person}
        interact: dict[str, Any] = {}
        if self.interact:
            interact["interact"] = [interaction.described() for interaction in self.interact]
        if self.random_features is not None:
            interact["random_features"] = self.random_features.to_dict()
        weight = {} if self.weight is None else {"weight": self.weight.to_dict()}
        return target | person | weight | interact | {"columns": {column.name: column.to_dict() for column in self.columns}}

    def to_toml(self) -> str:
        """The text of a TOML file, read by `from_toml`."""
        return toml_text(self.to_dict())

    def without_curves(self) -> Schema:
        """The schema without knots, interactions and random features: what decides how a table is read."""
        columns = (replace(column, knots=()) if isinstance(column, NumberColumn) else column for column in self.columns)
        return replace(self, columns=tuple(columns), interact=(), random_features=None)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns in order, without the target, the person and the weight."""
        return tuple(column.name for column in self.columns)

    @property
    def columns_by_name(self) -> dict[str, Column]:
        """The columns by their names, in order."""
        return {column.name: column for column in self.columns}

    def __repr__(self) -> str:
        target = "" if self.target is None else f", target={self.target.column!r}"
        person = "" if self.person is None else f", person={self.person!r}"
        person += "" if self.weight is None else f", weight={self.weight.column!r}"
        interact = f", {len(self.interact)} interaction{'s'[: len(self.interact) != 1]}" if self.interact else ""
        features = "" if self.random_features is None else f", {self.random_features.number} random features"
        return f"Schema({len(self.columns)} column{'s'[: len(self.columns) != 1]}{target}{person}{interact}{features})"

    def __str__(self) -> str:
        target = self.target and f", target {self.target}"
        person = self.person and f", person {self.person}"
        width = max(len(name) for name in self.column_names)
        weight = self.weight and f", weight {self.weight}"
        others = "".join(each or "" for each in (target, person, weight))
        lines = [f"Schema of {len(self.columns)} column{'s'[: len(self.columns) != 1]}{others}"]
        lines += [f"  {column.name:{width}}  {column}" for column in self.columns]
        together = [*self.interact, *([] if self.random_features is None else [self.random_features])]
        return "\n".join(lines + [f"  {each}" for each in together])
