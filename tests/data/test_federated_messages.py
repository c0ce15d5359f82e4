"""Messages between parties: what is packed is received; nothing in them runs or takes more memory than their length."""

from __future__ import annotations

import io
import tracemalloc

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


def member(shape, dtype="<f8", content=b""):
    """An array in NumPy's format whose header claims this shape and type."""
    stream = io.BytesIO()
    npy.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": False, "shape": shape})
    return stream.getvalue() + content


def named(*names):
    """How a message begins that has arrays of these names."""
    stream = io.BytesIO()
    np.save(stream, np.array(names))
    return stream.getvalue()


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
        b"no message",
        packed(order=np.array(1))[:-5],
        packed(order=np.array(1)) + b"more",
        packed(order=np.array(1)),
        named("weights") + member((10**12,)),
        named("weights") + member((10**12, 10**12)),
        named("weights") + member((2, 3), content=b"\0" * 40),
        named("weights") + member((-2, -3), content=b"\0" * 48),
        named("weights") + member((2,), "|O", b"\0" * 16),
        named("weights") + member((5,), "<U0"),
        named("weights") + b"\x93NUMPY\x09\x00",
        named("weights"),
        named("weights", "weights") + 2 * member((1,), content=bytes(8)),
        member((1,), content=bytes(8)) + member((1,), content=bytes(8)),
        packed(weights=np.zeros(MOST_BYTES_BESIDES_NUMBERS // 8 + 6)),
    ],
)
def test_any_other_message_is_refused_in_one_line(message):
    """Cut short, without the expected array, with a false header, with objects, with names twice, or too long."""
    with pytest.raises(InputError, match=r"^a party left, or sent what cannot be understood\..*$"):
        received(Wire(message), "weights", n_numbers=3)


def many(n_names):
    """A message that claims to hold so many arrays, and holds as many."""
    return packed(**{f"w{number}": np.zeros(1) for number in range(n_names)})


@pytest.mark.parametrize("message", [many(101), many(2000), named(*(str(i) for i in range(10**5)))], ids=len)
def test_too_many_arrays_are_refused_before_they_are_read(message):
    """Their names and headers would be larger in memory than the message."""
    tracemalloc.start()
    with pytest.raises(InputError, match="cannot be understood"):
        received(Wire(message), n_numbers=10**6)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * len(message) + 2**18
    assert len(received(Wire(many(100)), n_numbers=100)) == 100


def test_a_request_may_have_as_many_problems_as_a_fit_has_classes():
    """The bound on a request's length is not below what a fit sends."""
    assert _MOST_PROBLEMS == MOST_CLASSES
