"""The random features of a kernel, as commands show them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from confide.features.fourier import FourierMap


@dataclass(frozen=True, slots=True)
class ShownKernel:
    """The public map of a kernel.

    Attributes
    ----------
    features : the map to the random features, or None if the model has none
    beside_columns : whether encoded columns stand beside the features
    """

    features: FourierMap | None
    beside_columns: bool

    @property
    def n_features(self) -> int:
        """The number of random features."""
        return 0 if self.features is None else self.features.n_features


def chosen_map(model: Any, n_rows: int | None, n_features: int | None = None) -> ShownKernel | None:
    """The public map that the model chooses for so many rows and columns; None if it has no kernel."""
    if not hasattr(model, "chosen_map"):
        return None
    return ShownKernel(model.chosen_map(n_rows, n_features), model.schema is not None and model.feature_norm is not None)


def map_document(features: FourierMap | None) -> dict[str, Any]:
    """For programs: the description of the map to random features."""
    return {} if features is None else {"fourier_map": features.to_dict()}


def sentences_of_map(kernel: ShownKernel | None) -> list[str]:
    """For people: how many random features there are, and of which kernel."""
    if kernel is None:
        return []
    if kernel.features is None:
        return ["The model has no random features of a kernel, because the noise would be too large: it is linear."]
    start = "The encoded columns of a row stand beside" if kernel.beside_columns else "Rows are mapped to"
    return [f"{start} {kernel.features}."]
