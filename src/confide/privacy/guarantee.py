"""What is promised: budgets, neighbours and the sentence for people. Frozen values that hold public facts alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from numbers import Real
from typing import Any

from confide.errors import ParameterError

STATEMENT_VERSION = 1


class Neighbours(StrEnum):
    """Which two data sets the guarantee calls neighbours."""

    REPLACE_ONE = "replace-one"
    """Same number of rows, one row changed in any way. The number of rows is public."""
    ADD_OR_REMOVE_ONE = "add-or-remove-one"
    """One row more or less. The number of rows is private; only declared bounds on it are public."""

    @classmethod
    def parse(cls, value: object) -> Neighbours:
        """The member named by `value`, or ParameterError."""
        try:
            return cls(str(value))
        except ValueError:
            raise ParameterError(f"neighbours must be one of {', '.join(repr(str(n)) for n in cls)}.") from None


@dataclass(frozen=True, slots=True, order=True)
class PureDP:
    """Pure differential privacy: no outcome becomes more than exp(epsilon) times as likely through one person's row.

    Parameters
    ----------
    epsilon : float
        From 1e-9 to 1e9; ``math.inf`` means no privacy at all.
    """

    epsilon: float

    def __post_init__(self) -> None:
        if not isinstance(self.epsilon, Real) or isinstance(self.epsilon, bool) or not self.epsilon > 0.0:
            raise ParameterError("epsilon must be a positive number (float('inf') for a model without privacy).")
        if not 1e-9 <= self.epsilon <= 1e9 and self.epsilon != math.inf:
            raise ParameterError("epsilon must lie between 1e-9 and 1e9 (float('inf') for a model without privacy).")
        object.__setattr__(self, "epsilon", float(self.epsilon))

    @classmethod
    def of_sum(cls, epsilon: float) -> PureDP:
        """What several charges cost together, which may be nothing (epsilon = 0), unlike the budget of a release."""
        if not epsilon >= 0.0:
            raise ParameterError("a sum of charges is not negative.")
        total = cls(1.0)
        object.__setattr__(total, "epsilon", epsilon)
        return total

    @property
    def is_private(self) -> bool:
        """False for an infinite epsilon."""
        return math.isfinite(self.epsilon)

    def __str__(self) -> str:
        if not self.is_private:
            return "no privacy (epsilon is infinite)"
        return f"pure differential privacy with epsilon = {self.epsilon:.12g}"

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return {"kind": "pure", "epsilon": self.epsilon if self.is_private else "inf"}

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> PureDP:
        """Read the form written by `to_dict`."""
        if value.get("kind") != "pure":
            raise ParameterError("a budget of an unknown kind.")
        return cls(math.inf if value["epsilon"] == "inf" else value["epsilon"])


def as_budget(value: object) -> PureDP:
    """A budget; a bare number means pure differential privacy with that epsilon."""
    if isinstance(value, PureDP):
        return PureDP(value.epsilon)  # refuses the empty sum of a ledger
    if isinstance(value, Real) and not isinstance(value, bool):
        return PureDP(value)  # type: ignore[arg-type]  # any real number; PureDP checks it
    raise ParameterError("budget must be a positive number (epsilon) or a PureDP.")


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What one release promises, in words and in numbers. Public: it may be shown to anybody.

    Attributes
    ----------
    budget : PureDP
    neighbours : Neighbours
    mechanism : str
        How noise was added: "objective", "output" or "none".
    assumptions : tuple of str
        Sentences that must be true for the guarantee to hold.
    void : str or None
        Why there is no guarantee; None if there is one.
    """

    budget: PureDP
    neighbours: Neighbours
    mechanism: str
    assumptions: tuple[str, ...] = field(default=())
    void: str | None = None

    def statement(self) -> str:
        """A paragraph for people."""
        assumptions = "\n".join(f"  - {sentence}" for sentence in self.assumptions)
        if self.void is not None:
            return f"NOT PRIVATE. {self.void}\nFacts about this fit:\n{assumptions}"
        epsilon = self.budget.epsilon
        replaced = self.neighbours is Neighbours.REPLACE_ONE
        subject = "was replaced by any other row" if replaced else "was left out, or a row was added"
        # Two values of a row are two steps apart where neighbours differ by one row more or less.
        question = "to two values of that row" if replaced else "to that row being there or not"
        return (
            f"This model was released under {self.budget} ({self.neighbours}). If the row of one person {subject}, no set "
            f"of possible released models would become more or less probable by a factor above exp({epsilon:.12g}) = "
            f"{_factor(epsilon)}. So someone who knew every other row and the code, had unlimited computing time, and "
            f"gave even odds {question}, would come to odds of at most {_factor(epsilon)} to 1 after seeing the model.\n"
            f"It protects what the data say of one row. It does not hide facts about the whole population, nor facts that "
            f"can be inferred about a person from such facts.\n"
            f"It holds if:\n{assumptions}"
        )

    def __str__(self) -> str:
        return self.statement()

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return {
            "version": STATEMENT_VERSION,
            "budget": self.budget.to_dict(),
            "neighbours": str(self.neighbours),
            "mechanism": self.mechanism,
            "assumptions": list(self.assumptions),
            "void": self.void,
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Guarantee:
        """Read the form written by `to_dict`."""
        if value.get("version") != STATEMENT_VERSION:
            raise ParameterError("a guarantee written by a version that this one does not understand.")
        return cls(
            budget=PureDP.from_dict(value["budget"]),
            neighbours=Neighbours.parse(value["neighbours"]),
            mechanism=str(value["mechanism"]),
            assumptions=tuple(value["assumptions"]),
            void=value["void"],
        )


def _factor(epsilon: float) -> str:
    """exp(epsilon) for reading, rounded upwards in its third significant digit."""
    if epsilon > 50.0:
        return f"10^{math.ceil(epsilon / math.log(10.0))}"
    factor = math.exp(epsilon)
    unit = 10.0 ** (math.floor(math.log10(factor)) - 2)
    return f"{math.ceil(factor / unit * (1 - 1e-12)) * unit:.10g}"
