"""The options of commands, one row each; what a model and a release are made of, as options describe them."""

from __future__ import annotations

import functools
import inspect
import math
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from configparser import ConfigParser
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from shutil import copyfileobj
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_type_hints

import typer

from confide.blocks import heading, text, verbatim
from confide.cli import option_values
from confide.cli.failures import NO_GUARANTEE
from confide.cli.option_values import chosen_budget, classes_of_kinds, new_estimator, predicts_a_number
from confide.errors import ParameterError, wording
from confide.parameters import COMMAND_LINE, EVERY_MODEL, PARAMETERS, Parameter

if TYPE_CHECKING:
    from confide.accounting.ledger import Ledger
    from confide.cli.charges import Charges
    from confide.estimators.linear_model import PrivateLinearModel
    from confide.features.schema import Schema
    from confide.privacy.budgets import Budget


Format = Literal["text", "json"]
NeighboursName = Literal["replace-one", "add-or-remove-one"]
Adjust = Literal["single-step", "holm", "bonferroni", "fdr_by", "fdr_bh"]

# What commands need to know of the model: the options of the table of parameters.


_READERS: dict[str, Callable[[str], Any]] = {
    "knots": option_values.knots,
    "interactions": option_values.interactions,
    "monotone": option_values.monotone,
    "interest": option_values.columns,
    "penalty": option_values.penalty,
    "effects": option_values.effects,
    "class_weight": option_values.class_weight,
    "intercept_scaling": lambda text: option_values.number_or_auto("--intercept-scaling", text),
    "feature_norm": lambda text: None if text == "none" else option_values.number_or_auto("--feature-norm", text),
}
"""How the text of an option is read that is more than its row says."""


def typed(row: Parameter) -> Any:
    """The type that Typer reads. Text that it cannot read is read by `value_of`."""
    if row.kind is str:
        return Literal[tuple(str(word).replace("_", "-") for word in row.also)]
    return str if row.name in _READERS or (row.kind is float and "auto" in row.also) else row.kind


MODEL_OPTIONS = {row.key: row for row in PARAMETERS.values() if row.option}
"""The row of each option that describes a model, by its name with underscores."""


def _default(row: Parameter) -> Any:
    """The value of an option that is not given. None leaves the default to the estimator; then the help says it."""
    if row.group not in (EVERY_MODEL, COMMAND_LINE) or "[default:" in row.help:
        return None
    return row.default == "auto" if row.kind is bool and "auto" in row.also else row.default


class ModelOptions(SimpleNamespace):
    """The options that describe a model, as they were given to a command. None stands for an option that was not given.

    The attributes have the names of the options, with underscores; `kind` is the value of --model.
    """

    def __init__(self, **given: Any) -> None:
        super().__init__(**({key: _default(row) for key, row in MODEL_OPTIONS.items()} | given))

    @property
    def files(self) -> list[Path]:
        """The files that the options name: models that are priors. No output may replace one."""
        return [path for path in (self.prior, self.public_prior) if path is not None]

    def words(self, others: dict[str, Any]) -> Iterator[str]:
        """The words that state these options and others, as they are typed; None leaves one out."""
        given = {row.flag: getattr(self, key) for key, row in MODEL_OPTIONS.items() if getattr(self, key) != _default(row)}
        for flag, value in (given | {f"--{name.replace('_', '-')}": value for name, value in others.items()}).items():
            if value is not None:
                yield flag.replace("--", "--no-", 1) if value is False else flag
                yield from [] if isinstance(value, bool) else [str(value)]

    def estimator(self, budget: Budget, schema: Schema | None, ledger: Ledger | None = None) -> PrivateLinearModel:
        """The estimator that these options describe.

        Raises
        ------
        ParameterError
            If an option does not suit the model, or is no number where one is needed.
        """
        given: dict[str, Any] = {}
        for key, row in MODEL_OPTIONS.items():
            value = getattr(self, key)
            if value is None or row.group == COMMAND_LINE:
                continue
            if row.name == "inference_share":
                given |= self._intervals()
                continue
            _check_suited(row, self.kind)
            given[row.name] = value_of(row, value)
        if sum(value is not None for value in (self.prior, self.public_prior, self.effects)) > 1:
            raise ParameterError("give one of --prior, --public-prior and --effects, not both.")
        if self.public_prior is not None:
            from confide.estimators.linear_model import PublicPrior

            given["prior"] = PublicPrior(self.public_prior)
        if self.effects is not None:
            given["prior"] = option_values.effects(self.effects)
        is_number = predicts_a_number(schema)
        if "target_bound" in given and not is_number:
            raise ParameterError("--target-bound is for a target of numbers, and this one has labels; leave it out.")
        if "class_weight" in given and is_number:
            raise ParameterError("--class-weight is for a target of labels, and this one has numbers; leave it out.")
        return new_estimator(self.kind, budget, schema, ledger=ledger, **given)

    def _intervals(self) -> dict[str, Any]:
        """The parameter of intervals, which ridge has as a switch."""
        if self.kind == "erm":
            raise ParameterError("--intervals is for all models but erm.")
        if self.intervals == "auto":
            return {"intervals": True} if self.kind == "ridge" else {"inference_share": "auto"}
        if self.kind == "ridge":
            raise ParameterError("for --model ridge --intervals must be auto: they are made of the sums that it releases.")
        message = "--intervals must be auto or a number above 0 and up to 0.9."
        try:
            share = float(self.intervals)
        except ValueError:
            raise ParameterError(message) from None
        if share == 0.0:
            # A fit without intervals would be charged, and its table of intervals could not be shown.
            raise ParameterError(f"{message} For a model without intervals leave the option out.")
        return {"inference_share": share}


