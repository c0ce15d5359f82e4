"""How far a study has come, in a file beside it. It holds public facts, checksums and released numbers, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from confide.errors import FileError, StudyError
from confide.files import sha256_of, write_text

_KIND = "confide-study-state"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Begun:
    """A step that charges, from the moment before its charge.

    Attributes
    ----------
    facts : what decides its release
    fingerprint : what stands for the facts in the ledger
    ledger : identity of the ledger
    earlier : how many charges with this fingerprint the ledger held before
    result : released numbers, JSON-able; None until they are there
    sha256 : checksum of the file that the step writes, noted just before the file takes its place; None before
    """

    facts: Mapping[str, Any]
    fingerprint: str
    ledger: str
    earlier: int = 0
    result: Mapping[str, Any] | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class State:
    """What a study has done.

    Attributes
    ----------
    fit, evaluation : the steps that charge; None before they begin
    report : checksum of the report and of what it was made from; None if there is none
    checksums : SHA-256 of the study file and of its schema when the fit began
    parts : names of the files of the table when the fit began
    """

    fit: Begun | None = None
    evaluation: Begun | None = None
    report: Mapping[str, str] | None = None
    checksums: Mapping[str, str] | None = None
    parts: Sequence[str] | None = None

    @classmethod
    def of(cls, path: Path) -> State:
        """The state in a file; an empty one if there is no file.

        Raises
        ------
        StudyError
            If the file was written by another version, or was changed by hand.
        """
        if not path.exists():
            return cls()
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise FileError(f"cannot read {path}: {error.strerror}.") from None
        except UnicodeDecodeError:
            text = ""
        try:
            found = json.loads(text)
            if (found.pop("kind"), found.pop("format_version")) != (_KIND, _VERSION):
                raise ValueError
            if set(found) != {each.name for each in fields(cls)}:
                raise ValueError
            parts, texts = found["parts"], [found[name] for name in ("report", "checksums") if found[name] is not None]
            names = [*(parts or ()), *(each for text in texts for pair in text.items() for each in pair)]
            if not isinstance(parts, list | None) or not all(isinstance(name, str) for name in names):
                raise ValueError
            return cls(_begun(found["fit"]), _begun(found["evaluation"]), found["report"], found["checksums"], parts)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            pass
        raise StudyError(
            f"{path} is not a state that this version of confide understands: another version wrote it, or it was changed "
            f"by hand. Put back the newest copy. Without it, see in `confide ledger show` what was charged."
        )

    def write(self, path: Path) -> None:
        """Write the state in one step, in place of the earlier one."""
        document = {"kind": _KIND, "format_version": _VERSION, **asdict(self)}
        write_text(path, json.dumps(document, indent=2, allow_nan=False) + "\n", overwrite=True)

    def with_result(self, step: str, *, result: Mapping[str, Any] | None = None, sha256: str | None = None) -> State:
        """The state with the result of a step, "fit" or "evaluation", that had begun."""
        begun = replace(getattr(self, step), result=result, sha256=sha256)
        return replace(self, fit=begun) if step == "fit" else replace(self, evaluation=begun)


def checksum_of(path: Path) -> str | None:
    """SHA-256 of a file; None if there is no such file."""
    try:
        return sha256_of(path)
    except FileError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise


def _begun(value: Any) -> Begun | None:
    if value is None:
        return None
    if set(value) != {each.name for each in fields(Begun)}:
        raise ValueError
    begun = Begun(**value)
    if not isinstance(begun.facts, dict) or not isinstance(begun.result, dict | None) or type(begun.earlier) is not int:
        raise ValueError
    if not all(isinstance(text, str) for text in (begun.fingerprint, begun.ledger, begun.sha256 or "")):
        raise ValueError
    return begun
