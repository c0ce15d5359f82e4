"""A small part of the fuzzer (scripts/fuzz.py) in each run of the tests: what it tries is understood or clearly refused."""

from __future__ import annotations

import random
import time

import pytest
from scripts import fuzz
from scripts.fuzz_targets import TARGETS

from confide.errors import InputError

FEW = {"array": 60, "ledger": 40, "message": 40, "model-file": 60, "parameter": 40, "table": 40}


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_broken_input_is_understood_or_refused(name, tmp_path):
    """Cases that `make fuzz` does not begin with, so that both together see more."""
    outcomes, failures = fuzz.fuzzed(TARGETS[name](tmp_path), range(10**9, 10**9 + FEW.get(name, 200)))
    assert failures == []
    assert outcomes["refused"] > 0


class Answers:
    """A target with one planted answer."""

    name = "planted"

    def __init__(self, answer):
        self.answer = answer

    def try_case(self, draws: random.Random) -> None:
        self.answer()


def of_two_lines():
    raise InputError("one line\nand another")


def too_large():
    bytearray(8 * 1024**3)


@pytest.mark.parametrize("answer", [lambda: {}["key"], of_two_lines, lambda: time.sleep(30), too_large])
def test_what_is_no_clear_refusal_is_listed(answer, monkeypatch):
    """Another exception, a message of two lines, a case that hangs, and one that wants too much memory."""
    monkeypatch.setattr(fuzz, "SECONDS_OF_A_CASE", 1)
    outcomes, failures = fuzz.fuzzed(Answers(answer), range(3, 4))
    assert outcomes == {"failed": 1}
    assert len(failures) == 1
    assert failures[0].startswith("planted:3 ")


def test_a_case_that_was_slow_once_is_tried_again(monkeypatch):
    """As on a busy machine. One that is slow twice is listed (above)."""
    monkeypatch.setattr(fuzz, "SECONDS_OF_A_CASE", 1)
    waits = [30, 0]
    assert fuzz.fuzzed(Answers(lambda: time.sleep(waits.pop(0))), range(3, 4)) == ({"understood": 1}, [])
