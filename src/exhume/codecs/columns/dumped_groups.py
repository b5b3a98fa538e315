"""The values of classic groups in the dump: JSON objects, with the decoded subscription and assignment of each member."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from exhume.codecs.columns.arrow import Flags, texts
from exhume.codecs.columns.json_texts import Step, Texts, field_steps, object_steps, text_starts
from exhume.codecs.columns.record_blocks import RecordBlock
from exhume.codecs.decoded_tables import PayloadDecoder, payload_text
from exhume.codecs.embedded import decode_assignment, decode_subscription
from exhume.codecs.kernels import keys, records, values
from exhume.codecs.kernels.json_texts import NULL_ROW, READY
from exhume.codecs.kernels.readers import LEAST_MEMBER_BYTES, NEWEST_GROUP_VERSION
from exhume.codecs.kernels.texts import find_escapes
from exhume.codecs.kernels.types import Bytes, Int64s
from exhume.codecs.layouts.classic_group import GROUP_METADATA_VALUE, MEMBER

#: The protocol type and the protocol of a group.
Protocols = tuple[str | None, str | None]

#: After the fields of a member: place and size of the texts of its subscription and its assignment.
_SUBSCRIPTION_TEXT, _ASSIGNMENT_TEXT = values.MEMBER_COLUMNS, values.MEMBER_COLUMNS + 2
_MEMBER_FIELDS = values.MEMBER_COLUMNS + 4
_MEMBER_STEPS: Mapping[str, Sequence[Step]] = {
    **field_steps(MEMBER, values.MEMBERS),
    "subscription": [(READY, _SUBSCRIPTION_TEXT)],
    "assignment": [(READY, _ASSIGNMENT_TEXT)],
}
#: After the fields of a group: place and size of the texts of its members.
_MEMBERS_TEXT = values.GROUP_COLUMNS
_GROUP_FIELDS = values.GROUP_COLUMNS + 2
_GROUP_STEPS: Mapping[str, Sequence[Step]] = {
    **field_steps(GROUP_METADATA_VALUE.struct, values.GROUPS),
    "members": ["[", (READY, _MEMBERS_TEXT), "]"],
}
_VERSIONS = range(NEWEST_GROUP_VERSION + 1)
_MEMBERS = Texts([*object_steps(MEMBER, version, _MEMBER_STEPS), ","] for version in _VERSIONS)
_GROUPS = Texts(object_steps(GROUP_METADATA_VALUE.struct, version, _GROUP_STEPS) for version in _VERSIONS)
_SUBSCRIPTION, _ASSIGNMENT = values.MEMBERS["subscription_start"], values.MEMBERS["assignment_start"]
_PROTOCOL_TYPE, _PROTOCOL = values.GROUPS["protocol_type_start"], values.GROUPS["protocol_start"]
#: Arrow counts bytes in 32 bits, and the text of a payload may be many times as long as the payload.
_MOST_BYTES = 32 * 1024 * 1024


def write_groups(block: RecordBlock, at: Int64s, fields: Int64s, ready: int) -> Bytes:
    """Write the values of the records `at`, which are classic groups, as texts; return the bytes of these texts.

    Columns `at` of `fields` get the key and the version. Rows `ready` and `ready + 1` get the start and the size of the text; the size is
    -1 for a tombstone. `keys.IS_READ` is 0 for a record that kernels cannot read, or whose texts need escapes.
    """
    fields[keys.IS_READ, at] = 0
    candidates = block.only(at)
    sizes = np.maximum(candidates.records[records.VALUE_SIZE], 0)
    if not len(at) or int(sizes.sum()) > _MOST_BYTES:
        return np.zeros(1, np.uint8)
    groups = np.empty((_GROUP_FIELDS, len(at)), np.int64)
    members = np.empty((_MEMBER_FIELDS, int((sizes // LEAST_MEMBER_BYTES).sum())), np.int64)
    count = values.read_groups(block.data, candidates.records, groups, members)
    is_read = groups[keys.IS_READ] != 0
    at, groups, members = at[is_read], np.ascontiguousarray(groups[:, is_read]), np.ascontiguousarray(members[:, :count])
    firsts = np.zeros(len(at) + 1, np.int64)
    np.cumsum(groups[values.MEMBERS_COUNT], out=firsts[1:])
    owners = np.repeat(np.arange(len(at)), groups[values.MEMBERS_COUNT])

    protocols = _protocols(block.data, groups)
    has_escapes = _has_escapes(block.data, groups, members, owners)
    subscriptions = _write_payloads(decode_subscription, _payloads(block.data, members, _SUBSCRIPTION), protocols, owners)
    assignments = _write_payloads(decode_assignment, _payloads(block.data, members, _ASSIGNMENT), protocols, owners)
    members[_SUBSCRIPTION_TEXT : _SUBSCRIPTION_TEXT + 2] = subscriptions[0]
    members[_ASSIGNMENT_TEXT : _ASSIGNMENT_TEXT + 2] = assignments[0]
    members[_ASSIGNMENT_TEXT] += len(subscriptions[1])
    payloads = np.frombuffer(subscriptions[1] + assignments[1] + b"\0", np.uint8)
    offsets, member_texts = _MEMBERS.write(members[values.MEMBER_VERSION], members, block.data, payloads)
    groups[_MEMBERS_TEXT] = offsets[firsts[:-1]]
    # Without the comma after the last member.
    groups[_MEMBERS_TEXT + 1] = np.maximum(offsets[firsts[1:]] - offsets[firsts[:-1]] - 1, 0)
    versions = groups[values.VERSION]
    offsets, group_texts = _GROUPS.write(versions, groups, block.data, member_texts)

    fields[: keys.COLUMNS, at] = groups[: keys.COLUMNS]
    fields[values.VERSION, at] = versions
    fields[keys.IS_READ, at] = ~has_escapes
    fields[ready, at] = offsets[:-1]
    fields[ready + 1, at] = np.where(versions == NULL_ROW, -1, np.diff(offsets))
    return group_texts


def _protocols(data: Bytes, groups: Int64s) -> list[Protocols]:
    """Return protocol type and protocol of each group."""
    types = texts(data, groups[_PROTOCOL_TYPE], groups[_PROTOCOL_TYPE + 1], pa.string())
    names = texts(data, groups[_PROTOCOL], groups[_PROTOCOL + 1], pa.string())
    return list(zip(types.to_pylist(), names.to_pylist(), strict=True))


def _has_escapes(data: Bytes, groups: Int64s, members: Int64s, owners: Int64s) -> Flags:
    """Return for each group True if one of its texts, or of its members' texts, has a character that JSON escapes."""
    in_groups, in_members = np.zeros(groups.shape[1], np.int64), np.zeros(members.shape[1], np.int64)
    for start in text_starts(GROUP_METADATA_VALUE.struct, values.GROUPS):
        find_escapes(data, groups[start], groups[start + 1], in_groups)
    for start in text_starts(MEMBER, values.MEMBERS):
        find_escapes(data, members[start], members[start + 1], in_members)
    in_groups[owners[in_members != 0]] = 1
    has_escapes: Flags = in_groups != 0
    return has_escapes


def _payloads(data: Bytes, members: Int64s, start: int) -> pa.Array:
    return texts(data, members[start], members[start + 1], pa.binary())


def _write_payloads(decode: PayloadDecoder, payloads: pa.Array, protocols: Sequence[Protocols], owners: Int64s) -> tuple[Int64s, bytes]:
    """Return start and size of the text of each member's payload, and these texts; equal payloads are written once."""
    found = payloads.dictionary_encode()
    raws: list[bytes] = found.dictionary.to_pylist()
    numbers = {pair: number for number, pair in enumerate(dict.fromkeys(protocols))}
    pairs = np.fromiter((numbers[pair] for pair in protocols), np.int64, len(protocols))
    distinct, choices = np.unique(pairs[owners] * len(raws) + found.indices.to_numpy(), return_inverse=True)
    names = list(numbers)
    written = []
    for pair, raw in zip((distinct // len(raws)).tolist(), (distinct % len(raws)).tolist(), strict=True):
        protocol_type, protocol = names[pair]
        written.append(payload_text(decode, protocol_type, protocol, raws[raw]))
    sizes = np.fromiter(map(len, written), np.int64, len(written))
    places = np.stack([sizes.cumsum() - sizes, sizes])
    return places[:, choices], b"".join(written)
