"""`confide family`: several analyses as one family of tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from confide.cli import option_values
from confide.cli.options import Format, options_of_command
from confide.errors import ParameterError


@options_of_command("family")
def family(
    model_files: list[Path] | None = None,
    ledger: str | None = None,
    purpose: str | None = None,
    columns: str | None = None,
    p_value: list[str] | None = None,
    adjust: Literal["holm", "bonferroni", "fdr_by"] = "holm",
    level: float = 0.95,
    output_format: Format = "text",
) -> None:
    """Correct the tests of several analyses as one family, with intervals that all hold together.

    The corrections hold however the analyses depend on each other. It costs no privacy. With a ledger, no fit that it
    charged can be left out.
    """
    from confide.cli import output
    from confide.report.families import family as family_of

    given: dict[Any, Any] = dict(option_values.p_value(words, of_charge=ledger is not None) for words in p_value or ())
    for path in model_files or ():
        if path.stem in given:
            raise ParameterError("two analyses have the same name: rename a file, or give the p-value another name.")
        given[path.stem] = path
    wanted = None if columns is None else option_values.columns(columns, "--columns")
    tests = family_of(given, ledger=ledger, purpose=purpose, columns=wanted, method=adjust, level=level)
    output.Screen(output_format).answer(tests.to_dict, tests.blocks())
