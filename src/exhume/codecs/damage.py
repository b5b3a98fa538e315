"""Findings about damage that `salvage` found: a sentence, the place and a remedy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from exhume.codecs.batch_format import MOST_OFFSETS_IN_SEGMENT
from exhume.codecs.batches import Batch, first_offset
from exhume.codecs.lenient_records import RecordProblem
from exhume.codecs.salvage import Found, Grade, Hole
from exhume.findings import Finding, Severity


@dataclass(frozen=True, slots=True)
class Context:
    """The file that findings name, with its replica and offsets partition."""

    path: str | None = None
    replica: str | None = None
    offsets_partition: int | None = None


class DamageReport:
    """Makes findings from the items of `salvage`, given in order; whole batches in good order give none."""

    def __init__(self, context: Context, *, base_offset: int | None = None, next_base_offset: int | None = None) -> None:
        self._context = context
        self._base_offset = base_offset
        self._next_base_offset = next_base_offset
        self._previous: Batch | None = None

    def findings(self, item: Found | Hole) -> Iterator[Finding]:
        """Yield the findings about this item."""
        if isinstance(item, Hole):
            yield self._about_hole(item)
            return
        yield from self._about_bytes(item)
        if item.grade != "displaced":
            yield from self._about_order(item.batch)
            if item.crc_status in ("ok", "not_checked"):
                self._previous = item.batch

    def problem_findings(self, batch: Batch, problems: Iterable[RecordProblem]) -> Iterator[Finding]:
        """Yield a finding for each problem that `read_records_leniently` found in this batch."""
        for problem in problems:
            lost = f"; {problem.lost_records} records are lost" if problem.lost_records else ""
            sentence = f"In the batch up to record offset {batch.last_offset}: {problem.message}{lost}"
            finding = self._finding(problem.code, sentence, batch, remedy=PROBLEM_REMEDIES[problem.code])
            yield finding if problem.byte_position is None else replace(finding, byte_position=problem.byte_position)

    def _finding(
        self, code: str, sentence: str, at: Batch | Hole, *, remedy: str, severity: Severity = "incident", is_damage: bool = True
    ) -> Finding:
        return Finding(
            code=code,
            sentence=sentence,
            severity=severity,
            replica=self._context.replica,
            offsets_partition=self._context.offsets_partition,
            path=self._context.path,
            byte_position=at.byte_position,
            size_bytes=at.size_bytes,
            first_record_offset=at.base_offset if isinstance(at, Batch) else None,
            last_record_offset=at.last_offset if isinstance(at, Batch) else None,
            remedy=remedy,
            is_damage=is_damage,
        )

    def _about_hole(self, hole: Hole) -> Finding:
        after = f", after record offset {self._previous.last_offset}," if self._previous is not None else ""
        what = f"{hole.size_bytes} bytes at byte {hole.byte_position}{after}"
        if hole.reason == "zero_tail":
            sentence = f"{what} up to the end of the file are zero, as in a preallocated file that was not closed"
            return self._finding("zero_tail", sentence, hole, severity="info", is_damage=False, remedy=_ZERO_TAIL_REMEDY)
        if hole.reason in ("short_tail", "cut_batch"):
            return self._finding("cut_tail", f"{what} are not a whole batch", hole, remedy=_CUT_REMEDY)
        zero = ", all zero," if hole.is_zero else ""
        code = "bad_magic" if hole.reason == "bad_magic" else "hole"
        return self._finding(code, f"{what}{zero} belong to no batch ({hole.reason})", hole, remedy=_HOLE_REMEDY)

    def _about_bytes(self, found: Found) -> Iterator[Finding]:
        batch = found.batch
        name = f"The batch at byte {batch.byte_position}, up to record offset {batch.last_offset},"
        if found.stated_magic is not None:
            sentence = f"{name} has magic {found.stated_magic} in its header; its checksum matches with magic {batch.magic}"
            yield self._finding("bad_magic", sentence, batch, remedy=_HEADER_REMEDY)
        if found.crc_status == "unreadable":
            sentence = f"{name} has {found.stated_size_bytes} bytes by its header, but only {batch.size_bytes} are left in the file"
            yield self._finding("cut_tail", sentence, batch, remedy=_CUT_REMEDY)
        elif found.stated_size_bytes is not None:
            true_size = "its checksum matches with" if found.crc_status == "ok" else "the next whole batch begins after"
            sentence = f"{name} has {found.stated_size_bytes} bytes by its header; {true_size} {batch.size_bytes}"
            yield self._finding(_WRONG_SIZE, sentence, batch, remedy=_HEADER_REMEDY)
        if found.crc_status == "mismatch":
            sentence = f"{name} fails its checksum ({batch.crc:#010x} stored); {_DOUBTS[found.grade]}"
            yield self._finding("crc_mismatch", sentence, batch, remedy=_CRC_REMEDY)
        if found.grade == "displaced":
            sentence = f"{name} is whole, but comes after a hole, and its offsets do not belong there"
            yield self._finding("displaced_batch", sentence, batch, severity="warn", is_damage=False, remedy=_DISPLACED_REMEDY)

    def _about_order(self, batch: Batch) -> Iterator[Finding]:
        first = first_offset(batch)
        name = f"The batch at byte {batch.byte_position} with record offsets {first} to {batch.last_offset}"
        previous = self._previous
        if previous is not None and first <= previous.last_offset:
            sentence = f"{name} comes after a batch that ends at record offset {previous.last_offset}"
            yield self._finding("offsets_go_back", sentence, batch, severity="warn", is_damage=False, remedy=_ORDER_REMEDY)
        epoch_before = -1 if previous is None or previous.partition_leader_epoch is None else previous.partition_leader_epoch
        if batch.partition_leader_epoch is not None and batch.partition_leader_epoch < epoch_before:
            sentence = f"{name} has leader epoch {batch.partition_leader_epoch}, lower than {epoch_before} of the batch before it"
            yield self._finding("leader_epoch_goes_back", sentence, batch, severity="warn", is_damage=False, remedy=_ORDER_REMEDY)
        lowest, beyond = self._base_offset or 0, self._next_base_offset
        too_far = self._base_offset is not None and batch.last_offset - self._base_offset > MOST_OFFSETS_IN_SEGMENT
        if first < lowest or too_far or (beyond is not None and batch.last_offset >= beyond):
            sentence = f"{name} does not belong in a segment of record offsets from {lowest}{'' if beyond is None else f' to {beyond - 1}'}"
            yield self._finding("offsets_outside_segment", sentence, batch, severity="warn", is_damage=False, remedy=_ORDER_REMEDY)


_WRONG_SIZE = "batch_size_lies"  # plain: the code of a finding
#: The rest of the sentence about a wrong checksum, by grade.
_DOUBTS: Mapping[Grade, str] = {
    "structure_only": "its records fill the batch exactly, but their content may be wrong",
    "unverified": "its records may be wrong",
}
_ZERO_TAIL_REMEDY = "Nothing is lost; a broker cuts the file there after an unclean stop, and refuses to start after a clean one"
_CUT_REMEDY = "Look for the rest in another replica; a broker treats this as the end of its log"
_HOLE_REMEDY = "Look for these offsets in another replica or a .deleted copy of the segment"
_HEADER_REMEDY = "The records were read even so; Kafka stops reading here"
_CRC_REMEDY = "Compare the records with another replica; after a clean stop, a broker loads them without a warning"
_DISPLACED_REMEDY = "Do not count its records without other evidence"
_ORDER_REMEDY = "The checksum does not cover offsets and epochs: compare with another replica and with the indexes"
PROBLEM_REMEDIES = {
    "undecodable_records": "Look for these offsets in another replica",
    "record_count_lies": "The records were read by their own lengths; Kafka refuses the batch",  # plain: the code of a finding
    "decompression_bomb": "Raise the cap if this data can be trusted",
    "refused_stream": "The records were read even so; Kafka refuses the batch",
    "inner_crc_mismatch": "Compare the record with another replica",
    "uncertain_offsets": "Compare the record offsets with another replica",
}
