"""A row of its table adds a record type, a value version, a codec or an assignor: nothing else has to be registered."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from exhume.analysis.assignors import VARIANTS, GroupAssignment, GroupSpec, Variant, variant_for
from exhume.analysis.assignors.range_and_roundrobin import range_by_member_id
from exhume.analysis.detectors.condense import condense
from exhume.codecs.batch_writer import NewRecord, encode_batch
from exhume.codecs.compressed_streams import DecompressedBytes
from exhume.codecs.compression import CODECS, Codec
from exhume.codecs.json_values import to_json
from exhume.codecs.layout import INT32, STRING, Field, Message, Struct
from exhume.codecs.layouts import classic_group, consumer_group, offsets
from exhume.codecs.log_directory import discover
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.record_types import (
    GROUP_METADATA,
    OFFSET_COMMIT,
    RECORD_TYPES,
    RecordType,
    Role,
    ValueLayout,
    decode_record,
    encode_key,
    encode_value,
    number_of,
)
from exhume.codecs.segment_reader import ReadOptions, SegmentReader
from exhume.errors import EncodeError, RequestError
from exhume.findings import Findings
from exhume.fixtures import incidents, scenarios
from exhume.fixtures.log_writer import KeyValue, PartitionWriter, group_metadata, offset_commit, tombstone
from exhume.fixtures.partition_log import MessageForm
from exhume.fixtures.story import Story
from exhume.replay.release_table import release_table
from exhume.replay.releases import java_spans
from exhume.replay.spark.kinds import kind_named, kinds
from exhume.topic import OffsetsTopic
from tools import generate_docs

_TIME_MS = 1_700_000_000_000
#: Everything record by record; everything in columns, where the kernels can.
_WAYS = {"plain": 1 << 60, "compiled": 0}

Rows = list[dict[str, Any]]
Opened = Callable[[], OffsetsTopic]


@pytest.fixture(params=_WAYS)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """Opens the log that a test wrote, to be read in one of both ways."""
    return lambda: _open(tmp_path, ReadOptions(least_compiled_bytes=_WAYS[request.param], threads=1))


def _open(directory: Path, options: ReadOptions | None = None) -> OffsetsTopic:
    return OffsetsTopic(discover([str(directory / "log")], include=frozenset(), temp_dir=None), options or ReadOptions())


def _write(directory: Path, *batches: list[KeyValue], codec: int = 0) -> None:
    with PartitionWriter(directory / "log", 0) as partition:
        for number, batch in enumerate(batches):
            partition.append(batch, timestamp_ms=_TIME_MS + number, codec=codec)


def _codes(topic: OffsetsTopic) -> set[str]:
    """The codes of all findings of the reading, of the load and of the detectors; these logs have no checkpoints."""
    topic.state(mode="lenient")
    found = [*topic.findings, *topic.diagnose()]
    return {finding.code for finding in found if finding.confidence != "undecidable"} - {"no_checkpoints"}


# A value version


@pytest.fixture
def version_5(monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 5 of the offset commit, with a field in the middle and a tagged one."""
    own = offsets.OFFSET_COMMIT_VALUE.struct.fields
    fields = (*own[:2], Field("reason", STRING, "reason", since=5), *own[2:], Field("client_tag", STRING, "clientTag", since=5, tag=1))
    message = Message("OffsetCommitValue", range(6), Struct(fields), flexible_since=4)
    row = RECORD_TYPES[OFFSET_COMMIT]
    monkeypatch.setitem(RECORD_TYPES, OFFSET_COMMIT, replace(row, layouts=(ValueLayout("0.9+", message),)))


def _version_5(partition: int, committed_offset: int, **fields: Any) -> KeyValue:
    return offset_commit("g", "t", partition, committed_offset, commit_timestamp_ms=_TIME_MS, version=5, **fields)


def _version_3(partition: int, committed_offset: int, group: str = "g") -> KeyValue:
    return offset_commit(group, "t", partition, committed_offset, commit_timestamp_ms=_TIME_MS)


