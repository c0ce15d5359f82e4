"""What a source of checked rows can do beside sums, and what it refuses in words before anything is charged."""

from __future__ import annotations

import numpy as np
import pytest

from confide.accounting.ledger import Ledger
from confide.data.arrays import PLACES, ArrayBlocks, CheckedSource, MemorySource
from confide.data.federated import FederatedSource, digest_of_sum
from confide.data.partitions import PartitionedSource
from confide.erm.losses import LogisticLoss
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.errors import InputError, InputTypeError, ParameterError
from confide.estimators.logistic import LogisticRegression

ROW_SUM = RowSum(LogisticLoss(), BallBound(1.0), 0.0, 2)


class Silent:
    """A connection on which nothing may pass."""

    def send_bytes(self, message):
        raise AssertionError("something was asked for")

    def recv_bytes(self, maxlength=None):
        raise AssertionError("something was waited for")


class Plain(CheckedSource):
    """A source that says nothing of itself."""


FEDERATED = FederatedSource((Silent(),), 2, (10,), frozenset([digest_of_sum(ROW_SUM)]))
PARTITIONED = PartitionedSource(lambda task: None, None, ())


@pytest.mark.parametrize("source", [Plain(), FEDERATED, PARTITIONED], ids=["defaults", "parties", "partitions"])
@pytest.mark.parametrize(
    "use",
    [lambda source: source.taken(np.arange(2)), lambda source: list(source.in_memory("scoring"))],
    ids=["divide", "score"],
)
def test_rows_that_are_not_read_here_are_neither_divided_nor_scored(source, use):
    """The message says what to give instead; nothing is asked of a cluster or of a party."""
    with pytest.raises(InputTypeError, match="Give rows in memory"):
        use(source)


def test_most_sources_give_every_sum_and_assume_nothing_of_their_place():
    """Rows in memory, for instance."""
    for source in (Plain(), MemorySource(ArrayBlocks(np.eye(2)), np.array([1, -1], dtype=np.int8))):
        source.refuse_sums(lambda: (ROW_SUM,), with_moments=True)
        assert (source.place, PLACES[source.place]) == ("here", "")


def test_sources_whose_rows_others_hold_say_what_is_assumed_of_them():
    """A sentence for the guarantee."""
    assert "exactly one of the parties" in PLACES[FEDERATED.place]
    assert "exactly one partition" in PLACES[PARTITIONED.place]


def test_parties_refuse_moments_and_sums_that_were_not_agreed():
    """Without a message to any of them; the sums that were agreed are accepted."""
    FEDERATED.refuse_sums(lambda: (ROW_SUM,), with_moments=False)
    with pytest.raises(ParameterError, match="no sums for intervals"):
        FEDERATED.refuse_sums(lambda: (ROW_SUM,), with_moments=True)
    other = RowSum(LogisticLoss(), BallBound(2.0), 0.0, 2)
    with pytest.raises(InputError, match="agrees to other sums"):
        FEDERATED.refuse_sums(lambda: (ROW_SUM, other), with_moments=False)


def test_a_fit_asks_its_source_for_moments_before_the_charge(monkeypatch):
    """A source that refuses its sums costs nothing."""
    asked, ledger = [], Ledger(limit=100.0)

    def refuse(self, row_sums, *, with_moments):
        asked.append((len(row_sums()), with_moments))
        raise ParameterError("these sums are not given")

    monkeypatch.setattr(MemorySource, "refuse_sums", refuse)
    X = np.random.default_rng(0).normal(size=(100, 2))
    for share in (0.0, 0.3):
        with pytest.raises(ParameterError, match="these sums are not given"):
            LogisticRegression(50.0, inference_share=share, classes=[0, 1], ledger=ledger).fit(X, X[:, 0] > 0)
    assert [moments for _, moments in asked] == [False, True]
    assert min(number for number, _ in asked) >= 1
    assert len(ledger.entries()) == 0
