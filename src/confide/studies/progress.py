"""What was done of a study, and what is left: from its state, the charges in its ledger and the files that are there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from confide.errors import FileError, StudyError, wording
from confide.files import json_text, sha256_of, write_text
from confide.studies.study import Study, changes, fingerprint, leaves, refused
from confide.threads import lock

# How far a study has come, in a file beside it. It holds public facts, checksums and released numbers, and nothing else.

_KIND = "confide-study-state"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Begun:
    """A step that charges, from the moment before its charge.

    Attributes
    ----------
    facts : what decides its release
    fingerprint : what stands for the facts in the ledger
    ledger : identity of the ledger
    earlier : how many charges with this fingerprint the ledger held before
    result : released numbers, JSON-able; None until they are there
    sha256 : checksum of the file that the step writes, noted just before the file takes its place; None before
    """

    facts: Mapping[str, object]
    fingerprint: str
    ledger: str
    earlier: int = 0
    result: Mapping[str, object] | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class State:
    """What a study has done.

    Attributes
    ----------
    fit, evaluation : the steps that charge; None before they begin
    report : checksum of the report and of what it was made from; None if there is none
    checksums : SHA-256 of the study file and of its schema when the fit began
    parts : names of the files of the table when the fit began
    """

    fit: Begun | None = None
    evaluation: Begun | None = None
    report: Mapping[str, str] | None = None
    checksums: Mapping[str, str] | None = None
    parts: Sequence[str] | None = None

    @classmethod
    def of(cls, path: Path) -> State:
        """The state in a file; an empty one if there is no file.

        Raises
        ------
        StudyError
            If the file was written by another version, or was changed by hand.
        """
        if not path.exists():
            return cls()
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise FileError(f"cannot read {path}: {error.strerror}.") from None
        except UnicodeDecodeError:
            text = ""
        with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
            document = json.loads(text)
            is_ours = (document.pop("kind"), document.pop("format_version")) == (_KIND, _VERSION)
            state = cls(**document | {step: _begun(document[step]) for step in ("fit", "evaluation")})
            pairs = [pair for some in (state.report, state.checksums) if some is not None for pair in some.items()]
            are_texts = all(isinstance(text, str) for some in (*pairs, state.parts or ()) for text in some)
            if is_ours and len(document) == len(fields(cls)) and isinstance(state.parts, list | None) and are_texts:
                return state
        raise refused("state", path=path)

    def write(self, path: Path) -> None:
        """Write the state in one step, in place of the earlier one."""
        write_text(path, json_text({"kind": _KIND, "format_version": _VERSION, **asdict(self)}), overwrite=True)

    def with_result(self, step: str, *, result: Mapping[str, Any] | None = None, sha256: str | None = None) -> State:
        """The state with the result of a step, "fit" or "evaluation", that had begun."""
        begun = replace(getattr(self, step), result=result, sha256=sha256)
        return replace(self, fit=begun) if step == "fit" else replace(self, evaluation=begun)


def checksum_of(path: Path) -> str | None:
    """SHA-256 of a file; None if there is no such file."""
    try:
        return sha256_of(path)
    except FileError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise


def _begun(value: Any) -> Begun | None:
    """A step as a file of state describes it; an error of any kind if it describes none."""
    if value is None:
        return None
    begun = Begun(**value)
    is_whole = len(value) == len(fields(Begun)) and type(begun.earlier) is int
    are_texts = all(isinstance(text, str) for text in (begun.fingerprint, begun.ledger, begun.sha256 or ""))
    if not (is_whole and are_texts and isinstance(begun.facts, dict) and isinstance(begun.result, dict | None)):
        raise ValueError
    return begun


class Standing(StrEnum):
    """How far a step is."""

    TO_DO = "to do"
    AGAIN = "to do again, charged anew"
    FINISH = "to finish, under the charge of the run that stopped"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class LedgerFacts:
    """What a study asks of its ledger.

    Parameters
    ----------
    identity : identity of the ledger
    place : where it is, for messages
    purposes : the purposes of all charges, in order
    unfinished : the purposes of those that released nothing and can be finished
    """

    identity: str
    place: str
    purposes: Sequence[str]
    unfinished: Sequence[str] = ()

    def charges_of(self, mark: str) -> int:
        """How many charges carry the mark of a step."""
        return sum(purpose_mark(mark) in purpose for purpose in self.purposes)

    def has_charged(self, begun: Begun) -> bool:
        """Whether a step that had begun was charged."""
        return self.charges_of(begun.fingerprint) > begun.earlier

    def can_finish(self, mark: str) -> bool:
        """Whether a charge with the mark of a step released nothing."""
        return any(purpose_mark(mark) in purpose for purpose in self.unfinished)


def purpose_mark(mark: str) -> str:
    """How the purpose of a charge names the step that it paid for."""
    return f"[study {mark}]"


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a study that charges.

    Attributes
    ----------
    standing : how far it is
    begun : what is noted before its charge
    """

    standing: Standing
    begun: Begun

    @property
    def mark(self) -> str:
        """What stands for it in the ledger."""
        return purpose_mark(self.begun.fingerprint)


def with_prior(study: Study, state: State, ledger: LedgerFacts) -> Study:
    """The study with the prior of its schedule: that which its release was charged with, or the last model before it."""
    if study.schedule is None or study.schedule.prior is None:
        return study
    prior = study.last_model()
    if (before := state.fit) is not None and ledger.has_charged(before):
        prior = json.loads(dict(leaves(before.facts)).get("model.prior", "null"))
    return study if prior is None else replace(study, model={**study.model, "prior": prior})


