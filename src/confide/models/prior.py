"""A prior: public weights towards which the ridge pulls, in place of 0, and where they came from.

A fit minimises the loss and (l2 / 2) |w - w0|^2. The prior w0 is public, so a release with it costs what one without it
does. It must not have been made from the rows of the fit, unless by a release whose cost is counted as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from confide.array_types import as_array
from confide.errors import ParameterError
from confide.features.canonical_labels import Label
from confide.features.checks import which_attempt
from confide.features.encoder import Encoder
from confide.features.forms import PublicMap
from confide.guarantee import Guarantee
from confide.intake.specification import CheckedRows, Columns

SOURCES = ("coefficients", "release", "public")
"""Where a prior can come from: numbers that were given, a private release, or a model that was declared public."""
_OTHER_COLUMNS = (
    "the prior was fitted to columns that are encoded in another way, so its weights mean something else here. {} Or give "
    "the prior as (coef, intercept), if you know that its weights fit."
)


@dataclass(frozen=True, slots=True, eq=False)
class FittedTo:
    """The columns and classes that a model was fitted to. They are public.

    Attributes
    ----------
    columns : the columns of X
    domain : the classes in sorted order; empty for a regression
    encoder : the encoder of the schema, or None
    fourier : the public feature map, or None
    """

    columns: Columns
    domain: tuple[Label, ...]
    encoder: Encoder | None
    fourier: PublicMap | None


@dataclass(frozen=True, slots=True)
class Prior:
    """Public weights towards which the ridge pulls. A fitted model that has a prior, and its file, hold it in this form.

    Attributes
    ----------
    coef : for each score, the weights of the columns as they enter a fit
    intercept : the intercept of each score, in the units of `intercept_`
    source : one of `SOURCES`
    guarantee : what was promised for the model that the weights are from; None if it was no model, or was declared public
    fitted_to : what the model that the weights are from was fitted to, for comparison with a fit; None for given numbers
    ledger : the identity of the ledger to which that model was charged, if it is known
    """

    coef: tuple[tuple[float, ...], ...]
    intercept: tuple[float, ...]
    source: str
    guarantee: Guarantee | None = None
    fitted_to: FittedTo | None = field(default=None, compare=False, repr=False)
    ledger: str | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of_numbers(cls, coef: Any, intercept: Any) -> Prior:
        """Given coefficients, (d,) or (k, d), and the intercept of each of the k scores."""
        message = (
            "a prior of coefficients is a pair (coef, intercept): one number for each column as it enters the fit, or a row "
            "of them for each of several classes, and one intercept for each row; all finite."
        )
        weights, constants = np.atleast_2d(as_array(coef, np.float64)), np.atleast_1d(as_array(intercept, np.float64))
        is_finite = bool(np.isfinite(weights).all() and np.isfinite(constants).all())
        if weights.ndim != 2 or constants.shape != weights.shape[:1] or not weights.size or not is_finite:
            raise ParameterError(message)
        return cls(tuple(map(tuple, weights.tolist())), tuple(constants.tolist()), "coefficients")

    def declared_public(self) -> Prior:
        """The same weights, of which somebody declared that they were made from public rows."""
        return replace(self, source="public", guarantee=None, ledger=None)

    def less(self, shift: float) -> Prior:
        """The same weights for targets from which this number was subtracted."""
        return replace(self, intercept=tuple(value - shift for value in self.intercept)) if shift else self

    def __repr__(self) -> str:
        """One short line: estimators show their prior among their parameters."""
        shape = f"{len(self.coef)} score{'s'[: len(self.coef) != 1]} of {len(self.coef[0])} weights"
        budget = "" if self.guarantee is None else f", {self.guarantee.budget!r}"
        return f"<prior of {shape}, source {self.source}{budget}>"

    def weights(self, n_scores: int, n_features: int, intercept: float) -> tuple[float, ...]:
        """The weights of a problem (o D), one score after the other, the intercept's in units of its constant.

        Parameters
        ----------
        n_scores : number of scores of the problem
        n_features : number of columns of a row as it enters the fit
        intercept : the constant that is appended to each row, 0 for none
        """
        if len(self.coef) != n_scores or len(self.coef[0]) != n_features:
            raise ParameterError(
                f"the prior has weights for {len(self.coef)} score{'s'[: len(self.coef) != 1]} of {len(self.coef[0])} "
                f"columns, and this fit has {n_scores} of {n_features}, counted as columns enter the fit. Give a prior "
                f"with so many weights."
            )
        if not intercept and any(self.intercept):
            raise ParameterError("the prior has an intercept, and this model has none: set fit_intercept to True.")
        constants = [(constant / intercept,) if intercept else () for constant in self.intercept]
        flat = tuple(weight for pair in zip(self.coef, constants, strict=True) for part in pair for weight in part)
        if not all(map(math.isfinite, flat)):
            raise ParameterError("the intercept of the prior is too large for this intercept_scaling.")
        return flat

    def refuse_columns(self, encoder: Encoder | None) -> None:
        """Refuse a schema by which columns are encoded in another way than for the model of the prior."""
        if self.fitted_to is None:
            return
        own, its = (None if of_encoder is None else of_encoder.schema for of_encoder in (encoder, self.fitted_to.encoder))
        if own is None or its is None:
            if own is not its:
                fitted = "without" if its is None else "with"
                raise ParameterError(_OTHER_COLUMNS.format(f"It was fitted {fitted} a schema: do the same here."))
            return
        if (own.columns, own.interact, own.random_features) != (its.columns, its.interact, its.random_features):
            advice = "Give the schema of the prior's model, in which its knots and interactions are written out (schema_)."
            raise ParameterError(_OTHER_COLUMNS.format(advice))
        here, there = (None if of_schema.target is None else of_schema.target.bounds for of_schema in (own, its))
        if here and there and max(here[0], there[0]) >= min(here[1], there[1]):
            raise ParameterError(
                f"the prior is a model of numbers between {there[0]:g} and {there[1]:g}, and here they lie between "
                f"{here[0]:g} and {here[1]:g}: it is a model of something else, or in another unit. Give both the same unit "
                f"and origin."
            )

    def refuse_map(self, fourier: Any) -> None:
        """Refuse random features of rows that are not those of the model of the prior."""
        if self.fitted_to is not None and self.fitted_to.fourier != fourier:
            advice = "Give this model the same kernel, length scale, number of random features and seed."
            raise ParameterError(_OTHER_COLUMNS.format(advice))

    def refuse_rows(self, rows: CheckedRows) -> None:
        """Refuse rows whose classes or columns are not those of the model of the prior. Public facts decide."""
        self.refuse_map(rows.fourier)
        if self.fitted_to is None:
            return
        if self.fitted_to.domain != rows.domain:
            raise ParameterError(
                "the prior is the model of other classes than these, or one predicts classes and the other numbers. Give "
                "classes, the classes of the prior's model, and rows with labels among them."
            )
        names, theirs = rows.columns.feature_names_in, self.fitted_to.columns.feature_names_in
        if rows.encoder is None and names is not None and theirs is not None and list(names) != list(theirs):
            raise ParameterError(_OTHER_COLUMNS.format("Give columns with the names that its rows had, in their order."))

    def sentence(self, ledger: str | None) -> str:
        """What a statement says of the prior, for a fit that is charged to the ledger with this identity."""
        start = "The ridge pulls the weights towards a public prior"
        if self.source == "public":
            return (
                f"{start}: a model that was declared public. It was made from rows that need no protection, and from none "
                f"of these."
            )
        if self.guarantee is None:
            return (
                f"{start}: coefficients that were given. They were not made from these rows, unless by a release whose "
                f"cost is counted as well."
            )
        if self.guarantee.void is not None:
            return f"{start}: a model without a guarantee."
        facts = self.guarantee.circumstances
        which = which_attempt(1 if facts is None else facts.attempts)
        under = f"{self.guarantee.budget} ({self.guarantee.neighbours}){which}"
        released = f"{start}: a model that confide released under {under}"
        if ledger is not None and self.ledger == ledger:
            return f"{released} That release was charged to the same ledger."
        return (
            f"{released} That release is not covered here: where it was made from some of these rows, its cost adds to "
            f"that of this one. In no other way was the prior made from these rows."
        )

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return {
            "source": self.source,
            "coef": [list(weights) for weights in self.coef],
            "intercept": list(self.intercept),
            "guarantee": None if self.guarantee is None else self.guarantee.to_dict(),
            "of_model": self.fitted_to is not None,
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any], fitted_to: FittedTo) -> Prior:
        """Read the form written by `to_dict`, in the file of a model, whose columns and classes were those of the prior."""
        keys = {"source", "coef", "intercept", "guarantee", "of_model"}
        prior = cls.of_numbers(value["coef"], value["intercept"])
        guarantee = None if value["guarantee"] is None else Guarantee.from_dict(value["guarantee"])
        fits_source = (guarantee is not None) == (value["source"] == "release")
        if set(value) != keys or value["source"] not in SOURCES or not fits_source:
            raise ParameterError("the prior was written by another version of confide, which this version cannot read.")
        its = fitted_to if value["of_model"] else None
        return replace(prior, source=value["source"], guarantee=guarantee, fitted_to=its)
