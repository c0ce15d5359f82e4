"""Notebooks from Python sources with cell marks, `# %%` and `# %% [markdown]`, with what their cells show."""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import re
from typing import Any

from scripts.page_outputs import seeded, written

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


def outputs(source: str) -> list[list[dict[str, Any]]]:
    """What each cell shows when all of them are run in order, as a notebook of format 4 holds it: text, tables, figures."""
    import matplotlib.pyplot as plt

    names: dict[str, Any] = {"__name__": "notebook"}
    shown: list[list[dict[str, Any]]] = []
    plt.close("all")
    plt.switch_backend("Agg")
    with seeded("notebook"):
        for number, (kind, text) in enumerate(cells(source)):
            shown.append([])
            if kind == "code":
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    value = _value(text, names)
                if printed.getvalue():
                    shown[-1].append(
                        {"output_type": "stream", "name": "stdout", "text": printed.getvalue().splitlines(True)}
                    )
                if value is not None:
                    data = {"text/plain": repr(value).splitlines(True)}
                    if hasattr(value, "_repr_html_"):
                        data["text/html"] = value._repr_html_().splitlines(True)
                    result = {"output_type": "execute_result", "execution_count": number, "data": data, "metadata": {}}
                    shown[-1].append(result)
                for figure in map(plt.figure, plt.get_fignums()):
                    picture = io.BytesIO()
                    figure.savefig(picture, format="png", dpi=110, bbox_inches="tight")
                    drawn = base64.b64encode(picture.getvalue()).decode()
                    data = {"image/png": [drawn], "text/plain": ["<Figure>"]}
                    shown[-1].append({"output_type": "display_data", "data": data, "metadata": {}})
                plt.close("all")
    return shown


def _value(text: str, names: dict[str, Any]) -> Any:
    """Run a cell; the result is its last line's value, as a notebook shows it."""
    tree, last = ast.parse(text), None
    if isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    exec(compile(tree, "notebook.py", "exec"), names)  # noqa: S102 - our own page
    return None if last is None else eval(compile(last, "notebook.py", "eval"), names)  # noqa: S307 - our own page


def notebook(source: str, shown: list[list[dict[str, Any]]]) -> str:
    """The text of a notebook file, format 4, with what its cells show."""
    made: list[dict[str, Any]] = []
    for number, (kind, text) in enumerate(cells(source)):
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text.splitlines(True)}
        if kind == "code":
            cell |= {"execution_count": number, "outputs": shown[number]}
        made.append(cell)
    metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    content = {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1) + "\n"


def as_markdown(source: str, shown: list[list[dict[str, Any]]]) -> str:
    """The cells as part of a page, with what they show, headings one level lower and without the title."""
    parts = []
    for (kind, text), some in zip(cells(source), shown, strict=True):
        if kind == "markdown":
            parts.append(re.sub(r"^#(?=#* )", "##", re.sub(r"\A# [^\n]*\n*", "", text), flags=re.MULTILINE))
            continue
        parts.append(f"```python\n{text}\n```")
        for output in some:
            data = output.get("data", {})
            if "image/png" in data:
                words = "What the cell above draws: one panel for each column that it names"
                parts.append(f"![{words}](data:image/png;base64,{data['image/png'][0]})")
            elif "text/html" in data:
                table = re.sub(r"(?s)<style>.*", "", "".join(data["text/html"]))  # without scikit-learn's diagram
                parts.append(f'<div class="cell-output">{table}</div>')
            else:
                parts.append(written("".join(data.get("text/plain", output.get("text")))).strip("\n"))
    return "\n\n".join(parts) + "\n"
