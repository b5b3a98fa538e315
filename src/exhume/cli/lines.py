"""Tables as lines of JSON and CSV. Threads make the lines of the next rows while the lines before them are written."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from exhume.cli.arrow_json import dump
from exhume.cli.cells import Cells, Numbers, csv_cells, json_cells
from exhume.codecs.kernels import lines
from exhume.codecs.kernels.lines import write_lines
from exhume.codecs.kernels.types import Bytes, Int32s
from exhume.codecs.segment_reader import ReadOptions

if TYPE_CHECKING:
    from concurrent.futures import Future

#: The rows whose lines are made at once, and the bytes of one piece of lines: few enough for the cache of a core.
_ROWS, _PIECE_BYTES = 8192, 1 << 20


class _Piece(NamedTuple):
    """Whole lines: the first `size` bytes of a buffer."""

    buffer: Bytes
    size: int


def json_lines(schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, before: bytes, after: bytes) -> Generator[memoryview]:
    """Yield the rows as JSON objects with every column, each between `before` and `after`. Use each piece before the next."""
    names = [f"{',' if number else ''}{dump(name)}:".encode() for number, name in enumerate(schema.names)]

    def lines_of(batch: pa.RecordBatch) -> _Lines:
        return _Lines([before + b"{", *names], [json_cells(column) for column in batch.columns], b"}" + after, batch.num_rows)

    return _pieces(batches, lines_of)


def csv_lines(schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, raw: bool) -> Generator[memoryview]:
    """Yield the names of the columns and the rows as lines of CSV. Use each piece before the next."""
    commas = [b"", *(b"," if number else b"" for number in range(len(schema)))]

    def lines_of(batch: pa.RecordBatch) -> _Lines:
        cells = [csv_cells(column, raw=raw, is_alone=len(schema) == 1) for column in batch.columns]
        return _Lines(commas, cells, b"\n", batch.num_rows)

    if len(schema):
        names = pa.RecordBatch.from_arrays([pa.array([name], pa.string()) for name in schema.names], schema.names)
        yield from _pieces([names], lines_of)
        yield from _pieces(batches, lines_of)


def _pieces(batches: Iterable[pa.RecordBatch], lines_of: Callable[[pa.RecordBatch], _Lines]) -> Generator[memoryview]:
    spare: list[Bytes] = []
    slices = (batch.slice(first, _ROWS) for batch in batches for first in range(0, batch.num_rows, _ROWS))
    for pieces in _ahead(lambda rows: lines_of(rows).pieces(spare), slices):
        for buffer, size in pieces:
            yield buffer[:size].data
            if len(buffer) == _PIECE_BYTES:
                spare.append(buffer)


def _ahead(make: Callable[[pa.RecordBatch], list[_Piece]], batches: Iterator[pa.RecordBatch]) -> Iterator[list[_Piece]]:
    """Yield what `make` returns for each batch, in order; threads make the next ones. Few rows need no thread.

    An error of a batch comes after the results of all batches before it.
    """
    row_count = 0
    for batch in batches:
        yield make(batch)
        row_count += batch.num_rows
        if row_count >= _ROWS:
            break
    else:
        return
    from concurrent.futures import ThreadPoolExecutor

    threads = ReadOptions().most_threads
    coming: deque[Future[list[_Piece]]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="exhume-lines") as pool:
        try:
            while True:
                try:
                    batch = next(batches)
                except StopIteration:
                    break
                except Exception:
                    yield from _results(coming)
                    raise
                coming.append(pool.submit(make, batch))
                if len(coming) > threads:
                    yield coming.popleft().result()
            yield from _results(coming)
        finally:
            for future in coming:
                future.cancel()


def _results(coming: deque[Future[list[_Piece]]]) -> Iterator[list[_Piece]]:
    while coming:
        yield coming.popleft().result()


class _Lines:
    """The lines of rows: each has `literals[0]`, each other literal with the cell of a column after it, and `end`."""

    def __init__(self, literals: Sequence[bytes], columns: Sequence[Cells], end: bytes, row_count: int) -> None:
        self._row_count = row_count
        self._literals = bytearray()
        self._steps: list[tuple[int, ...]] = []
        self._numbers, self._offsets, self._buffers = list[Numbers](), list[Int32s](), list[Bytes]()
        literal = literals[0]
        for before, cells in zip(literals[1:], columns, strict=True):
            literal += before
            if cells.only is not None:
                literal += _cell(cells.kind, cells.only)
            else:
                self._add(literal, cells)
                literal = b""
        self._steps.append((lines.END, *self._literal(literal + end), 0, -1, -1, 0, 0, 0))

    def _add(self, literal: bytes, cells: Cells) -> None:
        column, texts, bitmap = 0, -1, -1
        if cells.numbers is not None:
            column = len(self._numbers)
            self._numbers.append(cells.numbers)
        if cells.texts is not None:
            column, texts = len(self._offsets), len(self._buffers)
            self._offsets.append(cells.texts[0])
            self._buffers.append(cells.texts[1])
        if cells.bitmap is not None:
            bitmap = len(self._buffers)
            self._buffers.append(cells.bitmap)
        self._steps.append((cells.kind, *self._literal(literal), column, texts, bitmap, cells.first_bit, *self._literal(cells.null)))

    def _literal(self, content: bytes) -> tuple[int, int]:
        self._literals += content
        return len(self._literals) - len(content), len(content)

    def pieces(self, spare: list[Bytes]) -> list[_Piece]:
        """Return all lines. `spare` has buffers to use."""
        steps, literals = np.array(self._steps, np.int64), np.frombuffer(self._literals, np.uint8)
        numbers = np.stack(self._numbers, dtype=np.int64) if self._numbers else np.zeros((1, 1), np.int64)
        offsets = np.stack(self._offsets) if self._offsets else np.zeros((1, 1), np.int32)
        found: list[_Piece] = []
        first, room = 0, _PIECE_BYTES
        while first < self._row_count:
            buffer = spare.pop() if spare and room == _PIECE_BYTES else np.empty(room, np.uint8)
            last, size = write_lines(first, self._row_count, steps, literals, numbers, offsets, self._buffers, buffer)
            if last == first:
                # One line is longer than the buffer.
                room *= 2
                continue
            found.append(_Piece(buffer, size))
            first, room = last, _PIECE_BYTES
        return found


@lru_cache(maxsize=256)
def _cell(kind: int, value: int | bytes) -> bytes:
    """Return the cell of a column that has this value in every row."""
    if isinstance(value, int):
        cells = Cells(kind, b"", numbers=np.array([value], np.int64))
    else:
        cells = Cells(kind, b"", texts=(np.array([0, len(value)], np.int32), np.frombuffer(value or b"\0", np.uint8)))
    ((buffer, size),) = _Lines([b"", b""], [cells], b"", 1).pieces([])
    return buffer[:size].tobytes()
