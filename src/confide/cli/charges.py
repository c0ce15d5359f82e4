"""What a fit charged and where its model went: said at its end, and wherever it stops before."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from confide.accounting.chargeable import as_events
from confide.accounting.ledger import Ledger
from confide.cli.budgets import named
from confide.cli.failures import StoppedAfterCharge
from confide.errors import FileError
from confide.estimators.persistence import content_of
from confide.files import document_text, write_text
from confide.privacy.budgets import Budget, Neighbours

UNCOUNTED = "Charged to no ledger: nothing adds this release to others from the same rows. To count them, give --ledger."
_MOST_NAMES = 100
"""Of rescue files in one folder."""


class _Watched(Ledger):
    """A ledger that knows what was charged through it."""

    charged: Budget | None = None
    is_certain = False

    def charge(self, budget: object, *, purpose: str = "", neighbours: Neighbours | str | None = None) -> None:
        (event,) = as_events(budget)
        self.charged = event.budget  # first: the charge may be on the disk when control-C is pressed
        try:
            super().charge(event, purpose=purpose, neighbours=neighbours)
        except Exception:
            self.charged = None
            raise
        self.is_certain = True


class Charges:
    """What one fit charges, and where its model is.

    Parameters
    ----------
    place : file or URL of the ledger; None for no ledger
    """

    def __init__(self, place: str | None) -> None:
        self._place = place
        self.ledger = None if place is None else _Watched(place)
        self._kept: str | None = None
        self._is_fitted = False

    @contextmanager
    def told(self) -> Iterator[None]:
        """Whatever stops what is done inside, by control-C or by a failure after the charge, ends with what was charged."""
        try:
            yield
        except (Exception, KeyboardInterrupt) as error:
            charged = self.ledger is not None and self.ledger.charged is not None
            if not (charged or self._is_fitted or isinstance(error, KeyboardInterrupt)):
                raise
            raise StoppedAfterCharge(error, f"{self._charged()} {self._where()}") from error

    def keep(self, model: Any, out: Path, *, overwrite: bool) -> None:
        """Write the model that was fitted; where that fails, under another name, for its budget is spent.

        Raises
        ------
        FileError
            If the model is not where it was wanted; `told` adds where it is.
        """
        self._is_fitted = True
        text = document_text(content_of(model))
        try:
            write_text(out, text, overwrite=overwrite)
        except Exception as error:
            self._kept = _rescued(text, out)
            if isinstance(error, FileError):
                raise
            raise FileError(f"cannot write {out}: unexpected {type(error).__name__}.") from error
        self._kept = f"in {out}"

    def sentence(self) -> str:
        """The end of a fit that went well."""
        if self.ledger is None:
            return UNCOUNTED
        return f"{self._charged().removesuffix('.')} ({named(self.ledger.remaining())} left)."

    def document(self) -> dict[str, Any]:
        """The same for machines; null for no ledger."""
        if self.ledger is None or self.ledger.charged is None:
            return {"ledger": None, "charged": None, "remaining": None}
        charged, remaining = self.ledger.charged.to_dict(), self.ledger.remaining().to_dict()
        return {"ledger": self._place, "charged": charged, "remaining": remaining}

    def _charged(self) -> str:
        if self.ledger is None:
            return "No ledger was given, so nothing was charged."
        if self.ledger.charged is None:
            return "Nothing was charged."
        if self.ledger.is_certain:
            return f"Charged {named(self.ledger.charged)} to {self._place}."
        return f"A charge of {named(self.ledger.charged)} to {self._place} may stand; look with `confide ledger show`."

    def _where(self) -> str:
        return "No model was written." if self._kept is None else f"The model is {self._kept}."


def _rescued(text: str, out: Path) -> str:
    """Write the model beside its place, else where the command runs, else in the temporary folder; else show it."""
    for folder in (out.parent, Path.cwd(), Path(tempfile.gettempdir())):
        for number in range(1, _MOST_NAMES):
            rescue = folder / f"rescued-model{'' if number == 1 else f'-{number}'}.json"
            with suppress(Exception):
                if rescue.exists():
                    continue
                write_text(rescue, text)
                return f"in {rescue}: copy it to where it should be"
            break
    sys.stdout.write(text)
    sys.stdout.flush()
    return "on standard output, for no folder takes it: put it into a file"
