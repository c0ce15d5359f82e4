"""`confide report`: a model file as a report that people can sign, in several formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from confide.cli.failures import NO_GUARANTEE
from confide.cli.options import Adjust, Force, ModelFile
from confide.errors import FileError, ParameterError
from confide.features.toml_form import refuse_address

if TYPE_CHECKING:
    from confide.report.contents import Contents

ENDINGS_OF = {"html": (".html", ".htm"), "pdf": (".pdf",), "markdown": (".md", ".markdown"), "json": (".json",)}

Out = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File to write.  [default: report.html, .pdf, .md or .json, by the format]"),
]
FormatOfReport = Annotated[
    Literal["html", "pdf", "markdown", "json"] | None,
    typer.Option(
        "--format",
        help="html: a page for people. pdf: the page, printed by a browser. markdown: a model card with fields of Hugging "
        "Face. json: for programs.  [default: by --out, or html]",
    ),
]
LedgerOfReport = Annotated[
    str | None, typer.Option("--ledger", metavar="LEDGER.db", help="Show what the ledger of the rows has spent and left.")
]
Analyst = Annotated[str, typer.Option(metavar="NAME", help="Who made the model.")]
DataName = Annotated[str, typer.Option("--data-name", metavar="TEXT", help="What the rows are, in a few words.")]
Fingerprint = Annotated[
    Path | None,
    typer.Option(
        "--fingerprint",
        metavar="DATA.csv",
        help="Show the SHA-256 of this file of rows. No guarantee covers it: leave it out of what the public gets.",
    ),
]
EvaluationFile = Annotated[
    Path | None,
    typer.Option("--evaluation", metavar="FILE.json", help="Rates on private rows, as `confide evaluate` gives in JSON."),
]
GuessedError = Annotated[
    float | None,
    typer.Option("--error", metavar="SHARE", help="Guess of the test error without privacy, to forecast the accuracy."),
]
PositiveRate = Annotated[
    float, typer.Option("--positive-rate", metavar="SHARE", help="Expected share of one of the two classes, for --error.")
]
Zip = Annotated[
    bool, typer.Option("--zip", help="Write an archive: page, card, JSON, model, schema and the ledger's entries.")
]


def report(
    model_file: ModelFile,
    out: Out = None,
    output_format: FormatOfReport = None,
    ledger: LedgerOfReport = None,
    analyst: Analyst = "",
    data_name: DataName = "",
    fingerprint: Fingerprint = None,
    evaluation: EvaluationFile = None,
    error: GuessedError = None,
    positive_rate: PositiveRate = 0.5,
    level: Annotated[float, typer.Option(metavar="L", help="Level of the intervals, between 0 and 1.")] = 0.95,
    adjust: Adjust = None,
    as_zip: Zip = False,
    force: Force = False,
) -> None:
    """Write a report about a model, for the people who must approve its release and sign.

    It says whether the model is private and what that means, what the ledger has spent, what the model says about each
    column, and what the signer confirms. All of it comes from the model file, from the ledger and from these options.
    """
    from confide.accounting.ledger import Ledger
    from confide.cli import output
    from confide.estimators.loading import load
    from confide.files import sha256_of
    from confide.report.accuracy import forecasts_of
    from confide.report.contents import contents_of
    from confide.report.writing import write_bundle, write_contents

    kind, place = _format_and_place(out, output_format, as_zip=as_zip)
    inputs = [model_file, *(path for path in (fingerprint, evaluation) if path is not None)]
    if ledger is not None and "://" not in ledger:
        inputs.append(Path(ledger))
    output.check_path(place, inputs, (".zip",) if as_zip else _endings(kind, output_format), overwrite=force)
    model = load(model_file)
    text = model_file.read_text(encoding="utf-8")
    with output.working("simulating fits") if error is not None else output.working("writing the report"):
        forecasts = () if error is None else forecasts_of(model, error, positive_rate)
    contents: Contents = contents_of(
        model,
        level=level,
        adjust=adjust,
        ledger=None if ledger is None else Ledger(ledger),
        ledger_name=_without_password(ledger or ""),
        analyst=analyst,
        data_name=data_name,
        fingerprint="" if fingerprint is None else sha256_of(fingerprint),
        evaluation=None if evaluation is None else _json_of(evaluation),
        forecasts=forecasts,
        sha256=sha256_of(model_file),
        written_by=str(json.loads(text.removeprefix("\ufeff"))["content"]["version"]),
        model_name=model_file.name,
    )
    screen = output.Screen()
    if as_zip:
        names = write_bundle(contents, place, model_text=text, overwrite=force)
        screen.verbatim(f"Wrote {place}: {', '.join(names)}")
    else:
        write_contents(contents, place, kind, overwrite=force)
        screen.verbatim(f"Wrote {place}")
    screen.text(contents.verdict.headline)
    if not contents.is_sound:
        raise typer.Exit(NO_GUARANTEE)


def _format_and_place(out: Path | None, asked: str | None, *, as_zip: bool) -> tuple[str, Path]:
    """The format, and the file to write, each by the other where only one is given."""
    if as_zip:
        if asked is not None:
            raise ParameterError("--zip writes every format; leave --format out.")
        return "html", out or Path("report.zip")
    by_ending = {ending: kind for kind, endings in ENDINGS_OF.items() for ending in endings}
    kind = asked or ("html" if out is None else by_ending.get(out.suffix.lower(), "html"))
    return kind, out or Path("report").with_suffix(ENDINGS_OF[kind][0])


def _endings(kind: str, asked: str | None) -> tuple[str, ...]:
    """The endings that the name of the file may have: those of the format that was asked for, or all."""
    return ENDINGS_OF[kind] if asked else tuple(ending for endings in ENDINGS_OF.values() for ending in endings)


def _without_password(ledger: str) -> str:
    """A file as it is; of the URL of a database, everything up to what could be a secret."""
    return ledger.partition("?")[0] if "://" in ledger else ledger


def _json_of(path: Path) -> Any:
    refuse_address(path)
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except (RecursionError, UnicodeDecodeError):
        raise FileError(f"{path} is not JSON; give the file that `confide evaluate --format json` wrote.") from None
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.") from None
    except ValueError:
        raise FileError(f"{path} is not JSON; give the file that `confide evaluate --format json` wrote.") from None
