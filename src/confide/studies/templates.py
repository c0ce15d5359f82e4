"""The texts and files of a study that begins: all are checked before one is written, and none replaces another."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from confide.errors import FileError
from confide.features.canonical_labels import BLANK
from confide.features.toml_form import refuse_address, toml_key, toml_value
from confide.files import check_output, write_text
from confide.known_words import printable_line
from confide.studies.drafts import SchemaDraft, StudyDraft


def text_of(name: str) -> str:
    """The text of a file in the folder `texts`, in which braces stand for what is filled in."""
    return resources.files("confide.studies").joinpath("texts", name).read_text(encoding="utf-8")


# The text of a schema that begins: TOML with comments for the person who fills it in.


def schema_text(draft: SchemaDraft) -> str:
    """The text of the file, which reads as the schema when every blank is filled in."""
    introduction = text_of("schema_from_rows.txt" if draft.from_rows else "schema_filled.txt")
    introduction = introduction.format(file=printable_line(draft.from_rows))
    lines = [
        introduction + (text_of("schema_blank.txt").format(blank=BLANK) if draft.n_blank else ""),
        '# What is predicted: two labels; or classes = ["a", "b", "c"]; or a number, low = 0, high = 20000, unit = "USD".\n'
        + ("# Take the line of this column out of [columns] below.\n" if draft.target["column"] == BLANK else "")
        + f"target = {toml_value(draft.target)}",
    ]
    if draft.person is not None:
        lines.append(f"# Identifies the person a row belongs to; it is not a feature.\nperson = {toml_value(draft.person)}")
    if draft.table:
        lines.append(f"{text_of('schema_table.txt')}table = {toml_value(draft.table)}")
    columns, left_out = ["[columns]"], []
    for column in draft.columns:
        if column.description is None:
            left_out.append(f"# {printable_line(column.name)}: {column.note or 'left out'}")
        else:
            note = f"  # {printable_line(column.note)}" if column.note else ""
            columns.append(f"{toml_key(column.name)} = {toml_value(column.description)}{note}")
    lines += ["\n".join(texts) for texts in (columns, left_out) if texts]
    return "\n\n".join(line.rstrip("\n") for line in lines) + "\n"


# The text of a study file: everything that a colleague needs to repeat the study, in TOML.


def study_text(study: StudyDraft) -> str:
    """The text of `study.toml`."""
    bounds, evaluation = study.n_rows_bounds, next(iter(study.amounts))
    return text_of("study.txt").format(
        ledger_command=ledger_command(study),
        evaluation_ledger_command=f"confide ledger init held_out.db --{evaluation} 0.5{_relation(study)}",
        evaluation=evaluation,
        name=toml_value(study.name),
        data=toml_value(study.data),
        schema=toml_value(study.schema),
        amounts="\n".join(f"{name} = {toml_value(amount)}" for name, amount in study.amounts.items()),
        neighbours=toml_value(study.neighbours),
        bounds="" if bounds is None else f"\nn_rows_bounds = {toml_value(list(bounds))}",
        rows_per_person=study.max_rows_per_person,
        ledger=toml_value(study.ledger),
    )


def ledger_command(study: StudyDraft) -> str:
    """The command that creates the ledger of the study."""
    return f"confide ledger init {study.ledger}{_options(study.limits)}{_relation(study)}"


def _options(amounts: Mapping[str, float]) -> str:
    return "".join(f" --{name} {amount:g}" for name, amount in amounts.items())


def _relation(study: StudyDraft) -> str:
    """The options that say whom a ledger protects."""
    return ("" if study.n_rows_bounds is None else f" --neighbours {study.neighbours}") + _persons(study)


def _persons(study: StudyDraft) -> str:
    """The option that says how many rows a person may have, where it is more than one."""
    return "" if study.max_rows_per_person == 1 else f" --max-rows-per-person {study.max_rows_per_person}"


def check_command(study: StudyDraft) -> str:
    """The command that shows the curator how the table fits the schema."""
    return f"confide check {shlex.quote(study.data)} --schema {shlex.quote(study.schema)}{_persons(study)}"


def plan_command(study: StudyDraft) -> str:
    """The command that shows what a fit would cost and yield. It reads no row."""
    rows = f"--rows {study.n_rows}"
    if study.n_rows_bounds is not None:
        rows = "--neighbours {} --n-rows-bounds {} {}".format(study.neighbours, *study.n_rows_bounds)
    return f"confide plan --schema {shlex.quote(study.schema)} {rows}{_options(study.amounts)}{_persons(study)}"


# The steps of a study as Python: what the script and the notebook both contain, so that they do the same.


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Parameters
    ----------
    title : its heading
    text : what it does, in Markdown
    code : Python, without a line break at its end
    spends : whether it uses rows and spends budget
    """

    title: str
    text: str
    code: str
    spends: bool = False


_SPENDING = ("The fit", "The model and its report")
"""The steps that use rows and spend budget."""


