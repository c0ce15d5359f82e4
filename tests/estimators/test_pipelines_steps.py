"""Steps of exported pipelines, by scikit-learn's conventions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from confide import BallBound, InputError
from confide.estimators.pipelines import LogisticHingeClassifier, RowsWithinBound

ROWS = np.array([[3.0, 4.0], [0.3, 0.4]])


def test_rows_are_scaled_down_to_the_bound():
    """Dense and sparse; shorter ones stay as they are."""
    step = RowsWithinBound(BallBound(1.0)).fit(ROWS)
    np.testing.assert_allclose(step.transform(ROWS), [[0.6, 0.8], [0.3, 0.4]])
    np.testing.assert_allclose(step.transform(scipy.sparse.csr_array(ROWS)).toarray(), [[0.6, 0.8], [0.3, 0.4]])
    check_is_fitted(step)
    assert clone(step).row_bound == BallBound(1.0)
    with pytest.raises(InputError, match="2 features"):
        step.transform(ROWS[:, :1])
    with pytest.raises(InputError, match="NaN"):
        step.transform(np.full((1, 2), np.nan))


def test_probabilities_of_the_logistic_hinge():
    """By the formula, at a score of 1 and a margin of 2; and 1/2 at 0."""
    model = LogisticHingeClassifier(2.0).fit(np.array([[-1.0], [1.0]]), [0, 1])
    model.coef_, model.intercept_ = np.ones((1, 1)), np.zeros(1)
    one, two, three = np.exp(1.0 - 2.0), 2.0, np.exp(-1.0 - 2.0)
    expected = (1.0 + one) / (two + one + three)
    np.testing.assert_allclose(model.predict_proba([[1.0], [0.0]]), [[1.0 - expected, expected], [0.5, 0.5]])
    np.testing.assert_allclose(np.exp(model.predict_log_proba([[1.0]]))[0, 1], expected)
