"""Options that several commands share, and the estimator that they describe."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_type_hints

import typer

from confide.cli import option_values
from confide.cli.failures import NO_GUARANTEE
from confide.cli.option_values import OPTION_OF, Kind, models_with, new_estimator, predicts_a_number
from confide.errors import ParameterError

if TYPE_CHECKING:
    from confide.accounting.ledger import Ledger
    from confide.estimators.linear_model import PrivateLinearModel
    from confide.features.schema import Schema
    from confide.privacy.budgets import Budget


# Files and output

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL.json", show_default=False)]
ModelOut = Annotated[Path, typer.Option(metavar="FILE", help="File to write the model to.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
NoLedger = Annotated[
    bool,
    typer.Option("--no-ledger", help="The release is recorded in no ledger, on purpose; so nothing asks or warns."),
]
ForceBudget = Annotated[
    bool,
    typer.Option("--force-budget", help="Charge even where the noise hides what the rows say."),
]
Format = Annotated[Literal["text", "json"], typer.Option("--format", help="text for people, json for programs.")]

Adjust = Annotated[
    Literal["single-step", "holm", "bonferroni", "fdr_by", "fdr_bh"] | None,
    typer.Option(
        "--adjust",
        help="Correct p-values for the family of all coefficients with intervals, which then all hold together. single-step "
        "uses their joint law; the other names are those of statsmodels.  [default: each by itself]",
        show_default=False,
    ),
]

# Persons and neighbouring data sets

RowsPerPerson = Annotated[
    int,
    typer.Option("--max-rows-per-person", min=1, metavar="K", help="The largest number of rows that one person has."),
]
NeighboursName = Annotated[
    Literal["replace-one", "add-or-remove-one"],
    typer.Option(help="Which data sets count as neighbours. add-or-remove-one keeps the number of rows private."),
]

# What commands need to know of the model

ModelName = Annotated[
    Kind,
    typer.Option(
        "--model",
        help="additive: a curve for each number column, to predict classes or numbers. Straight lines: logistic and svm for "
        "classes, huber, poisson and ridge for numbers, erm for any --loss. kernel-svm: random features of a kernel.",
    ),
]
LossName = Annotated[
    Literal[
        "auto",
        "logistic",
        "logistic-hinge",
        "huber-hinge",
        "smooth-hinge",
        "hinge",
        "huber",
        "clipped-squared",
        "squared",
        "poisson",
        "quantile",
        "absolute",
    ]
    | None,
    typer.Option(
        "--loss",
        metavar="NAME",
        help="What is minimised. For classes, additive: auto, logistic, logistic-hinge; svm and kernel-svm: auto, a hinge; "
        "erm: logistic or a hinge. For numbers, additive: huber, squared or, for counts, poisson; huber: huber or "
        "clipped-squared; erm: these, poisson, quantile and absolute.  [default: that of the model]",
        show_default=False,
    ),
]
Interactions = Annotated[
    str | None,
    typer.Option(
        metavar="auto|pairs|all|A:B,...",
        help="Columns whose effects depend on each other: named ones as age:hours,age:sex, all pairs, all columns together, "
        "or what public facts favour.  [default: none but those of the schema]",
        show_default=False,
    ),
]
Knots = Annotated[
    str | None,
    typer.Option(
        metavar="auto|N|A:N,...",
        help="Knots of the curves that the schema says nothing about, for all columns or as age:6,hours:0. auto chooses a "
        "number from public facts, and 0 is a straight line.  [default: auto]",
        show_default=False,
    ),
]
KernelName = Annotated[
    Literal["rbf", "laplacian", "cauchy"] | None,
    typer.Option(help="Kernel of kernel-svm.  [default: rbf]", show_default=False),
]
LengthScale = Annotated[
    float | None,
    typer.Option(
        metavar="S",
        help="For kernel-svm: distance over which the kernel falls, in encoded columns. It becomes public.  "
        "[default: by the schema]",
    ),
]
RandomFeatures = Annotated[
    int | None,
    typer.Option(
        "--n-features",
        metavar="D",
        help="For kernel-svm: number of random features, even; 0 for the columns alone.  "
        "[default: chosen from public facts]",
    ),
]
FeatureNorm = Annotated[str | None, typer.Option(metavar="auto|none|G", help="For kernel-svm: the L2 norm of the features "
    "of a row, where its columns stand beside them; none for features alone.  [default: by the schema]")]  # fmt: skip
PriorFile = Annotated[
    Path | None,
    typer.Option(
        "--prior",
        metavar="MODEL.json",
        help="An earlier release, towards which the ridge pulls in place of 0: for new rows, or a small budget.",
    ),
]
PublicPriorFile = Annotated[
    Path | None,
    typer.Option(
        "--public-prior",
        metavar="MODEL.json",
        help="The same for a model without a guarantee, which was fitted to public rows alone.",
    ),
]
Alpha = Annotated[str, typer.Option(metavar="auto|NUMBER", help="Ridge of the mean objective.")]
MechanismName = Annotated[
    Literal["auto", "objective", "output", "output-laplace", "gradient", "sufficient-statistics"],
    typer.Option(
        metavar="NAME",
        help="Where the noise is added: auto, objective, output, output-laplace, gradient; sufficient-statistics for ridge, "
        "and for additive with --loss squared.",
    ),
]
Centre = Annotated[
    bool,
    typer.Option(
        "--centre/--no-centre",
        help="Whether a small part of the budget may find the middle of the rows, if public facts say that it pays.",
    ),
]
MatchMean = Annotated[
    bool | None,
    typer.Option(
        "--match-mean/--no-match-mean",
        show_default=False,
        help="For counts: whether a small part of the budget may make predictions right in the mean, if public facts say "
        "that it pays.  [default: match-mean]",
    ),
]
RowsBounds = Annotated[
    tuple[int, int] | None,
    typer.Option(metavar="LOW HIGH", help="Public bounds on the number of rows, for add-or-remove-one."),
]
Intervals = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE|auto",
        help="Share of the budget that pays for intervals, for example 0.3. For ridge auto alone.  [default: none]",
    ),
]
ClusterEffect = Annotated[
    float | None,
    typer.Option(
        metavar="E",
        help="For intervals: the public design effect of clustering, 1 + (m - 1) r for clusters of m rows with intraclass "
        "correlation r.  [default: the value of --max-rows-per-person]",
        show_default=False,
    ),
]
PopulationSize = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="For intervals: the public size of the population from which the rows are a sample. Intervals are then for "
        "this population as it is.  [default: a large population]",
        show_default=False,
    ),
]
L1Ratio = Annotated[float | None, typer.Option(metavar="R", help="Share of an l1 penalty in alpha, from 0 to below 1: some "
    "weights become exactly 0. Not for additive and kernel-svm.  [default: 0]")]  # fmt: skip
Quantile = Annotated[float | None, typer.Option(metavar="Q", help="For erm with --loss quantile: the share of targets below "
    "the predictions.  [default: 0.5]")]  # fmt: skip
Threshold = Annotated[
    str | None,
    typer.Option(
        metavar="auto|NUMBER",
        help="For losses of numbers: distance from the prediction beyond which a row pulls no harder. The noise grows with "
        "it.  [default: auto]",
    ),
]
TargetBound = Annotated[
    float | None,
    typer.Option(metavar="B", help="For numbers: targets are clipped to [-B, B], beside the range that the schema gives."),
]
Smoothing = Annotated[
    float | None,
    typer.Option(metavar="H", help="For svm and kernel-svm: half-width of the round corner of the hinge.  [default: 0.5]"),
]
Monotone = Annotated[
    str | None,
    typer.Option(
        metavar="A:up,...",
        help="For additive: columns whose effect may only rise or only fall, such as age:up,debt:down. Costs no budget.",
    ),
]
Interest = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,...",
        help="For logistic: columns whose coefficients have intervals and a test of no effect, such as treatment,age. They "
        "are shorter than those of --intervals, which are for all coefficients.",
    ),
]
RiskDifferences = Annotated[
    bool | None,
    typer.Option(
        "--risk-differences",
        show_default=False,
        help="With --interest: also how much the risk changes on average over the rows, with intervals.",
    ),
]
Penalty = Annotated[
    str | None,
    typer.Option(
        metavar="A:S,...",
        help="What is penalised: a strength for each column, or smooth for its knots or ordered levels, such as "
        "age:smooth,edu:smooth=30,pay:4; smooth alone for all curves.  [default: all weights alike]",
    ),
]
ClassWeight = Annotated[
    str | None,
    typer.Option(metavar="LABEL:W,...", help="Public weights of classes, such as yes:5,no:1.  [default: 1 each]"),
]
Multiclass = Annotated[
    Literal["softmax", "ovr"] | None,
    typer.Option(help="For logistic with three classes or more.  [default: softmax]", show_default=False),
]
Intercept = Annotated[bool, typer.Option("--intercept/--no-intercept", help="Whether the model has an intercept.")]
InterceptScaling = Annotated[
    str | None,
    typer.Option(
        metavar="auto|S",
        help="Constant that is appended to each row for the intercept; a larger one shrinks the intercept less.  "
        "[default: that of the model]",
    ),
]
Orthogonal = Annotated[bool | None, typer.Option("--orthogonal/--no-orthogonal", show_default=False,
    help="For kernel-svm: features with orthogonal directions.  [default: by the schema and the kernel]")]  # fmt: skip
MapSeed = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="For kernel-svm: the public seed of the random features.  [default: 0]", show_default=False
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", metavar="N", help="Threads that share the rows; -1 means one for each core.  [default: 1]"),
]
RowNorm = Annotated[
    float | None, typer.Option(metavar="R", help="Rows are clipped to this L2 norm; without a schema the default is 1.")
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", min=0, help="For tests only: makes the noise repeatable and the guarantee void."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """The options that describe a model, as they were given to a command. None stands for an option that was not given.

    The fields have the names of the options, with underscores; `kind` is the value of --model.
    """

    kind: ModelName = "additive"
    loss: LossName = None
    knots: Knots = None
    interactions: Interactions = None
    monotone: Monotone = None
    interest: Interest = None
    risk_differences: RiskDifferences = None
    penalty: Penalty = None
    kernel: KernelName = None
    length_scale: LengthScale = None
    n_features: RandomFeatures = None
    feature_norm: FeatureNorm = None
    orthogonal: Orthogonal = None
    map_seed: MapSeed = None
    smoothing: Smoothing = None
    threshold: Threshold = None
    quantile: Quantile = None
    l1_ratio: L1Ratio = None
    target_bound: TargetBound = None
    class_weight: ClassWeight = None
    multiclass: Multiclass = None
    alpha: Alpha = "auto"
    mechanism: MechanismName = "auto"
    centre: Centre = True
    match_mean: MatchMean = None
    intercept: Intercept = True
    intercept_scaling: InterceptScaling = None
    neighbours: NeighboursName = "replace-one"
    n_rows_bounds: RowsBounds = None
    max_rows_per_person: RowsPerPerson = 1
    intervals: Intervals = None
    cluster_effect: ClusterEffect = None
    population_size: PopulationSize = None
    prior: PriorFile = None
    public_prior: PublicPriorFile = None
    row_norm: RowNorm = None
    jobs: Jobs = None
    seed: Seed = None

    def estimator(self, budget: Budget, schema: Schema | None, ledger: Ledger | None = None) -> PrivateLinearModel:
        """The estimator that these options describe.

        Raises
        ------
        ParameterError
            If an option does not suit the model, or is no number where one is needed.
        """
        return new_estimator(
            self.kind,
            budget,
            schema,
            ledger=ledger,
            alpha=option_values.number_or_auto("--alpha", self.alpha),
            mechanism=self.mechanism,
            centre="auto" if self.centre else False,
            fit_intercept=self.intercept,
            neighbours=self.neighbours,
            n_rows_bounds=self.n_rows_bounds,
            max_rows_per_person=self.max_rows_per_person,
            prior=self._prior(),
            n_jobs=self.jobs,
            random_state=self.seed,
            **self._of_some_models(schema),
            **self._of_intervals(),
            **self._row_norm(),
        )

    def _prior(self) -> Any:
        from confide.estimators.linear_model import PublicPrior

        if self.prior is not None and self.public_prior is not None:
            raise ParameterError("give --prior or --public-prior, not both.")
        return self.prior if self.public_prior is None else PublicPrior(self.public_prior)

    def _of_some_models(self, schema: Schema | None) -> dict[str, Any]:
        """The parameters that some models alone have, as far as their options were given."""
        given: dict[str, Any] = {}
        for name, read in _OF_SOME_MODELS.items():
            value = getattr(self, name)
            if value is None:
                continue
            known = models_with(name)
            if self.kind not in known:
                if len(known) == 1:
                    raise ParameterError(
                        f"{OPTION_OF[name]} is for --model {known[0]} alone; leave it out, or choose that model."
                    )
                raise ParameterError(
                    f"{OPTION_OF[name]} is for --model {', '.join(known[:-1])} and {known[-1]}; leave it out, or choose one "
                    f"of them."
                )
            given[name] = read(value)
        if "target_bound" in given or "class_weight" in given:
            _check_kind_of_target(given, schema)
        return given

    def _of_intervals(self) -> dict[str, Any]:
        if self.intervals is None:
            return {}
        if self.kind == "erm":
            raise ParameterError("--intervals is for all models but erm.")
        if self.kind == "ridge":
            if self.intervals != "auto":
                raise ParameterError(
                    "for --model ridge --intervals must be auto: they are made of the sums that it releases."
                )
            return {"intervals": True}
        message = "--intervals must be auto or a number above 0 and up to 0.9."
        try:
            share = self.intervals if self.intervals == "auto" else float(self.intervals)
        except ValueError:
            raise ParameterError(message) from None
        if share == 0.0:
            # A fit without intervals would be charged, and its table of intervals could not be shown.
            raise ParameterError(f"{message} For a model without intervals leave the option out.")
        return {"inference_share": share}

    def _row_norm(self) -> dict[str, float]:
        if self.row_norm is None:
            return {}
        if self.kind == "kernel-svm":
            raise ParameterError("the bound on rows of kernel-svm follows from its map; leave --row-norm out.")
        if self.kind == "additive":
            raise ParameterError("the bound on rows of an additive model follows from --schema; leave --row-norm out.")
        return {"row_norm": self.row_norm}


_OF_SOME_MODELS: dict[str, Callable[[Any], Any]] = {
    "loss": lambda name: name.replace("-", "_"),
    "knots": option_values.knots,
    "interactions": option_values.interactions,
    "monotone": option_values.monotone,
    "interest": option_values.columns,
    "risk_differences": bool,
    "penalty": option_values.penalty,
    "kernel": str,
    "length_scale": float,
    "n_features": int,
    "feature_norm": lambda text: None if text == "none" else option_values.number_or_auto("--feature-norm", text),
    "orthogonal": bool,
    "map_seed": int,
    "smoothing": float,
    "threshold": lambda text: option_values.number_or_auto("--threshold", text),
    "quantile": float,
    "l1_ratio": float,
    "cluster_effect": float,
    "population_size": int,
    "target_bound": float,
    "class_weight": option_values.class_weight,
    "multiclass": str,
    "match_mean": lambda value: "auto" if value else False,
    "intercept_scaling": lambda text: option_values.number_or_auto("--intercept-scaling", text),
}
"""Options whose parameters have the same name and that not all models have, and how their values are read."""


def read_parameter(name: str, text: str) -> Any:
    """The value of a field of `ModelOptions` as its parameter takes it, read from text.

    Raises
    ------
    ParameterError
        If the text is no value of this option.
    """
    if name in ("intercept", "orthogonal", "risk_differences"):
        return _truth(name, text)
    if name in ("centre", "match_mean"):
        return "auto" if _truth(name, text) else False
    try:
        if name == "alpha":
            return option_values.number_or_auto("--alpha", text)
        return _OF_SOME_MODELS.get(name, str)(text)
    except ValueError as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(f"a value for {OPTION_OF[name]} is not a number; correct it.") from None


def _truth(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ParameterError(f"a value for {name} must be true or false.")
    return text.lower() == "true"


def _check_kind_of_target(given: Collection[str], schema: Schema | None) -> None:
    """Refuse what is for numbers alone where classes are predicted, and the other way round."""
    predicts_numbers = predicts_a_number(schema)
    if "target_bound" in given and not predicts_numbers:
        raise ParameterError("--target-bound is for a target of numbers, and this one has labels; leave it out.")
    if "class_weight" in given and predicts_numbers:
        raise ParameterError("--class-weight is for a target of labels, and this one has numbers; leave it out.")


Command = TypeVar("Command", bound=Callable[..., None])


def takes_model_options(*, without: Collection[str] = ()) -> Callable[[Command], Command]:
    """Give a command the options of a model. Its parameter `options` becomes one option for each field of `ModelOptions`.

    Parameters
    ----------
    without : fields that the command has no use for
    """

    def decorated(command: Command) -> Command:
        hints = get_type_hints(ModelOptions, include_extras=True)
        kept = [field for field in fields(ModelOptions) if field.name not in without]
        kind = inspect.Parameter.KEYWORD_ONLY
        of_model = [inspect.Parameter(f.name, kind, default=f.default, annotation=hints[f.name]) for f in kept]

        @functools.wraps(command)
        def with_options(**given: Any) -> None:
            options = ModelOptions(**{field.name: given.pop(field.name) for field in kept if field.name in given})
            command(options=options, **given)

        own = get_type_hints(command, include_extras=True)
        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command).parameters.values():
            if parameter.name == "options":
                parameters += of_model
            else:
                parameters.append(parameter.replace(kind=kind, annotation=own[parameter.name]))
        with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return with_options  # type: ignore[return-value]

    return decorated


# What commands have in common at their ends: outputs that are checked before any work, and the exit code.


def is_dialogue() -> bool:
    """Whether a person can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def check_model_out(out: Path, inputs: Collection[Path] = (), *, force: bool) -> None:
    """Refuse, before any work, a model file that could not be written or would replace an input."""
    from confide.cli import output

    output.check_path(out, inputs, overwrite=force)


def check_report_out(out: Path, inputs: Collection[Path] = (), *, force: bool) -> None:
    """Refuse, before any work, a page of HTML that could not be written or would replace an input."""
    from confide.cli import output

    output.check_path(out, inputs, (".html", ".htm"), overwrite=force)


def files_of_ledger(ledger: str | None) -> list[Path]:
    """The files of a ledger, which no output may replace: its own, and those that SQLite keeps beside it."""
    return [] if ledger is None else [Path(ledger + ending) for ending in ("", "-wal", "-shm", "-journal")]


def exit_without_guarantee(model: PrivateLinearModel) -> None:
    """End the command with exit code 3 if the guarantee of the model is void."""
    if model.guarantee_.void is not None:
        raise typer.Exit(NO_GUARANTEE)
