"""A system without `fcntl`, played on this one: locks by `msvcrt`, no forks, and no file that is open can be removed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from confide import Ledger, PureDP
from confide.threads import lock

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="plays Windows by locks and lists of open files of Linux")

WINDOWS = r'''
import fcntl, os, signal, stat, struct, sys, types
# What others do where they are imported is theirs.
import numpy, scipy.special, sqlite3, threadpoolctl

def locking(handle, mode, n):
    """A lock of this opening, from where it is; refused as Windows refuses it."""
    kind, begin = (fcntl.F_UNLCK, fcntl.F_WRLCK)[mode == 2], os.lseek(handle, 0, os.SEEK_CUR)
    assert mode in (0, 2) and 0 < begin < 2**31 and begin != 2**30
    try:
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, begin, n, 0))
    except OSError:
        raise OSError(13, "Permission denied") from None

flags, system = fcntl.fcntl, vars(os).copy()
sys.modules["msvcrt"] = types.ModuleType("msvcrt")
vars(sys.modules["msvcrt"]).update(locking=locking, LK_UNLCK=0, LK_NBLCK=2)
for name in ("fcntl", "pwd", "grp", "resource", "termios"):
    sys.modules[name] = None
for name in ("fork", "register_at_fork", "getuid", "geteuid", "O_CLOEXEC", "O_NOFOLLOW", "O_DIRECTORY", "kill", "uname"):
    vars(os).pop(name)
signal.Signals._member_map_.pop("SIGHUP")

def is_open(path, dir_fd=None):
    place = os.path.realpath(path if dir_fd is None else f"/proc/self/fd/{dir_fd}/{path}")
    return any(os.path.realpath(f"/proc/self/fd/{each}") == place for each in os.listdir("/proc/self/fd"))

def refuse(*places, **where):
    if any(is_open(place, **where) for place in places):
        raise PermissionError(13, "The process cannot access the file because it is being used by another process")

def opened(path, *others, **named):
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied")
    return system["open"](path, *others, **named)

def removed(path, *, dir_fd=None):
    refuse(path, dir_fd=dir_fd)
    system["unlink"](path, dir_fd=dir_fd)

def renamed(before, after):
    refuse(before, after)
    if os.path.lexists(after):
        raise FileExistsError(17, "Cannot create a file when that file already exists")
    system["rename"](before, after)

def replaced(before, after):
    refuse(before, after)
    system["replace"](before, after)

def synced(handle):
    if flags(handle, 3) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(9, "Bad file descriptor")
    system["fsync"](handle)

import shutil
shutil._use_fd_functions = False  # a folder cannot be opened
os.open, os.unlink, os.remove, os.rename, os.replace, os.fsync = opened, removed, removed, renamed, replaced, synced
import confide
from confide import threads
assert threads.IS_WINDOWS
'''

EVERYTHING = (
    "import joblib, pandas, pyarrow, sklearn.linear_model\n"
    + WINDOWS
    + r"""
import gc, tempfile
from pathlib import Path
from confide.data.spooled import spooled
from confide.errors import LedgerError, StudyError
from confide.studies.progress import only_run

ledger = confide.Ledger("study.db", limit=3.0)
assert confide.Ledger("study.db", limit=3.0).identity == ledger.identity
x = numpy.random.default_rng(0).uniform(-0.5, 0.5, size=(500, 2))
model = confide.LogisticRegression(1.0, ledger=ledger).fit(x, x[:, 0] > 0.0)
for _ in range(2):
    model.save("model.json", overwrite=True)
assert numpy.array_equal(confide.load("model.json").coef_, model.coef_)
assert b"\r" not in Path("model.json").read_bytes()
ledger.charge(0.5)
assert confide.Ledger("study.db").spent() == confide.PureDP(1.5) and ledger.verify() == 2
os.link("study.db", "other.db")
for name in ("study.db", "other.db"):
    try:
        confide.Ledger(name)
    except LedgerError as error:
        assert "has a second name" in str(error)
    else:
        raise AssertionError
os.unlink("other.db")

kept = spooled("rows.csv", "the rows", lambda stream: stream.write(b"a\nb"))
assert kept.read_bytes() == b"a\nb"
folder = kept.parent
del kept
gc.collect()
assert not folder.exists()

study = types.SimpleNamespace(path=Path("study.toml"), state_path=Path("study.state.json"))
with only_run(study):
    try:
        with only_run(study):
            raise AssertionError
    except StudyError as error:
        assert "another run" in str(error)
with only_run(study):
    print("done")
"""
)

HOLD = (
    WINDOWS
    + r"""
with confide.Ledger("study.db")._records.session(writing=True):
    print("held", flush=True)
    sys.stdin.read()
"""
)

CHARGE = (
    WINDOWS
    + r"""
from confide.accounting import file_storage
file_storage._PATIENCE = 0.5
for _ in range(int(sys.argv[2])):
    try:
        confide.Ledger(sys.argv[1]).charge(0.25)
    except confide.errors.LedgerError as error:
        print(error)
        break
    else:
        print("charged", flush=True)
"""
)


def windows(code, *arguments):
    """A process on what looks like Windows."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process):
    """What it printed."""
    printed, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return printed


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder in which processes of these tests work."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_a_fit_a_charge_and_what_is_written_work_without_posix():
    """Import, a new ledger, a fit that charges it, a model that is replaced, rows in a private file, a study's lock."""
    assert ended(windows(EVERYTHING)) == "done\n"
    assert Ledger("study.db").spent() == PureDP(1.5)


def test_two_names_of_a_ledger_have_one_lock_without_posix():
    """Whoever comes by another name waits until the session ends, or its process is killed; no charge is lost."""
    Ledger("study.db", limit=10.0)
    with windows(HOLD) as holder:
        assert holder.stdout.readline() == "held\n"
        Path("study.db").rename("moved.db")
        assert "is held by another process" in ended(windows(CHARGE, "moved.db", "1"))
        holder.kill()
        holder.wait()
        assert ended(windows(CHARGE, "moved.db", "1")) == "charged\n"
    assert Ledger("moved.db").verify() == 1


def test_what_was_charged_before_a_kill_stays_without_posix():
    """Two processes charge one ledger, and one of them is killed: whatever either was granted is there."""
    Ledger("study.db", limit=1000.0)
    with windows(CHARGE, "study.db", "1000") as one:
        other = windows(CHARGE, "study.db", "20")
        for _ in range(10):
            assert one.stdout.readline() == "charged\n"
        one.kill()
        granted = 10 + len(one.communicate()[0].splitlines())
    assert ended(other) == "charged\n" * 20
    assert Ledger("study.db").verify() - granted - 20 in (0, 1)  # the last charge may not have been told


def test_a_lock_that_somebody_has_is_one_word_on_every_system(tmp_path):
    """Of the process or of an opening; another opening is kept out until it is given back."""
    place = tmp_path / "locked"
    with place.open("ab") as one, place.open("ab") as other:
        lock(one.fileno())
        with pytest.raises(BlockingIOError):
            lock(other.fileno())
        lock(one.fileno(), give_back=True)
        lock(other.fileno())
