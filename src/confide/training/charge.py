"""The charge: what is done just before it, and that a release follows it and never comes before."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from confide.accounting.events import Event
from confide.accounting.ledger import Batch, Ledger
from confide.cautions import warn
from confide.data.threads import one_blas_thread
from confide.errors import NotCertified
from confide.features.persons import RowsPerPerson
from confide.privacy.budgets import Neighbours
from confide.privacy.lattice import LatticeNoise
from confide.privacy.noise import Entropy
from confide.second_account import confirms


@dataclass(frozen=True, slots=True)
class Charge:
    """Where a release is charged.

    Attributes
    ----------
    ledger : Ledger, a batch planned on one, or None
    seed : of the noise, for tests; None draws it from the operating system
    purpose : what the ledger notes
    """

    ledger: Ledger | Batch | None
    seed: int | None
    purpose: str


def before_charge(lattices: Iterable[LatticeNoise | None], unusual: tuple[str, ...] = ()) -> None:
    """What remains to be done before a charge: the second account of the noise, and a warning of an unusual budget.

    Parameters
    ----------
    lattices : all noise on a grid that the release draws
    unusual : what is unusual about the budget, see `cautions`
    """
    for lattice in lattices:
        # A release asks OpenDP again, and gets the same answer.
        if lattice is not None and not confirms(lattice):
            raise NotCertified("OpenDP finds the noise less private than claimed. Nothing was used or charged.")
    warn(unusual)


Released = TypeVar("Released")


def charge_and_release(
    release: Callable[[Entropy], Released], event: Event, neighbours: Neighbours, charge: Charge
) -> Released:
    """Charge the event, which is durable before the next line runs, and then release."""
    entropy = entropy_of(charge.seed)
    # Floating-point warnings would depend on the data.
    with np.errstate(all="ignore"), one_blas_thread():
        if charge.ledger is not None:
            # Whoever reads the ledger must see that its limit does not speak of this release.
            void = "" if charge.seed is None else " (void: random_state was set)"
            charge.ledger.charge(event, purpose=charge.purpose + void, neighbours=neighbours)
        return release(entropy)


def entropy_of(seed: int | None) -> Entropy:
    """Where random bits come from: the operating system, or a seed for tests."""
    return Entropy.fresh() if seed is None else Entropy.seeded(seed)


def rows_per_person(most: int, seed: int | None) -> RowsPerPerson:
    """Which rows of each person count: so many, drawn at random."""
    return RowsPerPerson(most, entropy_of(seed).permutation)
