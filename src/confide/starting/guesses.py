"""What the name of a column suggests to anybody, for example 0 to 120 for an age. A person confirms each guess."""

from __future__ import annotations

import re

from confide.curation.table_names import DeclaredType

_BOUNDS = {
    "age": "0 120",
    "hour": "0 24",
    "hours per week": "0 100",
    "hours": "0 100",
    "minute": "0 60",
    "day": "1 31",
    "weekday": "1 7",
    "month": "1 12",
    "year": "1900 2100",
    "percent": "0 100",
    "pct": "0 100",
    "percentage": "0 100",
    "latitude": "-90 90",
    "longitude": "-180 180",
    "bmi": "10 70",
    "height": "50 250",
    "weight": "0 300",
    "temperature": "-50 60",
}
"""Bounds for columns whose names have these words, as they are typed."""
_IDENTIFIERS = {"id", "uuid", "guid", "key", "identifier", "ssn", "nhs", "index"}
_PERSONS = {"person", "patient", "subject", "customer", "client", "user", "member", "household", "nr", "no", "number"}
_TEXTS = {"name", "address", "email", "phone", "comment", "comments", "notes", "description", "text"}
_CATEGORIES = {
    "sex", "gender", "race", "ethnicity", "country", "region", "state", "education", "occupation", "job", "marital",
    "marriage", "status", "type", "category", "group", "code", "class", "level", "workclass", "relationship",
}  # fmt: skip
_AMOUNTS = {
    "amount",
    "amt",
    "balance",
    "bal",
    "income",
    "salary",
    "wage",
    "price",
    "cost",
    "charge",
    "charges",
    "fee",
    "sum",
}
"""Words of columns that hold money: numbers with a long right tail."""
_FLAGS = {"is", "has", "was", "had"}
_STATES = {"verified", "confirmed", "valid", "status", "flag", "known", "given", "provided", "available", "missing", "type"}
"""Words that say something of a name, an address or a telephone, so that the column holds none."""
_TARGETS = {"target", "label", "outcome", "y", "default", "defaulted", "churn", "churned", "response", "survived"}


def words_of(name: str) -> list[str]:
    """The words of a name in lower case: BILL_AMT1, billAmt1 and "Bill amt. 1" have the words bill, amt and 1."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=[0-9])", " ", name)
    return re.findall(r"[^\W_]+", parted.lower())


def guessed_answer(name: str, declared: DeclaredType | None = None) -> str:
    """The answer that the name and the declared type of a column suggest, as it would be typed; "" if there is none."""
    words = words_of(name)
    if declared == "boolean":
        return "false, true"
    if declared == "other" or (_TEXTS & set(words) and not _says_whether(words)):
        return "skip"
    if _IDENTIFIERS & set(words) or set(words) <= _PERSONS:
        return "skip"
    if declared == "text":
        return ""
    if " ".join(words) in _BOUNDS:
        return _BOUNDS[" ".join(words)]
    return next((_BOUNDS[word] for word in words if word in _BOUNDS), "")


def guessed_kind(name: str, declared: DeclaredType | None = None) -> str | None:
    """Whether a column probably holds a "number" or a "category"; None if nothing says so."""
    words = set(words_of(name))
    if declared in ("text", "boolean") or words & _CATEGORIES or _says_whether(words_of(name)):
        return "category"
    if declared == "number" or words & _AMOUNTS or guessed_answer(name, declared)[:1] in {"-", *"0123456789"}:
        return "number"
    return None


def _says_whether(words: list[str]) -> bool:
    """Whether a column probably says of each row that something holds, such as "Phone verified" or "has_address"."""
    return bool(_STATES & set(words)) or (words[:1] != [] and words[0] in _FLAGS)


def has_long_tail(name: str) -> bool:
    """Whether a column probably holds money."""
    return bool(_AMOUNTS & set(words_of(name)))


def series_of(name: str) -> tuple[str, ...]:
    """The words of a name without its numbers: columns of one series, such as BILL_AMT1 and BILL_AMT2, share them."""
    return tuple(word for word in words_of(name) if not word.isdigit())


def guessed_target(names: tuple[str, ...]) -> str | None:
    """The column that a model probably predicts: one whose name says so, or else the last one that is no identifier."""
    named = [name for name in names if _TARGETS & set(words_of(name))]
    return (named or [name for name in names if guessed_answer(name) != "skip"] or list(names))[-1]
