"""The ball of a typical row, to which an automatic loss clips encoded rows if the noise is large."""

from __future__ import annotations

from confide.erm.row_bounds import BallBound
from confide.features.encoder import Encoder
from confide.training.alpha import usual_norm


def usual_bound(encoder: Encoder) -> BallBound:
    """A ball that holds a typical row as it enters a model: encoded, and with random features if the schema has them."""
    norm = usual_norm(encoder.row_bound, 0.0)
    return BallBound(norm) if encoder.appended is None else encoder.appended.bound_for(norm)
