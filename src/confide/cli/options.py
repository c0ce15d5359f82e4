"""Options that commands share, and the estimator that they name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from confide.errors import ParameterError

if TYPE_CHECKING:
    from confide.estimators.linear_classifier import LinearClassifier
    from confide.privacy.budgets import Budget

RowsPerPerson = Annotated[
    int, typer.Option("--max-rows-per-person", min=1, metavar="K", help="The most rows that one person contributed.")
]
Alpha = Annotated[str, typer.Option(metavar="auto|NUMBER", help="Ridge of the mean objective.")]
ModelName = Annotated[
    Literal["logistic", "svm", "kernel-svm"],
    typer.Option("--model", help="Logistic regression, or a support vector machine, linear or with a kernel."),
]
KernelName = Annotated[
    Literal["rbf", "laplacian", "cauchy"] | None, typer.Option(help="Of kernel-svm.  [default: rbf]", show_default=False)
]
LengthScale = Annotated[
    float | None,
    typer.Option(metavar="S", help="Of kernel-svm: where its kernel falls, in encoded columns. Public.  [default: 1]"),
]
RandomFeatures = Annotated[
    int | None, typer.Option("--n-features", metavar="D", help="Of kernel-svm: random features, even.  [default: 256]")
]
MechanismName = Annotated[
    Literal["auto", "objective", "output", "output-laplace"], typer.Option(help="Where the noise goes.")
]
NeighboursName = Annotated[
    Literal["replace-one", "add-or-remove-one"],
    typer.Option(help="Which data sets count as neighbours. The second keeps the number of rows private."),
]
RowsBounds = Annotated[
    tuple[int, int] | None,
    typer.Option(metavar="LOW HIGH", help="Public bounds on the number of rows, for add-or-remove-one."),
]
Intervals = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE|auto", help="Share of the budget for intervals of coefficients, for example 0.3.  [default: none]"
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
Format = Annotated[Literal["text", "json"], typer.Option("--format", help="For people or for machines.")]


def estimator_of(kind: str, budget: Budget, extra: dict[str, Any] | None = None, **parameters: Any) -> LinearClassifier:
    """The estimator of --model."""
    from confide.estimators.logistic import LogisticRegression
    from confide.estimators.svm import KernelSVC, LinearSVC

    kinds: dict[str, Any] = {"logistic": LogisticRegression, "svm": LinearSVC, "kernel-svm": KernelSVC}
    estimator: LinearClassifier = kinds[kind](budget, **parameters, **(extra or {}))
    return estimator


def kernel_parameters(kind: str, **options: Any) -> dict[str, Any]:
    """The options of a kernel that were given, or a refusal where the model has none."""
    given = {name: value for name, value in options.items() if value is not None}
    if given and kind != "kernel-svm":
        names = " and ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ParameterError(f"{names} is for --model kernel-svm alone; leave it out, or choose that model.")
    return given


def inference_share(kind: str, text: str | None) -> dict[str, float | str]:
    """The parameter of the estimator for --intervals, if it was given."""
    if text is None:
        return {}
    if kind == "kernel-svm":
        raise ParameterError(
            "--intervals is for --model logistic and svm: weights of random features mean nothing one by one."
        )
    try:
        return {"inference_share": text if text == "auto" else float(text)}
    except ValueError:
        raise ParameterError("--intervals must be auto or a number above 0 and up to 0.9.") from None


def alpha_of(text: str) -> float | str:
    """The parameter for --alpha."""
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise ParameterError("--alpha must be auto or a positive number.") from None
