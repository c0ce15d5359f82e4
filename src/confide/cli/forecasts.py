"""How `confide plan` shows forecasts of accuracy: as a table with bars for people, as JSON for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confide.planning.simulation import COVERAGE

if TYPE_CHECKING:
    from confide.cli.display import Screen
    from confide.planning.simulation import Forecast

_BAR_WIDTH = 40


def forecast_document(forecast: Forecast) -> dict[str, Any]:
    """A forecast, for programs."""
    names = ("error", "low", "high", "non_private_error", "constant_error")
    # The budget of the whole release: a part of it may pay for intervals.
    facts = {"budget": forecast.plan.event.budget.to_dict(), "coverage": COVERAGE}
    return facts | {name: getattr(forecast, name) for name in names}


def show_forecasts(forecasts: list[Forecast], screen: Screen) -> None:
    """Show one line for each forecast."""
    screen.heading("Accuracy to be expected, simulated")
    name = next(iter(forecasts[0].plan.budget.ranges))
    rows = [(f"{getattr(forecast.plan.event.budget, name):.4g}", *_cells(forecast)) for forecast in forecasts]
    screen.table((name, "accuracy", "4 in 5 within", ""), rows, words=("",), optional=("",))
    first = forecasts[0]
    screen.text(
        f"This assumes an accuracy of {1.0 - first.non_private_error:.4g} without privacy; "
        f"{1.0 - first.constant_error:.4g} needs no model where one class has a share of {first.constant_error:.4g} "
        f"(--positive-rate). Rows are made up from the bounds alone. The ranges were "
        f"calibrated on real data sets: on each, they held the mean accuracy in at least 4 of 5 cases. benchmarks/README.md "
        f"has the results on these and on other data sets."
    )


def _cells(forecast: Forecast) -> tuple[str, ...]:
    """Accuracy, its range, and a bar: empty at the accuracy of no model, full at that without privacy."""
    reached = (forecast.constant_error - forecast.error) / (forecast.constant_error - forecast.non_private_error)
    bar = "#" * round(_BAR_WIDTH * min(1.0, max(0.0, reached)))
    return (
        f"{1.0 - forecast.error:.4f}",
        f"{1.0 - forecast.high:.4f} to {1.0 - forecast.low:.4f}",
        "|" + bar.ljust(_BAR_WIDTH) + "|",
    )
