"""The parameters that several estimators share. The type, default and description of each stand here, once.

Estimators are dataclasses. So `__init__` has explicit keyword arguments, as scikit-learn requires, and they need not be
repeated in each class. `intake/parameters.py` checks each parameter.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar, cast, dataclass_transform

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from confide.accounting.ledger import Batch, Ledger
from confide.errors import ParameterError
from confide.features.schema import Schema
from confide.known_words import closest
from confide.privacy.budgets import Budget, Neighbours

# Parameters that an estimator does not have: the name of ours where scikit-learn or diffprivlib have another one.
#
# A parameter that cannot be honoured is refused, and the refusal says what to write in its place.

_OURS = {
    "C": (("alpha",), "use alpha: alpha = 1 / (C n), where n is the number of rows"),
    "penalty": (
        ("alpha",),
        (
            "every model has a ridge (L2), which the proof of privacy needs, and alpha is its strength; for "
            "penalty='elasticnet' or 'l1' give a linear model l1_ratio, the share of the L1 penalty, below 1"
        ),
    ),
    "l1_ratio": (("alpha",), "this model has a ridge (L2) alone, of strength alpha; linear models have l1_ratio"),
    "reg_lambda": (("alpha",), "use alpha, the ridge of the mean objective"),
    "gamma": (("length_scale",), "use length_scale: gamma = 1 / (2 length_scale^2)"),
    "n_components": (("n_features",), "use n_features, the number of random features"),
    "multi_class": (("multiclass",), "use multiclass: 'softmax' or 'one-vs-rest'"),
    "epsilon": (("budget",), "use budget: a number is an epsilon, and budget=confide.ApproxDP(epsilon, delta) has a delta"),
    "delta": (("budget",), "use budget: budget=confide.ApproxDP(epsilon, delta)"),
    "rho": (("budget",), "use budget: budget=confide.ZCDP(rho)"),
    "data_norm": (("row_norm",), "use row_norm, the norm to which every row is clipped"),
    "accountant": (("ledger",), "use ledger: ledger=confide.Ledger(limit=...)"),
    "bounds_X": (("bounds", "schema"), "declare public bounds of the columns: schema=, or bounds= of an additive model"),
    "bounds_y": (("target_low", "target_high"), "use target_low and target_high: targets are clipped to that range"),
    "feature_types": (("schema",), "use schema, which says what each column holds"),
    "inference_share": (("intervals",), "use intervals=True: the sums that are released anyway give intervals"),
    "max_bins": (("knots",), "use knots: how many places a curve may bend at"),
    "param_distributions": (("param_grid",), "use param_grid, a dict of public values"),
    "cv": (("held_out",), "the search holds out one part of the rows at random; held_out says how large it is"),
    "n_iter": (("expected_tries",), "use expected_tries, the mean number of tries of method='repeated'"),
    "scoring": (("param_grid",), "the search counts mistakes, because one row changes their number by at most 1"),
}
"""For the name of another library: the parameters of ours, of which one must be there, and the advice."""

_SOLVER = "the solver stops where the guarantee needs it, so leave this out"
_NOT_HERE = {
    "max_iter": _SOLVER,
    "tol": _SOLVER,
    "solver": "the solver is chosen for you, and the released model does not depend on it, so leave this out",
    "dual": "the solver is chosen for you, and the released model does not depend on it, so leave this out",
    "warm_start": "a fit never starts from an earlier one; give the earlier model as prior=",
    "verbose": "how a fit goes depends on the rows, so it is not told; confide.progress counts passes over the rows",
    "refit": "the search releases one model, which it has trained already, so leave this out",
    "return_train_score": "scores of candidates stay private, so leave this out",
    "error_score": "a search that cannot be made is refused before anything is charged, so leave this out",
    "pre_dispatch": "candidates are trained one after the other, so leave this out",
    "probability": "a support vector machine gives no probabilities; LogisticRegression and AdditiveClassifier do",
    "decision_function_shape": "with three or more classes, each class has a score against all others, so leave this out",
    "break_ties": "with three or more classes, each class has a score against all others, so leave this out",
    "n_jobs": "its own work has one thread; n_jobs is a parameter of models, for the threads that share the rows",
    "degree": "there is no polynomial kernel; knots and interactions of a schema give curves and products",
    "coef0": "there is no polynomial kernel; knots and interactions of a schema give curves and products",
    "kernel": "this model is linear; KernelSVC has kernels",
    "gamma": "this model has no kernel; KernelSVC has one, with length_scale: gamma = 1 / (2 length_scale^2)",
    "knots": "this model draws straight lines; AdditiveClassifier and AdditiveRegressor have knots, and so may a schema",
    "positive": "weights cannot be forced to be positive; monotone= of an additive model makes effects rise or fall",
    "normalize": "columns are never scaled by what the rows hold; declare public bounds in a schema",
    "copy_X": "the rows that are given are never changed, so leave this out",
    "random_state": "this estimator draws nothing that a seed could fix, so leave this out",
    "row_norm": "the bound on rows follows from the columns here, so leave this out",
    "inference_share": "this model has no intervals; classifiers, HuberRegressor, PoissonRegressor and additive models do",
    "sample_weight": "weights belong to the rows: fit(X, y, sample_weight=...)",
    "weights": "weights belong to the rows: fit(X, y, sample_weight=...), or the weight of a schema",
    "freq_weights": "weights belong to the rows: fit(X, y, sample_weight=...), or the weight of a schema",
    "fpc": "population_size, of models with intervals, is the public number of units of the population",
    "clusters": "sums by cluster are not released; the person of a schema and cluster_effect make intervals wider instead",
    "strata": "sampling errors make no use of strata, which can make them too large and not too small, so leave this out",
    "population_size": "this model has no intervals, for which alone it matters",
    "cluster_effect": "this model has no intervals, for which alone it matters",
    "shrinking": _SOLVER,
    "cache_size": _SOLVER,
    "n_iter_no_change": _SOLVER,
    "early_stopping": _SOLVER,
    "selection": _SOLVER,
}
"""For the name of another library that has no counterpart: why, and what to do."""


def advice_on(name: str, kind: str, parameters: Collection[str]) -> str:
    """What to say of a parameter that an estimator does not have.

    Parameters
    ----------
    name : the parameter that was given
    kind : the name of the estimator
    parameters : the names of the parameters that it has

    Returns
    -------
    str
        Two sentences: that the parameter is not there, and what to write in its place.
    """
    ours, advice = _OURS.get(name, ((), ""))
    if any(each in parameters for each in ours):
        return f"{name}= is not a parameter of {kind}: {advice}."
    if name in _NOT_HERE:
        return f"{name}= is not a parameter of {kind}: {_NOT_HERE[name]}."
    close = closest(name, parameters)
    meant = f"did you mean {close}=?" if close else f"it has {', '.join(sorted(parameters))}."
    return f"{name}= is not a parameter of {kind}: {meant}"


Stores = TypeVar("Stores", bound=Callable[..., None])


def with_advice(stores: Stores) -> Stores:
    """An `__init__` with the same signature, whose refusal of an unknown parameter says what to write in its place.

    Parameters
    ----------
    stores : the `__init__` of an estimator
    """
    known = frozenset(inspect.signature(stores).parameters) - {"self"}

    @wraps(stores)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807  # it takes the place of one
        for name in kwargs:
            if name not in known:
                raise TypeError(advice_on(name, type(self).__name__, known))
        stores(self, *args, **kwargs)

    return cast("Stores", __init__)


_MARK = "other parameters : those that linear models share"
"""In a docstring, this line is replaced by the descriptions of all shared parameters that the docstring leaves out."""
_DESCRIPTIONS = {
    "budget": """float, PureDP, ApproxDP or ZCDP, default 1.0
    What the fit may cost. A number is the epsilon of pure differential privacy. ``float("inf")`` gives the model without
    privacy, and its guarantee says so.""",
    "alpha": """"auto" or float, default "auto"
    Ridge of the mean objective, positive and at most 1e12. "auto" depends only on public facts: number of rows and of
    features, budget, and bound on rows. It is raised if the proof of privacy needs more, and the plan says so. For two
    classes under a pure budget, columns of a schema with more noise than others may have a larger ridge, and `alpha_` is
    the least; a number is the ridge of all columns.""",
    "l1_ratio": """float, default 0.0
    Share of an l1 penalty in `alpha`, from 0 to below 1 (the elastic net): the penalty is alpha (l1_ratio |w|_1 + (1 -
    l1_ratio) / 2 |w|^2), and the intercept has the ridge part alone. Above 0, weights no larger than what noise alone makes
    are released as exactly 0, and `support_` says which are not. With a schema the l1 penalty is on the weight of each
    encoded column, such as each level of a category. The noise is then on the weights or in gradients, not in the
    objective; there are no intervals and no prior.""",
    "schema": """Schema or None
    Public knowledge about raw columns. With a schema, X is a pandas or Polars frame and columns are matched by name. The
    bound on rows follows from the schema, and the noise is shaped by its columns.""",
    "row_norm": """float, row bound or None
    Every row is clipped to this L2 norm; None means 1.0. It is never inferred from the rows. It cannot be given together
    with a schema. A `BallBound`, `BoxBound` or `GroupBound` clips rows in its own way and shapes the noise.
    ``float("inf")`` needs an infinite budget.""",
    "penalty": """"smooth", dict, array, StronglyConvex or None, default None
    What is penalised in place of |w|^2: a positive definite quadratic form w' P w, or a strongly convex function of your own
    (`StronglyConvex`), for noise in the objective or on the weights. A dict names columns and gives each a
    strength, from 1e-6 to 1e6, or a `Smooth`, which penalises differences of neighbouring weights: of a curve with knots, or
    of levels in the order in which the schema lists them. Columns that are not named have strength 1. "smooth" is `Smooth()`
    for all columns with knots. An array has a strength for each column as it enters the fit, or is a symmetric matrix
    (d, d). The noise is shaped by the same form. With a schema the bound on rows follows from both; otherwise rows are
    clipped to `row_norm`, a number, as without it.""",
    "fit_intercept": """bool, default True
    Whether the model has an intercept. It is a penalised weight of a constant that is appended to every row.""",
    "intercept_scaling": """float, default 1.0
    The constant that is appended to every clipped row, positive. A larger constant shrinks the intercept less and brings
    more noise. If a typical row does not have norm about 1, take a constant of about `row_norm`: beside rows of norm 1000,
    a constant of 1 cannot shift the scores, and beside rows of norm 0.001 it gets nearly all of the noise.""",
    "target_bound": """float or None, default None
    Required by `fit` and `plan` unless the schema has a target of numbers; positive. Every target is clipped to
    [-target_bound, target_bound], in the target's own units. With a schema's target it is clipped to the range there, and
    to this bound if one is given. The bound is never inferred from the targets; scale and centre them by public knowledge.
    Targets beyond the bound are clipped without a word, even if all are: a refusal or a warning would tell something about
    the rows. So compare the unit of the bound with that of the targets before you fit.
    ``float("inf")`` needs an infinite budget.""",
    "target_low": """float or None, default None
    With `target_high`, in place of `target_bound` and of a schema's target: the public ends of the range of the targets, to
    which they are clipped. A range far from 0, such as 1930 to 2010, needs no rescaling: if its middle is at least 1.5
    half-widths of the range away from 0, the fit subtracts it from every target and adds it to `intercept_`. So predictions
    and coefficients are in the target's own units. That is done for the range of a schema's target too, but not for counts,
    for models without an intercept, and for a loss of your own.""",
    "target_high": """float or None, default None
    The upper end of that range.""",
    "classes": """sequence of labels or None
    The label domain, 2 to 100 labels. None means: the target of the schema; without a schema {0, 1}, {-1, 1} or
    {False, True} if the labels fit; otherwise the labels that are present, which the guarantee lists as an assumption.""",
    "mechanism": """{"auto", "objective", "output", "output-laplace", "gradient"}, default "auto"
    Where the noise is added: to the objective ("objective"), to the weights ("output"), or to each of a fixed number of sums
    of clipped slopes ("gradient", for `ApproxDP` and `ZCDP`). "auto" is "objective" if the loss is smooth, but "gradient"
    for logistic losses, for several classes and for regressions where public facts say that it errs less; for three or more
    classes and a pure budget it takes the weights if the noise in the objective would be much larger.
    "output-laplace" is the PrivateSVM of Rubinstein et al., with independent Laplace noise and pure privacy, for
    comparison.""",
    "neighbours": """{"replace-one", "add-or-remove-one"}, default "replace-one"
    Which data sets the guarantee calls neighbours: those that differ in the values of one row, or in its presence. With
    "add-or-remove-one" the number of rows is private.""",
    "n_rows_bounds": """(int, int) or None
    Public lower and upper bound on the number of rows. Required with "add-or-remove-one", where the number is private, and
    refused otherwise. The ridge of the summed objective is alpha times the lower bound.""",
    "max_rows_per_person": """int, default 1
    A public cap k on the rows of one person. The guarantee then protects a person, by group privacy. If the schema names a
    column of persons, k rows of each person are drawn at random in every fit. Otherwise the cap is an assumption.""",
    "class_weight": """dict or None
    A public weight for each class, label: number between 1e-9 and 1e9. The noise grows with the largest weight. "balanced"
    is refused, because it would be learned from the labels.""",
    "max_sample_weight": """float, default 1.0
    A public cap on the `sample_weight` of a row in `fit`, between 1e-9 and 1e9. The noise grows with it. The mean of the
    losses is taken over the number of rows, not over the sum of the weights.""",
    "mean_sample_weight": """float or None, default None
    The mean of the `sample_weight` of rows, if it is public, above 0 and at most `max_sample_weight`. Plans of intervals use
    it: noise counts max_sample_weight / mean_sample_weight times as much as for equal weights. None means 1, or the cap if
    that is smaller. The noise does not depend on it.""",
    "cluster_effect": """float or None, default None
    The design effect of clustering, a public number of at least 1, by which intervals multiply the variance due to sampling
    where rows depend on each other: 1 + (m - 1) r for clusters of m rows with intraclass correlation r. Unequal weights are
    not part of it; they are accounted for in any case. None means `max_rows_per_person`, which is enough for any dependence
    of the rows of a person.""",
    "population_size": """int or None, default None
    The public number of units of the population from which the rows are a sample without replacement. Intervals are then for
    this population as it is: the variance due to sampling is multiplied by the finite-population correction, that due to the
    noise is not. With `sample_weight` it needs `mean_sample_weight`, and weights that are inverse chances of being in the
    sample, up to one factor. None is for a large population, or for the process that made it. It changes nothing about
    privacy.""",
    "knots": """"auto", int or dict, default "auto"
    Knots of number columns that the schema says nothing about: how many, evenly spaced on the column's own scale, 0 for a
    straight line. A dict gives a number or a list of knots by the name of the column. "auto" chooses a number from public
    facts: number of rows, budget, and columns; regressions without intervals then have curves beside straight lines. What
    the schema says is kept.""",
    "interactions": """list, "pairs", "all" or "auto", default ()
    Which columns have effects that depend on each other, beside the interactions of the schema. In a list, each entry names
    two or more columns, as in [["age", "hours"]]: products of coarse effects of these columns enter the model. "pairs" takes
    all pairs of columns that have few products. "all" appends random Fourier features of the encoded row, which are a smooth
    function of all columns together; there are no intervals then. "auto" is "all" where public facts favour it: most columns
    are numbers, and the noise is small beside the rows. Otherwise it is none. The schema of the fitted model says what was
    chosen.""",
    "monotone": """dict or None
    Columns whose effect may only rise or only fall, as {"age": "up"}. The released curve is replaced by the nearest monotone
    one, in the metric of its noise if intervals were bought. This is post-processing: it costs nothing, and it helps only
    where it is true. For two classes the effect is that in favour of the class that is shown.""",
    "bounds": """(low, high), list of such pairs, dict of pairs, or None
    Instead of a schema, public bounds of the columns of an array of numbers: one pair for all, a pair for each, or pairs by
    the names of columns. Numbers outside are clipped. The bounds are never inferred from the rows.""",
    "inference_share": """float or "auto", default 0.0
    The part of the budget that is kept for intervals, from 0 to 0.9. With it, `conf_int`, `summary` and `uncertainty` say
    how far the coefficients may lie from those of the population. "auto" takes the share at which the intervals are
    expected to be narrowest, by public facts. Under (epsilon, delta), weights and the sums that intervals are made from have
    one account where that is better. The share is then one of the squared ratio of a row's effect to the noise, because
    these squares add up there. If the intervals could not be trusted, the fit is refused before anything is charged.""",
    "interest": """list of str or None, default None
    Columns whose coefficients are to have intervals, such as ["treatment"]. With a schema a category gives a coefficient for
    each level, against the reference. The intervals are for coefficients without a ridge. A part of the budget is kept for
    them, with shares that follow from public facts. They are far shorter than those of `inference_share`, which are for all
    coefficients and cannot be asked for beside them. For two classes. If the intervals could not be trusted, the fit is
    refused before anything is charged.""",
    "risk_differences": """bool, default False
    Whether differences of risks for the columns of `interest` are to have intervals too: how much the probability of the
    outcome changes on average over the rows, if every row has a level in place of the reference, or a number one unit
    higher. They cost a small part of the budget, for sums of probabilities over the rows. All rows count alike. With a
    column of persons they need "add-or-remove-one", under which the number of the rows that count is released.""",
    "centre": """"auto" or False, default "auto"
    Whether a small part of the budget may find the middle of the rows before the fit. Rows that were moved by it are
    shorter, so less noise hides one of them. "auto" decides by public facts; the plan and the guarantee say what it decided.
    False keeps the whole budget for the weights.""",
    "match_mean": """"auto" or False, default "auto"
    Whether a small part of the budget may make predicted counts right in the mean. The clipped loss and the ridge draw them
    below it. Two noisy sums, made after the weights, give one factor for all predictions, and the intercept moves by its
    logarithm. "auto" decides by public facts; the plan and the guarantee say what it decided. False keeps the whole budget
    for the weights.""",
    "prior": """fitted model, path of one, pair (coef, intercept), PublicPrior or None
    Public weights towards which the ridge pulls, in place of 0. The nearer they are to those of the rows, the better is a
    fit with a small budget. A model must have a guarantee, or be declared public (`PublicPrior`), and its columns must be
    encoded as here. Coefficients are those of the columns as they enter the fit. They must not have been made from these
    rows, unless by a release whose cost is counted as well.""",
    "ledger": """Ledger, batch of one, or None
    Charged before a row is used. None: the fit is charged nowhere.""",
    "n_jobs": """int or None
    Number of threads that share the rows. None means 1, or what `joblib.parallel_config` says; -1 means one for each core.
    The released model is the same to the bit whatever the number. Passes of the compiled kernel and the reading of columns
    run side by side. NumPy's short calls hold a lock, so its passes gain little.""",
    "random_state": """int or None
    For tests only: a seed makes the noise reproducible and the guarantee void.""",
}
"""Type and description of each shared parameter, as they stand in a docstring."""

