"""What a fold goes by, and what it says at its end: numbers that kernels are given and give."""

from __future__ import annotations

import secrets

import numpy as np

from exhume.codecs.compression import CODECS
from exhume.codecs.kernels import scan
from exhume.codecs.kernels.types import Int64s
from exhume.codecs.record_types import GROUP_METADATA, LEGACY_OFFSET_COMMIT, OFFSET_COMMIT
from exhume.int64 import LARGEST_INT64
from exhume.replay.profiles import BrokerProfile, JavaProfile, ScalaProfile
from exhume.replay.reading import LoadInputs, refused_formats

#: How a fold ended: done, or why the log is to be loaded record by record.
(
    DONE,
    NOT_SOUND,
    OFFSETS_GO_BACK,
    BAD_RECORD,
    ODD_BATCH,
    ODD_MARKER,
    ODD_KEY,
    ODD_VALUE,
    TRANSACTIONAL_TOMBSTONE,
    TRANSACTIONAL,
) = range(10)

#: Entries of `rules`: a seed for hashes, the log start, a bit for each accepted value version of types 0, 1 and 2, yes or no.
SEED, START_OFFSET, ACCEPTED_0, ACCEPTED_1, ACCEPTED_2, MARKER_DECIDES, TOMBSTONE_VOIDS, TAKES_NULL_PROTOCOL = range(8)
#: What the segment may hold: offsets from the lowest on, below the one beyond. What the release can read: a bit for each codec it cannot,
#: the largest batch.
LOWEST_OFFSET, BEYOND_OFFSET, REFUSED_CODECS, MOST_BATCH_BYTES = range(8, 12)
#: 1 where a stretch is folded by itself, and joined to what lies in front of it.
IS_PART = 12
#: The last record offset that counts. What lies behind it is only looked at: a log with anything odd in it is loaded record by record.
LAST_COUNTED_OFFSET = 13
#: How many groups are asked for, which have the first numbers; 0: all are.
ASKED_GROUPS = 14
#: 1 where the batches are noted that have a record of these groups, or end a transaction of them.
NOTES_BATCHES = 15
RULES = 16

#: What a kernel gives for a key, a value or a marker that no release may read as it stands, and for a name that is left to the loader.
ODD, PASSED_ON = -3, -2


def are_alike(rules: Int64s, folded_by: Int64s, *, has_producers: bool) -> bool:
    """Whether a fold by `folded_by` that is done is also one by these rules: what they accept was accepted, and what else they say differs
    in nothing that the log has. `has_producers`: it has transactions.
    """
    accepts = [ACCEPTED_0, ACCEPTED_1, ACCEPTED_2, TAKES_NULL_PROTOCOL]
    if (folded_by[accepts] & ~rules[accepts]).any() or rules[REFUSED_CODECS] & ~folded_by[REFUSED_CODECS]:
        return False
    told = [START_OFFSET, LAST_COUNTED_OFFSET, MOST_BATCH_BYTES, ASKED_GROUPS]
    told += [MARKER_DECIDES, TOMBSTONE_VOIDS] if has_producers else []
    return bool((rules[told] == folded_by[told]).all())


def rules_of(profile: BrokerProfile, inputs: LoadInputs, start_offset: int, last_offset: int | None) -> Int64s:
    """What a fold of a log goes by, whose load by this release begins with the batch that has `start_offset`, and ends behind the record
    at `last_offset`; None: at its end.
    """
    rules = np.zeros(RULES, np.int64)
    rules[SEED] = secrets.randbits(62)
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
