"""The guarantee of one release: what it promises, to whom, and under which assumptions. It holds public facts only."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any

from confide.blocks import Block, Shown, as_json, text
from confide.budget_warnings import EXAMPLE_DELTA
from confide.errors import ParameterError, is_mapping, wording
from confide.privacy.budgets import Budget, Neighbours, budget_from_dict

STATEMENT_VERSION = 3


@dataclass(frozen=True, slots=True)
class NamedLedger:
    """The ledger that a release was charged to, as its guarantee names it.

    Parameters
    ----------
    identity : str
        What distinguishes the ledger from every other one.
    limit : PureDP, ApproxDP or ZCDP
    max_rows_per_person : int
        It counts for persons with at most so many rows.
    """

    identity: str
    limit: Budget
    max_rows_per_person: int


@dataclass(frozen=True, slots=True)
class Search:
    """How a private search found the model that was released.

    Parameters
    ----------
    method : str
    candidates : int
        Number of points of the public grid.
    trained_on : int
        Number of rows that the chosen model was trained on.
    mean_tries : float or None
        Mean of the random number of tries; None if each candidate was trained once.
    budget_of_try : PureDP, ApproxDP or ZCDP
        At which the chosen model was trained.
    """

    method: str
    candidates: int
    trained_on: int
    mean_tries: float | None
    budget_of_try: Budget


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The public facts of a fit besides its plan. From both, anybody can write the sentences of the guarantee again.

    Parameters
    ----------
    n_rows : (int, int)
        Public bounds on the number of rows; equal ones where it is public.
    labels_declared : bool
        False if the labels were taken from the rows.
    has_weights : bool
        Whether rows came with weights of their own.
    place : str
        Where the rows lay, as a name in `confide.data.arrays.PLACES`.
    seeded : bool
        Whether the noise came from a fixed seed.
    ledger : NamedLedger or None
        What was charged.
    prior_in_ledger : bool
        Whether the model that is the prior was charged to the same ledger.
    search : Search or None
        How the model was chosen; None for a single fit.
    learned_steps : tuple of str
        The classes of the steps before the fit that learned from the rows, as far as that was noticed.
    attempts : int
        Number of this attempt under its charge; above 1 if earlier ones were interrupted.
    opendp : str or None
        The version of OpenDP that confirmed the noise before the charge; None if OpenDP was not installed.
    """

    n_rows: tuple[int, int]
    labels_declared: bool = True
    has_weights: bool = False
    place: str = "here"
    seeded: bool = False
    ledger: NamedLedger | None = None
    prior_in_ledger: bool = False
    search: Search | None = None
    learned_steps: tuple[str, ...] = ()
    attempts: int = 1
    opendp: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return as_json(self, " ".join(map(attrgetter("name"), fields(self))))

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Circumstances:
        """Read the form written by `to_dict`; values of other kinds are refused where files are read."""
        read: dict[str, Any] = dict(value) | {"n_rows": tuple(map(int, value["n_rows"]))}
        read["learned_steps"] = tuple(map(str, value["learned_steps"]))
        for name, kind, budget in (("ledger", NamedLedger, "limit"), ("search", Search, "budget_of_try")):
            if read[name] is not None:
                read[name] = kind(**(read[name] | {budget: budget_from_dict(read[name][budget])}))
        guarantee = cls(**read)
        if not guarantee.is_possible:
            raise ParameterError("the file says of its fit what no fit has, such as less than one row.")
        return guarantee

    @property
    def is_possible(self) -> bool:
        """Whether a fit can have these numbers, and names that cannot be taken for a sentence."""
        (low, high), search, ledger = self.n_rows, self.search, self.ledger
        names = (*self.learned_steps, *(() if ledger is None else (f"_{ledger.identity}",)))
        tries = None if search is None else search.mean_tries
        return (
            1 <= low <= high
            and self.attempts >= 1
            and (self.opendp is None or self.opendp.replace(".", "").replace("+", "").isalnum())
            and all(name.isidentifier() for name in names)
            and (ledger is None or ledger.max_rows_per_person >= 1)
            and (search is None or (search.candidates >= 1 and 1 <= search.trained_on <= high))
            and (tries is None or (math.isfinite(tries) and tries > 0.0))
        )


