"""Read batch headers into columns and verify checksums, as `batches.walk` and `crc_matches` do.

The batches are those of format 2, and plain messages of formats 0 and 1. A row is a batch or a message, a column is one header field, and
all numbers are int64. The scan ends before bytes that are no whole batch. It also ends before compressed messages: their header has neither
their number nor their first offset.
"""

from __future__ import annotations

import numpy as np

from exhume.codecs import batch_format
from exhume.codecs.batch_format import LOG_OVERHEAD, NOT_SET
from exhume.codecs.kernels import inlined, kernel
from exhume.codecs.kernels.crc32 import crc32
from exhume.codecs.kernels.crc32c import crc32c
from exhume.codecs.kernels.pages import touch_pages
from exhume.codecs.kernels.primitives import int16, int32, int64
from exhume.codecs.kernels.types import Bytes, Int64s, Number, Rows

POSITION, SIZE, BASE_OFFSET, LAST_OFFSET, ATTRIBUTES, RECORD_COUNT, BASE_TIMESTAMP, MAX_TIMESTAMP = range(8)
PRODUCER_ID, PRODUCER_EPOCH, BASE_SEQUENCE, LEADER_EPOCH, CRC, IS_SOUND, MAGIC = range(8, 15)
COLUMNS = 15

#: The leader epoch of a message, which has none: larger than all epochs, so that it is never lower than the one before.
NO_LEADER_EPOCH = 1 << 40

#: Bits of `ATTRIBUTES`.
CODEC, LOG_APPEND_TIME, TRANSACTIONAL = batch_format.CODEC, batch_format.LOG_APPEND_TIME, batch_format.TRANSACTIONAL
CONTROL, DELETE_HORIZON = batch_format.CONTROL, batch_format.DELETE_HORIZON
#: The header bytes of format 2, after which its records begin, and the first byte that its checksum covers.
HEADER_BYTES, CHECKED_FROM = batch_format.HEADER_BYTES[2], batch_format.CHECKED_FROM[2]
#: The number of batches that are scanned at once, before they are folded.
BLOCK_BATCHES = 1024

#: The bytes of the smallest messages of formats 0 and 1: key and value are null.
LEAST_MESSAGE_BYTES, _LEAST_STAMPED_BYTES = batch_format.HEADER_BYTES[0], batch_format.HEADER_BYTES[1]

_MESSAGE_CHECKED_FROM = batch_format.CHECKED_FROM[1]


@kernel
def scan(buffer: Bytes, position: Number, end: Number, verifies: bool, rows: Rows) -> tuple[Number, Number]:
    """Fill `rows` with the batches of `buffer[position:end]`; return their number, and the position after the last one.

    Ends when `rows` is full, and before bytes that are neither a whole batch of format 2 nor a plain message. `IS_SOUND` is 0 if the
    checksum does not match, else 1; always 1 if `verifies` is False.
    """
    count, touched = np.int64(0), position
    while count < rows.shape[0] and end - position >= LEAST_MESSAGE_BYTES:
        if position >= touched:
            touched = touch_pages(buffer, position, end)
        size = LOG_OVERHEAD + int32(buffer, position + 8)
        if size > end - position:
            break
        row = rows[count]
        if buffer[np.uint64(position + 16)] != 2:
            if not _scan_message(buffer, position, size, verifies, row):
                break
            position += size
            count += 1
            continue
        if size < HEADER_BYTES:
            break
        crc = int32(buffer, position + 17) & 0xFFFFFFFF
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
        row[IS_SOUND] = 0 if verifies and np.int64(crc32c(buffer, position + CHECKED_FROM, position + size)) != crc else 1
        row[MAGIC] = 2
        position += size
        count += 1
    return count, position


@kernel
def _scan_message(buffer: Bytes, position: Number, size: Number, verifies: bool, row: Int64s) -> Number:
    """Fill `row` with the message of `size` bytes; return False if it is not a plain message of format 0 or 1."""
    magic, attributes = np.int64(buffer[np.uint64(position + 16)]), np.int64(buffer[np.uint64(position + 17)])
    if magic == 0:
        if size < LEAST_MESSAGE_BYTES or attributes != 0:
            return False
        timestamp = np.int64(NOT_SET)
    elif magic == 1:
        if size < _LEAST_STAMPED_BYTES or attributes & ~LOG_APPEND_TIME != 0:
            return False
        timestamp = int64(buffer, position + 18)
    else:
        return False
    crc = int32(buffer, position + 12) & 0xFFFFFFFF
    row[POSITION] = position
    row[SIZE] = size
    row[BASE_OFFSET] = row[LAST_OFFSET] = int64(buffer, position)
    row[ATTRIBUTES] = attributes
    row[RECORD_COUNT] = 1
    row[BASE_TIMESTAMP] = row[MAX_TIMESTAMP] = timestamp
    row[PRODUCER_ID] = row[PRODUCER_EPOCH] = row[BASE_SEQUENCE] = NOT_SET
    row[LEADER_EPOCH] = NO_LEADER_EPOCH
    row[CRC] = crc
    row[IS_SOUND] = 0 if verifies and np.int64(crc32(buffer, position + _MESSAGE_CHECKED_FROM, position + size)) != crc else 1
    row[MAGIC] = magic
    return True


@inlined
def least_epoch_after(leader_epoch: Number) -> Number:
    """Return the least leader epoch of the next batch: leader epochs do not fall."""
    return NOT_SET if leader_epoch == NO_LEADER_EPOCH else leader_epoch


@kernel
def in_order(rows: Rows, count: Number, lowest: Number, beyond: Number, epoch: Number, columns: Rows) -> Number:
    """Return how many of the first `count` batches are sound and in order.

    In order are rising offsets from `lowest` to less than `beyond`, and leader epochs from `epoch` on that do not fall. `columns` gets the
    transposed rows of these batches: each header field is then in one piece of memory.
    """
    for number in range(count):
        base_offset, last_offset, leader_epoch = rows[number, BASE_OFFSET], rows[number, LAST_OFFSET], rows[number, LEADER_EPOCH]
        is_in_order = lowest <= base_offset <= last_offset < beyond and epoch <= leader_epoch
        if not is_in_order or not rows[number, IS_SOUND]:
            return number
        lowest, epoch = last_offset + 1, least_epoch_after(leader_epoch)
        for column in range(COLUMNS):
            columns[column, number] = rows[number, column]
    return count
