"""Rows larger than memory. Every pass reads them again, in pieces of a few blocks each.

Pieces are cut so that they contain the same blocks as `MemorySource` makes, however the rows are spread over files and row
groups. So a sum over a stream adds the same numbers in the same order as the sum over the same rows in memory, and is equal
to it to the bit.

The first pass checks the rows, before the budget is charged. Later passes refuse no cell: one that cannot be used counts as
missing, or as zero. So no refusal after the charge depends on what a row holds.
"""

from __future__ import annotations

import hashlib
import queue
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from confide.array_types import Array, Indices, Targets, Weights
from confide.compiled.sums import by_kernel
from confide.data.arrays import (
    ROWS_IN_RUN,
    Blocks,
    CheckedSource,
    EncodedBlocks,
    MappedBlocks,
    MemorySource,
    RowMapChange,
    most_in_sample,
    rows_in_block,
    rows_in_group,
    rows_in_sparse_block,
    sample_stride,
    sampled_positions,
    sum_over_groups,
)
from confide.data.files import changed
from confide.erm.row_sums import Totals
from confide.erm.source import BlockwiseSum
from confide.errors import FileError, wording
from confide.features.canonical_labels import Label
from confide.features.cells import NumberTarget, positions_of, read_labels
from confide.features.codes import Codes
from confide.features.encoder import Encoder
from confide.features.forms import RowMap
from confide.features.schema import RowWeight
from confide.threads import Pass, Progress

_PIECE_BYTES = 2**25
"""About how much memory the raw columns of one piece, or the scores of its rows, take as doubles (32 MiB), if one group of
blocks takes no more.

Smaller pieces would lose more time to calls for each column than to reading it."""
_READ_AHEAD = 1
"""How many items wait for whoever uses them, while the reading thread makes the next one. More of them would need memory and
save no time, unless one takes much longer than another."""


RawTables: TypeAlias = Callable[[Sequence[str], int], Iterator[Any]]
"""Gives raw rows as Arrow tables or record batches with the named columns, of about so many rows each where the format
allows it. Every call gives every row once, and always in the same order."""


@dataclass(frozen=True, slots=True)
class LabelledCodes:
    """Some rows as codes of a schema, with their labels (-1 and +1, or positions of classes) or targets. It holds data.

    Rows that have weights of their own come with these.
    """

    codes: Codes
    labels: Targets
    weights: Array | None = None

    @property
    def used(self) -> frozenset[str]:
        """Names of the columns in which some cell holds what the schema lists or bounds, or a weight above 0."""
        weight = self.codes.schema.weight
        if weight is None or self.weights is None or not self.weights.any():
            return self.codes.used
        return self.codes.used | {weight.column}

    @property
    def arrays(self) -> tuple[Any, ...]:
        """All arrays that it holds, in a fixed order."""
        return (*self.codes.columns, *self.codes.cells, *(() if self.weights is None else (self.weights,)), self.labels)

    def taken(self, which: Indices | slice) -> LabelledCodes:
        """A copy of some of the rows."""
        weights = None if self.weights is None else self.weights[which]
        return LabelledCodes(self.codes.taken(which), self.labels[which], weights)


