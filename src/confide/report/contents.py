"""Everything that a report says, as values: what the model released, public facts, and what people gave besides.

The page, the Markdown card and the JSON document show the same contents. They are made from the release and from public
facts alone, so they are as private as the model file. What people give besides is theirs: a name, a data set, a fingerprint.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np

from confide._version import __version__
from confide.accounting.ledger import Ledger
from confide.blocks import Block, heading, section, text
from confide.errors import ParameterError, wording
from confide.estimators.evaluation import said_by_model
from confide.estimators.linear_model import checksum_of_model, released_model, version_of
from confide.estimators.released import outcome_of
from confide.evaluations.documents import checked_evaluation
from confide.features.schema import Schema
from confide.features.toml_form import is_path
from confide.guarantee import Guarantee
from confide.inference.debiased import supposed_of
from confide.models.model import ShownClass, predicted_column, predicted_number
from confide.planning.simulation import Forecast
from confide.report.accuracy import (
    Verdict,
    cost_of_rates,
    doubts_of_rates,
    forecast_note,
    guess_probability,
    odds_picture,
    percent,
    question_of,
    tables_of_rates,
    verdict_of,
    what_was_rated,
)
from confide.report.findings import all_findings, has_tests, main_findings
from confide.report.ledger_facts import LedgerFacts
from confide.report.verification import failures_of_plan, schema_hash
from confide.training.assumptions import steps_sentence

# What the signer has to confirm: facts about people, rows and machines that no program can check.

NOT_PROMISED = (
    "It does not hide what is true of the whole population, nor what follows from that about a person.",
    "It covers this release only. Other releases from the same rows add to what is revealed; a ledger adds them up.",
    "It does not hold if the holder of the data publishes the rows, or the seed of the noise, in another way.",
    "It does not cover the time that the fit took, nor other traces on the machine where it ran.",
)


def points_to_confirm(
    guarantee: Guarantee, ledger: LedgerFacts | None, schema: Schema | None, *, has_prior: bool = False, apart: str = ""
) -> tuple[str, ...]:
    """The sentences of the checklist. Each can be confirmed or not by the signer."""
    if guarantee.void is not None:
        return ()
    rows, facts = guarantee.max_rows_per_person, guarantee.circumstances
    of_person = "at most one row is" if rows == 1 else f"at most {rows:,} rows are"
    person_column, cohort = (None, None) if schema is None else (schema.person, schema.cohort)
    points = (
        (not person_column, f"Of each person, {of_person} in the data."),
        (person_column, f'All rows of one person, and no others, have the same value in the column "{person_column}".'),
        (
            cohort,
            f'Nobody has rows with two values in the column "{cohort and cohort[0]}", earlier and later rows included.',
        ),
        (True, f"Bounds, categories, labels and parameters were written down without looking at the rows{apart}."),
        (True, steps_sentence(() if facts is None else facts.learned_steps)),
        (facts and not facts.labels_declared, "The labels were not declared. None of them points to a single person."),
        (True, "Which rows are in the data, and how they were cleaned, was decided for each row by itself."),
        (not ledger, "No other release was made from these rows, or somebody adds up what all of them cost."),
        (ledger, "Every release from these rows is in the ledger, also those made with other tools and by other people."),
        (has_prior, "The model used as a prior came from where the technical appendix says."),
        (
            True,
            "The fit ran on a machine that outsiders can neither read nor time, with its operating system's random numbers.",
        ),
        (
            True,
            "Nothing else that was computed from the rows is released with the model: no score, count, log or fingerprint.",
        ),
    )
    return tuple(sentence for is_one, sentence in points if is_one)


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """What a report says.

    Attributes
    ----------
    model : the fitted model
    level : level of intervals
    adjust : how p-values are corrected for the family of all coefficients, see `summary`; None for each by itself
    verdict : what the report says first
    ledger : what the ledger says, or None if none was given
    evaluation : rates on private rows, as `Evaluation.to_dict` writes them, or None
    forecasts : expected accuracy at several budgets; empty without a guess of the error
    points : what the signer confirms
    odds : what an attacker has seen, and the largest probability of a right guess; empty without a guarantee
    sha256 : checksum of the model's file
    written_by : the version of confide that wrote the model's file
    date, analyst, data_name, fingerprint : as given; "" where not
    model_name : name of the model's file; "" where it is not known
    """

    model: Any
    level: float
    verdict: Verdict
    ledger: LedgerFacts | None
    evaluation: dict[str, Any] | None
    forecasts: tuple[Forecast, ...]
    points: tuple[str, ...]
    odds: tuple[tuple[str, float], ...]
    sha256: str
    written_by: str
    date: str
    analyst: str
    data_name: str
    fingerprint: str
    model_name: str = ""
    adjust: str | None = None

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the model."""
        guarantee: Guarantee = self.model.guarantee_
        return guarantee

    @property
    def is_sound(self) -> bool:
        """Whether the file promises privacy, and what it says follows from its public facts."""
        return self.verdict.kind != "void"

    @property
    def heading(self) -> str:
        """The title of the page and of the card."""
        if self.guarantee.void is not None:
            return f"{self.name}: not private"
        return f"{self.name}, released privately" if self.is_sound else f"{self.name}: its file does not hold together"

    @property
    def name(self) -> str:
        """The kind of the model."""
        return type(self.model).__name__

    @property
    def schema(self) -> Schema | None:
        """The schema of the model, with everything that was chosen from public facts."""
        return released_model(self.model).schema

    @property
    def purpose(self) -> str:
        """What the model predicts, in one sentence."""
        released = released_model(self.model)
        if not released.domain:
            named = predicted_column(released) is not None
            return f"It predicts the number {predicted_number(released) if named else 'that it was trained on'}."
        shown = ShownClass.of(released)
        if shown.position is None:
            return f"It predicts which of {len(released.domain)} classes a row has: {', '.join(map(str, released.domain))}."
        return f"It predicts whether {shown}; coefficients above 0 favour that."

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """The facts box: names and values, of what is known."""
        guarantee, rows = self.guarantee, self.guarantee.max_rows_per_person
        low, high = guarantee.n_rows or (0, 0)
        shown = f"{low:,} (public)" if low == high else f"private, between {low:,} and {high:,}"
        pairs = (
            ("Date of this report", self.date),
            ("Study", self.data_name),
            ("Analyst", self.analyst),
            ("Model", f"{self.name}, {self._n_weights:,} released weights"),
            ("Outcome", outcome_of(self.model)),
            ("Budget", str(guarantee.budget)),
            ("Protected", f"persons with at most {rows:,} row{'s' if rows > 1 else ''}; {guarantee.neighbours}"),
            ("Rows", "" if guarantee.n_rows is None else shown),
            ("Ledger", "none was given" if self.ledger is None else self.ledger.account),
            ("Versions", f"model: confide {self.written_by}; report: confide {__version__}"),
        )
        return tuple((name, value) for name, value in pairs if value)

    @property
    def facts_box(self) -> list[Block]:
        """The facts, and a warning where one of them is computed from the rows."""
        warning = wording("fingerprint of the rows")
        return [Block("facts", self.facts, ("Fact", "Value")), *([text(warning)] if self.fingerprint else [])]

    @property
    def checksums(self) -> tuple[tuple[str, str], ...]:
        """What binds the report to its files: SHA-256 of the model's file, of the schema, and the head of the ledger."""
        pairs = (
            ("Model file", self.sha256),
            ("Schema's contents (confide verify shows it)", "" if self.schema is None else schema_hash(self.schema)),
            ("Ledger's head", "" if self.ledger is None else self.ledger.head),
            ("Data", self.fingerprint),
        )
        return tuple((name, value) for name, value in pairs if value)

    def command_to_verify(self, model: str = "", schema: str = "SCHEMA.toml") -> str:
        """The command that checks these files."""
        model = shlex.quote(model or self.model_name or "MODEL.json")
        ledger = "" if self.ledger is None else f" --ledger {self.ledger.name or 'LEDGER.db'}"
        return f"confide verify {model}{ledger}{'' if self.schema is None else f' --schema {schema}'}"

    def findings(self, *, whole: bool = False) -> Block:
        """What the model says: as much as fits on a page that is signed, with pictures; or `whole`, as tables."""
        return section("What the model says", main_findings(self.model, self.level, self.adjust, whole=whole))

    @property
    def gain(self) -> Block:
        """What an attacker can gain."""
        title = "What an attacker can gain"
        if self.guarantee.void is None and not self.is_sound:
            return section(title, [text("It is not known: the guarantee that is stated does not follow from the facts.")])
        if not self.odds:
            return section(title, [text("There is no limit: the release may reveal any row, as the verdict says.")])
        meaning = wording("guess of an attacker", question=question_of(self.guarantee))
        rows = [(seen, percent(probability)) for seen, probability in self.odds]
        heads = ("What was seen", "Right with probability at most")
        blocks = [text(meaning), Block("figure", rows, heads, drawing=odds_picture(self.odds))]
        if self.ledger is not None and self.ledger.unit_note is not None:
            blocks.append(text(f"What all releases in the ledger cost together is not shown. {self.ledger.unit_note}"))
        return section(title, blocks)

    @property
    def accuracy(self) -> Block:
        """How accurate the model is, measured and forecast."""
        parts, groups = [], list[Block]()
        if (rated := self.evaluation) is not None:
            first, *groups = (Block("rates", lines, heads, title) for title, heads, lines in tables_of_rates(rated))
            note = f"Measured on private rows that were kept aside, with intervals at level {rated['level']:g}."
            parts.append(Block("group", [first, text(f"{note} {what_was_rated(rated)} {cost_of_rates(rated)}")]))
        if self.forecasts:
            cells = [
                (str(one.plan.event.budget), f"{1 - one.error:.1%}", f"{1 - one.high:.1%} to {1 - one.low:.1%}")
                for one in self.forecasts
            ]
            expected = Block("rates", cells, ("Budget", "Accuracy", "Range"), "Expected at this budget and others")
            parts.append(Block("group", [expected, text(forecast_note(self.forecasts))]))
        if not parts:
            unknown = "It is not stated here: no evaluation on private rows was given, and no guess of the error without "
            parts.append(text(f"{unknown}privacy from which to forecast it."))
        by_group = [heading("By group"), Block("group", groups, style="groups")] if groups else []
        return section("How accurate it is", [Block("group", parts, style="pair"), *by_group], whole=not groups)

    @property
    def confirmed(self) -> Block | None:
        """What the signer confirms; None where there is nothing to sign."""
        meaning = text("The guarantee is proven if these points hold. No program can check them.")
        blocks = [meaning, Block("confirm", self.points)]
        return section("What the signer confirms", blocks, whole=True) if self.points else None

    @property
    def word_by_word(self) -> Block:
        """The statement of the guarantee, and its assumptions."""
        sentences = (line for line in self.guarantee.statement().split("\n") if not line.startswith("  - "))
        return section("Guarantee, word by word", [*map(text, sentences), Block("numbered", self.guarantee.assumptions)])

    @property
    def not_promised(self) -> Block | None:
        """What the guarantee does not promise; None without a guarantee."""
        promises = self.guarantee.void is None
        return section("What the guarantee does not promise", [Block("list", NOT_PROMISED)]) if promises else None

    @property
    def appendix(self) -> list[Block]:
        """Everything else, for those who read more than they sign."""
        facts = (
            ("mechanism", self.guarantee.mechanism),
            ("alpha (ridge)", f"{self.model.alpha_:.6g}"),
            ("released weights", f"{self._n_weights:,}"),
        )
        return [
            self.word_by_word,
            section("Facts of the fit", [Block("facts", facts)]),
            section("Effects and coefficients", all_findings(self.model, self.level, self.adjust)),
        ]

    @property
    def _n_weights(self) -> int:
        return np.size(self.model.coef_) + np.size(self.model.intercept_)


