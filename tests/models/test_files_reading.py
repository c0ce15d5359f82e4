"""What a file says that a model released, without the estimator."""

from __future__ import annotations

import copy
import functools
import json
import math
import operator
import time

import numpy as np
import pytest

import confide
from confide import FileError, LogisticRegression
from confide.errors import ConfideError
from confide.estimators.linear_model import released_model
from confide.files import _checksum, document_text, read_document
from confide.models.files import read_model, released_of, understood


def test_what_a_model_released_is_read_from_its_file(rows, tmp_path):
    """Weights to the bit, guarantee, classes and columns, as the model itself has them."""
    X, y = rows
    model = LogisticRegression(2.0).fit(X, y)
    model.save(tmp_path / "model.json")
    read, own = read_model(tmp_path / "model.json"), released_model(model)
    assert np.array_equal(read.scoring.coef, own.scoring.coef)
    assert np.array_equal(read.scoring.intercept, own.scoring.intercept)
    assert (read.guarantee, read.domain, read.alpha, read.prior) == (own.guarantee, own.domain, own.alpha, None)
    assert read.columns.n_features_in == own.columns.n_features_in


def test_a_file_that_is_not_understood_is_refused(rows, tmp_path):
    """A missing file, a part that is missing, one too many, and one of another kind."""
    X, y = rows
    path = tmp_path / "model.json"
    with pytest.raises(FileError, match="cannot read"):
        read_model(path)
    LogisticRegression(2.0, prior=(np.ones(X.shape[1]), 0.5)).fit(X, y).save(path)
    content = json.loads(path.read_text())["content"]
    assert released_of(content).prior.intercept == (0.5,)
    changes = ({"coef": None}, {"more": 1}, {"classes": [0]}, {"prior": {"coef": [[1.0]]}}, {"n_features_in": 99})
    for change in (*changes, {"n_features_in": 10**15}):
        damaged = content | change
        confide.files.write_document(path, damaged, overwrite=True)
        with pytest.raises(FileError):
            read_model(path)
    with pytest.raises(FileError), understood(path):
        released_of(content | {"n_features_in": np.inf})
    del content["alpha"]
    confide.files.write_document(path, content, overwrite=True)
    with pytest.raises(FileError, match="lacks parts of a model: alpha"):
        read_model(path)


WRONG = ([1], {"a": 1}, [], None, True, 10**30, -1, math.nan, "text", [[]])


def places_in(value, path=()):
    """Paths of all values in a JSON value, of the first three in a list."""
    pairs = value.items() if isinstance(value, dict) else list(enumerate(value))[:3] if isinstance(value, list) else ()
    for key, part in pairs:
        yield (*path, key)
        yield from places_in(part, (*path, key))


@pytest.mark.parametrize("part", ["guarantee", "alpha", "n_features_in", "classes", "row_bound", "prior"])
def test_a_damaged_file_is_no_prior_or_is_one_whose_values_have_the_right_types(rows, tmp_path, part):
    """Each value replaced in turn: a fit refuses the file in words, or goes on; it never fails in another way."""
    first = LogisticRegression(1.0, ledger=confide.Ledger(limit=9.0), classes=[0, 1]).fit(*rows)
    path = tmp_path / "prior.json"
    LogisticRegression(1.0, prior=first, ledger=confide.Ledger(limit=9.0), classes=[0, 1]).fit(*rows).save(path)
    content = read_document(path)
    n_refused = 0
    for place in [(part, *inner) for inner in ((), *places_in(content[part]))]:
        for value in WRONG:
            damaged = copy.deepcopy(content)
            holder = functools.reduce(operator.getitem, place[:-1], damaged)
            holder[place[-1]] = value
            document = {"kind": "confide-model", "format_version": 1, "checksum": _checksum(damaged), "content": damaged}
            path.write_text(json.dumps(document))
            try:
                hash(read_model(path).guarantee)
                LogisticRegression(1.0, prior=path).plan(100, 5)
            except ConfideError:
                n_refused += 1
    assert n_refused > 0


@pytest.mark.parametrize("n_inputs", [10**7, 10**30])
def test_a_file_that_claims_a_huge_number_of_columns_is_refused_at_once(rows, tmp_path, n_inputs):
    path = tmp_path / "model.json"
    LogisticRegression(1.0, classes=[0, 1]).fit(*rows).save(path)
    content = read_document(path) | {"n_features_in": n_inputs}
    path.write_text(document_text(content))
    begun = time.perf_counter()
    with pytest.raises(FileError, match="do not fit each other"):
        read_model(path)
    assert time.perf_counter() - begun < 0.5
