"""Several analyses of the same rows as one family of tests: corrected p-values, and intervals that all hold together.

Releases from the same rows share their sampling errors, and how much is not known. So only methods that hold under any
dependence are used. Everything is made of released models and of a ledger, and costs no privacy.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from confide.accounting.batches import charges_of
from confide.accounting.ledger import Ledger
from confide.accounting.records import DETAILS
from confide.blocks import Block, Shown, as_json, frame_of, heading, table, text
from confide.errors import ParameterError, as_float, is_list, is_mapping, is_number, wording
from confide.estimators.linear_model import PrivateLinearModel, checksum_of_model
from confide.estimators.loading import load_linear
from confide.files import sha256_of
from confide.inference.intervals import Target
from confide.inference.rates import json_form
from confide.inference.table import (
    METHODS_UNDER_ANY_DEPENDENCE,
    RATES,
    Coefficient,
    CoefficientTable,
    adjusted_p_values,
    checked_method,
    level_of_each,
)
from confide.known_words import listed, suggest_keywords_of
from confide.report.findings import has_tests
from confide.report.ledger_facts import estimator_of, name_of_release

if TYPE_CHECKING:
    import pandas as pd

_NO_TEST = "the family has no test: give fitted models with intervals, their files, or a ledger that names some."
HEADINGS = ("analysis", "coefficient", "unit", "coef", "low", "high", "p", "adjusted p")
_FIELDS = ("analysis", "name", "unit", "estimate", "low", "high", "p_value", "adjusted_p_value")


@suggest_keywords_of
@dataclass(frozen=True, slots=True)
class Family(Shown):
    """Tests of several analyses with corrected p-values, and intervals that all hold together. Public: post-processing.

    Attributes
    ----------
    hypotheses : tuple of Coefficient
        Each with its `analysis` and its `adjusted_p_value`; of a p-value from elsewhere, numbers are NaN and its name is "".
    method : "holm", "bonferroni" or "fdr_by"
    level : the probability with which all intervals together contain their targets
    analyses : what each analysis is, in words, by name
    left_out : sentences on charges of the ledger that brought no test into the family
    """

    hypotheses: tuple[Coefficient, ...]
    method: str
    level: float
    analyses: Mapping[str, str]
    left_out: tuple[str, ...] = ()

    def rejected(self, size: float = 0.05) -> tuple[Coefficient, ...]:
        """The hypotheses whose corrected p-value is at most `size`, which is strictly between 0 and 1."""
        if not 0.0 < as_float(size) < 1.0:
            raise ParameterError("size must be a probability strictly between 0 and 1, such as 0.05.")
        return tuple(one for one in self.hypotheses if (one.adjusted_p_value or 0.0) <= size)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that a reader of the table needs."""
        size = len(self.hypotheses)
        together = "All intervals together contain their targets with probability"
        tests = "p is for the null hypothesis that the coefficient is 0. Adjusted p is corrected for the family by"
        return (
            f"The family has {size} test{'s' if size > 1 else ''}. {together} {self.level:g} by Bonferroni's inequality.",
            f'{tests} "{self.method}": rejecting where it is at most a keeps {RATES[self.method]} at or below a.',
            wording("dependence in a family"),
            *(f"{name}: {what}" for name, what in self.analyses.items()),
            *self.left_out,
        )

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """The cells of the table as text, line by line."""
        cells: list[tuple[str, ...]] = []
        for one in self.hypotheses:
            p_values = ["<0.0001" if p < 1e-4 else f"{p:.4f}" for p in (one.p_value, one.adjusted_p_value or 0.0)]
            cells.append((one.analysis, one.name, one.unit, *one.readable, *p_values))
        return cells

    def blocks(self) -> list[Block]:
        """The table of tests and its notes."""
        title = f"A family of {len(self.hypotheses)} tests, with intervals of {self.level:g} together"
        how: dict[str, Any] = {"words": ("coefficient", "unit"), "wrapped": "coefficient", "optional": ("unit",)}
        return [heading(title), table(HEADINGS, self.cells, **how), text(*self.notes)]

    def to_frame(self) -> pd.DataFrame:
        """A pandas frame with one row for each test."""
        return frame_of([{name: getattr(one, name) for name in _FIELDS} for one in self.hypotheses])

    def to_dict(self) -> dict[str, Any]:
        """A JSON form. What is not known is None."""
        tests = [{name: json_form(getattr(one, name)) for name in _FIELDS} for one in self.hypotheses]
        return as_json(self, "method level analyses left_out") | {"tests": tests}


