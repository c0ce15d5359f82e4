"""The random features of a kernel, as commands show them."""

from __future__ import annotations

import confide
from confide.cli.output import blocks_of_choices, choices_document, chosen_map

SCHEMA = confide.Schema({"a": {"low": 0, "high": 1}, "b": {"low": 0, "high": 1}, "c": {"low": 0, "high": 1}})


def shown(model, *facts):
    """The map that a model chooses, and the sentences that people read about it."""
    chosen = chosen_map(model, *facts)
    return chosen, [sentence for block in blocks_of_choices(model, None, chosen) for sentence in block.lines]


def test_the_map_of_a_kernel_is_shown_with_its_number_and_length():
    """The same facts for programs."""
    budget = confide.ApproxDP(1.0, 1e-6)
    beside, sentences = shown(confide.KernelSVC(budget, schema=SCHEMA), 100_000)
    assert beside is not None
    assert beside.n_features == 1000
    features = "1,000 random features of the kernel 'rbf' with length scale 0.27"
    assert sentences == [f"The encoded columns of a row stand beside {features} (public seed 0, orthogonal)."]
    _, alone = shown(confide.KernelSVC(budget, schema=SCHEMA, feature_norm=None), 100_000)
    assert alone == [f"Rows are mapped to {features} (public seed 0)."]
    assert choices_document(None, beside) == {"fourier_map": beside.to_dict()}
    assert beside.to_dict()["length_scale"] == 0.27


def test_a_kernel_without_features_says_so():
    """Where the noise is large it has none."""
    none, (sentence,) = shown(confide.KernelSVC(0.1, schema=SCHEMA), 300)
    assert none is None
    assert "linear" in sentence


def test_other_models_have_none():
    """Nothing is shown then."""
    assert shown(confide.LinearSVC(1.0), 1000, 3) == (None, [])
    assert choices_document(None, None) == {}
