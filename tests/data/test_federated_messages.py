"""Messages between parties: what is packed is received; nothing in them runs or takes more memory than their length."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
from numpy.lib import format as npy

from confide.data.federated import _MOST_PROBLEMS, MOST_BYTES_BESIDES_NUMBERS, packed, received
from confide.errors import InputError
from confide.intake.targets import MOST_CLASSES


class Wire:
    """A connection that holds one message and overlooks the limit of its length, as a careless one might."""

    def __init__(self, message):
        self.message = message

    def recv_bytes(self, maxlength=None):
        return self.message


def archive(*members, compression=zipfile.ZIP_STORED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as written:
        for name, content in members:
            written.writestr(name, content)
    return stream.getvalue()


def member(shape, dtype="<f8", content=b""):
    """An array in NumPy's format whose header claims this shape and type."""
    stream = io.BytesIO()
    npy.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": False, "shape": shape})
    return stream.getvalue() + content


def test_what_was_packed_is_received():
    """Numbers, texts and empty arrays, in their shapes and types; they may be written to."""
    numbers = {"weights": np.arange(6.0).reshape(2, 3), "order": np.array(2), "none": np.zeros((0, 3))}
    sent = numbers | {"agreed": np.array(["a", "bc"])}
    found = received(Wire(packed(**sent)), *sent, n_numbers=6)
    assert found.keys() == sent.keys()
    for name, array in sent.items():
        assert found[name].dtype == array.dtype
        assert np.array_equal(found[name], array)
        assert found[name].flags.writeable
    in_columns = np.asfortranarray(sent["weights"])
    assert np.array_equal(received(Wire(packed(weights=in_columns)), n_numbers=6)["weights"], in_columns)


def test_the_empty_message_ends():
    """It holds no array, whatever names are expected."""
    assert received(Wire(packed()), "weights", n_numbers=0) == {}
    with pytest.raises(InputError, match="a party left"):
        received(Wire(packed()), "weights", n_numbers=0, may_end=False)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"no archive",
        packed(order=np.array(1))[:-5],
        packed(order=np.array(1)),
        archive(("weights.npy", member((10**12,)))),
        archive(("weights.npy", member((2, 3), content=b"\0" * 40))),
        archive(("weights.npy", member((-2, -3), content=b"\0" * 48))),
        archive(("weights.npy", member((2,), "|O", b"\0" * 16))),
        archive(("weights.npy", member((5,), "<U0"))),
        archive(("weights", member((1,), content=b"\0" * 8))),
        archive(("weights.npy", b"\x93NUMPY\x09\x00")),
        archive(("weights.npy", b"")),
        archive(("weights.npy", member((1000,), content=bytes(8000))), compression=zipfile.ZIP_DEFLATED),
        packed(weights=np.zeros(MOST_BYTES_BESIDES_NUMBERS // 8 + 6)),
    ],
)
def test_any_other_message_is_refused_in_one_line(message):
    """Cut short, without the expected array, with a false header, with objects, compressed, or too long."""
    with pytest.raises(InputError, match=r"^a party left, or sent what cannot be understood\..*$"):
        received(Wire(message), "weights", n_numbers=3)


def nested(n_members, n_numbers):
    """An archive each of whose members holds all that come after it, as its numbers."""
    content, offsets, names = bytes(8 * n_numbers), [], []
    for number in range(n_members):
        data = member((len(content),), "|u1", content)
        names.append(f"w{number:06d}.npy".encode())
        head = struct.pack(
            "<4s5H3L2H", b"PK\x03\x04", 20, 0, 0, 0, 0, zlib.crc32(data), len(data), len(data), len(names[-1]), 0
        )
        content = head + names[-1] + data
        offsets.append((len(content), zlib.crc32(data), len(data)))
    entries = b"".join(
        struct.pack("<4s6H3L5H2L", b"PK\x01\x02", 20, 20, 0, 0, 0, 0, crc, size, size, len(name), 0, 0, 0, 0, 0,
                    len(content) - start) + name
        for name, (start, crc, size) in zip(names, offsets, strict=True)
    )  # fmt: skip
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, n_members, n_members, len(entries), len(content), 0)
    return content + entries + end


def many(n_members):
    return archive(*((f"w{number}.npy", member((1,), content=bytes(8))) for number in range(n_members)))


@pytest.mark.parametrize("message", [nested(100, 10_000), many(2000)], ids=["nested", "many"])
def test_members_that_are_nested_or_too_many_are_refused_before_they_are_read(message):
    """An archive can give the same bytes to many members, and would be larger in memory than the message."""
    tracemalloc.start()
    with pytest.raises(InputError, match="cannot be understood"):
        received(Wire(message), n_numbers=10**6)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * len(message) + 2**18


def test_a_request_may_have_as_many_problems_as_a_fit_has_classes():
    """The bound on a request's length is not below what a fit sends."""
    assert _MOST_PROBLEMS == MOST_CLASSES