def _check_suited(row: Parameter, kind: str) -> None:
    """Refuse an option that the model does not have."""
    kinds = {} if row.group == EVERY_MODEL else classes_of_kinds()
    known = [name for name, own in kinds.items() if any(row.name in inspect.signature(one).parameters for one in own)]
    if known and kind not in known:
        models = f"{', '.join(known[:-1])} and {known[-1]}" if len(known) > 1 else f"{known[0]} alone"
        choice = "one of them" if len(known) > 1 else "that model"
        raise ParameterError(f"{row.flag} is for --model {models}; leave it out, or choose {choice}.")


def value_of(row: Parameter, given: Any) -> Any:
    """The value of a parameter, from that of its option as Typer read it, or from text.

    Raises
    ------
    ParameterError
        If the text is no value of this option.
    """
    if row.name in _READERS:
        return _READERS[row.name](given)
    if row.kind is str:
        return next((word for word in row.also if str(word).replace("_", "-") == given), given)
    if row.kind is bool:
        if not isinstance(given, bool) and given.lower() not in ("true", "false"):
            raise ParameterError(f"a value for {row.key} must be true or false.")
        is_on = given is True or (given is not False and given.lower() == "true")
        # A switch of which True is no value is on by "auto".
        return is_on if row.high or not is_on else "auto"
    if row.kind is float and "auto" in row.also:
        return option_values.number_or_auto(row.flag, given)
    try:
        return row.kind(given) if row.kind in (int, float) else given
    except ValueError:
        raise ParameterError(f"a value for {row.flag} is not a number; correct it.") from None


