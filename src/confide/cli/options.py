"""Options that several commands share, and the estimator that they describe."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from confide.cli.models import Kind, new_estimator
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
Format = Annotated[Literal["text", "json"], typer.Option("--format", help="text for people, json for programs.")]

# Persons and neighbouring data sets

RowsPerPerson = Annotated[
    int,
    typer.Option("--max-rows-per-person", min=1, metavar="K", help="The largest number of rows that one person has."),
]
NeighboursName = Annotated[
    Literal["replace-one", "add-or-remove-one"],
    typer.Option(help="Which data sets count as neighbours. add-or-remove-one keeps the number of rows private."),
]

# What `fit` and `plan` need to know of the model

ModelName = Annotated[
    Kind,
    typer.Option(
        "--model",
        help="additive: a curve for each number column, to predict classes or numbers. Straight lines: logistic and svm for "
        "classes, huber, poisson and ridge for numbers. kernel-svm: random features of a kernel.",
    ),
]
LossName = Annotated[
    Literal["auto", "logistic", "logistic-hinge", "huber", "squared", "poisson"] | None,
    typer.Option(
        "--loss",
        help="Loss of an additive model. For classes auto, logistic or logistic-hinge; for numbers huber, squared or, for "
        "counts, poisson.  [default: auto or huber]",
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
        metavar="auto|N",
        help="Knots of the curves that the schema says nothing about. auto chooses a number from public facts, and 0 is a "
        "straight line.  [default: auto]",
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
        help="For kernel-svm: number of random features, even.  [default: chosen from public facts]",
    ),
]
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
    Literal["auto", "objective", "output", "output-laplace", "gradient"], typer.Option(help="Where the noise is added.")
]
Centre = Annotated[
    bool,
    typer.Option(
        "--centre/--no-centre",
        help="Whether a small part of the budget may find the middle of the rows, if public facts say that it pays.",
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
        help="Share of the budget that pays for intervals of the coefficients, for example 0.3.  [default: none]",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """The options that describe a model, as they were given to `confide fit` or `confide plan`.

    Attributes
    ----------
    kind : value of --model
    loss, knots, interactions : options for an additive model; None if not given
    kernel, length_scale, n_features : options for a kernel; None if not given
    alpha : "auto" or a number, as text
    mechanism, neighbours : names
    centre : whether rows may be centred
    n_rows_bounds : public bounds on the number of rows; None if not given
    max_rows_per_person : int
    intervals : "auto" or a share of the budget, as text; None if not given
    row_norm : value of --row-norm; None if not given
    prior, public_prior : files of models; None if not given
    """

    kind: str
    loss: str | None = None
    knots: str | None = None
    interactions: str | None = None
    kernel: str | None = None
    length_scale: float | None = None
    n_features: int | None = None
    alpha: str = "auto"
    mechanism: str = "auto"
    centre: bool = True
    neighbours: str = "replace-one"
    n_rows_bounds: tuple[int, int] | None = None
    max_rows_per_person: int = 1
    intervals: str | None = None
    row_norm: float | None = None
    prior: Path | None = None
    public_prior: Path | None = None

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
            alpha=self._alpha(),
            mechanism=self.mechanism,
            centre="auto" if self.centre else False,
            neighbours=self.neighbours,
            n_rows_bounds=self.n_rows_bounds,
            max_rows_per_person=self.max_rows_per_person,
            prior=self._prior(),
            **self._additive_parameters(),
            **self._kernel_parameters(),
            **self._inference_share(),
            **self._row_norm(),
        )

    def _alpha(self) -> float | str:
        try:
            return self.alpha if self.alpha == "auto" else float(self.alpha)
        except ValueError:
            raise ParameterError("--alpha must be auto or a positive number.") from None

    def _prior(self) -> Any:
        from confide.estimators.priors import PublicPrior

        if self.prior is not None and self.public_prior is not None:
            raise ParameterError("give --prior or --public-prior, not both.")
        return self.prior if self.public_prior is None else PublicPrior(self.public_prior)

    def _additive_parameters(self) -> dict[str, Any]:
        options = {"loss": self.loss, "knots": self.knots, "interactions": self.interactions}
        given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        if given and self.kind != "additive":
            names = " and ".join(f"--{name}" for name in given)
            raise ParameterError(f"{names} is for --model additive alone; leave it out, or choose that model.")
        if self.loss is not None:
            given["loss"] = self.loss.replace("-", "_")
        if self.knots not in (None, "auto"):
            given["knots"] = _number_of_knots(self.knots)
        if self.interactions not in (None, "auto", "pairs", "all"):
            given["interactions"] = _named_interactions(self.interactions)
        return given

    def _kernel_parameters(self) -> dict[str, Any]:
        options = {"kernel": self.kernel, "length_scale": self.length_scale, "n_features": self.n_features}
        given = {name: value for name, value in options.items() if value is not None}
        if given and self.kind != "kernel-svm":
            names = " and ".join(f"--{name.replace('_', '-')}" for name in given)
            raise ParameterError(f"{names} is for --model kernel-svm alone; leave it out, or choose that model.")
        return given

    def _inference_share(self) -> dict[str, float | str]:
        if self.intervals is None:
            return {}
        if self.kind == "kernel-svm":
            raise ParameterError(
                "--intervals is not for --model kernel-svm: weights of random features mean nothing one by one."
            )
        if self.kind in ("poisson", "ridge"):
            raise ParameterError("--intervals is for --model additive, logistic, svm and huber.")
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
            raise ParameterError("the rows of kernel-svm always have norm 1; leave --row-norm out.")
        if self.kind == "additive":
            raise ParameterError("the bound on rows of an additive model follows from --schema; leave --row-norm out.")
        return {"row_norm": self.row_norm}


def _named_interactions(text: str) -> list[list[str]]:
    """The columns of each interaction, from text such as age:hours,age:sex."""
    named = [[name.strip() for name in entry.split(":")] for entry in text.split(",")]
    if any(len(names) < 2 or not all(names) for names in named):
        raise ParameterError(
            "--interactions must be auto, pairs, all, or columns with colons between, such as age:hours,age:sex. Columns "
            "with colons or commas in their names can be named in the schema, as interact = [...]."
        )
    return named


def _number_of_knots(text: str) -> int:
    from confide.features.columns import MOST_EVEN_KNOTS

    if not re.fullmatch("[0-9]{1,9}", text) or int(text) > MOST_EVEN_KNOTS:
        raise ParameterError(f"--knots must be auto or a whole number from 0, a straight line, to {MOST_EVEN_KNOTS}.")
    return int(text)