@dataclass(frozen=True, slots=True)
class Guarantee(Shown):
    """What one release promises, in words and in numbers. It is public and may be shown to anybody.

    Parameters
    ----------
    budget : PureDP, ApproxDP or ZCDP
        What the release costs a person.
    neighbours : Neighbours
        Whose difference is hidden: the values of a row, or its presence.
    mechanism : str
        How noise was added: "objective", "output", "output-laplace", "gradient", "sufficient-statistics" or
        "none".
    assumptions : tuple of str
        Sentences that must be true for the guarantee to hold.
    void : str or None
        The reason why there is no guarantee; None if there is one.
    max_rows_per_person : int
        The guarantee protects a person with at most this number of rows.
    circumstances : Circumstances or None
        The facts from which the sentences were written; None if they are not known.
    """

    budget: Budget
    neighbours: Neighbours
    mechanism: str
    assumptions: tuple[str, ...] = field(default=())
    void: str | None = None
    max_rows_per_person: int = 1
    circumstances: Circumstances | None = None

    @property
    def n_rows(self) -> tuple[int, int] | None:
        """The public bounds on the number of rows, equal ones where it is public; None if they are not known."""
        return None if self.circumstances is None else self.circumstances.n_rows

    def statement(self) -> str:
        """The guarantee in plain words, with its assumptions as a list."""
        return str(self)

    def blocks(self) -> tuple[Block, ...]:
        """The guarantee in plain words, with its assumptions as a list."""
        assumptions = Block("list", self.assumptions)
        if self.void is not None:
            return text(f"NOT PRIVATE. {self.void}", "Facts about this fit:"), assumptions
        several = self.max_rows_per_person > 1
        rows = f"all rows (at most {self.max_rows_per_person} count)" if several else "the row"
        that = "those rows" if several else "that row"
        if self.neighbours is Neighbours.REPLACE_ONE:
            subject = f"{rows} of one person had been replaced by any other{'s' * several}"
            question = f"to two values of {that}"
        else:
            # Two values of a row are two steps apart here: remove one, add the other. So the odds are on its presence.
            subject = f"{rows} of one person had been left out, or had been added"
            question = f"to {that} being there or not"
        hidden = wording("what is protected", that=that)
        promised = f"This model was released under {self.budget} ({self.neighbours}). {self._promise(subject, question)}"
        return text(promised, hidden, "It holds if:"), assumptions

    def _promise(self, subject: str, question: str) -> str:
        budget = self.budget
        implied = budget.to_approx(EXAMPLE_DELTA) if budget.is_concentrated else budget
        epsilon, factor = implied.amount, _factor(implied.amount)
        implies = f"It implies epsilon = {epsilon:.12g} with delta = {EXAMPLE_DELTA:g}: if"
        opening = implies if implied is not budget else "If"
        claim = wording("claim of a guarantee", opening=opening, subject=subject, epsilon=epsilon, factor=factor)
        adversary = wording("adversary of a guarantee", question=question)
        if implied.is_pure:
            return f"{claim}. {adversary}, would come to odds of at most {factor} to 1 after seeing the model."
        # The best test between two (epsilon, delta)-close distributions is right with probability (e + delta) / (e + 1),
        # where e = exp(epsilon). Delta allows single outcomes after which the odds are larger, so no odds are stated.
        right = (1.0 + implied.slack * math.exp(-epsilon)) / (1.0 + math.exp(-epsilon))
        most = math.ceil(right * 1e4) / 1e4
        return wording("difference of probabilities", claim=claim, slack=implied.slack, adversary=adversary, right=most)

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        names = "version budget neighbours mechanism max_rows_per_person assumptions void circumstances"
        return as_json(self, names, version=STATEMENT_VERSION)

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Guarantee:
        """Read the form written by `to_dict`.

        Parameters
        ----------
        value : dict
            What `to_dict` gave.

        Returns
        -------
        Guarantee
            What the mapping says.

        Raises
        ------
        ParameterError
            If another version of confide wrote it.
        """
        known = {field.name for field in fields(cls)} | {"version"}
        if not is_mapping(value) or value.get("version") != STATEMENT_VERSION or set(value) != known:
            raise ParameterError("the guarantee was written by another version of confide, which this version cannot read.")
        try:
            circumstances = value["circumstances"]
            return cls(
                budget=budget_from_dict(value["budget"]),
                neighbours=Neighbours.parse(value["neighbours"]),
                mechanism=str(value["mechanism"]),
                assumptions=tuple(map(str, value["assumptions"])),
                void=None if value["void"] is None else str(value["void"]),
                max_rows_per_person=int(value["max_rows_per_person"]),
                circumstances=None if circumstances is None else Circumstances.from_dict(circumstances),
            )
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError):
            raise ParameterError("a guarantee is read from the mapping that its to_dict gave, and from no other.") from None


def _factor(epsilon: float) -> str:
    """exp(epsilon) with three significant digits, rounded up."""
    if epsilon > 50.0:
        return f"10^{math.ceil(epsilon / math.log(10.0))}"
    factor = math.exp(epsilon)
    unit = 10.0 ** (math.floor(math.log10(factor)) - 2)
    return f"{math.ceil(factor / unit * (1 - 1e-12)) * unit:.10g}"
