"""A released model as a value: what was released, and public facts. Everything else about a fit stays private."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_expit, log_softmax, logsumexp

from confide.array_types import Array, Names
from confide.errors import ParameterError
from confide.features.canonical_labels import Label, canonical_label
from confide.features.encoder import Encoder
from confide.features.forms import PublicMap
from confide.features.schema import Schema
from confide.guarantee import Guarantee
from confide.inference.debiased import InterestEvidence
from confide.inference.intervals import WeightsEvidence
from confide.intake.specification import CheckedRows, Columns
from confide.intake.targets import number_column
from confide.models.prior import FittedTo, Prior
from confide.models.scores import LinearModel


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedModel:
    """What a fit released.

    Attributes
    ----------
    scoring : the weights, and the bound to which rows are clipped before they are scored
    alpha : the ridge of the mean objective, a public number
    guarantee : the guarantee of the release
    coefficient_names : (n_features,) names of the columns as they entered the fit
    columns : the columns of X
    domain : the classes in sorted order; empty for a regression
    encoder : the encoder of the schema, or None
    fourier : the public feature map, or None
    evidence : what intervals are computed from, or None if it was not released
    prior : the public weights towards which the ridge pulled, or None
    interest : what intervals of named coefficients are computed from, or None
    """

    scoring: LinearModel
    alpha: float
    guarantee: Guarantee
    coefficient_names: Names
    columns: Columns
    domain: tuple[Label, ...]
    encoder: Encoder | None
    fourier: PublicMap | None
    evidence: WeightsEvidence | None
    prior: Prior | None = None
    interest: InterestEvidence | None = None

    @classmethod
    def of(
        cls,
        scoring: LinearModel,
        evidence: WeightsEvidence | None,
        alpha: float,
        guarantee: Guarantee,
        rows: CheckedRows,
        prior: Prior | None = None,
        interest: InterestEvidence | None = None,
    ) -> ReleasedModel:
        """What a fit to these rows released, with the public facts about the rows."""
        names, columns, domain = rows.coefficient_names, rows.columns, rows.domain
        return cls(scoring, alpha, guarantee, names, columns, domain, rows.encoder, rows.fourier, evidence, prior, interest)

    def as_prior(self) -> Prior:
        """These weights as the prior of another fit."""
        scoring, fitted_to = self.scoring, FittedTo(self.columns, self.domain, self.encoder, self.fourier)
        coef, intercept = tuple(map(tuple, scoring.coef.tolist())), tuple(scoring.intercept.tolist())
        return Prior(coef, intercept, "release", self.guarantee, fitted_to)

    @property
    def has_intervals(self) -> bool:
        """Whether it holds what intervals of coefficients need. Single weights of random features mean nothing."""
        return self.evidence is not None and self.fourier is None

    @property
    def schema(self) -> Schema | None:
        """The public description of the columns, if there is one."""
        return None if self.encoder is None else self.encoder.schema


# What the scores of a released model say: a class, probabilities of classes, or a number.

KINDS = ("logistic", "softmax", "one-vs-rest", "none", "identity", "exponential")


@dataclass(frozen=True, slots=True)
class Link:
    """How scores become predictions.

    Attributes
    ----------
    kind : one of `KINDS`
        - "logistic": one score, whose logistic function is the probability of the second class
        - "softmax": a score for each class, its log-probability up to a number that is the same for all
        - "one-vs-rest": a score for each class, whose probabilities are divided by their sum
        - "none": classes without probabilities
        - "identity", "exponential": of a regression, the prediction for a score
    margin : 0; or of the logistic hinge log(1 + exp(m - z)), the margin m. The probability for a score z is then
        p = (1 + e^(z - m)) / (2 + e^(z - m) + e^(-z - m)), which is the logistic function if m is 0
    """

    kind: str
    margin: float = 0.0

    @property
    def has_probabilities(self) -> bool:
        """Whether classes have probabilities."""
        return self.kind in ("logistic", "softmax", "one-vs-rest")

    def log_probabilities(self, scores: Array) -> Array:
        """The logarithm of the probability of each class, (n, k), from scores (n,) of two classes or (n, k) of k."""
        if self.kind == "softmax":
            return np.asarray(log_softmax(scores, axis=1))
        favour = self.log_favour(scores)
        if self.kind == "one-vs-rest":
            return np.asarray(favour - logsumexp(favour, axis=1, keepdims=True))
        return np.column_stack([self.log_favour(-scores), favour])

    def log_favour(self, scores: Array) -> Any:
        """For each score by itself log((1 + e^(z - m)) / (2 + e^(z - m) + e^(-z - m))), without overflow."""
        if self.margin == 0.0:
            return log_expit(scores)
        favour = np.logaddexp(0.0, scores - self.margin)
        return np.asarray(favour - np.logaddexp(favour, np.logaddexp(0.0, -scores - self.margin)))

    def mean(self, scores: Array) -> Array:
        """What scores (n,) or (n, k) stand for where each has a meaning by itself; it never falls as a score rises.

        The probability of the second of two classes, the mean of a regression, or the score itself.
        """
        if self.kind == "logistic":
            return np.asarray(np.exp(self.log_favour(scores)))
        if self.kind != "exponential":
            return scores
        # A warning of overflow would say something about the rows. The largest double takes the place of infinity.
        with np.errstate(over="ignore"):
            return np.fmin(np.exp(scores), np.finfo(np.float64).max)

    def log_odds(self, scores: Array) -> tuple[Array, Array]:
        """The log-odds of each of several classes against all others, and their derivatives.

        Parameters
        ----------
        scores : (n, k)

        Returns
        -------
        log_odds : (n, k)
        derivatives : (n, k, k), of the log-odds of class i in the score of class j at place (i, j) of a row
        """
        one, n_classes = np.eye(scores.shape[1]), scores.shape[1]
        if self.kind == "softmax":
            favour, slopes = scores, np.ones_like(scores)
        else:
            favour = np.asarray(self.log_favour(scores))
            step = 2.0**-14
            slopes = (self.log_favour(scores + step) - self.log_favour(scores - step)) / (2.0 * step)
        others = np.where(one == 1.0, -np.inf, favour[:, None, :])
        sums = logsumexp(others, axis=2)
        shares = np.exp(others - sums[:, :, None])
        return favour - sums, (one - shares) * slopes.reshape(-1, 1, n_classes)

    def scores_at(self, probabilities: Array) -> Array:
        """The scores of two classes at which the second has these probabilities, above 0 and below 1.

        With u = e^z and a = e^-m, the formula for p is a (1 - p) u^2 - (2 p - 1) u - a p = 0.
        """
        a, lean = math.exp(-self.margin), 2.0 * probabilities - 1.0
        root = np.sqrt(lean**2 + 4.0 * a**2 * probabilities * (1.0 - probabilities))
        # Of the two forms of the solution, each is exact where the other subtracts nearly equal numbers.
        above = np.log((lean + root) / (2.0 * a * (1.0 - probabilities)))
        return np.where(lean >= 0.0, above, np.log(2.0 * a * probabilities / (root - lean)))


# What the weights of a model are shown for: a class, or the number that a regression predicts.


@dataclass(frozen=True, slots=True)
class ShownClass:
    """The class for which weights and probabilities are shown: the schema's positive class, or without one the second class.

    With three or more classes, each class has its own weights, and the probability shown for a row is that of its predicted
    class.

    Attributes
    ----------
    label : the class, as in the model's `classes_`; None for three or more classes
    column : the target's column, or None without a schema
    position : the position of the class in `classes_`; None for three or more classes
    """

    label: Label | None
    column: str | None
    position: int | None

    @classmethod
    def of(cls, model: ReleasedModel) -> ShownClass:
        """The class for which the weights of a released classifier are shown."""
        if not model.domain:
            raise ParameterError("the model is a regressor; this is for classifiers. In Python, read it with confide.load.")
        labels, target = list(model.domain), None if model.schema is None else model.schema.target
        if len(labels) > 2:
            return cls(None, None if target is None else target.column, None)
        if target is None:
            return cls(labels[1], None, 1)
        position = int(canonical_label(labels[1]) == canonical_label(target.positive))
        return cls(labels[position], target.column, position)

    @property
    def sign(self) -> float:
        """1, or -1 if the model's own weights are in favour of the other class."""
        return -1.0 if self.position == 0 else 1.0

    def of_rows(self, values: Array) -> Array:
        """(n,): the probability or score of the class shown, of each row.

        `values` are probabilities (n, k), or scores (n,) in favour of the second class or (n, k) of every class.
        """
        if values.ndim == 1:
            return self.sign * values
        return np.asarray(values.max(axis=1) if self.position is None else values[:, self.position])

    def ends_of_rows(self, ends: Array, values: Array) -> Array:
        """(n, 2): the interval that belongs to what `of_rows` gives, from those of the model.

        Parameters
        ----------
        ends : (n, 2) for the second of two classes, or (n, k, 2)
        values : as for `of_rows`
        """
        if self.position is None:
            return np.asarray(np.take_along_axis(ends, values.argmax(axis=1)[:, None, None], axis=1)[:, 0])
        return ends if self.position == 1 else np.asarray((-ends if values.ndim == 1 else 1.0 - ends)[:, ::-1])

    def __str__(self) -> str:
        if self.position is None:
            return f"the predicted {self.column or 'class'}"
        label = f'"{self.label}"' if isinstance(self.label, str) else str(self.label)
        return f"{self.column} = {label}" if self.column else f"class {label}"


