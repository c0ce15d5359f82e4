"""scripts/mutants.py and scripts/mutation_tests.py: changes of the trusted code that tests should notice."""

from __future__ import annotations

import ast
import os
import subprocess
import sys

import pytest
from scripts import mutation_tests
from scripts.mutants import Mutant, mutants_of

MODULE = '''"""A module."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import os
BOUND: float = 2.0

class Scale:
    size: int = 3

    @property
    def half(self) -> float:
        if self.size < 1 and not self.size == 0:
            raise ValueError(f"{self.size - 1} is too small, by " + "one")
        return min(self.size, -BOUND) / 2

    def grow(self):
        self.size += 1
        self.note("é", last=True)
        return self.size if self.size is None else 0
'''


@pytest.fixture
def changes(tmp_path) -> dict[tuple[str, str, str], Mutant]:
    """The mutants of MODULE by function, before and after."""
    path = tmp_path / "module.py"
    path.write_text(MODULE, encoding="utf-8")
    return {(each.function, each.before, each.after): each for each in mutants_of(path, tmp_path)}


def test_constants_properties_and_statements_are_changed(changes):
    """One change for each operator, at the level of the module, of a class, of a property and of a method."""
    assert set(changes) == {
        ("", "2.0", "4.0"),
        ("Scale", "3", "4"),
        ("Scale.half", "self.size < 1 and (not self.size == 0)", "self.size < 1 or not self.size == 0"),
        ("Scale.half", "self.size < 1 and (not self.size == 0)", "not (self.size < 1 and (not self.size == 0))"),
        ("Scale.half", "self.size < 1", "self.size <= 1"),
        ("Scale.half", "1", "2"),
        ("Scale.half", "not self.size == 0", "self.size == 0"),
        ("Scale.half", "self.size == 0", "self.size != 0"),
        ("Scale.half", "0", "1"),
        ("Scale.half", "raise ValueError(f'{self.size - 1} is too small, by ' + 'one')", "pass"),
        ("Scale.half", "min(self.size, -BOUND) / 2", "min(self.size, -BOUND) * 2"),
        ("Scale.half", "min", "max"),
        ("Scale.half", "-BOUND", "BOUND"),
        ("Scale.half", "2", "3"),
        ("Scale.grow", "self.size += 1", "self.size -= 1"),
        ("Scale.grow", "1", "2"),
        ("Scale.grow", "self.note('é', last=True)", "pass"),
        ("Scale.grow", "True", "False"),
        ("Scale.grow", "self.size is None", "self.size is not None"),
        ("Scale.grow", "self.size is None", "not self.size is None"),
        ("Scale.grow", "0", "1"),
    }


def test_a_mutant_differs_in_its_own_place_alone(changes):
    """Bytes before and after stay, also behind a letter of two bytes, and the text parses."""
    for mutant in changes.values():
        text = mutant.source()
        ast.parse(text)
        assert text.encode()[: mutant.start] == MODULE.encode()[: mutant.start]
        assert text.encode().endswith(MODULE.encode()[mutant.end :])
    assert 'self.note("é", last=(False))' in changes["Scale.grow", "True", "False"].source()


def test_every_mutant_of_the_trusted_rooms_parses_and_has_a_key_of_its_own():
    """Keys name reasons, so two changes must not share one."""
    found = mutation_tests.all_mutants()
    assert len(found) > 5000
    assert len({each.key for each in found}) == len(found)
    for mutant in found[:300]:
        ast.parse(mutant.source())


def test_the_key_stays_when_lines_move(tmp_path):
    """A comment above a function, or a change of another function, does not lose a reason."""
    path = tmp_path / "module.py"
    path.write_text(MODULE, encoding="utf-8")
    before = {each.key for each in mutants_of(path, tmp_path)}
    path.write_text(MODULE.replace("class Scale", "# A comment.\nOTHER = 7\n\nclass Scale"), encoding="utf-8")
    assert len({each.key for each in mutants_of(path, tmp_path)} - before) == 1


