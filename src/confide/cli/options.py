"""The options of commands, one row each; what a model and a release are made of, as options describe them."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_type_hints

import typer

from confide.cli import option_values
from confide.cli.failures import NO_GUARANTEE
from confide.cli.option_values import chosen_budget, classes_of_kinds, new_estimator, predicts_a_number
from confide.errors import ParameterError
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
    known = [
        name for name, of_kind in kinds.items() if any(row.name in inspect.signature(one).parameters for one in of_kind)
    ]
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


# The table of options: how an option is typed, what stands for its value, from which number on, and behind two blanks its
# text. A row without dashes is an argument. A command has rows of its own for what no other command has.

Command = TypeVar("Command", bound=Callable[..., None])

OPTIONS = {
    "data": "DATA  CSV, Parquet or Feather file, or a quoted pattern such as 'data/*.parquet'.",
    "model_file": "MODEL.json",
    "schema": "--schema FILE  TOML file that describes columns and target.",
    "out": "--out FILE  File to write the model to.",
    "force": "--force  Replace files that exist.",
    "force_budget": "--force-budget  Charge even where the noise hides what the rows say.",
    "output_format": "--format  text for people, json for programs.",
    "level": "--level L  Level of the intervals, between 0 and 1.",
    "adjust": "--adjust  Correct p-values for the family of all coefficients with intervals, which then all hold together. "
           "single-step uses their joint law; the other names are those of statsmodels.  [default: each by itself]",
    "features": "--features D>=1  Number of columns of numbers.",
    "epsilon": "--epsilon E  Privacy budget; smaller is more private. inf: no privacy at all.",
    "delta": "--delta D  For approximate privacy: a probability far below 1 / number of rows, for example 1e-6.",
    "rho": "--rho R  Budget of zero-concentrated privacy (zCDP), instead of --epsilon.",
    "ledger": "--ledger FILE  Ledger to charge, a file or URL; see `confide ledger init`.",
    "no_ledger": "--no-ledger  The release is recorded in no ledger, on purpose; so nothing asks or warns.",
    "purpose": "--purpose TEXT  What the release is for; the ledger keeps it, and it is public.",
    "finish": "--finish  Finish a release that was charged to the ledger and interrupted before anything was seen, such as "
           "by a kill. Nothing is charged anew. Data, schema and options must be the same.",
} | {
    key: f"{row.option}{f'>={row.low:.0f}' if row.kind is int and math.isfinite(row.low) else ''}  {row.help}"
    for key, row in MODEL_OPTIONS.items()
}  # fmt: skip


def options_of_command(*, without: Collection[str] = (), **own: str) -> Callable[[Command], Command]:
    """Give each parameter of a command its option: the row of its own, or the one of `OPTIONS`.

    A parameter `spending` becomes one option for each field of `Spending`, and `options` one for each of `MODEL_OPTIONS`.

    Parameters
    ----------
    without : names of fields and options that the command has no use for
    **own : rows by the names of parameters
    """
    rows = OPTIONS | own
    spending = get_type_hints(Spending)
    groups: dict[str, tuple[Callable[..., object], dict[str, tuple[Any, object]]]] = {
        "spending": (Spending, {field.name: (spending[field.name], field.default) for field in fields(Spending)}),
        "options": (ModelOptions, {key: (typed(row) | None, _default(row)) for key, row in MODEL_OPTIONS.items()}),
    }

    def described(command: Command) -> Command:
        options: list[inspect.Parameter] = []
        hints, own_groups = get_type_hints(command), dict[str, list[str]]()
        for name, parameter in inspect.signature(command).parameters.items():
            members = groups[name][1] if name in groups else {name: (hints[name], parameter.default)}
            kept = {key: value for key, value in members.items() if key not in without}
            own_groups |= {name: list(kept)} if name in groups else {}
            options += [_option(key, kind, default, rows[key]) for key, (kind, default) in kept.items()]

        @functools.wraps(command)
        def with_options(**given: Any) -> None:
            for name, keys in own_groups.items():
                given[name] = groups[name][0](**{key: given.pop(key) for key in keys if key in given})
            command(**given)

        with_options.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
        with_options.__annotations__ = {option.name: option.annotation for option in options}
        return with_options  # type: ignore[return-value]

    return described


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


def schema_with_target(path: Path) -> Schema:
    """The schema in a file, which must have a target."""
    schema = schema_of(path)
    if schema is None or schema.target is None:
        raise ParameterError(
            f'{path} names no target; add a line such as target = {{ column = "income", negative = "no", positive = '
            f'"yes" }} for labels, or target = {{ column = "price", low = 0, high = 20000 }} for numbers, above its columns.'
        )
    return schema


def exit_if_void(void: str | None) -> None:
    """End the command with exit code 3 if a guarantee is void: `void` says why."""
    if void is not None:
        raise typer.Exit(NO_GUARANTEE)
