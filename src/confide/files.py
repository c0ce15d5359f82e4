"""Files that confide writes for its users: JSON documents with a kind, a format version and a checksum. No pickle, no code.

The checksum finds damage, not forgery, because whoever can write the file can also write the checksum. Every file appears in
one step, and replaces another file only if the caller asked for it. Nothing ever replaces a ledger.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from confide.accounting.file_storage import belongs_to_ledger
from confide.errors import FileError, checked_flag, wording
from confide.features.toml_form import refuse_address

_KIND = "confide-model"
FORMAT_VERSION = 1
_MAX_RESCUE_FILES = 100
"""The largest number of rescued models in one folder."""


def write_document(path: str | os.PathLike[str], content: dict[str, Any], *, overwrite: bool = False) -> None:
    """Write `content` (JSON values, with finite numbers) as one document, in one step; see `new_file`."""
    write_text(path, document_text(content), overwrite=overwrite)


def document_text(content: dict[str, Any]) -> str:
    """The text of the file that `write_document` writes."""
    document = {"kind": _KIND, "format_version": FORMAT_VERSION, "checksum": _checksum(content), "content": content}
    return json_text(document)


def json_text(document: Mapping[str, Any]) -> str:
    """A document of JSON as text. A number that is none has no place in it."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def write_text(path: str | os.PathLike[str], text: str, *, overwrite: bool = False) -> None:
    """Write a file of text in one step; see `new_file`."""
    with new_file(path, overwrite=overwrite) as unfinished:
        unfinished.write_bytes(text.encode())  # the same bytes on every system, for checksums


def rescued(text: str, out: Path, what: str) -> str:
    """Write the text to the first folder that accepts it, and say where it is.

    Folders are tried in this order: that of `out`, the current one, the temporary one. If none accepts it, the text is
    printed to standard output.
    """
    for folder in (out.parent, Path.cwd(), Path(tempfile.gettempdir())):
        for number in range(1, _MAX_RESCUE_FILES):
            rescue = folder / f"rescued-{what}{'' if number == 1 else f'-{number}'}{out.suffix}"
            with suppress(Exception):
                if rescue.exists():
                    continue
                write_text(rescue, text)
                return f"in {rescue}: copy it to where it should be"
            break
    sys.stdout.write(text)
    sys.stdout.flush()
    return "on standard output, because it could not be written to any folder: save that text in a file"


@contextmanager
def new_file(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Path]:
    """An unfinished file, which takes the name `path` in one step when the `with` block ends.

    Until then it has another name in the same folder; it is removed if writing fails. A reader sees either the old file or
    the new one, never a part of one. If `path` is a link, it stays a link, and the file it points to is replaced. The new
    file takes over the permissions of the file that it replaces.

    Parameters
    ----------
    path : str or path
    overwrite : bool, default False
        Whether a file that exists is replaced. A file without write permission is never replaced, nor is a ledger.

    Raises
    ------
    FileError
        If the file exists, is not an ordinary file, or cannot be written.
    """
    check_output(path, overwrite=overwrite)
    target = Path(path).resolve()
    try:
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
        unfinished = _created_in(target.parent, mode)
        try:
            yield unfinished
            with unfinished.open("r+b") as written:  # Windows writes out no file that is open for reading
                os.fsync(written.fileno())  # a full disk may be noticed only here
            if mode is not None:
                unfinished.chmod(mode)
            _check_existing(path, target, overwrite)  # another process may have made it in the meantime
            unfinished.replace(target)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _unwritable(path, error.strerror or "the system refused") from None


def check_output(path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Raise FileError unless a file can be written there now.

    To find out, a file is created in the folder and removed again.

    Parameters
    ----------
    path : str or path
    overwrite : bool, default False
        Whether a file that exists may be replaced. A file without write permission may not, nor may a ledger.
    """
    refuse_address(path)
    checked_flag("overwrite", overwrite)
    try:
        target = Path(path).resolve()
        _check_existing(path, target, overwrite)
        if not target.parent.is_dir():
            raise _unwritable(path, "its folder does not exist")
        _created_in(target.parent).unlink()
    except FileError:
        raise
    except (OSError, RuntimeError, ValueError) as error:  # among them links in a circle, and names that no file can have
        raise _unwritable(path, getattr(error, "strerror", None) or "no file can have this name") from None


def _check_existing(path: str | os.PathLike[str], target: Path, overwrite: bool) -> None:
    if target.exists():
        if not target.is_file():
            raise _unwritable(path, "it is a folder" if target.is_dir() else "it is not an ordinary file")
        # By its permission bits, which here bind even the superuser.
        status, anyone = target.stat(), stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
        own = stat.S_IWUSR if status.st_uid == getattr(os, "geteuid", int)() else anyone  # 0 on Windows
        if overwrite and not (status.st_mode & own and os.access(target, os.W_OK)):
            raise _unwritable(path, "it has no write permission. Give another name, or grant the permission")
    if belongs_to_ledger(target):
        raise _unwritable(path, "it is a ledger of confide, or a name that SQLite needs beside one. Give another name")
    if not overwrite and os.path.lexists(path):
        raise FileError(wording("file exists", path=os.fspath(path)))


def _created_in(folder: Path, mode: int | None = None) -> Path:
    """A new file with these permissions, or with those of any new file: a model may be shared."""
    made = folder / f".confide-{uuid.uuid4().hex}.part"
    # The system takes the mask of the process off the permissions. To ask for the mask would change it for other threads.
    os.close(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode | stat.S_IWUSR))
    return made


def _unwritable(path: str | os.PathLike[str], reason: str) -> FileError:
    return FileError(f"cannot write {os.fspath(path)}: {reason}.")


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, read piece by piece."""
    try:
        with path.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.") from error


def read_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what `write_document` wrote, or raise FileError."""
    refuse_address(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise FileError(f"{path} is not a model file of confide: it is not text.") from None
    try:
        document = json.loads(text, object_pairs_hook=_with_different_keys)
    except (ValueError, RecursionError):
        raise FileError(f"{path} is not a model file, or was cut short: it is no JSON, or has a part twice.") from None
    if not isinstance(document, dict) or document.get("kind") != _KIND:
        is_rates = isinstance(document, dict) and "model_checksums" in document
        other = wording("evaluation in place of a model", path=path)
        raise FileError(other if is_rates else f"{path} is not a model file of confide.")
    if document.get("format_version") != FORMAT_VERSION:
        raise FileError(wording("file of another format", path=path, format_version=FORMAT_VERSION))
    content = document.get("content")
    if set(document) != {"kind", "format_version", "checksum", "content"}:
        raise FileError(wording("file lacks parts", path=path))
    with suppress(RecursionError):  # parts within parts, more than are written
        if isinstance(content, dict) and document["checksum"] == _checksum(content):
            return content
    raise FileError(f"{path} is damaged: its checksum does not match. Get a fresh copy.")


def _with_different_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, refused if a key is repeated: one value would be lost, and nobody could tell which one was meant."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError
    return members


def _checksum(content: dict[str, Any]) -> str:
    # Keys keep the order of the file, because it has a meaning: the order of a schema's columns is that of the coefficients.
    return "sha256:" + hashlib.sha256(json.dumps(content, separators=(",", ":"), ensure_ascii=True).encode()).hexdigest()
