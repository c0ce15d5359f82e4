"""The parameters of all estimators: one table, with one row for each.

A row says all that is known of a parameter: how its value is checked and refused, its entry in docstrings, and its option of
the command line. What type checkers must see is written once more, as a field of a class in `estimators/parameters.py`, and
a test compares the two. Nothing here is heavy to import, because the help of the command line is made of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from confide.errors import ParameterError, as_float
from confide.known_words import suggestion, words_of

EVERY_MODEL = "ModelParameters"
"""The group of what every model has."""
COMMAND_LINE = "command line"
"""The group of options that describe a model and are no parameter of it."""
_ABOVE_ZERO = math.nextafter(0.0, 1.0)
_BELOW_ONE = math.nextafter(1.0, 0.0)
_SMALLEST, _LARGEST = 2.0**-300, 2.0**300


@dataclass(frozen=True, slots=True)
class Parameter:
    """A row of the table.

    Attributes
    ----------
    name : the parameter
    kind : what its values are beside those of `also`: float, int, bool, or str for the words of `also` alone. Where it is
        another type, what uses the parameter checks it.
    group : the class that has its written signature; empty for what single estimators have, each with its own text
    default : its value by default
    also : words, None, or infinity, which are taken as they are
    low, high : the ends of the range, which are values themselves. A switch of which True is no value has `high` False.
    refused : values within the range that are refused
    must : what a refusal says that it must be; {near} is the place of a question about a misspelled word. Where it is empty,
        the row does not say all that a value must be.
    option : the option of the command line, and what stands for its value in the help; empty if it has none
    help : the text of the option
    text : type and description, as they stand in a docstring
    """

    name: str
    kind: type
    group: str = ""
    default: object = None
    also: tuple[object, ...] = ()
    low: float = -math.inf
    high: float = math.inf
    refused: tuple[object, ...] = ()
    must: str = ""
    option: str = ""
    help: str = ""
    text: str = ""

    @property
    def flag(self) -> str:
        """The option as it is typed, such as --alpha; for a switch, the one that turns it on."""
        return self.option.partition(" ")[0].partition("/")[0]

    @property
    def key(self) -> str:
        """The name of the option as a key of a study file, such as n_rows_bounds."""
        return self.name if self.group == COMMAND_LINE else self.flag.removeprefix("--").replace("-", "_")

    def checked(self, value: Any) -> Any:
        """The value in the type that the rest computes with.

        Raises
        ------
        ParameterError
            If it is none of the values of this parameter.
        """
        if (value is None or isinstance(value, str)) and value in self.also:
            return value
        is_flag = type(value).__name__ in ("bool", "bool_")
        numbers = Integral if self.kind is int else Real
        is_kind = is_flag if self.kind is bool else self.kind in (float, int) and isinstance(value, numbers) and not is_flag
        if is_kind:
            # Converted first: NumPy rounds the ends of a range to the precision of what it compares with them.
            number = as_float(value) if self.kind is float else self.kind(value)
            if (self.low <= number <= self.high or number in self.also) and number not in self.refused:
                return number
        raise ParameterError(self.refusal(value))

    def refusal(self, value: object) -> str:
        """What is said of a value that is none."""
        words = [word for word in self.also if isinstance(word, str)]
        if self.kind is str:
            return f"{self.name} must be one of {words_of(words, value)}."
        return f"{self.name} must be {self.must.replace('{near}', suggestion(value, words))}."


# fmt: off
_ROWS = (
    Parameter(
        "kind", str, group=COMMAND_LINE, default="additive",
        also=("additive", "logistic", "svm", "kernel-svm", "huber", "poisson", "ridge", "erm"),
        option="--model",
        help="additive: a curve for each number column, to predict classes or numbers. Straight lines: logistic and svm "
             "for classes, huber, poisson and ridge for numbers, erm for any --loss. kernel-svm: random features of a "
             "kernel.",
    ),
    Parameter(
        "loss", str,
        also=("auto", "logistic", "logistic_hinge", "huber_hinge", "smooth_hinge", "hinge", "huber", "clipped_squared",
              "squared", "poisson", "quantile", "absolute"),
        option="--loss NAME",
        help="What is minimised. For classes, additive: auto, logistic, logistic-hinge; svm and kernel-svm: auto, a hinge;"
             " erm: logistic or a hinge. For numbers, additive: huber, squared or, for counts, poisson; huber: huber or "
             "clipped-squared; erm: these, poisson, quantile and absolute.  [default: that of the model]",
    ),
    Parameter(
        "knots", object, group="AdditiveParameters", default="auto",
        option="--knots auto|N|A:N,...",
        help="Knots of the curves that the schema says nothing about, for all columns or as age:6,hours:0. auto chooses a "
             "number from public facts, and 0 is a straight line.  [default: auto]",
        text=""""auto", int or dict, default "auto"
    Knots of number columns that the schema says nothing about: how many, evenly spaced on the column's own scale, 0 for a
    straight line. A dict gives a number or a list of knots by the name of the column. "auto" chooses a number from public
    facts: number of rows, budget, and columns; regressions without intervals then have curves beside straight lines. What
    the schema says is kept.""",
    ),
    Parameter(
        "interactions", object, group="AdditiveParameters", default="auto",
        option="--interactions auto|none|pairs|all|A:B,...",
        help="Columns whose effects depend on each other: named ones as age:hours,age:sex, none but those of the schema, "
             "all pairs, all columns together, or what public facts favour.  [default: auto]",
        text="""list, "pairs", "all" or "auto", default "auto"
    Which columns have effects that depend on each other, beside the interactions of the schema. In a list, each entry names
    two or more columns, as in [["age", "hours"]]: products of coarse effects of these columns enter the model. "pairs" takes
    all pairs of columns that have few products. "all" appends random Fourier features of the encoded row, which are a smooth
    function of all columns together; there are no intervals then. "auto" is "all" where public facts favour it: most columns
    are numbers whose knots are chosen too, and the noise is small beside the rows. Otherwise it is none, as () is. The
    schema of the fitted model says what was chosen.""",
    ),
    Parameter(
        "atoms", bool, group="AdditiveParameters", default="auto",
        also=("auto",), high=False,
        must="'auto'{near} or False",
        option="--atoms/--no-atoms",
        help="For additive: whether a part of the budget may find numbers that many rows share, such as legal limits, if "
             "public facts say that it pays.  [default: atoms]",
        text=""""auto" or False, default "auto"
    Whether 15% of the budget may find atoms: numbers that many rows share, such as legal limits and round
    sums, in the columns of numbers with a logarithmic scale for which the schema lists none. Each has an effect of its own
    beside that of the curve. The rows are counted by number, with noise, before the weights, and one charge covers both.
    "auto" decides by public facts: the noise must be small beside the number of rows. The plan and the guarantee say what it
    decided, and the schema of the fitted model has the atoms. False keeps the whole budget for the weights.""",
    ),
    Parameter(
        "monotone", object, group="AdditiveParameters",
        option="--monotone A:up,...",
        help="For additive: columns whose effect may only rise or only fall, such as age:up,debt:down. Costs no budget.",
        text="""dict or None
    Columns whose effect may only rise or only fall, as {"age": "up"}. The released curve is replaced by the nearest monotone
    one, in the metric of its noise if intervals were bought. This is post-processing: it costs nothing, and it helps only
    where it is true. For two classes the effect is that in favour of the class that is shown.""",
    ),
    Parameter(
        "interest", object, group="InterestParameter",
        option="--interest A,B,...",
        help="For logistic: columns whose coefficients have intervals and a test of no effect, such as treatment,age. They"
             " are shorter than those of --intervals, which are for all coefficients.",
        text="""list of str or None, default None
    Columns whose coefficients are to have intervals, such as ["treatment"]. With a schema a category gives a coefficient for
    each level, against the reference. The intervals are for coefficients without a ridge. A part of the budget is kept for
    them, with shares that follow from public facts. They are far shorter than those of `inference_share`, which are for all
    coefficients and cannot be asked for beside them. For two classes. If the intervals could not be trusted, the fit is
    refused before anything is charged.""",
    ),
    Parameter(
        "risk_differences", bool, group="InterestParameter", default=False,
        must="True or False",
        option="--risk-differences",
        help="With --interest: also how much the risk changes on average over the rows, with intervals.",
        text="""bool, default False
    Whether differences of risks for the columns of `interest` are to have intervals too: how much the probability of the
    outcome changes on average over the rows, if every row has a level in place of the reference, or a number one unit
    higher. They cost a small part of the budget, for sums of probabilities over the rows. All rows count alike. With a
    column of persons they need "add-or-remove-one", under which the number of the rows that count is released.""",
    ),
    Parameter(
        "penalty", object, group="PenaltyParameter",
        option="--penalty A:S,...",
        help="What is penalised: a strength for each column, or smooth for its knots or ordered levels, such as "
             "age:smooth,edu:smooth=30,pay:4; smooth alone for all curves.  [default: all weights alike]",
        text=""""smooth", dict, array, StronglyConvex or None, default None
    What is penalised in place of |w|^2: a positive definite quadratic form w' P w, or a strongly convex function of your own
    (`StronglyConvex`), for noise in the objective or on the weights. A dict names columns and gives each a
    strength, from 1e-6 to 1e6, or a `Smooth`, which penalises differences of neighbouring weights: of a curve with knots, or
    of levels in the order in which the schema lists them. Columns that are not named have strength 1. "smooth" is `Smooth()`
    for all columns with knots. An array has a strength for each column as it enters the fit, or is a symmetric matrix
    (d, d). The noise is shaped by the same form. With a schema the bound on rows follows from both; otherwise rows are
    clipped to `row_norm`, a number, as without it.""",
    ),
    Parameter(
        "kernel", str,
        also=("rbf", "laplacian", "cauchy"),
        option="--kernel",
        help="Kernel of kernel-svm.  [default: rbf]",
    ),
    Parameter(
        "length_scale", float,
        option="--length-scale S",
        help="For kernel-svm: distance over which the kernel falls, in encoded columns. It becomes public.  [default: by "
             "the schema]",
    ),
    Parameter(
        "n_features", int,
        option="--n-features D",
        help="For kernel-svm: number of random features, even; 0 for the columns alone.  [default: chosen from public "
             "facts]",
    ),
    Parameter(
        "feature_norm", object,
        option="--feature-norm auto|none|G",
        help="For kernel-svm: the L2 norm of the features of a row, where its columns stand beside them; none for features"
             " alone.  [default: by the schema]",
    ),
    Parameter(
        "orthogonal", bool,
        option="--orthogonal/--no-orthogonal",
        help="For kernel-svm: features with orthogonal directions.  [default: by the schema and the kernel]",
    ),
    Parameter(
        "map_seed", int,
        option="--map-seed N",
        help="For kernel-svm: the public seed of the random features.  [default: 0]",
    ),
    Parameter(
        "smoothing", float,
        option="--smoothing H",
        help="For svm and kernel-svm: half-width of the round corner of the hinge.  [default: 0.5]",
    ),
    Parameter(
        "threshold", float,
        also=("auto",), low=_SMALLEST, high=_LARGEST,
        must='"auto"{near} or a positive finite number; the noise grows with it. If target_bound is inf, threshold has no '
             "default: give a number",
        option="--threshold auto|NUMBER",
        help="For losses of numbers: distance from the prediction beyond which a row pulls no harder. The noise grows with"
             " it.  [default: auto]",
    ),
    Parameter(
        "quantile", float,
        low=0.001, high=0.999,
        must="a number from 0.001 to 0.999",
        option="--quantile Q",
        help="For erm with --loss quantile: the share of targets below the predictions.  [default: 0.5]",
    ),
    Parameter(
        "l1_ratio", float, group="StraightLineParameters", default=0.0,
        low=0.0, high=_BELOW_ONE,
        must="a number of at least 0 and below 1: the guarantee rests on the ridge, which has the rest",
        option="--l1-ratio R",
        help="Share of an l1 penalty in alpha, from 0 to below 1: some weights become exactly 0. Not for additive and "
             "kernel-svm.  [default: 0]",
        text="""float, default 0.0
    Share of an l1 penalty in `alpha`, from 0 to below 1 (the elastic net): the penalty is alpha (l1_ratio |w|_1 + (1 -
    l1_ratio) / 2 |w|^2), and the intercept has the ridge part alone. Above 0, weights no larger than what noise alone makes
    are released as exactly 0, and `support_` says which are not. With a schema the l1 penalty is on the weight of each
    encoded column, such as each level of a category. The noise is then on the weights or in gradients, not in the
    objective; there are no intervals and no prior.""",
    ),
    Parameter(
        "target_bound", float, group="TargetParameter",
        also=(None, math.inf), low=_SMALLEST, high=_LARGEST,
        must="a positive number between 2^-300 and 2^300, or inf if the budget is inf",
        option="--target-bound B",
        help="For numbers: targets are clipped to [-B, B], beside the range that the schema gives.",
        text="""float or None, default None
    Required by `fit` and `plan` unless the schema has a target of numbers; positive. Every target is clipped to
    [-target_bound, target_bound], in the target's own units. With a schema's target it is clipped to the range there, and
    to this bound if one is given. The bound is never inferred from the targets; scale and centre them by public knowledge.
    Targets beyond the bound are clipped without a word, even if all are: a refusal or a warning would tell something about
    the rows. So compare the unit of the bound with that of the targets before you fit.
    ``float("inf")`` needs an infinite budget.""",
    ),
    Parameter(
        "class_weight", object, group="ClassParameters",
        option="--class-weight LABEL:W,...",
        help="Public weights of classes, such as yes:5,no:1.  [default: 1 each]",
        text="""dict or None
    A public weight for each class, label: number between 1e-9 and 1e9. The noise grows with the largest weight. "balanced"
    is refused, because it would be learned from the labels.""",
    ),
    Parameter(
        "multiclass", str,
        also=("softmax", "one-vs-rest"),
        option="--multiclass",
        help="For logistic with three classes or more.  [default: softmax]",
    ),
    Parameter(
        "alpha", float, group=EVERY_MODEL, default="auto",
        also=("auto",), low=_ABOVE_ZERO, high=1e12,
        must="'auto'{near} or a positive number up to 1e12; the guarantee depends on it",
        option="--alpha auto|NUMBER",
        help="Ridge of the mean objective.",
        text=""""auto" or float, default "auto"
    Ridge of the mean objective, positive and at most 1e12. "auto" depends only on public facts: number of rows and of
    features, budget, and bound on rows. It is raised if the proof of privacy needs more, and the plan says so. For two
    classes under a pure budget, columns of a schema with more noise than others may have a larger ridge, and `alpha_` is
    the least; a number is the ridge of all columns.""",
    ),
    Parameter(
        "mechanism", str, group=EVERY_MODEL, default="auto",
        also=("auto", "objective", "output", "output-laplace", "gradient", "sufficient-statistics"),
        option="--mechanism NAME",
        help="Where the noise is added: auto, objective, output, output-laplace, gradient; sufficient-statistics for "
             "ridge, and for additive with --loss squared.",
        text="""{"auto", "objective", "output", "output-laplace", "gradient"}, default "auto"
    Where the noise is added: to the objective ("objective"), to the weights ("output"), or to each of a fixed number of sums
    of clipped slopes ("gradient", for `ApproxDP` and `ZCDP`). "auto" is "objective" if the loss is smooth, but "gradient"
    for logistic losses, for several classes and for regressions where public facts say that it errs less; for three or more
    classes and a pure budget it takes the weights if the noise in the objective would be much larger.
    "output-laplace" is the PrivateSVM of Rubinstein et al., with independent Laplace noise and pure privacy, for
    comparison.""",
    ),
    Parameter(
        "centre", bool, group=EVERY_MODEL, default="auto",
        also=("auto",), high=False,
        must="'auto'{near} or False",
        option="--centre/--no-centre",
        help="Whether a small part of the budget may find the middle of the rows, if public facts say that it pays.",
        text=""""auto" or False, default "auto"
    Whether a small part of the budget may find the middle of the rows before the fit. Rows that were moved by it are
    shorter, so less noise hides one of them. "auto" decides by public facts; the plan and the guarantee say what it decided.
    False keeps the whole budget for the weights.""",
    ),
    Parameter(
        "match_mean", bool, group="MeanParameter", default="auto",
        also=("auto",), high=False,
        must="'auto'{near} or False",
        option="--match-mean/--no-match-mean",
        help="For counts: whether a small part of the budget may make predictions right in the mean, if public facts say "
             "that it pays.  [default: match-mean]",
        text=""""auto" or False, default "auto"
    Whether a small part of the budget may make predicted counts right in the mean. The clipped loss and the ridge draw them
    below it. Two noisy sums, made after the weights, give one factor for all predictions, and the intercept moves by its
    logarithm. "auto" decides by public facts; the plan and the guarantee say what it decided. False keeps the whole budget
    for the weights.""",
    ),
    Parameter(
        "fit_intercept", bool, group=EVERY_MODEL, default=True,
        must="True or False",
        option="--intercept/--no-intercept",
        help="Whether the model has an intercept.",
        text="""bool, default True
    Whether the model has an intercept. It is a penalised weight of a constant that is appended to every row.""",
    ),
    Parameter(
        "intercept_scaling", float, group=EVERY_MODEL, default=1.0,
        low=math.nextafter(2.0**-300, 1.0), high=math.nextafter(2.0**300, 1.0),
        must="a positive finite number",
        option="--intercept-scaling auto|S",
        help="Constant that is appended to each row for the intercept; a larger one shrinks the intercept less.  [default:"
             " that of the model]",
        text="""float, default 1.0
    The constant that is appended to every clipped row, positive. A larger constant shrinks the intercept less and brings
    more noise. If a typical row does not have norm about 1, take a constant of about `row_norm`: beside rows of norm 1000,
    a constant of 1 cannot shift the scores, and beside rows of norm 0.001 it gets nearly all of the noise.""",
    ),
    Parameter(
        "neighbours", str, group=EVERY_MODEL, default="replace-one",
        also=("replace-one", "add-or-remove-one"),
        option="--neighbours",
        help="Which data sets count as neighbours. add-or-remove-one keeps the number of rows private.",
        text="""{"replace-one", "add-or-remove-one"}, default "replace-one"
    Which data sets the guarantee calls neighbours: those that differ in the values of one row, or in its presence. With
    "add-or-remove-one" the number of rows is private.""",
    ),
    Parameter(
        "n_rows_bounds", tuple[int, int], group=EVERY_MODEL,
        option="--n-rows-bounds LOW HIGH",
        help="Public bounds on the number of rows, for add-or-remove-one.",
        text="""(int, int) or None
    Public lower and upper bound on the number of rows. Required with "add-or-remove-one", where the number is private, and
    refused otherwise. The ridge of the summed objective is alpha times the lower bound.""",
    ),
    Parameter(
        "max_rows_per_person", int, group=EVERY_MODEL, default=1,
        low=1, high=10**6,
        must="a whole number from 1 to 1000000",
        option="--max-rows-per-person K",
        help="The largest number of rows that one person has.",
        text="""int, default 1
    A public cap k on the rows of one person. The guarantee then protects a person, by group privacy. If the schema names a
    column of persons, k rows of each person are drawn at random in every fit. Otherwise the cap is an assumption.""",
    ),
    Parameter(
        "inference_share", float, group="IntervalsParameter", default=0.0,
        also=("auto",), low=0.0, high=0.9,
        must='a number from 0 (no intervals) to 0.9, or "auto"{near}',
        option="--intervals SHARE|auto",
        help="Share of the budget that pays for intervals, for example 0.3. For ridge auto alone.  [default: none]",
        text="""float or "auto", default 0.0
    The part of the budget that is kept for intervals, from 0 to 0.9. With it, `conf_int`, `summary` and `uncertainty` say
    how far the coefficients may lie from those of the population. "auto" takes the share at which the intervals are
    expected to be narrowest, by public facts. Under (epsilon, delta), weights and the sums that intervals are made from have
    one account where that is better. The share is then one of the squared ratio of a row's effect to the noise, because
    these squares add up there. If the intervals could not be trusted, the fit is refused before anything is charged.""",
    ),
    Parameter(
        "cluster_effect", float, group="DesignParameters",
        also=(None,), low=1.0, high=1e6,
        must="a public number from 1 to 1e6, the design effect of clustering: 1 + (m - 1) r for clusters of m rows with "
             "intraclass correlation r",
        option="--cluster-effect E",
        help="For intervals: the public design effect of clustering, 1 + (m - 1) r for clusters of m rows with intraclass "
             "correlation r.  [default: the value of --max-rows-per-person]",
        text="""float or None, default None
    The design effect of clustering, a public number of at least 1, by which intervals multiply the variance due to sampling
    where rows depend on each other: 1 + (m - 1) r for clusters of m rows with intraclass correlation r. Unequal weights are
    not part of it; they are accounted for in any case. None means `max_rows_per_person`, which is enough for any dependence
    of the rows of a person.""",
    ),
    Parameter(
        "population_size", int, group="DesignParameters",
        also=(None,), low=1, high=10**15,
        must="a whole number, at least the number of rows",
        option="--population-size N",
        help="For intervals: the public size of the population from which the rows are a sample. Intervals are then for "
             "this population as it is.  [default: a large population]",
        text="""int or None, default None
    The public number of units of the population from which the rows are a sample without replacement. Intervals are then for
    this population as it is: the variance due to sampling is multiplied by the finite-population correction, that due to the
    noise is not. With `sample_weight` it needs `mean_sample_weight`, and weights that are inverse chances of being in the
    sample, up to one factor. None is for a large population, or for the process that made it. It changes nothing about
    privacy.""",
    ),
    Parameter(
        "prior", Path, group=EVERY_MODEL,
        option="--prior MODEL.json",
        help="An earlier release, towards which the ridge pulls in place of 0: for new rows, or a small budget.",
        text="""fitted model, path of one, pair (coef, intercept), PublicPrior, dict of declared effects or None
    Public weights towards which the ridge pulls, in place of 0. The nearer they are to those of the rows, the better is a
    fit with a small budget. A model must have a guarantee, or be declared public (`PublicPrior`), and its columns must be
    encoded as here. Coefficients are those of the columns as they enter the fit. They must not have been made from these
    rows, unless by a release whose cost is counted as well.

    A dict such as {"age": "up", "dose": 0.5, "sex=Male": "down"} declares effects by signs or rough sizes, as a codebook or
    an earlier paper states them, for models of a schema or of bounds with one score. The effect of a number is what is added
    for each of its units, and that of a level what is added there: to the log-odds of the class that is shown, to the
    prediction, or for counts to the logarithm of the mean. On a logarithmic scale it is "up" or "down". From the low to the
    high bound of a number "up" adds 1 to log-odds, 0.5 to a logarithm, and a quarter of `target_bound` to a prediction; at a
    level half as much.""",
    ),
    Parameter(
        "public_prior", Path, group=COMMAND_LINE,
        option="--public-prior MODEL.json",
        help="The same for a model without a guarantee, which was fitted to public rows alone.",
    ),
    Parameter(
        "effects", object, group=COMMAND_LINE,
        option="--effects A:up,...",
        help="The same for effects that a codebook or an earlier paper states: up, down or what a unit of a number adds, as"
             " age:up,dose:0.5,sex=Male:down.",
    ),
    Parameter(
        "row_norm", float, group="StraightLineParameters",
        option="--row-norm R",
        help="Rows are clipped to this L2 norm; without a schema the default is 1.",
        text="""float, row bound or None
    Every row is clipped to this L2 norm; None means 1.0. It is never inferred from the rows. It cannot be given together
    with a schema. A `BallBound`, `BoxBound` or `GroupBound` clips rows in its own way and shapes the noise.
    ``float("inf")`` needs an infinite budget.""",
    ),
    Parameter(
        "n_jobs", int, group=EVERY_MODEL,
        also=(None,), refused=(0,),
        must="None, a number of threads, or a negative number: -1 for all cores, -2 for all cores but one",
        option="--jobs N",
        help="Threads that share the rows; -1 means one for each core.  [default: 1]",
        text="""int or None
    Number of threads that share the rows. None means 1, or what `joblib.parallel_config` says; -1 means one for each core.
    The released model is the same to the bit whatever the number. Passes of the compiled kernel and the reading of columns
    run side by side. NumPy's short calls hold a lock, so its passes gain little.""",
    ),
    Parameter(
        "random_state", int, group=EVERY_MODEL,
        also=(None,), low=0,
        must="None (noise from the operating system) or a whole number, for tests",
        option="--seed N",
        help="For tests only: makes the noise repeatable and the guarantee void.",
        text="""int or None
    For tests only: a seed makes the noise reproducible and the guarantee void.""",
    ),
    Parameter(
        "budget", object, group=EVERY_MODEL, default=1.0,
        text="""float, PureDP, ApproxDP or ZCDP, default 1.0
    What the fit may cost. A number is the epsilon of pure differential privacy. ``float("inf")`` gives the model without
    privacy, and its guarantee says so.""",
    ),
    Parameter(
        "schema", object, group=EVERY_MODEL,
        text="""Schema or None
    Public knowledge about raw columns. With a schema, X is a pandas or Polars frame and columns are matched by name. The
    bound on rows follows from the schema, and the noise is shaped by its columns.""",
    ),
    Parameter(
        "target_low", object, group="TargetParameter",
        text="""float or None, default None
    With `target_high`, in place of `target_bound` and of a schema's target: the public ends of the range of the targets, to
    which they are clipped. A range far from 0, such as 1930 to 2010, needs no rescaling: if its middle is at least 1.5
    half-widths of the range away from 0, the fit subtracts it from every target and adds it to `intercept_`. So predictions
    and coefficients are in the target's own units. That is done for the range of a schema's target too, but not for counts,
    for models without an intercept, and for a loss of your own.""",
    ),
    Parameter(
        "target_high", object, group="TargetParameter",
        text="""float or None, default None
    The upper end of that range.""",
    ),
    Parameter(
        "classes", object, group="ClassParameters",
        text="""sequence of labels or None
    The label domain, 2 to 100 labels. None means: the target of the schema; without a schema {0, 1}, {-1, 1} or
    {False, True} if the labels fit; otherwise the labels that are present, which the guarantee lists as an assumption.""",
    ),
    Parameter(
        "max_sample_weight", float, group="SampleWeightParameter", default=1.0,
        low=1e-9, high=1e9,
        must="a positive number between 1e-9 and 1e9, chosen without the rows",
        text="""float, default 1.0
    A public cap on the `sample_weight` of a row in `fit`, between 1e-9 and 1e9. The noise grows with it. The mean of the
    losses is taken over the number of rows, not over the sum of the weights.""",
    ),
    Parameter(
        "mean_sample_weight", float, group="SampleWeightParameter",
        also=(None,), low=_ABOVE_ZERO,
        must="None or a public number above 0 and at most max_sample_weight, such as the size of the population over the "
             "number of rows where weights are inverse chances of being in the sample",
        text="""float or None, default None
    The mean of the `sample_weight` of rows, if it is public, above 0 and at most `max_sample_weight`. Plans of intervals use
    it: noise counts max_sample_weight / mean_sample_weight times as much as for equal weights. None means 1, or the cap if
    that is smaller. The noise does not depend on it.""",
    ),
    Parameter(
        "bounds", object, group="AdditiveParameters",
        text="""(low, high), list of such pairs, dict of pairs, or None
    Instead of a schema, public bounds of the columns of an array of numbers: one pair for all, a pair for each, or pairs by
    the names of columns. Numbers outside are clipped. The bounds are never inferred from the rows.""",
    ),
    Parameter(
        "ledger", object, group=EVERY_MODEL,
        text="""Ledger, batch of one, or None
    Charged before a row is used. None: the fit is charged nowhere.""",
    ),
)
# fmt: on

PARAMETERS = {row.name: row for row in _ROWS}
"""The rows by name, in the order of the help."""


def checked(name: str, value: Any) -> Any:
    """The value of a parameter in the type that the rest computes with. Refused if it is none of its values."""
    return PARAMETERS[name].checked(value)


def checked_choice(name: str, value: Any, choices: Iterable[str | None]) -> str:
    """One of a closed list of words, and perhaps None, for a parameter of which an estimator takes some words alone."""
    return str(Parameter(name, str, also=tuple(choices)).checked(value))
