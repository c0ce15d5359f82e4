"""How an estimator is shown in a notebook: its guarantee, once it has one, and scikit-learn's diagram below."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class ShownWithGuarantee:
    """To stand before scikit-learn's BaseEstimator, whose diagram it keeps. The names are those of IPython's display."""

    guarantee_: Any

    @property
    def _repr_html_(self) -> Callable[[], str]:
        # Where scikit-learn is set to show text this raises AttributeError, and so the notebook shows text.
        diagram: Callable[[], str] = super()._repr_html_  # type: ignore[misc]  # of the class that follows
        return lambda: self._guarantee_as_html() + diagram()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = self._guarantee_as_html() + bundle["text/html"]
        return bundle

    def _guarantee_as_html(self) -> str:
        guarantee = getattr(self, "guarantee_", None)
        return "" if guarantee is None else str(guarantee.to_html())
