"""The pages of the documentation site, gathered in build/docs from the places where they live.

A page is written where its readers in the repository look for it: docs/ for users, the proofs beside the code. On the site
they stand together, so links are rewritten on the way. A link to a file that is no page, such as a module, becomes its name.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import shutil
from functools import reduce
from pathlib import Path

from scripts.gallery import examples, printed, words
from scripts.notebooks import as_markdown, notebook, outputs

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "build" / "docs"
CELLS = "<!-- the cells of notebook.py -->"
MADE = {"tutorials/first_private_model.ipynb"}
"""What a page may link to although it is made for the site alone."""

_LINK = re.compile(r"(?<!\\)(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
_FENCE = re.compile(r"(^```.*?^```[^\S\n]*$)", re.DOTALL | re.MULTILINE)
_ELSEWHERE = ("https://", "http://", "mailto:")


def places() -> dict[Path, Path]:
    """Each page and picture of the repository, and where it stands on the site."""
    found = {
        path: path.relative_to(ROOT / "docs")
        for path in (ROOT / "docs").rglob("*")
        if path.is_file() and path.suffix != ".toml"
    }
    found |= {path: Path("gallery", f"{path.stem}.md") for path in examples()}
    for folder in ("privacy", "accounting", "planning"):
        for path in (ROOT / "src" / "confide" / folder / "proofs").glob("*.md"):
            found[path] = Path("explanation", "proofs", path.name)
    for path in (ROOT / "benchmarks" / "notes").glob("*.md"):
        found[path] = Path("project", "notes", path.name)
    for path in (ROOT / "experiments" / "results").glob("*.svg"):
        found[path] = Path("experiments", path.name)
    more = {
        "src/confide/privacy/README.md": "explanation/for_sceptics.md",
        "benchmarks/README.md": "project/benchmarks.md",
        "benchmarks/peers/README.md": "project/peers.md",
        "benchmarks/audit/README.md": "project/audit.md",
        "benchmarks/violations/README.md": "project/violations.md",
        "ARCHITECTURE.md": "project/architecture.md",
        "CHANGELOG.md": "project/changelog.md",
        "CONTRIBUTING.md": "project/contributing.md",
        "SECURITY.md": "project/security.md",
    }
    return found | {ROOT / source: Path(place) for source, place in more.items()}


def rewritten(text: str, page: Path, where: dict[Path, Path]) -> str:
    """The text of a page with links as they are on the site.

    Parameters
    ----------
    text : the page as it is written
    page : its path in the repository
    where : what `places` gives

    Raises
    ------
    LookupError
        If a link leads to nothing in the repository.
    """

    def link(found: re.Match[str]) -> str:
        mark, words, target = found.groups()
        path, _, anchor = target.partition("#")
        if target.startswith(_ELSEWHERE) or not path:
            return found[0]
        file = (page.parent / path).resolve()
        if file == ROOT / "README.md":
            file = ROOT / "docs" / "index.md"
        if file in where:
            new = os.path.relpath(where[file], where[page].parent).replace(os.sep, "/")
            return f"{mark}[{words}]({new}{'#' * bool(anchor)}{anchor})"
        if file.is_relative_to(ROOT / "docs") and file.relative_to(ROOT / "docs").as_posix() in MADE:
            return found[0]
        if not file.exists():
            raise LookupError(f"{page.relative_to(ROOT)}: the link to {target} leads nowhere")
        name = file.relative_to(ROOT).as_posix()
        if words.startswith("`") or "/" in words:
            return words
        before = found.string[: found.start()].rsplit("\n\n", 1)[-1]
        return f"{words}: `{name}`" if before.count("(") > before.count(")") else f"{words} (`{name}`)"

    parts = _FENCE.split(text)
    return "".join(part if index % 2 else _LINK.sub(link, part) for index, part in enumerate(parts))


def with_blank_lines(text: str) -> str:
    """The text with an empty line before each list that follows a paragraph, as Python-Markdown wants it."""
    begins = re.compile(r"(?:[-*+]|1[.)])\s")
    parts = _FENCE.split(text)
    for index in range(0, len(parts), 2):
        lines: list[str] = []
        for line in parts[index].split("\n"):
            before = lines[-1] if lines else ""
            if begins.match(line) and before.strip() and not begins.match(before) and not before.startswith((" ", "#")):
                lines.append("")
            lines.append(line)
        parts[index] = "\n".join(lines)
    return "".join(parts)


def gallery_pages(folder: Path) -> dict[str, str]:
    """The pages of the gallery by their names: one for each example, and the list of all."""
    listed = [
        "# Gallery",
        "",
        "Examples on real data. Each page has the whole script; `python -m scripts.gallery` runs them.",
        "",
    ]
    pages = {}
    for example in sorted(folder.glob("*.py")):
        title, rest, shows = words(example)
        code = example.read_text(encoding="utf-8").split('"""\n', 2)[-1].strip("\n")
        picture = f"![{shows}]({example.stem}.svg)"
        pages[f"{example.stem}.md"] = f"# {title}\n{rest}\n\n{picture}\n\n```python\n{code}\n```\n{printed(example)}"
        first = rest.strip().split("\n\n")[0].replace("\n", " ")
        listed += [f"## [{title}]({example.stem}.md)", "", first, "", picture, ""]
    pages["index.md"] = "\n".join(listed)
    return pages


def plain_pages(folder: Path) -> dict[str, str]:
    """Each gathered page as Markdown, with docstrings in their places, and llms.txt, which lists them.

    They are for programs that read text.
    """

    def documented(found: re.Match[str]) -> str:
        owner = importlib.import_module("confide")
        value = reduce(getattr, found[1].split(".")[1:], owner)
        return f"## {found[1]}\n\n{inspect.getdoc(value) or ''}"

    pages, about = {}, "Models trained on data about people, released with a privacy guarantee that a sceptic can check."
    listed = ["# confide", "", f"> {about}", ""]
    for page in sorted(folder.rglob("*.md")):
        name = page.relative_to(folder).as_posix()
        pages[name] = re.sub(r"(?m)^::: ([\w.]+)(?:\n    .*)*", documented, page.read_text(encoding="utf-8"))
        listed.append(f"- [{pages[name].split(chr(10), 1)[0].removeprefix('# ')}]({name})")
    return pages | {"llms.txt": "\n".join([*listed, ""])}


def gather(target: Path = SOURCE) -> None:
    """Write all pages and pictures below a folder, which is emptied before."""
    if target.exists():
        shutil.rmtree(target)
    where = places()
    for source, place in where.items():
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            text = rewritten(source.read_text(encoding="utf-8"), source, where)
            (target / place).write_text(with_blank_lines(text), encoding="utf-8")
        elif source.suffix not in (".py", ".txt"):
            shutil.copyfile(source, target / place)
    for name, text in gallery_pages(ROOT / "docs" / "gallery").items():
        (target / "gallery" / name).write_text(text, encoding="utf-8")
    tutorials = target / "tutorials"
    cells = (ROOT / "docs" / "tutorials" / "notebook.py").read_text(encoding="utf-8")
    shown = outputs(cells)
    (tutorials / "first_private_model.ipynb").write_text(notebook(cells, shown), encoding="utf-8")
    page = tutorials / "in_a_notebook.md"
    page.write_text(page.read_text(encoding="utf-8").replace(CELLS, as_markdown(cells, shown)), encoding="utf-8")
