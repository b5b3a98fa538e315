"""Every span of releases that load alike, oldest first, and the span of each release.

A span lists only its differences from the one before it. `4.2` means the newest patch of that line. For 3.7 to 3.9, which have both
coordinators, `-new` and `-classic` choose; without either it is the Scala one, their default.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from exhume.codecs.compression import CODECS
from exhume.codecs.layout import Message
from exhume.codecs.layouts import offsets
from exhume.codecs.record_types import (
    GROUP_METADATA,
    LEGACY_OFFSET_COMMIT,
    MODERN_FAMILIES,
    OFFSET_COMMIT_TYPES,
    RECORD_TYPES,
    Family,
    Role,
    number_of,
    numbers,
)
from exhume.derived import derived_from
from exhume.errors import RequestError
from exhume.findings import Finding
from exhume.replay.profiles import BrokerProfile, JavaProfile, Removal, ScalaProfile

ProfileT = TypeVar("ProfileT", ScalaProfile, JavaProfile)

_DAY_MINUTES, _WEEK_MINUTES = 1440, 10080
#: The record types that both coordinators write.
_OF_BOTH = frozenset({*OFFSET_COMMIT_TYPES, GROUP_METADATA})
#: The roles of records that every modern group has.
_GROUP_ROLES: tuple[Role, ...] = ("group", "member", "target_epoch", "target", "current")
#: The newest value versions of the spans before the newest one; other families have version 0 alone.
_NEWEST_VERSIONS: Mapping[Family, int] = {"offsets": 4, "classic": 4}


@derived_from(RECORD_TYPES, CODECS)
def scala_spans() -> tuple[ScalaProfile, ...]:
    """The spans of the Scala coordinator, oldest first."""
    values: Mapping[int, Message] = MappingProxyType({number: RECORD_TYPES[number].message for number in _OF_BOTH})

    def versions(offset: int, group: int) -> Mapping[int, range | None]:
        return MappingProxyType(dict.fromkeys(OFFSET_COMMIT_TYPES, range(offset + 1)) | {GROUP_METADATA: range(group + 1)})

    spans = [
        ScalaProfile(
            name="0.9.0.1",
            first="0.9.0.0",
            last="0.9.0.1",
            values=values,
            value_versions=versions(1, 0),
            expiry="expire_timestamp_any_group",
            default_retention_minutes=_DAY_MINUTES,
            removed_by=frozenset(),
            rebalances_oversized_groups=False,
            refuses_batch_below_segment=False,
            lists_fetched_offsets=False,
            require_stable="unknown",
            fetch_error_while_loading="NOT_COORDINATOR",
            defects=("KAFKA-2913", "KAFKA-4472", "KAFKA-7286", "ends in an error at a compacted tail"),
            read_bound="high_watermark",
            install="offsets_at_once",
            empty_read="abort",
            oversized_batch="stall",
            has_transactions=False,
            memberless_state="Stable",
            null_protocol_is_readable=False,
            removed_group_check="never",
            missing_expire_timestamp="retention",
            state_timestamp_versions=frozenset(),
            member_twice_aborts=False,
            subscription="not_parsed",
            keeps_leader_epoch_below_minus_one=False,
            refused_formats=frozenset({"format_2", "inner_v0_in_v1", "lz4_v0_correct_checksum"}),
        )
    ]

    def then(first: str, last: str, **differences: object) -> None:
        spans.append(replace(spans[-1], name=last, first=first, last=last, **differences))  # type: ignore[arg-type]

    then(
        "0.10.0.0",
        "0.10.0.1",
        defects=("KAFKA-4362", "KAFKA-4472", "KAFKA-7286", "ends in an error at a compacted tail"),
        refused_formats=frozenset({"format_2", "inner_v0_in_v1"}),
    )
    then(
        "0.10.1.0",
        "0.10.1.1",
        value_versions=versions(1, 1),
        expiry="expire_timestamp",
        install="at_end",
        memberless_state="Empty",
        keeps_memberless_protocol_type=False,
        null_protocol_is_readable=True,
        removed_group_check="any",
        defects=("KAFKA-4704", "KAFKA-6287", "KAFKA-7286", "ends in an error at a compacted tail"),
        refused_formats=frozenset({"format_2"}),
    )
    then(
        "0.10.2.0",
        "0.10.2.2",
        removed_by=frozenset({"topic_deletion"}),
        lists_fetched_offsets=True,
        removed_group_check="without_offsets",
        defects=("KAFKA-6287", "KAFKA-7286", "ends in an error at a compacted tail"),
    )
    then(
        "0.11.0.0",
        "0.11.0.0",
        read_bound="log_end",
        install="per_chunk",
        empty_read="stall",
        has_transactions=True,
        empty_control_batch_aborts=True,
        refused_formats=frozenset(),
        defects=("KAFKA-5600", "KAFKA-6287", "KAFKA-7286", "KAFKA-7467", "KAFKA-9065"),
    )
    then("0.11.0.1", "1.0.0", install="at_end", defects=("KAFKA-6287", "KAFKA-7286", "KAFKA-7467", "KAFKA-9065"))
    then("1.0.1", "1.0.2", keeps_memberless_protocol_type=True, defects=("KAFKA-7286", "KAFKA-7467", "KAFKA-9065"))
    then("1.1.0", "1.1.1", removed_by=frozenset({"topic_deletion", "group_deletion"}))
    then(
        "2.0.0",
        "2.0.0",
        refuses_batch_below_segment=True,
        default_retention_minutes=_WEEK_MINUTES,
        fetch_error_while_loading="COORDINATOR_LOAD_IN_PROGRESS",
    )
    then("2.0.1", "2.0.1", oversized_batch="grow", empty_control_batch_aborts=False, defects=("KAFKA-9065",))
    then(
        "2.1.0",
        "2.1.1",
        value_versions=versions(3, 2),
        expiry="since_empty",
        missing_expire_timestamp="literal",
        state_timestamp_versions=frozenset({2}),
        member_twice_aborts=True,
        defects=("KAFKA-8069", "KAFKA-9065"),
    )
    then("2.2.0", "2.2.2", missing_expire_timestamp="absent", rebalances_oversized_groups=True, defects=("KAFKA-9065",))
    then("2.3.0", "2.3.1", value_versions=versions(3, 3), defects=("KAFKA-9065", "KAFKA-10401"))
    requests: frozenset[Removal] = frozenset({"topic_deletion", "group_deletion", "offset_deletion"})
    then("2.4.0", "2.4.0", expiry="unsubscribed", subscription="tolerated", removed_by=requests)
    then("2.4.1", "2.4.1", empty_read="stop", defects=("KAFKA-10401", "KAFKA-13636"))
    then("2.5.0", "2.6.0", require_stable="refused")
    then("2.6.1", "2.6.3", state_timestamp_versions=frozenset({2, 3}), defects=("KAFKA-13636",))
    then("2.7.0", "2.7.2", subscription="null_aborts")
    then("2.8.0", "2.8.1", keeps_leader_epoch_below_minus_one=True)
    then("2.8.2", "2.8.2", expiry="unsubscribed_stable", subscription="null_and_length_abort", defects=())
    then(
        "3.0.0",
        "3.0.0",
        expiry="unsubscribed",
        subscription="null_aborts",
        instance_twice_aborts=True,
        defects=("KAFKA-13636",),
    )
    then("3.0.1", "3.0.1", expiry="unsubscribed_stable", defects=())
    then("3.0.2", "3.0.2", subscription="null_and_length_abort")
    then("3.1.0", "3.1.0", expiry="unsubscribed", subscription="null_aborts", defects=("KAFKA-13636",))
    then("3.1.1", "3.1.1", expiry="unsubscribed_stable", defects=())
    then("3.1.2", "3.1.2", subscription="null_and_length_abort")
    then("3.2.0", "3.2.2", subscription="null_aborts")
    then("3.2.3", "3.4.0", subscription="null_and_length_abort", defects=("KAFKA-14869",))
    then(
        "3.4.1",
        "3.9.2",
        value_versions=versions(4, 4),
        state_timestamp_versions=frozenset({2, 3, 4}),
        unknown_record_type="skip",
        defects=(),
    )
    return tuple(map(_without_later_codecs, spans))


def _without_later_codecs(span: ProfileT) -> ProfileT:
    """Return the span with a refusal of the codecs of releases after its first one."""
    first = release_numbers(span.first)
    later = {codec.name for codec in CODECS.values() if codec.first_release is not None and release_numbers(codec.first_release) > first}
    return replace(span, refused_formats=span.refused_formats | later)


def _layout(family: Family, role: Role, releases: str) -> Message:
    """The layout that these releases wrote."""
    return next(layout.message for layout in RECORD_TYPES[number_of(family, role)].layouts if layout.releases == releases)


def _values(types: Iterable[int], layouts: Mapping[int, Message] | None = None) -> Mapping[int, Message]:
    """The layouts of these types in releases before the newest span: those given, or those of today up to their newest version."""
    known = {number: RECORD_TYPES[number] for number in sorted(types)}
    capped = {number: replace(row.message, versions=range(_NEWEST_VERSIONS.get(row.family, 0) + 1)) for number, row in known.items()}
    return MappingProxyType(capped | dict(layouts or {}))


def _accepted(values: Mapping[int, Message]) -> Mapping[int, range | None]:
    """Every version of these layouts."""
    return MappingProxyType({number: message.versions for number, message in values.items()})


@derived_from(RECORD_TYPES, CODECS)
def java_spans() -> tuple[JavaProfile, ...]:
    """The spans of the Java coordinator, oldest first.

    Each span names the record types that it reads, except the newest: it reads all types of the table.
    """
    consumer_3_7 = numbers(family="consumer", role=(*_GROUP_ROLES, "partition_metadata"))
    consumer_4_0 = consumer_3_7 | numbers(family="consumer", role="regular_expression")
    share_4_0 = numbers(family="share", role=(*_GROUP_ROLES, "partition_metadata", "share_state"))
    dropped_4_1 = numbers(family="share", role="partition_metadata")
    modern_4_1 = consumer_4_0 | (share_4_0 - dropped_4_1) | numbers(family="streams", role=(*_GROUP_ROLES, "topology"))
    modern_newest = numbers(family=MODERN_FAMILIES) - dropped_4_1
    early: tuple[tuple[Family, Role], ...] = tuple(("consumer", role) for role in ("partition_metadata", "member", "target", "current"))
    values_3_7 = _values(_OF_BOTH | consumer_3_7, {number_of(family, role): _layout(family, role, "3.7") for family, role in early})
    values_3_8 = _values(_OF_BOTH | consumer_3_7)
    values_4_0 = _values(
        _OF_BOTH | consumer_4_0 | share_4_0,
        {number_of("share", role): _layout("share", role, "4.0") for role in ("group", "share_state")},
    )
    legacy = {LEGACY_OFFSET_COMMIT: offsets.LEGACY_OFFSET_COMMIT_VALUE}
    values_4_1 = _values(_OF_BOTH | modern_4_1, legacy)
    values_newest = MappingProxyType({number: RECORD_TYPES[number].message for number in sorted(_OF_BOTH | modern_newest)} | legacy)
    spans = [
        JavaProfile(
            name="3.7.2",
            first="3.7.0",
            last="3.7.2",
            values=values_3_7,
            value_versions=MappingProxyType(dict.fromkeys(values_3_7)),
            expiry="java",
            default_retention_minutes=_WEEK_MINUTES,
            require_stable="ignored",
            defects=("KAFKA-14505", "KAFKA-16147", "KAFKA-17306", "KAFKA-18672", "KAFKA-19163"),
            initial_epoch=0,
            initial_validated_topology_epoch=0,
            subscription="null_and_length_abort",
            negative_epoch_aborts=False,
            creating_types=numbers(family="consumer", role=("group", "member")),
            missing_aborts=consumer_3_7,
            replaces_simple=frozenset(),
            ownership="overwrite",
            marker_decides=True,
            tombstone_drops_pending=False,
            pending_protects_offset=False,
            transaction_keeps_group="never",
            reconciled_by="target_epoch",
            commit_interval=None,
            fences_members=False,
            downgrade="disabled",
            emptied_group_is_assigned=False,
            share_offsets_stop_expiry=False,
        )
    ]

    def then(first: str, last: str, **differences: object) -> None:
        spans.append(replace(spans[-1], name=last, first=first, last=last, **differences))  # type: ignore[arg-type]

    then(
        "3.8.0",
        "3.9.2",
        values=values_3_8,
        value_versions=MappingProxyType(dict.fromkeys(values_3_8)),
        require_stable="refused",
        ownership="strict",
        marker_decides=False,
        tombstone_drops_pending=True,
        pending_protects_offset=True,
        transaction_keeps_group="with_offsets",
        reconciled_by="state",
        fences_members=True,
        defects=("KAFKA-17306", "KAFKA-18672", "KAFKA-19163", "KAFKA-19862"),
    )
    then(
        "4.0.0",
        "4.0.0",
        search_reads_old_batches=True,
        downgrade="with_targets",
        values=values_4_0,
        value_versions=_accepted(values_4_0),
        creating_types=consumer_4_0 | numbers(family="share", role=("group", "member")),
        missing_aborts=share_4_0,
        replaces_simple=frozenset({"consumer"}),
        refused_types=numbers(family="share", role="share_state"),
        share_groups_expire=True,
        share_offsets_stop_expiry=True,
        defects=("KAFKA-19163", "KAFKA-19453", "KAFKA-19862"),
    )
    then("4.0.1", "4.0.1", transaction_keeps_group="always", defects=("KAFKA-19453", "KAFKA-19862"))
    then("4.0.2", "4.0.2", ownership="monotonic", commit_interval=16384, defects=("KAFKA-19453", "KAFKA-20845"))
    then(
        "4.1.0",
        "4.1.0",
        values=values_4_1,
        value_versions=_accepted(values_4_1),
        creating_types=modern_4_1,
        missing_aborts=frozenset(),
        ownership="strict",
        streams_ownership_is_strict=True,
        refused_types=frozenset(),
        share_groups_expire=False,
        share_offsets_stop_expiry=False,
        streams_never_ready=True,
        commit_interval=None,
        defects=("KAFKA-19661", "KAFKA-19862", "KAFKA-20254"),
    )
    then("4.1.1", "4.1.1", commit_interval=16384)
    then("4.1.2", "4.1.2", ownership="monotonic", streams_ownership_is_strict=False, defects=("KAFKA-19661", "KAFKA-20254", "KAFKA-20845"))
    then("4.2.0", "4.2.0", streams_never_ready=False, defects=("KAFKA-20254", "KAFKA-20570", "KAFKA-20845"))
    then("4.2.1", "4.2.1", replaces_simple=frozenset({"consumer", "streams"}), defects=("KAFKA-20570", "KAFKA-20845"))
    then("4.2.2", "4.2.2", subscription="tolerated", defects=())
    then(
        "4.3.0",
        "4.3.1",
        subscription="null_and_length_abort",
        defects=("KAFKA-20570", "KAFKA-20845"),
        initial_epoch=1,
        downgrade="enabled",
        negative_epoch_aborts=True,
    )
    then(
        "4.4.0",
        "4.4.0",
        values=values_newest,
        value_versions=_accepted(values_newest),
        creating_types=modern_newest,
        initial_validated_topology_epoch=-1,
        subscription="tolerated",
        share_offsets_stop_expiry=True,
        emptied_group_is_assigned=True,
        defects=(),
    )
    return tuple(map(_without_later_codecs, spans))


@derived_from(RECORD_TYPES, CODECS)
def all_spans() -> tuple[BrokerProfile, ...]:
    """Every span, those of the Scala coordinator first."""
    return (*scala_spans(), *java_spans())


#: The lines that have both coordinators.
_BOTH = ((3, 7), (3, 8), (3, 9))
_RELEASE = re.compile(r"(\d+(?:\.\d+){0,3})(-new|-classic)?")


def release_numbers(release: str) -> tuple[int, ...]:
    """A release as numbers that compare: `4.3.0` is (4, 3, 0)."""
    return tuple(int(number) for number in release.split("."))


#: The newest patch of each line that Kafka has released; a line that gets none any more, and those that may get one.
_NEWEST_OF_EACH_LINE = (
    *("0.9.0.1", "0.10.0.1", "0.10.1.1", "0.10.2.2", "0.11.0.3", "1.0.2", "1.1.1"),
    *("2.0.1", "2.1.1", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.3", "2.7.2", "2.8.2"),
    *("3.0.2", "3.1.2", "3.2.3", "3.3.2", "3.4.1", "3.5.2", "3.6.2", "3.7.2", "3.8.1", "3.9.2"),
    *("4.0.2", "4.1.2", "4.2.2", "4.3.1"),
)


def profile_for(release: str | None) -> BrokerProfile:
    """The profile of this release; None: the newest.

    `4.2` means the newest known patch of 4.2. A release between two spans belongs to the earlier one; a release after the newest span
    belongs to that span (see `is_newer_than_known`).

    Raises:
        RequestError: the text is no release number, or is older than all spans; names the known releases.
    """
    if release is None:
        return all_spans()[-1]
    match = _RELEASE.fullmatch(release.strip())
    if match is None:
        raise RequestError(f"no release {release!r}", remedy=f"Write a release such as 2.8.2, 4.3 or 3.9.1-new; known are {_known()}")
    numbers, choice = release_numbers(match[1]), match[2]
    spans: tuple[BrokerProfile, ...] = java_spans() if choice == "-new" or (numbers >= (4,) and choice is None) else scala_spans()
    if choice is not None and numbers[:2] not in _BOTH:
        raise RequestError(f"{match[1]} has one coordinator", remedy="Only 3.7, 3.8 and 3.9 take -new or -classic")
    reached = [span for span in spans if release_numbers(span.first) <= _newest_patch(numbers)]
    if not reached:
        raise RequestError(f"no rules for release {release!r}", remedy=f"Known are {_known()}")
    span = reached[-1]
    is_whole = len(numbers) == (4 if numbers[0] == 0 else 3)
    return replace(span, name=(match[1] if is_whole else _newest_known(numbers, span)) + ("-new" if choice == "-new" else ""))


def _newest_known(numbers: tuple[int, ...], span: BrokerProfile) -> str:
    """The newest patch of a line: the span's last release, unless the span reaches beyond the line."""
    last = release_numbers(span.last)
    if last[: len(numbers)] == numbers:
        return span.last
    return ".".join(str(number) for number in numbers)


