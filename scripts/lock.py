"""Write the lock files: every package that development and continuous integration install, with version and checksums.

`requirements/core.txt` holds what the package itself needs, and one file for each optional part holds what that part needs
besides. They are made together, so that their versions agree, and serve Python 3.11 and newer on Linux and macOS. `make`
installs from them; people who install the package from an index get the ranges of pyproject.toml.

`python -m scripts.lock` resolves anew and writes them; it needs uv (`make release` installs it).
`python -m scripts.lock --check` says whether they hold everything that pyproject.toml asks for, and needs no network.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "requirements"
CORE = "core"
BUILD = "build"
_EDITABLE = "editables"
"""What hatchling asks for, besides itself, when it installs a package where it stands."""
_INSTALLER = "uv"
"""`make` installs all else with it: many packages at a time."""
_OLDEST_PYTHON = "3.11"
_HEADER = "# Written by `python -m scripts.lock`; do not edit. Versions and checksums of what {what}.\n"
_PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)==(\S+)(?: ; (.+?))? \\$", re.MULTILINE)


def main() -> None:
    """Write the files, or check them."""
    arguments = sys.argv[1:]
    if arguments not in ([], ["--check"]):
        sys.exit("usage: python -m scripts.lock [--check]")
    if not arguments:
        _write()
    if problems := missing():
        sys.exit("\n".join([*problems, "Run `make lock`."]))


def requirements() -> dict[str, list[Requirement]]:
    """What pyproject.toml asks for: of the core, of the build, and of each optional part."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    parts = {CORE: project["project"]["dependencies"], BUILD: [*project["build-system"]["requires"], _EDITABLE, _INSTALLER]}
    parts |= project["project"]["optional-dependencies"]
    return {part: [Requirement(line) for line in lines] for part, lines in parts.items()}


def pins(part: str) -> dict[str, list[Version]]:
    """The locked versions of each package that this part's file names; two where they differ by version of Python."""
    found: dict[str, list[Version]] = {}
    for name, version, _ in _PIN.findall((FOLDER / f"{part}.txt").read_text(encoding="utf-8")):
        found.setdefault(canonicalize_name(name), []).append(Version(version))
    return found


def missing() -> list[str]:
    """What pyproject.toml asks for and the files do not hold, in sentences."""
    problems, core = [], pins(CORE)
    for part, asked in requirements().items():
        locked = core | pins(part)
        for one in asked:
            if one.name == "confide":  # parts of the package itself, which have files of their own
                locked_parts = [extra for extra in one.extras if not (FOLDER / f"{extra}.txt").exists()]
                problems += [f"requirements/{extra}.txt is missing." for extra in locked_parts]
                continue
            versions = locked.get(canonicalize_name(one.name), [])
            if not versions or not all(version in one.specifier for version in versions):
                problems.append(f"requirements/{part}.txt has no version of {one.name} that pyproject.toml allows.")
    return problems


def _write() -> None:
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv is None:
        sys.exit("uv was not found. `make lock` installs it.")
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        everything = Path(scratch, "everything.txt")
        build = Path(scratch, "build.in")
        build.write_text("\n".join(map(str, requirements()[BUILD])), encoding="utf-8")
        _resolved(uv, everything, "pyproject.toml", str(build), "--all-extras")
        blocks: dict[str, dict[str, str]] = {}
        for part in requirements():
            source = [str(build)] if part == BUILD else ["pyproject.toml"]
            extra = [] if part in (CORE, BUILD) else ["--extra", part]
            made = Path(scratch, f"{part}.txt")
            _resolved(uv, made, *source, *extra, "--constraint", str(everything))
            blocks[part] = _blocks(made.read_text(encoding="utf-8"))
        for part, packages in blocks.items():
            kept = packages if part == CORE else {key: text for key, text in packages.items() if key not in blocks[CORE]}
            what = {CORE: "the package needs", BUILD: "its installation and build need besides core.txt"}.get(
                part, f"the optional part {part!r} needs besides core.txt"
            )
            text = _HEADER.format(what=what)
            (FOLDER / f"{part}.txt").write_text(text + "".join(kept.values()), encoding="utf-8")


def _resolved(uv: str, output: Path, *arguments: str) -> None:
    fixed = ("--quiet", "--universal", "--generate-hashes", "--no-header", "--no-annotate")
    command = (uv, "pip", "compile", *fixed, "--python-version", _OLDEST_PYTHON, "--output-file", str(output), *arguments)
    subprocess.run(command, cwd=ROOT, check=True)  # noqa: S603 - a fixed command


def _blocks(text: str) -> dict[str, str]:
    """The text of each pinned package with its checksums, by its first line."""
    starts = [match.start() for match in _PIN.finditer(text)]
    ends = [*starts[1:], len(text)]
    return {text[start:end].split("\n", 1)[0]: text[start:end] for start, end in zip(starts, ends, strict=True)}


if __name__ == "__main__":
    main()
