"""Files that can be checked: JSON with a kind, a format version and a checksum. No pickle, no code.

The checksum finds damage, not forgery: whoever can write the file can write the checksum.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

from confide.errors import FileError

_KIND = "confide-model"
FORMAT_VERSION = 1


def write_document(path: str | os.PathLike[str], content: dict[str, Any]) -> None:
    """Write `content` (JSON values, finite numbers) as one document, replacing the file in one step."""
    document = {"kind": _KIND, "format_version": FORMAT_VERSION, "checksum": _checksum(content), "content": content}
    replace_file(path, json.dumps(document, indent=2, allow_nan=False) + "\n")


def replace_file(path: str | os.PathLike[str], text: str) -> None:
    """Write `text`, replacing the file in one step: whoever reads it meanwhile sees the old one or the new one."""
    # A link keeps pointing at the file; a device or a pipe must not be replaced by a file.
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        raise FileError(f"cannot write {target}: it is not an ordinary file.")
    try:
        # mkstemp makes files that only their owner may read. A model is meant to be shared like any new file, and an old
        # one keeps its permissions.
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask()
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
            Path(temporary).chmod(mode)
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise FileError(f"cannot write {target}: {error.strerror}.") from None


def read_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what `write_document` wrote, or raise FileError."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise FileError(f"{path} is not a model file of confide: it is not text.") from None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise FileError(f"{path} is not a model file of confide, or it was cut short: it is not JSON.") from None
    if not isinstance(document, dict) or document.get("kind") != _KIND:
        raise FileError(f"{path} is not a model file of confide.")
    if document.get("format_version") != FORMAT_VERSION:
        raise FileError(
            f"{path} has a format version that this version of confide does not understand (it reads {FORMAT_VERSION}). "
            f"Use the version that wrote it, or a newer one."
        )
    content = document.get("content")
    if set(document) != {"kind", "format_version", "checksum", "content"}:
        raise FileError(
            f"{path} lacks parts, or holds some that this version of confide does not understand. Use the version that "
            f"wrote it, or a newer one."
        )
    if not isinstance(content, dict) or document.get("checksum") != _checksum(content):
        raise FileError(f"{path} is damaged: its checksum does not match. Get a fresh copy.")
    return content


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _checksum(content: dict[str, Any]) -> str:
    # In the order of the file, which means something: the columns of a schema are the order of the coefficients.
    canonical = json.dumps(content, separators=(",", ":"), ensure_ascii=True)
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()