def contents_of(
    model: Any,
    *,
    level: float = 0.95,
    adjust: str | None = None,
    ledger: Ledger | None = None,
    ledger_name: str = "",
    analyst: str = "",
    data_name: str = "",
    fingerprint: str = "",
    evaluation: Any = None,
    forecasts: Sequence[Forecast] = (),
    date: str = "",
    sha256: str = "",
    written_by: str = "",
    model_name: str = "",
) -> Contents:
    """Collect what a report says of a model.

    Parameters
    ----------
    model : a fitted linear model of confide, or one that was loaded from a file
    level : level of intervals, in (0, 1)
    adjust : how p-values are corrected for the family of all coefficients, as in `summary`; None for each by itself
    ledger : the ledger of the rows, or None
    ledger_name : where it is
    analyst, data_name, fingerprint : texts that appear as they are given
    evaluation : an `Evaluation`, or the dictionary that its `to_dict` gives, or the path of a file with it
    forecasts : see `forecasts_of`
    date : the date of the report; today by default
    sha256 : checksum of the model's file; by default of the file that `save` would write
    written_by : the version that wrote the model's file; "" for what the model was read from
    model_name : name of the model's file, for the foot of each printed page and the command that verifies it

    Raises
    ------
    ParameterError
        If the model was not fitted or is of another kind, or what was given besides is of another kind.
    """
    if not all(hasattr(model, name) for name in ("guarantee_", "coef_", "coefficient_names_", "alpha_")):
        raise ParameterError("a report needs a fitted linear model of confide: call fit, or confide.load.")
    ledger = Ledger(ledger) if is_path(ledger) else ledger
    if ledger is not None and not isinstance(ledger, Ledger):
        raise ParameterError("ledger must be a confide.Ledger or the path of one, or None.")
    if adjust is not None:
        if not has_tests(model):
            raise ParameterError("adjust is for models with intervals, and this model released nothing for them.")
        model.summary(adjust=adjust)  # what the method cannot do is refused before anything is written
    guarantee, own = model.guarantee_, checksum_of_model(model)
    sha256 = sha256 or own
    rated = checked_evaluation(evaluation, (own, sha256), known=partial(said_by_model, model))
    failures = failures_of_plan(model, written_by)
    charged = own if rated is not None and rated.get("calibrates") else sha256  # a fit names the file of its own model
    facts = None if ledger is None else LedgerFacts.of(ledger, guarantee, charged, ledger_name, type(model).__name__)
    identity, entries = (None, ()) if ledger is None or facts is None else (ledger.identity, facts.entries)
    doubts = () if rated is None else doubts_of_rates(rated, identity, entries)
    released, points = released_model(model), tuple[str, ...]()
    # Names of coefficients whose intervals rest on a supposition, because the noise hid too much.
    supposed = () if released.interest is None else supposed_of(released.interest)
    if not failures:
        has_released = released.schema is not None and released.schema.has_released
        apart = ", apart from what the schema names as released" if has_released else ""
        points = points_to_confirm(guarantee, facts, released.schema, has_prior=released.prior is not None, apart=apart)
    return Contents(
        model=model, level=level, verdict=verdict_of(guarantee, facts, failures, supposed, doubts), ledger=facts,
        evaluation=rated, forecasts=tuple(forecasts), points=points, odds=() if failures else _odds(guarantee, facts),
        sha256=sha256, written_by=written_by or version_of(model), date=date or datetime.now(UTC).date().isoformat(),
        analyst=analyst, data_name=data_name, fingerprint=fingerprint, model_name=model_name, adjust=adjust,
    )  # fmt: skip


def _odds(guarantee: Guarantee, ledger: LedgerFacts | None) -> tuple[tuple[str, float], ...]:
    """The lines of the picture. A ledger has some only if its amounts hold for the persons whom the model protects."""
    if guarantee.void is not None:
        return ()
    lines = [("before", 0.5), ("after this model", guess_probability(guarantee.budget))]
    is_counted = ledger is not None and ledger.unit_note is None and ledger.neighbours == str(guarantee.neighbours)
    if ledger is not None and is_counted and ledger.charges:
        lines.append(("after all in the ledger", guess_probability(ledger.spent)))
        lines.append(("if its limit is spent", guess_probability(ledger.limit)))
    return tuple(lines)
