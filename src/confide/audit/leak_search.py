"""Leaks that are not noise: what a fitted object shows besides its release, searched for values of rows and for differences.

For estimators of this package both fits get the same draws and the same noisy numbers (replay), so whatever still differs
between neighbours is a leak. For others, what stays the same in every fit of one data set, and differs between neighbours,
has no noise and is a leak.
"""

from __future__ import annotations

import io
import logging
import re
import struct
import tempfile
import warnings
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from confide.array_types import as_array
from confide.audit.releases import arguments_of, contents, is_own, leaves, plain, unfitted
from confide.audit.replays import replayed
from confide.errors import ParameterError

CANARIES = (0.7312946518, 0.4186273095)
"""Parts of the range of a column at which the planted cells lie. Their digits occur nowhere by chance."""
_DIGITS = 7
_FITS = 3


@dataclass(frozen=True, slots=True)
class Leak:
    """Something that depends on a row and has no noise.

    Attributes
    ----------
    where : str
        The attribute, file or message.
    what : str
        What is wrong with it, in a sentence.
    """

    where: str
    what: str


@dataclass(frozen=True, slots=True)
class LeaksResult:
    """What a search for leaks found.

    Attributes
    ----------
    leaks : tuple of Leak
    searched : tuple of str
        The places that were searched.
    """

    leaks: tuple[Leak, ...]
    searched: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing was found."""
        return not self.leaks

    def check(self) -> None:
        """Raise AssertionError that names every leak: for tests.

        Raises
        ------
        AssertionError
            If there is a leak.
        """
        if self.leaks:
            raise AssertionError(str(self))

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return {"holds": self.holds, "leaks": [asdict(leak) for leak in self.leaks], "searched": list(self.searched)}

    def __str__(self) -> str:
        places = f"Searched: {', '.join(self.searched)}."
        if self.holds:
            return f"No leak was found. {places}"
        return "\n".join([f"{len(self.leaks)} leaks:", *(f"  {leak.where}: {leak.what}" for leak in self.leaks), places])


def leaks(estimator: Any, X: Any, y: Any = None, *, neighbour: tuple[Any, ...] | None = None) -> LeaksResult:
    """Search what a fitted estimator shows for values of rows, and for differences between neighbours that are not noise.

    Parameters
    ----------
    estimator : estimator
        With `fit(X, y)`. It is copied and stays as it is.
    X, y : as for `fit`
        Made-up rows, or rows that the caller may read. Nothing of them is in the result. The cells of numbers in the first
        row are replaced by canaries: numbers inside of their columns' ranges whose digits occur nowhere by chance.
    neighbour : tuple or None
        The arguments of `fit` for the neighbour. None takes the same rows with other canaries.

    Returns
    -------
    LeaksResult
        Attributes, `repr`, pickle, files, reports, logs, warnings, what was printed, and errors are searched.

    Raises
    ------
    ParameterError
        If X has no column of numbers, or the fit fails.

    Notes
    -----
    Guarantee: none. The rows are read several times, and no ledger is charged.

    Source: Bichsel et al. (2021), "DP-Sniper", for the search by classes of outcomes; Okay and others plant canaries alike.
    """
    targets = () if y is None else (y,)
    first, values = _planted(X, CANARIES[0])
    if neighbour is None:
        second, more = _planted(X, CANARIES[1])
        neighbour, values = (second, *targets), [*values, *more]
    search = _by_replay if is_own(estimator) else _by_repetition
    texts, differences = search(estimator, (first, *targets), arguments_of(neighbour))
    needles, refusal = _needles(values), _refusal(estimator, first, targets)
    places = [where for where, text in texts.items() if any(needle in text for needle in needles)]
    hidden = [Leak(where, "it holds a value of a row") for where in places]
    if any(needle in refusal for needle in needles):
        hidden.append(Leak("error", "its message holds a value of a row"))
    return LeaksResult((*hidden, *differences), (*sorted({where.split(".")[0] for where in texts}), "error"))


def _planted(X: Any, canary: float) -> tuple[Any, list[float]]:
    """The rows with canaries in the first one, and the canaries."""
    if hasattr(X, "columns") and len(X):
        made, values = X.copy(), []
        for name in X.columns:
            column = X[name]
            if column.dtype.kind == "f":
                low, high = float(column.min()), float(column.max())
                values.append(low + (high - low) * canary)
                made.loc[made.index[0], name] = values[-1]
    else:
        made = as_array(X, np.float64).copy()
        if made.ndim != 2 or not made.size:
            raise ParameterError("X must be rows: an array (n, d) of numbers, or a frame, with at least one row.")
        low, high = made.min(axis=0), made.max(axis=0)
        values = (low + (high - low) * canary).tolist()
        made[0] = values
    if not values:
        raise ParameterError("X has no column of fractions in which a canary can be planted.")
    return made, values


def _needles(values: Iterable[float]) -> list[bytes]:
    """What a value looks like in text and in memory."""
    needles = []
    for value in values:
        digits = f"{abs(value):.15g}".replace(".", "").lstrip("0")[:_DIGITS]
        if len(digits) == _DIGITS and len(set(digits)) > 2:
            needles += [f"{abs(value):.15g}"[: _DIGITS + 1].encode(), struct.pack("<d", value), struct.pack("<f", value)]
    return needles


def _by_replay(estimator: Any, first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[dict[str, bytes], list[Leak]]:
    said: list[dict[str, bytes]] = []

    def fit(*data: Any) -> Any:
        made, spoken = _listened(lambda: unfitted(estimator).fit(*data))
        said.append(spoken)
        return made

    result, *models = replayed(fit, first, second, 1)
    if result.difference is not None:
        return {}, [Leak("fit", f"the way that is taken depends on a row: {result.difference}")]
    sides = [shown(model) | spoken for model, spoken in zip(models, said, strict=True)]
    one, other = sides
    why = "it differs between neighbours, although all noisy numbers are the same"
    return one, [Leak(where, why) for where in dict.fromkeys([*one, *other]) if one.get(where) != other.get(where)]


def _by_repetition(estimator: Any, first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[dict[str, bytes], list[Leak]]:
    sides: list[list[dict[str, bytes]]] = [[], []]
    for fits, data in zip(sides, (first, second), strict=True):
        for _ in range(_FITS):
            model, spoken = _listened(partial(unfitted(estimator).fit, *data))
            fits.append(shown(model) | spoken)
    leaks = []
    for where in dict.fromkeys(where for fits in sides for fit in fits for where in fit):
        one, other = ({fit.get(where) for fit in fits} for fits in sides)
        is_searched = where.split(".")[0] not in ("pickle", "repr", "html")
        if is_searched and len(one) == len(other) == 1 and one != other:
            leaks.append(Leak(where, "it is the same in every fit and differs between neighbours, so it has no noise"))
    return sides[0][0], leaks


def _listened(fit: Callable[[], Any]) -> tuple[Any, dict[str, bytes]]:
    """The fitted estimator, and what was logged, warned of and printed meanwhile."""
    records = io.StringIO()
    handler, root = logging.StreamHandler(records), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    printed = io.StringIO()
    try:
        with warnings.catch_warnings(record=True) as warned, redirect_stdout(printed), redirect_stderr(printed):
            warnings.simplefilter("always")
            made = fit()
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    texts = {"logs": records.getvalue(), "warnings": "\n".join(str(warning.message) for warning in warned)}
    return made, {where: text.encode() for where, text in (texts | {"printed": printed.getvalue()}).items()}


def shown(fitted: Any) -> dict[str, bytes]:
    """Everything that a fitted estimator shows, by its place."""
    found = ((path, repr(number if text is None else text)) for path, text, number in leaves(plain(vars(fitted))))
    texts = {f"attributes.{path}".rstrip("."): text.encode() for path, text in found}
    texts["repr"] = repr(fitted).encode()
    if hasattr(fitted, "_repr_html_"):
        # scikit-learn numbers its pictures of estimators through.
        texts["html"] = re.sub(r"(sk-[a-z-]*)-\d+", r"\1", str(fitted._repr_html_())).encode()
    if hasattr(fitted, "guarantee_"):
        texts["statement"] = fitted.guarantee_.statement().encode()
    texts["pickle"] = contents(fitted)
    with tempfile.TemporaryDirectory() as folder:
        for writes in ("model.json", "report.json", "report.html", "report.md"):
            path, write = Path(folder) / writes, getattr(fitted, "save" if writes == "model.json" else "report", None)
            if write is None:
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    write(path)
                texts[f"files.{writes}"] = path.read_bytes() if path.exists() else b""
            except Exception as error:  # noqa: BLE001 - what cannot be written is refused, with a message
                texts[f"files.{writes}"] = str(error).encode()
    return texts


def _refusal(estimator: Any, X: Any, targets: tuple[Any, ...]) -> bytes:
    """The error for rows of which one holds a number that is not finite."""
    if hasattr(X, "iloc"):
        return b""
    bad = np.array(X)
    bad[0, -1] = np.inf
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            unfitted(estimator).fit(bad, *targets)
    except Exception as error:  # noqa: BLE001 - whatever it is, its text is searched
        return f"{error}".encode()
    return b""
