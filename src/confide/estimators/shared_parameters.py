"""Parameters that estimators share: each has its type, its default and its description here, once.

Estimators are dataclasses, so that `__init__` has explicit keyword arguments, as scikit-learn wants it, without repeating
them. `intake/parameters.py` has the check of each parameter.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

from confide.accounting.ledger import Batch, Ledger
from confide.features.schema import Schema
from confide.privacy.budgets import Budget, Neighbours

_MARK = "other parameters : those that linear models share"
"""Where a docstring has this line, the descriptions of all shared parameters that it leaves out take its place."""
_DESCRIPTIONS = {
    "budget": """float, PureDP, ApproxDP or ZCDP, default 1.0
    A number is the epsilon of pure differential privacy. ``float("inf")`` gives the model without privacy, and its
    guarantee says so.""",
    "alpha": """"auto" or float, default "auto"
    Ridge of the mean objective, positive. "auto" is a function of public facts alone: number of rows, features, budget
    and row bound. It is raised, and the plan says so, where the proof needs more.""",
    "schema": """Schema or None
    Public knowledge about raw columns. With it X is a pandas or Polars frame, columns are matched by name, and the row
    bound comes from the schema, with noise shaped by its columns.""",
    "row_norm": """float, row bound or None
    Every row is clipped to this L2 norm, default 1.0. It is never inferred from the rows, and not given together with a
    schema. A `BallBound`, `BoxBound` or `GroupBound` clips rows its own way and shapes the noise. ``float("inf")`` needs
    an infinite budget.""",
    "fit_intercept": """bool, default True
    Whether the model has an intercept. It is a penalised weight, and its constant is a part of every row.""",
    "intercept_scaling": """float, default 1.0
    The constant appended to every clipped row. A larger value shrinks the intercept less and costs noise. Where a
    typical row does not have norm 1, take about `row_norm`: beside rows of norm 1000 a constant of 1 shifts no score,
    and beside rows of norm 0.001 it gets nearly all of the noise.""",
    "target_bound": """float
    Needed in every fit and plan: every target is clipped to [-target_bound, target_bound], in its own units. It is
    never inferred from the targets: scale and centre them by public knowledge. ``float("inf")`` needs an infinite
    budget.""",
    "classes": """sequence of labels or None
    The label domain, 2 to 100 labels. None takes the target of the schema; without a schema {0, 1}, {-1, 1} or
    {False, True} where the labels fit; and otherwise the labels present, which the guarantee names as an assumption.""",
    "mechanism": """{"auto", "objective", "output", "output-laplace"}, default "auto"
    Where the noise goes: into the objective, or on the weights. "auto" is "objective" where the loss is smooth.
    "output-laplace" is the PrivateSVM of Rubinstein et al., with independent Laplace noise and pure privacy, for
    comparison.""",
    "neighbours": """{"replace-one", "add-or-remove-one"}, default "replace-one"
    Which data sets the guarantee calls neighbours.""",
    "n_rows_bounds": """(int, int) or None
    Public bounds on the number of rows, for "add-or-remove-one", where that number is private. The ridge of the sum is
    alpha times the lower bound.""",
    "max_rows_per_person": """int, default 1
    A public cap k on the rows of one person. The guarantee then protects a person, by group privacy. Where the schema
    names a column of persons, k rows of each are drawn anew in every fit; otherwise the cap is an assumption.""",
    "class_weight": """dict or None
    A public weight for each class, label: number. Noise grows with the largest. "balanced" is refused, because it would
    be learned from the labels.""",
    "max_sample_weight": """float, default 1.0
    A public cap on the `sample_weight` of a row in `fit`. Noise grows with it. The mean is over the number of rows,
    whatever they weigh.""",
    "inference_share": """float or "auto", default 0.0
    The part of the budget that is kept for intervals. With it `conf_int`, `summary` and `uncertainty` say how far the
    coefficients may lie from those of the population. "auto" takes the share at which the intervals are narrowest, by
    public facts. Refused, before anything is charged, where the intervals could not be trusted.""",
    "ledger": """Ledger, batch of one, or None
    Charged before a row is used.""",
    "n_jobs": """int or None
    Threads that share the rows: None is 1, or what `joblib.parallel_config` says; -1 is one for each core. Fits are the
    same to the bit whatever their number. Small calls of NumPy take turns, so measure before you ask for more than one.""",
    "random_state": """int or None
    For tests: a seed makes the noise reproducible and the guarantee void.""",
}
"""The type of each shared parameter, and what it does, as a docstring has them."""

Class = TypeVar("Class")


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
def estimator(cls: type[Class]) -> type[Class]:
    """Make a class an estimator: `__init__` stores its parameters, and its docstring describes those that it shares.

    As scikit-learn wants it, `__init__` has explicit keyword arguments, checks nothing and changes nothing.
    """
    made = dataclass(eq=False, repr=False, kw_only=True)(cls)
    if made.__doc__ is not None and _MARK in made.__doc__:
        text = inspect.cleandoc(made.__doc__)
        shared = [name for name in inspect.signature(made).parameters if name in _DESCRIPTIONS]
        missing = [name for name in shared if f"\n{name} :" not in text]
        entries = (f"{name} : {_DESCRIPTIONS[name]}" for name in missing)
        made.__doc__ = text.replace(_MARK, "\n".join(entries))
    return made


@estimator
class ModelParameters:
    """Parameters of every linear model."""

    budget: float | Budget = field(default=1.0, kw_only=False)
    alpha: float | str = "auto"
    schema: Schema | None = None
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    mechanism: str = "auto"
    neighbours: str | Neighbours = "replace-one"
    n_rows_bounds: tuple[int, int] | None = None
    max_rows_per_person: int = 1
    ledger: Ledger | Batch | None = None
    n_jobs: int | None = None
    random_state: int | None = None


@estimator
class RowNormParameter:
    """The bound on rows, of models whose rows have none of their own."""

    row_norm: Any = None


@estimator
class ClassParameters:
    """Parameters of every classifier."""

    classes: Any = None
    class_weight: Mapping[Any, float] | None = None


@estimator
class SampleWeightParameter:
    """The cap on the weights of rows, of models whose `fit` takes them."""

    max_sample_weight: float = 1.0


@estimator
class TargetParameter:
    """The bound on targets, of every regressor."""

    target_bound: float | None = None


@estimator
class IntervalsParameter:
    """The share of the budget for intervals, of models that have them by moments."""

    inference_share: float | str = 0.0