def predicted_column(model: ReleasedModel) -> str | None:
    """The column that a regression predicts, if its schema names it."""
    return number_column(model.schema)


def predicted_number(model: ReleasedModel, *, as_rate: bool = True) -> str:
    """The column that a regression predicts, with its unit if the schema names one, or "the target".

    Of counts with an exposure it is a rate, or with the exposures of rows at hand a count.
    """
    name, target = predicted_column(model), None if model.schema is None else model.schema.target
    if name is None or target is None:
        return "the target"
    per = "" if target.exposure is None or not as_rate else f" per unit of {target.exposure.column}"
    return f"{name}{'' if target.unit is None else f' in {target.unit}'}{per}"


def weights_by_class(model: ReleasedModel) -> dict[Any, tuple[dict[str, float], float]]:
    """The released weights by encoded column, and the intercept, for each class that has weights.

    A model of two classes has one vector of weights. Its sign is changed if it is not in favour of the class that is shown.
    A regression has one vector too, and its target stands in place of the class.
    """
    names = list(map(str, model.coefficient_names))
    if not model.domain:
        weights = dict(zip(names, model.scoring.coef[0].tolist(), strict=True))
        return {predicted_column(model) or "the target": (weights, float(model.scoring.intercept[0]))}
    shown = ShownClass.of(model)
    labels = list(model.domain) if shown.position is None else [shown.label]
    values = zip(labels, shown.sign * model.scoring.coef, shown.sign * model.scoring.intercept, strict=True)
    return {label: (dict(zip(names, w.tolist(), strict=True)), float(intercept)) for label, w, intercept in values}
