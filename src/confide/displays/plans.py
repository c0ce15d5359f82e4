"""Pictures of plans and of ledgers: the accuracy to be expected at several budgets, and what was spent."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from confide.accounting.batches import spending_of
from confide.accounting.ledger import Ledger
from confide.accounting.records import Entry
from confide.effects.picture import BLUE, ORANGE, Display, plain, shortened
from confide.errors import ParameterError, checked_list, wording
from confide.planning.made_up_fits import estimator_with, parameters_of
from confide.planning.simulation import COVERAGE, Forecast, simulate
from confide.privacy.budgets import Budget, as_budget, with_amount

_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""The budgets around the chosen one, as multiples of it."""


class PrivacyAccuracyDisplay(Display):
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

    def __init__(self, forecasts: Sequence[Forecast], *, budget: Budget) -> None:
        self.forecasts = tuple(sorted(forecasts, key=lambda forecast: forecast.plan.event.budget.amount))
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
            raise ParameterError(wording("picture needs public guesses"))
        chosen = as_budget(parameters_of(estimator).get("budget"))
        given = budgets_around(chosen) if budgets is None else checked_list("budgets", budgets, "budgets")
        around = list(map(as_budget, given))
        if not around or len({type(candidate) for candidate in [chosen, *around]}) > 1:
            raise ParameterError("budgets must be one or more budgets of the kind that the estimator has.")
        made = [estimator_with(estimator, budget=candidate) for candidate in around]
        forecasts = [simulate(candidate, n_rows, n_features, error=error, positive_rate=positive_rate) for candidate in made]
        return cls(forecasts, budget=chosen).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        ax = self._on(ax, (6.4, 4.2))
        amounts = [forecast.plan.event.budget.amount for forecast in self.forecasts]
        first = self.forecasts[0]
        lows, highs = zip(*[(1.0 - forecast.high, 1.0 - forecast.low) for forecast in self.forecasts], strict=True)
        where = f"where it probably lies ({COVERAGE:.0%} of cells on public data sets)"
        ax.fill_between(amounts, lows, highs, color=BLUE, alpha=0.2, linewidth=0.0, label=where)
        forecast_line = {"color": BLUE, "marker": "o", "linewidth": 2.0, "label": "forecast"}
        ax.plot(amounts, [1.0 - forecast.error for forecast in self.forecasts], **forecast_line)
        for error, style, label in (
            (first.non_private_error, "--", "assumed without privacy"),
            (first.constant_error, ":", "without a model"),
        ):
            ax.axhline(1.0 - error, color="0.4", linestyle=style, linewidth=1.0, label=label)
        ax.axvline(self.budget.amount, color=ORANGE, linewidth=1.0, label=plain(f"chosen: {self.budget}"))
        ax.set_xscale("log")
        ax.set_xticks(amounts, [f"{amount:.3g}" for amount in amounts])
        ax.minorticks_off()
        name, delta = self.budget.symbol, f" (delta = {self.budget.slack:g})" if self.budget.is_approximate else ""
        ax.set(xlabel=name + delta, ylabel="expected accuracy on new rows")
        ax.legend(fontsize="small", frameon=False)


def budgets_around(budget: Budget) -> list[Budget]:
    """The budgets of a curve: epsilon or rho below and above the chosen one, delta as it is."""
    return [with_amount(budget, factor * budget.amount) for factor in _FACTORS]


# A picture of what a ledger has spent, charge by charge.

_MOST_NAMES, _LONGEST_NAME = 12, 28


class LedgerDisplay(Display):
    """A picture of what was spent on one body of data after each charge, and of the limit.

    The height of each step is what the charge added: where Rényi divergences add up, a later charge may add less than it
    would cost alone.

    Parameters
    ----------
    spending : sequence of (Entry, Budget)
        Each charge, and what had been spent after it.
    limit : Budget
        The most that all charges together may cost.

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
    Guarantee: none is needed. A ledger holds public facts alone.
    """

    def __init__(self, spending: Sequence[tuple[Entry, Budget]], *, limit: Budget) -> None:
        self.spending, self.limit = tuple(spending), limit

    @classmethod
    def from_ledger(cls, ledger: Ledger | str | os.PathLike[str], *, ax: Any = None) -> LedgerDisplay:
        """Draw what a ledger has spent.

        Parameters
        ----------
        ledger : Ledger, or the path or URL of one that exists
        ax : Matplotlib axes or None
            None makes a new figure.

        Returns
        -------
        LedgerDisplay
            Drawn: `ax_` and `figure_`.

        Raises
        ------
        LedgerError, FileError
            If there is no such ledger, or it was damaged.
        ParameterError
            If Matplotlib is not installed.
        """
        opened = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        return cls(spending_of(opened), limit=opened.limit).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        n = len(self.spending)
        ax = self._on(ax, (max(6.0, min(12.0, 2.4 + 0.6 * n)), 4.4))
        limit, amounts = self.limit.amount, [0.0, *(spent.amount for _, spent in self.spending)]
        # What was spent stays so until the next charge. The last step is as wide as the others.
        places, heights = [*range(n + 2)], [*amounts, amounts[-1]]
        ax.step(places, heights, where="post", color=BLUE, linewidth=2.0)
        ax.fill_between(places, heights, step="post", color=BLUE, alpha=0.2, linewidth=0.0)
        ax.axhline(limit, color=ORANGE, linewidth=1.5)
        below = {"xytext": (4, -4), "textcoords": "offset points", "va": "top", "fontsize": "small"}
        ax.annotate(f"limit {limit:.4g}", (0.0, limit), **below)
        left = f"{limit - amounts[-1]:.4g} of {limit:.4g} left"
        ax.set_title(plain(f"{n} charge{'s'[: n != 1]}; {left}"), fontsize="medium", loc="left")
        self._name_charges(ax, n)
        delta = f" (delta up to {self.limit.slack:g})" if self.limit.is_approximate else ""
        ax.set(ylabel=f"{self.limit.symbol} spent{delta}", xlim=(0.0, n + 1.0), ylim=(0.0, 1.08 * limit))

    def _name_charges(self, ax: Any, n: int) -> None:
        """Number, day and purpose of each charge, or of some of them where there are many."""
        shown = [entry for entry, _ in self.spending[:: max(1, -(-n // _MOST_NAMES))]]
        purposes = [shortened(entry.purpose or "(no purpose)", _LONGEST_NAME) for entry in shown]
        texts = [f"{entry.number}  {entry.time[:10]}\n{purpose}" for entry, purpose in zip(shown, purposes, strict=True)]
        ax.set_xticks([entry.number for entry in shown], texts, rotation=30, ha="right", rotation_mode="anchor")
        ax.tick_params(labelsize="small")
        ax.set_xlabel("charge, with its day (UTC) and purpose" if shown else "no charge yet", fontsize="small")
