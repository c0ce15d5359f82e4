"""One run of a study at a time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from confide.errors import FileError, StudyError
from confide.studies.progress import only_run
from tests.studies.examples import study_of

HOLD = """
import sys
from confide.threads import lock
with open(sys.argv[1], "a") as held:
    lock(held.fileno())
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_run_is_refused_until_the_first_has_ended(tmp_path):
    """Also when the first ended with an error."""
    study = study_of(tmp_path)
    with only_run(study), pytest.raises(StudyError, match="another run of this study is going on"), only_run(study):
        pass
    with pytest.raises(KeyboardInterrupt), only_run(study):
        raise KeyboardInterrupt
    with only_run(study):
        pass


def test_a_process_that_dies_gives_the_lock_back(tmp_path):
    study = study_of(tmp_path)
    place = study.state_path.with_name("study.state.json.lock")
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        with pytest.raises(StudyError, match="another run"), only_run(study):
            pass
        process.kill()
        process.wait()
        with only_run(study):
            pass


def test_a_lock_that_cannot_be_made_is_named(tmp_path):
    study = study_of(tmp_path)
    study.state_path.with_name("study.state.json.lock").mkdir()
    with pytest.raises(FileError, match=r"cannot write .*lock"), only_run(study):
        pass
