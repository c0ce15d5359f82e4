"""One run of a study at a time: a lock on a file beside its state, which the system gives back when the run ends or dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from confide.errors import FileError, StudyError
from confide.studies.study import Study


@contextmanager
def only_run(study: Study) -> Iterator[None]:
    """Hold the lock of a study during the block.

    The file of the lock stays: if it were removed, two runs could each hold a lock on a file of this name.

    Raises
    ------
    StudyError
        If another run holds it. It is not waited for.
    FileError
        If the lock cannot be made.
    """
    place = study.state_path.with_name(f"{study.state_path.name}.lock")
    try:
        handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise FileError(f"cannot write {place}: {error.strerror}.") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StudyError(f"{study.path}: another run of this study is going on. Wait until it has ended.") from None
        except OSError as error:
            raise FileError(f"cannot lock {place}: {error.strerror}. Keep the study in a folder on a local disk.") from None
        try:
            yield
        finally:
            # A process that was forked meanwhile would keep the lock if the file were only closed.
            fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)