Class = TypeVar("Class")


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
def estimator(cls: type[Class]) -> type[Class]:
    """Make a class an estimator: give it an `__init__` that stores its parameters, and complete its docstring.

    As scikit-learn requires, `__init__` has explicit keyword arguments, checks nothing and changes nothing.
    """
    made = dataclass(eq=False, repr=False, kw_only=True)(cls)
    made.__init__ = with_advice(made.__init__)  # type: ignore[method-assign]  # the one that dataclass has just written
    if made.__doc__ is not None and _MARK in made.__doc__:
        text = inspect.cleandoc(made.__doc__)
        shared = [name for name in inspect.signature(made).parameters if name in _DESCRIPTIONS]
        missing = [name for name in shared if f"\n{name} :" not in text]
        entries = (f"{name} : {_DESCRIPTIONS[name]}" for name in missing)
        made.__doc__ = text.replace(_MARK, "\n".join(entries))
    return made


class AdviceOnParameters:
    """An estimator whose `set_params` says what to write in place of a parameter that it does not have."""

    def set_params(self, **params: Any) -> Any:
        """Set parameters by name.

        Parameters
        ----------
        **params : parameters of this estimator, or ``part__parameter`` for those of a part
            As in scikit-learn.

        Returns
        -------
        self

        Raises
        ------
        ParameterError
            If the estimator has no such parameter. Nothing was set.
        """
        known = inspect.signature(type(self)).parameters
        for name in params:
            if "__" not in name and name not in known:
                # The first words are scikit-learn's.
                raise ParameterError(f"Invalid parameter {name!r}. {advice_on(name, type(self).__name__, known)}")
        return super().set_params(**params)  # type: ignore[misc]  # defined by scikit-learn's BaseEstimator


