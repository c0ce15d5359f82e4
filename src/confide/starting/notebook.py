"""A study as a Jupyter notebook that was not run: the same steps as the script, in the format of notebooks, version 4.5."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from confide.starting.drafts import StudyDraft
from confide.starting.steps import Step

_INTRODUCTION = """\
# {name}

The cells up to the fit read no row and spend nothing. Run `confide check` first: it shows the curator how the table fits \
the schema. Do not keep its answers in this notebook, because they are computed from the rows."""
_IMPORTS = """\
from pathlib import Path

import confide
import confide.planning
import confide.report

folder = Path()  # of the study; this notebook lies there"""


def notebook_text(study: StudyDraft, steps: Sequence[Step]) -> str:
    """The text of `study.ipynb`."""
    cells = [_markdown(_INTRODUCTION.format(name=study.name)), _code(_IMPORTS)]
    for step in steps:
        cells += [_markdown(f"## {step.title}\n\n{step.text}"), _code(step.code)]
    numbered = [cell | {"id": f"cell-{number}"} for number, cell in enumerate(cells, 1)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    document = {"cells": numbered, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def _code(text: str) -> dict[str, Any]:
    source = text.splitlines(keepends=True)
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}
