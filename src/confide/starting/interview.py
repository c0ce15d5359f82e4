"""The questions that begin a study, in a terminal: one line for each column. No row is read for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from confide.curation.table_names import TableNames
from confide.errors import ParameterError
from confide.starting.answers import (
    HELP_FOR_COLUMNS,
    HELP_FOR_TARGETS,
    check_no_unclear_pair,
    described_column,
    described_target,
    target_answer,
    typed,
)
from confide.starting.drafts import ColumnDraft, SchemaDraft, StudyDraft
from confide.starting.guesses import guessed_answer, guessed_target, series_of

_BACK = "<"
_PRIVATE = "private"
Answer = TypeVar("Answer")


class Terminal(Protocol):
    """Where questions are asked."""

    def ask(self, question: str, default: str) -> str:
        """What a person types; the default if it is nothing."""

    def say(self, text: str) -> None:
        """Show some text."""


@dataclass(frozen=True, slots=True)
class Interview:
    """Asks a person what is publicly known of a table.

    Parameters
    ----------
    terminal : where questions are asked
    table : the names of the columns
    suggested : answers for columns, by name, from the rows of a public file; nothing for a private one
    """

    terminal: Terminal
    table: TableNames
    suggested: Mapping[str, str]

    def schema(self, target: str | None, person: str | None) -> SchemaDraft:
        """Ask for the target and the columns.

        Parameters
        ----------
        target, person : columns that options named; None for those to be asked for
        """
        names = self.table.names
        self.terminal.say(self._list_of_names())
        left = tuple(name for name in names if name != person)
        if target is None:
            target = self._asked("Which column is predicted (name or number)?", guessed_target(left) or "", self._named)
        default = target_answer(self.suggested.get(target, ""))
        self.terminal.say(HELP_FOR_TARGETS)
        label = f'What does "{target}" hold?'

        def read(answer: str) -> dict[str, Any]:
            check_no_unclear_pair(answer, default)
            return described_target(target, answer)

        described = self._asked(label, default, read)
        columns = self._columns([name for name in left if name != target])
        return SchemaDraft(columns, described, person)

    def rows_of_a_person(self, given: int | None) -> int:
        """The largest number of rows of one person: what an option gave, or what is answered."""
        return given or self._asked("How many rows may one person have, at most?", "1", _positive)

    def person(self, given: int | None) -> tuple[int, str | None]:
        """The largest number of rows of one person, and the column that identifies persons, or None."""
        rows = self.rows_of_a_person(given)
        if rows == 1:
            return 1, None
        self.terminal.say(self._list_of_names())
        question = "Which column identifies the person (name or number; Enter: none)?"
        return rows, self._asked(question, "", lambda answer: self._named(answer) if answer else None)

    def study(self, study: StudyDraft) -> StudyDraft:
        """Ask for the settings."""
        question = f'About how many rows are there ("{_PRIVATE}" if nobody may know)?'
        rows = self._asked(question, str(study.n_rows), lambda text: None if text.lower() == _PRIVATE else _positive(text))
        bounds = None
        if rows is None:
            bounds = self._asked(
                "Between which public bounds does their number lie (LOW HIGH)?", "1000 1000000", _row_bounds
            )
        n_rows = study.n_rows if rows is None else rows
        study = replace(study, n_rows=n_rows, n_rows_bounds=bounds)
        if study.rho is not None:
            rho = self._asked("Rho of the fit (smaller is more private)?", f"{study.rho:g}", _amount)
            limit = self._asked("Rho of all releases together, the limit of the ledger?", f"{rho:g}", _amount)
            return replace(study, rho=rho, limit=limit)
        epsilon = self._asked("Epsilon of the fit (smaller is more private)?", f"{study.epsilon:g}", _amount)
        shown = "none" if study.delta is None else f"{study.delta:g}"
        delta = self._asked('Delta ("none" for pure differential privacy; else far below 1 / rows)?', shown, _delta)
        limit = self._asked("Epsilon of all releases together, the limit of the ledger?", f"{epsilon:g}", _amount)
        return replace(study, epsilon=epsilon, delta=delta, limit=limit)

    def _columns(self, names: list[str]) -> tuple[ColumnDraft, ...]:
        self.terminal.say(HELP_FOR_COLUMNS)
        answers: list[str] = []
        while len(answers) < len(names):
            name = names[len(answers)]
            guess = self.suggested.get(name) or self._guess(name, dict(zip(names, answers, strict=False)))
            answer = self.terminal.ask(f"{len(answers) + 1}/{len(names)} {name}", guess).strip()
            if answer == _BACK:
                del answers[-1:]
                continue
            try:
                if not answer or answer == "?":
                    raise ParameterError(HELP_FOR_COLUMNS)
                check_no_unclear_pair(answer, guess)
                self.terminal.say(f"    {_understood(described_column(name, answer))}")
            except ParameterError as error:
                self.terminal.say(f"    {error}")
                continue
            answers.append(answer)
        return tuple(ColumnDraft(name, described_column(name, answer)) for name, answer in zip(names, answers, strict=True))

    def _guess(self, name: str, earlier: Mapping[str, str]) -> str:
        """The answer for an earlier column of the same series, or what the name suggests to anybody."""
        own = series_of(name)
        series = [answer for other, answer in earlier.items() if own and series_of(other) == own]
        return series[-1] if series else guessed_answer(name, self.table.types.get(name))

    def _list_of_names(self) -> str:
        return ", ".join(f"{number} {name}" for number, name in enumerate(self.table.names, 1))

    def _asked(self, question: str, default: str, read: Callable[[str], Answer]) -> Answer:
        """What `read` makes of the answer. An answer that it refuses is asked for again."""
        while True:
            answer = self.terminal.ask(question, default).strip()
            try:
                return read(answer)
            except ParameterError as error:
                self.terminal.say(f"    {error}")

    def _named(self, answer: str) -> str:
        """A column, by its name or its number."""
        if answer in self.table.names:
            return answer
        if answer.isdigit() and 1 <= int(answer) <= len(self.table.names):
            return self.table.names[int(answer) - 1]
        raise ParameterError("give the name of a column, or its number in the list above.")


def _understood(description: dict[str, Any] | None) -> str:
    """How an answer was understood, so that a mistake is seen."""
    if description is None:
        return "left out"
    codes = description.get("missing")
    gaps = ", cells may be empty" if codes else ""
    gaps += f" ({', '.join(map(str, codes))} stand for empty ones)" if isinstance(codes, list) else ""
    if "low" in description:
        scale = ", on a logarithmic scale" if description.get("scale") else ""
        unit = f" {description['unit']}" if "unit" in description else ""
        return f"a number from {description['low']} to {description['high']}{unit}{scale}{gaps}"
    others = ", all others together" if description.get("other") else ""
    levels = {"categories": description["categories"]}
    return f"{len(description['categories'])} levels: {typed(levels)}{others}{gaps}"


def _positive(text: str) -> int:
    digits = text.replace(",", "").replace("_", "")
    if not digits.isdigit() or int(digits) < 1:
        raise ParameterError("give a whole number, at least 1.")
    return int(digits)


def _amount(text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = 0.0
    if not 0.0 < amount < float("inf"):
        raise ParameterError("give a positive number, such as 1.")
    return amount


def _delta(text: str) -> float | None:
    if text.lower() in ("none", "0", ""):
        return None
    amount = _amount(text)
    if amount >= 1.0:
        raise ParameterError("delta is a probability, so it is below 1; for example 1e-6.")
    return amount


def _row_bounds(text: str) -> tuple[int, int]:
    parts = text.split()
    if len(parts) != 2:
        raise ParameterError("give two whole numbers, such as 1000 1000000.")
    low, high = _positive(parts[0]), _positive(parts[1])
    if low >= high:
        raise ParameterError("the first number must be below the second.")
    return low, high
