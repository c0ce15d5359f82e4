"""What a fit charged, and where its model is. Said when the fit ends, and also when it fails or is stopped."""

from __future__ import annotations

import hashlib
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from confide.accounting.batches import charges_of
from confide.accounting.ledger import Ledger
from confide.accounting.records import current_user
from confide.cli.failures import StoppedAfterCharge
from confide.cli.option_values import is_dialogue
from confide.errors import BudgetWarning, FileError, ParameterError, wording
from confide.estimators.linear_model import document_of_model
from confide.expected_noise import NOISE_HIDES
from confide.features.schema import Schema
from confide.files import document_text, rescued, write_text
from confide.privacy.budgets import Budget, shown_amounts
from confide.privacy.events import as_events
from confide.report.ledger_facts import unit_note
from confide.training.charge import STOPS, VOID_MARK, cohort_of, note_checksum

NO_LEDGER_GIVEN = "Charged to no ledger: nothing adds this release to others from these rows. To add them up, give --ledger."
_MAKE_ONE = wording("make a ledger")


def agree_on_ledger(ledger: str | None, budget: Budget, *, no_ledger: bool) -> bool:
    """Ask in a terminal whether a release without a ledger is meant; say whether a warning is due because nobody was asked.

    Raises
    ------
    ParameterError
        If the answer is no, or both a ledger and none are asked for. Nothing was charged.
    """
    if ledger is not None and no_ledger:
        raise ParameterError("give either --ledger or --no-ledger.")
    if ledger is not None or no_ledger or not budget.is_private:
        return False
    if not is_dialogue():
        return True
    if typer.confirm("No ledger was given, so nothing would record what this release spends. Go on without one?"):
        return False
    raise ParameterError(f"stopped, and nothing was charged. {_MAKE_ONE}")


