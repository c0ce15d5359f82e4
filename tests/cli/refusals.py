"""Every refusal that the library can raise, as its source has it, and the names of Python that a text holds."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import confide
from confide.errors import SENTENCES
from confide.parameters import PARAMETERS

SOURCE = Path(confide.__file__).parent

NAMES_OF_PYTHON = re.compile(
    r"(?<![-\w\"'])[a-z]+_[a-z_]+"  # a parameter or a function
    r"|\b[A-Z][a-z]+[A-Z]\w+|\b[A-Z]{2,}[a-z]\w*"  # a class
    r"|confide\.[a-zA-Z]|`|\b\w+=|\bNone\b|\bTrue\b|\bFalse\b|\bDP\b"
)
"""What nobody types on the command line. Names in double quotes are columns."""
_NAMES_OF_THINGS = re.compile(
    r"OpenDP|NumPy|SciPy|DuckDB|PostgreSQL|GridSearchCV|Matplotlib|random_features|budget_per_year|\bNA\b|\bNaN\b|PGPASSWORD"
)
"""Programs, keys of a schema, and what cells hold."""


def names_of_python(text):
    """The names of Python in a text that was shown on the command line."""
    return NAMES_OF_PYTHON.findall(_NAMES_OF_THINGS.sub("", re.sub(r"--grid \S+|`confide [^`]*`|\S*/\S*", "", text)))


def refusals():
    """(file within the package, name of the error, text) of every refusal. … stands for what is filled in."""
    kinds = {name for name in vars(confide.errors) if name.endswith(("Error", "Exceeded", "Certified", "Regularisation"))}
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in kinds:
                texts = [_text(argument) for argument in node.args]
                found += [(path.relative_to(SOURCE).as_posix(), node.func.id, text) for text in texts if text]
    rows = (row for row in PARAMETERS.values() if row.must)
    return found + [("parameters.py", "ParameterError", row.refusal("…")) for row in rows]


def _text(node):
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "wording" and isinstance(node.args[0], ast.Constant):
        return re.sub(r"\{\w[^{}]*\}", "…", SENTENCES[node.args[0].value]).replace("{{", "{").replace("}}", "}")
    if isinstance(node, ast.BinOp):
        return (_text(node.left) or "…") + (_text(node.right) or "…")
    return None
