"""Output into a pipe whose reader has gone, as of `confide fit | head`: it is dropped, and the command goes on to its end.

A fit has been charged when it prints its results, so it must not end where nobody reads them.
"""

from __future__ import annotations

import io
from typing import Any, TextIO


class _OpenEnded(io.FileIO):
    """A descriptor that takes all that is written to it, also if nobody reads it any more."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            return len(data)


def unbroken(stream: TextIO) -> TextIO:
    """The stream, such that writing to it never fails because its reader has gone.

    A stream without a descriptor, as in tests, is given back as it is.
    """
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError, AttributeError):
        return stream
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_OpenEnded(descriptor, "wb", closefd=False)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=True,
    )
