"""Reports as files: a page of HTML, a PDF of it, a Markdown card, a JSON document."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from confide.errors import ParameterError
from confide.files import write_text
from confide.known_words import words_of
from confide.report.card import card_of
from confide.report.contents import Contents, contents_of
from confide.report.document import document_of_report
from confide.report.page import page_of
from confide.report.pdf import write_pdf

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
    if asked is not None and asked not in FORMATS:
        raise ParameterError(f"file_format must be one of {words_of(FORMATS, asked)}.")
    return asked or ENDINGS.get(Path(path).suffix.lower(), "html")


def text_of(contents: Contents, kind: str) -> str:
    """The report as text, in every format but PDF."""
    if kind == "markdown":
        return card_of(contents)
    return (
        page_of(contents) if kind == "html" else json.dumps(document_of_report(contents), indent=2, allow_nan=False) + "\n"
    )


def write_contents(contents: Contents, path: str | os.PathLike[str], kind: str, *, overwrite: bool = False) -> None:
    """Write what a report says to a file, in one step."""
    if kind == "pdf":
        write_pdf(page_of(contents), path, overwrite=overwrite)
    else:
        write_text(path, text_of(contents, kind), overwrite=overwrite)
