"""A study, step by step: what is left to do, and doing it. Each charge is noted before it is made, and then its result."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from confide.cli.charges import Charges
from confide.cli.fitting import PreparedFit, prepared_fit
from confide.cli.option_values import chosen_budget, in_words_of_options
from confide.cli.options import MODEL_OPTIONS, ModelOptions, Spending, rows_asked_for, schema_with_target, typed
from confide.errors import BudgetExceeded, BudgetWarning, ParameterError, SchemaError, StudyError, is_number, wording
from confide.files import check_output, json_text
from confide.inference.table import SINGLE_STEP
from confide.known_words import suggestion
from confide.studies.progress import (
    LedgerFacts,
    Standing,
    State,
    Step,
    checksum_of,
    purpose_mark,
    refuse_charged_meanwhile,
    report_standing,
    source_of_report,
    step_of_evaluation,
    step_of_fit,
    with_prior,
)
from confide.studies.study import LEDGER_OF_ITS_OWN, Study, check_names, facts_of_evaluation, facts_of_fit, refused

if TYPE_CHECKING:
    from confide.estimators.linear_model import PrivateLinearModel
    from confide.privacy.budgets import Budget
    from confide.privacy.events import Event
    from confide.training.plan import AnyPlan


# The table [model] of a study as the options of `confide fit`: the same names, with underscores, and the same checks.

OF_BUDGET = ("neighbours", "n_rows_bounds", "max_rows_per_person")
"""Options that a study states in [budget]."""


def options_of(study: Study) -> ModelOptions:
    """The options that the tables [model] and [budget] describe.

    Raises
    ------
    StudyError
        If a key is unknown or its value is of the wrong kind. The message names the key.
    """
    known = tuple(key for key in MODEL_OPTIONS if key not in OF_BUDGET)
    options: dict[str, Any] = {}
    for key, value in study.model.items():
        if key in OF_BUDGET:
            raise StudyError(f"{study.path}: [model] {key}: belongs in [budget]; move it there.")
        check_names(f"{study.path}: [model]", [key], known, "key")
        options[key] = _option(study, key, typed(MODEL_OPTIONS[key]), value)
    return ModelOptions(**options, **{name: getattr(study.budget, name) for name in OF_BUDGET})


def in_words_of_keys(study: Study, error: Exception) -> str:
    """A refusal of the library with the names of keys in place of those of options and parameters."""
    keys = {key.replace("_", "-"): f"[model] {key}" for key in MODEL_OPTIONS}
    keys |= {"model": "[model] kind", "schema": "[data] schema", "ledger": "[ledger] file"}
    keys |= {name.replace("_", "-"): f"[budget] {name}" for name in ("epsilon", "delta", "rho", *OF_BUDGET)}
    words = re.sub(r"--([a-z][a-z-]*)", lambda match: keys.get(match[1], match[0]), in_words_of_options(str(error)))
    return f"{study.path}: {words}"


_KINDS: dict[Any, tuple[Any, str]] = {
    bool: (bool, "true or false"),
    int: (int, "a whole number"),
    float: (int | float, "a number"),
    Path: (str, "the path of a file"),
}
"""What a key may hold for each type of an option beside text, and its words."""


def _option(study: Study, key: str, kind: Any, value: Any) -> Any:
    """The value of one key, as the option has it."""
    if kind is str:
        return _text(study, key, value)
    if get_origin(kind) is Literal:
        names = get_args(kind)
        if value in names:
            return value
        must = f"one of {', '.join(names)}{suggestion(value, names)}"
    else:
        accepted, must = _KINDS[kind]
        if isinstance(value, accepted) and isinstance(value, bool) == (kind is bool):
            return study.located(value) if kind is Path else kind(value)
    raise StudyError(f"{study.path}: [model] {key}: must be {must}.")


def _text(study: Study, key: str, value: Any) -> str:
    """Text as on the command line: a number, a list of lists of names as a:b,c:d, or a table as a:1,b:2."""
    if isinstance(value, str):
        return value
    if is_number(value):
        return repr(value)
    rows = list(value.items()) if isinstance(value, dict) else value
    if not isinstance(rows, list) or not all(isinstance(row, list | tuple) for row in rows):
        raise StudyError(f"{study.path}: [model] {key}: must be text, a number, lists of names, or a table of names.")
    if any(sign in str(name) for row in rows for name in row for sign in ":,"):
        raise refused("signs", path=study.path, key=key)
    return ",".join(":".join(map(str, row)) for row in rows)


_WAYS_OUT = 'Or leave the table [evaluation] out. To charge for hidden rates, write "allow_hidden = true" there.'


@dataclass(slots=True)
class StudyRun:
    """One run of a study.

    Attributes
    ----------
    study : the study file
    state : how far it has come
    options : the model's options
    fit : the step that fits
    evaluation : the step that evaluates, or None
    report : how far the report is, or None
    prepared : the fit, if it is to be done
    plan : the plan of the fit, once it is planned
    paid : what the evaluation charged, in a sentence, once it did
    expected : how precise the evaluation will be, in sentences, once it is planned
    absent : ledgers that are not there yet, in a dry run, which does without them
    """

    study: Study
    state: State
    options: ModelOptions
    fit: Step
    evaluation: Step | None
    report: Standing | None
    prepared: PreparedFit | None
    plan: AnyPlan | None = None
    paid: str = ""
    expected: str = ""
    absent: Sequence[str] = ()

    @classmethod
    def of(cls, study: Study, *, again: bool, dry_run: bool = False) -> StudyRun:
        """What is left to do, if study, state, ledger and outputs allow it; `planned` and the fit refuse rows.

        Raises
        ------
        StudyError, FileError, LedgerError
            If the study cannot be run as it stands.
        """
        from confide.accounting.database_storage import stored_records

        places = dict.fromkeys((study.ledger_place, study.ledger_place_of_evaluation))
        absent = [place for place in places if dry_run and not stored_records(place).exists()]
        facts_of_ledger = {place: _facts_of_ledger(place, is_there=place not in absent) for place in places}
        state, ledger = State.of(study.state_path), facts_of_ledger[study.ledger_place]
        study = with_prior(study, state, ledger)
        options = options_of(study)
        _refuse_no_family(study, options)
        schema = schema_with_target(study.located(study.data.schema), study.cohort)
        fit = step_of_fit(study, state, facts_of_fit(study, schema), ledger, again=again)
        is_done = fit.standing is Standing.DONE
        facts = facts_of_evaluation(study, fit.begun.fingerprint)
        evaluation = None
        if study.evaluation is not None and facts is not None:
            # Refused before the fit is charged: an evaluation that could not be made.
            if schema.target is None or len(schema.target.labels) != 2:
                raise StudyError(f"{study.path}: [evaluation]: rates need a target of two labels; leave the table out.")
            paying = facts_of_ledger[study.ledger_place_of_evaluation]
            evaluation = step_of_evaluation(study, state, facts, paying, fit_is_done=is_done, again=again)
        report = None
        if study.outputs.report is not None:
            report = report_standing(study, state, source_of_report(study, state))
            check_output(study.located(study.outputs.report), overwrite=state.report is not None)
        place = None if study.ledger_place in absent else study.ledger_place
        prepared = None if is_done else _prepared(study, options, fit, place)
        return cls(study, state, options, fit, evaluation, report, prepared, absent=absent)

    def left(self) -> list[tuple[str, Standing, str]]:
        """Each step with how far it is, and what it makes or costs."""
        study = self.study
        steps = [("fit", self.fit.standing, f"{_budget(study.budget)}; writes {study.outputs.model}")]
        if self.evaluation is not None and study.evaluation is not None:
            place = study.evaluation.ledger or study.ledger.file or "the ledger"
            what = f"{_budget(study.evaluation)}; on {study.evaluation.file}; charged to {place}"
            steps.append(("evaluate", self.evaluation.standing, what))
        if self.report is not None:
            is_new = self.fit.standing is not Standing.DONE
            steps.append(("report", Standing.TO_DO if is_new else self.report, f"writes {study.outputs.report}"))
        return steps

    def planned(self) -> AnyPlan | None:
        """The plan of the fit, if it is to be done, once it is known that the ledger has enough left for all steps."""
        from confide.estimators.evaluation import check_rows_to_score, expected_of, plan_of_evaluation
        from confide.intake.rows import open_rows

        study, whom = self.study, self.study.budget
        schema = schema_with_target(study.located(study.data.schema), study.cohort)
        events: dict[str, list[Event]] = {study.ledger_place: [], study.ledger_place_of_evaluation: []}
        if self.prepared is not None:
            try:
                self.plan = self.prepared.planned()
            except ParameterError as error:
                raise _in_its_words(study, error) from None
            if self.fit.standing is not Standing.FINISH:
                events[study.ledger_place].append(self.plan.event)
        if study.evaluation is not None and self.evaluation is not None and self.evaluation.standing is not Standing.DONE:
            # Before the fit is charged, so that its charge is not followed by a refusal of these rows.
            rows: Any = open_rows(str(study.located(study.evaluation.file)), schema)
            check_rows_to_score(rows, schema, max_rows_per_person=whom.max_rows_per_person)
            persons = whom.max_rows_per_person
            counts = plan_of_evaluation(_budget(study.evaluation), neighbours=whom.neighbours, max_rows_per_person=persons)
            try:
                self.expected = expected_of(counts, rows, otherwise=None if study.evaluation.allow_hidden else _WAYS_OUT)
            except ParameterError as error:
                raise StudyError(f"{study.path}: [evaluation]: {in_words_of_options(str(error))}") from None
            if self.evaluation.standing is not Standing.FINISH:
                events[study.ledger_place_of_evaluation].append(counts.event)
        for place, charges in events.items():
            try:
                if charges and place not in self.absent:
                    # A fit that was prepared has already warned if its own ledger counts fewer rows of a person.
                    has_warned = self.prepared is not None and place == study.ledger_place
                    rows = 1 if has_warned else whom.max_rows_per_person
                    Charges(place, purpose=study.purpose, rows=rows).checked(charges, schema)
            except BudgetExceeded as error:
                words = in_words_of_keys(study, error)
                if len(charges) > 1:
                    words += f" The fit and the evaluation are both charged to it: {LEDGER_OF_ITS_OWN}."
                elif place != study.ledger_place:
                    words = words.replace("[budget]", "[evaluation]")
                raise BudgetExceeded(words) from None
        return self.plan

    def keep_to_schedule(self, *, dry_run: bool) -> None:
        """See to it that the ledger holds the sub-limit of the schedule, before anything is planned or charged.

        A dry run writes none, and refuses the same.

        Raises
        ------
        StudyError
            If the ledger has another sub-limit for this study, or a limit below it, or does not count by its cohorts.
        """
        from confide.accounting.ledger import Ledger

        study, most = self.study, getattr(self.study.schedule, "budget_per_year", None)
        if (most is None and study.cohort is None) or study.ledger_place in self.absent:
            return
        ledger = Ledger(study.ledger_place)
        if study.cohort is not None and ledger.cohorts != study.cohort[0]:
            raise refused("no_cohorts", path=study.path)
        if most is None:
            return
        limit, symbol = ledger.limit.amount, ledger.limit.symbol
        if most > limit:
            raise refused("above_limit", path=study.path, symbol=symbol, most=most, limit=limit)
        own = [(one.limit, one.per_year) for one in ledger.sublimits().itertuples() if one.purpose == study.purpose]
        if own and own != [(most, True)]:
            raise refused("other_sublimit", path=study.path, symbol=symbol, own=own[0][0], often=" a year" * own[0][1])
        if not own and not dry_run:
            ledger.sublimit(study.purpose, most, per_year=True)

    def refuse_waste(self) -> None:
        """Warn, before anything is noted or charged, of a plan whose noise hides what the rows say."""
        if self.prepared is not None and self.plan is not None:
            from confide.planning.advice import WASTED

            verdict = self.prepared.judged(self.plan)
            if verdict.level == WASTED:
                warnings.warn(verdict.rows, BudgetWarning, stacklevel=1)

    def fitted(self) -> PrivateLinearModel:
        """The model: trained, charged and written now, or read from the file that an earlier run wrote."""
        from confide.accounting.batches import charges_of
        from confide.accounting.ledger import Ledger
        from confide.estimators.loading import load_linear
        from confide.training.charge import note_checksum

        study = self.study
        if self.prepared is None:
            # A run that was killed once its model had its place may not have come to the note of its checksum.
            out, ledger, mark = study.located(study.outputs.model), Ledger(study.ledger_place), self.fit.begun.fingerprint
            paid = [charge["number"] for charge in charges_of(ledger) if purpose_mark(mark) in charge["purpose"]]
            if paid and (failed := note_checksum(ledger, paid[-1], out.read_bytes().decode())):
                print(f"warning: {failed}", file=sys.stderr)
            return load_linear(out)
        files = {"study": study.path, "schema": study.located(study.data.schema)}
        checksums = {name: checksum_of(path) or "" for name, path in files.items()}
        charges = self.prepared.charges
        refuse_charged_meanwhile(study, self.fit, charges.purposes())
        parts = [Path(f"{path}").name for path in self.prepared.files]
        self._note(replace(self.state, fit=self.fit.begun, evaluation=None, checksums=checksums, parts=parts))
        with charges.reported_on_failure():
            self.prepared.release(self.plan, lambda sha256: self._note(self.state.with_result("fit", sha256=sha256)))
        return self.prepared.model

    def evaluated(self, model: Any) -> Any:
        """The rates on the rows kept aside, if they are to be released now."""
        from confide.estimators.evaluation import evaluate
        from confide.intake.rows import open_rows
        from confide.privacy.budgets import Neighbours

        study, step, asked = self.study, self.evaluation, self.study.evaluation
        if step is None or asked is None or step.standing is Standing.DONE:
            return None
        rows, finish = open_rows(str(study.located(asked.file)), model.schema), step.standing is Standing.FINISH
        place, out = study.ledger_place_of_evaluation, study.located(study.outputs.model)
        charges = Charges(place, purpose=_purpose(study, step), model_file=out, finish=finish)
        refuse_charged_meanwhile(study, step, charges.purposes())
        if charges.ledger is not None and self.prepared is not None:
            # Nobody waits between the two charges, so a time of its own would tell how long the fit took.
            charges.ledger.dated_like = self.prepared.charges.time
        self._note(replace(self.state, evaluation=step.begun))
        with charges.reported_on_failure("evaluation"):
            result = evaluate(
                model, rows, budget=_budget(asked), ledger=charges.ledger, allow_hidden=bool(asked.allow_hidden),
                neighbours=Neighbours(study.budget.neighbours), max_rows_per_person=study.budget.max_rows_per_person,
            )  # fmt: skip
            with charges.rescued_on_failure(json_text(result.to_dict()), study.state_path, "evaluation"):
                self._note(self.state.with_result("evaluation", result=result.to_dict()))
            charges.kept(f"in {study.state_path}")
        self.paid = charges.closing_sentence()
        return result

    def reported(self, model: PrivateLinearModel) -> Path | None:
        """The report, if it was written now."""
        from confide.accounting.ledger import Ledger
        from confide.report.writing import write_report

        study = self.study
        if study.outputs.report is None:
            return None
        out, made_from = study.located(study.outputs.report), source_of_report(study, self.state)
        if report_standing(study, self.state, made_from) is Standing.DONE:
            return None
        naming, rates = study.study, None if self.state.evaluation is None else self.state.evaluation.result
        place = study.ledger.file or "a database"
        paying = (study.evaluation and study.evaluation.ledger) or place
        write_report(
            model, out, overwrite=self.state.report is not None, ledger=Ledger(study.ledger_place), ledger_name=place,
            analyst=naming.analyst or "", data_name=naming.name, adjust=study.outputs.adjust,
            evaluation=rates and {**rates, "charge": {"ledger": paying}}, model_name=Path(study.outputs.model).name,
        )  # fmt: skip
        self._note(replace(self.state, report={"sha256": checksum_of(out) or "", "made_from": made_from}))
        return out

    def came_later(self) -> str:
        """What came to the table after its model was fitted, and what to do about it; empty if nothing did."""
        from confide.data.sources import located

        study, known = self.study, self.state.parts
        if study.data.query is not None:
            return ""  # a database does not say which rows are new
        files = located(str(study.located(study.data.file)))
        new = [path.name for path in files if known is not None and path.name not in known]
        if not new:
            return ""
        shown = ", ".join(new[:3]) + (f" and {len(new) - 3} more" if len(new) > 3 else "")
        return wording("files that came later", path=study.path, shown=shown, file=study.data.file)

    def _note(self, state: State) -> None:
        state.write(self.study.state_path)
        self.state = state


def _prepared(study: Study, options: ModelOptions, fit: Step, ledger: str | None) -> PreparedFit:
    amounts = study.budget
    spending = Spending(
        epsilon=amounts.epsilon, delta=amounts.delta, rho=amounts.rho, ledger=ledger,
        purpose=_purpose(study, fit), finish=fit.standing is Standing.FINISH,
    )  # fmt: skip
    query, out = study.data.query, study.located(study.outputs.model)
    try:
        schema = study.located(study.data.schema)
        place = study.data.file if query is not None else str(study.located(study.data.file))
        values = partial(study.values_of_release, finish=spending.finish)
        data = rows_asked_for(place, None if query is None else study.located(query), values)
        return prepared_fit(data=data, schema=schema, options=options, spending=spending, out=out, cohort=study.cohort)
    except ParameterError as error:
        raise _in_its_words(study, error) from None


def _refuse_no_family(study: Study, options: ModelOptions) -> None:
    """Refuse, before the fit is charged, a correction of p-values that the report could not make."""
    if study.outputs.adjust is None:
        return
    if options.intervals is None and options.interest is None:
        raise StudyError(f"{study.path}: [outputs] adjust: is for models with intervals: add intervals or interest.")
    if options.interest is not None and study.outputs.adjust == SINGLE_STEP:
        raise StudyError(f'{study.path}: [outputs] adjust: "{SINGLE_STEP}" is not for interest; write "holm".')


def _in_its_words(study: Study, error: ParameterError) -> Exception:
    return error if isinstance(error, SchemaError) else StudyError(in_words_of_keys(study, error))


def _facts_of_ledger(place: str, *, is_there: bool) -> LedgerFacts:
    from confide.accounting.batches import charges_of
    from confide.accounting.ledger import Ledger

    if not is_there:
        return LedgerFacts("", place, (), ())
    opened = Ledger(place)
    purposes = tuple(charge["purpose"] for charge in charges_of(opened))
    return LedgerFacts(opened.identity, place, purposes, tuple(purposes[number - 1] for number in opened.unfinished()))


def _budget(amounts: Any) -> Budget:
    return chosen_budget(amounts.epsilon, amounts.delta, amounts.rho)


def _purpose(study: Study, step: Step) -> str:
    release = "" if study.release is None else f", release {study.release}"
    return f"{study.purpose}{release} {step.mark}"
