"""`confide sample-size`: how many rows suffice for a bound on the loss, before any data are read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from confide.cli.budgets import Delta, Epsilon, Rho, chosen_budget
from confide.cli.options import Format, ModelOptions, takes_model_options


@takes_model_options(without=("alpha", "centre", "neighbours", "n_rows_bounds", "jobs", "seed"))
def sample_size(
    excess: Annotated[
        float,
        typer.Option(
            metavar="X", help="How far the mean loss may lie above that of the weights to compare with.", show_default=False
        ),
    ],
    epsilon: Epsilon = None,
    features: Annotated[int | None, typer.Option(min=1, metavar="D", help="Number of columns of numbers.")] = None,
    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TOML file that describes the columns, instead of --features.")
    ] = None,
    delta: Delta = None,
    rho: Rho = None,
    reference_norm: Annotated[
        float, typer.Option(metavar="R", help="L2 norm of the weights to compare with, in encoded columns.")
    ] = 1.0,
    failure: Annotated[float, typer.Option(metavar="P", help="Probability that the bound does not hold.")] = 0.05,
    population: Annotated[
        bool, typer.Option("--population", help="Bound the loss on new rows, rather than on the rows of the fit.")
    ] = False,
    by: Annotated[
        Literal["utility-bound", "excess-risk-bound"],
        typer.Option(help="The bound; excess-risk-bound is for new rows, and asks for far fewer of them."),
    ] = "utility-bound",
    *,
    options: ModelOptions,
    output_format: Format = "text",
) -> None:
    """Show a number of rows that suffices for a proven bound on the loss. Reads no data and spends nothing.

    The bound holds for all data, so it asks for many more rows than typical data need: `confide plan` has the forecast.
    """
    from confide.cli import display
    from confide.cli.plan import require_one, schema_of
    from confide.planning.sample_sizes import sample_size as sufficient

    budget = chosen_budget(epsilon, delta, rho)
    require_one(features, schema, "--features or --schema, which states the number of columns")
    model = options.estimator(budget, schema_of(schema))
    with display.working("looking for a number of rows"):
        found = sufficient(
            model,
            features,
            excess=excess,
            reference_norm=reference_norm,
            failure=failure,
            population=population,
            by=by.replace("-", "_"),
        )
    plan = found.plan
    if output_format == "json":
        bound = {name: getattr(found.bound, name) for name in found.bound.__dataclass_fields__}
        display.print_json({"rows": found.n_rows, "alpha": plan.alpha, "mechanism": plan.mechanism, "bound": bound})
        return
    screen = display.Screen()
    screen.heading(f"{found.n_rows:,} rows suffice")
    screen.text(str(found.bound))
    screen.text("It holds for a fit with these options:")
    screen.verbatim(f"  --alpha {plan.alpha:.6g} --mechanism {plan.mechanism} --no-centre")
