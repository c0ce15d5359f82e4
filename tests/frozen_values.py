"""What the dataclasses of a room are: frozen values with slots, without state of their own."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil

ORDERED = {"PureDP", "ApproxDP", "ZCDP"}
BY_IDENTITY = {"CentredRows", "ClippedRows", "ScaledRows", "CodedRows", "JoinedRows", "ReleasedTables"}
"""They hold arrays, whose comparison is no truth value."""
OWN_CONSTRUCTOR = {"Bundles", "Mapped"}
BY_NAME = {
    "ProblemFacts": 9, "Problem": 6, "LeastSquares": 2, "GradientPlan": 1,
}  # fmt: skip
"""How many fields of their own can be given by name alone."""
DERIVED = {
    "Centred._centre": (False, False, False), "CodedLayout.width": (False, False, True),
    "CodedLayout.key": (False, False, False), "GroupBound._intervals": (False, False, False),
    "GroupBound._limits": (False, False, False), "GroupBound._bands": (False, False, False),
    "GroupBound._key": (False, False, False),
    "GroupBound.n_features": (False, False, False),
    "GroupBound.l2_norm": (False, False, False),
    "BallBound.l2_norm": (False, False, False),
    "Centred.l2_norm": (False, False, False),
    "Penalty.has_ridges_alone": (False, False, False),
    "Penalty.is_ridge": (False, False, False),
    "Objective.ridges": (False, False, False),
    "ProblemFacts.summed_norm": (False, False, False),
    "ProblemFacts.row_norm": (False, False, False),
    "ProblemFacts.row_width": (False, False, False),
    "ProblemFacts.is_centred": (False, False, False),
    "ProblemFacts.n_weights": (False, False, False),
    "Problem.loss_bounds": (False, False, False),
    "Noise.norm": (False, False, False),
    "Shape.dimension": (False, False, False),
    "Shape.free_dimension": (False, False, False),
    "Shape.l2_norm": (False, False, False),
    "LatticeNoise.step": (False, False, False),
    "LatticeNoise.rounded_sensitivity": (False, False, False),
    "LatticeLaplace.scale": (False, False, False),
    "LatticeLaplace.deviation": (False, False, False),
    "Plan.reasons": (True, False, False), "StatisticsPlan.reasons": (True, False, False),
    "Objective._sums": (False, False, False), "Entropy.read": (True, True, False),
}  # fmt: skip
"""Whether a field is an argument, is compared, and is shown, where one of them does not hold."""


def dataclasses_of(room: str) -> list[type]:
    """All dataclasses that the modules of a room define."""
    package = importlib.import_module(f"confide.{room}")
    modules = [importlib.import_module(f"confide.{room}.{each.name}") for each in pkgutil.iter_modules(package.__path__)]
    return [
        each for module in modules for each in vars(module).values()
        if isinstance(each, type) and each.__module__ == module.__name__ and "__dataclass_params__" in vars(each)
    ]  # fmt: skip


def check_values(kinds: list[type]) -> None:
    """A plan that could be changed after the charge, or hold more than its fields, would prove nothing."""
    for kind in kinds:
        name, how = kind.__name__, vars(kind)["__dataclass_params__"]
        assert how.frozen, name
        assert "__slots__" in vars(kind), name
        assert "__dict__" not in vars(kind), name
        assert how.eq == (name not in BY_IDENTITY), name
        assert how.order == (name in ORDERED), name
        assert how.init == (name not in OWN_CONSTRUCTOR), name
        own = [field for field in dataclasses.fields(kind) if field.name in kind.__annotations__]
        assert sum(field.kw_only and field.init for field in own) == BY_NAME.get(name, 0), name
        for field in own if how.init else ():
            place = f"{name}.{field.name}"
            assert (field.init, field.compare, field.repr) == DERIVED.get(place, (True, True, True)), place
