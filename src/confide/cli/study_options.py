"""The table [model] of a study as the options of `confide fit`: the same names, with underscores, and the same checks."""

from __future__ import annotations

import re
import types
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from confide.cli.option_names import in_words_of_options
from confide.cli.options import ModelOptions
from confide.errors import StudyError
from confide.known_words import suggestion
from confide.studies.study import LEDGER_OF_ITS_OWN, Study

OF_BUDGET = ("neighbours", "n_rows_bounds", "max_rows_per_person")
"""Options that a study states in [budget]."""


def options_of(study: Study) -> ModelOptions:
    """The options that the tables [model] and [budget] describe.

    Raises
    ------
    StudyError
        If a key is unknown or its value is of the wrong kind. The message names the key.
    """
    kinds = get_type_hints(ModelOptions)
    known = tuple(each.name for each in fields(ModelOptions) if each.name not in OF_BUDGET)
    found: dict[str, Any] = {}
    for key, value in study.model.items():
        if key in OF_BUDGET:
            raise StudyError(f"{study.path}: [model] {key}: belongs in [budget]; move it there.")
        if key not in known:
            near = suggestion(key, known)
            raise StudyError(f'{study.path}: [model]: unknown key "{key}"{near}. Known are: {", ".join(known)}.')
        found[key] = _option(study, key, _without_none(kinds[key]), value)
    budget = study.budget
    return ModelOptions(**found, **{name: getattr(budget, name) for name in OF_BUDGET})


def in_words_of_keys(study: Study, error: Exception) -> str:
    """A refusal of the library with the names of keys in place of those of options and parameters."""
    keys = {each.name.replace("_", "-"): f"[model] {each.name}" for each in fields(ModelOptions)}
    keys |= {"model": "[model] kind", "schema": "[data] schema", "ledger": "[ledger] file"}
    keys |= {name.replace("_", "-"): f"[budget] {name}" for name in ("epsilon", "delta", "rho", *OF_BUDGET)}
    words = re.sub(r"--([a-z][a-z-]*)", lambda found: keys.get(found[1], found[0]), in_words_of_options(str(error)))
    return f"{study.path}: {words}"


def words_of_too_little(study: Study, error: Exception, place: str, n_charges: int) -> str:
    """A refusal for want of budget in the ledger at `place`, in words of keys."""
    words = in_words_of_keys(study, error)
    if n_charges > 1:
        return f"{words} The fit and the evaluation are both charged to it: {LEDGER_OF_ITS_OWN}."
    return words.replace("[budget]", "[evaluation]") if place != study.ledger_place else words


def _option(study: Study, key: str, kind: Any, value: Any) -> Any:
    """The value of one key, as the option has it."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if get_origin(kind) is Literal:
        names = get_args(kind)
        if value in names:
            return value
        near = suggestion(value, names)
        raise StudyError(f"{study.path}: [model] {key}: must be one of {', '.join(names)}{near}.")
    if kind is bool and isinstance(value, bool):
        return value
    if kind is int and is_whole:
        return value
    if kind is float and (is_whole or isinstance(value, float)):
        return float(value)
    if kind is Path and isinstance(value, str):
        return study.located(value)
    if kind is str:
        return _text(study, key, value)
    named = {bool: "true or false", int: "a whole number", float: "a number", Path: "the path of a file"}[kind]
    raise StudyError(f"{study.path}: [model] {key}: must be {named}.")


def _text(study: Study, key: str, value: Any) -> str:
    """Text as on the command line: a number, a list of lists of names as a:b,c:d, or a table as a:1,b:2."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value)
    if isinstance(value, dict):
        return ",".join(f"{_name(study, key, name)}:{_name(study, key, item)}" for name, item in value.items())
    if isinstance(value, list) and all(isinstance(each, list) for each in value):
        return ",".join(":".join(_name(study, key, name) for name in each) for each in value)
    raise StudyError(f"{study.path}: [model] {key}: must be text, a number, a list of lists of names, or a table of names.")


def _name(study: Study, key: str, name: Any) -> str:
    text = str(name)
    if ":" in text or "," in text:
        raise StudyError(
            f"{study.path}: [model] {key}: names a column or a label with a colon or a comma; say it in the schema, or "
            f"rename the column."
        )
    return text


def _without_none(kind: Any) -> Any:
    """The one type beside None."""
    if get_origin(kind) in (Union, types.UnionType):
        (kind,) = (each for each in get_args(kind) if each is not type(None))
    return kind