@pytest.fixture
def log_of_version_5(version_5: None, tmp_path: Path) -> None:
    first = _version_5(0, 7, reason="poll", client_tag="blue", metadata="m", leader_epoch=3, topic_id="AAAAAAAAAAAAAAAAAAAAAQ")
    _write(tmp_path, [first, _version_3(1, 8), _version_3(0, 1, "h")], [_version_5(1, 9), _version_5(2, 4)], [tombstone(_version_5(2, 4))])


@pytest.mark.usefixtures("log_of_version_5")
def test_a_value_version_is_in_the_typed_table_and_in_the_dump(opened: Opened) -> None:
    with opened() as topic:
        typed: Rows = topic.offset_commits().read_all().to_pylist()
        dumped: Rows = topic.dump().read_all().to_pylist()
        counted: Rows = topic.inspect().tables()["record_types"].to_pylist()

    shown = [(row["value_version"], row["reason"], row["client_tag"], row["metadata"], row["topic_id"]) for row in typed]
    assert shown == [
        (5, "poll", "blue", "m", "AAAAAAAAAAAAAAAAAAAAAQ"),
        (3, None, None, "", None),
        (3, None, None, "", None),
        (5, "", "", "", None),
        (5, "", "", "", None),
        (None, None, None, None, None),
    ]
    assert [row["marks"] for row in typed + dumped] == [[]] * 12
    assert '"reason":"poll"' in dumped[0]["value"]
    assert '"client_tag":"blue"' in dumped[0]["value"]
    assert sorted((row["value_version"] or 0, row["record_count"]) for row in counted) == [(0, 1), (3, 2), (5, 3)]


@pytest.mark.usefixtures("log_of_version_5")
def test_a_value_version_is_loaded_by_the_newest_release_and_refused_by_others(opened: Opened) -> None:
    with opened() as topic:
        state = topic.state()
        held = {(row["group"], row["partition"]): row for row in state.tables["offsets"].to_pylist()}
        old = topic.state(release="4.2.0").tables["loads"].to_pylist()

    assert {key: row["committed_offset"] for key, row in held.items()} == {("g", 0): 7, ("g", 1): 9, ("h", 0): 1}
    assert (held["g", 0]["metadata"], held["g", 0]["leader_epoch"], held["g", 0]["topic_id"]) == ("m", 3, "AAAAAAAAAAAAAAAAAAAAAQ")
    assert [row["value_version"] for row in held.values()] == [5, 5, 3]
    assert [(row["outcome"], row["last_record_offset"]) for row in old] == [("aborted", None)]


@pytest.mark.usefixtures("version_5")
def test_releases_before_the_newest_keep_the_versions_that_they_know() -> None:
    known = {span.name: (span.values[OFFSET_COMMIT].versions, span.value_versions[OFFSET_COMMIT]) for span in java_spans()}

    # 3.7 to 3.9 take any other version for the nearest one that they know.
    assert {known.pop("3.7.2"), known.pop("3.9.2")} == {(range(5), None)}
    assert known.pop("4.4.0") == (range(6), range(6))
    assert set(known.values()) == {(range(5), range(5))}


def test_a_value_version_is_nothing_to_detectors(log_of_version_5: None, opened: Opened, tmp_path: Path) -> None:
    with opened() as topic:
        codes = _codes(topic)
        commits = topic.history("g").to_pylist()
    _write(
        tmp_path / "older",
        [_version_3(0, 7), _version_3(1, 8), _version_3(0, 1, "h")],
        [_version_3(1, 9), _version_3(2, 4)],
        [tombstone(_version_3(2, 4))],
    )
    with _open(tmp_path / "older") as older:
        assert codes == _codes(older)

    assert [(row["partition"], row["committed_offset"]) for row in commits] == [(0, 7), (1, 8), (1, 9), (2, 4), (2, None)]