def is_release(text: str) -> bool:
    """Return True if the text has the form of a release, known or not."""
    return _RELEASE.fullmatch(text.strip()) is not None


def is_newer_than_known(release: str) -> bool:
    """Return True for a release newer than the newest known one."""
    match = _RELEASE.fullmatch(release.strip())
    return match is not None and _newest_patch(release_numbers(match[1]))[: len(release_numbers(match[1]))] > release_numbers(
        all_spans()[-1].last
    )


def newer_release_findings(releases: Iterable[str | None]) -> Iterator[Finding]:
    """A finding that the rules of this release are unknown, because it is newer than the newest known one."""
    for release in releases:
        newest = None if release is None else _newest_of_line(release)
        if newest is not None:
            sentence = f"no release {release} is known, the newest of its line is {newest}: the rules of {newest} are taken"
            yield Finding(code="release_not_known", severity="warn", confidence="likely", sentence=sentence)
        if release is not None and is_newer_than_known(release):
            sentence = f"the rules of {release} are not known: those of {profile_for(None).release} are taken"
            yield Finding(code="release_newer_than_known", severity="warn", confidence="likely", sentence=sentence)


def _newest_patch(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """The number of a release; a line such as 4.2 counts as its newest patch."""
    length = 4 if numbers[0] == 0 else 3
    return numbers + (1_000_000,) * (length - len(numbers))


def _newest_of_line(release: str) -> str | None:
    """Return the newest patch of this line, if the release has a greater number; None if not, and for a line without patches here."""
    match = _RELEASE.fullmatch(release.strip())
    if match is None:
        return None
    numbers = release_numbers(match[1])
    for newest in _NEWEST_OF_EACH_LINE:
        known = release_numbers(newest)
        if len(numbers) == len(known) and numbers[:-1] == known[:-1] and numbers > known:
            return newest
    return None


def _known() -> str:
    return f"{all_spans()[0].first} to {all_spans()[-1].last}"
