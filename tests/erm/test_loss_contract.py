"""The contract of losses finds a wrong constant, and the tutorial that leads to it works as it stands."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from scripts import reading_paths

from confide.erm.losses import HuberHinge, LogisticLoss
from confide.estimators import erm
from tests.erm.loss_contract import check_margin_loss

TUTORIAL = Path(__file__).parents[2] / "docs" / "how_to" / "adding_a_loss.md"


def wrong(**constants):
    """The logistic loss with other constants."""
    return claiming(LogisticLoss(), **constants)


def claiming(loss, **others):
    """A loss with other functions or constants."""
    known = {name: getattr(loss, name) for name in ("value", "derivative", "second_derivative")}
    constants = loss.constants._replace(**{name: one for name, one in others.items() if name not in known})
    return SimpleNamespace(**known | {name: one for name, one in others.items() if name in known}, constants=constants)


@pytest.mark.parametrize(
    "constants",
    [
        {"lipschitz": 0.5},
        {"lipschitz": 2.0},
        {"smoothness": 0.125},
        {"smoothness": 0.5},
        {"value_at_zero": 1.0},
        {"tapered": False},
        {"tail": 2.0},
        {"tail": 0.5},
        {"bends": lambda a: 0.5 * a * (1.0 - a)},
        {"bends": lambda a: 2.0 * a * (1.0 - a)},
        {"derivative": lambda z: -LogisticLoss().derivative(z)},
        {"derivative": lambda z: (1.0 + 1e-6) * LogisticLoss().derivative(z)},
        {"derivative": lambda z: LogisticLoss().derivative(z.astype(np.float32)).astype(z.dtype)},
        {"rounding": 0.25},
        {"second_derivative": lambda z: 0.7 * LogisticLoss().second_derivative(z)},
    ],
    ids=lambda constants: " ".join(constants),
)
def test_a_wrong_constant_is_found(constants):
    """Each constant or function off by a factor of 2 or less fails, whichever way it is off."""
    check_margin_loss(wrong())
    with pytest.raises(AssertionError):
        check_margin_loss(wrong(**constants))


def test_a_loss_that_is_not_self_concordant_must_not_claim_it():
    """The smoothed hinge bends from one value to another in no distance."""
    loss = HuberHinge(0.5)
    check_margin_loss(loss)
    with pytest.raises(AssertionError, match="self-concordant"):
        check_margin_loss(claiming(loss, self_concordant=True))


def blocks():
    """The code of the tutorial by the file that it is for; the last block has none."""
    text = TUTORIAL.read_text(encoding="utf-8")
    found = re.findall(r"(?:`([\w/.]+)`:\n\n|In `([\w/.]+)`[^`]*\n\n)?```python\n(.*?)```", text, flags=re.DOTALL)
    return {first or second: code for first, second, code in found}


def test_the_tutorial_adds_a_loss_that_works(monkeypatch, capsys):
    """Its module passes its test, estimators find it by its name, and the fit at its end is private and right."""
    code = blocks()
    module = ModuleType("confide.erm.hyperbolic_hinge")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(code["src/confide/erm/hyperbolic_hinge.py"], module.__name__, "exec"), vars(module))  # noqa: S102
    tests = {}
    exec(compile(code["tests/erm/test_hyperbolic_hinge.py"], "test", "exec"), tests)  # noqa: S102
    (test,) = (function for name, function in tests.items() if name.startswith("test_"))
    test()
    monkeypatch.setattr(erm, "MARGIN_LOSSES", dict(erm.MARGIN_LOSSES))
    names = {"MARGIN_LOSSES": erm.MARGIN_LOSSES, "HyperbolicHinge": module.HyperbolicHinge}
    exec(code["src/confide/estimators/erm.py"], names)  # noqa: S102
    exec(code[""], {})  # noqa: S102
    shown = capsys.readouterr().out
    assert "objective perturbation" in shown
    assert "pure differential privacy with epsilon = 1" in shown
    assert shown in TUTORIAL.read_text(encoding="utf-8")


def test_the_tutorial_gives_a_row_that_reading_paths_take():
    """The row is of the form of the table to which it is added."""
    (row,) = re.findall(r"\n(\| the hyperbolic hinge .*\|)\n", TUTORIAL.read_text(encoding="utf-8"))
    page = reading_paths.PAGE.read_text(encoding="utf-8")
    assert row.count("|") == page[page.index("| Path | Modules | Lines |") :].split("\n")[2].count("|")
    known = row.replace("erm/hyperbolic_hinge.py", "erm/losses.py")
    with_row = page.replace("\n| sparse rows |", f"\n{known}\n| sparse rows |", 1)
    assert "the hyperbolic hinge" in reading_paths.paths(with_row)
