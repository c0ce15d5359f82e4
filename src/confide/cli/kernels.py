"""The random features of a kernel, as commands show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from confide.features.fourier import FourierMap


def chosen_map(model: Any, n_rows: int | None, n_features: int | None = None) -> FourierMap | None:
    """The public map that the model chooses for so many rows and columns; None if it has no kernel."""
    if not hasattr(model, "chosen_map"):
        return None
    fourier: FourierMap = model.chosen_map(n_rows, n_features)
    return fourier


def map_document(fourier: FourierMap | None) -> dict[str, Any]:
    """For programs: the description of the map."""
    return {} if fourier is None else {"fourier_map": fourier.to_dict()}


def sentences_of_map(fourier: FourierMap | None) -> list[str]:
    """For people: how many random features there are, and of which kernel."""
    return [] if fourier is None else [f"Rows are mapped to {fourier}."]
