"""A released model as a value: weights, public facts and the guarantee, and nothing of the rows."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import numpy as np
import pandas as pd
import pytest

import confide
from confide import KernelSVC, LogisticRegression, Ridge, Schema
from confide.estimators.linear_model import released_model
from confide.features.encoder import Encoder
from confide.intake.rows import checked_input
from confide.models.model import ReleasedModel
from tests.intake.specifications import specification

SCHEMA = Schema(columns={"age": {"low": 0, "high": 9}}, target={"column": "ill", "negative": "no", "positive": "yes"})


@pytest.fixture
def fitted(rows):
    return LogisticRegression(1.0).fit(*rows)


def test_it_holds_the_release_and_public_facts_alone():
    """A closed list: whoever adds a field must say that it is public."""
    assert {field.name for field in fields(ReleasedModel)} == {
        "scoring", "alpha", "guarantee", "coefficient_names", "columns", "domain", "encoder", "fourier", "evidence",
        "prior", "interest",
    }  # fmt: skip


def test_what_a_fit_releases_takes_its_facts_from_the_checked_rows():
    """Names, columns, classes and encoder; the rows themselves are left behind."""
    encoder = Encoder(SCHEMA)
    frame = pd.DataFrame({"age": [1.0, 2.0]})
    with checked_input(frame, [0, 1]).checked([specification(encoder=encoder)]) as (checked,):
        model = ReleasedModel.of("weights", None, 0.5, "guarantee", checked)
    assert (model.scoring, model.alpha, model.guarantee, model.evidence) == ("weights", 0.5, "guarantee", None)
    assert (model.domain, model.encoder, model.fourier) == ((0, 1), encoder, None)
    assert list(model.coefficient_names) == list(encoder.feature_names)
    assert model.columns.n_features_in == 1
    assert model.schema is SCHEMA
    with pytest.raises(FrozenInstanceError):
        model.alpha = 1.0


def test_rows_of_numbers_have_no_schema(fitted):
    """None, and no encoder."""
    assert released_model(fitted).schema is None
    assert released_model(fitted).encoder is None


def test_it_follows_the_attributes_that_a_user_changed(fitted, rows):
    """Coefficients, intercept and alpha: what is saved and shown is what the estimator says."""
    fitted.coef_ = np.array([[5.0, 4.0, 3.0, 2.0, 1.0]])
    fitted.intercept_ = np.array([0.25])
    fitted.alpha_ = 0.125
    model = released_model(fitted)
    assert model.scoring.coef.tolist() == [[5.0, 4.0, 3.0, 2.0, 1.0]]
    assert model.scoring.intercept.tolist() == [0.25]
    assert model.alpha == 0.125
    again = LogisticRegression().fit(*rows)
    assert released_model(again).scoring.coef.tolist() == again.coef_.tolist()


def test_a_regressor_is_a_model_of_one_score_without_classes(rows):
    """Its vector becomes one row, and its number one intercept."""
    model = Ridge(1.0, target_bound=1.0).fit(*rows)
    released = released_model(model)
    assert released.domain == ()
    assert released.scoring.coef.tolist() == [model.coef_.tolist()]
    assert released.scoring.intercept.tolist() == [model.intercept_]


def test_a_kernel_machine_keeps_its_map(rows):
    """And the bound of mapped rows, by which they are scored."""
    X, y = rows
    released = released_model(KernelSVC(1.0, n_features=8).fit(X, y))
    assert (released.fourier.n_inputs, released.fourier.n_features) == (5, 8)
    assert released.scoring.row_bound == confide.BallBound(1.0)
    assert (released.columns.n_features_in, len(released.coefficient_names)) == (5, 8)


def test_what_is_not_fitted_released_nothing():
    """scikit-learn's NotFittedError."""
    with pytest.raises(ValueError, match="not fitted"):
        released_model(LogisticRegression())
