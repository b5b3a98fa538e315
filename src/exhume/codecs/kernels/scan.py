"""Batch headers into columns, checksums verified: what `batches.walk` and `crc_matches` do, for batches of format 2.

A row of the columns is a batch, a column one header field, all of them int64. The scan ends in front of anything else than a whole batch
of format 2: `salvage` knows what to make of that.
"""

from __future__ import annotations

import numpy as np

from exhume.codecs.kernels import kernel
from exhume.codecs.kernels.crc32c import crc32c
from exhume.codecs.kernels.primitives import Bytes, Int64s, Number, int16, int32, int64

POSITION, SIZE, BASE_OFFSET, LAST_OFFSET, ATTRIBUTES, RECORD_COUNT, BASE_TIMESTAMP, MAX_TIMESTAMP = range(8)
PRODUCER_ID, PRODUCER_EPOCH, BASE_SEQUENCE, LEADER_EPOCH, CRC, IS_SOUND = range(8, 14)
COLUMNS = 14

#: Bits of `ATTRIBUTES`.
CODEC, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 7, 8, 16, 32, 64
#: Header bytes of format 2: records begin behind them.
HEADER_BYTES = 61

_OVERHEAD = 12
_CHECKED_FROM = 21


@kernel
def scan(buffer: Bytes, position: Number, end: Number, verifies: bool, rows: Int64s) -> tuple[Number, Number]:
    """Fill `rows` with the batches of `buffer[position:end]`: how many there were, and the byte behind the last one.

    Ends when `rows` is full, and in front of what is no whole batch of format 2. `IS_SOUND` is 1 where the checksum matches, 0 where not;
    1 where `verifies` is False.
    """
    count = np.int64(0)
    while count < rows.shape[0] and end - position >= HEADER_BYTES:
        size = _OVERHEAD + int32(buffer, position + 8)
        if size < HEADER_BYTES or size > end - position or buffer[np.uint64(position + 16)] != 2:
            break
        crc = int32(buffer, position + 17) & 0xFFFFFFFF
        row = rows[count]
        row[POSITION] = position
        row[SIZE] = size
        row[BASE_OFFSET] = int64(buffer, position)
        row[LAST_OFFSET] = row[BASE_OFFSET] + int32(buffer, position + 23)
        row[ATTRIBUTES] = int16(buffer, position + 21)
        row[RECORD_COUNT] = int32(buffer, position + 57)
        row[BASE_TIMESTAMP] = int64(buffer, position + 27)
        row[MAX_TIMESTAMP] = int64(buffer, position + 35)
        row[PRODUCER_ID] = int64(buffer, position + 43)
        row[PRODUCER_EPOCH] = int16(buffer, position + 51)
        row[BASE_SEQUENCE] = int32(buffer, position + 53)
        row[LEADER_EPOCH] = int32(buffer, position + 12)
        row[CRC] = crc
        row[IS_SOUND] = 0 if verifies and np.int64(crc32c(buffer, position + _CHECKED_FROM, position + size)) != crc else 1
        position += size
        count += 1
    return count, position


@kernel
def in_order(rows: Int64s, count: Number, lowest: Number, beyond: Number, epoch: Number, columns: Int64s) -> Number:
    """How many of the first `count` batches are sound and follow one another: from offset `lowest` and leader epoch `epoch` on, and below
    offset `beyond`.

    Their rows become columns of `columns`: each header field is in one place then.
    """
    for number in range(count):
        base_offset, last_offset, leader_epoch = rows[number, BASE_OFFSET], rows[number, LAST_OFFSET], rows[number, LEADER_EPOCH]
        is_in_order = lowest <= base_offset <= last_offset < beyond and epoch <= leader_epoch
        if not is_in_order or not rows[number, IS_SOUND]:
            return number
        lowest, epoch = last_offset + 1, leader_epoch
        for column in range(COLUMNS):
            columns[column, number] = rows[number, column]
    return count
