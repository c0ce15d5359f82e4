"""The fixtures, as a user's tests have them."""

from __future__ import annotations

import tomllib

import numpy as np
import pytest

from confide.audit import noisy
from confide.audit.pytest_plugin import no_leaks, replay_holds  # noqa: F401 - fixtures, where the package is not installed
from tests.test_project import ROOT


def count(values, sensitivity):
    return noisy(float(values.sum()), sensitivity=sensitivity, noise=np.zeros)


class Keeps:
    """Keeps the sum of its rows, if it is told to."""

    def __init__(self, keeps=True):
        self.keeps = keeps

    def fit(self, X, y):
        if self.keeps:
            self.rows_ = X.sum()
        return self

    def __repr__(self):
        return "Keeps()"


def test_a_replay_passes_or_fails_with_its_table(replay_holds):  # noqa: F811 - a fixture
    """A count of sensitivity 1, and one that claims a half."""
    data, neighbour = np.ones(3), np.array([1.0, 1.0, 0.0])
    assert replay_holds(lambda values: count(values, 1.0), data, neighbour=neighbour).worst == 1.0
    with pytest.raises(AssertionError, match="TOO FAR"):
        replay_holds(lambda values: count(values, 0.5), data, neighbour=neighbour)


def test_a_leak_fails_with_its_place(no_leaks):  # noqa: F811 - a fixture
    """And without one the search passes."""
    X, y = np.random.default_rng(0).normal(size=(5, 2)), np.ones(5)
    assert no_leaks(Keeps(keeps=False), X, y).holds
    with pytest.raises(AssertionError, match=r"attributes\.rows_"):
        no_leaks(Keeps(), X, y)


def test_pytest_finds_the_fixtures_where_the_package_is_installed():
    """By its entry point."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"confide": "confide.audit.pytest_plugin"}