def family(
    analyses: Mapping[Any, Any] | Iterable[Any] = (),
    *,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    purpose: str | None = None,
    columns: Iterable[str] | None = None,
    method: Literal["holm", "bonferroni", "fdr_by"] = "holm",
    level: float = 0.95,
    target: Target | None = None,
) -> Family:
    """Treat the tests of several analyses as one family: corrected p-values, and intervals that all hold together.

    Analyses of the same rows have sampling errors that depend on each other in a way that no release shows. So only
    methods that hold under any dependence are available. Name the family before its results are seen: with a ledger, by the
    purpose of its charges, and then no analysis that was charged can be left out.

    Parameters
    ----------
    analyses : mapping of names, or iterable
        Fitted models, files of saved models, or p-values of releases from elsewhere (numbers in [0, 1]). Without names,
        files are named by themselves. With a ledger, the key of a p-value is the number of its charge; of models only those
        need to be given whose files the ledger does not name.
    ledger : Ledger, its file or URL, or None
        Every fit that it charged is in the family, and so must be found: in `analyses`, or in the file that a charge names.
        Other releases, such as evaluations and descriptions, are listed as left out.
    purpose : str or None
        With a ledger: only charges whose purpose contains this text belong to the family.
    columns : iterable of str, or None
        Only coefficients of these columns, or with these names, are in the family; None for all. Intercepts never are.
    method : {"holm", "bonferroni", "fdr_by"}, default "holm"
        How p-values are corrected; the names are those of statsmodels. "fdr_by" keeps the expected share of false rejections
        low, the others the probability of any.
    level : float, default 0.95
        Probability with which all intervals together contain their targets, strictly between 0 and 1.
    target : {"regularised", "unregularised"} or None
        As in `summary` of each model.

    Returns
    -------
    Family
        It prints, and has `to_frame()`, `to_dict()`, `to_html()` and `rejected(size)`.

    Raises
    ------
    ParameterError
        If there is no test, an analysis has none, a column is in no analysis, a charge of the family has no file, the method
        needs to know how tests depend on each other, or an argument is out of range.
    FileError, LedgerError
        If a file or the ledger cannot be read.

    Notes
    -----
    Guarantee: post-processing of releases, which costs nothing more.
    Source: S. Holm, Scandinavian Journal of Statistics 6(2), 1979; Y. Benjamini, D. Yekutieli, Annals of Statistics 29(4),
    2001.
    """
    checked_method(method, METHODS_UNDER_ANY_DEPENDENCE)
    level_of_each(level, 1)
    if purpose is not None and ledger is None:
        raise ParameterError("purpose chooses among the charges of a ledger: give the ledger too.")
    wanted: tuple[str, ...] | None = None
    if columns is not None:
        wanted = tuple(columns) if is_list(columns) else ()
        if not wanted or not all(isinstance(name, str) for name in wanted):
            raise ParameterError("columns must be names of columns or coefficients, such as treatment.")
    given = _given(analyses, ledger is not None)
    members, left_out = (given, ()) if ledger is None else _members_of(ledger, given, purpose)
    tables = [None if member.model is None else _tested(member, target, wanted) for member in members]
    count = sum([1 if lines is None else len(lines) for lines in tables])
    if not count:
        raise ParameterError(_NO_TEST)
    known = {name for lines in tables for one in lines or () for name in (one.name, *one.columns)}
    if unknown := [name for name in wanted or () if name not in known]:
        raise ParameterError(f"no analysis has a coefficient of {listed(unknown)}.")
    rows, nan = list[Coefficient](), math.nan
    for member, lines in zip(members, tables, strict=True):
        if member.model is None or lines is None:
            rows.append(Coefficient(nan, nan, nan, nan, nan, nan, member.p_value, "", analysis=member.name))
            continue
        wide = member.model.summary(level_of_each(level, count), target).coefficients
        kept = {line.name for line in lines}
        rows += [replace(one, analysis=member.name) for one in wide if one.name in kept and one.unit]
    adjusted = adjusted_p_values([one.p_value for one in rows], method).tolist()
    corrected = tuple(replace(one, adjusted_p_value=value) for one, value in zip(rows, adjusted, strict=True))
    words = {member.name: member.in_words(target) for member in members}
    return Family(corrected, method, float(level), words, left_out)


@dataclass(frozen=True, slots=True)
class _Member:
    """One analysis of a family: a model, or a p-value from elsewhere.

    Attributes
    ----------
    name : what users call it
    model : fitted, or None
    p_value : in [0, 1]; NaN for a model
    sha256 : checksum of the model's file; "" for a p-value
    charge : number of its charge in the ledger; 0 where none is known
    """

    name: str
    model: Any
    p_value: float = math.nan
    sha256: str = ""
    charge: int = 0

    def in_words(self, target: str | None) -> str:
        """What the analysis is, for the notes below the table."""
        charged = f", charge {self.charge} of the ledger" if self.charge else ""
        if self.model is None:
            return "a p-value from elsewhere"
        table: CoefficientTable = self.model.summary(target=target)
        of_what = f" in favour of {table.outcome}" if table.outcome else f" for {table.predicted}" if table.predicted else ""
        privacy = f"{table.guarantee.budget}" if table.guarantee.void is None else "NOT PRIVATE"
        return f"{table.model}{of_what}, {table.target} target, {privacy}{charged}"


