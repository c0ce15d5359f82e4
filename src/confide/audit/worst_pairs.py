"""The attack that needs an estimator and nothing else: worst neighbours, and releases from both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from confide.array_types import Array
from confide.audit.attacks import AuditResult, attack, claim_of, outcomes_of, separation_of_samples
from confide.audit.densities import is_known, likelihood_ratio, minimiser, overheard
from confide.audit.releases import Statistic, fitted_values, is_own, named, unfitted
from confide.blocks import frame_of
from confide.erm.group_bounds import groups_of
from confide.errors import ConfideError, ParameterError, checked_count
from confide.features.canonical_labels import Label
from confide.features.cells import Exposure
from confide.features.schema import RowWeight, Schema
from confide.privacy.budgets import Budget, Neighbours

# Rows that are made up from public facts alone: at the edge of what bounds, schemas and label domains allow.

_EDGE = 1.0 - 2.0**-30
"""Rows lie this far inside of a bound, so that rounding never clips them."""


@dataclass(frozen=True, slots=True)
class Domain:
    """What rows and targets an estimator may be given.

    Attributes
    ----------
    corners : rows at the edge, first those that differ most; arrays (d,), or dictionaries from columns to cells
    rest : a row of zeros, or the first corner where there is no such row
    targets : at least two, first those that differ most
    target_column : name of the column of targets in a frame, or None for arrays
    person : name of the column of persons, or None
    pushing : whether longer weights make slopes steeper, so that other rows should push them
    beside : the columns of weights and exposures; every row counts as much as it may, and has the greatest exposure
    """

    corners: tuple[Array | dict[str, Label], ...]
    rest: Array | dict[str, Label]
    targets: tuple[Label, ...]
    target_column: str | None = None
    person: str | None = None
    pushing: bool = False
    beside: tuple[RowWeight | Exposure, ...] = ()

    def data(self, rows: Sequence[tuple[Any, Any]], same_person: int = 1) -> tuple[Any, Any]:
        """(X, y) of pairs of a row and a target; the last `same_person` rows are those of one person."""
        targets = np.array([target for _, target in rows])
        if isinstance(self.rest, dict):
            frame = frame_of([row for row, _ in rows])
            if self.person is not None:
                frame[self.person] = np.minimum(np.arange(len(rows)), len(rows) - same_person)
            for one in self.beside:
                frame[one.column] = one.high
            if self.target_column is not None:
                frame[self.target_column] = targets
            return frame, targets
        return np.array([row for row, _ in rows]), targets


def domain_of(estimator: Any) -> Domain:
    """The domain of one of our estimators, by its parameters."""
    schema = getattr(estimator, "schema", None)
    targets = _targets(estimator, schema)
    if isinstance(schema, Schema):
        # The first and the last category, or the least and the greatest number, of each column.
        ends = {column.raw_name: column.ends for column in reversed(schema.columns)}
        ends = {name: ends[name] for name in schema.raw_names}
        low, high = ({name: values[side] for name, values in ends.items()} for side in (0, -1))
        mixed = {name: (low if place % 2 else high)[name] for place, name in enumerate(low)}
        column = None if schema.target is None else schema.target.column
        if schema.cohort is not None:
            high, low, mixed = (corner | dict([schema.cohort]) for corner in (high, low, mixed))
        return Domain((high, low, mixed), low, targets, column, schema.person, beside=schema.beside)
    bounds = getattr(estimator, "bounds", None)
    if bounds is not None:
        named = list(bounds.values()) if isinstance(bounds, dict) else bounds
        pairs = [named] if np.ndim(named) == 1 else list(named)
        least, greatest = (np.array([float(pair[side]) for pair in pairs]) for side in (0, 1))
        return Domain((greatest, least), 0.5 * (least + greatest), targets)
    corners = _edges(getattr(estimator, "row_norm", None))
    return Domain(corners, np.zeros_like(corners[0]), targets, pushing=hasattr(estimator, "classes") and len(corners) > 2)


def _edges(bound: Any) -> tuple[Array, ...]:
    """Rows at the edge of a bound on rows, and their opposites."""
    sizes, scales, linked = groups_of(bound)
    if sizes:
        starts = np.cumsum((0, *sizes[:-1]))
        row = np.zeros(sum(sizes))
        row[starts] = scales
        other = np.zeros_like(row)
        last = np.cumsum(sizes) - 1
        other[last] = np.where(linked, scales, -np.array(scales))
        return (_EDGE * row, _EDGE * other)
    norm = 1.0 if bound is None else float(getattr(bound, "norm", bound))
    return tuple(_EDGE * norm * np.array(row) for row in ([0.0, 1.0], [0.0, -1.0], [1.0, 0.0]))


def _targets(estimator: Any, schema: Any) -> tuple[Label, ...]:
    of_schema = getattr(schema, "target", None)
    if hasattr(estimator, "target_bound"):
        ends: Any = (getattr(estimator, "target_low", None), getattr(estimator, "target_high", None))
        if of_schema is not None and of_schema.low is not None:
            ends = (of_schema.low, of_schema.high)
        if None in ends:
            ends = (-(estimator.target_bound or 1.0), estimator.target_bound or 1.0)
        low, high = map(float, ends)
        # Counts are at least 0.
        return (high, max(0.0, low)) if "Poisson" in type(estimator).__name__ else (high, low)
    if getattr(estimator, "classes", None) is not None:
        return tuple(estimator.classes)[::-1]
    if of_schema is not None:
        return tuple(of_schema.classes or (of_schema.positive, of_schema.negative))
    return (1, -1)


def turned(norm: float, degrees: float) -> tuple[Array, Array]:
    """Two rows of this length, at this angle on either side of the second axis turned down."""
    angle = np.radians(degrees)
    along, across = norm * _EDGE * np.cos(angle), norm * _EDGE * np.sin(angle)
    return np.array([across, -along]), np.array([-across, -along])


# Worst neighbours: two data sets that differ in one row, or in the rows of one person, and can be told apart best.
#
# Candidates are made from public facts: rows at the edge of the bound, labels that are turned, and other rows that push the
# weights to where slopes are steep. Noise decides between them where the density is not known, so a few releases are made.

_SIZES = (20, 50, 100, 300, 1000, 3000, 10_000)
"""Numbers of rows that are tried, until a plan is possible."""
_MANY = 300
"""So many rows are tried too where the density is known: they can push weights to where slopes are steep."""
_PILOT = 30
_ANGLES = (80.0, 60.0, 40.0)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two neighbouring data sets.

    Attributes
    ----------
    name : str
        What differs.
    first, second : tuple
        The arguments of `fit`, such as (X, y).
    statistic : callable or None
        The logarithm of the likelihood ratio of what a fit publishes, (n, columns) -> (n,), where it is known.
    """

    name: str
    first: tuple[object, ...]
    second: tuple[object, ...]
    statistic: Statistic | None = None


