"""Replay: two runs with the same draws, on a data set and on a neighbour, compared step by step.

One pair and two runs decide, without any chance: a distance that exceeds what the noise was made for is a bug. Source:
dp-recorder (arXiv 2602.17454).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

from confide.audit.releases import contents, unfitted
from confide.audit.tape import ControlFlowDiffers, Step, Tape, running
from confide.errors import ParameterError


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What a replay found.

    Attributes
    ----------
    steps : tuple of Step
        Every comparison: what was compared, the distance measured, and the largest distance for which the noise was made.
    difference : str or None
        How the second run went another way than the first, or None if it did not.
    same_release : bool
        Whether both runs released the same to the last bit, as they must where all noisy numbers were the same.
    """

    steps: tuple[Step, ...]
    difference: str | None
    same_release: bool

    @property
    def holds(self) -> bool:
        """Whether every distance is within what was declared, and both runs went the same way to the same release."""
        return self.difference is None and self.same_release and bool(self.steps) and all(step.holds for step in self.steps)

    @property
    def worst(self) -> float:
        """The largest of the distances over what was declared: above 1 is a bug, and far below 1 is another worst case."""
        return max((step.measured / step.declared for step in self.steps), default=0.0)

    def check(self) -> None:
        """Raise AssertionError with the whole table unless the replay holds: for tests.

        Raises
        ------
        AssertionError
            If it does not hold.
        """
        if not self.holds:
            raise AssertionError(str(self))

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return {
            "holds": self.holds,
            "difference": self.difference,
            "same_release": self.same_release,
            "worst": self.worst,
            "steps": [
                {"name": step.name, "measured": step.measured, "declared": step.declared, "holds": step.holds}
                for step in self.steps
            ],
        }

    def __str__(self) -> str:
        lines = [f"Replay on a neighbour: {'holds' if self.holds else 'FAILS'}."]
        if self.difference is not None:
            lines.append(f"The two runs go different ways: {self.difference}")
        elif not self.same_release:
            lines.append("The two runs release different things although all noisy numbers were the same.")
        if not self.steps:
            lines.append("No noisy step was seen. Noise of other libraries is seen where confide.audit.noisy adds it.")
        names = list(dict.fromkeys(step.name for step in self.steps))
        for name in names:
            same = [step for step in self.steps if step.name == name]
            worst = max(same, key=lambda step: math.inf if math.isnan(step.measured) else step.measured / step.declared)
            mark = "" if all(step.holds for step in same) else "   TOO FAR"
            times = "" if len(same) == 1 else f" (worst of {len(same)})"
            lines.append(f"  {name}{times}: measured {worst.measured:.6g}, declared {worst.declared:.6g}{mark}")
        return "\n".join(lines)


def replay(release: Any, *data: Any, neighbour: Any, rows_changed: int = 1) -> ReplayResult:
    """Run a release on a data set and, with the same draws, on a neighbour, and compare every step at which noise is added.

    Parameters
    ----------
    release : estimator or callable
        An estimator of this package, which is copied; or a callable of the data that uses this package, or that adds its
        noise with `confide.audit.noisy`.
    *data
        The data set: `X, y` for an estimator.
    neighbour : tuple or object
        The neighbouring data set; a tuple is given as several arguments.
    rows_changed : int, default 1
        In how many rows the two differ: the declared distances are those of one row. For the rows of a person this is
        `max_rows_per_person`.

    Returns
    -------
    ReplayResult

    Raises
    ------
    ParameterError
        If `rows_changed` is below 1.

    Notes
    -----
    Guarantee: none. Two runs read the rows and charge no ledger, so nothing of the result may be shown to others unless the
    rows are made up. A replay tests sensitivities, which way is taken, and what is done after the noise. It does not test
    the law of the noise.

    Source: dp-recorder (arXiv 2602.17454).

    Examples
    --------
    >>> import confide
    >>> X, y = [[1.0], [-1.0], [0.5]], [1, 0, 1]
    >>> neighbour = [[1.0], [-1.0], [0.5]], [1, 0, 0]
    >>> confide.audit.replay(confide.LogisticRegression(1.0), X, y, neighbour=neighbour).holds
    True
    """
    if rows_changed < 1:
        raise ParameterError("rows_changed must be at least 1.")
    given = neighbour if isinstance(neighbour, tuple) else (neighbour,)
    result: ReplayResult = replayed(release, data, given, rows_changed)[0]
    return result


def replayed(release: Any, data: tuple[Any, ...], neighbour: tuple[Any, ...], rows_changed: int) -> tuple[Any, Any, Any]:
    """The result of a replay, and what either run gave; None for a run that went another way."""
    tape, found, difference = Tape(rows_changed), [], None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for given in (data, neighbour):
            try:
                with running(tape):
                    found.append(unfitted(release).fit(*given) if hasattr(release, "fit") else release(*given))
            except ControlFlowDiffers as error:
                difference = str(error)
                found.append(None)
            if not tape.is_replayed:
                tape.is_replayed, tape.depth = True, 0
    if difference is None and tape.position < len(tape.entries):
        difference = f"the run on the neighbour has {len(tape.entries) - tape.position} steps fewer than the first run."
    is_same = difference is None and contents(found[0]) == contents(found[1])
    return ReplayResult(tuple(tape.steps), difference, is_same), found[0], found[1]
