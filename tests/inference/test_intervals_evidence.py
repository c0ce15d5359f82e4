"""The data for intervals in a model file: what does not fit is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

import confide
from confide import (
    FileError,
    LogisticRegression,
    ParameterError,
)
from confide.inference.intervals import Evidence, WeightNoise, symmetric_of, triangle_of
from confide.privacy.bundles import Bundles
from confide.privacy.shapes import Linked
from tests.inference.test_intervals import sample


def evidence():
    """That of a small release."""
    X, y = sample(3000, 4)
    return LogisticRegression(2.0, inference_share=0.3, classes=[0, 1]).fit(X, y)._evidence


def changed(path, value):
    """The document of an evidence with one part changed."""
    document = evidence().to_dict()
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return document


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["weights"], [1.0, 2.0]),
        (["weights", 0], math.nan),
        (["curvature"], [1.0] * 9),
        (["slope", 0], math.inf),
        (["l2"], 0.0),
        (["n_rows_high"], 0),
        (["curvature_deviation"], -1.0),
        (["slope_deviation"], -1.0),
        (["noises", 0, "law"], "cauchy"),
        (["noises", 0, "shape"], "cube"),
        (["noises", 0, "scale"], -1.0),
        (["noises", 0, "sizes"], [7]),
        (["noises", 0, "in_objective"], "yes"),
        (["noises", 0, "more"], 1),
        (["more"], 1),
    ],
    ids=str,
)
def test_parts_that_do_not_fit_are_refused(path, value):
    """A file cannot make intervals of something else."""
    with pytest.raises((ParameterError, ValueError, TypeError)):
        Evidence.from_dict(changed(path, value))


def test_noise_of_more_groups_than_weights_is_refused_before_it_is_measured(monkeypatch):
    """Its norm takes memory that grows with the square of a number in a file."""
    monkeypatch.setattr(Linked, "laplace_norm", lambda *_: pytest.fail("the norm was asked for"))
    linked = {"shape": "linked", "law": "laplace", "sizes": [3000, 3000, 1], "scales": [1.0] * 3, "linked": [True] * 3}
    with pytest.raises(ParameterError, match="do not fit each other"):
        Evidence.from_dict(changed(["noises", 0], linked | {"scale": 1.0, "in_objective": True}))


def test_noise_in_bundles_is_read_as_it_was_written():
    """Shape, bundles and shares; a division that is none is refused."""
    shape = Bundles((3, 4, 2, 1), (1.0, 2.0, 0.5, 1.5), (True, True, False, False), ((0, 3), (1, 2)), (600, 424))
    noise = WeightNoise(shape, "laplace", 0.3, in_objective=True)
    assert WeightNoise.from_dict(noise.to_dict()) == noise
    for wrong in ({"shares": [600, 425]}, {"bundles": [[0, 3], [1]]}, {"bundles": [[0, 3], [1, 9]]}):
        with pytest.raises(ParameterError):
            WeightNoise.from_dict(noise.to_dict() | wrong)
    with pytest.raises(ParameterError, match="does not know"):
        WeightNoise.from_dict({key: value for key, value in noise.to_dict().items() if key != "shares"})


def test_a_file_whose_intervals_speak_of_other_weights_is_refused(tmp_path):
    """The weights stand twice in the file and must agree."""
    from confide.files import read_document, write_document

    X, y = sample(3000, 4)
    LogisticRegression(2.0, inference_share=0.3, classes=[0, 1]).fit(X, y).save(tmp_path / "m.json")
    content = read_document(tmp_path / "m.json")
    content["intervals"]["weights"][0] += 1e-9
    (tmp_path / "m.json").unlink()
    write_document(tmp_path / "m.json", content, overwrite=True)
    with pytest.raises(FileError, match="do not fit each other"):
        confide.load(tmp_path / "m.json")


def test_noise_and_moments_of_any_loss_will_do():
    """Evidence knows no loss: the law of the error is a function of its numbers alone."""
    one = evidence()
    again = Evidence.from_dict(one.to_dict())
    assert np.array_equal(one.uncertainty().intervals(0.9), again.uncertainty().intervals(0.9))


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_symmetric_matrix_is_its_upper_triangle(size):
    """Row by row, and back without a change."""
    matrix = np.random.default_rng(size).normal(size=(size, size))
    matrix = matrix + matrix.T
    triangle = triangle_of(matrix)
    assert len(triangle) == size * (size + 1) // 2
    assert np.array_equal(symmetric_of(triangle, size), matrix)