# What commands need to know of a release: what it may cost, and where it is charged.


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What a release may cost, and where it is charged, as the options of a command say."""

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    ledger: str | None = None
    no_ledger: bool = False
    force_budget: bool = False
    purpose: str | None = None
    finish: bool = False

    @property
    def budget(self) -> Budget:
        """The budget that --epsilon, --delta and --rho state. Refused unless they state one."""
        return chosen_budget(self.epsilon, self.delta, self.rho)

    def charges(self, out: Path, rows_per_person: int) -> Charges:
        """What the release will charge. The ledger notes the file that is written."""
        from confide.cli.charges import Charges

        return Charges(self.ledger, purpose=self.purpose, model_file=out, rows=rows_per_person, finish=self.finish)

    @contextmanager
    def charged(self, charges: Charges, released: str = "model") -> Iterator[None]:
        """Ask before the block, which releases, about a ledger that is not given; say after a failure what was charged."""
        from confide.cli.charges import agree_on_ledger, nothing_wasted

        charges.is_unasked = agree_on_ledger(self.ledger, self.budget, no_ledger=self.no_ledger)
        with charges.reported_on_failure(released), nothing_wasted(force=self.force_budget):
            yield


Released = TypeVar("Released")


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(Spending):
    """A release that is no model: what it may cost, whom it protects, and how it is shown."""

    neighbours: NeighboursName = "replace-one"
    max_rows_per_person: int = 1
    seed: int | None = None
    force: bool = False
    output_format: Format = "text"

    @property
    def whom(self) -> dict[str, Any]:
        """Whom it protects, as functions of the library take it."""
        return {"neighbours": self.neighbours, "max_rows_per_person": self.max_rows_per_person, "random_state": self.seed}

    def checked_files(
        self, data: str, out: Path, inputs: Iterable[Path], ending: str, schema: Schema | None
    ) -> tuple[Path, ...]:
        """The files of the rows. An output that would replace one of them, or another input, is refused before any work."""
        from confide.cli.output import check_path
        from confide.data.sources import files_of

        files = files_of(data, schema)
        check_path(out, [*files, *inputs, *files_of_ledger(self.ledger)], (ending,), overwrite=self.force)
        return files

    def written(
        self, what: str, out: Path, make: Callable[..., Released], told: Callable[[Released], tuple[str, dict[str, Any]]]
    ) -> None:
        """Charge and make it, write it to a file, and show it.

        Parameters
        ----------
        what : what the file holds, in a word
        out : the file
        make : makes it of budget, ledger, and whom it protects
        told : its text in the file, and its form for programs
        """
        from confide.cli import output

        charges = self.charges(out, self.max_rows_per_person)
        with self.charged(charges, what):
            with output.working("reading the rows"):
                made: Any = make(budget=self.budget, ledger=charges.ledger, **self.whom)
            content, document = told(made)
            charges.write(content, out, overwrite=self.force, released=what)
            *shown, price = made.blocks()
            paid = text(*price.lines, charges.closing_sentence())
            void = [] if made.void is None else [text(f"NOT PRIVATE. {made.void}", style="bold red")]
            shown = [*void, *shown, heading("Guarantee"), paid, verbatim(f"Wrote {out}.")]
            output.Screen(self.output_format).answer(lambda: document | {"charge": charges.document()}, shown)
        exit_if_void(made.void)


# The table of options is `options.ini`, with a section for each command: how an option is typed, what stands for its value,
# from which number on, and behind two blanks its text. A row without dashes is an argument. What several commands have is in
# the first section.

Command = TypeVar("Command", bound=Callable[..., None])

_TABLE = ConfigParser(interpolation=None, delimiters=("=",), default_section="all commands")
_TABLE.read(Path(__file__).with_name("options.ini"), encoding="utf-8")
OPTIONS = {key: row.replace("\n", " ") for key, row in _TABLE.defaults().items()} | {
    key: f"{row.option}{f'>={row.low:.0f}' if row.kind is int and math.isfinite(row.low) else ''}  {row.help}"
    for key, row in MODEL_OPTIONS.items()
}


def epilog_of(command: str) -> str:
    """What the help of a command ends with: its exit codes, if they say more than those of all commands, and an example."""
    words = [(key, row) for key, row in _TABLE[command].items() if key in ("exit codes", "exit code", "example")]
    # Typer keeps the line breaks of a paragraph that begins with a backspace character.
    parts = {key: f"\b\n{key.capitalize()}:\n  {{}}".format(row.replace("\n", "\n  ")) for key, row in words}
    return "\n\n".join(sorted(parts.values(), reverse=True))


def options_of_command(name: str, *, without: Collection[str] = ()) -> Callable[[Command], Command]:
    """Give each parameter of a command its option, as `options.ini` and the table of parameters describe it.

    A parameter of the type `Spending`, `Release` or `ModelOptions` becomes one option for each of its fields.

    Parameters
    ----------
    name : of the command
    without : names of fields and options that the command has no use for
    """
    rows = OPTIONS | {key: row.replace("\n", " ") for key, row in _TABLE[name].items()}
    groups: dict[Any, dict[str, tuple[Any, object]]] = {kind: _fields_of(kind) for kind in (Spending, Release)}
    groups[ModelOptions] = {key: (typed(row) | None, _default(row)) for key, row in MODEL_OPTIONS.items()}

    def described(command: Command) -> Command:
        options: list[inspect.Parameter] = []
        hints, own_groups = get_type_hints(command), dict[str, list[str]]()
        for name, parameter in inspect.signature(command).parameters.items():
            if hints[name] is typer.Context:  # which says what was typed
                options.append(parameter)
                continue
            is_group = hints[name] in groups
            members = groups[hints[name]] if is_group else {name: (hints[name], parameter.default)}
            kept = {key: value for key, value in members.items() if key not in without}
            own_groups |= {name: list(kept)} if is_group else {}
            options += [_option(key, kind, default, rows[key]) for key, (kind, default) in kept.items()]
        reads = any(option.name == "data" and option.default is inspect.Parameter.empty for option in options)
        options += [_option("query", Path | None, None, rows["query"])] * reads

        @functools.wraps(command)
        def with_options(**given: Any) -> None:
            for name, keys in own_groups.items():
                given[name] = hints[name](**{key: given.pop(key) for key in keys if key in given})
            if reads:
                given["data"] = rows_asked_for(given["data"], given.pop("query", None))
            command(**given)

        with_options.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
        with_options.__annotations__ = {option.name: option.annotation for option in options}
        return with_options  # type: ignore[return-value]

    return described


def _fields_of(kind: type[Spending]) -> dict[str, tuple[Any, object]]:
    """The fields of a class of options, with type and default."""
    types = get_type_hints(kind)
    return {field.name: (types[field.name], field.default) for field in fields(kind)}


def rows_asked_for(data: str, query: Path | None, values: Callable[[str], Mapping[str, str]] = lambda _: {}) -> str | Path:
    """What stands for the rows: the text that was given, or a private file of the answer to the query.

    `values` says what names in the text of the query stand for.
    """
    if re.search(r":/+[^/?#@]*:(?!\d+[/?#])[^@]*@|[?&]password=", data):
        raise ParameterError(wording("password in an address"))
    if query is None and data == "-":
        from confide.data.spooled import spooled

        return spooled("rows.csv", "standard input", lambda stream: copyfileobj(sys.stdin.buffer, stream))
    if query is None:
        return data
    from confide.data.files import opened
    from confide.data.sources import files_of

    with opened(query) as stream:
        asked = stream.read().decode(errors="replace")
    return files_of(data, query=asked, values=values(asked))[0]


def _option(name: str, kind: Any, default: object, row: str) -> inspect.Parameter:
    """A parameter of a command, as Typer takes it."""
    usage, _, words = row.partition("  ")
    usage, _, least = usage.partition(">=")
    flags, _, metavar = usage.partition(" ")
    if flags.startswith("-"):
        smallest = None if not least else float(least) if "." in least else int(least)
        taken: Any = typer.Option(flags, metavar=metavar or None, help=words, min=smallest)
    else:
        taken = typer.Argument(metavar=usage, help=words or None)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, taken])


# What commands have in common: outputs that are checked before any work, schemas, and the exit code.


def files_of_ledger(ledger: str | None) -> list[Path]:
    """The files of a ledger, which no output may replace: its own, and those that SQLite keeps beside it."""
    return [] if ledger is None else [Path(ledger + ending) for ending in ("", "-wal", "-shm", "-journal")]


def schema_of(path: Path | None) -> Schema | None:
    """The schema of a file, or None."""
    from confide.features.schema import Schema

    return None if path is None else Schema.from_toml(path)


def schema_with_target(path: Path, cohort: tuple[str, str] | None = None) -> Schema:
    """The schema in a file, which must have a target; with the cohort of a release, by column and value."""
    schema = schema_of(path)
    if schema is None or schema.target is None:
        raise ParameterError(wording("schema without a target", path=path))
    if cohort is None:
        return schema
    described = replace(schema, cohort=cohort)
    if schema.cohort not in (None, described.cohort):
        from confide.studies.study import refused

        raise refused("cohort", path=path, own=schema.cohort, other=cohort)
    return described


def exit_if_void(void: str | None) -> None:
    """End the command with exit code 3 if a guarantee is void: `void` says why."""
    if void is not None:
        raise typer.Exit(NO_GUARANTEE)
