"""The document of a released model: the release, the public parameters, and nothing else."""

from __future__ import annotations

import json
import re

import pytest

from confide import LogisticRegression


def test_the_file_holds_the_release_and_public_facts_alone(rows, tmp_path):
    """A closed list of keys: no row count under add-or-remove-one, no iteration counts, no ledger."""
    X, y = rows
    model = LogisticRegression(1.0, neighbours="add-or-remove-one", n_rows_bounds=(1000, 9000)).fit(X[:1777], y[:1777])
    model.save(tmp_path / "m.json")
    text = (tmp_path / "m.json").read_text()
    content = json.loads(text)["content"]
    assert set(content) == {
        "version", "estimator", "parameters", "schema", "row_bound", "fourier_map", "classes", "alpha", "coef", "intercept",
        "coefficient_names", "n_features_in", "feature_names_in", "guarantee", "intervals",
    }  # fmt: skip
    assert not re.search(r"(?<![0-9.e-])1777(?![0-9.])", text)


def test_an_unfitted_model_cannot_be_saved(tmp_path):
    """scikit-learn's NotFittedError."""
    with pytest.raises(ValueError, match="not fitted"):
        LogisticRegression().save(tmp_path / "m.json")