SCALES = """
import functools

LEAST = 1

def doubled(x):
    return 2 * x

def kept_at_import():
    return 3

KEPT = kept_at_import()

def unreached(x):
    return x + 1

@functools.cache
def kept(x):
    return x - 5

def of_a_fixture(x):
    if x > 2:
        x -= 1
    return x
"""
TESTS_OF_SCALES = """
import pytest
from package.room import scales

@pytest.fixture(scope="module")
def shared():
    return scales.of_a_fixture(3)

def test_constants():
    assert (scales.LEAST, scales.KEPT) == (1, 3)

def test_doubled():
    assert scales.doubled(2) == 4

def test_kept():
    assert isinstance(scales.kept(2), int)

def test_kept_again():
    assert scales.kept(2) == -3

def test_shared(shared):
    assert shared == 2

def test_shared_again(shared):
    assert shared < 3

def test_fails_anyway():
    assert scales.doubled(1) == 0
"""
RUN = """
import sys, time
from pathlib import Path
from scripts import mutation_tests
folder = Path(sys.argv[1])
mutation_tests.ROOT, mutation_tests.SOURCE, mutation_tests.TESTS = folder, folder / "package", folder / "tests"
mutation_tests.FOLDERS = (folder / "package" / "room",)
mutation_tests.REACH, mutation_tests.RESULTS = folder / "build" / "reach.json", folder / "build" / "results.jsonl"
mutants = mutation_tests.mutants_of(folder / "package" / "room" / "scales.py", folder / "package")
reach = mutation_tests.reach_of_tests(1)
print(*(f"{name.split('::')[1]}: {', '.join(sorted(each.functions))}" for name, each in sorted(reach.items())), sep="\\n")
mutants += [each.undone() for each in mutants]
terms = mutation_tests.Terms(mutation_tests.SOURCE, mutation_tests.FOLDERS, reach, 25.0, 1, time.monotonic() + 600.0)
mutation_tests.try_mutants(mutants, terms)
known = mutation_tests.trials()
print(*(f"{each.key[0] == '='} {each.before} -> {each.after}: {known[each.key].status}" for each in mutants), sep="\\n")
"""


def test_each_mutant_meets_the_tests_that_reach_it(tmp_path):
    """Changes in place and at import are noticed, unreached ones survive, no change is noticed by nothing."""
    for name, text in (
        ("package/__init__.py", ""),
        ("package/room/__init__.py", ""),
        ("package/room/scales.py", SCALES),
        ("tests/__init__.py", ""),
        ("tests/room/test_scales.py", TESTS_OF_SCALES),
        ("tests/room/__init__.py", ""),
        ("pytest.ini", "[pytest]"),
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    places = os.pathsep.join([str(tmp_path), str(mutation_tests.ROOT), str(mutation_tests.ROOT / "src")])
    ran = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": places},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    said = ran.stdout.splitlines()
    assert said[:6] == [
        "test_constants: ",
        "test_doubled: room/scales.py:doubled",
        "test_kept: room/scales.py:kept",
        "test_kept_again: room/scales.py:kept",
        "test_shared: room/scales.py:of_a_fixture",
        "test_shared_again: room/scales.py:of_a_fixture",
    ], ran.stderr
    assert {line.removeprefix("False ") for line in said[6:] if line.startswith("False")} == {
        "1 -> 2: noticed",
        "1 -> 2: survived",
        "2 * x -> 2 / x: noticed",
        "2 -> 3: noticed",
        "3 -> 4: noticed",
        "5 -> 6: noticed",
        "x - 5 -> x + 5: noticed",
        "x + 1 -> x - 1: survived",
        "x > 2 -> not x > 2: noticed",
        "x > 2 -> x >= 2: survived",
        "x -= 1 -> x += 1: noticed",
    }
    assert {line.rpartition(" ")[2] for line in said[6:] if line.startswith("True")} == {"survived"}


def test_every_reason_names_a_mutant_that_exists():
    """A reason whose code is gone must go too."""
    keys = {each.key for each in mutation_tests.all_mutants()}
    reasons = mutation_tests.reasons()
    assert not set(reasons) - keys
    assert all(len(reason.split()) > 3 for reason in reasons.values())


def test_the_summary_counts_each_state(monkeypatch, tmp_path, changes):
    """Noticed, endless, explained and surviving mutants."""
    path = next(iter(changes.values())).path
    monkeypatch.setattr(mutation_tests, "SOURCE", tmp_path)
    keys = [each.key for each in changes.values()]
    monkeypatch.setattr(mutation_tests, "reasons", lambda: {keys[2]: "It changes nothing."})
    states = ["noticed", "endless", "survived", "survived"]
    known = {key: mutation_tests.Trial(key, state, "", 1.0) for key, state in zip(keys, states, strict=False)}
    lines = mutation_tests.summary(list(changes.values()), known)
    assert f"| all | {len(keys)} | 4 | 50.0% | 1 | 1 |" in lines
    assert lines[-1].startswith(keys[3])
    assert path.name in lines[-1]
