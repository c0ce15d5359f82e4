"""What is known of a study when it begins: the draft of its schema and its settings. Public facts alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confide.curation.table_names import TableNames
from confide.features.blanks import BLANK
from confide.starting.answers import SKIP, described_column, described_target, target_answer
from confide.starting.guesses import guessed_answer, guessed_kind, has_long_tail

UNKNOWN_TARGET = {"column": BLANK, "negative": BLANK, "positive": BLANK}


@dataclass(frozen=True, slots=True)
class ColumnDraft:
    """One column of the schema to be.

    Parameters
    ----------
    name : name of the column
    description : its description as in a schema, in which `BLANK` stands for what is not known; `BLANK` if nothing is; None
        if the column is left out
    note : a comment beside it, "" for none
    """

    name: str
    description: Mapping[str, Any] | str | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class SchemaDraft:
    """A schema to be.

    Parameters
    ----------
    columns : without the target and the person
    target : as in a schema, maybe with blanks
    person : the column that identifies persons, or None
    from_rows : the name of the public file from whose rows types, levels and bounds were suggested; "" if no row was read
    """

    columns: tuple[ColumnDraft, ...]
    target: Mapping[str, Any]
    person: str | None = None
    from_rows: str = ""

    @property
    def n_blank(self) -> int:
        """The number of places in which something is to be filled in, those of the target among them."""
        descriptions = [self.target, *(column.description for column in self.columns)]
        return sum(repr(description).count(BLANK) for description in descriptions)

    @property
    def predicts_numbers(self) -> bool | None:
        """Whether the target is a number; None if that is to be filled in."""
        return None if BLANK in self.target.values() else "low" in self.target


@dataclass(frozen=True, slots=True)
class StudyDraft:
    """The settings of a study to be.

    Parameters
    ----------
    name : what the study is called
    data : path of the table, as the study file is to name it
    schema : name of the schema's file
    epsilon, delta : the budget of the fit; delta None for pure differential privacy
    rho : the budget of the fit in zero-concentrated differential privacy, which then takes the place of these two; or None
    limit : epsilon, or rho, of the ledger, for all releases together
    n_rows : about how many rows there are, for plans; a public guess
    n_rows_bounds : public bounds on the number of rows if it is private, otherwise None
    max_rows_per_person : the largest number of rows of one person
    ledger : name of the ledger's file
    """

    name: str
    data: str
    schema: str
    epsilon: float = 1.0
    delta: float | None = None
    rho: float | None = None
    limit: float = 1.0
    n_rows: int = 10_000
    n_rows_bounds: tuple[int, int] | None = None
    max_rows_per_person: int = 1
    ledger: str = "study.db"

    @property
    def amounts(self) -> dict[str, float]:
        """The budget of the fit by the names of its amounts: epsilon, epsilon and delta, or rho."""
        if self.rho is not None:
            return {"rho": self.rho}
        return {"epsilon": self.epsilon} | ({} if self.delta is None else {"delta": self.delta})

    @property
    def limits(self) -> dict[str, float]:
        """The limit of the ledger, likewise."""
        if self.rho is not None:
            return {"rho": self.limit}
        return {"epsilon": self.limit} | ({} if self.limit_delta is None else {"delta": self.limit_delta})

    @property
    def limit_delta(self) -> float | None:
        """Delta of the ledger: that of as many fits as its epsilon pays for."""
        return None if self.delta is None else min(self.delta * max(1, math.ceil(self.limit / self.epsilon)), 0.5)

    @property
    def neighbours(self) -> str:
        """The neighbour relation: with a private number of rows, a row is added or removed."""
        return "replace-one" if self.n_rows_bounds is None else "add-or-remove-one"


@dataclass(frozen=True, slots=True)
class StartedFiles:
    """Where the files of a study are written.

    Parameters
    ----------
    folder : the folder of all of them
    schema : name of the schema's file
    """

    folder: Path
    schema: str

    @property
    def paths(self) -> dict[str, Path]:
        """The path of each file: "schema", "study", "notebook" and "script"."""
        names = {"schema": self.schema, "study": "study.toml", "notebook": "study.ipynb", "script": "study.py"}
        return {what: self.folder / name for what, name in names.items()}


def draft_with_blanks(table: TableNames, target: str | None, person: str | None) -> SchemaDraft:
    """A schema with a blank wherever only a person can say what holds.

    Parameters
    ----------
    table : the names of the columns
    target : the column to be predicted, or None if it is to be filled in
    person : the column that identifies persons, or None
    """
    columns = tuple(_blank_column(name, table) for name in table.names if name not in (target, person))
    return SchemaDraft(columns, UNKNOWN_TARGET | ({} if target is None else {"column": target}), person)


def draft_from_answers(
    table: TableNames, answers: Mapping[str, str], target: str | None, person: str | None, from_rows: str
) -> SchemaDraft:
    """A schema from suggested answers, for its owner to correct.

    Parameters
    ----------
    table : the names of the columns
    answers : for each column, what would be typed (`confide.starting.answers`)
    target, person : as in `draft_with_blanks`
    from_rows : the public file whose rows suggested the answers
    """
    columns = tuple(
        ColumnDraft(name, described_column(name, answers[name]) if answers[name] else BLANK)
        for name in table.names
        if name not in (target, person)
    )
    described: Mapping[str, Any] = UNKNOWN_TARGET | ({} if target is None else {"column": target})
    if target is not None and answers[target] not in ("", SKIP):
        described = described_target(target, target_answer(answers[target]))
    return SchemaDraft(columns, described, person, from_rows)


def _blank_column(name: str, table: TableNames) -> ColumnDraft:
    declared = table.types.get(name)
    guess, kind = guessed_answer(name, declared), guessed_kind(name, declared)
    if guess == "skip":
        reason = "its type is no number and no text" if declared == "other" else "it looks like a name or an identifier"
        return ColumnDraft(name, None, f"left out, because {reason}")
    if declared == "boolean":
        return ColumnDraft(name, {"categories": [False, True]}, "true or false, as the file declares")
    if kind == "number":
        low, high = guess.split() if guess else ("0", "1000000" if has_long_tail(name) else "1000")
        is_amount = not guess and has_long_tail(name)
        tail = '; or low = 1000, high = 1000000, scale = "log10"' if is_amount else ""
        return ColumnDraft(name, {"low": BLANK, "high": BLANK}, f"for example low = {low}, high = {high}{tail}")
    if kind == "category":
        return ColumnDraft(name, {"categories": [BLANK], "other": True}, 'for example ["a", "b"]')
    return ColumnDraft(name, BLANK, "")
