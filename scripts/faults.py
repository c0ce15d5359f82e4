"""Break the machine under fits and ledgers, and count: spent >= released always, and no damaged ledger that opens.

`python -m scripts.faults` (that is `make faults`) breaks it in these ways. `--kills N` sets the number of kills, and names
of faults run these alone:

- kills: a process that fits, charges a ledger and saves models is killed (SIGKILL) at a random moment, again and again;
- studies: the same for `confide run`, started again until the study is finished;
- finishing: fits, evaluations, descriptions, bounds and searches are killed, and finished under their charges;
- disk: the file system of the ledger and of the models is full (a small tmpfs; it needs the right to mount one);
- descriptors: the process may open no more files;
- memory: the process may get no more memory;
- clock: the clock jumps back and forth between charges;
- sharing: 64 processes with 8 threads each charge one ledger, in a file and in PostgreSQL, for ten minutes each, or
  `--seconds S`; scripts/shared_ledger.py does it, and takes other sizes.

After each fault the ledger opens in a new process, its chain of records verifies, and what it says was spent is at least the
sum over all models that were saved and of all charges that returned. A model file is whole or absent.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import multiprocessing
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from scripts import shared_ledger

import confide

KILLS = 1000
STUDIES = 40
_EPSILON = 0.125
"""Cost of a fit: a power of two, so that sums are exact."""
_FORK = multiprocessing.get_context("fork")
_FITS_OF_A_LIFE = 4
"""Kills come within the time of this many fits, as measured before."""
_RUNS_OF_A_LIFE = 1.3
STUDY = """
[study]
name = "faults"
[data]
file = "people.csv"
schema = "people.toml"
[budget]
epsilon = 0.125
[ledger]
file = "study.db"
[model]
kind = "logistic"
[evaluation]
file = "aside.csv"
epsilon = 0.125
allow_hidden = true
[outputs]
model = "model.json"
"""


class Broken(Exception):  # noqa: N818 - says what is wrong
    """A promise that did not hold under a fault."""


def main() -> None:
    """Break what the command line names, or everything."""
    parser = argparse.ArgumentParser(description="Break the machine under fits and ledgers.")
    parser.add_argument("names", nargs="*", metavar="FAULT", help=f"some of: {', '.join(FAULTS)}")
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seconds", type=int, default=shared_ledger.SECONDS)
    asked = parser.parse_args()
    for name in asked.names or FAULTS:
        with tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            n_studies = max(1, asked.kills // (KILLS // STUDIES))
            number = {
                "kills": asked.kills,
                "studies": n_studies,
                "finishing": asked.kills // 5,
                "sharing": asked.seconds,
            }.get(name, 1)
            print(f"{name:12} {FAULTS[name](Path(folder), number)} {time.monotonic() - began:,.0f} s", flush=True)


def _fit(ledger: confide.Ledger) -> confide.LogisticRegression:
    draws = np.random.default_rng(0)
    rows = draws.uniform(-0.5, 0.5, size=(200, 3))
    return confide.LogisticRegression(_EPSILON, classes=[0, 1], ledger=ledger).fit(rows, (rows[:, 0] > 0).astype(int))


def _fit_until_killed(folder: Path, first: int, writer: int) -> None:
    ledger = confide.Ledger(folder / "ledger.db")
    for number in range(first, first + 10**6):
        os.write(writer, b".")
        model = _fit(ledger)
        model.save(folder / f"model-{number}.json")


def _checked(folder: Path, acknowledged: int = 0) -> tuple[float, int]:
    """What was spent and the number of saved models; both are compared, and the ledger's chain is verified."""
    ledger = confide.Ledger(folder / "ledger.db")
    ledger.verify()
    spent = float(ledger.spent().epsilon)
    models = sorted(folder.glob("model-*.json"))
    for model in models[-3:]:  # those that a fault may have hit
        confide.load(model)
    released = _EPSILON * max(len(models), acknowledged)
    if spent < released:
        raise Broken(f"{released} was released and {spent} was charged")
    return spent, len(models)


