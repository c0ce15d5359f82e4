"""How a command fails: with one line on standard error that says what to do, and an exit code for scripts.

Exceptions of confide hold no data, so their messages are shown. For any other exception only the type is shown, because its
message may quote a cell.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from confide.cli.option_values import in_words_of_options
from confide.errors import BudgetExceeded, ConfideError, NotCertified, SchemaError, StudyError

_UsageError: Any = typer.BadParameter.__bases__[0]
"""Typer has no public name for this class, only for a subclass of it."""
BAD_INPUT = 2
NO_GUARANTEE = 3
INTERNAL_ERROR = 4
INTERRUPTED = 130
"""The exit code that shells use for a command that was stopped by control-C."""


class StoppedAfterCharge(Exception):  # noqa: N818 - says what happened
    """A command was stopped, and its message must say what was charged.

    Parameters
    ----------
    error : what stopped it
    sentence : what was charged, and where the model is
    """

    def __init__(self, error: BaseException, sentence: str) -> None:
        super().__init__(sentence)
        self.error = error
        self.sentence = sentence


class CommandsWithOneLineErrors(TyperGroup):
    """Commands that report each error in one line. Typer provides for this by a subclass, which is passed as `cls`."""

    def main(self, *args: Any, **options: Any) -> NoReturn:
        options["standalone_mode"] = False  # Typer then raises exceptions instead of printing them
        with warnings.catch_warnings():
            if os.environ.get("CONFIDE_DEBUG") != "1":
                # Those of other libraries depend on the data and may quote it.
                warnings.simplefilter("ignore")
            try:
                self._refuse_swallowed(options.get("args") or sys.argv[1:])
                answer = super().main(*args, **options)
                if answer == INTERRUPTED:
                    print("error: stopped by control-C. Nothing was charged.", file=sys.stderr)
            except typer.Abort:
                answer = INTERRUPTED
            except Exception as error:
                if os.environ.get("CONFIDE_DEBUG") == "1" and _exit_code(error) == INTERNAL_ERROR:
                    raise
                if getattr(error, "ctx", self) is None:  # as of an option without its value
                    error.ctx = self._context_of(options.get("args") or sys.argv[1:])  # type: ignore[attr-defined]
                print(f"error: {printable(_message(error))}", file=sys.stderr)
                answer = _exit_code(error)
        sys.exit(answer if isinstance(answer, int) else 0)

    def _refuse_swallowed(self, words: Sequence[str]) -> None:
        """Refuse an option without its value where another option follows, which would be taken for the value."""
        context = self._context_of(words)
        known = {name: option for option in context.command.params for name in option.opts if name.startswith("-")}
        for word, following in pairwise(takewhile("--".__ne__, words)):
            if following in known and word in known and not getattr(known[word], "is_flag", False):
                error = _UsageError("it requires a value", context)
                error.option_name = word
                raise error

    def _context_of(self, words: Sequence[str]) -> typer.Context:
        context = typer.Context(self, info_name="confide")
        for word in words:
            if (command := getattr(context.command, "commands", {}).get(word)) is not None:
                context = typer.Context(command, parent=context, info_name=word)
        return context


def printable(text: str) -> str:
    """The text in one line, without characters that could control a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in re.sub(r"\s*\n\s*", " ", text.strip("\n")))


def _message(error: BaseException) -> str:
    if isinstance(error, StoppedAfterCharge):
        return f"{_message(error.error)} {error.sentence}"
    if isinstance(error, KeyboardInterrupt):
        return "stopped by control-C."
    if isinstance(error, ConfideError):
        # What a schema or a study says is named by its keys, which are no options.
        return str(error) if isinstance(error, SchemaError | StudyError) else in_words_of_options(str(error))
    if _is_usage_error(error):
        from confide.known_words import suggestion

        context = getattr(error, "ctx", None)
        advice = "" if context is None else f" Try '{context.command_path} --help'."
        text = str(error.format_message()).replace("Value error, ", "")  # type: ignore[attr-defined]
        if wrong := getattr(error, "option_name", None):
            options = context.command.params if context else ()
            known = {name: option for option in options for name in (*option.opts, *option.secondary_opts)}
            if wrong not in known:
                text = f"no such option: {wrong}{suggestion(wrong, tuple(known))}"
            elif context is not None and "requires" in text:
                example = re.search(f"confide .*{wrong} .*", context.command.epilog or "")
                shown = f" Example: {example[0]}." if example else ""
                usage, words = known[wrong].get_help_record(context)
                text = f"the value of {wrong} is missing; write {usage}. {words.rstrip('.')}.{shown}"
        if choice := re.search(r"'([^']*)' is not one of (.*?)\.?$", text):
            text = text.rstrip(".") + suggestion(choice[1], tuple(re.findall("'([^']+)'", choice[2])))
        return text[:1].lower() + text[1:] + ("" if text.endswith((".", "?")) else ".") + advice
    return f"unexpected {type(error).__name__}; set CONFIDE_DEBUG=1 to see where. That output may hold private data."


def _exit_code(error: Exception) -> int:
    if isinstance(error, StoppedAfterCharge):
        return INTERRUPTED if isinstance(error.error, KeyboardInterrupt) else INTERNAL_ERROR
    if isinstance(error, BudgetExceeded):
        return NO_GUARANTEE
    if isinstance(error, NotCertified):
        return INTERNAL_ERROR
    return BAD_INPUT if isinstance(error, ConfideError) or _is_usage_error(error) else INTERNAL_ERROR


def _is_usage_error(error: BaseException) -> bool:
    return isinstance(error, _UsageError)
