"""Suggestions from the rows of a file that its owner declares to be public: types, bounds and levels.

This is the only place where the start of a study reads a row, and it is reached by `--public-file` alone.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confide.curation.column_counts import FEWEST_OF_A_CODE, TYPICAL_CODE
from confide.curation.pieces import table_pieces
from confide.curation.table_names import DeclaredType, TableNames
from confide.features.canonical_labels import canonical_label, is_missing, na_is_a_code
from confide.features.cells import number_in
from confide.features.columns import shown_number
from confide.starting.answers import SKIP, typed
from confide.starting.guesses import guessed_answer

_MOST_LEVELS = 50
"""A column of text with more different values is no category that a person would list."""
_MOST_CODES = 12
"""A column of whole numbers with so few different values is taken for a category of codes."""
_LONG_TAIL = 100.0
"""If the least number is 0 and the largest is more than so many times the mean, the scale "log" is suggested."""
_LONG_POSITIVE_TAIL = 20.0
"""If all numbers are positive and the largest is more than so many times the mean, the scale "log10" is suggested. The tail
of an exponential distribution is shorter in any table that fits into memory, and that of incomes is longer."""


@dataclass(slots=True)
class _Seen:
    """What was seen of one column so far. Of a column with many values only the ends and the mean are kept."""

    declared: DeclaredType | None
    levels: dict[str, Any] = field(default_factory=dict)
    n_numbers: int = 0
    n_texts: int = 0
    total: float = 0.0
    low: float = math.inf
    high: float = -math.inf
    missing: bool = False
    na: bool = False
    whole: bool = True
    set_aside: Counter[float] = field(default_factory=Counter)

    def add(self, value: object, count: int) -> None:
        """One distinct value, and in how many rows it is."""
        number = number_in(value)
        label = None if value is None else canonical_label(str(value))
        if is_missing(label) or label is None or (number is not None and math.isnan(number)):
            self.missing = self.missing or label != "NA"
            self.na = self.na or label == "NA"
            return
        if len(self.levels) <= _MOST_LEVELS:
            self.levels[label] = None
        if number is None or math.isinf(number):
            self.n_texts += count
            return
        if TYPICAL_CODE.fullmatch(f"{number:.10g}"):
            self.set_aside[number] += count
        else:
            self._add_number(number, count)

    def _add_number(self, number: float, count: int) -> None:
        self.n_numbers += count
        self.total += number * count
        self.low, self.high = min(self.low, number), max(self.high, number)
        self.whole = self.whole and number.is_integer()

    def _without_codes(self) -> list[int | float]:
        """Codes for missing cells, such as 999 and -9, among the numbers that may be some; the others count as numbers."""
        low, high, codes = self.low, self.high, []
        for number, count in self.set_aside.items():
            is_outside = number < 0.0 <= low or number - high > high - low > 0.0
            if count >= FEWEST_OF_A_CODE and is_outside:
                codes.append(shown_number(number))
                self.levels.pop(str(shown_number(number)), None)
            else:
                self._add_number(number, count)
        self.set_aside.clear()
        return codes

    def answer(self) -> str:
        """The suggestion as it would be typed; "" if there is none."""
        if self.declared == "other" or not self.levels:
            return SKIP
        codes = self._without_codes()
        if self.na and na_is_a_code(self.levels):
            self.levels["NA"] = None
        elif self.na:
            self.missing = True
        few_codes = self.whole and len(self.levels) <= _MOST_CODES
        if self.n_numbers and not self.n_texts and not (few_codes and self.high - self.low <= _MOST_CODES):
            if self.low == self.high:
                return SKIP
            mean = self.total / self.n_numbers
            scale = {}
            if self.low == 0.0 and self.high > _LONG_TAIL * max(mean, 1.0):
                scale = {"scale": "log"}
            elif self.low > 0.0 and self.high > _LONG_POSITIVE_TAIL * mean:
                scale = {"scale": "log10"}
            bounds = {"low": shown_number(self.low), "high": shown_number(self.high), "missing": codes or self.missing}
            return typed(bounds | scale)
        if len(self.levels) > _MOST_LEVELS:
            return SKIP
        ordered = sorted(self.levels, key=lambda label: ((label != "NA" and number_in(label)) or 0.0, label))
        if len(ordered) == 1:
            return SKIP
        return typed({"categories": ordered, "missing": codes or self.missing, "other": len(self.levels) > 2})


def suggested_answers(path: Path, table: TableNames) -> dict[str, str]:
    """An answer for each column, as it would be typed, from the rows of a public file.

    Parameters
    ----------
    path : the file, which its owner declared to be public
    table : the names of its columns
    """
    seen = {name: _Seen(table.types.get(name)) for name in table.names}
    for piece in table_pieces(path, table.names):
        for name in table.names:
            for value, count in piece.distinct(name):
                seen[name].add(value, count)
    left_out = {name for name in table.names if guessed_answer(name) == SKIP}
    return {name: SKIP if name in left_out else column.answer() for name, column in seen.items()}
