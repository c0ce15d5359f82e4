"""Checks of constructor parameters that need more than their row of the table, before any row is read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from confide.accounting.ledger import Batch, Ledger
from confide.erm.row_bounds import LARGEST_BOUND, SMALLEST_BOUND, BallBound, RowBound
from confide.errors import ParameterError, SchemaError, as_float, checked_count, is_list, is_number, is_whole, wording
from confide.features.cells import Exposure
from confide.features.encoder import Encoder
from confide.features.schema import Schema, Target
from confide.features.toml_form import is_path
from confide.intake.targets import Numbers
from confide.known_words import listed, listed_unknown
from confide.parameters import PARAMETERS, checked
from confide.privacy.budgets import Budget, Neighbours

_LARGEST_SAMPLE_WEIGHT = 1e9


def schema_at(schema: Any) -> Any:
    """The schema in a TOML file, where its path is given; anything else as it is."""
    return Schema.from_toml(Path(schema)) if is_path(schema) else schema


def checked_schema(schema: Any) -> Encoder | None:
    """The encoder of a schema, or None."""
    schema = schema if type(schema) in (type(None), Schema) else schema_at(schema)
    if schema is not None and not isinstance(schema, Schema):
        raise ParameterError("schema must be a confide.Schema, or the path of one in TOML.")
    return None if schema is None else Encoder(schema.for_another_fit)


def checked_row_bound(row_norm: Any, encoder: Encoder | None) -> RowBound:
    """The bound on every row: a ball for a number, the object itself, or the schema's groups."""
    if encoder is not None:
        if row_norm is not None:
            raise ParameterError("give a schema or row_norm, not both: the bound on rows follows from a schema.")
        return encoder.row_bound if encoder.appended is None else encoder.appended.row_bound
    if row_norm is None:
        return BallBound(1.0)
    if all(map(partial(hasattr, row_norm), ("clip", "l2_norm", "check_width", "to_dict"))):
        bound: RowBound = row_norm
        norm = bound.l2_norm
        if type(norm) is not float or not (SMALLEST_BOUND <= norm <= LARGEST_BOUND or norm == math.inf):
            raise ParameterError("the l2_norm of a row bound must be a float between 2^-300 and 2^300.")
    elif is_number(row_norm):
        bound = BallBound(row_norm)
    else:
        raise ParameterError("row_norm must be a positive number, a row bound, or None for 1.")
    return bound


def refuse_combinations(
    given: Mapping[str, Any],
    encoder: Encoder | None,
    row_bound: RowBound,
    *,
    budget: Budget,
    drops_rows: bool,
    has_prior: bool,
    has_penalty: bool,
) -> None:
    """Refuse parameters that do not go together, though each may be given by itself.

    Parameters
    ----------
    given : the checked values of parameters by their names
    encoder, row_bound : those of the fit
    budget : the budget of the fit
    drops_rows : whether rows beyond a person's cap are dropped, and nothing says how many are left
    has_prior, has_penalty : whether there are a prior and a penalty in place of |w|^2
    """
    schema, has_features = (None, False) if encoder is None else (encoder.schema, encoder.appended is not None)
    has_persons, has_share = schema is not None and schema.person is not None, given["inference_share"] != 0.0
    has_weights = schema is not None and schema.weight is not None
    l1, differences, interest = given["l1_ratio"] > 0.0, given["risk_differences"], bool(given["interest"])
    has_several = given["max_rows_per_person"] > 1 or has_persons
    weighs = given["max_sample_weight"] != 1.0 or has_weights or given["class_weight"] is not None
    refused = {
        "rows without a bound": budget.is_private and not math.isfinite(row_bound.l2_norm),
        "targets without a bound": budget.is_private and given["target_bound"] == math.inf,
        "no intervals of random features": has_share and has_features,
        "one kind of intervals": interest and has_share,
        "interest with a prior": interest and has_prior,
        "interest with a penalty": interest and has_penalty,
        "interest with random features": interest and has_features,
        "one row for each unit": given["population_size"] is not None and has_several,
        "no intervals with l1_ratio": l1 and (has_share or interest or given["intervals"] is True),
        # Rows and weights are brought to the norm of the form, and the l1 penalty is on weights as they are.
        "no penalty with l1_ratio": l1 and has_penalty,
        "no prior with l1_ratio": l1 and has_prior,
        "risks of no interest": differences and not interest,
        "risks of rows with weights": differences and weighs,
        "risks with a bound of one's own": differences and encoder is not None and row_bound is not encoder.row_bound,
        # The sums are of the rows that are left, and under replace-one their number is neither public nor released.
        "risks of counted rows": differences and has_persons and drops_rows,
        "replaced in cohorts": schema is not None and schema.cohort is not None and drops_rows,
    }
    for about, is_wrong in refused.items():
        if is_wrong:
            raise ParameterError(wording(about))


def checked_target_bound(target_bound: Any) -> float:
    """Targets are clipped to [-target_bound, target_bound]."""
    if target_bound is None:
        raise ParameterError(wording("target_bound is needed"))
    return float(checked("target_bound", target_bound))


def checked_exposure(exposure_range: Any, target: Target | None, *, counts: bool) -> Exposure | None:
    """The exposure of counts and its bounds, from the parameter or from the schema; None if there is none."""
    declared = None if target is None else target.exposure
    if declared is None and exposure_range is None:
        return None
    with suppress(SchemaError, TypeError):
        if counts and (declared is None or exposure_range is None):
            return declared or Exposure("", *exposure_range)
    raise ParameterError(wording("exposure declared"))


