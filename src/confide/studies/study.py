"""A study, as its TOML file describes it: frozen records, read with strict checks.

A message names the file, the table and the key, says what was expected, and never quotes a value.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from confide.errors import StudyError, is_number, is_whole
from confide.features.schema import Schema
from confide.features.toml_form import read_toml, refuse_address
from confide.files import sha256_of
from confide.inference.table import METHODS
from confide.known_words import sentences_of, suggestion

LEDGER_OF_ITS_OWN = "rows kept aside of other people may have a ledger of their own, as [evaluation] ledger"
NEIGHBOURS = ("replace-one", "add-or-remove-one")


def refused(name: str, **facts: object) -> StudyError:
    """A refusal of `refusals.ini`, by its name; facts stand for the words in braces."""
    return StudyError(sentences_of("refusals.ini")["refused"][name].replace("\n", " ").format(**facts))


@dataclass(frozen=True, slots=True)
class Naming:
    """[study]: what people call it. Changing it changes no release.

    Attributes
    ----------
    name : str
    analyst : str or None
        Shown in the report.
    purpose : str or None
        Written into the ledger; the name if there is none.
    """

    name: str
    analyst: str | None = None
    purpose: str | None = None


@dataclass(frozen=True, slots=True)
class Data:
    """[data]: the table, and the schema that describes it.

    Attributes
    ----------
    file : str
        A file, a pattern or a folder; or the address of a database, with `query`.
    schema : str
    query : str or None
        The file that holds the text of a query in SQL, whose answer is the table.
    """

    file: str
    schema: str
    query: str | None = None


@dataclass(frozen=True, slots=True)
class BudgetOfStudy:
    """[budget]: what the model may cost, and whom it protects."""

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    neighbours: str = "replace-one"
    n_rows_bounds: tuple[int, int] | None = None
    max_rows_per_person: int = 1


@dataclass(frozen=True, slots=True)
class LedgerOfStudy:
    """[ledger]: a file, or the URL of a database."""

    file: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class EvaluationOfStudy:
    """[evaluation]: rows kept aside, in a file of their own, and what rates on them may cost.

    Attributes
    ----------
    file : str
    epsilon, delta, rho : float or None
    ledger : str or None
        The file or the URL of the ledger of these rows, if they are other people than those of the fit; None for the
        study's ledger.
    allow_hidden : bool or None
        True goes on where there are so few rows that the noise will hide every rate.
    """

    file: str
    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    ledger: str | None = None
    # None and not False, so that studies without the key have the facts that they had.
    allow_hidden: bool | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """[schedule]: one release after the other, made by machine.

    Attributes
    ----------
    every : str
        A name of `PERIODS`. Without --release a run makes the release of the period that it begins in (UTC).
    budget_per_year : float or None
        The most that all releases of a calendar year may cost together, as epsilon or rho: a sub-limit in the ledger.
    cohorts : str or None
        The column that holds the period in which each person came. A release then uses the rows of its own period alone, and
        nobody has rows of two.
    prior : str or None
        "last" for the model of the last earlier period that has one, as a prior of the fit.
    """

    every: str
    budget_per_year: float | None = None
    prior: str | None = None
    cohorts: str | None = None


PERIODS = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m", "quarter": "%Y-Q", "year": "%Y"}
"""How the release of a period is named from a day in it; a quarter has its number too. Names are in the order of time."""


def period_of(every: str, day: date) -> str:
    """The name of the period that holds a day, such as 2026-12."""
    return day.strftime(PERIODS[every]) + str((day.month + 2) // 3) * (every == "quarter")


def days_of(every: str, name: str) -> list[date]:
    """The days of the period of this name, from the year 1000 to 2999; none if there is no such period."""
    if not re.match("[12][0-9]{3}", name):
        return []
    first = date(int(name[:4]), 1, 1)
    around = (first + timedelta(days) for days in range(-7, 373))  # a week may begin in another year
    return [day for day in around if period_of(every, day) == name]


_NAMED = re.compile(r"(?<![:\w\\]):(release|begin|end)\b")
"""What a query may name: the release, its first day, and the day after its last."""
_PRESENT = re.compile(
    r"(?i)\b((now|getdate|today|curdate|sysdate|sys(utc)?datetime|sysdatetimeoffset|getutcdate|timeofday)\s*\("
    r"|(clock|statement|transaction|utc|get_current)_timestamp\s*\("
    r"|(date|time|datetime|julianday|unixepoch|unix_timestamp)\s*\(\s*\)|strftime\s*\(\s*''\s*\)"
    r"|(current_\w+|localtime(stamp)?|sysdate|systimestamp)\b)|'(now|today|yesterday|tomorrow)'"
)
"""How SQL asks for the time at which it is asked, where `_without_text` took out what text and comments hold."""
_TEXT_OR_COMMENT = re.compile(r"'((?:[^']|'')*)'|--[^\n]*|/\*.*?\*/", re.DOTALL)


def _without_text(query: str) -> str:
    """A query without comments and quoted texts. Quoted words for the present stay; those for parts of a second go too."""

    def kept(found: re.Match[str]) -> str:
        word = (found[1] or "").strip().lower()
        is_part = found[1] is None or word in ("subsec", "subsecond")
        return " " if is_part else f"'{word}'" if word in ("now", "today", "yesterday", "tomorrow") else "''"

    return _TEXT_OR_COMMENT.sub(kept, query)


@dataclass(frozen=True, slots=True)
class Outputs:
    """[outputs]: the file of the model, and that of the report.

    Attributes
    ----------
    model : str
    report : str or None
    adjust : str or None
        How the p-values of the report are corrected for the family of all coefficients; None for each by itself.
    """

    model: str
    report: str | None = None
    adjust: str | None = None


@dataclass(frozen=True, slots=True)
class Study:
    """A study file, checked. Paths in it are relative to the file's folder.

    Parameters
    ----------
    path : the study file
    study, data, budget, ledger, evaluation, outputs, schedule : the tables of the file
    model : the table [model]: "kind" and options of `confide fit`, with underscores in their names
    release : name of one of several releases of the same study, such as "2026-12"; it is part of the names of their files
    """

    path: Path
    study: Naming
    data: Data
    budget: BudgetOfStudy
    ledger: LedgerOfStudy
    outputs: Outputs
    evaluation: EvaluationOfStudy | None = None
    model: Mapping[str, object] = field(default_factory=dict)
    schedule: Schedule | None = None
    release: str | None = None

    @classmethod
    def from_toml(cls, path: str | Path, *, release: str | None = None) -> Study:
        """Read a study file, for one of several releases if that is named.

        Raises
        ------
        FileError
            If the file is missing, cannot be read, or is not TOML.
        StudyError
            If a key is unknown, missing or of the wrong kind, or two keys contradict each other. One line, which names it.
        """
        if release is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", release):
            raise StudyError("the name of a release has at most 40 letters, digits, - and _, such as 2026-12.")
        return _study_of(Path(path), release, read_toml(path))

    @property
    def cohort(self) -> tuple[str, str] | None:
        """The column of cohorts and the one of this release, where the schedule makes each of other persons."""
        column = None if self.schedule is None else self.schedule.cohorts
        return None if column is None or self.release is None else (column, self.release)

    def values_of_release(self, query: str, *, finish: bool = False) -> dict[str, str]:
        """What :release, :begin and :end in the text of a query stand for; nothing if it names none of them.

        Raises
        ------
        StudyError
            If the query asks for the present, the release is of another period, and no cohorts choose its rows: then it
            would read rows that came later. One that only finishes what was charged goes on.
        """
        if self.schedule is None or self.release is None:
            return {}
        is_of_now = self.release == period_of(self.schedule.every, datetime.now(UTC))
        if _PRESENT.search(_without_text(query)) and not (is_of_now or finish or self.cohort):
            raise refused("present", path=self.path, release=self.release)
        if not _NAMED.search(query):
            return {}
        days = days_of(self.schedule.every, self.release)
        return {"release": self.release, "begin": f"{days[0]}", "end": f"{days[-1] + timedelta(1)}"}

    @property
    def purpose(self) -> str:
        """What the purposes of all its charges begin with."""
        return self.study.purpose or self.study.name

    @property
    def ledger_place(self) -> str:
        """The file or the URL of the ledger."""
        return self.ledger.url if self.ledger.url is not None else str(self.located(self.ledger.file or ""))

    @property
    def ledger_place_of_evaluation(self) -> str:
        """The file or the URL of the ledger that pays for the evaluation: its own, or else the study's."""
        own = None if self.evaluation is None else self.evaluation.ledger
        return self.ledger_place if own is None else own if _is_url(own) else str(self.located(own))

    def located(self, name: str) -> Path:
        """The path that a name in the file stands for."""
        refuse_address(name)
        return self.path.parent / name

    def last_model(self) -> str | None:
        """The model of the last release before this one that has a model, where the schedule makes it the prior."""
        if self.schedule is None or self.schedule.prior is None or self.release is None:
            return None
        start, _, ending = self.outputs.model.rpartition(self.release)
        files = self.located(self.outputs.model).parent.glob(f"*{ending}")
        periods = {file.name.removesuffix(ending).rpartition(".")[2] for file in files}
        earlier = (name for name in sorted(periods) if name < self.release and days_of(self.schedule.every, name))
        names = [f"{start}{name}{ending}" for name in earlier]
        return next((name for name in reversed(names) if self.located(name).exists()), None)

    @property
    def state_path(self) -> Path:
        """The file beside the study in which `confide run` notes how far it came."""
        return self.path.with_name(of_release(f"{self.path.stem}.state.json", self.release, ".state.json"))


