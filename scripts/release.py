"""Make a release: build, compare, try, list and check. Nothing is uploaded and nothing is signed here.

`python -m scripts.release` (that is `make release`) does these steps, and stops at the first that fails:

1. the lock files hold what pyproject.toml asks for;
2. the source distribution, a wheel with the kernel and one of pure Python are built twice, from two copies of the committed
   files, and their bytes are compared. On Linux the wheel gets the tag of the oldest systems on which it runs, for an index
   takes no other;
3. twine finds nothing that an index would refuse, and can draw the first page;
4. both wheels are installed into empty environments from the locked versions, one for each Python that is here, where the
   core takes at most 330 MB; with what the command line needs, the demo runs there;
5. the licences of all locked packages of the core and of its optional parts are permitted ones;
6. a list of parts (CycloneDX 1.6, JSON) is written beside the distributions;
7. known vulnerabilities are looked up; where the service does not answer, the summary says "not checked".

The distributions, the list of parts and their checksums are left in `dist/`. Wheels for other platforms are built by the
workflow .github/workflows/release.yml. What is left for a person stands in CONTRIBUTING.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from scripts import lock
from scripts.installed_size import empty_environment, install, sizes_of

ROOT = lock.ROOT
DIST = ROOT / "dist"
PARTS_LIST = "confide.cdx.json"
MOST_MEGABYTES = 330
"""What an installation of the core may take, with all that it needs."""
PARTS_OF_USERS = ("core", "all", "postgres", "spark")
"""Parts that users install. Tools of development are not passed on with the package."""
PERMITTED = re.compile(
    r"MIT|BSD|Apache|PSF|Python Software Foundation|\bISC\b|MPL|Mozilla|LGPL|Lesser General Public|Zlib|Unlicense"
)
"""Words of the licences that a dependency of the package may have: permissive ones, and those that bind changes to the
dependency itself alone. LGPL is psycopg, an optional part."""
FORBIDDEN = re.compile(r"\bA?GPL|Affero|(?<!Lesser )General Public")
"""Words of licences that would bind the package itself."""


def main() -> None:
    """Make the release, and print one line for each step."""
    if sys.argv[1:]:
        sys.exit("usage: python -m scripts.release")
    if problems := lock.missing():
        sys.exit("\n".join([*problems, "Run `make lock`."]))
    print("lock files: they hold what pyproject.toml asks for")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        # Looked up once, so that a commit made meanwhile does not come between the two builds.
        commit = _run("git", "rev-parse", "HEAD", cwd=ROOT, capture_output=True).stdout.strip()
        first, second = _built(commit, folder / "one"), _built(commit, folder / "two")
        _compare(first, second)
        shutil.rmtree(DIST, ignore_errors=True)
        DIST.mkdir()
        for file in first:
            shutil.copy(file, DIST)
            print(f"built twice with equal bytes: {file.name}, {file.stat().st_size / 1e3:,.0f} kB")
        _run(sys.executable, "-m", "twine", "check", "--strict", *first, capture_output=True)
        print("twine: nothing that an index would refuse")
        for wheel in (file for file in first if file.suffix == ".whl"):
            for name in pythons():
                place = folder / f"{name}-{wheel.name}"
                python = empty_environment(place, wheel, "core", name)
                _check_size(python)
                install(python, "cli")
                _demo(python, place)
                print(f"{wheel.name} in an empty environment of {name}: its demo runs")
        _write_parts(python, wheel)
        _check_licences(python)
    _look_up_vulnerabilities()
    _write_checksums()


def _run(*command: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in command], check=True, text=True, **options)  # type: ignore[call-overload,no-any-return]  # noqa: S603


def _built(commit: str, folder: Path) -> list[Path]:
    """Wheel and source distribution, built from a copy of the files of a commit."""
    copy = folder / "copy"
    copy.mkdir(parents=True)
    _run("git", "archive", commit, "--format=tar", f"--output={folder / 'tree.tar'}", cwd=ROOT)
    _run("tar", "-xf", folder / "tree.tar", "-C", copy)
    when = _run("git", "log", "-1", "--format=%ct", commit, cwd=ROOT, capture_output=True).stdout.strip()
    environment = os.environ | {"SOURCE_DATE_EPOCH": when}
    command = (sys.executable, "-m", "build", "--no-isolation", "--outdir")
    _run(*command, folder / "built", copy, env=environment, capture_output=True)
    pure = environment | {"CONFIDE_COMPILED": "0"}
    _run(*command, folder / "dist", "--wheel", copy, env=pure, capture_output=True)
    for file in (folder / "built").iterdir():
        if "-linux_" in file.name:
            repair = (sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", folder / "dist", file)
            path = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
            _run(*repair, env=environment | {"PATH": path}, capture_output=True)
        else:
            shutil.copy(file, folder / "dist")
    return sorted((folder / "dist").iterdir())


def pythons() -> list[str]:
    """The commands of those versions of Python that the package supports and that run here."""
    named = filter(shutil.which, [f"python3.{minor}" for minor in range(11, 15)])
    runs = [name for name in named if subprocess.run([name, "--version"], capture_output=True, check=False).returncode == 0]  # noqa: S603
    return runs or [sys.executable]


def _compare(first: Iterable[Path], second: Iterable[Path]) -> None:
    for one, other in zip(first, second, strict=True):
        if one.name != other.name or one.read_bytes() != other.read_bytes():
            sys.exit(f"{one.name} differs between two builds of the same files: the build is not reproducible.")


def _check_size(python: Path) -> None:
    size = sum(sizes_of(python).values())
    if size > MOST_MEGABYTES:
        sys.exit(f"the core takes {size:.0f} MB in an empty environment, and {MOST_MEGABYTES} at most are promised")
    print(f"the core takes {size:.0f} MB in an empty environment")


def _demo(python: Path, folder: Path) -> None:
    """Run the demo of the installed wheel, in a folder that has no file of the project."""
    place = folder / "place"
    place.mkdir()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = _run(python.parent / "confide", "demo", cwd=place, env=environment, capture_output=True)
    if not any(place.iterdir()) or not done.stdout:
        sys.exit("the demo of the installed wheel left no model")


def _write_parts(python: Path, wheel: Path) -> None:
    """The list of parts of the environment into which the wheel was installed."""
    command = (sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--spec-version", "1.6")
    written = _run(*command, python, capture_output=True).stdout
    parts = json.loads(written)
    names = {part["name"] for part in parts["components"]}
    if "confide" not in names or not set(lock.pins("core")) & {name.lower() for name in names}:
        sys.exit(f"the list of parts of {wheel.name} is not complete")
    # The wheel was installed from a scratch folder, of which the list should not speak.
    for part in parts["components"]:
        if part["name"] == "confide":
            part.pop("externalReferences", None)
    (DIST / PARTS_LIST).write_text(json.dumps(parts, indent=1) + "\n", encoding="utf-8")
    print(f"list of parts: {len(names)} packages, {PARTS_LIST}")


def _check_licences(python: Path) -> None:
    """Install every part that users may install, and look at what each package says of its licence."""
    for part in PARTS_OF_USERS[1:]:
        install(python, part)
    code = (
        "import importlib.metadata as m, json;"
        "print(json.dumps({d.metadata['Name']: ' | '.join(filter(None, [d.metadata.get('License-Expression'),"
        " (d.metadata.get('License') or '')[:200], *[c for c in d.metadata.get_all('Classifier') or [] if 'License' in c]]))"
        " for d in m.distributions()}))"
    )
    licences = json.loads(_run(python, "-c", code, capture_output=True).stdout)
    others = {name: text for name, text in licences.items() if FORBIDDEN.search(text) or not PERMITTED.search(text)}
    if others:
        lines = [f"{name}: {text or 'says nothing of its licence'}" for name, text in sorted(others.items())]
        sys.exit("\n".join(["licences that are not permitted:", *lines]))
    print(f"licences: those of {len(licences)} packages are permitted ones")


def _look_up_vulnerabilities() -> None:
    files = [
        argument for part in PARTS_OF_USERS for argument in ("--requirement", str(ROOT / "requirements" / f"{part}.txt"))
    ]
    fixed = ("--disable-pip", "--require-hashes", "--format", "json", "--progress-spinner", "off")
    command = (sys.executable, "-m", "pip_audit", *fixed, *files)
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - a fixed command
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        said = done.stderr.strip().splitlines()[-1:] or ["nothing was said"]
        print(f"known vulnerabilities: NOT CHECKED, because the service that lists them did not answer ({said[0][:200]})")
        return
    looked_at = [package for package in packages if "vulns" in package]
    found = {package["name"]: [one["id"] for one in package["vulns"]] for package in looked_at if package["vulns"]}
    if found:
        sys.exit("\n".join(["known vulnerabilities:", *(f"{name}: {', '.join(ids)}" for name, ids in found.items())]))
    if len(looked_at) < len(packages):
        print(f"known vulnerabilities: NOT CHECKED for {len(packages) - len(looked_at)} of {len(packages)} packages")
    else:
        print(f"known vulnerabilities: none in {len(packages)} packages")


def _write_checksums() -> None:
    files = sorted(file for file in DIST.iterdir() if file.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in files]
    (DIST / "SHA256SUMS").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
