"""Attacks on what a release promises: for the models of this package, and for anything else that releases numbers.

No attack proves privacy. One that finds nothing says how small the noise would have had to be for it to find something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from confide.first_use import public_names

# Each name is imported on first use, since pytest imports this package in every run.
if TYPE_CHECKING:
    from confide.audit.attacks import AuditResult as AuditResult
    from confide.audit.attacks import attack as attack
    from confide.audit.densities import ExactResult as ExactResult
    from confide.audit.densities import exact as exact
    from confide.audit.known_answers import OwnCheck as OwnCheck
    from confide.audit.known_answers import own_checks as own_checks
    from confide.audit.leak_search import Leak as Leak
    from confide.audit.leak_search import LeaksResult as LeaksResult
    from confide.audit.leak_search import leaks as leaks
    from confide.audit.replays import ReplayResult as ReplayResult
    from confide.audit.replays import Step as Step
    from confide.audit.replays import noisy as noisy
    from confide.audit.replays import replay as replay
    from confide.audit.worst_pairs import Pair as Pair
    from confide.audit.worst_pairs import worst_neighbours as worst_neighbours
    from confide.audit.worst_pairs import worst_pair as worst_pair

__all__, __getattr__, __dir__ = public_names(__name__, __file__)
