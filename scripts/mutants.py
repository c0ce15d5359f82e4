"""Mutants of a module: the same source with one small change, which a test should notice.

A mutant is made from the syntax tree, and only the changed expression or statement is written anew. Texts, annotations and
error messages are left alone: no guarantee hangs on them. Properties, constants of modules and defaults of fields are
changed like any other code.
"""

from __future__ import annotations

import ast
import copy
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
_NAMES = {
    "min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum", "ceil": "floor",
    "floor": "ceil", "expm1": "exp", "log1p": "log", "inf": "pi", "cumsum": "sort",
    "logical_and": "logical_or", "logical_or": "logical_and", "argmin": "argmax", "argmax": "argmin", "sorted": "list",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change of one file.

    Attributes
    ----------
    path : pathlib.Path
        The file.
    function : str
        Dotted name of the function or class around the change; empty at the level of the module.
    line : int
        Line of the change, from 1.
    before, after : str
        What is changed, as Python writes it, on one line.
    start, end : int
        The changed bytes of the file, in UTF-8.
    replacement : str
        What stands there instead.
    key : str
        Twelve hexadecimal digits that stay the same while the function and the change do.
    """

    path: Path
    function: str
    line: int
    before: str
    after: str
    start: int
    end: int
    replacement: str
    key: str

    def source(self) -> str:
        """The whole file with the change."""
        whole = self.path.read_bytes()
        return (whole[: self.start] + self.replacement.encode() + whole[self.end :]).decode()

    def undone(self) -> Mutant:
        """No change in the same place: a control, which no test may notice. Its key begins with `=`."""
        original = self.path.read_bytes()[self.start : self.end].decode()
        return replace(self, after=self.before, replacement=original, key=f"={self.key}")


def mutants_of(path: Path, root: Path) -> list[Mutant]:
    """All mutants of a file, from its first line to its last. Keys name the file by its place under `root`."""
    whole = path.read_bytes()
    starts = [0]
    for line in whole.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found, seen = [], dict[str, int]()
    for function, node, changed in _changes(ast.parse(whole)):
        before, after = (" ".join(ast.unparse(each).split()) for each in (node, changed))
        identity = f"{path.relative_to(root)}:{function}:{before}:{after}"
        seen[identity] = seen.get(identity, 0) + 1
        key = hashlib.sha256(f"{identity}:{seen[identity]}".encode()).hexdigest()[:12]
        text = ast.unparse(changed)
        start, end = (
            starts[line - 1] + column
            for line, column in ((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0))
        )
        replacement = f"({text})" if isinstance(node, ast.expr) else text
        found.append(Mutant(path, function, node.lineno, before, after, start, end, replacement, key))
    return sorted(found, key=lambda each: (each.start, each.end, each.after))


def _changes(tree: ast.Module) -> Iterator[tuple[str, ast.expr | ast.stmt, ast.expr | ast.stmt]]:
    """Name of the function around it, a node, and what to put in its place."""
    todo: list[tuple[str, ast.AST]] = [("", tree)]
    while todo:
        name, node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = f"{name}.{node.name}".lstrip(".")
        for changed in _instead_of(node):
            yield name, node, changed  # type: ignore[misc] # whatever is changed is an expression or a statement
        if isinstance(node, ast.If | ast.While | ast.IfExp) and not _is_for_types(node):
            yield name, node.test, ast.UnaryOp(ast.Not(), node.test)
        todo += [(name, child) for child in _children(node)]


def _children(node: ast.AST) -> list[ast.AST]:
    """The parts of a node that may be changed: neither annotations, nor texts, nor what only types or people read."""
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom) or _is_for_types(node):
        return []
    left_out = {id(getattr(node, field, None)) for field in ("annotation", "returns")}
    return [child for child in ast.iter_child_nodes(node) if id(child) not in left_out]


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _instead_of(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in place of a node."""
    match node:
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int()):
            yield ast.Constant(node.value + 1)
        case ast.Constant(value=float()):
            yield ast.Constant(2.0 * node.value if node.value else 1.0)
        case ast.Name(id=name, ctx=ast.Load()) if name in _NAMES:
            yield ast.Name(_NAMES[name], ast.Load())
        case ast.Attribute(attr=name, ctx=ast.Load()) if name in _NAMES:
            yield _with(node, attr=_NAMES[name])
        case ast.Compare(ops=[operator]):
            yield _with(node, ops=[_COMPARISONS[type(operator)]()])
        case ast.BinOp(op=operator) if type(operator) in _OPERATORS and not _is_text(node):
            yield _with(node, op=_OPERATORS[type(operator)]())
        case ast.BoolOp(op=ast.And()):
            yield _with(node, op=ast.Or())
        case ast.BoolOp(op=ast.Or()):
            yield _with(node, op=ast.And())
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield node.operand
        case ast.AugAssign(op=operator) if type(operator) in _OPERATORS:
            yield _with(node, op=_OPERATORS[type(operator)]())
        case ast.Raise() | ast.Expr(value=ast.Call()) | ast.Continue() | ast.Break():
            yield ast.Pass()


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _is_text(node: ast.BinOp) -> bool:
    """Whether a sum or a product is one of texts."""
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )
