"""Plans and rows of fits, overheard."""

from __future__ import annotations

import numpy as np
import pytest

import confide
from confide.audit.densities import mechanisms, overheard, replaced
from confide.errors import NotCertified
from confide.privacy.objective_perturbation import ObjectivePerturbation

X, Y = [[1.0], [-1.0], [0.5], [0.2]], [1, 0, 1, 0]


def test_a_fit_is_overheard_and_stays_what_it_was():
    """The plan, the rows and the release; afterwards the methods are what they were."""
    before = ObjectivePerturbation.release
    models = []
    heard = overheard(lambda: models.append(confide.LogisticRegression(1.0).fit(X, Y)))
    assert ObjectivePerturbation.release is before
    assert [each.plan.mechanism for each in heard] == ["objective"]
    assert heard[0].source.n_rows == 4
    np.testing.assert_allclose(heard[0].release.weights[0], [models[0].coef_[0, 0], models[0].intercept_[0]])


def test_methods_come_back_after_an_error():
    """Whatever happens meanwhile."""
    before = ObjectivePerturbation.release
    with pytest.raises(NotCertified), replaced([(kind, "release", lambda old, *given: 1 / 0) for kind in mechanisms()]):
        confide.LogisticRegression(1.0).fit(X, Y)
    assert ObjectivePerturbation.release is before
