"""The charge: what is done just before it, and the rule that a release comes after its charge and never before."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial, wraps
from typing import Any, Self, TypeVar, cast

import numpy as np

from confide.accounting.batches import charges_of
from confide.accounting.ledger import Batch, Ledger
from confide.accounting.records import INTENT
from confide.array_types import Indices
from confide.budget_warnings import SEEDED, attempts_sentence, tell_of_repeats, void_because, warn
from confide.errors import BudgetWarning, ConfideError, InputTypeError, LedgerError, NotCertified, ParameterError, wording
from confide.features.cells import positions_of
from confide.features.schema import Schema
from confide.features.table import RowsPerPerson
from confide.intake.parameters import checked_ledger
from confide.intake.rows import GivenRows
from confide.intake.specification import CheckedRows
from confide.models.model import Link
from confide.models.scores import LinearModel, favoured
from confide.parameters import checked
from confide.privacy.budgets import Budget, Neighbours, as_budget
from confide.privacy.events import Event
from confide.privacy.lattice import LatticeNoise
from confide.privacy.noise import Entropy
from confide.second_account import denies
from confide.threads import one_blas_thread
from confide.training.settings import Settings

VOID_MARK = " (void: random_state was set)"
"""How the purpose of a charge ends whose release has no guarantee. Readers of the ledger must see it."""
OF_USERS_CODE = "decided by functions of the user's own, or seen by parties in each pass"
"""In place of what decides a release where no text says all of it: an interrupted one cannot be known again."""


@dataclass(frozen=True, slots=True)
class Charge:
    """Where a release is charged.

    Attributes
    ----------
    ledger : Ledger, a batch planned on one, or None
    seed : seed of the noise, for tests; None means noise from the operating system's random numbers
    purpose : what the ledger records as the purpose of the charge
    intent : what decides the release, as a checksum; empty where an interrupted release cannot be finished
    attempt : the number of this attempt under its charge, as the release states it
    cohort : the cohort that alone is charged; None for everybody
    """

    ledger: Ledger | Batch | None
    seed: int | None
    purpose: str
    intent: str = ""
    attempt: int = 1
    cohort: str | None = None

    def of_release(self, event: Event, deciding: Callable[[], Iterable[object]], schema: Schema | None) -> Charge:
        """The charge of one release, from all public facts that decide it: by them an interrupted one is known again.

        It is for one cohort alone where the schema by which rows are read leaves out all others, and the ledger counts so.

        Raises
        ------
        LedgerError
            If the ledger is to finish a charge, and has none for this release.
        """
        ledger = self.ledger
        if not isinstance(ledger, Ledger):
            return self
        facts = tuple(deciding()) if self.seed is None else (OF_USERS_CODE,)
        text = "\n".join([self.purpose, *map(repr, facts)])
        intent = "" if OF_USERS_CODE in facts else hashlib.sha256(text.encode(errors="replace")).hexdigest()
        return replace(self, intent=intent, attempt=ledger.attempts(event, intent), cohort=cohort_of(schema, ledger))


def cohort_of(schema: Schema | None, ledger: Ledger) -> str | None:
    """The cohort that a release from rows of this schema concerns alone, by its name in this ledger; None for all rows."""
    column, value = (None, None) if schema is None or schema.cohort is None else schema.cohort
    return value if column is not None and column == ledger.cohorts else None


def deciding_fit(settings: Settings, rows: CheckedRows) -> tuple[object, ...] | str:
    """What decides a fit beside its plan, all of it public."""
    loss = getattr(settings.minimised, "loss", None)
    bounds = filter(None, (settings.row_bound, settings.bound_before_penalty))
    are_known = all(type(bound).__module__.startswith("confide.") for bound in bounds)
    # Parties see the weights of each pass, so of an attempt that was interrupted they have seen something.
    is_seen = rows.source.place == "parties"
    if is_seen or settings.own_penalty is not None or not are_known or (loss is not None and loss.constants.is_declared):
        return OF_USERS_CODE
    schema, prior = None if rows.encoder is None else rows.encoder.schema.to_dict(), settings.prior
    weights = None if prior is None else (prior.coef, prior.intercept)
    # A prior shows its weights in no text.
    return settings, weights, schema, rows.target_sentence, rows.domain, rows.fourier


def before_charge(
    charge: Charge,
    budget: Budget,
    lattices: Iterable[LatticeNoise | None],
    unusual: tuple[str, ...] = (),
    learned_steps: tuple[str, ...] = (),
    wasted: str | None = None,
) -> None:
    """Do what must come before a charge: ask OpenDP, if it is there, and warn of what is unusual, or of a wasted budget.

    All can stop the fit, warnings if they are errors. After the charge they would cost budget for nothing.

    Parameters
    ----------
    charge : where the release is charged
    budget : what it costs
    lattices : all noise on a grid that the release draws
    unusual : what is unusual about the budget, see `cautions`; a batch warned of it when it was planned
    learned_steps : the classes of the steps before a fit that learned from the rows
    wasted : why the budget buys nothing; None if it buys something

    Raises
    ------
    NotCertified
        If OpenDP finds the noise less private than claimed.
    """
    for lattice in lattices:
        # The release asks OpenDP again. It gets the same answer, so it cannot fail there after the charge.
        if lattice is not None and denies(lattice):
            raise NotCertified(wording("OpenDP refuses"))
    is_batch = isinstance(charge.ledger, Batch)
    sentences = [] if is_batch else [*unusual]
    if budget.is_private:
        sentences += [SEEDED] if charge.seed is not None else []
        sentences += [wording("steps that learned", classes=" and ".join(learned_steps))] if learned_steps else []
    if sentences:
        warn(sentences)
    if budget.is_private and not is_batch:
        tell_of_repeats(charge.purpose, str(budget), is_charged=charge.ledger is not None)
    if wasted is not None:
        warn([f"{wasted} The budget is wasted."], BudgetWarning)


def note_checksum(ledger: Ledger, number: int, text: str) -> str | None:
    """Write the SHA-256 of a released file beside its charge, once. What fails here changes neither charge nor file.

    Parameters
    ----------
    ledger : the ledger that was charged
    number : the number of the charge
    text : the contents of the file

    Returns
    -------
    str or None
        A sentence for the user if it could not be noted.
    """
    checksum = hashlib.sha256(text.encode()).hexdigest()
    try:
        if {charge["number"]: charge["sha256"] for charge in charges_of(ledger)}.get(number) != checksum:
            ledger.note(number, {"sha256": checksum})
    except (LedgerError, OSError) as error:
        return f"The file is written and its charge is in the ledger, but its checksum could not be noted there: {error}"
    return None


class Stops:
    """Signals that stop a program: they wait from the mark that a release has ended until what was released is kept."""

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()
        self._handlers: dict[signal.Signals, Any] = {}
        self._came: list[int] = []

    @contextmanager
    def may_wait(self, *names: str) -> Iterator[None]:
        """In this block signals of these names wait once `wait` is called. Call `end` within it to learn which came."""
        before, self.names = self.names, names
        try:
            yield
        finally:
            self.names = before
            self.end()

    def wait(self) -> None:
        """Note those that come. One that is ignored stays ignored."""
        if self._handlers or threading.current_thread() is not threading.main_thread():
            return
        with suppress(ValueError):  # the main thread of another interpreter gets no signals, and may not say what they do
            known = signal.Signals.__members__  # Windows has no SIGHUP
            for number in map(known.__getitem__, filter(known.__contains__, self.names)):
                handler = signal.getsignal(number)
                if handler is not None and handler is not signal.SIG_IGN:
                    # Remembered first: to put back a handler that was never exchanged does no harm.
                    self._handlers[number] = handler
                    signal.signal(number, lambda came, _: self._came.append(came))

    def end(self) -> list[int]:
        """Put their handlers back, and say which ones came."""
        try:
            self._put_back()
        finally:
            # The handler of another signal may have raised meanwhile.
            self._put_back()
        came, self._came = self._came, []
        return came

    def _put_back(self) -> None:
        for number, handler in list(self._handlers.items()):
            signal.signal(number, handler)
            self._handlers.pop(number, None)

    def give_back(self) -> None:
        """Put their handlers back, and have those that came take effect now, once each."""
        for number in self.end():
            handler = signal.getsignal(number)
            # Whoever listens by a file descriptor was told of the signal when it came.
            if callable(handler):
                handler(number, None)
            else:
                signal.raise_signal(number)


STOPS = Stops()
Released = TypeVar("Released")
Releasing = TypeVar("Releasing", bound=Callable[..., Any])


def keeps_released(function: Releasing) -> Releasing:
    """The function, in which control-C waits from the mark that its release has ended until that is kept.

    Then it is raised, and has what the function would have returned as `released`. An estimator has it in any case.
    """

    @wraps(function)
    def keeping(*given: Any, **named: Any) -> Any:
        if STOPS.names or threading.current_thread() is not threading.main_thread():
            return function(*given, **named)
        made = []
        STOPS.end()  # of an earlier call, if another signal's handler raised while that ended
        try:
            # No context manager: a second control-C could come on the way into its exit, and leave it undone.
            try:
                STOPS.names = ("SIGINT",)
                made.append(function(*given, **named))
            finally:
                STOPS.names = ()
                STOPS.give_back()
        except BaseException as stopped:
            if made:
                vars(stopped)["released"] = made[0]
                stopped.add_note("What was asked for had been released. It is kept, as `released` of this error.")
            raise
        return made[0]

    return cast("Releasing", keeping)


def charge_and_release(
    release: Callable[[Entropy], Released], event: Event, neighbours: Neighbours, charge: Charge
) -> Released:
    """Charge the event, and then release. The release starts only after the charge is recorded for good.

    With an intent, the ledger marks that the release has ended before anything of it is returned or raised.

    Parameters
    ----------
    release : what is done after the charge
    event, neighbours, charge : what is charged, and where

    Raises
    ------
    LedgerError
        If another run took up the same charge meanwhile. Nothing is released.
    NotCertified
        If the release ends with any error that confide does not raise on purpose. Its message, which may tell of rows, is
        not shown, unless CONFIDE_DEBUG=1 asks for it.
    """
    entropy = entropy_of(charge.seed)
    ledger, made, failure = charge.ledger, list[Released](), None
    begun: tuple[int | None, int] = None, 1
    # Floating-point warnings would depend on the data, so they are switched off.
    with np.errstate(all="ignore"), one_blas_thread():
        if ledger is not None:
            void = "" if charge.seed is None else VOID_MARK
            # When this call returns, the charge is recorded for good. If it raises, no row has been used.
            how: dict[str, Any] = {"details": {INTENT: charge.intent}} if charge.intent else {}
            how |= {} if charge.cohort is None else {"cohort": charge.cohort}
            ledger.charge(event, purpose=charge.purpose + void, neighbours=neighbours, **how)
            # Read at once: code of the user's may charge the same ledger during the release.
            begun = ledger.last_charge, ledger.last_attempt
        try:
            try:
                made.append(release(entropy))
            except BaseException as error:  # noqa: BLE001 - its message may tell of rows; raised below in words that do not
                failure = error
            # No error is handled here, so what is raised carries none of the release, and is the same whether that failed.
            if isinstance(failure, KeyboardInterrupt):
                raise KeyboardInterrupt
            STOPS.wait()
            _end(charge, *begun)
        except BaseException:
            # Whoever gets the error can read this frame.
            made.clear()
            failure = None
            raise
    if failure is None:
        return made[0]
    if os.environ.get("CONFIDE_DEBUG") == "1":
        raise failure
    if not isinstance(failure, ConfideError):
        failure = NotCertified(wording("release failed", kind=type(failure).__name__))
    # What was handled on the way, and the frames that the error passed, may tell of rows.
    failure.__context__ = None
    raise failure.with_traceback(None) from None


def _end(charge: Charge, number: int | None, attempt: int) -> None:
    """Mark that this attempt under a charge of this number has ended, if it is the one that the release states."""
    if not charge.intent or not isinstance(charge.ledger, Ledger) or number is None:
        return
    if attempt != charge.attempt:
        raise LedgerError("another run took up this charge meanwhile, so nothing is released. Try again.")
    charge.ledger.end(number, attempt)


def entropy_of(seed: int | None) -> Entropy:
    """Where random bits come from: the operating system, or a seed for tests."""
    return Entropy.fresh() if seed is None else Entropy.seeded(seed)


def rows_per_person(most: int, seed: int | None) -> RowsPerPerson:
    """Which rows of each person are used: at most this many, drawn at random."""
    entropy = cache(partial(entropy_of, seed))  # made when it is used, which without a column of persons is never
    return RowsPerPerson(most, lambda n_rows: entropy().permutation(n_rows))


@dataclass(frozen=True, slots=True)
class OwnRelease:
    """A release on its own, beside fits: what was asked for, checked before a row is read, and its one charge.

    Attributes
    ----------
    budget, neighbours : what the release costs, and whom it protects
    most_rows : the largest number of rows of one person
    charge : where it is charged
    """

    budget: Budget
    neighbours: Neighbours
    most_rows: int
    charge: Charge

    @classmethod
    def of(cls, purpose: str, budget: Any, neighbours: Any, most_rows: Any, ledger: Any, random_state: Any) -> Self:
        """The checked parameters of a function that releases.

        Raises
        ------
        ParameterError
            If one of them cannot be used.
        """
        charge = Charge(checked_ledger(ledger), checked("random_state", random_state), purpose)
        return cls(as_budget(budget), Neighbours.parse(neighbours), checked("max_rows_per_person", most_rows), charge)

    @property
    def persons(self) -> RowsPerPerson:
        """Which rows of each person are used."""
        return rows_per_person(self.most_rows, self.charge.seed)

    def void(self, consequence: str) -> str | None:
        """Why there is no guarantee; None if there is one."""
        return void_because(self.budget.is_private, self.charge.seed, consequence)

    def stated(self, consequence: str) -> dict[str, Any]:
        """What a schema says of this release: its price, whom it protects, its ledger, and whether it is void."""
        ledger = self.charge.ledger
        return self.budget.amounts | {
            "neighbours": str(self.neighbours),
            "max_rows_per_person": self.most_rows,
            "ledger": None if ledger is None else ledger.identity,
            "void": self.void(consequence),
        }

    def public_number(self, n_rows: int, schema: Schema | None) -> int | None:
        """The number of rows; None where it is private. A cohort is refused where it would be public."""
        # Rows beyond a person's cap are dropped, so the number of rows kept would reveal how many persons there are.
        is_public = self.neighbours is Neighbours.REPLACE_ONE and (schema is None or schema.person is None)
        if is_public and schema is not None and schema.cohort is not None:
            raise ParameterError(wording("replaced in cohorts"))
        return n_rows if is_public else None

    def decided_by(self, event: Event, *facts: object, schema: Schema | None = None) -> Self:
        """The same with the charge of this release, which all these public facts decide, from rows read by a schema."""
        return replace(self, charge=self.charge.of_release(event, lambda: facts, schema))

    @property
    def interrupted(self) -> tuple[str, ...]:
        """What is assumed of interrupted attempts under the same charge."""
        return attempts_sentence(self.charge.attempt)

    def charged(
        self,
        release: Callable[[Entropy], Released],
        event: Event,
        lattices: Iterable[LatticeNoise | None] = (),
        wasted: str | None = None,
    ) -> Released:
        """Warn, charge and release, as `before_charge` and `charge_and_release` do."""
        before_charge(self.charge, self.budget, lattices, wasted=wasted)
        return charge_and_release(release, event, self.neighbours, self.charge)


# Random division of rows into parts. The division is drawn in secret, and anew for every fit.
#
# A table may be sorted by its contents. Then one changed row can move all the others, and if rows were divided by position,
# every part could change. A uniform draw gives each row its part, and its place within the part, independently of the order
# of the table: proofs/selection.md, section 2.


def divided(sizes: Sequence[int], entropy: Entropy) -> list[Indices]:
    """Positions of the rows of each part, in the order in which they were drawn.

    The draw is uniform among all divisions into parts of these sizes.
    """
    return np.split(entropy.permutation(sum(sizes)), np.cumsum(sizes)[:-1])


def refuse_undivided(given: GivenRows) -> None:
    """Refuse rows that this process cannot divide."""
    if not given.lies_here:
        raise InputTypeError(wording("rows cannot be divided"))


def refuse_persons(schema: Schema | None, what: str) -> None:
    """Refuse a schema with a column of persons or cohorts: with it, the number of rows to be divided would be private.

    Parameters
    ----------
    schema : the schema of the rows, or None
    what : the beginning of the message: "a search needs", or "intervals from parts need"
    """
    if schema is not None and schema.choosing is not None:
        raise ParameterError(wording("private numbers of rows", what=what))


def refuse_in_parts(model: Any, what: str, why: str) -> None:
    """Refuse a model that cannot be fitted to parts of the rows, as one of several fits of one release.

    Parameters
    ----------
    model : the unfitted model
    what : what makes the release
    why : why it has no other intervals
    """
    if model.ledger is not None or model.random_state is not None:
        raise ParameterError(f"give ledger and random_state to {what}, not to the estimator: all fits are one release.")
    if Neighbours.parse(model.neighbours) is not Neighbours.REPLACE_ONE:
        private = "the number of rows is private under 'add-or-remove-one', and so would be the sizes of parts"
        raise ParameterError(f"{what} cannot be: {private}. Give neighbours='replace-one', if it may be public.")
    for name in ("inference_share", "intervals", "interest"):
        if str(getattr(model, name, None)) not in ("None", "0.0", "0", "False", "[]", "()"):
            raise ParameterError(f"intervals are not valid for {what}, because {why}: leave {name} at its default.")


def mistakes(model: LinearModel, rows: CheckedRows) -> int:
    """The number of rows whose label the model predicts wrongly."""
    n_classes = len(rows.domain)
    pieces = ((favoured(model.scores_alone(one.blocks)), one.labels) for one in rows.source.in_memory())
    return sum(int(np.count_nonzero(given != positions_of(labels, n_classes))) for given, labels in pieces)


_UNITS = 2**20
"""Errors on rows held out are rounded to this part of 1, so that their sum is exact and has no order."""


@dataclass(frozen=True, slots=True)
class ErrorsOfNumbers:
    """How far predicted numbers err on rows held out: each row adds a number from 0 to 1. Public facts.

    Attributes
    ----------
    link : what scores say
    low, high : the range of targets as they enter the fit, to which predictions are clipped
    clip : the residual that adds 1, and so do larger ones
    quantile : None for squared residuals; for a quantile its own loss, in which residuals of one sign weigh more
    offset : what is added to scores of rows without an exposure
    """

    link: Link
    low: float
    high: float
    clip: float
    quantile: float | None
    offset: float = 0.0

    @property
    def unit(self) -> float:
        """The error that adds 1, in the unit of the target or its square."""
        return self.clip**2 if self.quantile is None else self.clip * max(self.quantile, 1.0 - self.quantile)

    def of(self, model: LinearModel, rows: CheckedRows) -> Fraction:
        """The sum over the rows, which one row changes by at most 1: proofs/selection.md, section 3."""
        total = 0
        for memory in rows.source.in_memory():
            scores = model.scores_alone(memory.blocks) + self.offset
            targets: Any = memory.labels
            if targets.dtype.names is not None:
                scores, targets = scores + np.log(targets["exposure"]), targets["count"]
            residuals = np.asarray(targets, dtype=np.float64) - np.clip(self.link.mean(scores), self.low, self.high)
            if self.quantile is None:
                errors = residuals * residuals / self.unit
            else:
                errors = np.maximum(self.quantile * residuals, (self.quantile - 1.0) * residuals) / self.unit
            # What is no number counts 1.
            total += int(np.rint(_UNITS * np.fmin(errors, 1.0)).astype(np.int64).sum())
        return Fraction(total, _UNITS)
