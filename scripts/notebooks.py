"""Notebooks from Python sources with cell marks, `# %%` and `# %% [markdown]`. They are not executed and hold no outputs."""

from __future__ import annotations

import json
import re
from typing import Any

_MARK = re.compile(r"^# %%(?P<markdown> \[markdown\])?[^\n]*\n", re.MULTILINE)


def cells(source: str) -> list[tuple[str, str]]:
    """The cells of a source: "markdown" or "code", and the text.

    Raises
    ------
    ValueError
        If the source does not begin with a mark.
    """
    marks = list(_MARK.finditer(source))
    if not marks or source[: marks[0].start()].strip():
        raise ValueError("a source of a notebook begins with a mark, # %% or # %% [markdown]")
    ends = [mark.start() for mark in marks[1:]] + [len(source)]
    found = []
    for mark, end in zip(marks, ends, strict=True):
        text = source[mark.end() : end].strip("\n")
        if mark["markdown"]:
            found.append(("markdown", "\n".join(re.sub(r"^# ?", "", line) for line in text.split("\n"))))
        else:
            found.append(("code", text))
    return found


def notebook(source: str) -> str:
    """The text of a notebook file, format 4."""
    made: list[dict[str, Any]] = []
    for number, (kind, text) in enumerate(cells(source)):
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text.splitlines(True)}
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        made.append(cell)
    metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    content = {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1) + "\n"


def as_markdown(source: str) -> str:
    """The cells as part of a page, headings one level lower and without the title."""
    parts = []
    for kind, text in cells(source):
        if kind == "code":
            parts.append(f"```python\n{text}\n```")
        else:
            parts.append(re.sub(r"^#(?=#* )", "##", re.sub(r"\A# [^\n]*\n*", "", text), flags=re.MULTILINE))
    return "\n\n".join(parts) + "\n"