def checked_target_range(
    target_bound: Any, ends: tuple[Any, Any], target: Target | None, *, counts: bool, may_shift: bool = False
) -> Numbers:
    """The targets of a regression, and the interval to which they are clipped, from the parameters and a schema.

    Parameters
    ----------
    target_bound : the parameter; None if the schema or the next one says it
    ends : the parameters `target_low` and `target_high`; None and None if they are not given
    target : the target of the schema, or None
    counts : whether the targets are counts, which are never negative
    may_shift : whether a fit may subtract a public number from all targets and add it to the intercept
    """
    declared = None if target is None else target.bounds
    if any(end is not None for end in ends):
        first, last = map(as_float, ends)
        if not -LARGEST_BOUND <= first < last <= LARGEST_BOUND:
            raise ParameterError(wording("range of targets"))
        if declared is not None or target_bound is not None:
            other = "the schema has the bounds of its target" if declared is not None else "target_bound is given too"
            raise ParameterError(f"target_low and target_high are not needed: {other}. Leave one of the two out.")
        declared = first, last
    if declared is None:
        bound = checked_target_bound(target_bound)
        return Numbers.within(0.0 if counts else -bound, bound, are_counts=counts)
    low, high = declared
    if counts and low < 0.0:
        raise ParameterError("counts are not negative: for a loss of counts, the lower end of the target must be 0 or more.")
    largest = checked_target_bound(max(abs(low), abs(high)))
    bound = largest if target_bound is None else checked_target_bound(target_bound)
    if bound < largest:
        low, high = max(low, -bound), min(high, bound)
        if not low < high:
            raise ParameterError(wording("target_bound beside the schema"))
    return Numbers.within(low, high, is_declared=True, may_shift=may_shift, are_counts=counts)


def checked_bounds(n_rows_bounds: Any, neighbours: Neighbours) -> tuple[int, int] | None:
    """Public bounds on the number of rows: required if that number is private, and refused otherwise."""
    if neighbours is Neighbours.REPLACE_ONE:
        if n_rows_bounds is not None:
            raise ParameterError(wording("bounds on a public number of rows"))
        return None
    message = "add-or-remove-one needs public n_rows_bounds=(low, high), two whole numbers, 1 <= low <= high <= 10^15."
    ends = tuple(n_rows_bounds) if is_list(n_rows_bounds) else ()
    if len(ends) != 2 or not all(map(is_whole, ends)) or not 1 <= ends[0] <= ends[1] <= 10**15:
        raise ParameterError(message)
    return int(ends[0]), int(ends[1])


def declared_weights(
    encoder: Encoder | None, largest: float, mean: float | None, *, takes: bool
) -> tuple[float, float | None]:
    """The cap on the weights of rows, and their declared mean or None, from parameters or from the schema.

    Refuses a model that takes no weights, and facts that are declared twice.
    """
    if mean is not None and mean > largest:
        raise ParameterError(PARAMETERS["mean_sample_weight"].refusal(mean))
    weight = None if encoder is None else encoder.schema.weight
    if weight is None:
        return largest, mean
    if not takes:
        raise ParameterError(wording("least squares takes no weights", column=weight.column))
    if largest not in (1.0, weight.high) or mean not in (None, weight.mean):
        raise ParameterError(wording("cap of weights beside the schema"))
    return weight.high, weight.mean


def checked_class_weight(class_weight: Any, classes: tuple[Any, ...] | None = None) -> tuple[tuple[Any, float], ...]:
    """Pairs of label and weight. `classes` are those that are declared, or None if none are."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        raise ParameterError(wording("class weights must be public"))
    message = "class_weight must be a dict of public weights, label: number from 1e-9 to 1e9, one for each class, or None."
    least, most = 1.0 / _LARGEST_SAMPLE_WEIGHT, _LARGEST_SAMPLE_WEIGHT
    weights = list(class_weight.values()) if isinstance(class_weight, Mapping) else []
    if not weights or not all(is_number(weight) and least <= weight <= most for weight in weights):
        raise ParameterError(message)
    if classes is not None and set(class_weight) != set(classes):
        unknown = [label for label in class_weight if label not in classes]
        named = f" These are none: {listed_unknown(unknown, classes)}." if unknown else ""
        raise ParameterError(f"class_weight must name the classes and no others: {listed(map(str, classes))}.{named}")
    return tuple((label, float(weight)) for label, weight in class_weight.items())


def checked_ledger(ledger: Any) -> Batch | Ledger | None:
    """A ledger, also the one at a path, a batch planned on one, or None."""
    if ledger is None or isinstance(ledger, (Batch, Ledger)):
        return ledger
    if is_path(ledger):
        return Ledger(ledger)
    raise ParameterError("ledger must be a confide.Ledger or the path of one, a batch of one, or None.")


def checked_shape(n_rows: Any, n_features: Any, encoder: Encoder | None, n_rows_bounds: tuple[int, int] | None) -> int:
    """The number of columns for a plan, which follows from a schema if there is one. The number of rows is checked too."""
    if encoder is not None:
        if n_features is not None and as_float(n_features) != encoder.n_features:
            raise ParameterError(f"n_features follows from the schema: {encoder.n_features} encoded columns; leave it out.")
        n_features = encoder.n_features
    if n_rows is not None or not n_rows_bounds:
        checked_count("n_rows", n_rows)
    return checked_count("n_features", n_features)
