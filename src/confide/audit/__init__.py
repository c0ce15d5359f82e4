"""Attacks on what a release promises: for the models of this package, and for anything else that releases numbers.

No attack proves privacy. One that finds nothing says how small the noise would have had to be for it to find something.
"""

from confide.audit.attacks import attack
from confide.audit.known_answers import OwnCheck, own_checks
from confide.audit.leak_search import Leak, LeaksResult, leaks
from confide.audit.neighbours import Pair, worst_neighbours
from confide.audit.quadrature import ExactResult, exact
from confide.audit.replays import ReplayResult, replay
from confide.audit.results import AuditResult
from confide.audit.row_orders import order, turned_neighbours
from confide.audit.tape import Step, noisy
from confide.audit.worst_pairs import worst_pair

__all__ = [
    "AuditResult",
    "ExactResult",
    "Leak",
    "LeaksResult",
    "OwnCheck",
    "Pair",
    "ReplayResult",
    "Step",
    "attack",
    "exact",
    "leaks",
    "noisy",
    "order",
    "own_checks",
    "replay",
    "turned_neighbours",
    "worst_neighbours",
    "worst_pair",
]