def of_release(name: str, release: str | None, ending: str | None = None) -> str:
    """The name of a file for a release: model.json becomes model.2026-12.json."""
    ending = Path(name).suffix if ending is None else ending
    return name if release is None else f"{name.removesuffix(ending)}.{release}{ending}"


Table = TypeVar("Table")


def _is_url(place: str) -> bool:
    return "://" in place


_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "str": (lambda value: isinstance(value, str) and bool(value.strip()), "text that is not blank"),
    "float": (is_number, "a number"),
    "bool": (lambda value: isinstance(value, bool), "true or false"),
    "int": (lambda value: is_whole(value) and value >= 1, "a whole number of at least 1"),
    "tuple[int, int]": (
        lambda value: isinstance(value, list) and len(value) == 2 and all(map(is_whole, value)) and 1 <= value[0] < value[1],
        "two whole numbers in rising order, such as [10000, 100000]",
    ),
}
"""What a key may hold, by the annotation of its record, and how a message says so."""


def _study_of(path: Path, release: str | None, given: dict[str, Any]) -> Study:
    """The study that the tables of a file describe."""
    check_names(str(path), given, [field.name for field in fields(Study) if field.name not in ("path", "release")], "table")
    for name, value in given.items():
        if not isinstance(value, dict):
            raise StudyError(f"{path}: {name} must be a table; write [{name}] and its keys below it.")
    outputs, model = _table(path, "outputs", Outputs, given), given.get("model", {})
    schedule = _table(path, "schedule", Schedule, given) if "schedule" in given else None
    if schedule is not None:
        if schedule.every not in PERIODS:
            must = f"must be one of {', '.join(PERIODS)}{suggestion(schedule.every, PERIODS)}"
            raise StudyError(f"{path}: [schedule] every: {must}.")
        now = period_of(schedule.every, datetime.now(UTC))
        over = period_of(schedule.every, days_of(schedule.every, now)[0] - timedelta(days=1))
        # The persons of a cohort are there once its period is over.
        release = release or (now if schedule.cohorts is None else over)
        if not (days := days_of(schedule.every, release)):
            raise refused("no_period", path=path, every=schedule.every, now=now)
        if schedule.cohorts is not None and days[-1] >= datetime.now(UTC).date():
            raise refused("unfinished", path=path, release=release, day=days[-1])
        if schedule.prior is not None and (schedule.prior != "last" or "prior" in model):
            near = suggestion(schedule.prior, ("last",))
            raise StudyError(f'{path}: [schedule] prior: must be "last"{near}, and then [model] names no prior.')
    report = None if outputs.report is None else of_release(outputs.report, release)
    outputs = replace(outputs, model=of_release(outputs.model, release), report=report)
    if "budget" not in given:
        raise StudyError(f"{path}: the table [budget] is missing; add it, with epsilon or rho.")
    kinds = {"study": Naming, "data": Data, "budget": BudgetOfStudy, "ledger": LedgerOfStudy}
    kinds |= {"evaluation": EvaluationOfStudy} if "evaluation" in given else {}
    tables: dict[str, Any] = {name: _table(path, name, kind, given) for name, kind in kinds.items()}
    made = Study(path=path, outputs=outputs, model=model, schedule=schedule, release=release, **tables)
    for is_wrong, table, key, message in _refusals(made):
        if is_wrong:
            raise StudyError(f"{path}: [{table}] {key}: {message}")
    _check_files(made)
    return made


