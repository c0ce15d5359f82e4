"""Reports as files: a page of HTML, a PDF of it, a Markdown card, a JSON document."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from confide.accounting.ledger import Ledger
from confide.errors import FileError, ParameterError, wording
from confide.estimators.linear_model import document_of_model
from confide.features.toml_form import refuse_address
from confide.files import check_output, document_text, json_text, new_file, write_text
from confide.parameters import checked_choice
from confide.report.card import card_of, document_of_report
from confide.report.contents import Contents, contents_of
from confide.report.page import page_of

# The page as a PDF, printed by a browser that is found on the machine. Nothing is sent over a network.

BROWSERS = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge", "brave-browser",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium",
)  # fmt: skip
FLAGS = (
    "--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
_SECONDS = 120


def browser() -> str | None:
    """The path of a browser that can print, or None. The variable CONFIDE_BROWSER names one."""
    named = os.environ.get("CONFIDE_BROWSER")
    return shutil.which(named) if named is not None else next(filter(None, map(shutil.which, BROWSERS)), None)


def write_pdf(page: str, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Print a page of HTML to a PDF file, in one step.

    Parameters
    ----------
    page : the page of HTML
    path : where to write
    overwrite : whether to replace a file that exists

    Raises
    ------
    ParameterError
        If no browser is found.
    FileError
        If the file cannot be written, or the browser fails.
    """
    program = browser()
    if program is None:
        raise ParameterError(wording("PDF needs a browser"))
    check_output(path, overwrite=overwrite)
    with tempfile.TemporaryDirectory(prefix="confide-", ignore_cleanup_errors=True) as folder:
        source, printed = Path(folder, "report.html"), Path(folder, "report.pdf")
        source.write_text(page, encoding="utf-8")
        # Chromium refuses its sandbox to the superuser.
        flags = [*FLAGS, "--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else [*FLAGS]
        files = [f"--user-data-dir={folder}/profile", "--no-pdf-header-footer", f"--print-to-pdf={printed}"]
        command = [program, *flags, *files, source.as_uri()]
        try:
            subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603 - our own arguments
        except (OSError, subprocess.TimeoutExpired):
            raise FileError(f"cannot write {os.fspath(path)}: the browser {program} failed.") from None
        if not printed.exists() or not printed.read_bytes().startswith(b"%PDF"):
            raise FileError(f"cannot write {os.fspath(path)}: the browser {program} printed nothing.")
        with new_file(path, overwrite=overwrite) as unfinished:
            unfinished.write_bytes(printed.read_bytes())


FORMATS = ("html", "pdf", "markdown", "json")
ENDINGS = {".html": "html", ".htm": "html", ".pdf": "pdf", ".md": "markdown", ".markdown": "markdown", ".json": "json"}


def write_report(
    model: Any, path: str | os.PathLike[str], *, file_format: str | None = None, overwrite: bool = False, **given: Any
) -> None:
    """Write the report of a model to a file.

    Parameters
    ----------
    model : a fitted linear model of confide, or one that was loaded from a file
    path : str or path
        Where to write.
    file_format : "html", "pdf", "markdown", "json" or None
        None means what the ending of the file says, and a page of HTML for any other ending.
    overwrite : bool, default False
        Whether to replace a file that exists.
    **given
        What is known besides, as for `contents_of`: level, ledger, analyst, data_name, evaluation and others.

    Raises
    ------
    ParameterError
        If the model was not fitted, the format is unknown, or a PDF is asked for and no browser is found.
    FileError
        If the file cannot be written, or exists and `overwrite` is false.
    """
    write_contents(contents_of(model, **given), path, format_of(path, file_format), overwrite=overwrite)


def format_of(path: str | os.PathLike[str], asked: str | None) -> str:
    """The format that was asked for, or that the ending of the file says."""
    refuse_address(path)
    checked_choice("file_format", asked, (*FORMATS, None))
    return asked or ENDINGS.get(Path(path).suffix.lower(), "html")


def text_of(contents: Contents, kind: str) -> str:
    """The report as text, in every format but PDF."""
    if kind == "markdown":
        return card_of(contents)
    return page_of(contents) if kind == "html" else json_text(document_of_report(contents))


def write_contents(contents: Contents, path: str | os.PathLike[str], kind: str, *, overwrite: bool = False) -> None:
    """Write what a report says to a file, in one step."""
    if kind == "pdf":
        write_pdf(page_of(contents), path, overwrite=overwrite)
    else:
        write_text(path, text_of(contents, kind), overwrite=overwrite)


# All that belongs to a report in one archive: page, card, document, model, schema, and the entries of the ledger.

_TIME = (1980, 1, 1, 0, 0, 0)
"""The time of every file in an archive, so that equal reports give equal archives."""
_NOTE = "\n\nThe file ledger.json is an export of entries. For `--ledger`, ask for the ledger itself."


def write_bundle(
    contents: Contents, path: str | os.PathLike[str], *, model_text: str | None = None, overwrite: bool = False
) -> tuple[str, ...]:
    """Write the archive of a report, in one step.

    Parameters
    ----------
    contents : what the report says
    path : where to write
    model_text : the text of the model's file, kept to the bit; by default what `save` would write
    overwrite : whether to replace a file that exists

    Returns
    -------
    tuple of str
        The names of the files in the archive.
    """
    parts = {
        "report.html": text_of(contents, "html"),
        "README.md": card_of(contents, "model.json", "schema.toml", "" if contents.ledger is None else _NOTE),
        "report.json": text_of(contents, "json"),
        "model.json": model_text or document_text(document_of_model(contents.model)),
    }
    if contents.schema is not None:
        parts["schema.toml"] = contents.schema.to_toml()
    if contents.ledger is not None:
        parts["ledger.json"] = json_text(contents.ledger.to_dict())
    deflated = zipfile.ZIP_DEFLATED
    with new_file(path, overwrite=overwrite) as unfinished, zipfile.ZipFile(unfinished, "w", deflated) as archive:
        for name, text in parts.items():
            entry = zipfile.ZipInfo(name, _TIME)
            entry.compress_type, entry.external_attr = deflated, 0o644 << 16
            archive.writestr(entry, text)
    return tuple(parts)


def ledger_at(place: str) -> Ledger:
    """Open a ledger, and say so if the place holds the export that is in an archive.

    Raises
    ------
    FileError
        If the name is that of a JSON file, and no ledger is there.
    """
    is_export = "://" not in place and Path(place).suffix.lower() == ".json"
    if is_export and not (Path(place).is_file() and Path(place).read_bytes().startswith(b"SQLite")):
        raise FileError(f"{place} is no ledger: this is an export of entries; ask for the ledger itself.")
    return Ledger(place)
