"""A picture of what a ledger has spent, charge by charge."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from confide.accounting.ledger import Ledger
from confide.accounting.ledger_records import Entry
from confide.accounting.spending import spending_of
from confide.displays.axes import BLUE, ORANGE, axes_for, plain, shortened
from confide.privacy.budgets import Budget

_MOST_NAMES, _LONGEST_NAME = 12, 28


class LedgerDisplay:
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

    ax_: Any
    figure_: Any

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

    def plot(self, ax: Any = None) -> LedgerDisplay:
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
        n = len(self.spending)
        ax = axes_for("LedgerDisplay", ax, (max(6.0, min(12.0, 2.4 + 0.6 * n)), 4.4))
        name = next(iter(self.limit.ranges))
        limit, amounts = getattr(self.limit, name), [0.0, *(getattr(spent, name) for _, spent in self.spending)]
        # What was spent stays so until the next charge. The last step is as wide as the others.
        ax.step([*range(n + 1), n + 1], [*amounts, amounts[-1]], where="post", color=BLUE, linewidth=2.0)
        ax.fill_between([*range(n + 1), n + 1], [*amounts, amounts[-1]], step="post", color=BLUE, alpha=0.2, linewidth=0.0)
        ax.axhline(limit, color=ORANGE, linewidth=1.5)
        ax.annotate(
            f"limit {limit:.4g}", (0.0, limit), xytext=(4, -4), textcoords="offset points", va="top", fontsize="small"
        )
        left = f"{limit - amounts[-1]:.4g} of {limit:.4g} left"
        ax.set_title(plain(f"{n} charge{'s'[: n != 1]}; {left}"), fontsize="medium", loc="left")
        self._name_charges(ax, n)
        delta = getattr(self.limit, "delta", None)
        ax.set_ylabel(f"{name} spent" if delta is None else f"{name} spent (delta up to {delta:g})")
        ax.set_xlim(0.0, n + 1.0)
        ax.set_ylim(0.0, 1.08 * limit)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _name_charges(self, ax: Any, n: int) -> None:
        """Number, day and purpose of each charge, or of some of them where there are many."""
        step = max(1, -(-n // _MOST_NAMES))
        shown = [entry for entry, _ in self.spending[::step]]
        purposes = [shortened(each.purpose or "(no purpose)", _LONGEST_NAME) for each in shown]
        texts = [f"{each.number}  {each.time[:10]}\n{purpose}" for each, purpose in zip(shown, purposes, strict=True)]
        ax.set_xticks([each.number for each in shown], texts, rotation=30, ha="right", rotation_mode="anchor")
        ax.tick_params(labelsize="small")
        ax.set_xlabel("charge, with its day (UTC) and purpose" if shown else "no charge yet", fontsize="small")