def worst_neighbours(estimator: Any, n_rows: int | None = None) -> Pair:
    """The neighbours that can be told apart best, of those that the parameters of an estimator suggest.

    Parameters
    ----------
    estimator : estimator
        One of this package: loss, bounds, schema, relation and mechanism decide. Any other classifier or regressor with
        `fit(X, y)`: a few usual suspects are tried, such as a very long row and the only row of a class.
    n_rows : int or None
        Number of rows of the larger data set. None takes the smallest at which a plan is possible, or the upper end of
        `n_rows_bounds`.

    Returns
    -------
    Pair

    Raises
    ------
    ParameterError
        If no fit with these parameters is possible.

    Notes
    -----
    Guarantee: none. The rows are made up from public facts, and no row of a user is read.

    Source: Nasr et al. (2021), "Adversary instantiation"; the densities are those of the proofs.
    """
    n_rows = None if n_rows is None else checked_count("n_rows", n_rows, 2)
    made = unfitted(estimator)
    if not is_own(estimator):
        return max(_suspects(estimator, n_rows or 60), key=lambda pair: _by_pilot(estimator, pair))
    problem: ConfideError | None = None
    pairs: list[tuple[float, Pair]] = []
    bounds: Any = getattr(estimator, "n_rows_bounds", None)
    sizes = _SIZES if bounds is None else (int(bounds[1]),)
    for size in sizes if n_rows is None else (n_rows,):
        if pairs and (size < _MANY or pairs[0][1].statistic is None):
            continue
        for pair in candidates(made, size):
            try:
                pairs.append(_judged(made, pair))
            except ConfideError as error:
                problem = error
        if pairs and size >= _MANY:
            break
    if pairs:
        return max(pairs, key=lambda judged: judged[0])[1]
    raise ParameterError(f"no fit of {type(estimator).__name__} with these parameters could be audited: {problem}")


