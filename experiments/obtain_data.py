"""Download the data sets of the experiments from their public sources, check them, and prepare the tables.

Downloads are kept in the folder "downloads" of the folder that you name, tables stand in that folder itself. A table that is
there is not made again, and no file is replaced. A file that you downloaded yourself, under the name that is asked for, is
used in place of a download. Adult comes with the library. Made-up rows need no file.

Run: make data FOLDER=some/folder, or python experiments/obtain_data.py some/folder [names of data sets]
Then: export CONFIDE_DATA_DIR=some/folder
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterable
from pathlib import Path

from data_sources import SOURCES, Download, Source

SECONDS = 60.0
"""How long to wait for an answer."""
BLOCK = 1 << 20


class DataError(Exception):
    """A data set cannot be had. The text says what to do."""


def downloaded(download: Download, folder: Path) -> bytes:
    """The file with the rows, downloaded if it is not there, with the expected checksum."""
    path = folder / download.name
    if not path.exists():
        _download(download, path)
    try:
        content = download.content(path.read_bytes())
    except (zipfile.BadZipFile, KeyError) as problem:
        raise DataError(
            f"{path} is not the expected archive with {' / '.join(download.inside)} ({problem}). Remove it and run again."
        ) from problem
    found = hashlib.sha256(content).hexdigest()
    if found != download.sha256:
        raise DataError(
            f"{path} has other content than expected: its SHA-256 is {found}, expected was {download.sha256}. Nothing was "
            "made of it. Remove it and run again; if that does not help, the source has changed the data."
        )
    return content


def _download(download: Download, path: Path) -> None:
    """Under another name first, so that an interrupted download is not taken for a whole file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    print(f"  from {download.url}", flush=True)
    try:
        with urllib.request.urlopen(download.url, timeout=SECONDS) as answer, part.open("wb") as file:  # noqa: S310
            while block := answer.read(BLOCK):
                file.write(block)
    except (urllib.error.URLError, OSError) as problem:
        part.unlink(missing_ok=True)
        raise DataError(
            f"{download.url} could not be downloaded ({getattr(problem, 'reason', problem)}). Run again with a connection "
            f"to the internet, or download it on another machine and put it here as {path}."
        ) from problem
    part.rename(path)


def obtain(source: Source, folder: Path) -> str:
    """Make the table of one data set, unless it is there. What happened, in words."""
    table = folder / source.file
    if table.exists():
        return f"{table} is there and was left as it is"
    contents = [downloaded(download, folder / "downloads") for download in source.downloads]
    frame = source.table(contents)
    if len(frame) != source.rows:
        raise DataError(f"{source.name} has {len(frame)} rows, expected were {source.rows}. Nothing was made of it.")
    part = table.with_name(table.name + ".part")
    frame.to_parquet(part, compression="zstd", index=False)
    part.rename(table)
    return f"{table}: {len(frame)} rows, {frame.shape[1]} columns"


def obtain_all(sources: Iterable[Source], folder: Path) -> int:
    """All of them; how many could not be had."""
    failures = 0
    for source in sources:
        print(f"{source.name}: licence {source.licence}. Cite {source.citation}.", flush=True)
        try:
            print(f"  {obtain(source, folder)}")
        except DataError as problem:
            print(f"  {problem}", file=sys.stderr)
            failures += 1
    return failures


def main() -> None:
    """Read the command line and obtain what it names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where tables and downloads shall stand; it is made if it is not there")
    known = [source.name for source in SOURCES]
    parser.add_argument("names", nargs="*", metavar="name", help=f"data sets, all by default: {', '.join(known)}")
    given = parser.parse_args()
    unknown = sorted(set(given.names) - set(known))
    if unknown:
        parser.error(f"no data set is named {unknown[0]!r}; expected one of {', '.join(known)}")
    folder = given.folder.expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        parser.error(f"{folder} cannot be made a folder ({problem}); name another one")
    wanted = [source for source in SOURCES if not given.names or source.name in given.names]
    failures = obtain_all(wanted, folder)
    if failures:
        sys.exit(f"{failures} of {len(wanted)} data sets could not be had; the reasons stand above.")
    print(f"Now: export CONFIDE_DATA_DIR={folder.resolve()}")


if __name__ == "__main__":
    main()