def _refusals(made: Study) -> Iterator[tuple[bool, str, str, str]]:
    """Whether a key contradicts another or has a wrong value, its table, the key, and what a message says of it."""
    relation = made.budget.neighbours
    known = f'must be "{NEIGHBOURS[0]}" or "{NEIGHBOURS[1]}"{suggestion(relation, NEIGHBOURS)}.'
    yield relation not in NEIGHBOURS, "budget", "neighbours", known
    both = f'goes with neighbours = "{NEIGHBOURS[1]}": give both, or leave both out.'
    yield (relation == NEIGHBOURS[1]) != (made.budget.n_rows_bounds is not None), "budget", "n_rows_bounds", both
    budgets = {"budget": made.budget} | ({} if made.evaluation is None else {"evaluation": made.evaluation})
    for table, amounts in budgets.items():
        either = "give either epsilon, with delta or without, or rho."
        yield (amounts.epsilon is None) == (amounts.rho is None), table, "epsilon", either
        yield None not in (amounts.delta, amounts.rho), table, "delta", "goes with epsilon; a rho needs none."
        for key in ("epsilon", "delta", "rho"):
            amount = getattr(amounts, key)
            is_wrong = amount is not None and not 0.0 < amount < math.inf
            yield is_wrong, table, key, "must be a positive number, and finite."
    either = 'give either file = "study.db" or url = "postgresql://...".'
    yield (made.ledger.file is None) == (made.ledger.url is None), "ledger", "file", either
    if made.schedule is not None and (most := made.schedule.budget_per_year) is not None:
        cost = made.budget.epsilon or made.budget.rho or 0.0
        yield not cost <= most < math.inf, "schedule", "budget_per_year", "must be at least what one release costs."
    if (adjust := made.outputs.adjust) is not None:
        listed = ", ".join(f'"{method}"' for method in METHODS)
        yield adjust not in METHODS, "outputs", "adjust", f"must be one of {listed}{suggestion(adjust, METHODS)}."
        yield made.outputs.report is None, "outputs", "adjust", "is for the report: add report, or leave it out."


