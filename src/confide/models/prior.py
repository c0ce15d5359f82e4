"""A prior: public weights towards which the ridge pulls, in place of 0, and where they came from.

A fit minimises the loss and (l2 / 2) |w - w0|^2. The prior w0 is public, so a release with it costs what one without it
does. It must not have been made from the rows of the fit, unless by a release whose cost is counted as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from confide.array_types import as_array
from confide.errors import ParameterError, is_number, is_text, wording
from confide.features.canonical_labels import Label
from confide.features.checks import which_attempt
from confide.features.columns import Column
from confide.features.encoder import Encoder
from confide.features.forms import PublicMap
from confide.features.fourier import FourierMap
from confide.guarantee import Guarantee
from confide.intake.specification import CheckedRows, Columns
from confide.known_words import listed, listed_unknown, suggestion

DECLARED = "declared"
SOURCES = ("coefficients", "release", "public", DECLARED)
"""Where a prior can come from: numbers that were given, a private release, a model that was declared public, or signs and
sizes of effects that were declared."""


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
    declared : of declared effects, the column or level of each, and "up", "down" or a number
    """

    coef: tuple[tuple[float, ...], ...]
    intercept: tuple[float, ...]
    source: str
    guarantee: Guarantee | None = None
    fitted_to: FittedTo | None = field(default=None, compare=False, repr=False)
    declared: tuple[tuple[str, str | float], ...] = ()

    @classmethod
    def of_numbers(cls, coef: Any, intercept: Any) -> Prior:
        """Given coefficients, (d,) or (k, d), and the intercept of each of the k scores."""
        message = wording("shape of a prior")
        weights, constants = np.atleast_2d(as_array(coef, np.float64)), np.atleast_1d(as_array(intercept, np.float64))
        is_finite = bool(np.isfinite(weights).all() and np.isfinite(constants).all())
        if weights.ndim != 2 or constants.shape != weights.shape[:1] or not weights.size or not is_finite:
            raise ParameterError(message)
        return cls(tuple(map(tuple, weights.tolist())), tuple(constants.tolist()), "coefficients")

    def declared_public(self) -> Prior:
        """The same weights, of which somebody declared that they were made from public rows."""
        return replace(self, source="public", guarantee=None)

    @property
    def ledger(self) -> str | None:
        """The identity of the ledger to which that model was charged, if it is known."""
        facts = None if self.guarantee is None else self.guarantee.circumstances
        return None if facts is None or facts.ledger is None else facts.ledger.identity

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
        if self.declared and n_scores > 1:
            raise ParameterError("a prior of signs is for two classes or a number: three or more classes have a score each.")
        # Random features are appended to the columns, and nothing is declared of them.
        coef = tuple((*own, *(0.0,) * (n_features - len(own))) for own in self.coef) if self.declared else self.coef
        if len(coef) != n_scores or len(coef[0]) != n_features:
            own = f"{len(self.coef)} score{'s'[: len(self.coef) != 1]} of {len(self.coef[0])}"
            raise ParameterError(wording("prior of another shape", own=own, n_scores=n_scores, n_features=n_features))
        if not intercept and any(self.intercept):
            raise ParameterError("the prior has an intercept, and this model has none: set fit_intercept to True.")
        constants = [(constant / intercept,) if intercept else () for constant in self.intercept]
        flat = tuple(weight for pair in zip(coef, constants, strict=True) for part in pair for weight in part)
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
                advice = f"It was fitted {'without' if its is None else 'with'} a schema: do the same here."
                raise ParameterError(wording("prior of other columns", advice=advice))
            return
        if (own.columns, own.interact, own.random_features) != (its.columns, its.interact, its.random_features):
            advice = "Give the schema of the prior's model, in which its knots and interactions are written out (schema_)."
            raise ParameterError(wording("prior of other columns", advice=advice))
        here, there = (None if of_schema.target is None else of_schema.target.bounds for of_schema in (own, its))
        if here and there and max(here[0], there[0]) >= min(here[1], there[1]):
            raise ParameterError(wording("prior of other numbers", here=here, there=there))

    def refuse_map(self, fourier: Any) -> None:
        """Refuse random features of rows that are not those of the model of the prior."""
        if self.declared and isinstance(fourier, FourierMap):
            raise ParameterError(wording("prior of signs for features"))
        if self.fitted_to is not None and self.fitted_to.fourier != fourier:
            advice = "Give this model the same kernel, length scale, number of random features and seed."
            raise ParameterError(wording("prior of other columns", advice=advice))

    def refuse_rows(self, rows: CheckedRows) -> None:
        """Refuse rows whose classes or columns are not those of the model of the prior. Public facts decide."""
        self.refuse_map(rows.fourier)
        if self.fitted_to is None:
            return
        if self.fitted_to.domain != rows.domain:
            raise ParameterError(wording("prior of other classes"))
        names, theirs = rows.columns.feature_names_in, self.fitted_to.columns.feature_names_in
        if rows.encoder is None and names is not None and theirs is not None and list(names) != list(theirs):
            advice = "Give columns with the names that its rows had, in their order."
            raise ParameterError(wording("prior of other columns", advice=advice))

    def sentence(self, ledger: str | None) -> str:
        """What a statement says of the prior, for a fit that is charged to the ledger with this identity."""
        start = "The ridge pulls the weights towards a public prior"
        if self.source == "public":
            return wording("public prior", start=start)
        if self.declared:
            effects = ", ".join(f'"{name}" {effect if is_text(effect) else f"{effect:g}"}' for name, effect in self.declared)
            return f"{start}: effects that were declared, without looking at the rows: {effects}."
        if self.guarantee is None:
            return wording("given prior", start=start)
        if self.guarantee.void is not None:
            return f"{start}: a model without a guarantee."
        facts = self.guarantee.circumstances
        which = which_attempt(1 if facts is None else facts.attempts)
        under = f"{self.guarantee.budget} ({self.guarantee.neighbours}){which}"
        released = f"{start}: a model that confide released under {under}"
        if ledger is not None and self.ledger == ledger:
            return f"{released} That release was charged to the same ledger."
        return wording("released prior", released=released)

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return {
            "source": self.source,
            "coef": [list(weights) for weights in self.coef],
            "intercept": list(self.intercept),
            "guarantee": None if self.guarantee is None else self.guarantee.to_dict(),
            "of_model": self.fitted_to is not None,
            **({"declared": [list(pair) for pair in self.declared]} if self.declared else {}),
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any], fitted_to: FittedTo) -> Prior:
        """Read the form written by `to_dict`, in the file of a model, whose columns and classes were those of the prior."""
        keys = {"source", "coef", "intercept", "guarantee", "of_model"}
        prior = cls.of_numbers(value["coef"], value["intercept"])
        guarantee = None if value["guarantee"] is None else Guarantee.from_dict(value["guarantee"])
        fits_source = (guarantee is not None) == (value["source"] == "release")
        declared = tuple((name, effect) for name, effect in value.get("declared", ()))
        fits_source &= bool(declared) == (value["source"] == DECLARED)
        if set(value) - {"declared"} != keys or value["source"] not in SOURCES or not fits_source:
            raise ParameterError("the prior was written by another version of confide, which this version cannot read.")
        its = fitted_to if value["of_model"] else None
        return replace(prior, source=value["source"], guarantee=guarantee, fitted_to=its, declared=declared)


