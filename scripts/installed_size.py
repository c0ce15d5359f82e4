"""Measure what an installation takes: the wheel of this folder and the locked versions, in an empty environment a part.

`python -m scripts.installed_size` prints megabytes (of a million bytes) of the site-packages of a fresh environment, with
what `venv` itself puts there and with the code that pip compiles; then those of the largest packages. With `--write` the
sums go to `requirements/sizes.json`, from which the page on installation has its figures. It needs a network.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts import lock

PARTS = ("core", "cli", "all")
"""What README names: arrays and frames in Python, the command line, and everything without a server or Java."""
SIZES = lock.FOLDER / "sizes.json"
_SHOWN = 8


def main() -> None:
    """Measure, print and perhaps write."""
    if sys.argv[1:] not in ([], ["--write"]):
        sys.exit("usage: python -m scripts.installed_size [--write]")
    sizes = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        pip = (sys.executable, "-m", "pip", "wheel", "-qq", "--disable-pip-version-check")
        run(*pip, "--no-deps", "--no-build-isolation", "--wheel-dir", folder, lock.ROOT)
        (wheel,) = folder.glob("*.whl")
        for part in PARTS:
            packages = sizes_of(empty_environment(folder / part, wheel, part))
            sizes[part] = round(sum(packages.values()))
            largest = sorted(packages.items(), key=lambda item: -item[1])[:_SHOWN]
            print(f"{part:6} {sizes[part]:5,} MB: {', '.join(f'{name} {size:.0f}' for name, size in largest)}", flush=True)
    if sys.argv[1:]:
        SIZES.write_text(json.dumps(sizes) + "\n", encoding="utf-8")


def empty_environment(folder: Path, wheel: Path, part: str, python_command: str = sys.executable) -> Path:
    """The interpreter of a new environment with the wheel and the locked versions of a part."""
    run(python_command, "-m", "venv", folder)
    python = folder / "bin" / "python"
    install(python, "core", *({part} - {"core"}))
    run(python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-deps", wheel)
    return python


def install(python: Path, *parts: str) -> None:
    """Add the locked versions of parts to an environment."""
    files = [argument for part in parts for argument in ("--requirement", lock.FOLDER / f"{part}.txt")]
    run(python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--require-hashes", *files)


def sizes_of(python: Path) -> dict[str, float]:
    """Megabytes of each entry of the site-packages of an environment; libraries beside a package count as its own."""
    (site,) = python.parent.parent.glob("lib/python3*/site-packages")
    sizes: dict[str, float] = {}
    for path in site.rglob("*"):
        if path.is_file():
            name = path.relative_to(site).parts[0].partition(".")[0].partition("-")[0]
            sizes[name] = sizes.get(name, 0.0) + path.stat().st_size / 1e6
    return sizes


def run(*command: str | Path) -> None:
    """Run a command that must succeed, with what pip compiles kept, as it is for users."""
    environment = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    }
    subprocess.run([str(part) for part in command], check=True, env=environment)  # noqa: S603 - fixed commands


if __name__ == "__main__":
    main()