def _check_files(made: Study) -> None:
    """No file has two roles: an output would replace an input."""
    own = None if made.evaluation is None else made.evaluation.ledger
    roles = {
        "[data] file": made.data.file if made.data.query is None else None,
        "[data] query": made.data.query,
        "[data] schema": made.data.schema,
        "[ledger] file": made.ledger.file,
        "[evaluation] file": None if made.evaluation is None else made.evaluation.file,
        "[evaluation] ledger": None if own is None or _is_url(own) else own,
        "[outputs] model": made.outputs.model,
        "[outputs] report": made.outputs.report,
        "the study file": made.path.name,
        "its state": made.state_path.name,
    }
    taken: dict[Path, str] = {}
    for role, name in roles.items():
        if name is not None and (other := taken.setdefault(made.located(name).resolve(), role)) != role:
            raise StudyError(f"{made.path}: {other} and {role} are the same file; give each its own.")


def _table(path: Path, name: str, kind: type[Table], tables: Mapping[str, dict[str, Any]]) -> Table:
    """The record of one table, each of whose keys holds what the record's annotation says."""
    described = fields(kind)  # type: ignore[arg-type]  # each kind is a dataclass
    given = tables.get(name, {})
    check_names(f"{path}: [{name}]", given, [key.name for key in described], "key")
    values = {}
    for key in described:
        if key.name not in given:
            if key.default is MISSING:
                raise StudyError(f"{path}: [{name}] {key.name}: is missing; add it.")
            continue
        annotation, value = str(key.type), given[key.name]
        is_admitted, expected = _KINDS[annotation.removesuffix(" | None")]
        if not is_admitted(value):
            raise StudyError(f"{path}: [{name}] {key.name}: must be {expected}.")
        is_list = isinstance(value, list)
        values[key.name] = float(value) if annotation.startswith("float") else tuple(value) if is_list else value
    return kind(**values)


