"""The program `confide`: its entry point, its own options, and the list of its commands."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated, Any, Literal, TextIO

import typer
from typer.completion import completion_init, get_completion_script  # type: ignore[attr-defined]  # not marked as public

from confide._version import __version__
from confide.cli.audit import audit
from confide.cli.bounds import bounds
from confide.cli.check import check
from confide.cli.demo import demo
from confide.cli.describe import describe
from confide.cli.evaluate import evaluate
from confide.cli.failures import CommandsWithOneLineErrors
from confide.cli.family import family
from confide.cli.fit import fit
from confide.cli.ledger import ledger_app
from confide.cli.new import new
from confide.cli.options import epilog_of
from confide.cli.plan import plan, sample_size
from confide.cli.predict import export, predict
from confide.cli.report import report
from confide.cli.run import run
from confide.cli.search import search
from confide.cli.verify import inspect, verify

# Output into a pipe whose reader has gone, as of `confide fit | head`: it is dropped, and the command goes on to its end.
#
# A fit has been charged when it prints its results, so it must not end where nobody reads them.


class _OpenEnded(io.FileIO):
    """A descriptor that takes all that is written to it, also if nobody reads it any more, or once a write has failed."""

    has_failed = False

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data) or 0
        except OSError as error:
            if not (self.has_failed or isinstance(error, BrokenPipeError)):
                self.has_failed = True
                raise
            return len(data)


def unbroken(stream: TextIO) -> TextIO:
    """The stream, such that writing to it never fails because its reader has gone.

    A stream without a descriptor, as in tests, is given back as it is.
    """
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError, AttributeError):
        return stream
    stream.flush()
    buffer, how = io.BufferedWriter(_OpenEnded(descriptor, "wb", closefd=False)), stream.errors
    return io.TextIOWrapper(buffer, encoding=stream.encoding, errors=how, line_buffering=True)


# `confide completion`: a script by which a shell completes commands and options of confide.

_VARIABLE = "_CONFIDE_COMPLETE"
"""The environment variable by which a shell asks for completions."""


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Print a script that lets a shell complete commands and options. It changes no file.

    \b
    Where it belongs:
      bash  in ~/.bashrc:  eval "$(confide completion bash)"
      zsh   in ~/.zshrc:   eval "$(confide completion zsh)"
      fish  confide completion fish > ~/.config/fish/completions/confide.fish
    """  # noqa: D301 - Typer keeps the lines of such a paragraph
    script = get_completion_script(prog_name="confide", complete_var=_VARIABLE, shell=shell)
    # Values of options are often files.
    script = script.replace(" --no-files", "")
    if shell == "zsh":
        # Functions of completion are loaded by compinit, which a new ~/.zshrc does not call.
        script = "autoload -Uz compinit && compinit\n" + "\n".join(
            line for line in script.splitlines() if not line.startswith("#compdef")
        )
    typer.echo(script.strip())


app = typer.Typer(
    cls=CommandsWithOneLineErrors,
    add_completion=False,
    rich_markup_mode=None,  # plain help: the same on a terminal, in a pipe and in a log
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """The entry point `confide`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A name may hold characters that the encoding of the terminal lacks.
            stream.reconfigure(errors="backslashreplace")
    sys.stdout = unbroken(sys.stdout)
    if _VARIABLE in os.environ:  # a shell asks for completions in place of running a command
        completion_init()
    app(prog_name="confide")


@app.callback(invoke_without_command=True, epilog=epilog_of("confide"))
def confide(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False
) -> None:
    """Train models on data about people, and release them with a privacy guarantee that a sceptic can check.

    Start with `confide demo`.
    """
    if version:
        typer.echo(f"confide {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


_COMMANDS = (
    demo, new, check, fit, predict, export, plan, sample_size, search, evaluate, inspect, report, verify, family, run,
    bounds, describe, audit, ledger_app, completion,
)  # fmt: skip
"""In the order in which help lists them."""

for _command in _COMMANDS:
    if isinstance(_command, typer.Typer):
        app.add_typer(_command, name="ledger")
        continue
    _name = _command.__name__.replace("_", "-")
    app.command(_name, epilog=epilog_of(_name))(_command)
