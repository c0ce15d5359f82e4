"""The kernel is tried on made-up codes, and one that makes a mistake is not used."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from confide.compiled import sums as coded_trial
from confide.compiled import sums as trials
from confide.compiled.gradient_sums import code_of
from confide.compiled.loading import is_plain
from confide.compiled.stored_rows import SumOfSlopes
from confide.compiled.sums import by_kernel
from confide.erm.group_bounds import GroupBound
from confide.erm.losses import LogisticLoss
from confide.erm.row_sums import RowSum


@pytest.fixture(params=["", "plain"], autouse=True)
def instructions(request, monkeypatch, compiled):
    """Sums by the instructions of this processor, and by those that every processor has."""
    monkeypatch.setenv("CONFIDE_COMPILED", request.param)


class _Wrong:
    """A kernel that makes one mistake."""

    def __init__(self, kernel, change):
        self._kernel, self._change = kernel, change

    def coded_sums(self, *arguments):
        return self._change(self._kernel.coded_sums, list(arguments))


def of_columns(change):
    """A mistake in each column, as the kernel reads it."""

    def mistaken(sums, arguments):
        arguments[0] = tuple(tuple(change(list(column))) for column in arguments[0])
        return sums(*arguments)

    return mistaken


def set_at(place, value, kind=None):
    def change(column):
        if kind is None or column[0] == kind:
            column[place] = value(column[place]) if callable(value) else value
        return column

    return of_columns(change)


def given(place, change):
    def mistaken(sums, arguments):
        if arguments[place] is not None:
            arguments[place] = change(arguments[place])
        return sums(*arguments)

    return mistaken


def first_block_alone(sums, arguments):
    """Blocks after the first one are forgotten."""
    block = min(arguments[2], arguments[1])
    arguments[0] = tuple((column[0], column[1][:block], *column[2:]) for column in arguments[0])
    arguments[1], arguments[3] = block, arguments[3][:block]
    arguments[4] = None if arguments[4] is None else arguments[4][:block]
    return sums(*arguments)


def last_block_alone_tells(sums, arguments):
    """A row without a level is noticed in the last block alone."""
    sums(*arguments)
    first = (arguments[1] - 1) // arguments[2] * arguments[2]
    arguments[0] = tuple((column[0], column[1][first:], *column[2:]) for column in arguments[0])
    arguments[1], arguments[3] = arguments[1] - first, arguments[3][first:]
    arguments[4] = None if arguments[4] is None else arguments[4][first:]
    arguments[12] = np.zeros_like(arguments[12])
    return sums(*arguments)


MISTAKES = {
    "the last block alone tells": last_block_alone_tells,
    "another low of lines": set_at(5, lambda low: low + 0.25, 0),
    "another high of lines": set_at(7, lambda high: high + 1.0, 0),
    "another step": set_at(6, lambda step: 1.25 * step),
    "no indicator of lines": set_at(4, -1, 0),
    "no indicator of hats": set_at(4, -1, 1),
    "another middle": set_at(8, lambda middle: 0.5 * middle, 1),
    "another height": set_at(9, lambda values: None if values is None else 1.01 * values, 1),
    "another entry": set_at(9, lambda values: None if values is None else -values, 2),
    "no category is linked": set_at(10, False),
    "each category is linked": set_at(10, True),
    "weights that are no numbers": given(4, lambda counts: np.nan_to_num(counts, nan=1.0)),
    "no weights of rows": given(4, lambda counts: None),
    "weights beyond their bound": given(5, lambda largest: 2.0 * largest),
    "no constant": given(7, lambda offset: 0.0),
    "another corner or joint": given(9, lambda a: 0.5 * a),
    "one block": first_block_alone,
    "all is well": lambda sums, arguments: [sums(*arguments)] and True,
    "nothing is well": lambda sums, arguments: not [sums(*arguments)],
}


@pytest.fixture
def untried():
    """No kernel has been tried yet, and none afterwards."""
    coded_trial.tried.cache_clear()
    yield
    coded_trial.tried.cache_clear()


KNOWN = RowSum(LogisticLoss(), GroupBound((1,) * 6, (1.0,) * 6), 0.0, 1)


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_kernel_that_adds_up_wrongly_is_not_used(monkeypatch, compiled, untried, mistake):
    """It is tried on made-up codes before its first sum, and NumPy makes the sums instead, with a warning."""
    monkeypatch.setattr(trials, "kernel", lambda: _Wrong(compiled, mistake))
    with pytest.warns(RuntimeWarning, match=r"computes wrongly .* so certified gradients of coded rows are made by NumPy"):
        assert by_kernel(KNOWN, 1, 64) is None


class _Older:
    """A module that was built before it could make these sums."""


def failing(sums, arguments):
    raise TypeError


@pytest.mark.parametrize(
    "module", [lambda kernel: _Older(), lambda kernel: _Wrong(kernel, failing)], ids=["no function", "other"]
)
def test_a_module_of_another_version_is_not_used_and_ends_no_fit(monkeypatch, compiled, untried, module):
    """It is tried after the charge, so nothing may be raised, not even where warnings are errors."""
    monkeypatch.setattr(trials, "kernel", lambda: module(compiled))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert by_kernel(KNOWN, 1, 64) is None


def test_a_kernel_that_is_right_passes_its_trial(compiled, untried):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert by_kernel(KNOWN, 1, 64) is not None


def test_made_up_codes_stand_for_their_rows(compiled):
    """The expanded rows of the trial are those of the kernel, entry by entry."""
    codes, expanded = coded_trial._made_up(12)
    for row in range(12):
        sums, one = np.zeros(codes.n_features + 1), codes[row : row + 1]
        zeros, labels = np.zeros(codes.n_features), np.ones(1, np.int8)
        asked = SumOfSlopes(labels, None, 1.0, zeros, 0.0, code_of(LogisticLoss()), np.inf, is_plain())
        one.add_blocks(sums, compiled, asked, 1)
        np.testing.assert_allclose(-2.0 * sums[:-1], expanded[row], atol=1e-15)
