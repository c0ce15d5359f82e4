"""The least subgradients of objectives with an l1 penalty. Proof: privacy/proofs/elastic_net.md, lemma 1."""

from __future__ import annotations

import numpy as np

from confide.types import Array, Weights


def least_subgradients(weights: Weights, gradients: Array, l1: Array) -> Array:
    """The subgradients (k, D) of least norm, from the gradients of all but the l1 penalty.

    Where a weight is 0, the penalty has every slope from -l1 to l1, and the one that leaves least is taken.
    """
    slopes = np.where(weights == 0.0, -np.clip(gradients, -l1, l1), np.sign(weights) * l1)
    found: Array = gradients + slopes
    return found
