"""A picture of the accuracy that is to be expected at several budgets, before any row is read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from confide.displays.axes import BLUE, ORANGE, axes_for, plain
from confide.errors import ParameterError
from confide.planning.estimator_copies import estimator_with
from confide.planning.simulation import COVERAGE, Forecast, simulate
from confide.privacy.budgets import Budget, as_budget, budget_from_dict

_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)


class PrivacyAccuracyDisplay:
    """A picture of expected accuracy against the budget, around the budget that was chosen.

    The line is the forecast of `confide.planning.simulate`, the band the range in which the mean accuracy of fits to real
    rows probably lies. Two lines show the accuracy that is assumed without privacy, and that of naming the more frequent
    class for every row.

    Parameters
    ----------
    forecasts : sequence of Forecast
        One for each budget.
    budget : Budget
        The chosen one.

    Attributes
    ----------
    ax_ : Matplotlib axes
    figure_ : Matplotlib figure

    Raises
    ------
    ParameterError
        By `plot`, if Matplotlib is not installed.

    Notes
    -----
    Guarantee: none is needed. No row is read: forecasts are made from public facts and made-up rows.
    """

    ax_: Any
    figure_: Any

    def __init__(self, forecasts: Sequence[Forecast], *, budget: Budget) -> None:
        self.forecasts = tuple(sorted(forecasts, key=lambda each: _amount(each.plan.event.budget)))
        self.budget = budget

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        n_rows: int | None = None,
        n_features: int | None = None,
        *,
        error: float | None = None,
        positive_rate: float = 0.5,
        budgets: Iterable[float | Budget] | None = None,
        ax: Any = None,
    ) -> PrivacyAccuracyDisplay:
        """Forecast the accuracy of a private classifier at several budgets, and draw it.

        Parameters
        ----------
        estimator : classifier for two classes, with a finite budget
            It need not be fitted.
        n_rows, n_features : int or None
            As in the estimator's `plan`.
        error : float, in (0, 1/2)
            Test error that a model without privacy is expected to reach: a guess from the literature or a pilot study, not
            from the data to be protected. It must be given.
        positive_rate : float, default 0.5
            Expected share of one of the two classes.
        budgets : iterable of budgets of one kind, or None
            None: from a quarter to four times the estimator's own. A forecast takes some seconds.
        ax : Matplotlib axes or None
            None makes a new figure.

        Returns
        -------
        PrivacyAccuracyDisplay

        Raises
        ------
        ParameterError
            If Matplotlib is not installed, `error` is not given, budgets are of several kinds, or as in
            `confide.planning.simulate`.
        """
        if error is None:
            raise ParameterError(
                "PrivacyAccuracyDisplay forecasts from public guesses, so give the number of rows and the error that a "
                "model without privacy would make: PrivacyAccuracyDisplay.from_estimator(model, n_rows=10_000, error=0.2)."
            )
        chosen = as_budget(estimator.budget)
        found = _around(chosen) if budgets is None else [as_budget(each) for each in budgets]
        if not found or len({type(each) for each in [chosen, *found]}) > 1:
            raise ParameterError("budgets must be one or more budgets of the kind that the estimator has.")
        forecasts = [
            simulate(estimator_with(estimator, budget=each), n_rows, n_features, error=error, positive_rate=positive_rate)
            for each in found
        ]
        return cls(forecasts, budget=chosen).plot(ax=ax)

    def plot(self, ax: Any = None) -> PrivacyAccuracyDisplay:
        """Draw on Matplotlib axes, or on a new figure.

        Parameters
        ----------
        ax : Matplotlib axes or None
            None makes a new figure.

        Returns
        -------
        The display itself.

        Raises
        ------
        ParameterError
            If Matplotlib is not installed.
        """
        ax = axes_for("PrivacyAccuracyDisplay", ax, (6.4, 4.2))
        amounts = [_amount(each.plan.event.budget) for each in self.forecasts]
        first = self.forecasts[0]
        ax.fill_between(
            amounts,
            [1.0 - each.high for each in self.forecasts],
            [1.0 - each.low for each in self.forecasts],
            color=BLUE,
            alpha=0.2,
            linewidth=0.0,
            label=f"where it probably lies ({COVERAGE:.0%} of cells on public data sets)",
        )
        ax.plot(
            amounts, [1.0 - each.error for each in self.forecasts], color=BLUE, marker="o", linewidth=2.0, label="forecast"
        )
        ax.axhline(
            1.0 - first.non_private_error, color="0.4", linestyle="--", linewidth=1.0, label="assumed without privacy"
        )
        ax.axhline(1.0 - first.constant_error, color="0.4", linestyle=":", linewidth=1.0, label="without a model")
        ax.axvline(_amount(self.budget), color=ORANGE, linewidth=1.0, label=plain(f"chosen: {self.budget}"))
        ax.set_xscale("log")
        ax.set_xticks(amounts, [f"{amount:.3g}" for amount in amounts])
        ax.minorticks_off()
        name = next(iter(self.budget.ranges))
        delta = getattr(self.budget, "delta", None)
        ax.set_xlabel(name if delta is None else f"{name} (delta = {delta:g})")
        ax.set_ylabel("expected accuracy on new rows")
        ax.legend(fontsize="small", frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _amount(budget: Budget) -> float:
    """The first amount of a budget: its epsilon or its rho."""
    return float(getattr(budget, next(iter(budget.ranges))))


def _around(budget: Budget) -> list[Budget]:
    """Budgets around one."""
    # The first amount is epsilon or rho; a delta stays as it is.
    facts = budget.to_dict()
    name = next(iter(budget.ranges))
    return [budget_from_dict(facts | {name: factor * _amount(budget)}) for factor in _FACTORS]