def _given(analyses: Any, has_ledger: bool) -> tuple[_Member, ...]:
    """The analyses that the user gave, each with a name of its own."""
    if not is_mapping(analyses) and not is_list(analyses):
        raise ParameterError("analyses must map names to models, files or p-values, or be a list of models and files.")
    pairs = analyses.items() if isinstance(analyses, Mapping) else ((None, analysis) for analysis in analyses)
    members = [_member(key, value, place, has_ledger) for place, (key, value) in enumerate(pairs, 1)]
    names = [member.name for member in members]
    if len(set(names)) < len(names):
        raise ParameterError("two analyses have the same name: give a mapping with a name for each.")
    return tuple(members)


def _member(key: Any, value: Any, place: int, has_ledger: bool) -> _Member:
    if isinstance(value, (str, os.PathLike)):
        path = Path(value)
        return _Member(path.stem if key is None else str(key), load_linear(path), sha256=sha256_of(path))
    if is_number(value):
        if not 0.0 <= as_float(value) <= 1.0:
            raise ParameterError("a p-value from elsewhere must be a number between 0 and 1.")
        if key is None or (has_ledger and not isinstance(key, int)):
            what = "the number of its charge in the ledger" if has_ledger else "a name"
            raise ParameterError(f"a p-value from elsewhere needs {what}, so that it can be named in the family.")
        return _Member(f"charge {key}" if has_ledger else str(key), None, float(value), charge=key if has_ledger else 0)
    if not isinstance(value, PrivateLinearModel) or not hasattr(value, "guarantee_"):
        raise ParameterError("an analysis must be a fitted linear model of confide, the file of one, or a p-value.")
    return _Member(f"model {place}" if key is None else str(key), value, sha256=checksum_of_model(value))


def _members_of(ledger: Any, given: tuple[_Member, ...], purpose: str | None) -> tuple[tuple[_Member, ...], tuple[str, ...]]:
    """The analyses that a ledger holds, and sentences on its charges that bring no test."""
    opened = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    folder = Path() if isinstance(ledger, Ledger) or "://" in str(ledger) else Path(ledger).parent
    by_checksum = {member.sha256: member for member in given if member.sha256}
    by_charge = {member.charge: member for member in given if member.charge}
    kept, left_out = [], []
    for entry in charges_of(opened):
        number, details = int(entry["number"]), {name: entry[name] for name in DETAILS if entry[name] is not None}
        said = name_of_release(entry)
        if purpose is not None and purpose not in entry["purpose"]:
            left_out.append(f"Charge {number} of the ledger has another purpose and is not in the family.")
        elif number in by_charge:
            kept.append(by_charge[number])
        elif details.get("sha256") in by_checksum:
            kept.append(replace(by_checksum[details["sha256"]], charge=number))
        elif estimator_of(entry) is None:
            left_out.append(f"Charge {number} of the ledger ({said}) is no fit and has no test in the family.")
        else:
            member = _from_file(details, number, folder)
            if has_tests(member.model):
                kept.append(member)
            else:
                left_out.append(f"Charge {number} of the ledger ({said}) bought no intervals and has no test in the family.")
    if unknown := [member.name for member in given if member.name not in {one.name for one in kept}]:
        raise ParameterError(wording("analyses not found", analyses=listed(unknown)))
    return tuple(kept), tuple(left_out)


def _from_file(details: Mapping[str, str], number: int, folder: Path) -> _Member:
    """The model of a charge, from the file that the charge names."""
    named = details.get("model")
    for path in [] if named is None else [Path(named), folder / named]:
        if path.is_file() and sha256_of(path) == details.get("sha256"):
            return _Member(path.stem, load_linear(path), sha256=sha256_of(path), charge=number)
    raise ParameterError(wording("fit of the family without a file", number=number))


def _tested(member: _Member, target: str | None, wanted: tuple[str, ...] | None) -> list[Coefficient]:
    """The coefficients of an analysis that are in the family."""
    if not has_tests(member.model):
        raise ParameterError(wording("analysis without a test", name=member.name))
    lines = [one for one in member.model.summary(target=target).coefficients if one.unit]
    return lines if wanted is None else [one for one in lines if one.name in wanted or set(one.columns) & set(wanted)]