def steps_of(schema: SchemaDraft, study: StudyDraft) -> tuple[Step, ...]:
    """The steps in order: those that read no row, then those that do. They expect the variable `folder`."""
    n_rows = f"{study.n_rows}  # about how many rows there are: a public guess, for the plan alone"
    if study.n_rows_bounds is not None:
        n_rows = "None  # the number of rows is private; the model knows its bounds"
    words = {"schema": study.schema, "n_rows": n_rows, "ledger_command": ledger_command(study)}
    words |= {f"{name}_file": _text(getattr(study, name)) for name in ("schema", "ledger", "data")}
    words["model"] = _model_code(schema, study)
    steps = []
    for part in text_of("steps.txt").split("## ")[1:]:
        title, text, code = part.rstrip("\n").split("\n\n", 2)
        text, code = (Template(lines).substitute(words) for lines in (text, code))
        steps.append(Step(title, text, code, spends=title in _SPENDING))
    return tuple(steps)


def _model_code(schema: SchemaDraft, study: StudyDraft) -> str:
    before, kind = "", "confide.AdditiveRegressor" if schema.predicts_numbers else "confide.AdditiveClassifier"
    if schema.predicts_numbers is None:
        before = "Estimator = confide.AdditiveRegressor if schema.target.bounds else confide.AdditiveClassifier\n"
        kind = "Estimator"
    kind_of_budget = "ZCDP" if study.rho is not None else "PureDP" if study.delta is None else "ApproxDP"
    budget = f"confide.{kind_of_budget}({', '.join(map(repr, study.amounts.values()))})"
    parameters: dict[str, Any] = {"budget": budget, "schema": "schema"}
    if study.n_rows_bounds is not None:
        parameters |= {"neighbours": _text(study.neighbours), "n_rows_bounds": repr(study.n_rows_bounds)}
    if study.max_rows_per_person > 1:
        parameters["max_rows_per_person"] = study.max_rows_per_person
    listed = ", ".join(f"{name}={value}" for name, value in parameters.items())
    return f"{before}model = {kind}({listed})"


def _text(text: str) -> str:
    """A literal of Python in double quotes; JSON escapes what has to be escaped."""
    return json.dumps(text, ensure_ascii=False)


# A study as a Python script: it plans, and fits only if it is asked to.


def script_text(study: StudyDraft, steps: Sequence[Step]) -> str:
    """The text of `study.py`."""
    free = [f"# {step.title}.\n{step.code}\n" for step in steps if not step.spends]
    spending = [f"    # {step.title}.\n{textwrap.indent(step.code, '    ')}\n" for step in steps if step.spends]
    beginning = text_of("script.txt").format(name=printable_line(study.name))
    return "\n".join([beginning, *free, 'if "--fit" in sys.argv[1:]:', *spending])


# A study as a Jupyter notebook that was not run: the same steps as the script, in the format of notebooks, version 4.5.


def notebook_text(study: StudyDraft, steps: Sequence[Step]) -> str:
    """The text of `study.ipynb`."""
    introduction = text_of("notebook_introduction.txt").rstrip("\n").format(name=study.name)
    pairs = [(introduction, text_of("notebook_imports.txt").rstrip("\n"))]
    pairs += [(f"## {step.title}\n\n{step.text}", step.code) for step in steps]
    cells: list[dict[str, Any]] = []
    for text, code in pairs:
        cells.append({"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)})
        cells.append({"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []})
        cells[-1]["source"] = code.splitlines(keepends=True)
    numbered = [cell | {"id": f"cell-{number}"} for number, cell in enumerate(cells, 1)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    document = {"cells": numbered, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def check_files(files: Mapping[str, Path], inputs: Collection[Path], *, overwrite: bool) -> None:
    """Refuse, before any question, files that could not be written or would replace others.

    Parameters
    ----------
    files : where they are to be, by what they are: "schema", "study", "notebook", "script"
    inputs : files that must not be replaced in any case
    overwrite : whether files that exist may be replaced

    Raises
    ------
    FileError
        If one of them exists, or its folder cannot be written to.
    """
    folder = files["study"].parent
    refuse_address(folder)
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder} is no folder; give another one as --out-dir.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder {folder}: {error.strerror}.") from None
    for path in files.values():
        if any(path.resolve() == other.resolve() for other in inputs):
            raise FileError(f"{path} is the table itself, and would be lost; give another folder as --out-dir.")
        check_output(path, overwrite=overwrite)


def write_files(files: Mapping[str, Path], schema: SchemaDraft, study: StudyDraft, *, overwrite: bool) -> None:
    """Write the schema, the study file, the notebook and the script.

    Raises
    ------
    FileError
        If one cannot be written, or exists and `overwrite` is false.
    """
    steps = steps_of(schema, study)
    made = (schema_text(schema), study_text(study), notebook_text(study, steps), script_text(study, steps))
    texts = dict(zip(("schema", "study", "notebook", "script"), made, strict=True))
    for what, path in files.items():
        write_text(path, texts[what], overwrite=overwrite)
