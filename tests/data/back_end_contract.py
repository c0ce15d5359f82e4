"""What every back-end with partitions owes: the model of memory, refusals in words, and sums added in a tree."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import confide
from confide.data.arrays import TREE_ADDITIONS
from confide.data.partitions import Outcome
from tests.data.tables import SCHEMA, made_up

CELL = "secret 4711"


def check_back_end(opened: Callable[[pd.DataFrame, confide.Schema, int], Any]) -> None:
    """All of the contract.

    Parameters
    ----------
    opened : gives the rows of a frame, by a schema, in so many partitions that this process computes
    """
    check_the_model_is_that_of_memory(opened)
    check_weights_are_those_of_memory(opened)
    check_bad_rows_are_refused_before_a_charge(opened)
    check_persons_are_refused(opened)
    check_outcomes_are_added_in_a_tree(opened)


def check_the_model_is_that_of_memory(opened: Callable[..., Any]) -> None:
    """A private fit is equal to the bit, in few partitions and in many."""
    frame = made_up(1500)
    memory = confide.LogisticRegression(2.0, schema=SCHEMA, random_state=3).fit(frame, frame["ill"])
    for n_partitions in (1, 2, 11):
        found = confide.LogisticRegression(2.0, random_state=3).fit(opened(frame, SCHEMA, n_partitions))
        assert np.array_equal(found.coef_, memory.coef_)


def check_weights_are_those_of_memory(opened: Callable[..., Any]) -> None:
    """A column of weights counts in partitions as it does in memory."""
    frame = made_up(600).assign(weight=np.arange(600) % 7 + 1.0)
    schema = replace(SCHEMA, weight={"column": "weight", "high": 5})
    memory = confide.LogisticRegression(2.0, schema=schema, random_state=3).fit(frame, frame["ill"])
    found = confide.LogisticRegression(2.0, random_state=3).fit(opened(frame, schema, 2))
    assert np.array_equal(found.coef_, memory.coef_)


def check_bad_rows_are_refused_before_a_charge(opened: Callable[..., Any]) -> None:
    """One missing label is enough. Nothing is charged, and no message or traceback quotes a cell."""
    frame = made_up(600)
    frame.loc[577, "ill"] = CELL
    ledger = confide.Ledger(limit=5.0)
    with pytest.raises(confide.ConfideError) as caught:
        confide.LogisticRegression(1.0, ledger=ledger).fit(opened(frame, SCHEMA, 3))
    assert len(ledger.entries()) == 0
    assert CELL not in "".join(traceback.format_exception(caught.value))


def check_persons_are_refused(opened: Callable[..., Any]) -> None:
    """The rows of one person may lie in several partitions."""
    frame = made_up(300).assign(who=np.arange(300) // 2)
    schema = confide.Schema(columns=SCHEMA.columns, target=SCHEMA.target, person="who")
    with pytest.raises(confide.InputError, match="one person"):
        confide.LogisticRegression(1.0).fit(opened(frame, schema, 3))


def check_outcomes_are_added_in_a_tree(opened: Callable[..., Any]) -> None:
    """No total is behind more additions than three a level of eight, which is what every plan allows for."""
    add, depths, kept = Outcome.__add__, {}, []

    def counted(one: Outcome, other: Outcome) -> Outcome:
        total = add(one, other)
        kept.extend((one, other, total))  # so that no other outcome gets the same identity
        depths[id(total)] = 1 + max(depths.get(id(one), 0), depths.get(id(other), 0))
        return total

    n_partitions = 64
    rows = opened(made_up(n_partitions * 4), SCHEMA, n_partitions)
    with mock.patch.object(Outcome, "__add__", counted):
        confide.LogisticRegression(math.inf).fit(rows)
    assert depths, "no outcome was added here: give rows whose partitions this process computes"
    assert max(depths.values()) <= 3 * math.ceil(math.log(n_partitions, 8)) <= TREE_ADDITIONS
