"""The data for intervals: released numbers and public facts, as they are kept in a model file."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from scipy.linalg import block_diag

from confide.errors import ParameterError
from confide.inference.sampling_design import INDEPENDENT, SamplingDesign
from confide.privacy.bundled_shapes import Bundles
from confide.privacy.group_shapes import Groups, Linked
from confide.privacy.lattice import LatticeLaplace
from confide.privacy.mechanism import Noise, Plan
from confide.privacy.moments import NoisyMoments
from confide.privacy.shapes import Ball, Cylinder, Shape
from confide.types import Array


class CheckedEvidence(ABC):
    """Data for intervals that are checked when they are read from a file."""

    __slots__ = ()

    def checked(self) -> Self:
        """The same evidence.

        Raises
        ------
        ParameterError
            If its parts cannot belong together, as in a file that was changed.
        """
        if not (self._has_consistent_shapes() and self._has_possible_values()):
            raise ParameterError("the data for intervals do not fit each other: the file is damaged or was changed.")
        return self

    @abstractmethod
    def _has_consistent_shapes(self) -> bool:
        """Whether the shapes of the arrays agree."""

    @abstractmethod
    def _has_possible_values(self) -> bool:
        """Whether a fit could have released these numbers."""


@dataclass(frozen=True, slots=True)
class WeightNoise:
    """Noise of a known distribution that is part of the error of the weights.

    Attributes
    ----------
    noise : Noise
    in_objective : bool
        Whether it was added to the summed objective. Otherwise it was added to the weights.
    """

    noise: Noise
    in_objective: bool

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        shape = self.noise.shape
        more: dict[str, Any] = {}
        if isinstance(shape, Bundles):
            more = {"bundles": [list(bundle) for bundle in shape.bundles], "shares": list(shape.shares)}
        return {
            "law": self.noise.law,
            "scale": self.noise.scale,
            "shape": shape.name,
            "sizes": list(shape.sizes),
            "scales": list(shape.scales),
            "linked": list(shape.linked),
            "in_objective": self.in_objective,
            **more,
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Self:
        """Read the form written by `to_dict`."""
        known = {"law", "scale", "shape", "sizes", "scales", "linked", "in_objective"}
        if value.get("shape") == Bundles.name:
            known |= {"bundles", "shares"}
        if set(value) != known or value["law"] not in ("laplace", "gaussian") or not isinstance(value["in_objective"], bool):
            raise ParameterError("the file describes noise of a kind that this version of confide does not know.")
        sizes, scales = tuple(map(int, value["sizes"])), tuple(map(float, value["scales"]))
        if value["shape"] == "ball":
            shape: Shape = Ball(*sizes, *scales)
        elif value["shape"] == "cylinder":
            shape = Cylinder(sizes[0], *scales)
        elif value["shape"] == "groups":
            shape = Groups(sizes, scales)
        elif value["shape"] == Bundles.name:
            bundles = tuple(tuple(map(int, bundle)) for bundle in value["bundles"])
            shape = Bundles(sizes, scales, tuple(map(bool, value["linked"])), bundles, tuple(map(int, value["shares"])))
        else:
            shape = Linked(sizes, scales, tuple(map(bool, value["linked"])))
        is_positive = all(math.isfinite(x) and x > 0.0 for x in (value["scale"], *scales, *sizes))
        if shape.name != value["shape"] or not is_positive:
            raise ParameterError("the file describes noise of a kind that this version of confide does not know.")
        return cls(Noise(shape, value["law"], float(value["scale"])), value["in_objective"])


@dataclass(frozen=True, slots=True)
class Evidence(CheckedEvidence):
    """Released weights and moments, and what is publicly known about their noise.

    Attributes
    ----------
    weights : (D,)
        With several scores, the weights of each score, one score after the other.
    intercept : float
        The constant column for the intercept, whose weight is the last of each score. 0 if there is no intercept.
    l2 : float
        Ridge of the sum form.
    n_rows_high : int
        Largest possible number of rows.
    curvature, slope : (D, D)
        Released second moments of curvature and slope. For several scores see `separable`.
    curvature_deviation : float
        Standard deviation of the noise on an entry of the curvature off the diagonal.
    slope_deviation : float
        The same for the slope.
    noises : tuple of WeightNoise
        The noise in the weights.
    n_outputs : int
        Number of scores: 1 for two classes, otherwise one for each class.
    prior : (D,) or None
        Public weights towards which the ridge pulled; None for 0.
    separable : bool
        Whether the loss is a sum over scores. If so, curvature and slope are known for each score by itself, and are 0
        between two scores. Otherwise the loss depends only on differences of scores, and they are known in the directions
        of these differences, see `confide.privacy.moments.directions_of`.
    design : SamplingDesign
        What is declared about the sample.
    shift : float
        The public number that was subtracted from all targets. It is a part of the intercept and of no weight here.
    """

    weights: Array
    intercept: float
    l2: float
    n_rows_high: int
    curvature: Array
    slope: Array
    curvature_deviation: float
    slope_deviation: float
    noises: tuple[WeightNoise, ...]
    n_outputs: int = 1
    separable: bool = True
    prior: Array | None = None
    design: SamplingDesign = INDEPENDENT
    shift: float = 0.0

    def _has_consistent_shapes(self) -> bool:
        size = self.weights.size
        width = size if self.separable else size - size // max(1, self.n_outputs)
        return (
            self.n_outputs >= 1
            and size % self.n_outputs == 0
            and self.weights.shape == (size,)
            and self.curvature.shape == self.slope.shape == (width, width)
            and all(part.noise.shape.dimension == size for part in self.noises)
            and (self.prior is None or self.prior.shape == (size,))
        )

    def _has_possible_values(self) -> bool:
        scalars = np.array([self.intercept, self.l2, self.curvature_deviation, self.slope_deviation, self.shift])
        return (
            all(np.isfinite(numbers).all() for numbers in (self.weights, self.curvature, self.slope, scalars, self.centre))
            and all(np.array_equal(matrix, matrix.T) for matrix in (self.curvature, self.slope))
            and self.intercept >= 0.0
            and self.l2 > 0.0
            and self.n_rows_high >= 1
            and self.curvature_deviation >= 0.0
            and self.slope_deviation >= 0.0
            and (not self.shift or (self.intercept > 0.0 and self.n_outputs == 1))
        )

    @classmethod
    def of(cls, plan: Plan, weights: Array, moments: NoisyMoments) -> Self:
        """The evidence of a release: the weights (D,) that were released by `plan`, and the moments at these weights."""
        noises = []
        if plan.noise is not None:
            noises.append(WeightNoise(plan.noise, plan.perturbs_objective))
        if plan.lattice is not None:
            # Treated as the continuous noise of the same size, with independent entries.
            size = plan.lattice.dimension
            law = (
                Noise(Groups((size,), (plan.lattice.scale,)), "laplace", 1.0)
                if isinstance(plan.lattice, LatticeLaplace)
                else Noise(Ball(size, plan.lattice.norm / math.sqrt(size)), "gaussian", 1.0)
            )
            noises.append(WeightNoise(law, in_objective=False))
        return cls(
            weights=weights,
            intercept=plan.problem.intercept,
            l2=plan.l2,
            n_rows_high=plan.problem.n_rows_high,
            curvature=moments.curvature,
            slope=moments.slope,
            curvature_deviation=moments.plan.deviation * moments.plan.unit_of_curvature / math.sqrt(2.0),
            slope_deviation=moments.plan.deviation * moments.plan.unit_of_slope / math.sqrt(2.0),
            noises=tuple(noises),
            n_outputs=plan.problem.loss.n_outputs,
            separable=plan.problem.loss.separable,
            prior=np.array(plan.problem.prior) if plan.problem.prior else None,
            design=INDEPENDENT if plan.intervals is None else plan.intervals.design,
        )

    @property
    def centre(self) -> Array:
        """(D,): the weights towards which the ridge pulled."""
        return np.zeros_like(self.weights) if self.prior is None else self.prior

    @property
    def blocks(self) -> list[slice]:
        """Ranges of weights whose moments were released together."""
        width = self.weights.size // (self.n_outputs if self.separable else 1)
        return [slice(start, start + width) for start in range(0, self.weights.size, width)]

    def to_dict(self) -> dict[str, Any]:
        """A JSON form. Of the symmetric matrices it holds the upper triangles, block by block and row by row."""
        return {
            "weights": self.weights.tolist(),
            "intercept": self.intercept,
            "l2": self.l2,
            "n_rows_high": self.n_rows_high,
            "curvature": [number for block in self.blocks for number in triangle_of(self.curvature[block, block])],
            "slope": [number for block in self.blocks for number in triangle_of(self.slope[block, block])],
            "curvature_deviation": self.curvature_deviation,
            "slope_deviation": self.slope_deviation,
            "noises": [part.to_dict() for part in self.noises],
            "n_outputs": self.n_outputs,
            "separable": self.separable,
            **({} if self.prior is None else {"prior": self.prior.tolist()}),
            **self.design.described(),
            **({"shift": self.shift} if self.shift else {}),
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Self:
        """Read the form written by `to_dict`."""
        # The first version knew two classes only, no prior, design or shift, and wrote none of these entries.
        value = {"n_outputs": 1, "separable": True, "prior": None, "design": None, "shift": 0.0} | value
        known = set(value) == {field.name for field in fields(cls)}
        if not known or not isinstance(value["separable"], bool) or not value["n_outputs"] >= 1:
            raise ParameterError(
                "the data for intervals were written by another version of confide, which this version cannot read."
            )
        size, n_outputs = len(value["weights"]), int(value["n_outputs"])
        row_width = size // n_outputs
        n_blocks, width = (n_outputs, row_width) if value["separable"] else (1, size - row_width)
        curvature, slope = (
            block_diag(*(symmetric_of(part, width) for part in np.split(np.array(value[name]), n_blocks)))
            for name in ("curvature", "slope")
        )
        return cls(
            weights=np.array(value["weights"], dtype=np.float64),
            intercept=float(value["intercept"]),
            l2=float(value["l2"]),
            n_rows_high=int(value["n_rows_high"]),
            curvature=curvature,
            slope=slope,
            curvature_deviation=float(value["curvature_deviation"]),
            slope_deviation=float(value["slope_deviation"]),
            noises=tuple(map(WeightNoise.from_dict, value["noises"])),
            n_outputs=n_outputs,
            separable=value["separable"],
            prior=None if value["prior"] is None else np.array(value["prior"], dtype=np.float64),
            design=INDEPENDENT if value["design"] is None else SamplingDesign.from_dict(value["design"]),
            shift=float(value["shift"]),
        ).checked()


def triangle_of(matrix: Array) -> list[float]:
    """The upper triangle of a matrix (D, D), row by row."""
    numbers: list[float] = matrix[np.triu_indices(len(matrix))].tolist()
    return numbers


def symmetric_of(triangle: Array | list[float], size: int) -> Array:
    """The symmetric matrix (D, D) with this upper triangle, row by row."""
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = triangle
    answer: Array = np.triu(matrix) + np.triu(matrix, 1).T
    return answer
