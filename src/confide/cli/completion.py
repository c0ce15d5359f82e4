"""`confide completion`: a script by which a shell completes commands and options of confide."""

from __future__ import annotations

import os
from typing import Annotated, Literal

import typer
from typer.completion import completion_init, get_completion_script  # type: ignore[attr-defined]  # not marked as public

_VARIABLE = "_CONFIDE_COMPLETE"
"""The environment variable by which a shell asks for completions."""


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"], typer.Argument(metavar="SHELL", help="bash, zsh or fish.", show_default=False)
    ],
) -> None:
    """Print a script that lets a shell complete commands and options. It changes no file."""
    script = get_completion_script(prog_name="confide", complete_var=_VARIABLE, shell=shell)
    # Values of options are often files.
    script = script.replace(" --no-files", "")
    if shell == "zsh":
        # Functions of completion are loaded by compinit, which a new ~/.zshrc does not call.
        script = "autoload -Uz compinit && compinit\n" + "\n".join(
            line for line in script.splitlines() if not line.startswith("#compdef")
        )
    typer.echo(script.strip())


def answer_shells() -> None:
    """Prepare the answer if a shell asks for completions in place of running a command."""
    if _VARIABLE in os.environ:
        completion_init()