@pytest.mark.usefixtures("version_5")
def test_a_value_version_is_in_the_reference_pages() -> None:
    assert "Value, written by 0.9+, versions 0 to 5, flexible from 4:" in generate_docs._record_types()
    assert "* `reason` string (from version 5)" in generate_docs._record_types()
    assert "| reason | string |\n" in generate_docs._tables()
    assert release_table().to_pylist()[-1]["largest_versions"] == "offset 5, group 4"
    assert release_table().to_pylist()[-2]["largest_versions"] == "offset 4, group 4"


_EDITED = """
import json, sys
from pathlib import Path
from exhume.codecs.layout import STRING, Field, Message, Struct
from exhume.codecs.layouts import offsets

own = offsets.OFFSET_COMMIT_VALUE
fields = (*own.struct.fields[:2], Field("reason", STRING, "reason", since=5), *own.struct.fields[2:])
offsets.OFFSET_COMMIT_VALUE = Message(own.name, range(6), Struct(fields), own.flexible_since)

import exhume
from exhume.codecs.log_directory import discover
from exhume.codecs.segment_reader import ReadOptions
from exhume.fixtures.log_writer import PartitionWriter, offset_commit
from exhume.topic import OffsetsTopic

directory = Path(sys.argv[1])
with PartitionWriter(directory, 0) as partition:
    for version, more in ((3, {}), (4, {}), (5, {"reason": "poll"})):
        partition.append([offset_commit("g", "t", version, 7, commit_timestamp_ms=1, version=version, **more)], timestamp_ms=1)
for least_bytes in (1 << 60, 0):
    with OffsetsTopic(discover([str(directory)]), ReadOptions(least_compiled_bytes=least_bytes)) as topic:
        typed = [(row["value_version"], row["reason"]) for row in topic.offset_commits().read_all().to_pylist()]
        dumped = [json.loads(row["value"]).get("reason") for row in topic.dump().read_all().to_pylist()]
        held = [(row["partition"], row["value_version"]) for row in topic.state().tables["offsets"].to_pylist()]
        print(json.dumps([typed, dumped, held, [finding.sentence for finding in topic.diagnose() if finding.code == "IC-09"]]))
"""


def test_a_version_in_the_file_of_its_layout_is_all_that_there_is_to_write(tmp_path: Path) -> None:
    # What modules make of the layout while they are imported, they make of the new one.
    done = subprocess.run([sys.executable, "-c", _EDITED, str(tmp_path / "log")], check=True, capture_output=True, text=True)

    expected = [[[3, None], [4, None], [5, "poll"]], [None, None, "poll"], [[3, 3], [4, 4], [5, 5]], []]
    assert [json.loads(line) for line in done.stdout.splitlines()] == [expected, expected]


# A record type


@pytest.fixture
def type_24(monkeypatch: pytest.MonkeyPatch) -> RecordType:
    """A record type of consumer groups, with a role that no other has."""
    fields = (Field("limit", INT32, "limit"), Field("note", STRING, "note"))
    message = Message("ConsumerGroupQuota", range(1), Struct(fields), flexible_since=0)
    row = RecordType(
        24,
        "consumer_group_quota",
        "ConsumerGroupQuota",
        "consumer",
        cast("Role", "quota"),
        consumer_group.GROUP_KEY,
        (ValueLayout("4.5+", message),),
    )
    monkeypatch.setitem(RECORD_TYPES, 24, row)
    return row


def _quota(group: str, note: str | None = "") -> KeyValue:
    value = None if note is None else encode_value(24, 0, {"limit": 5, "note": note})
    return encode_key(24, {"group": group}), value


def _of_group(group: str) -> KeyValue:
    number = number_of("consumer", "group")
    return encode_key(number, {"group": group}), encode_value(number, 0, {"group_epoch": 3, "metadata_hash": 1})


@pytest.fixture
def log_of_type_24(type_24: RecordType, tmp_path: Path) -> None:
    _write(tmp_path, [_of_group("g"), _quota("g", "first")], [_quota("h", "alone")], [_quota("g", None), _quota("nobody", None)])