def check_names(where: str, given: Iterable[str], known: Sequence[str], what: str) -> None:
    """Refuse a table or key that is unknown."""
    for name in given:
        if name not in known:
            raise StudyError(f'{where}: unknown {what} "{name}"{suggestion(name, known)}. Known are: {", ".join(known)}.')


# What decides a release of a study, as public facts: compared when a study is run again, and named where they changed.


def facts_of_fit(study: Study, schema: Schema) -> dict[str, Any]:
    """What decides the model: data file, schema, budget, ledger, options and the file of the model. JSON-able.

    Of the rows nothing is in it: a checksum of private rows would not be private.
    """
    files, query = {key: study.model.get(key) for key in ("prior", "public_prior")}, study.data.query
    priors = {f"{key}_sha256": sha256_of(study.located(name)) for key, name in files.items() if isinstance(name, str)}
    facts = {
        "data": {"file": study.data.file} | _given({"query_sha256": query and sha256_of(study.located(query))}),
        "schema": schema.to_dict(),
        "budget": _given(asdict(study.budget)),
        "ledger": _given(asdict(study.ledger)),
        "model": {**study.model, **priors},
        "outputs": {"model": study.outputs.model},
    }
    return _plain(facts | _given({"release": study.release}))


def facts_of_evaluation(study: Study, fitted: str) -> dict[str, Any] | None:
    """What decides the evaluation, or None if none is asked for. `fitted` is the fingerprint of the fit."""
    if study.evaluation is None:
        return None
    return _plain({"fit": fitted, "evaluation": _given(asdict(study.evaluation))})


def fingerprint(facts: Mapping[str, Any]) -> str:
    """Twelve hexadecimal digits that stand for the facts. Ledgers hold them in the purpose of a charge."""
    # The order of the columns of a schema decides, so keys are not sorted.
    return hashlib.sha256(json.dumps(facts, ensure_ascii=True, separators=(",", ":")).encode()).hexdigest()[:12]


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What changed, one sentence for each key, for example "budget.epsilon was 1.0 and is 2.0"."""
    old, new = dict(leaves(before)), dict(leaves(now))
    both = {key: (old.get(key, "absent"), new.get(key, "absent")) for key in {**old, **new}}
    differences = [f"{key} was {was} and is {now}" for key, (was, now) in both.items() if was != now]
    return differences or ["the order of the columns of the schema"]


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """The names of all facts, such as budget.epsilon, and each fact as JSON."""
    if not isinstance(value, Mapping):
        yield name, json.dumps(value, ensure_ascii=False)
        return
    for key, item in value.items():
        yield from leaves(item, f"{name}.{key}" if name else str(key))


def _given(described: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in described.items() if value is not None}


def _plain(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts as they are read back from JSON."""
    return dict(json.loads(json.dumps(facts, default=str)))