# A prior of declared effects: signs and rough sizes, as a codebook or an earlier paper states them.
#
# A declared effect is a straight line on the own scale of a number, from its low to its high bound, with mean 0 over that
# range; or what a level adds beside all other levels. All of it follows from what was declared and from the schema.

DIRECTIONS = {"up": 1.0, "down": -1.0}
USUAL_EFFECT = 1.0
"""What "up" adds to log-odds, from one end of a number's range to the other. Compared by benchmarks/declared_effects.py, as
are the two below."""
USUAL_EFFECT_ON_COUNTS = 0.5
"""What it adds to the logarithm of the mean of counts."""
USUAL_SHARE = 0.25
"""What it adds to a predicted number, as a share of `target_bound`."""
SHARE_OF_LEVELS = 0.5
"""What "up" adds at a level, as a share of that from one end of a number's range to the other."""
MOST_TIMES_USUAL = 20.0
"""An effect that is more than so many times as large was declared in another unit."""


def declared_prior(
    effects: Mapping[Any, Any], encoder: Encoder | None, usual: float, score_of: Callable[[float], float], intercept: float
) -> Prior:
    """The prior that declared effects stand for.

    Parameters
    ----------
    effects : by the name of a number, or by that of a category and one of its levels as in "sex=Male": "up", "down", or the
        change of the log-odds, of the prediction or of its logarithm, for each unit of the number or at the level
    encoder : how columns enter the fit, or None
    usual : what "up" stands for over the range of a number
    score_of : the change of scores for a declared change
    intercept : the intercept of the prior

    Raises
    ------
    ParameterError
        If a name or a word is unknown, or an effect cannot be used.
    """
    if encoder is None or not effects or not math.isfinite(usual):
        raise ParameterError(wording("prior of signs needs columns"))
    places: dict[Any, tuple[Column, slice, int | None]] = {}
    for column, group in zip(encoder.schema.columns, encoder.groups, strict=False):
        levels = () if column.is_number else column.levels
        places[column.name] = (column, group.place, None)
        places |= {f"{column.name}={level}": (column, group.place, place) for place, level in enumerate(levels)}
    weights = np.zeros(encoder.n_features)
    for name, effect in effects.items():
        if name not in places:
            known = f'The columns are {listed(encoder.schema.column_names)}; a level is named as in "column=level".'
            raise ParameterError(f"prior names {listed_unknown([name], places)}, which is no column and no level. {known}")
        column, place, level = places[name]
        change = score_of(_declared_change(name, effect, column, level, usual))
        if column.is_number:
            ends = column.stretched(np.array(column.knots_with_bounds or [column.high]))
            weights[place.start : place.start + ends.size] += change / 2.0 * ends
        elif len(column.levels) == 2:
            # One encoded column is -1 at the first of two levels and 1 at the second.
            weights[place] += change * (-0.5, 0.5)[level or 0]
        else:
            weights[place.start + (level or 0)] += change
    said = tuple((name, effect if is_text(effect) else float(effect)) for name, effect in effects.items())
    return Prior((tuple(weights.tolist()),), (intercept,), DECLARED, declared=said)


def _declared_change(name: str, effect: Any, column: Column, level: int | None, usual: float) -> float:
    """The declared change from one end of a number's range to the other, or at a level."""
    if not column.is_number and level is None:
        raise ParameterError(f'prior: column "{name}" is a category; name one of its levels: "{name}={column.levels[-1]}".')
    if is_text(effect) and effect in DIRECTIONS:
        return DIRECTIONS[effect] * usual * (1.0 if column.is_number else SHARE_OF_LEVELS)
    if not is_number(effect) or not math.isfinite(effect):
        raise ParameterError(f'prior: say "up", "down" or a finite number for "{name}"{suggestion(effect, DIRECTIONS)}.')
    if column.is_number and column.scale != "linear":
        raise ParameterError(f'prior: say "up" or "down" for "{name}": on its scale no effect is the same for each unit.')
    change = float(effect) * (column.high - column.low if column.is_number else 1.0)
    if not abs(change) <= MOST_TIMES_USUAL * usual:
        raise ParameterError(f'prior: {change:.3g} is too large an effect of "{name}" to be meant; give it for one unit.')
    return change