@pytest.mark.usefixtures("log_of_type_24")
def test_a_record_type_is_in_its_typed_table_and_in_the_dump(opened: Opened) -> None:
    with opened() as topic:
        typed: Rows = topic.decoded("consumer_group_quota").read_all().to_pylist()
        dumped: Rows = topic.dump(RecordFilter(types=["consumer_group_quota"], groups=["g"])).read_all().to_pylist()
        counted: Rows = topic.inspect().tables()["record_types"].to_pylist()

    assert [(row["group"], row["limit"], row["note"], row["is_tombstone"]) for row in typed] == [
        ("g", 5, "first", False),
        ("h", 5, "alone", False),
        ("g", None, None, True),
        ("nobody", None, None, True),
    ]
    assert [(row["record_type"], row["type"], row["value"], row["marks"]) for row in dumped] == [
        (24, "consumer_group_quota", to_json({"limit": 5, "note": "first"}), []),
        (24, "consumer_group_quota", None, []),
    ]
    assert sum(row["record_count"] for row in counted if row["type"] == "consumer_group_quota") == 4


@pytest.mark.usefixtures("log_of_type_24")
def test_a_record_type_is_loaded_as_one_of_its_family(opened: Opened) -> None:
    with opened() as topic:
        state = topic.state()
        groups = {row["group"]: (row["group_type"], row["group_epoch"]) for row in state.tables["groups"].to_pylist()}
        loads = state.tables["loads"].to_pylist()
        newest = [finding.code for finding in topic.findings]
        old = topic.state(release="4.2.0").tables["groups"].to_pylist()

    assert groups == {"g": ("consumer", 3), "h": ("consumer", 1)}
    assert [row["outcome"] for row in loads] == ["loaded"]
    assert "unknown_record_type" not in newest
    assert [row["group"] for row in old] == ["g"]


@pytest.mark.usefixtures("type_24")
def test_a_record_type_of_another_family_is_refused(tmp_path: Path) -> None:
    number = number_of("share", "group")
    share = encode_key(number, {"group": "g"}), encode_value(number, 0, {"group_epoch": 3, "metadata_hash": 1})
    _write(tmp_path, [share], [_quota("g")])

    with _open(tmp_path) as topic:
        load = topic.state().tables["loads"].to_pylist()[0]

    assert load["reason"] == "group 'g' is a share group, record type 24 belongs to consumer groups"


@pytest.mark.usefixtures("log_of_type_24")
def test_a_record_type_is_kept_for_detectors(opened: Opened, tmp_path: Path) -> None:
    with discover([str(tmp_path / "log")]) as evidence:
        case = condense(SegmentReader(evidence, ReadOptions(), Findings()))
    with opened() as topic:
        kept = {group.group: [record.record_type for record in group.records] for group in case.partitions[0].groups}
        steps = [(step.group, step.kind, step.record_offset) for step in topic.memberships()]
        codes = _codes(topic)

    assert kept == {"g": [3, 24, 24], "h": [24], "nobody": [24]}
    assert steps == [("g", "consumer", 0), ("h", "consumer", 2), ("g", "consumer", 3)]
    assert not codes


@pytest.mark.usefixtures("type_24")
def test_a_record_type_is_in_the_reference_pages_and_a_kind_of_the_spark_format() -> None:
    assert "## 24 consumer_group_quota (ConsumerGroupQuota; family consumer, role quota)" in generate_docs._record_types()
    assert "### consumer_group_quota\n" in generate_docs._tables()
    assert "\n## consumer_group_quota\n" in generate_docs._spark_tables()
    assert "`consumer_group_quota`" in generate_docs._spark_kinds()
    assert "note" in kinds()[kind_named("consumer_group_quota")].names
    assert [row["record_types"] for row in release_table().to_pylist()[-2:]] == ["0-8, 10-17, 19-23", "0-8, 10-17, 19-24"]


# A group value version


