"""All that belongs to a report in one archive: page, card, document, model, schema, and the entries of the ledger."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

from confide.accounting.ledger import Ledger
from confide.errors import FileError
from confide.estimators.linear_model import document_of_model
from confide.files import document_text, new_file
from confide.report.card import card_of
from confide.report.contents import Contents
from confide.report.writing import text_of

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
        parts["ledger.json"] = json.dumps(contents.ledger.to_dict(), indent=2, allow_nan=False) + "\n"
    with (
        new_file(path, overwrite=overwrite) as unfinished,
        zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name, text in parts.items():
            entry = zipfile.ZipInfo(str(Path(name)), _TIME)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, text)
    return tuple(parts)


def ledger_at(place: str) -> Ledger:
    """Open a ledger, and say so if the place holds the export that is in an archive.

    Raises
    ------
    FileError
        If the file is JSON, which no ledger is.
    """
    if "://" not in place and Path(place).suffix.lower() == ".json":
        raise FileError(f"{place} is no ledger: this is an export of entries; ask for the ledger itself.")
    return Ledger(place)
