"""PostgreSQL goes, or the connection to it, at each statement: spent >= released, and the message is right."""

from __future__ import annotations

import re
import signal
from functools import partial

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import confide
from confide.accounting.ledger import Ledger
from confide.cli.application import app
from confide.errors import LedgerError
from confide.privacy.budgets import PureDP
from tests.accounting.network import COMMIT

NOTHING = re.compile(r"Nothing was used or charged\.$")
IN_DOUBT = re.compile(r"in doubt: it may be recorded.*to charge again may charge twice\.$")
LEAST_MESSAGES = 9
"""A connection, a transaction with its settings, the catalogue, the lock, two reads, two writes, COMMIT."""


def messages_of(network, work):
    """How many messages some work sends when nothing fails."""
    network.work()
    work()
    assert network.n_messages >= LEAST_MESSAGES
    return network.n_messages


def outcome_of(work):
    """By what the caller is told: "done", "nothing" or "in doubt"."""
    try:
        work()
    except LedgerError as error:
        told = str(error)
        assert bool(NOTHING.search(told)) != bool(IN_DOUBT.search(told)), told
        return "nothing" if NOTHING.search(told) else "in doubt"
    return "done"


def terminated(server):
    """What ends the client's process at the server, as a server does that is told to restart."""
    return lambda: server.execute(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename = 'owner'"
    )


@pytest.mark.parametrize("how", ["before", "after", "terminated"])
def test_a_charge_that_is_cut_at_any_statement_is_what_the_caller_is_told(server, network, url, how):
    """Nothing, or in doubt; in doubt only from COMMIT on. The ledger goes on in any case, and never from a wrong end."""
    ledger = Ledger(network.between(url), limit=1000.0)
    ledger.charge(1.0)
    n_messages = messages_of(network, lambda: ledger.charge(1.0))
    recorded, outcomes, found = 2, [], []
    first = 2 if how == "terminated" else 1  # there is nothing to be ended before the client has been let in
    for number in range(first, n_messages + 1):
        network.fail(terminated(server) if how == "terminated" else how, number)
        outcomes.append(outcome_of(lambda: ledger.charge(1.0)))
        assert network.has_failed
        network.work()
        found.append(Ledger(url).verify() - recorded)
        recorded += found[-1]
        assert ledger.spent() == PureDP(float(recorded))
    assert all(made == {"nothing": 0, "done": 1}.get(told, made) for told, made in zip(outcomes, found, strict=True))
    assert set(found) == {0, 1}
    # COMMIT and the look at what it did are in doubt.
    assert outcomes == ["nothing"] * (n_messages - first - 1) + ["in doubt"] * 2
    assert found[-2:] == ([1, 1] if how == "after" else [0, 1])
    ledger.charge(1.0)
    assert ledger.verify() == recorded + 1


def test_a_ledger_whose_creation_is_cut_after_any_statement_is_whole_or_absent(server, network):
    """The same call, made again, opens it or makes it."""
    Ledger(network.between(server.url("cut")), limit=2.0)
    n_messages = network.n_messages
    outcomes = set()
    for number in range(1, n_messages + 1):
        url = server.url(f"cut_{number}")
        network.fail("after", number)
        outcomes.add(outcome_of(lambda: Ledger(network.between(url), limit=2.0)))  # noqa: B023
        network.work()
        ledger = Ledger(network.between(url), limit=2.0)
        assert ledger.verify() == 0
        ledger.charge(2.0)
        assert Ledger(url).spent() == PureDP(2.0)
    assert outcomes >= {"nothing", "in doubt"}


def test_a_note_that_is_cut_after_any_statement_may_be_made_again(network, url):
    """It replaces nothing, so to repeat it is no harm; nothing is charged by it."""
    ledger = Ledger(network.between(url), limit=1000.0)
    ledger.charge(1.0)
    n_messages = messages_of(network, lambda: ledger.note(1, {"model": "0"}))
    for number in range(1, n_messages + 1):
        ledger.charge(1.0)
        network.fail("after", number)
        outcome_of(lambda: ledger.note(number + 1, {"sha256": "c"}))  # noqa: B023
        network.work()
        assert ledger.entries()["sha256"].iloc[number] in (None, "c")
        ledger.note(number + 1, {"sha256": "c"})
        assert Ledger(url).entries()["sha256"].iloc[number] == "c"
    assert ledger.spent() == PureDP(1.0 + n_messages)


