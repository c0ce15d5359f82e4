"""The random features of a kernel, as commands show them."""

from __future__ import annotations

import confide
from confide.cli.output import chosen_map, map_document, sentences_of_map

SCHEMA = confide.Schema({"a": {"low": 0, "high": 1}, "b": {"low": 0, "high": 1}, "c": {"low": 0, "high": 1}})


def test_the_map_of_a_kernel_is_shown_with_its_number_and_length():
    """The same facts for programs."""
    budget = confide.ApproxDP(1.0, 1e-6)
    beside = chosen_map(confide.KernelSVC(budget, schema=SCHEMA), 100_000)
    alone = chosen_map(confide.KernelSVC(budget, schema=SCHEMA, feature_norm=None), 100_000)
    assert beside is not None
    assert beside.features is not None
    assert beside.n_features == 1000
    shown = "1,000 random features of the kernel 'rbf' with length scale 0.27"
    assert sentences_of_map(beside) == [f"The encoded columns of a row stand beside {shown} (public seed 0, orthogonal)."]
    assert sentences_of_map(alone) == [f"Rows are mapped to {shown} (public seed 0)."]
    assert map_document(beside.features) == {"fourier_map": beside.features.to_dict()}
    assert beside.features.to_dict()["length_scale"] == 0.27


def test_a_kernel_without_features_says_so():
    """Where the noise is large it has none."""
    none = chosen_map(confide.KernelSVC(0.1, schema=SCHEMA), 300)
    assert none is not None
    assert none.n_features == 0
    (sentence,) = sentences_of_map(none)
    assert "linear" in sentence


def test_other_models_have_none():
    """Nothing is shown then."""
    assert chosen_map(confide.LinearSVC(1.0), 1000, 3) is None
    assert (map_document(None), sentences_of_map(None)) == ({}, [])
