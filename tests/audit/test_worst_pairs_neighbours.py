"""Worst neighbours from public facts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import confide
from confide.audit.densities import overheard
from confide.audit.releases import fitted_values, unfitted
from confide.audit.worst_pairs import raw_weights, worst_neighbours
from confide.errors import ParameterError


def differing_rows(pair):
    """How many rows differ."""
    (X, y), (other, changed) = pair.first, pair.second
    return int(((np.asarray(X) != np.asarray(other)).any(axis=1) | (np.asarray(y) != np.asarray(changed))).sum())


def test_one_row_differs_and_the_likelihood_ratio_is_known():
    """And it is positive on average where the first data set is likelier."""
    estimator = confide.LogisticRegression(5.0, alpha=1.0, fit_intercept=False)
    pair = worst_neighbours(estimator, 20)
    assert differing_rows(pair) == 1
    shown = np.array(
        [[fitted_values(unfitted(estimator), data) for data in [side] * 30] for side in (pair.first, pair.second)]
    )
    assert pair.statistic(shown[0]).mean() > 0.0 > pair.statistic(shown[1]).mean()


def test_a_row_is_absent_where_its_presence_is_private():
    """The larger data set has the upper bound on the number of rows."""
    pair = worst_neighbours(confide.LogisticRegression(1.0, neighbours="add-or-remove-one", n_rows_bounds=(20, 40)))
    assert [len(side[1]) for side in (pair.first, pair.second)] == [40, 39]


def test_all_rows_of_a_person_differ():
    """Two of them."""
    assert differing_rows(worst_neighbours(confide.LinearSVC(1.0, max_rows_per_person=2), 20)) == 2


def test_weights_are_what_the_mechanism_released():
    """With an intercept and several classes, in the order of the mechanism."""
    models = []
    X, y = np.eye(3)[[0, 1, 2, 0, 1, 2]], [0, 1, 2, 0, 1, 2]
    estimator = confide.LogisticRegression(1.0, classes=[0, 1, 2], intercept_scaling=2.0)
    heard = overheard(lambda: models.append(fitted_values(estimator, (X, y))))
    np.testing.assert_allclose(raw_weights(heard[0].plan, models[0]), heard[0].release.weights, rtol=1e-12)
    assert raw_weights(heard[0].plan, np.ones(3)) is None


def test_estimators_of_others_get_the_usual_suspects():
    """Without noise any change is seen."""
    pair = worst_neighbours(LinearRegression())
    assert pair.statistic is None
    assert len(pair.first[1]) == len(pair.second[1]) == 60


def test_parameters_with_which_no_fit_is_possible_are_refused():
    """With the reason."""
    with pytest.raises(ParameterError, match="could be audited"):
        worst_neighbours(confide.LogisticRegression(1.0, alpha=-1.0), 20)
