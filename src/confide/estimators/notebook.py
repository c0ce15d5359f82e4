"""How an estimator is shown in a notebook: its guarantee, once it has one, above scikit-learn's diagram."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class ShownWithGuarantee:
    """Adds the guarantee to the diagram of scikit-learn's BaseEstimator, before which it must stand among the base classes.

    IPython prescribes the names of the methods.
    """

    guarantee_: Any

    @property
    def _repr_html_(self) -> Callable[[], str]:
        # If scikit-learn is set to show text, this raises AttributeError, and then the notebook shows text.
        diagram: Callable[[], str] = super()._repr_html_  # type: ignore[misc]  # defined by the next base class
        return lambda: self._guarantee_as_html() + diagram()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = self._guarantee_as_html() + bundle["text/html"]
        return bundle

    def _guarantee_as_html(self) -> str:
        guarantee = getattr(self, "guarantee_", None)
        return "" if guarantee is None else str(guarantee.to_html())