@dataclass(frozen=True, slots=True)
class Reading:
    """How raw columns become blocks of rows and labels. It holds public facts alone, and can be pickled.

    Parameters
    ----------
    encoder : encodes columns by the schema, which must have a target unless `numbers` is given
    domain : the labels; of two labels, the first becomes -1
    class_weights : the weight of a row of each class, or None if every row counts 1
    fourier : a public map that is applied to encoded rows, or None
    numbers : the numbers that a regression predicts, or None if labels are predicted
    weighs : whether rows count by the weight of the schema, which it must have then
    single : whether blocks of rows are made in single precision, as in `EncodedBlocks`
    stored : whether blocks are for the compiled kernel
    block_rows, piece_rows : rows of one block and of one piece; 0 for the usual numbers
    atoms : those of each column in which some were looked for, once they are found; None before
    """

    encoder: Encoder
    domain: tuple[Label, ...]
    class_weights: tuple[float, ...] | None = None
    fourier: RowMap | None = None
    numbers: NumberTarget | None = None
    weighs: bool = False
    single: bool = False
    stored: bool = False
    block_rows: int = 0
    piece_rows: int = 0
    atoms: tuple[tuple[float, ...], ...] | None = None

    def remapped(self, change: RowMapChange) -> Reading:
        """The same with another map, or with None and blocks and pieces of as many rows; without a change, of their own."""
        made = None if change is None else change(self.fourier)
        sizes = (self.rows_in_block, self.rows_in_piece) if change is not None and made is None else (0, 0)
        return replace(self, fourier=made, block_rows=sizes[0], piece_rows=sizes[1])

    @property
    def names(self) -> tuple[str, ...]:
        """The raw columns that are read: those of the schema, then the weight, then the target."""
        target = self.numbers or self.encoder.schema.target
        weight = () if self._weight is None else (self._weight.column,)
        exposure = () if target is None or target.exposure is None else (target.exposure.column,)
        return (*self.encoder.schema.raw_names, *weight, *exposure, *(() if target is None else (target.column,)))

    @property
    def _weight(self) -> RowWeight | None:
        return self.encoder.schema.weight if self.weighs else None

    @property
    def n_features(self) -> int:
        """Number of columns of a block."""
        return self.encoder.n_features if self.fourier is None else self.fourier.n_features

    @property
    def rows_in_block(self) -> int:
        """Rows of one block."""
        is_coded = self.fourier is None and self.encoder.codes_rows
        return self.block_rows or (rows_in_sparse_block if is_coded else rows_in_block)(self.n_features)

    @property
    def rows_in_piece(self) -> int:
        """Rows of one piece: a whole number of groups of blocks, so that pieces cut no block."""
        is_coded = self.fourier is None and self.encoder.codes_rows
        # The domain stands for the scores of a row, of which there is at most one for each class.
        step, width = rows_in_group(self.n_features, sparse=is_coded), max(len(self.names), len(self.domain))
        return self.piece_rows or step * max(1, _PIECE_BYTES // (8 * width * step))

    def pieces(self, tables_of: RawTables, *, refuse: bool) -> Iterator[LabelledCodes]:
        """All rows, in pieces of `rows_in_piece` rows and a shorter last one.

        With `refuse`, a cell that cannot be used raises an InputError; without, it counts as missing or as zero.
        """
        for tables in cut_to_size(tables_of(self.names, self.rows_in_piece), self.rows_in_piece):
            pieces = [self.piece(table, refuse=refuse) for table in tables]
            yield pieces[0] if len(pieces) == 1 else concatenated(pieces)

    def piece(self, table: Any, *, refuse: bool) -> LabelledCodes:
        """The rows of a frame or table, with or without refusing cells that cannot be used."""
        given = table[self.names[-1]]
        labels: Targets
        if self.numbers is not None:
            labels = self.numbers.read(given, table=table, refuse=refuse)
        else:
            labels = read_labels(given, *self.domain, refuse=refuse, what=f'column "{self.names[-1]}"')
        weight = self._weight
        weights = None if weight is None else weight.read(table[weight.column], refuse=refuse)
        return LabelledCodes(self.encoder.read(table, refuse=refuse), labels, weights)

    def refuse_unused(self, used: frozenset[str]) -> None:
        """Refuse the checked rows if a column is used in none of them, or all weights are 0. See `Encoder.refuse_unused`.

        Parameters
        ----------
        used : the columns that some piece of the rows uses
        """
        self.encoder.refuse_unused(used)
        if self._weight is not None and self._weight.column not in used:
            raise self._weight.refusal_of_zeros()

    def source(self, piece: LabelledCodes) -> MemorySource:
        """A source in memory of the rows of one piece."""
        row_weights = weights_by_class(piece.labels, self.class_weights)
        if piece.weights is not None:
            row_weights = piece.weights if row_weights is None else row_weights * piece.weights
        codes = piece.codes if self.atoms is None else self.encoder.with_atoms(piece.codes, self.atoms)
        encoded = EncodedBlocks(self.encoder, codes, self.single, rows_in_block=self.block_rows)
        blocks = (encoded.as_stored(shortened=False) if self.stored else None) or encoded
        return memory_source(blocks, piece.labels, row_weights, self.fourier)


def concatenated(pieces: Sequence[LabelledCodes]) -> LabelledCodes:
    """The rows of several pieces as one piece."""
    codes = [piece.codes for piece in pieces]
    both = ([code.columns for code in codes], [code.cells for code in codes])
    columns, cells = (tuple(np.concatenate(parts) for parts in zip(*arrays, strict=True)) for arrays in both)
    used = frozenset[str]().union(*(code.used for code in codes))
    weights = [piece.weights for piece in pieces if piece.weights is not None]
    labels = np.concatenate([piece.labels for piece in pieces])
    whole = Codes(codes[0].schema, columns, used=used, cells=cells)
    return LabelledCodes(whole, labels, np.concatenate(weights) if weights else None)


def weights_by_class(labels: Any, class_weights: tuple[float, ...] | None) -> Array | None:
    """The weight of each row, which is the weight of its class, or None if all rows count 1."""
    return None if class_weights is None else np.asarray(np.array(class_weights)[positions_of(labels, len(class_weights))])


def memory_source(blocks: Blocks, labels: Targets, row_weights: Array | None, fourier: RowMap | None) -> MemorySource:
    """A source of rows in memory with their weights. If there is a public map, it is applied to the rows."""
    return MemorySource(blocks if fourier is None else MappedBlocks(blocks, fourier), labels, row_weights)


@dataclass(frozen=True, slots=True)
class StreamedSource(CheckedSource):
    """A `RowSource` over pieces that are read again in each pass.

    Parameters
    ----------
    pieces : begins a pass over all pieces
    reading : how pieces become blocks
    n_rows : the number of rows that passed the check
    kept : a sample of the rows, which was kept in memory during the check
    n_threads : how many threads share the groups of blocks; one more thread reads
    progress : called with the number of rows that a pass has used, or None for the callback of `confide.progress`
    """

    pieces: Callable[[], Iterator[LabelledCodes]]
    reading: Reading
    n_rows: int = field()  # without `field`, the property of the protocol would become the default value
    kept: KeptSample
    n_threads: int = 1
    progress: Progress | None = None

    @property
    def n_features(self) -> int:
        return self.reading.n_features

    def sample(self, n_rows: int) -> MemorySource:
        """About `n_rows` of the rows, the same as `MemorySource.sample` would take. For solvers, which are not trusted."""
        stride = sample_stride(self.n_rows, min(n_rows, most_in_sample(self.n_features)))
        import pyarrow as pa

        # What the pass before needed goes back to the system, as the sample needs about as much.
        pa.default_memory_pool().release_unused()
        picked = self.reading.source(self.kept.piece(stride))
        return picked.copied(np.arange(picked.n_rows))

    def taken(self, positions: Indices) -> StreamedSource:
        """A source of the rows at these positions, in the order of the stream. One pass over them keeps their sample."""
        pieces = partial(_rows_at, self.pieces, np.sort(positions), self.reading.rows_in_piece)
        kept = KeptSample(most_in_sample(self.n_features))
        for piece in pieces():
            kept.add(piece)
        return replace(self, pieces=pieces, n_rows=positions.size, kept=kept)

    def remapped(self, change: RowMapChange) -> StreamedSource:
        return replace(self, reading=self.reading.remapped(change))

    def with_atoms(self, atoms: tuple[tuple[float, ...], ...]) -> StreamedSource:
        return replace(self, reading=replace(self.reading, atoms=atoms))

    def in_single_precision(self) -> StreamedSource | None:
        """The same rows, encoded in single precision; None if they are coded or a public map makes doubles of them."""
        if self.reading.fourier or self.reading.encoder.codes_rows:
            return None
        return replace(self, reading=replace(self.reading, single=True))

    def as_stored(self, shortened: bool) -> StreamedSource | None:
        if shortened or self.reading.fourier or not self.reading.encoder.is_storable:
            return None
        return replace(self, reading=replace(self.reading, stored=True))

    def in_memory(self, purpose: str = "") -> Generator[MemorySource, None, None]:
        """All rows, one piece after the other. Raises FileError at the end if the number of rows has changed."""
        passing = Pass(purpose, self.progress) if purpose else None
        counted = 0
        # Another thread reads the next pieces in the meantime.
        for piece in read_ahead(self.pieces()):
            counted += piece.labels.size
            yield self.reading.source(piece)
            if passing is not None:
                passing.used(piece.labels.size)
        if counted != self.n_rows:
            raise changed("what holds the rows")

    def sum_over_rows(self, row_sum: BlockwiseSum, weights: Weights) -> Totals:
        # The pass is closed here, because whoever keeps an exception would also keep the reading thread alive.
        with closing(self.in_memory()) as pieces:
            # Each summing thread expands its blocks itself, so that a block is used while it is in the processor's cache.
            compiled = by_kernel(row_sum, len(weights), self.reading.rows_in_block)
            groups = (group for memory in pieces for group in memory.rows_for(compiled).groups())
            passing = Pass("training", self.progress)
            summed = sum_over_groups(compiled or row_sum, groups, self.n_features, weights, self.n_threads, passing)
            return row_sum.completed(summed)


def _rows_at(begin: Callable[[], Iterator[LabelledCodes]], positions: Indices, n_rows: int) -> Iterator[LabelledCodes]:
    """The rows at these positions of one pass, in new pieces of `n_rows` rows and a shorter last one.

    Because the new pieces have that size, they contain the same blocks as the same rows in memory.

    Parameters
    ----------
    begin : begins a pass over all pieces
    positions : positions of the wanted rows, in ascending order
    n_rows : number of rows of a new piece
    """
    start, waiting, n_waiting = 0, [], 0
    for piece in begin():
        stop = start + piece.labels.size
        first, last = np.searchsorted(positions, (start, stop))
        waiting.append(piece.taken(positions[first:last] - start))
        n_waiting += int(last - first)
        start = stop
        if n_waiting >= n_rows:
            whole = concatenated(waiting)
            cut = n_waiting - n_waiting % n_rows
            for begun in range(0, cut, n_rows):
                yield whole.taken(slice(begun, begun + n_rows))
            waiting, n_waiting = [whole.taken(slice(cut, None))], n_waiting - cut
    if n_waiting:
        yield concatenated(waiting)


def kept_rows(all_rows: RawTables, positions: Indices) -> RawTables:
    """The raw rows at some positions, in ascending order, among all rows."""

    def tables(names: Sequence[str], n_rows: int) -> Iterator[Any]:
        start = 0
        for table in all_rows(names, n_rows):
            stop = start + table.num_rows
            first, last = np.searchsorted(positions, (start, stop))
            yield table.take(positions[first:last] - start)
            start = stop

    return tables


class KeptSample:
    """A sample of the rows of a pass, kept in memory for solvers. `MemorySource.sample` would take the same rows.

    Parameters
    ----------
    most : about how many rows are kept at most
    """

    def __init__(self, most: int) -> None:
        self.stride = 1
        self._most, self._n_rows = most, 0
        self._kept: list[tuple[Indices, LabelledCodes]] = []

    def add(self, piece: LabelledCodes) -> None:
        """Add the sampled rows of the next piece, and thin out the rows kept so far if there are too many."""
        start, self._n_rows = self._n_rows, self._n_rows + piece.labels.size
        stride = sample_stride(self._n_rows, self._most)
        if stride > self.stride:
            thinned = ((np.flatnonzero(at // ROWS_IN_RUN % stride == 0), at, piece) for at, piece in self._kept)
            self._kept = [(at[which], piece.taken(which)) for which, at, piece in thinned]
            self.stride = stride
        picked = sampled_positions(start, self._n_rows, stride)
        # All rows of a piece need no copy.
        self._kept.append((picked, piece.taken(slice(None) if picked.size == piece.labels.size else picked - start)))

    def piece(self, stride: int = 1) -> LabelledCodes:
        """The rows that were kept and are in the sample of this stride, as one piece. One row must have been added."""
        if stride <= self.stride:
            return concatenated([piece for _, piece in self._kept])
        picked = ((np.flatnonzero(at // ROWS_IN_RUN % stride == 0), piece) for at, piece in self._kept)
        return concatenated([piece.taken(which) for which, piece in picked])


class PieceFile:
    """A temporary file that holds checked pieces, for any number of passes.

    The pieces are private data on a disk. The file has no name under which another process could open it, its permissions
    allow its owner alone to read it, and the system removes it when it is closed or when the process ends for any reason.

    Parameters
    ----------
    folder : the folder of the file; None for the system's folder of temporary files
    """

    def __init__(self, folder: Path | None) -> None:
        try:
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by `close`
        except OSError as error:
            raise FileError(f"cannot create a file in the cache: {error.strerror}. Give another or none.") from None
        self._starts: list[tuple[int, int]] = []
        """Where each piece begins, and in how many arrays it is."""
        self._reading = threading.Lock()
        self._like: Any = None

    def append(self, piece: LabelledCodes) -> None:
        """Write one piece at the end of the file."""
        self._like = piece.taken(slice(0))
        # Many columns would take longer one by one, so neighbours of one type are written together.
        together = [np.stack(list(run)) for _, run in groupby(piece.arrays, key=lambda array: array.dtype)]
        start = self._file.tell()
        try:
            for array in together:
                np.save(self._file, array, allow_pickle=False)
        except OSError as error:
            raise FileError(wording("cache is full", why=error.strerror)) from None
        self._starts.append((start, len(together)))

    def pieces(self) -> Iterator[LabelledCodes]:
        """All pieces, in order. Several passes may read at the same time: each seeks its own position, under a lock."""
        for start, n_arrays in self._starts:
            with self._reading:
                self._file.seek(start)
                together = [np.load(self._file, allow_pickle=False) for _ in range(n_arrays)]
            *columns, labels = (array for arrays in together for array in arrays)
            weights, codes = None if self._like.weights is None else columns.pop(), self._like.codes
            cells = tuple(columns[len(codes.columns) :])
            yield LabelledCodes(Codes(codes.schema, tuple(columns[: len(codes.columns)]), cells=cells), labels, weights)

    def close(self) -> None:
        """Close the file, which removes it."""
        self._file.close()


def cut_to_size(tables: Iterable[Any], n_rows: int) -> Iterator[list[Any]]:
    """The same rows in the same order, `n_rows` at a time, and fewer the last time.

    Each item is a list of tables. It has more than one table only where files hold a column in different types.
    """
    import pyarrow as pa

    waiting: list[Any] = []
    n_waiting = 0
    for given in tables:
        table = given if isinstance(given, pa.Table) else pa.Table.from_batches([given])
        while n_waiting + table.num_rows >= n_rows:
            taken = n_rows - n_waiting
            yield _concatenated_by_type([*waiting, table.slice(0, taken)])
            table, waiting, n_waiting = table.slice(taken), [], 0
        if table.num_rows:
            waiting.append(table)
            n_waiting += table.num_rows
    if n_waiting:
        yield _concatenated_by_type(waiting)


def _concatenated_by_type(tables: list[Any]) -> list[Any]:
    """The tables, with neighbours that have the same Arrow schema concatenated to one."""
    import pyarrow as pa

    return [pa.concat_tables(list(run)) for _, run in groupby(tables, key=lambda table: table.schema)]


Item = TypeVar("Item")


def read_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The same items, made by another thread while earlier ones are used. A generator is also closed in that thread."""
    ready: queue.Queue[Item | BaseException | None] = queue.Queue(_READ_AHEAD)
    stopped, user = threading.Event(), threading.get_ident()

    def put(item: Item | BaseException | None) -> None:
        while not stopped.is_set():
            with suppress(queue.Full):
                ready.put(item, timeout=0.1)
                return

    def work() -> None:
        # Floating-point warnings would depend on the data. NumPy keeps this setting for each thread separately.
        with np.errstate(all="ignore"):
            try:
                for item in items:
                    put(item)
                    if stopped.is_set():
                        return
                put(None)
            except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
                put(error)
            finally:
                if isinstance(items, Generator):
                    items.close()

    reader = threading.Thread(target=work, daemon=True)
    try:
        reader.start()
    except RuntimeError:  # the system has no thread left
        yield from items
        return
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
        # The garbage collector may run this in any thread. In the reading thread itself, or in a thread for which it waits,
        # `join` would never return.
        if threading.get_ident() == user:
            reader.join()


# Fingerprints of rows. They show whether a partition was the same when it was computed again.
#
# A fingerprint covers every byte of the arrays that sums are taken over. It is private data, as those sums are, and is not
# passed on.
#
# A cryptographic hash takes as long as the sums themselves (benchmarks/fingerprints.py). So the bytes are first shortened:
# each chunk of 1,024 words of 64 bits becomes two sums modulo 2^64, and only these sums are hashed:
#
#     sum_i a_i w_i    and    sum_i b_i h_i,    where w_i are the words, h_i their upper halves, and a and b are keys.
#
# Two different chunks have the same sums with probability at most 2^-33 over uniform keys. Proof: let upper halves differ,
# let d_i be their differences, and let j be an index with d_j != 0. Since |d_j| < 2^32, the largest power of two that
# divides d_j is at most 2^31. So for each value modulo 2^64, at most 2^31 of all b_j make b_j d_j equal to it, which is a
# share of 2^-33. If no upper half differs, some lower half does, and the same argument holds for a and the first sum. The
# keys are fixed: rows change by accident, and nobody chooses them against the keys.

_WORDS_IN_CHUNK = 1024
_CHUNKS_AT_ONCE = 32
"""So many chunks stay in the cache between the two sums."""
SIZE = 16
"""Number of bytes of a fingerprint."""
_KEYS = np.frombuffer(hashlib.shake_256(__name__.encode()).digest(16 * _WORDS_IN_CHUNK), "<u8").reshape(2, _WORDS_IN_CHUNK)


class Fingerprint:
    """The fingerprint of the arrays that are added to it: of their content, types, shapes and order."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=SIZE)

    def add(self, arrays: Iterable[np.ndarray[Any, Any]]) -> None:
        """Add more arrays of numbers."""
        for array in arrays:
            self._hash.update(f"{array.dtype.str}{array.shape}".encode())
            content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            whole = content.size - content.size % _KEYS[0].nbytes
            self._hash.update(_shortened(content[:whole]).tobytes())
            self._hash.update(content[whole:].tobytes())

    def digest(self) -> bytes:
        """The fingerprint of all that was added."""
        return self._hash.digest()


def _shortened(content: Any) -> Any:
    """The two sums of each chunk, (2, number of chunks), for bytes that are a whole number of chunks."""
    chunks = content.view("<u8").reshape(-1, _WORDS_IN_CHUNK)
    sums = np.empty((2, len(chunks)), np.uint64)
    for start in range(0, len(chunks), _CHUNKS_AT_ONCE):
        words = chunks[start : start + _CHUNKS_AT_ONCE]
        stop = start + len(words)
        sums[0, start:stop] = words @ _KEYS[0]
        sums[1, start:stop] = (words >> np.uint64(32)) @ _KEYS[1]
    return sums