@contextmanager
def nothing_wasted(*, force: bool) -> Iterator[None]:
    """Refuse in the block, before its charge, a budget that buys nothing, unless it is forced."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore" if force else "error", NOISE_HIDES, BudgetWarning)
        try:
            yield
        except BudgetWarning as wasted:
            raise ParameterError(f"{wasted} Nothing was charged. To charge it all the same, give --force-budget.") from None


class _WatchedLedger(Ledger):
    """A ledger that remembers what was charged through this object.

    Attributes
    ----------
    charged : the budget of the charge that was begun; None before
    cohort : the cohort that alone pays it; None for everybody
    is_certain : whether that charge is known to be on disk
    purpose : what the user says that the charge is for; None for what the library says
    model_file : the file that will hold what is bought; None if there is none
    """

    charged: Budget | None = None
    cohort: str | None = None
    is_certain = False
    purpose: str | None = None
    model_file: Path | None = None

    def charge(self, budget: object, *, purpose: str = "", details: Mapping[str, str] | None = None, **how: Any) -> None:
        model = {} if self.model_file is None else {"model": str(self.model_file)}
        event, known = as_events(budget)[0], {"release": purpose, "user": current_user(), **model, **(details or {})}
        mark = VOID_MARK if purpose.endswith(VOID_MARK) else ""
        said = purpose if self.purpose is None else f"{self.purpose}{mark}"
        # Noted before the charge, which may be on disk already when control-C interrupts it.
        self.charged, self.cohort = event.budget, how.get("cohort")
        try:
            super().charge(event, purpose=said, details=known, **how)
        except Exception:
            self.charged = None
            raise
        self.is_certain = True


class Charges:
    """What one fit charges, and where its model is.

    Parameters
    ----------
    place : file or URL of the ledger; None if the fit has no ledger
    purpose : what the ledger records as the purpose; None for what the library says
    model_file : the file that will hold the model, for the ledger
    rows : the largest number of rows of a person that are protected; a warning says if the ledger is for fewer
    finish : whether the release finishes a charge that was interrupted, in place of a new one

    Attributes
    ----------
    is_unasked : whether there is no ledger and nobody said that none is wanted; then a warning follows the release
    """

    def __init__(
        self,
        place: str | None,
        *,
        purpose: str | None = None,
        model_file: Path | None = None,
        rows: int = 1,
        finish: bool = False,
    ) -> None:
        if finish and place is None:
            raise ParameterError("--finish is for a release that was charged to a ledger: give it with --ledger.")
        self._place = place
        self.ledger = None if place is None else _WatchedLedger(place, finish=finish)
        if self.ledger is not None:
            self.ledger.purpose, self.ledger.model_file = purpose, model_file
            if note := unit_note(self.ledger.max_rows_per_person, rows):
                print(f"warning: {place}: {note}", file=sys.stderr)
        self._model_place: str | None = None
        self._is_fitted = self.is_unasked = False

    @contextmanager
    def reported_on_failure(self, released: str = "model") -> Iterator[None]:
        """Add what was charged to every error of the block: to control-C, and to any failure after the charge.

        Parameters
        ----------
        released : what the command writes, for the message

        Raises
        ------
        StoppedAfterCharge
            In place of such an error. A failure before the charge is raised as it is.
        """
        try:
            # From the mark that a release has ended, those that stop the program wait until `kept` says that it is safe.
            with STOPS.may_wait("SIGINT", "SIGTERM", "SIGHUP"):
                yield
            if self.is_unasked:
                self.is_unasked = False
                print(f"warning: no ledger was given, so nothing records what this spent. {_MAKE_ONE}", file=sys.stderr)
        except (Exception, KeyboardInterrupt) as error:
            charged = self.ledger is not None and self.ledger.charged is not None
            if not (charged or self._is_fitted or isinstance(error, KeyboardInterrupt)):
                raise
            where = f"The {released} is {self._model_place}." if self._model_place else f"No {released} was written."
            raise StoppedAfterCharge(error, f"{self._charged()} {where}") from error

    def write_model(self, model: Any, out: Path, *, overwrite: bool, noted: Callable[[str], None] | None = None) -> None:
        """Write the fitted model. If that fails, write it under another name, because its budget is already spent.

        `noted` gets the checksum of the file before the file takes its place.

        Raises
        ------
        FileError
            If the model could not be written to `out`. `reported_on_failure` adds where it is instead.
        """
        text = document_text(document_of_model(model))
        if noted is not None:
            with self.rescued_on_failure(text, out):
                noted(hashlib.sha256(text.encode()).hexdigest())
        self.write(text, out, overwrite=overwrite)

    def write(self, text: str, out: Path, *, overwrite: bool, released: str = "model") -> None:
        """Write what was released as text, as `write_model` does; `released` says what it is."""
        with self.rescued_on_failure(text, out, released):
            write_text(out, text, overwrite=overwrite)
        self._model_place = f"in {out}"
        number = None if self.ledger is None else self.ledger.last_charge
        if self.ledger is not None and number is not None and (failed := note_checksum(self.ledger, number, text)):
            print(f"warning: {failed}", file=sys.stderr)
        self.kept(f"in {out}")

    def kept(self, place: str) -> None:
        """Say where what was released is from now on. A signal that waited for this takes effect."""
        self._is_fitted, self._model_place = True, place
        STOPS.give_back()

    @contextmanager
    def rescued_on_failure(self, text: str, out: Path, released: str = "model") -> Iterator[None]:
        """Write what was released as text under another name if the block, which is to write `out`, fails."""
        self._is_fitted = True
        try:
            yield
        except (Exception, KeyboardInterrupt) as error:
            self._model_place = rescued(text, out, released)
            if isinstance(error, FileError | KeyboardInterrupt):
                raise
            raise FileError(f"cannot write {out}: unexpected {type(error).__name__}.") from error

    def purposes(self) -> list[str]:
        """The purposes of all charges that the ledger holds now."""
        return [] if self.ledger is None else [charge["purpose"] for charge in charges_of(self.ledger)]

    def checked(self, events: Iterable[object], schema: Schema) -> None:
        """Raise what charging all these would raise, for rows read by a schema. Nothing is charged.

        Raises
        ------
        LedgerError
            If the ledger has too little left, or cannot count them.
        """
        if self.ledger is not None:
            self.ledger.check(events, self.ledger.purpose or "", cohort_of(schema, self.ledger))

    def closing_sentence(self) -> str:
        """The sentence that a successful fit ends with: what was charged, and what is left."""
        if self.ledger is None:
            return NO_LEDGER_GIVEN
        return f"{self._charged().removesuffix('.')} ({shown_amounts(self.ledger.remaining(self.ledger.cohort))} left)."

    @property
    def time(self) -> str | None:
        """The time that the ledger names for the last charge; None if there was none."""
        if self.ledger is None or self.ledger.last_charge is None:
            return None
        return str(charges_of(self.ledger)[self.ledger.last_charge - 1]["time"])

    def document(self) -> dict[str, Any]:
        """What was charged and what is left, for programs; null without a ledger."""
        if self.ledger is None or self.ledger.charged is None:
            return {"ledger": None, "charged": None, "remaining": None}
        charged, remaining = self.ledger.charged.to_dict(), self.ledger.remaining(self.ledger.cohort).to_dict()
        return {"ledger": self._place, "charged": charged, "remaining": remaining}

    def _charged(self) -> str:
        if self.ledger is None:
            return "No ledger was given, so nothing was charged."
        if self.ledger.charged is None:
            return "Nothing was charged."
        if self.ledger.is_certain and self.ledger.finish:
            done, amounts = "Finished" if self._is_fitted else "Took up", shown_amounts(self.ledger.charged)
            return f"{done} a charge of {amounts} to {self._place}; nothing was charged anew."
        if self.ledger.is_certain:
            return f"Charged {shown_amounts(self.ledger.charged)} to {self._place}."
        amounts = shown_amounts(self.ledger.charged)
        return f"A charge of {amounts} to {self._place} may have been recorded; check with `confide ledger show`."
