"""The page as a PDF, printed by a browser that is found on the machine. Nothing is sent over a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from confide.errors import FileError, ParameterError
from confide.files import check_output, new_file

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "brave-browser",
)
_OF_MACOS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
FLAGS = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_SECONDS = 120


def browser() -> str | None:
    """The path of a browser that can print, or None. The variable CONFIDE_BROWSER names one."""
    named = os.environ.get("CONFIDE_BROWSER")
    if named is not None:
        return shutil.which(named)
    found = (shutil.which(name) for name in (*BROWSERS, *_OF_MACOS))
    return next((path for path in found if path is not None), None)


def write_pdf(page: str, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Print a page of HTML to a PDF file, in one step.

    Parameters
    ----------
    page : the page of HTML
    path : where to write
    overwrite : whether to replace a file that exists

    Raises
    ------
    ParameterError
        If no browser is found.
    FileError
        If the file cannot be written, or the browser fails.
    """
    program = browser()
    if program is None:
        raise ParameterError(
            "a PDF needs a browser, Chromium or Chrome, and none was found. Install one, name it in the variable "
            "CONFIDE_BROWSER, or write a page of HTML and print it from any browser."
        )
    check_output(path, overwrite=overwrite)
    with tempfile.TemporaryDirectory(prefix="confide-", ignore_cleanup_errors=True) as folder:
        printed = _printed(page, Path(folder), program, path)
        with new_file(path, overwrite=overwrite) as unfinished:
            unfinished.write_bytes(printed)


def _printed(page: str, folder: Path, program: str, path: str | os.PathLike[str]) -> bytes:
    """A page of HTML as a PDF; `path` is named in messages."""
    source, printed = folder / "report.html", folder / "report.pdf"
    source.write_text(page, encoding="utf-8")
    printed.unlink(missing_ok=True)
    command = [
        program,
        *FLAGS,
        *(["--no-sandbox"] if os.geteuid() == 0 else []),  # Chromium refuses its sandbox to the superuser
        f"--user-data-dir={folder}/profile",
        "--no-pdf-header-footer",
        f"--print-to-pdf={printed}",
        source.as_uri(),
    ]
    try:
        subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603 - our own arguments
    except (OSError, subprocess.TimeoutExpired):
        raise FileError(f"cannot write {os.fspath(path)}: the browser {program} failed.") from None
    if not printed.exists() or not printed.read_bytes().startswith(b"%PDF"):
        raise FileError(f"cannot write {os.fspath(path)}: the browser {program} printed nothing.")
    return printed.read_bytes()