def candidates(estimator: Any, n: int) -> Iterator[Pair]:
    """Pairs of data sets with at most n rows."""
    inner = getattr(estimator, "estimator", estimator)
    domain, times = domain_of(inner), int(getattr(inner, "max_rows_per_person", 1))
    neighbours = Neighbours.parse(getattr(inner, "neighbours", "replace-one"))
    one, other = domain.targets[0], domain.targets[1]
    quiet = [(domain.rest, domain.targets[k % len(domain.targets)]) for k in range(n - times)]
    edge, opposite = domain.corners[:2]
    changes = {"the target of a row": (edge, other), "a whole row": (opposite, other)}
    for name, changed in (changes | {"the row beside its target": (opposite, one)}).items():
        yield _pair(name, domain, quiet, (edge, one), changed, neighbours, times)
    if domain.pushing:
        norm, pushed = float(np.linalg.norm(np.asarray(edge))), [(edge, one) for _ in quiet]
        for angle in _ANGLES:
            first, second = turned(norm, angle)
            name = f"a row at {angle:g} degrees, against the others"
            yield _pair(name, domain, pushed, (first, one), (second, one), neighbours, times)


def _pair(name: str, domain: Domain, others: list[Any], row: Any, changed: Any, neighbours: Neighbours, times: int) -> Pair:
    first = domain.data([*others, *[row] * times], times)
    if neighbours is Neighbours.REPLACE_ONE:
        return Pair(name, first, domain.data([*others, *[changed] * times], times))
    return Pair(f"{name}, present or not", first, domain.data(others))


def _judged(estimator: Any, pair: Pair) -> tuple[float, Pair]:
    """How well a pair can be told apart, and the pair with its likelihood ratio if that is known."""
    sides = []
    for data in (pair.first, pair.second):
        shown: list[Any] = []
        heard = overheard(lambda data=data, shown=shown: shown.append(fitted_values(unfitted(estimator), data)))  # type: ignore[misc]
        # The density is of use if what a fit shows is what one mechanism released, in another order.
        raw = raw_weights(heard[0].plan, shown[0]) if len(heard) == 1 and is_known(heard[0].plan) else None
        if raw is not None and heard[0].release and np.allclose(raw, heard[0].release.weights, rtol=1e-12, atol=0.0):
            sides += heard
    if len(sides) < 2:
        return _by_pilot(estimator, pair), pair
    ratio, plan = likelihood_ratio(*sides), sides[0].plan
    ends = [float(ratio(minimiser(side.plan, side.source))[0]) for side in sides]
    return ends[0] - ends[1], replace(pair, statistic=lambda shown: ratio(_raw(plan, shown)))


def raw_weights(plan: Any, shown: Any) -> Array | None:
    """(1, D): the weights that a mechanism released, from what a fit shows; None if that has another length."""
    shown = np.atleast_2d(np.asarray(shown, dtype=np.float64))
    width = plan.problem.loss.constants.n_outputs * (plan.problem.n_features + 1)
    return _raw(plan, shown) if shown.shape[1] == width else None


def _raw(plan: Any, shown: Array) -> Array:
    """(n, D): the same for several fits, whose coefficients stand before their intercepts."""
    problem = plan.problem
    outputs, columns = problem.loss.constants.n_outputs, problem.n_features
    coef = shown[:, : outputs * columns].reshape(-1, outputs, columns)
    if problem.intercept > 0.0:
        coef = np.concatenate([coef, shown[:, outputs * columns :, None] / problem.intercept], axis=2)
    return coef.reshape(len(shown), -1)


def _by_pilot(estimator: Any, pair: Pair) -> float:
    """How well a pair can be told apart by a few releases."""
    return separation_of_samples(*(outcomes_of(estimator, data, _PILOT) for data in (pair.first, pair.second)))


