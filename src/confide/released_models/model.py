"""A released model as a value: what was released, and public facts. Everything else about a fit stays private."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from confide.features.encoder import Encoder
from confide.features.public_maps import PublicMap
from confide.features.schema import Schema
from confide.guarantee import Guarantee
from confide.inference.evidence import Evidence
from confide.inference.interest import InterestEvidence
from confide.inference.least_squares import SumsEvidence
from confide.intake.specification import CheckedRows, Columns
from confide.released_models.prior import FittedTo, Prior
from confide.released_models.scores import LinearModel


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
    coefficient_names: Any
    columns: Columns
    domain: tuple[Any, ...]
    encoder: Encoder | None
    fourier: PublicMap | None
    evidence: Evidence | SumsEvidence | None
    prior: Prior | None = None
    interest: InterestEvidence | None = None

    @classmethod
    def of(
        cls,
        scoring: LinearModel,
        evidence: Evidence | SumsEvidence | None,
        alpha: float,
        guarantee: Guarantee,
        rows: CheckedRows,
        prior: Prior | None = None,
        interest: InterestEvidence | None = None,
    ) -> ReleasedModel:
        """What a fit to these rows released, with the public facts about the rows."""
        names, columns, domain = rows.coefficient_names, rows.columns, rows.domain
        return cls(scoring, alpha, guarantee, names, columns, domain, rows.encoder, rows.fourier, evidence, prior, interest)

    def as_prior(self, ledger: str | None = None) -> Prior:
        """These weights as the prior of another fit. `ledger` is the identity of the ledger that was charged for them."""
        scoring, fitted_to = self.scoring, FittedTo(self.columns, self.domain, self.encoder, self.fourier)
        coef, intercept = tuple(map(tuple, scoring.coef.tolist())), tuple(scoring.intercept.tolist())
        return Prior(coef, intercept, "release", self.guarantee, fitted_to, ledger)

    @property
    def has_intervals(self) -> bool:
        """Whether it holds what intervals of coefficients need. Single weights of random features mean nothing."""
        return self.evidence is not None and self.fourier is None

    @property
    def schema(self) -> Schema | None:
        """The public description of the columns, if there is one."""
        return None if self.encoder is None else self.encoder.schema