@estimator
class ModelParameters(AdviceOnParameters):
    """Parameters of every linear model."""

    budget: float | Budget = field(default=1.0, kw_only=False)
    alpha: float | str = "auto"
    schema: Schema | None = None
    fit_intercept: bool = True
    intercept_scaling: float | str = 1.0
    mechanism: str = "auto"
    centre: str | bool = "auto"
    neighbours: str | Neighbours = "replace-one"
    n_rows_bounds: tuple[int, int] | None = None
    max_rows_per_person: int = 1
    prior: Any = None
    ledger: Ledger | Batch | None = None
    n_jobs: int | None = None
    random_state: int | None = None


@estimator
class SparsityParameter:
    """The share of an l1 penalty, for models of the columns as they are given or encoded."""

    l1_ratio: float = 0.0

    @property
    def support_(self) -> NDArray[np.bool_]:
        """Which coefficients are not 0, (n_coefficients,); for three or more classes, not 0 for some class.

        It follows from `coef_`, so it costs no privacy.
        """
        check_is_fitted(self)
        found: NDArray[np.bool_] = (np.atleast_2d(self.coef_) != 0.0).any(axis=0)  # type: ignore[attr-defined]  # fitted
        return found


@estimator
class RowNormParameter:
    """The bound on rows, for models in which the user chooses it."""

    row_norm: Any = None