@pytest.fixture
def group_version_5(monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 5 of the group metadata, with a field in front and a tagged one."""
    own = classic_group.GROUP_METADATA_VALUE.struct.fields
    fields = (Field("zone", STRING, "zone", since=5), *own, Field("epoch", INT32, "epoch", since=5, tag=0, default=-1))
    message = Message("GroupMetadataValue", range(6), Struct(fields), flexible_since=4)
    monkeypatch.setitem(RECORD_TYPES, GROUP_METADATA, replace(RECORD_TYPES[GROUP_METADATA], layouts=(ValueLayout("0.9+", message),)))


@pytest.mark.usefixtures("group_version_5")
def test_a_value_version_of_groups_is_read_everywhere(opened: Opened, tmp_path: Path) -> None:
    value = {"zone": "a", "protocol_type": "consumer", "generation": 7, "members": [], "epoch": 3}
    _write(tmp_path, [group_metadata("g", value | {"generation": 6}, version=3)], [group_metadata("g", value, version=5)])

    with opened() as topic:
        typed: Rows = topic.group_metadata().read_all().to_pylist()
        dumped: Rows = topic.dump().read_all().to_pylist()
        groups = topic.state().tables["groups"].to_pylist()
        steps = [(step.record_offset, step.generation) for step in topic.memberships()]
        codes = _codes(topic)

    assert [(row["value_version"], row["zone"], row["epoch"], row["generation"]) for row in typed] == [(3, None, None, 6), (5, "a", 3, 7)]
    assert '"zone":"a"' in dumped[1]["value"]
    assert [(row["group"], row["group_state"], row["generation"]) for row in groups] == [("g", "Empty", 7)]
    assert steps == [(0, 6), (1, 7)]
    assert not codes


_LAYOUTS_OF_VERSION_5 = {
    "offsets.py": [
        ("            # After the offset", '            Field("reason", STRING, "reason", since=5),\n            # After the offset'),
        ("tag=0),\n", 'tag=0),\n            Field("client_tag", STRING, "clientTag", since=5, tag=1),\n'),
        ("    range(5),\n", "    range(6),\n"),
    ],
    "classic_group.py": [
        ('            Field("protocol_type"', '            Field("zone", STRING, "zone", since=5),\n            Field("protocol_type"'),
        (
            'Array(MEMBER), "members"),\n',
            'Array(MEMBER), "members"),\n            Field("epoch", INT32, "epoch", since=5, tag=0, default=-1),\n',
        ),
        (
            '        Field("client_host"',
            '        Field("rack", STRING, "rack", since=5, nullable=True, default=None),\n        Field("client_host"',
        ),
        ("    range(5),\n", "    range(6),\n"),
    ],
}
_READ_BY_KERNELS = """
import sys
from pathlib import Path
from unittest.mock import patch

from exhume.codecs.columns import dumped, typed
from exhume.codecs.log_directory import discover
from exhume.codecs.segment_reader import ReadOptions
from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit, tombstone
from exhume.replay import local
from exhume.replay.fold import tables
from exhume.topic import OffsetsTopic

_MEMBER = {"member_id": "m", "client_id": "c", "client_host": "/h", "rack": "r", "subscription": bytes(10), "assignment": bytes(10)}
_NEW = {"reason": "poll", "client_tag": "blue", "leader_epoch": 7, "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ"}


def batches():
    for version in range(6):
        new = {"commit_timestamp_ms": 1, "version": version} | (_NEW if version == 5 else {})
        commits = [offset_commit(f"g{version}", "t", each, 7, metadata="m", **new) for each in (1, 2)]
        yield [*commits, offset_commit("h", "t", version, 7, commit_timestamp_ms=1, version=version)]
        group = {"protocol_type": "consumer", "generation": 1, "protocol": "range", "leader": "m", "members": [_MEMBER]}
        yield [group_metadata(f"g{version}", group | {"zone": "a", "epoch": 3}, version=version)]
        yield [tombstone(commits[1]), group_metadata("h", group, version=version)]


directory = Path(sys.argv[1])
with PartitionWriter(directory, 0) as partition:
    for content in batches():
        partition.append(content, timestamp_ms=1)


def tables_of(least_bytes):
    with OffsetsTopic(discover([str(directory)]), ReadOptions(least_compiled_bytes=least_bytes, threads=1)) as topic:
        yield from (topic.offset_commits().read_all(), topic.group_metadata().read_all(), topic.dump().read_all())
        for groups in (None, ["g5"]):
            state = topic.state(groups=groups)
            yield from (state.tables[name] for name in ("offsets", "groups", "loads"))
            yield from (state.group("g5").members, state.group("g5").offsets)


def taken(folded, options):
    assert not folded.result.tables.counts[tables.PASSED] and not folded.result.careful_segments
    loads.append(load_in_columns(folded, options))
    return loads[-1]


plain = list(tables_of(1 << 60))
assert plain[0]["reason"].to_pylist().count("poll") == 2 and plain[1]["epoch"].to_pylist().count(3) == 1
loads, load_in_columns = [], local._load_in_columns
# No record is decoded one by one.
with patch.object(typed, "decode_table", None), patch.object(dumped, "dump_table", None), patch.object(local, "_load_in_columns", taken):
    by_kernels = list(tables_of(0))
assert len(loads) == 2 and None not in loads
assert by_kernels == plain
print("read by kernels")
"""


def test_a_value_version_in_the_layouts_is_read_by_kernels(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parent.parent
    for name in ("src", "kernel_build"):
        shutil.copytree(root / name, tmp_path / name, ignore=shutil.ignore_patterns("*.so", "__pycache__", "demo_log"))
    for name, changes in _LAYOUTS_OF_VERSION_5.items():
        path = tmp_path / "src" / "exhume" / "codecs" / "layouts" / name
        text = path.read_text(encoding="utf-8")
        for old, new in changes:
            assert text.count(old) == 1
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")

    # The build does this before it compiles the kernels; here their text runs.
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "src"), "EXHUME_KERNELS": "plain"}
    for arguments in (["-m", "kernel_build.readers"], ["-c", _READ_BY_KERNELS, str(tmp_path / "log")]):
        done = subprocess.run([sys.executable, *arguments], cwd=tmp_path, env=environment, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    assert done.stdout == "read by kernels\n"


# A codec


@pytest.fixture
def codec_5(monkeypatch: pytest.MonkeyPatch) -> None:
    """A codec of format 2 that came with 4.3.0: it turns a section round."""

    def unfold(data: memoryview, output: DecompressedBytes, *, magic: int, lenient: bool) -> None:
        output.add(bytes(data)[::-1])

    row = Codec(5, "mirror", lambda data, magic: bytes(data)[::-1], unfold, first_format=2, first_release="4.3.0")
    monkeypatch.setitem(CODECS, 5, row)


@pytest.fixture
def log_of_codec_5(codec_5: None, tmp_path: Path) -> None:
    _write(tmp_path, [_version_3(0, 7), _of_group("h")], [_version_3(0, 9)], codec=5)


@pytest.mark.usefixtures("log_of_codec_5")
def test_a_codec_is_read_and_shown_by_its_name(opened: Opened) -> None:
    with opened() as topic:
        batches: Rows = topic.batches().read_all().to_pylist()
        segments: Rows = topic.inspect().tables()["segments"].to_pylist()
        commits: Rows = topic.offset_commits().read_all().to_pylist()
        codes = _codes(topic)

    assert [row["codec"] for row in batches] == ["mirror", "mirror"]
    assert [row["codecs"] for row in segments] == [["mirror"]]
    assert [row["committed_offset"] for row in commits] == [7, 9]
    assert not codes


@pytest.mark.usefixtures("log_of_codec_5")
@pytest.mark.parametrize(("release", "outcome"), [("4.3.0", "loaded"), ("4.2.1", "aborted"), ("3.9.1", "aborted"), ("2.0.1", "aborted")])
def test_a_codec_is_loaded_from_its_first_release_on(opened: Opened, release: str, outcome: str) -> None:
    with opened() as topic:
        state = topic.state(release=release)
        (load,) = state.tables["loads"].to_pylist()
        offsets = [row["committed_offset"] for row in state.tables["offsets"].to_pylist()]

    assert (load["outcome"], load["reason"]) == (outcome, None if outcome == "loaded" else "this release has no mirror")
    assert offsets == ([9] if outcome == "loaded" else [])


@pytest.mark.usefixtures("log_of_codec_5")
def test_batches_of_a_codec_are_found_after_damage(tmp_path: Path) -> None:
    segment = tmp_path / "log" / "__consumer_offsets-0" / "00000000000000000000.log"
    segment.write_bytes(bytes(100) + segment.read_bytes())

    with _open(tmp_path) as topic:
        commits = topic.offset_commits().read_all().to_pylist()

    assert [row["committed_offset"] for row in commits] == [7, 9]


@pytest.mark.usefixtures("codec_5")
def test_scenarios_and_incidents_are_written_with_a_codec(tmp_path: Path) -> None:
    scenarios.write("one-rebalance", tmp_path / "log", codec="mirror")
    incidents.write("IC-04", tmp_path / "incident", codec="mirror")

    with _open(tmp_path) as topic:
        used = {row["codec"] for row in topic.batches().read_all().to_pylist() if not row["is_control"]}
        loads = topic.state().tables["loads"].to_pylist()
    assert used == {"mirror"}
    assert {row["outcome"] for row in loads} == {"loaded"}
    with pytest.raises(RequestError, match="message format 1 has no mirror") as refused:
        MessageForm(1, "mirror")
    assert refused.value.remedy == "Choose another codec, or message format 2"
    with pytest.raises(EncodeError, match="format 0 has no mirror"):
        encode_batch([NewRecord(0, 0, *_version_3(0, 1))], base_offset=0, magic=0, codec=5)


def test_without_its_row_a_codec_is_not_known(tmp_path: Path) -> None:
    with pytest.raises(EncodeError, match="codec 5 does not exist"):
        _write(tmp_path, [_version_3(0, 7)], codec=5)
    with pytest.raises(RequestError, match="no codec 'mirror'"):
        MessageForm(2, "mirror")


# An assignor of a new release


@pytest.fixture
def range_4_5() -> Iterator[Variant]:
    """`range` of clients from 4.5 on: the last member comes first."""

    def run(spec: GroupSpec) -> GroupAssignment:
        turned = {member.member_id: str(len(spec.members) - place) for place, member in enumerate(spec.members)}
        renamed = replace(spec, members=tuple(replace(member, member_id=turned[member.member_id]) for member in spec.members))
        answer = range_by_member_id(renamed)
        return GroupAssignment({member_id: answer.assigned[name] for member_id, name in turned.items()})

    variant = Variant("range", "client", "4.5", None, ("4.5.0",), (), run)
    VARIANTS.append(variant)
    yield variant
    VARIANTS.remove(variant)


def test_an_assignor_of_a_new_release_explains_an_assignment(range_4_5: Variant, opened: Opened, tmp_path: Path) -> None:
    Story("0 d0 10:00 GM g gen=1 {A: t → t-2,3; B: t → t-0,1}").write(tmp_path / "log")

    with opened() as topic:
        (explained,) = topic.assignments(groups=["g"]).verdicts.to_pylist()
        (expected,) = topic.assignments(groups=["g"], expected="range", release="4.5").verdicts.to_pylist()
        (older,) = topic.assignments(groups=["g"], expected="range", release="4.4").verdicts.to_pylist()

    assert (explained["verdict"], explained["explained_by"]) == ("as_expected", "range of Java clients 4.5 and later")
    assert (expected["verdict"], expected["explained_by"]) == ("as_expected", "range of Java clients 4.5 and later")
    assert older["verdict"] != "as_expected"
    assert variant_for("client", "range", "4.5.1") is range_4_5
    assert "| `range` | leader of a classic group | 4.5 and later | nothing more | 4.5.0 |" in generate_docs._variants()


def test_without_its_row_the_type_is_not_known() -> None:
    assert decode_record(b"\x00\x18\x00\x01g", None).marks == ["unknown_record_type"]
