"""A released model as a value: what left, and the public facts beside it. Everything else about a fit stays private."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from confide.features.encoder import Encoder
from confide.features.fourier import FourierMap
from confide.features.schema import Schema
from confide.guarantee import Guarantee
from confide.inference.evidence import Evidence
from confide.inference.least_squares import SumsEvidence
from confide.intake.specification import CheckedRows, Columns
from confide.released_models.scores import LinearModel


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedModel:
    """What a fit released.

    Attributes
    ----------
    scoring : the weights, and the bound on rows by which they score
    alpha : the ridge of the mean objective, a public number
    guarantee : what was promised
    coefficient_names : (n_features,) names of the columns as they entered the fit
    columns : the columns of X
    domain : the classes in sorted order; empty for a regression
    encoder : of the schema, or None
    fourier : the public map that rows pass through, or None
    evidence : what intervals are made of, or None
    """

    scoring: LinearModel
    alpha: float
    guarantee: Guarantee
    coefficient_names: Any
    columns: Columns
    domain: tuple[Any, ...]
    encoder: Encoder | None
    fourier: FourierMap | None
    evidence: Evidence | SumsEvidence | None

    @classmethod
    def of(
        cls,
        scoring: LinearModel,
        evidence: Evidence | SumsEvidence | None,
        alpha: float,
        guarantee: Guarantee,
        rows: CheckedRows,
    ) -> ReleasedModel:
        """What a fit to these rows released, with the public facts that came with them."""
        names, columns, domain = rows.coefficient_names, rows.columns, rows.domain
        return cls(scoring, alpha, guarantee, names, columns, domain, rows.encoder, rows.fourier, evidence)

    @property
    def schema(self) -> Schema | None:
        """The public description of the columns, if there is one."""
        return None if self.encoder is None else self.encoder.schema