def _suspects(estimator: Any, n: int) -> Iterator[Pair]:
    """Neighbours with which libraries were caught before, for an estimator that is not ours."""
    from sklearn.base import is_regressor

    angles = np.arange(n) * 2.399963  # the golden angle: points spread evenly, without any draw
    X = np.column_stack([np.cos(angles), np.sin(angles)]) * np.sqrt((np.arange(n) + 0.5) / n)[:, None]
    y = X[:, 0] + 0.5 * X[:, 1] if is_regressor(estimator) else (X[:, 0] > 0.0).astype(int)
    changes: dict[str, tuple[Any, Any]] = {
        "the target of a row": (X[-1], -y[-1] if is_regressor(estimator) else 1 - y[-1]),
        "a row a thousand times as long": (1000.0 * X[-1], y[-1]),
        "a row of zeros": (0.0 * X[-1], y[-1]),
    }
    if is_regressor(estimator):
        changes["a very large target"] = (X[-1], 1000.0)
    else:
        changes["a label that no other row has"] = (X[-1], 2)
    for name, (row, target) in changes.items():
        other = X.copy(), y.copy()
        other[0][-1], other[1][-1] = row, target
        yield Pair(name, (X, y), other)
    if not is_regressor(estimator):
        alone = np.zeros_like(y)
        alone[-1] = 1
        yield Pair("the only row of its class", (X, alone), (X, np.zeros_like(y)))
    order = np.argsort(X[:, 0], kind="stable")
    turned_rows = X[order]
    turned_rows[0] = -turned_rows[0]
    turned_data = turned_rows[::-1].copy(), y[order][::-1].copy()
    yield Pair("the order of the rows, which one row decides", (X[order], y[order]), turned_data)


def worst_pair(
    estimator: Any,
    *,
    n_fits: int = 2000,
    n_rows: int | None = None,
    budget: Budget | float | None = None,
    confidence: float = 0.99,
) -> AuditResult:
    """Fit an estimator many times to either of its worst neighbours, and bound from below what was spent.

    Parameters
    ----------
    estimator : estimator
        One of this package, or any classifier or regressor with `fit(X, y)`. It is copied and stays as it is. Copies of ours
        get fresh noise and charge no ledger.
    n_fits : int, default 2000
        Number of fits to either data set, at least 40.
    n_rows : int or None
        Number of rows, see `worst_neighbours`.
    budget : budget, float or None
        What is claimed; None takes the estimator's own.
    confidence : float in (0, 1), default 0.99
        The lower bound is too high with at most probability 1 - confidence.

    Returns
    -------
    AuditResult

    Raises
    ------
    ParameterError
        If an argument is outside its range, or no fit with these parameters is possible.

    Notes
    -----
    Guarantee: none. The rows are made up from public facts, and no row of a user is read. An attack can refute a claim of
    privacy and can never prove one.

    Source: Jagielski, Ullman and Oprea (2020); Nasr et al. (2021).

    Examples
    --------
    >>> import confide
    >>> model = confide.LogisticRegression(1.0, alpha=1.0)
    >>> found = confide.audit.worst_pair(model, n_fits=100)
    >>> found.refuted
    False
    """
    pair = worst_neighbours(estimator, n_rows)
    how: dict[str, Any] = {"n_releases": n_fits, "statistic": pair.statistic, "confidence": confidence}
    name = f"{type(estimator).__name__}, {pair.name}"
    return attack(estimator, pair.first, pair.second, budget=claim_of(estimator, budget), name=name, **how)


# What the command line audits.


def audited(target: Any, budget: Budget | None, n_releases: int, confidence: float) -> AuditResult:
    """Attack an estimator at its worst pair, or what a file of Python holds.

    Parameters
    ----------
    target : estimator or str
        An estimator; or "module:name" of an estimator or of its class; or the path of a file of Python that has the name
        `release`, a callable or an estimator. A callable needs `first` and `second`, which an estimator may have too.
    budget : Budget or None
        What is claimed; None takes the estimator's own.
    n_releases : int
        Number of releases from either data set.
    confidence : float
        Of the lower bound.

    Raises
    ------
    FileError
        If the file or the module cannot be read.
    ParameterError
        If it does not hold what is needed.
    """
    name = target if isinstance(target, str) else None
    holder = target if name is None else named(name)
    release = getattr(holder, "release", None) if name and name.endswith(".py") else holder
    if release is None:
        raise ParameterError(f"{target} has no name release: a callable of a data set, or an estimator.")
    first, second = (getattr(holder, side, None) for side in ("first", "second"))
    if first is not None and second is not None:
        return attack(release, first, second, budget=budget, n_releases=n_releases, confidence=confidence, name=name)
    if not hasattr(release, "fit"):
        raise ParameterError(f"{target} needs the names first and second beside release: the two neighbouring data sets.")
    return worst_pair(release, n_fits=n_releases, budget=budget, confidence=confidence)
