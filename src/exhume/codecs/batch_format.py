"""The numbers of batch formats 0, 1 and 2, for plain code and for kernels. The layout is at the head of `batches`.

Source: DefaultRecordBatch, LegacyRecord, Records and CompressionType of Kafka 3.8.
"""

from __future__ import annotations

#: Offset and size: the bytes before those that `size` counts.
LOG_OVERHEAD = 12
#: Bytes up to and including the magic; Kafka's reader does not look at a tail of this size or less.
HEADER_UP_TO_MAGIC = 17
#: Header bytes by magic, all bytes before keys, values and records: the smallest batch of that format.
HEADER_BYTES = {0: 26, 1: 34, 2: 61}
#: The first byte that the checksum covers, by magic.
CHECKED_FROM = {0: 16, 1: 16, 2: 21}
#: Segment indexes hold offsets as int32 from the base offset.
MOST_OFFSETS_IN_SEGMENT = 2**31 - 1
#: The value of a header field that is not set: a time, a sequence, an epoch.
NOT_SET = -1
#: The producer id in the header if the producer had no id.
NO_PRODUCER_ID = -1

#: Bits of the attributes; those from `TRANSACTIONAL` on are of format 2.
CODEC, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 7, 8, 16, 32, 64
#: Codecs of the attributes. `compression.CODECS` says what they do.
UNCOMPRESSED, GZIP, SNAPPY, LZ4, ZSTD = range(5)
