"""Recognise a file by its content: a log, or another file that a user gave by mistake."""

from __future__ import annotations

from itertools import pairwise

from exhume.codecs.batch_search import is_plausible
from exhume.codecs.checkpoints import read_leader_epochs, read_offset_checkpoint
from exhume.codecs.snapshots import read_producer_snapshot
from exhume.errors import EvidenceError

_SAMPLE_BYTES = 4096
_INDEX_ENTRY_BYTES = {8: "an offset index (.index)", 12: "a time index (.timeindex)"}
_TRANSACTION_ENTRY_BYTES = 34
_CONTROL_CHARACTERS = frozenset(range(32)) - frozenset(b"\t\n\v\f\r\x1b")


def begins_like_a_log(buffer: memoryview) -> bool:
    """Return True if the file begins with a batch header that a broker could have written."""
    return is_plausible(buffer, 0, len(buffer))


def looks_like(buffer: memoryview) -> str | None:
    """Describe content that is certainly not a log; None if it could be a damaged log."""
    if begins_like_a_log(buffer):
        return None
    sample = bytes(buffer[:_SAMPLE_BYTES])
    if _is_text(sample):
        return _kind_of_text(sample)
    if _is_snapshot(buffer):
        return "a producer snapshot (.snapshot)"
    if len(buffer) % _TRANSACTION_ENTRY_BYTES == 0 and _is_transaction_index(sample):
        return "a transaction index (.txnindex)"
    return next((name for size, name in _INDEX_ENTRY_BYTES.items() if _is_index(sample, size, len(buffer))), None)


def _is_text(sample: bytes) -> bool:
    # A character may be cut at the end of the sample.
    text = sample.decode("utf-8", "ignore")
    return bool(sample) and len(text.encode()) >= len(sample) - 3 and _CONTROL_CHARACTERS.isdisjoint(sample)


def _kind_of_text(sample: bytes) -> str:
    for name, read in (("an offset checkpoint", read_offset_checkpoint), ("a leader epoch checkpoint", read_leader_epochs)):
        try:
            read(sample)
        except EvidenceError:
            continue
        return name
    return "meta.properties" if b"broker.id=" in sample or b"node.id=" in sample else "a text file"


def _is_snapshot(buffer: memoryview) -> bool:
    try:
        read_producer_snapshot(buffer)
    except EvidenceError:
        return False
    return True


def _is_transaction_index(sample: bytes) -> bool:
    starts = range(0, len(sample) - _TRANSACTION_ENTRY_BYTES + 1, _TRANSACTION_ENTRY_BYTES)
    return bool(starts) and all(
        sample[at : at + 3] == b"\0\0\0" and sample[at + 10 : at + 18] <= sample[at + 18 : at + 26] <= sample[at + 26 : at + 34]
        for at in starts
    )


def _is_index(sample: bytes, entry_bytes: int, size_bytes: int) -> bool:
    """Return True if both fields of the entries grow, up to a tail of zeros. One or two entries prove nothing."""
    if size_bytes % entry_bytes:
        return False
    entries = [sample[at : at + entry_bytes] for at in range(0, len(sample) - entry_bytes + 1, entry_bytes)]
    used = [entry for entry in entries if any(entry)]
    if len(used) < 3 or used != entries[: len(used)]:
        return False
    pairs = [(entry[:-4], entry[-4:]) for entry in used]
    return all(first <= third and second < fourth for (first, second), (third, fourth) in pairwise(pairs))