def kills(folder: Path, number: int) -> str:
    """Kill a fitting process at random moments."""
    ledger = confide.Ledger(folder / "ledger.db", limit=1e6)
    _fit(ledger)  # the first fit is slow
    began = time.monotonic()
    for _ in range(_FITS_OF_A_LIFE):
        _fit(ledger)
    seconds_of_a_fit = (time.monotonic() - began) / _FITS_OF_A_LIFE
    draws, n_models = random.Random(4), 0  # noqa: S311 - moments to kill at
    spent = 0.0
    for _ in range(number):
        reader, writer = os.pipe()
        child = _FORK.Process(target=_fit_until_killed, args=(folder, n_models, writer))
        child.start()
        os.close(writer)
        # The child tells when each fit begins. To count fits does not depend on how busy the machine is.
        for _ in range(draws.randint(1, _FITS_OF_A_LIFE)):
            os.read(reader, 1)
        os.close(reader)
        time.sleep(draws.uniform(0.0, seconds_of_a_fit))
        os.kill(child.pid or 0, signal.SIGKILL)
        child.join()
        spent, n_models = _checked(folder)
    if number >= _FITS_OF_A_LIFE and n_models == 0:
        raise Broken("every kill came before the first model was saved, so nothing was tried")
    unfinished = len(list(folder.glob(".confide-*")))
    fits = spent / _EPSILON
    return f"{number:,} kills: {fits:,.0f} fits charged, {n_models:,} models saved, {unfinished} unfinished files;"


