"""Messages between parties: named arrays in a ZIP archive without compression and without pickle, read within bounds.

A message may come from somebody who means harm. So nothing of it runs, its length is bounded before it is read, and no part
of it is larger in memory than in the message.
"""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Mapping
from typing import Any, Protocol
from zipfile import ZIP_STORED, ZipFile

import numpy as np
from numpy.lib import format as npy

from confide.erm.declared_losses import asked
from confide.errors import InputError

MOST_BYTES_BESIDES_NUMBERS = 2**20
"""Length of names, headers and digests of a message: far more than any message of confide has."""
_BYTES_OF_A_NUMBER = 8
_ENDING = ".npy"
_MOST_BYTES_OF_DIRECTORY = 2**16
"""Length of the list of the members of an archive: some hundreds of members, and messages of confide have a few."""
_END, _LONG_END = "<4s4H2LH", "<4sQ2H2L4Q"
"""The last record of an archive, and the one that stands before it in an archive of more than 2 GB, as in ZIP's APPNOTE."""
_LEFT = "a party left, or sent what cannot be understood. Nothing is released; what was charged stays charged."


class Connection(Protocol):
    """One end of a connection between two processes."""

    def send_bytes(self, message: bytes, /) -> None:
        """Send one message."""

    def recv_bytes(self, maxlength: int | None = None, /) -> bytes:
        """Wait for one message."""


def packed(**arrays: Any) -> bytes:
    """A message of these arrays."""
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def send(connection: Connection, message: bytes) -> None:
    """Send a message.

    Raises
    ------
    InputError
        If the other side left, or the connection was cut.
    """

    def sent() -> bool:
        connection.send_bytes(message)
        return True

    # A connection of the user's own may raise anything, and show sums in it.
    if asked(sent, None) is None:
        raise InputError(_LEFT)


def received(connection: Connection, *names: str, n_numbers: int, may_end: bool = True) -> Mapping[str, Any]:
    """The arrays of the next message, at least those of these names; none, if it is the empty message, which ends.

    Parameters
    ----------
    connection : where it comes from
    names : the arrays that must be there
    n_numbers : how many numbers it may hold
    may_end : whether it may be the empty message

    Raises
    ------
    InputError
        If the other side left, or the message is too long or cannot be understood.
    """
    longest = MOST_BYTES_BESIDES_NUMBERS + _BYTES_OF_A_NUMBER * n_numbers

    def unpacked() -> dict[str, Any]:
        message = connection.recv_bytes(longest)
        if len(message) > longest:  # a connection may overlook the limit
            raise ValueError
        return _unpacked(message)

    content: dict[str, Any] | None = asked(unpacked, None)
    if content is None or not (content.keys() >= set(names) or (may_end and not content)):
        raise InputError(_LEFT)
    return content


def _unpacked(message: bytes) -> dict[str, Any]:
    """The arrays of an archive. Raises one of several errors if it is not one that `packed` makes."""
    found: dict[str, Any] = {}
    _refuse_long_directory(message)
    with ZipFile(io.BytesIO(message)) as archive:
        members = archive.infolist()
        # Members that lie within each other would together be longer than the message. They are counted before one is read.
        if sum(member.file_size for member in members) > len(message):
            raise ValueError
        for member in members:
            if member.compress_type != ZIP_STORED or not member.filename.endswith(_ENDING):
                raise ValueError
            found[member.filename.removesuffix(_ENDING)] = _array(archive.read(member))
        if len(found) != len(members):
            raise ValueError
    return found


def _refuse_long_directory(message: bytes) -> None:
    """Raise ValueError or struct.error for a list of members that is longer than that of any message of confide."""
    end, long_end = struct.calcsize(_END), struct.calcsize(_LONG_END)
    mark, *_, size, _, _ = struct.unpack(_END, message[-end:])
    locator = message[-end - 20 : -end]
    if locator.startswith(b"PK\x06\x07"):
        size = max(size if size != 2**32 - 1 else 0, struct.unpack(_LONG_END, message[-end - 20 - long_end : -end - 20])[8])
    if mark != b"PK\x05\x06" or size > _MOST_BYTES_OF_DIRECTORY:
        raise ValueError


def _array(content: bytes) -> Any:
    """The array of one member. NumPy's own reader would reserve memory for any shape that a header claims."""
    stream = io.BytesIO(content)
    version = npy.read_magic(stream)
    if version != (1, 0):
        raise ValueError
    shape, in_columns, dtype = npy.read_array_header_1_0(stream)
    start = stream.tell()
    if dtype.hasobject or dtype.itemsize == 0 or min(shape, default=0) < 0:
        raise ValueError
    if math.prod(shape) * dtype.itemsize != len(content) - start:
        raise ValueError
    # A copy, because sums are added up in place.
    return np.frombuffer(content, dtype, offset=start).reshape(shape, order="F" if in_columns else "C").copy()