def step_of_fit(study: Study, state: State, facts: Mapping[str, Any], ledger: LedgerFacts, *, again: bool) -> Step:
    """The step that fits the model.

    Raises
    ------
    StudyError
        If it was charged and its model is not there, the study changed since it was charged, or another model is in the way,
        unless `again` says that it is charged anew. Nothing was charged.
    """
    out, mark, before = study.located(study.outputs.model), fingerprint(facts), state.fit
    _check_ledger(study, before, ledger)
    checksum, charges = checksum_of(out), ledger.charges_of(mark)
    begun = Begun(facts, mark, ledger.identity, charges)
    if before is not None and before.fingerprint != mark and ledger.has_charged(before):
        if not again:
            raise refused("changed", path=study.path, since="its model", what="; ".join(changes(before.facts, facts)))
        if checksum is not None:
            raise refused("model", path=out)
        return Step(Standing.AGAIN, begun)
    if before is not None and before.fingerprint == mark and charges > before.earlier:
        written = before.sha256
        if checksum is not None and checksum == written:
            return Step(Standing.DONE, before)
        if checksum is not None and written is None:
            # The checksum is noted before the model is written, so this file is not of the run that was charged.
            raise refused("not_ours", path=out)
        if checksum is not None:
            raise StudyError(f"{out} is not the model that this study wrote: its checksum differs. Put that model back.")
        if again:
            return Step(Standing.AGAIN, begun)
        if written is None and ledger.can_finish(mark):
            return Step(Standing.FINISH, before)
        lost = "the run stopped before it wrote its model" if written is None else "its model is not there"
        raise refused("lost", path=study.path, lost=lost, out=out)
    if charges and not again:
        # The state of that run is gone, or a run that was to charge anew stopped before it did.
        raise refused("charged", place=ledger.place, path=study.state_path)
    if checksum is not None:
        raise refused("model", path=out)
    return Step(Standing.AGAIN if charges else Standing.TO_DO, begun)


def step_of_evaluation(
    study: Study, state: State, facts: Mapping[str, Any], ledger: LedgerFacts, *, fit_is_done: bool, again: bool
) -> Step:
    """The step that evaluates the model on rows kept aside.

    Raises
    ------
    StudyError
        If it was charged and its rates are not in the state, or it changed since, unless `again`. Nothing was charged.
    """
    mark, before = fingerprint(facts), state.evaluation
    begun = Begun(facts, mark, ledger.identity, ledger.charges_of(mark))
    if not fit_is_done or before is None:
        return Step(Standing.TO_DO, begun)
    _check_ledger(study, before, ledger)
    if not ledger.has_charged(before):
        return Step(Standing.TO_DO, begun)
    if before.fingerprint == mark and before.result is not None:
        return Step(Standing.DONE, before)
    if again:
        return Step(Standing.AGAIN, begun)
    if before.fingerprint != mark:
        raise refused("changed", path=study.path, since="its evaluation", what="; ".join(changes(before.facts, facts)))
    if ledger.can_finish(mark):
        return Step(Standing.FINISH, before)
    raise refused("rates_lost", path=study.path, place=ledger.place)


def refuse_charged_meanwhile(study: Study, step: Step, purposes: Iterable[str]) -> None:
    """Refuse a charge if the ledger holds more charges for this step than when it was decided; `purposes` are all of now.

    Raises
    ------
    StudyError
        If a copy of the study in another folder was charged meanwhile. This run charged nothing.
    """
    # A charge that is to be finished is refused by the ledger itself if another run took it up.
    is_new = step.standing is not Standing.FINISH
    if is_new and sum(step.mark in purpose for purpose in purposes) != step.begun.earlier:
        raise refused("meanwhile", path=study.path)


def source_of_report(study: Study, state: State) -> str:
    """What stands for all that the report is made from, but for what the ledger says later."""
    naming, rates = study.study, None if state.evaluation is None else state.evaluation.result
    model = checksum_of(study.located(study.outputs.model))
    made_from = {"model": model, "name": naming.name, "analyst": naming.analyst, "rates": rates}
    # Reports without a correction have the source that they had.
    adjust = study.outputs.adjust
    return fingerprint(made_from if adjust is None else made_from | {"adjust": adjust})


def report_standing(study: Study, state: State, made_from: str) -> Standing:
    """How far the report is; `made_from` stands for all that it is made from.

    Raises
    ------
    StudyError
        If a file is in its place that the study did not write.
    """
    out = study.located(study.outputs.report or "")
    if (checksum := checksum_of(out)) is None:
        return Standing.TO_DO
    if state.report is None or state.report["sha256"] != checksum:
        raise refused("report", path=out)
    return Standing.DONE if state.report["made_from"] == made_from else Standing.TO_DO


def _check_ledger(study: Study, before: Begun | None, ledger: LedgerFacts) -> None:
    if before is not None and before.ledger != ledger.identity:
        raise refused("other_ledger", path=study.state_path, place=ledger.place)


# One run of a study at a time: a lock on a file beside its state, which the system gives back when the run ends or dies.


@contextmanager
def only_run(study: Study) -> Iterator[None]:
    """Hold the lock of a study during the block.

    The file of the lock stays: if it were removed, two runs could each hold a lock on a file of this name.

    Raises
    ------
    StudyError
        If another run holds it. It is not waited for.
    FileError
        If the lock cannot be made.
    """
    place = study.state_path.with_name(f"{study.state_path.name}.lock")
    with ExitStack() as held:
        try:
            opened = held.enter_context(place.open("ab"))
            lock(opened.fileno())
        except BlockingIOError:
            raise StudyError(f"{study.path}: another run of this study is going on. Wait until it has ended.") from None
        except OSError as error:
            raise FileError(wording("no lock of a study", place=place, why=error.strerror)) from None
        try:
            yield
        finally:
            # A process that was forked meanwhile would keep the lock if the file were only closed.
            lock(opened.fileno(), give_back=True)
