"""The files of a study that begins: all are checked before the first is written, and none replaces another unasked."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from confide.errors import FileError
from confide.features.toml_form import refuse_address
from confide.files import check_output, write_text
from confide.starting.drafts import SchemaDraft, StartedFiles, StudyDraft
from confide.starting.notebook import notebook_text
from confide.starting.schema_text import schema_text
from confide.starting.script import script_text
from confide.starting.steps import steps_of
from confide.starting.study_text import study_text


def check_files(files: StartedFiles, inputs: Collection[Path], *, overwrite: bool) -> None:
    """Refuse, before any question, files that could not be written or would replace others.

    Parameters
    ----------
    files : where they are to be
    inputs : files that must not be replaced in any case
    overwrite : whether files that exist may be replaced

    Raises
    ------
    FileError
        If one of them exists, or its folder cannot be written to.
    """
    refuse_address(files.folder)
    if not files.folder.is_dir():
        if files.folder.exists():
            raise FileError(f"{files.folder} is no folder; give another one as --out-dir.")
        try:
            files.folder.mkdir(parents=True)
        except OSError as error:
            raise FileError(f"cannot make the folder {files.folder}: {error.strerror}.") from None
    for path in files.paths.values():
        if any(path.resolve() == other.resolve() for other in inputs):
            raise FileError(f"{path} is the table itself, and would be lost; give another folder as --out-dir.")
        check_output(path, overwrite=overwrite)


def write_files(files: StartedFiles, schema: SchemaDraft, study: StudyDraft, *, overwrite: bool) -> None:
    """Write the schema, the study file, the notebook and the script.

    Raises
    ------
    FileError
        If one cannot be written, or exists and `overwrite` is false.
    """
    steps = steps_of(schema, study)
    texts = {
        "schema": schema_text(schema),
        "study": study_text(study),
        "notebook": notebook_text(study, steps),
        "script": script_text(study, steps),
    }
    for what, path in files.paths.items():
        write_text(path, texts[what], overwrite=overwrite)
