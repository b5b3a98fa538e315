"""The rules of a fold, and the reasons for its end: numbers, as kernels take and return them."""

from __future__ import annotations

import numpy as np

from exhume.codecs.compression import CODECS
from exhume.codecs.kernels import scan
from exhume.codecs.kernels.types import Int64s
from exhume.codecs.record_types import GROUP_METADATA, LEGACY_OFFSET_COMMIT, OFFSET_COMMIT
from exhume.int64 import LARGEST_INT64, random_number
from exhume.replay.fold.tables import HAS_LEGACY_COMMITS, PRODUCERS
from exhume.replay.profiles import BrokerProfile, JavaProfile, ScalaProfile
from exhume.replay.reading import LoadInputs, refused_formats

#: How a fold ended: done, or the reason to load the log record by record. NOT_PLAIN: the kernels do not take it.
(
    DONE,
    NOT_SOUND,
    OFFSETS_GO_BACK,
    BAD_RECORD,
    NOT_PLAIN_BATCH,
    NOT_PLAIN_MARKER,
    NOT_PLAIN_KEY,
    NOT_PLAIN_VALUE,
    TRANSACTIONAL_TOMBSTONE,
    TRANSACTIONAL,
) = range(10)

#: Entries of `rules`: a seed for hashes, the log start, a bit for each accepted value version of types 0, 1 and 2, and three flags.
SEED, START_OFFSET, ACCEPTED_0, ACCEPTED_1, ACCEPTED_2, MARKER_DECIDES, TOMBSTONE_VOIDS, TAKES_NULL_PROTOCOL = range(8)
#: The record offsets that the segment may hold, from the lowest up to, but not including, the one beyond. A bit for each codec that the
#: release cannot read, and the size of the largest batch that it can read.
LOWEST_OFFSET, BEYOND_OFFSET, REFUSED_CODECS, MOST_BATCH_BYTES = range(8, 12)
#: 1 if a part is folded alone, to be joined to the parts before it.
IS_PART = 12
#: The last record offset that counts. Later batches are only checked: if one is not plain, the log is loaded record by record.
LAST_COUNTED_OFFSET = 13
#: How many groups are chosen; they have the first numbers. 0: all groups.
CHOSEN_GROUPS = 14
#: 1 to note the batches that have a record of these groups, or end a transaction of them.
NOTES_BATCHES = 15
RULES = 16

#: The result of a kernel for a value or a marker that is not plain, and for a name that is left to the loader.
NOT_PLAIN, PASSED_ON = -3, -2


def are_alike(rules: Int64s, folded_by: Int64s, counts: Int64s) -> bool:
    """Return True if a finished fold with `folded_by` can be reused: `rules` accept at least as much.

    Rules that this log does not need may differ. `counts` are those of the fold.
    """
    accepts = [ACCEPTED_1, ACCEPTED_2, TAKES_NULL_PROTOCOL]
    accepts += [ACCEPTED_0] if counts[HAS_LEGACY_COMMITS] else []
    if (folded_by[accepts] & ~rules[accepts]).any() or rules[REFUSED_CODECS] & ~folded_by[REFUSED_CODECS]:
        return False
    if folded_by[MOST_BATCH_BYTES] > rules[MOST_BATCH_BYTES]:
        return False
    compared = [START_OFFSET, LAST_COUNTED_OFFSET, CHOSEN_GROUPS]
    compared += [MARKER_DECIDES, TOMBSTONE_VOIDS] if counts[PRODUCERS] else []
    return bool((rules[compared] == folded_by[compared]).all())


def rules_of(profile: BrokerProfile, inputs: LoadInputs, start_offset: int, last_offset: int | None) -> Int64s:
    """Return the rules of a fold of a log for this release, from the batch with `start_offset` to the record at `last_offset`.

    None for `last_offset` means the end of the log.
    """
    rules = np.zeros(RULES, np.int64)
    rules[SEED] = random_number()
    rules[START_OFFSET] = start_offset
    rules[LAST_COUNTED_OFFSET] = LARGEST_INT64 if last_offset is None else last_offset
    for rule, record_type in ((ACCEPTED_0, LEGACY_OFFSET_COMMIT), (ACCEPTED_1, OFFSET_COMMIT), (ACCEPTED_2, GROUP_METADATA)):
        if record_type in profile.values:
            known = profile.values[record_type].versions
            accepted = profile.value_versions[record_type]
            rules[rule] = sum(1 << version for version in known if accepted is None or version in accepted)
    rules[TAKES_NULL_PROTOCOL] = True
    rules[MOST_BATCH_BYTES] = LARGEST_INT64
    readable = [codec.number for codec in CODECS.values() if codec.name not in refused_formats(profile)]
    rules[REFUSED_CODECS] = sum(1 << codec for codec in range(scan.CODEC + 1) if codec not in readable)
    if isinstance(profile, JavaProfile):
        rules[MARKER_DECIDES] = profile.marker_decides
        rules[TOMBSTONE_VOIDS] = profile.tombstone_drops_pending
    elif isinstance(profile, ScalaProfile):
        rules[TAKES_NULL_PROTOCOL] = profile.null_protocol_is_readable
        if profile.oversized_batch == "stall":
            rules[MOST_BATCH_BYTES] = inputs.load_buffer_bytes
    return rules