def test_a_fit_that_is_cut_after_any_message_releases_nothing_that_is_not_charged(network, url):
    """From its first look at the ledger to the charge. What is released was charged; without a charge there is no model."""
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    ledger = Ledger(network.between(url), limit=1000.0)
    fit = lambda model: model.fit(X, y)  # noqa: E731
    n_messages = messages_of(network, lambda: fit(confide.LogisticRegression(1.0, classes=[0, 1], ledger=ledger)))
    released, outcomes = 1, set()
    for number in range(1, n_messages + 1):
        model = confide.LogisticRegression(1.0, classes=[0, 1], ledger=ledger)
        network.fail("after", number)
        outcomes.add(outcome_of(lambda: fit(model)))  # noqa: B023
        network.work()
        released += hasattr(model, "coef_")
        assert Ledger(url).spent().epsilon >= released
    assert outcomes >= {"nothing", "in doubt"}


def restarted(server):
    """Stop as an administrator does, and start again."""
    server.process.send_signal(signal.SIGINT)
    server.process.wait(60)
    server.start()


@pytest.mark.parametrize(("at", "told"), [(b"INSERT INTO", "nothing"), (b"UPDATE", "nothing"), (COMMIT, "in doubt")])
def test_a_server_that_is_restarted_amid_a_charge_has_not_charged_it(server, network, url, at, told):
    """The transaction is gone, and the next charge finds the server again."""
    ledger = Ledger(network.between(url), limit=4.0)
    ledger.charge(1.0)
    network.fail(lambda: restarted(server), at)
    assert outcome_of(lambda: ledger.charge(1.0)) == told
    assert network.has_failed
    network.work()
    assert ledger.verify() == Ledger(url).verify() == 1
    ledger.charge(1.0)
    assert Ledger(url).spent() == PureDP(2.0)


def test_a_charge_whose_answer_was_sent_survives_the_crash_of_the_server(server, network, url):
    """The server is killed at the first message after COMMIT was answered, and started again."""
    ledger = Ledger(network.between(url), limit=4.0)
    ledger.charge(1.0)

    def crash():
        server.kill()
        server.start()

    network.fail(crash, b"SELECT hash FROM")
    assert outcome_of(lambda: ledger.charge(1.0)) == "in doubt"
    assert network.has_failed
    network.work()
    assert ledger.verify() == Ledger(url).verify() == 2


STUDY = """
[study]
name = "cut"
[data]
file = "people.csv"
schema = "people.toml"
[budget]
epsilon = 1.0
[ledger]
url = "{url}"
[model]
kind = "logistic"
[outputs]
model = "model.json"
"""


@pytest.mark.parametrize("how", ["before", "after"])
def test_a_study_whose_charge_is_in_doubt_is_not_charged_twice(network, url, tmp_path, monkeypatch, how):
    """Run again, it looks into the ledger first: what was charged and released nothing is finished under that charge."""
    age = np.random.default_rng(1).uniform(20, 80, 300)
    pd.DataFrame({"age": age, "ill": np.where(age > 50, "yes", "no")}).to_csv(tmp_path / "people.csv", index=False)
    target = 'target = { column = "ill", negative = "no", positive = "yes" }'
    (tmp_path / "people.toml").write_text(f"{target}\n[columns]\nage = {{ low = 18, high = 90 }}\n", encoding="utf-8")
    (tmp_path / "study.toml").write_text(STUDY.format(url=network.between(url)), encoding="utf-8")
    Ledger(url, limit=4.0)

    monkeypatch.chdir(tmp_path)
    # An error is one line of words, however wide the terminal is.
    run = partial(CliRunner().invoke, app, ["run", "study.toml"], env={"COLUMNS": "1000"})

    network.fail(how, COMMIT)
    first = run()
    assert first.exit_code != 0
    assert "in doubt" in first.stderr
    assert network.between(url) in first.stderr
    assert not (tmp_path / "model.json").exists()
    network.work()
    second = run()
    assert Ledger(url).spent() == PureDP(1.0)
    assert second.exit_code == 0, second.stderr
    assert len(Ledger(url).entries()) == 1
    attempts = confide.load(tmp_path / "model.json").guarantee_.circumstances.attempts
    assert attempts == (1 if how == "before" else 2)
