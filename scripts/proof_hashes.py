"""Bind the proof pages to the code that they prove.

A page in a folder proofs of the package ends with lines such as

    Proves: confide.privacy.gaussian.gaussian_delta sha256:0123456789ab

each of which says: somebody read this page beside this very code. The hash is that of the code's meaning: comments,
docstrings, annotations and layout do not count, constants and operators do. A name is that of a function, a method, or a
constant of a module or class; or of a function or a macro of one line of a C file, such as confide.compiled.passes.weigh.

Run ``python scripts/proof_hashes.py`` to list what changed since its page was read, and after reading the page again
``python scripts/proof_hashes.py --write`` to renew the hashes, and to add those of names that have none yet.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"
PAGES = sorted((SOURCE / "confide").glob("*/proofs/*.md"))

CLAIM = re.compile(r"^( *Proves: )([\w.]+) sha256:([0-9a-f]{12})$", re.MULTILINE)
_ENTRY = re.compile(r"^[ \t]*Proves:.*$", re.MULTILINE)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_LEFT_OUT = ("annotation", "ctx", "kind", "returns", "type_comment", "type_params")
"""Fields of a syntax tree that say nothing about what a function computes."""


def main() -> None:
    write = sys.argv[1:] == ["--write"]
    if sys.argv[1:] and not write:
        sys.exit("usage: python scripts/proof_hashes.py [--write]")
    stale = False
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        try:
            text = completed(text) if write else text
            entries = claims(text)
        except ValueError as error:
            sys.exit(f"{page.name}: {error}")
        for name, written in entries:
            try:
                current = digest(name)
            except LookupError as error:
                sys.exit(f"{page.name}: {error}. Correct the page.")
            if current != written:
                stale = True
                print(f"{page.name}: {name} is {current}, the page says {written}")
        if write:
            page.write_text(renewed(text), encoding="utf-8")
    if stale and not write:
        sys.exit("Read the pages beside the code again, then run this with --write.")


def claims(text: str) -> list[tuple[str, str]]:
    """(name, hash) of each line of a page that claims a proof. ValueError if such a line is no name with a hash."""
    for entry in _ENTRY.findall(text):
        if not CLAIM.fullmatch(entry):
            raise ValueError(f"{entry.strip()!r} is not 'Proves: NAME sha256:' and twelve digits, so it would bind nothing.")
    return [(name, written) for _, name, written in CLAIM.findall(text)]


def completed(text: str) -> str:
    """The page with a hash of zeros behind each name that has none yet, for people who write names alone."""
    return re.sub(r"^( *Proves: [\w.]+)$", rf"\1 sha256:{'0' * 12}", text, flags=re.MULTILINE)


def renewed(text: str) -> str:
    """The page with the hashes of today's code."""
    return CLAIM.sub(lambda claim: f"{claim[1]}{claim[2]} sha256:{digest(claim[2])}", text)


def digest(name: str) -> str:
    """First twelve hexadecimal digits of the hash of what a dotted name stands for."""
    path, inner = located(name)
    text = path.read_text(encoding="utf-8")
    return digest_in(text, inner) if path.suffix == ".py" else digest_in_c(text, inner)


def located(name: str) -> tuple[Path, str]:
    """The file of a dotted name, and the name inside it."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        for suffix in (".py", ".c", ".h"):
            path = SOURCE.joinpath(*parts[:length]).with_suffix(suffix)
            if path.is_file():
                return path, ".".join(parts[length:])
    raise LookupError(f"{name}: no such module")


def digest_in(text: str, name: str) -> str:
    """The same for a name inside the text of a module."""
    nodes = definitions_in(text)
    if name not in nodes:
        raise LookupError(f"{name}: no such function, method or constant")
    return hashlib.sha256(_canonical(nodes[name]).encode()).hexdigest()[:12]


def digest_in_c(text: str, name: str) -> str:
    """The same for a function inside the text of a C file, whose name may stand inside of NAME(), or a macro of one line."""
    code = _COMMENT.sub(" ", text)
    found = re.search(
        rf"^\w[^;{{}}]*?\b(?:NAME\({name}\)|{name})\([^;{{}}]*\)\n\{{\n.*?^\}}\n", code, re.MULTILINE | re.DOTALL
    ) or re.search(rf"^#define {name}\b.*$", code, re.MULTILINE)
    if found is None:
        raise LookupError(f"{name}: no such function")
    return hashlib.sha256(" ".join(found[0].split()).encode()).hexdigest()[:12]


def definitions(tree: ast.Module | ast.ClassDef, prefix: str = "") -> dict[str, ast.stmt]:
    """Functions, methods and constants of a module by name; those of a class as Class.name."""
    found: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found[prefix + node.name] = node
        elif isinstance(node, ast.ClassDef):
            found |= definitions(node, f"{prefix}{node.name}.")
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                names = [part.id for part in ast.walk(target) if isinstance(part, ast.Name)]
                found |= {prefix + name: node for name in names}
    return found


@cache
def definitions_in(text: str) -> dict[str, ast.stmt]:
    """The same, of the text of a module."""
    return definitions(ast.parse(text))


def computing_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a syntax tree that count in a hash."""
    yield node
    for name, value in ast.iter_fields(node):
        if name not in _LEFT_OUT:
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.AST) and not _says_nothing(part):
                    yield from computing_nodes(part)


def _canonical(node: object) -> str:
    """A text of a syntax tree that no version of Python spells differently."""
    if isinstance(node, ast.AnnAssign):
        node = ast.Assign([node.target], node.value)
    if isinstance(node, ast.Constant):
        return repr(node.value)
    if isinstance(node, ast.AST):
        fields = [
            (name, value) for name, value in ast.iter_fields(node) if name not in _LEFT_OUT and value not in (None, [])
        ]
        return f"{type(node).__name__}({', '.join(f'{name}={_canonical(value)}' for name, value in fields)})"
    if isinstance(node, list):
        return f"[{', '.join(_canonical(part) for part in node if not _says_nothing(part))}]"
    return repr(node)


def _says_nothing(node: object) -> bool:
    """Docstrings, and declarations without a value."""
    if isinstance(node, ast.AnnAssign):
        return node.value is None
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


if __name__ == "__main__":
    main()
