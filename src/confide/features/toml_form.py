"""The TOML form of a schema: reading the file, and writing the text."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeGuard

from confide.errors import FileError, wording

ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+(?:::[A-Za-z0-9+.-]+)*):/")
"""How an address begins. Libraries take several kinds in a row, as in simplecache::https."""


def read_toml(path: str | Path) -> dict[str, Any]:
    """What a TOML file says.

    Raises
    ------
    FileError
        If the file is missing, cannot be read, or is not TOML. The message quotes nothing from it.
    """
    refuse_address(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")  # editors of Windows begin a file with a mark
    except FileNotFoundError:
        raise FileError(f"{path}: there is no such file; give the path of a file in TOML.") from None
    except UnicodeDecodeError:
        raise FileError(f"{path}: is not text in UTF-8; give the path of a file in TOML.") from None
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror}).") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # Only the place is passed on: if a table was given by mistake, the rest of the message quotes its cells.
        place = re.search(r"line [0-9]+, column [0-9]+|end of document", str(error))
        raise FileError(f"{path}: is not valid TOML ({place[0] if place else 'unknown place'}); correct it.") from None
    except (ValueError, RecursionError):
        raise FileError(f"{path}: is not valid TOML (a number is too long, or nesting is too deep); correct it.") from None


def is_path(value: object) -> TypeGuard[str | os.PathLike[str]]:
    """Whether this is text or a path, so that it may name a file."""
    return isinstance(value, str | os.PathLike)


def shown_address(address: object) -> str:
    """An address without name, password and parameters, which may be secret; only its kind where these have no clear end."""
    kind, rest = re.split(":/{1,2}", f"{address}", maxsplit=1)
    host, below, *_ = *re.split("(?=[/?#])", rest, maxsplit=1), ""
    return f"{kind}://..." if "@" in below else f"{kind}://{host.rpartition('@')[2]}{re.split('[?#]', below)[0]}"


def refuse_address(path: object) -> None:
    """Refuse what is no path, and the address of a file elsewhere, such as s3://bucket/people.parquet.

    Parameters
    ----------
    path : text or a path, which may have lost one slash

    Raises
    ------
    FileError
        If it begins as addresses do, is neither text nor a path, or no file can have this name.
    """
    is_name = False
    with suppress(UnicodeEncodeError):
        is_name = is_path(path) and b"\0" not in os.fsencode(path)
    if not is_name:
        raise FileError("a file is named by its path: give text that the name of a file can be, or a pathlib.Path.")
    if (match := ADDRESS.match(str(path))) is None:
        return
    if match[1].lower() == "file":
        raise FileError(f"{shown_address(path)} is an address; give the path of the file, without {match[1]}://.")
    raise FileError(wording("address in place of a path", address=shown_address(path), kind=match[1]))


def toml_text(described: Mapping[str, Any]) -> str:
    """The text of a TOML file with the table [columns] last.

    Parameters
    ----------
    described : JSON-able; under "columns" a mapping from the name of a column to its description
    """
    above = {key: value for key, value in described.items() if key != "columns"}
    lines = [f"{key} = {toml_value(value)}" for key, value in above.items()] + [""] * bool(above)
    lines += ["[columns]", *(f"{toml_key(name)} = {toml_value(column)}" for name, column in described["columns"].items())]
    return "\n".join(lines) + "\n"


def toml_value(value: object) -> str:
    """A JSON-able value as TOML: text, a number, a boolean, a list or an inline table."""
    match value:
        case Mapping():
            return "{ " + ", ".join(f"{toml_key(key)} = {toml_value(item)}" for key, item in value.items()) + " }"
        case list():
            return "[" + ", ".join(map(toml_value, value)) + "]"
        case str():
            # JSON escapes every character that TOML wants escaped, except character 127.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)


def toml_key(key: str) -> str:
    """A key of TOML, in quotes where its characters need them."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_value(key)