def studies(folder: Path, number: int) -> str:
    """Kill `confide run` at random moments, and let it finish at last."""
    draws = np.random.default_rng(1)
    age = draws.uniform(20, 80, 300)
    pd.DataFrame({"age": age, "ill": np.where(age > 50, "yes", "no")}).to_csv(folder / "people.csv", index=False)
    shutil.copy(folder / "people.csv", folder / "aside.csv")
    target = 'target = { column = "ill", negative = "no", positive = "yes" }'
    (folder / "people.toml").write_text(f"{target}\n[columns]\nage = {{ low = 18, high = 90 }}\n", encoding="utf-8")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    confide.Ledger(folder / "study.db", limit=1e6)
    moments = random.Random(5)  # noqa: S311 - moments to kill at
    command = (sys.executable, "-m", "confide", "run", "study.toml")
    began = time.monotonic()
    subprocess.run(command, cwd=folder, capture_output=True, check=True)  # noqa: S603
    longest_life = _RUNS_OF_A_LIFE * (time.monotonic() - began)
    killed, anew = 0, False
    for _ in range(number):
        asked = (*command, "--again") if anew else command
        run = subprocess.Popen(asked, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
        try:
            run.wait(moments.uniform(0.0, longest_life))
        except subprocess.TimeoutExpired:
            run.kill()
            run.wait()
            killed += 1
        released = 0.0
        if (folder / "model.json").exists():
            confide.load(folder / "model.json")
            released = _EPSILON * (1 + ("accuracy" in (folder / "study.state.json").read_text(encoding="utf-8")))
        if float(confide.Ledger(folder / "study.db").spent().epsilon) < released:
            raise Broken("a model of the study was released and not charged")
        anew = moments.random() < 0.5
        if anew:  # half of the studies begin anew, half go on
            for name in ("model.json", "study.state.json"):
                (folder / name).unlink(missing_ok=True)
    # What was lost between the mark of a release and its file is charged anew.
    done = subprocess.run((*command, "--again"), cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode or not (folder / "model.json").exists():
        raise Broken(f"the study could not be finished: {done.stderr[-500:]}")
    return f"{killed} of {number} runs killed, finished at last;"


def _releases() -> tuple[Callable[[confide.Ledger], object], ...]:
    """A fit, an evaluation, a description, bounds and a search of the same rows."""
    draws = np.random.default_rng(1)
    rows = pd.DataFrame({"age": draws.uniform(20, 80, 300)})
    ill, age = np.where(rows["age"] > 50, "yes", "no"), {"age": {"low": 18, "high": 90}}
    schema = confide.Schema(age, target={"column": "ill", "negative": "no", "positive": "yes"})
    model = confide.LogisticRegression(1.0, schema=schema).fit(rows, ill)
    return (
        lambda ledger: confide.LogisticRegression(_EPSILON, schema=schema, ledger=ledger).fit(rows, ill),
        lambda ledger: confide.evaluate(model, rows, ill, budget=_EPSILON, ledger=ledger, n_bins=2, allow_hidden=True),
        lambda ledger: confide.describe(rows, confide.Schema(age), budget=_EPSILON, ledger=ledger),
        lambda ledger: confide.private_bounds(rows, {"age": (0, 200)}, budget=_EPSILON, ledger=ledger),
        lambda ledger: confide.PrivateSearchCV(
            confide.LogisticRegression(schema=schema), {"alpha": [0.1, 1.0]}, budget=_EPSILON, ledger=ledger
        ).fit(rows, ill),
    )


def _release_and_tell(release: Callable[[confide.Ledger], object], path: Path, writer: int) -> None:
    os.write(writer, b".")
    release(confide.Ledger(path))
    os.write(writer, b"seen")


def finishing(folder: Path, number: int) -> str:
    """Kill releases of every kind at random moments, and finish under their charges those that released nothing."""
    path, releases = folder / "ledger.db", _releases()
    confide.Ledger(path, limit=1e6)
    warnings.simplefilter("ignore")
    seconds = []
    for release in releases:
        release(confide.Ledger(limit=1.0))  # the first one is slow
        began = time.monotonic()
        release(confide.Ledger(path))
        seconds.append(time.monotonic() - began)
    moments, n_seen, n_finished = random.Random(6), len(releases), 0  # noqa: S311 - moments to kill at
    for attempt in range(number):
        kind = attempt % len(releases)
        reader, writer = os.pipe()
        child = _FORK.Process(target=_release_and_tell, args=(releases[kind], path, writer))
        child.start()
        os.close(writer)
        os.read(reader, 1)
        time.sleep(moments.uniform(0.0, 1.5 * seconds[kind]))
        os.kill(child.pid or 0, signal.SIGKILL)
        child.join()
        n_seen += os.read(reader, 4) == b"seen"
        os.close(reader)
        if confide.Ledger(path).unfinished():
            before = confide.Ledger(path).verify()
            releases[kind](confide.Ledger(path, finish=True))
            n_finished, n_seen = n_finished + 1, n_seen + 1
            if confide.Ledger(path).unfinished() or confide.Ledger(path).verify() != before:
                raise Broken("a release that was killed could not be finished under its charge")
    ledger = confide.Ledger(path)
    if float(ledger.spent().epsilon) != _EPSILON * ledger.verify() or ledger.verify() < n_seen:
        raise Broken(f"{n_seen} releases were seen and {ledger.verify()} charged")
    return f"{number:,} kills: {ledger.verify():,} charges, {n_seen:,} releases seen, {n_finished:,} of them finished;"


@contextlib.contextmanager
def _small_disk(folder: Path, size: str) -> Iterator[None]:
    mount, unmount = shutil.which("mount"), shutil.which("umount")
    if mount is None or unmount is None or os.geteuid() != 0:
        raise PermissionError
    command = (mount, "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    if subprocess.run(command, capture_output=True, check=False).returncode:  # noqa: S603
        raise PermissionError
    try:
        yield
    finally:
        subprocess.run((unmount, "--lazy", str(folder)), check=True)  # noqa: S603


def disk(folder: Path, number: int) -> str:
    """Fit until the disk is full, make room, and go on."""
    del number
    small = folder / "small"
    small.mkdir()
    try:
        with _small_disk(small, "128k"):
            confide.Ledger(small / "ledger.db", limit=1e6)
            refused = _until_refused(small)
            spent, n_models = _checked(small)
            for model in sorted(small.glob("model-*.json"))[: n_models // 2]:
                model.unlink()
            _fit(confide.Ledger(small / "ledger.db"))
            if float(confide.Ledger(small / "ledger.db").spent().epsilon) != spent + _EPSILON:
                raise Broken("a charge after there was room again is not in the ledger")
    except PermissionError:
        return "NOT TRIED: it needs the right to mount a file system;"
    return f"full after {n_models} models ({refused}), and the ledger goes on when there is room;"


def _until_refused(folder: Path) -> str:
    """Fit and save until an error, which must be one of ours."""
    for number in range(10**4):
        try:
            _fit(confide.Ledger(folder / "ledger.db")).save(folder / f"model-{number}.json")
        except confide.ConfideError as error:
            return type(error).__name__
    raise Broken("the fault never showed")


@contextlib.contextmanager
def _few_descriptors(free: int) -> Iterator[None]:
    """As many files open as the process may have, but for a few."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(before[0], 256), before[1]))
    taken: list[int] = []
    with contextlib.suppress(OSError):
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    for _ in range(free):
        os.close(taken.pop())
    try:
        yield
    finally:
        for one in taken:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def descriptors(folder: Path, number: int) -> str:
    """Fit when few more files can be opened: none to ten."""
    del number
    confide.Ledger(folder / "ledger.db", limit=1e6)
    ledger, returned, refused = confide.Ledger(folder / "ledger.db"), 0, 0
    for free in range(11):
        with _few_descriptors(free):
            try:
                _fit(ledger).save(folder / f"model-{free}.json")
                returned += 1
            except confide.ConfideError:
                refused += 1
        spent, _ = _checked(folder, returned)
    return f"{refused} of 11 fits refused, {spent / _EPSILON:.0f} charged, {returned} returned;"


def _fit_in_little_memory(folder: Path, more: int) -> None:
    rows = np.random.default_rng(2).uniform(-0.1, 0.1, size=(400_000, 20))
    labels = (rows[:, 0] > 0).astype(int)
    ledger = confide.Ledger(folder / "ledger.db")
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more * 2**20,) * 2)
    model = confide.LogisticRegression(_EPSILON, classes=[0, 1], ledger=ledger).fit(rows, labels)
    model.save(folder / f"model-{more}.json")


def memory(folder: Path, number: int) -> str:
    """Fit a table for which there is little memory, in processes of their own: some libraries end a process without any."""
    del number
    if not Path("/proc/self/statm").exists():
        return "NOT TRIED: it needs Linux;"
    confide.Ledger(folder / "ledger.db", limit=1e6)
    limits = (0, 1, 2, 4, 8, 16, 32, 64, 128, 1024)
    for more in limits:
        child = _FORK.Process(target=_fit_in_little_memory, args=(folder, more))
        with Path(os.devnull).open("w", encoding="ascii") as nowhere, contextlib.redirect_stderr(nowhere):
            child.start()
            child.join()
        spent, n_models = _checked(folder)
    return f"{len(limits)} fits, {spent / _EPSILON:.0f} charged, {n_models} models saved;"


class _Clock:
    """A clock that shows one time."""

    def __init__(self, moment: float) -> None:
        self._moment = moment

    def now(self, zone: dt.timezone) -> dt.datetime:
        """The time that it shows."""
        return dt.datetime.fromtimestamp(self._moment, zone)

    def fromisoformat(self, text: str) -> dt.datetime:
        return dt.datetime.fromisoformat(text)


def clock(folder: Path, number: int) -> str:
    """Charge while the clock jumps by years."""
    del number
    confide.Ledger(folder / "ledger.db", limit=1e6)
    times = (0.0, 4e9, 1.0, 2e9, -1.0)
    for moment in times:
        with mock.patch("confide.accounting.records.datetime", _Clock(moment)):
            _fit(confide.Ledger(folder / "ledger.db"))
    spent, _ = _checked(folder, len(times))
    if spent != len(times) * _EPSILON:
        raise Broken(f"{len(times)} charges are {spent / _EPSILON}")
    years = {str(time)[:4] for time in confide.Ledger(folder / "ledger.db").entries()["time"]}
    if years != {"1969", "1970", "2033", "2096"}:
        raise Broken(f"the ledger shows other years than the clock did: {years}")
    return f"{len(times)} charges at times from 1969 to 2096 are all there, in the order in which they were made;"


def sharing(folder: Path, number: int) -> str:
    """Charge one ledger from many processes and threads for so many seconds, and then up to its limit."""
    size = {"processes": shared_ledger.PROCESSES, "threads": shared_ledger.THREADS}
    return "; ".join(shared_ledger.trials(folder, **size, seconds=number)) + ";"


FAULTS: dict[str, Callable[[Path, int], str]] = {
    "kills": kills, "studies": studies, "finishing": finishing, "disk": disk, "descriptors": descriptors, "memory": memory,
    "clock": clock, "sharing": sharing,
}  # fmt: skip

if __name__ == "__main__":
    main()
