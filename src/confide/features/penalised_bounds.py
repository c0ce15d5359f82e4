"""The bound by which rows are shortened before they are scored, where a fit shortened them in the norm of a form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from confide.erm.coded_rows import CodedRows, dense
from confide.erm.row_bounds import RowBound
from confide.errors import ParameterError
from confide.features.quadratic_forms import QuadraticForm
from confide.types import Rows


@dataclass(frozen=True, slots=True)
class ShortenedInNorm:
    """Rows within an inner bound, each multiplied by the number that makes it at most `norm` long in the norm of a form.

    No guarantee rests on it: the fit itself clips rows to a ball after they were brought to that norm.

    Parameters
    ----------
    inner : the bound on rows before
    form : the quadratic form
    norm : the largest norm of a row in the norm of the form
    """

    inner: RowBound
    form: QuadraticForm
    norm: float

    @property
    def l2_norm(self) -> float:
        """Largest L2 norm of a clipped row."""
        return self.inner.l2_norm

    def check_width(self, n_features: int) -> None:
        """Raise ParameterError if rows of this many columns cannot be clipped by the bound."""
        if n_features != self.form.n_features:
            raise ParameterError(f"the form describes {self.form.n_features} columns, but rows have {n_features}.")

    def clip(self, rows: Rows) -> Rows:
        """The rows of one block, shortened; coded rows stay coded."""
        self.check_width(rows.shape[1])
        if issparse(rows):
            raise ParameterError("a penalty is for dense rows; turn the sparse matrix into an array.")
        inside = self.inner.clip(rows)
        with np.errstate(all="ignore"):
            mapped = self.form.rows(dense(inside))
            lengths = np.sqrt(np.einsum("ij,ij->i", mapped, mapped))
            factors = np.where(lengths > self.norm, self.norm / np.where(lengths > 0.0, lengths, 1.0), 1.0)
        return inside.scaled(factors) if type(inside) is CodedRows else inside * factors[:, None]

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return {"kind": "form", "inner": self.inner.to_dict(), "norm": self.norm, "form": self.form.to_dict()}
