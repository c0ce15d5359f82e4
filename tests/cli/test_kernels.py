"""The random features of a kernel, as commands show them."""

from __future__ import annotations

import confide
from confide.cli.kernels import chosen_map, map_document, sentences_of_map

SCHEMA = confide.Schema({"a": {"low": 0, "high": 1}, "b": {"low": 0, "high": 1}, "c": {"low": 0, "high": 1}})


def test_the_map_of_a_kernel_is_shown_with_its_number_and_length():
    """The same facts for programs."""
    fourier = chosen_map(confide.KernelSVC(confide.ApproxDP(1.0, 1e-6), schema=SCHEMA), 100_000)
    assert fourier is not None
    (sentence,) = sentences_of_map(fourier)
    assert sentence == "Rows are mapped to 1,000 random features of the kernel 'rbf' with length scale 0.27 (public seed 0)."
    assert map_document(fourier) == {"fourier_map": fourier.to_dict()}
    assert fourier.to_dict()["length_scale"] == 0.27


def test_other_models_have_none():
    """Nothing is shown then."""
    assert chosen_map(confide.LinearSVC(1.0), 1000, 3) is None
    assert (map_document(None), sentences_of_map(None)) == ({}, [])