@estimator
class PenaltyParameter:
    """What is penalised in place of |w|^2, for models whose columns have a meaning."""

    penalty: Any = None


@estimator
class ClassParameters:
    """Parameters of every classifier."""

    classes: Any = None
    class_weight: Mapping[Any, float] | None = None


@estimator
class SampleWeightParameter:
    """The cap on the weights of rows, for models whose `fit` takes such weights."""

    max_sample_weight: float = 1.0
    mean_sample_weight: float | None = None


@estimator
class TargetParameter:
    """The bound on targets, or both ends of their range, for every regressor."""

    target_bound: float | None = None
    target_low: float | None = None
    target_high: float | None = None


@estimator
class MeanParameter:
    """Whether predicted counts are made right in the mean, for models of counts."""

    match_mean: str | bool = "auto"


@estimator
class AdditiveParameters:
    """The columns of additive models, their knots and their interactions."""

    knots: Any = "auto"
    interactions: Any = ()
    monotone: Any = None
    bounds: Any = None


@estimator
class InterestParameter:
    """The columns whose coefficients have intervals of their own, for models with one score."""

    interest: Any = None
    risk_differences: bool = False


@estimator
class DesignParameters:
    """What is declared about the sample, for models that have intervals."""

    cluster_effect: float | None = None
    population_size: int | None = None


@estimator
class IntervalsParameter(DesignParameters):
    """The share of the budget that is kept for intervals, for models that release second moments for them."""

    inference_share: float | str = 0.0
