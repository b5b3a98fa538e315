"""The data source: the rows that one machine reads, in tasks; what is pushed down; layouts of backups."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import exhume
import exhume.spark
from exhume.codecs import schemas
from exhume.codecs.record_filter import RecordFilter
from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit, tombstone
from exhume.replay.spark.kinds import as_spark_carries, for_spark, kinds
from exhume.replay.spark.planning import find_evidence, plan
from exhume.replay.spark.pushed_filters import Condition, Pushed, push
from exhume.replay.spark.source_options import OPTIONS, read_options
from exhume.topic import OffsetsTopic
from tests.judges import corpus
from tests.s3_server import S3Server

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TIME_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Every data directory that comes with the tests, each from a broker or the fixtures, some damaged."""
    places = [str(data) for case in corpus.cases(corpus.BUNDLED) for data in case.data_directories.values()]
    assert len(places) > 20
    return places


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two partitions of five segments, with indexes: commits of four groups, tombstones, a classic group."""
    data = tmp_path_factory.mktemp("written") / "data"
    for number in (3, 7):
        with PartitionWriter(data, number) as partition:
            for segment in range(5):
                if segment:
                    partition.roll()
                for batch in range(60):
                    time_ms = TIME_MS + 1000 * segment + batch
                    commits = [
                        offset_commit(f"g{n % 4}", f"t{n % 3}", n, 100 * segment + batch, commit_timestamp_ms=time_ms) for n in range(20)
                    ]
                    partition.append(commits, timestamp_ms=time_ms)
                partition.append([tombstone(offset_commit("g0", "t0", 0, 0, commit_timestamp_ms=0))], timestamp_ms=time_ms + 1)
                partition.append([group_metadata("g1", {"protocol_type": "consumer", "generation": segment})], timestamp_ms=time_ms + 2)
    return data


@pytest.fixture(scope="module")
def damaged(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a hole, a checksum that fails, a cut tail and a missing segment."""
    copy = tmp_path_factory.mktemp("damaged") / "data"
    shutil.copytree(log, copy)
    first, second, third, fourth, _ = sorted((copy / "__consumer_offsets-3").glob("*.log"))
    content = bytearray(first.read_bytes())
    content[3000:6000] = b"\xff" * 3000
    content[20_000] ^= 1
    first.write_bytes(content)
    second.write_bytes(second.read_bytes()[:-50])
    third.unlink()
    fourth.rename(fourth.with_suffix(".log.deleted"))
    return copy


def read(spark: SparkSession, kind: str, places: str | list[str], options: Mapping[str, Any] | None = None) -> DataFrame:
    reader = spark.read.format("offsets-topic").option("kind", kind)
    for name, value in (options or {}).items():
        reader = reader.option(name, str(value))
    return reader.load(places)


def rows_of(table: pa.Table, without: Collection[str] = ()) -> Counter[str]:
    return Counter(str({name: value for name, value in row.items() if name not in without}) for row in table.to_pylist())


def assert_same_rows(there: pa.Table, here: pa.Table) -> None:
    """The same rows in any order."""
    order = [(name, "ascending") for name in ("path", "byte_position", "record_offset") if name in here.schema.names]
    if not there.sort_by(order).equals(here.sort_by(order)):
        assert rows_of(there) == rows_of(here)


def local_table(topic: OffsetsTopic, kind: str, wanted: Mapping[str, Any] | None = None) -> pa.Table:
    """What one machine says, in the types of Spark."""
    match kind:
        case "records":
            table = topic.records(**(wanted or {})).read_all()
        case "dump":
            table = topic.dump(RecordFilter(**(wanted or {}))).read_all()
        case "batches":
            table = topic.batches().read_all()
        case "segments":
            table = topic.segments()
        case "findings":
            topic.records().read_all()
            table = topic.findings.to_table()
        case name:
            table = topic.decoded(name).read_all()
    schema = for_spark(table.schema)
    return pa.Table.from_batches([as_spark_carries(batch, schema) for batch in table.to_batches()], schema=schema)


@pytest.fixture(scope="module")
def source(spark: SparkSession) -> SparkSession:
    exhume.spark.register(spark)
    return spark


@pytest.mark.parametrize("kind", [kind for kind in kinds() if kind != "reads"])
def test_rows_are_those_of_one_machine(kind: str, source: SparkSession, bundled: list[str]) -> None:
    df = read(source, kind, bundled, {"bytes_per_partition": 500_000})
    with exhume.open(bundled) as topic:
        here = local_table(topic, kind)
    there = df.toArrow()

    assert there.schema.names == kinds()[kind].names
    assert_same_rows(there, here)
    if kind in ("records", "dump", "offset_commit", "group_metadata", "batches", "segments", "findings"):
        assert here.num_rows > 40


@pytest.mark.corpus
@pytest.mark.skipif(corpus.WHOLE is None, reason="set EXHUME_CORPUS to a directory of logs that brokers wrote")
@pytest.mark.parametrize("kind", ["records", "offset_commit", "group_metadata", "batches", "segments", "findings"])
def test_rows_of_the_whole_corpus_are_those_of_one_machine(kind: str, source: SparkSession) -> None:
    places = [str(data) for case in corpus.cases(corpus.WHOLE or Path()) for data in case.data_directories.values()]
    with exhume.open(places) as topic:
        here = local_table(topic, kind)

    assert_same_rows(read(source, kind, places, {"bytes_per_partition": 500_000}).toArrow(), here)
    assert here.num_rows > 40


@pytest.mark.parametrize("kind", ["records", "findings", "segments", "batches"])
def test_damage_never_fails_a_job(kind: str, source: SparkSession, damaged: Path) -> None:
    df = read(source, kind, str(damaged))
    with exhume.open(damaged) as topic:
        assert rows_of(df.toArrow()) == rows_of(local_table(topic, kind))
    if kind == "findings":
        assert {"crc_mismatch", "cut_tail"} <= set(df.toArrow()["code"].to_pylist())


@pytest.mark.parametrize("kind", ["records", "batches"])
def test_large_segments_are_read_in_parts(kind: str, source: SparkSession, log: Path) -> None:
    options = read_options({"kind": kind, "path": str(log), "bytes_per_partition": "20000"})
    with find_evidence(options) as evidence:
        tasks = plan(evidence, options, Pushed(options.wanted))
    assert len(tasks) > 20
    df = read(source, kind, str(log), {"bytes_per_partition": 20_000})
    with exhume.open(log) as topic:
        assert rows_of(df.toArrow()) == rows_of(local_table(topic, kind))


def test_a_damaged_border_means_that_a_segment_is_read_whole(source: SparkSession, damaged: Path) -> None:
    for kind in ("records", "findings"):
        df = read(source, kind, str(damaged), {"bytes_per_partition": 25_000})
        with exhume.open(damaged) as topic:
            assert rows_of(df.toArrow()) == rows_of(local_table(topic, kind))


def test_small_segments_share_a_task(log: Path) -> None:
    options = read_options({"path": str(log)})
    with find_evidence(options) as evidence:
        [task] = plan(evidence, options, Pushed(options.wanted))
    assert len(task.parts) == 10


def test_options_say_which_records(source: SparkSession, log: Path) -> None:
    wanted: dict[str, Any] = {"groups": ["g1", "g2"], "topics": ["t1"], "from_offset": 100, "to_offset": 3000, "offsets_partitions": [3]}
    options = {
        "groups": '["g1", "g2"]',
        "topics": "t1",
        "from_offset": 100,
        "to_offset": 3000,
        "offsets_partitions": 3,
        "from_time": "2023-11-14T22:13:20Z",
        "to_time": TIME_MS + 2030,
        "types": "offset_commit,group_metadata",
    }
    with exhume.open(log) as topic:
        here = local_table(topic, "records", wanted | {"from_time_ms": TIME_MS, "to_time_ms": TIME_MS + 2030})
    there = read(source, "records", str(log), options).toArrow()

    assert 0 < here.num_rows < 3000
    assert rows_of(there) == rows_of(here)


def test_reads_tell_what_an_option_saves(source: SparkSession, log: Path, s3: S3Server) -> None:
    uri = s3.upload(log, "spark/reads/data")
    filesystem: dict[str, Any] = {f"fs.{name}": value for name, value in s3.options.items()}
    total_bytes = sum(path.stat().st_size for path in log.rglob("*.log"))

    whole = read(source, "reads", uri, filesystem).toArrow().to_pylist()
    some = read(source, "reads", uri, filesystem | {"groups": "g1", "offsets_partitions": 3, "from_offset": 2500}).toArrow().to_pylist()

    assert sum(row["size_bytes"] for row in whole) == total_bytes
    assert sum(row["fetched_bytes"] for row in whole) == total_bytes
    assert sum(row["row_count"] for row in whole) == 2 * 5 * 1202
    # The first two segments of partition 3 end in front of offset 2500.
    assert [row["base_offset"] for row in some] == [2404, 3606, 4808]
    assert sum(row["fetched_bytes"] for row in some) < total_bytes * 0.31
    assert 0 < sum(row["row_count"] for row in some) < 1000


@pytest.mark.parametrize("kind", ["records", "offset_commit", "findings"])
def test_a_bucket_gives_the_same_rows(kind: str, source: SparkSession, log: Path, s3: S3Server) -> None:
    uri = s3.upload(log, "spark/bucket/data")
    filesystem = {f"fs.{name}": value for name, value in s3.options.items()}
    with exhume.open(log) as topic:
        here = rows_of(local_table(topic, kind), without=["path"])
    options = {**filesystem, "bytes_per_partition": 20_000 if kind == "records" else 64_000_000}
    assert rows_of(read(source, kind, uri, options).toArrow(), without=["path"]) == here


@pytest.fixture
def pushing(source: SparkSession) -> Iterator[SparkSession]:
    """The format with pushed filters."""
    source.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    exhume.spark.register(source)
    yield source
    source.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    exhume.spark.register(source)


_FILTERS = {
    "`group` = 'g1'": "EqualTo(group,g1)",
    "`group` in ('g1', 'g3') and topic = 't2'": "In(group, [g1,g3])",
    "offsets_partition = 7 and record_offset >= 1300 and record_offset < 2500": "GreaterThanOrEqual(record_offset,1300)",
    f"timestamp_ms > {TIME_MS + 3000}": f"GreaterThan(timestamp_ms,{TIME_MS + 3000})",
    "partition in (4, 5)": "In(partition, [4,5])",
    "replica = 'data' and committed_offset > 250": "EqualTo(replica,data)",
    "`group` = 'g1' and `group` = 'g2'": "",
    "record_offset > 100 and record_offset < 50": "",
    "`group` = 'nobody' or topic = 't1'": "",
    "metadata is null": "",
    "`group` like 'g%'": "",
}


@pytest.mark.parametrize("condition", _FILTERS)
def test_pushed_filters_stand_in_the_plan_and_change_no_row(condition: str, pushing: SparkSession, log: Path) -> None:
    df = read(pushing, "offset_commit", str(log)).filter(condition)
    described = df._jdf.queryExecution().explainString(_formatted(pushing))
    with exhume.open(log) as topic:
        everything = local_table(topic, "offset_commit")
    by_spark = pushing.createDataFrame(everything).filter(condition)

    assert rows_of(df.toArrow()) == rows_of(by_spark.toArrow())
    if _FILTERS[condition]:
        assert _FILTERS[condition] in described.partition("PushedFilters: ")[2].partition("\n")[0]


def _formatted(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.execution.ExplainMode.fromString("formatted")


def test_without_the_switch_filters_stay_with_spark(source: SparkSession, log: Path) -> None:
    df = read(source, "offset_commit", str(log)).filter("`group` = 'g1'")

    assert df.count() == 2 * 5 * 60 * 5


def test_what_was_pushed_is_not_read(log: Path) -> None:
    options = read_options({"kind": "records", "path": str(log)})
    pushed = Pushed(options.wanted)
    for condition in (Condition("offsets_partition", "in", (7,)), Condition("record_offset", ">", (4000,))):
        narrowed = push(pushed, "records", condition)
        assert narrowed is not None
        pushed = narrowed
    with find_evidence(options) as evidence:
        [task] = plan(evidence, options, pushed)

    assert [(piece.partition.offsets_partition, piece.segment.base_offset) for piece in task.parts] == [(7, 3606), (7, 4808)]


@pytest.mark.parametrize(
    ("kind", "condition"),
    [
        ("findings", Condition("offsets_partition", "in", (3,))),
        ("batches", Condition("record_offset", ">", (3,))),
        ("records", Condition("group", "in", ("g1",))),
        ("group_metadata", Condition("topic", "in", ("t1",))),
        ("group_metadata", Condition("generation", "in", (1,))),
        ("offset_commit", Condition("record_type", "in", (1,))),
        ("offset_commit", Condition("group", "in", (1,))),
        ("offset_commit", Condition("partition", "in", ("1",))),
        ("offset_commit", Condition("record_offset", ">", (1.5,))),
        ("consumer_group_member_metadata", Condition("partition", "in", (1,))),
    ],
)
def test_what_the_reader_cannot_meet_stays_with_spark(kind: str, condition: Condition) -> None:
    assert push(Pushed(RecordFilter()), kind, condition) is None


def test_many_brokers_are_replicas(source: SparkSession, log: Path, tmp_path: Path) -> None:
    for broker, segments in (("broker-1", 4), ("broker-2", 5), ("broker-10", 5)):
        shutil.copytree(log, tmp_path / "all" / broker / "logs")
        for partition in (tmp_path / "all" / broker / "logs").iterdir():
            for path in sorted(partition.glob("*.log"))[segments:]:
                path.unlink()
        (tmp_path / "all" / broker / "logs" / "meta.properties").write_text(f"version=0\nbroker.id={broker.rpartition('-')[2]}\n")

    everything = read(source, "records", str(tmp_path / "all")).toArrow()
    picked = read(source, "records", str(tmp_path / "all"), {"replicas": "pick"}).toArrow()
    segments_table = read(source, "segments", str(tmp_path / "all"), {"replicas": "pick"}).toArrow()
    findings = read(source, "findings", str(tmp_path / "all"), {"replicas": "pick"}).toArrow()

    assert Counter(everything["replica"].to_pylist()) == {"1": 2 * 4 * 1202, "2": 2 * 5 * 1202, "10": 2 * 5 * 1202}
    assert Counter(picked["replica"].to_pylist()) == {"2": 2 * 5 * 1202}
    assert {(row["replica"], row["is_read"]) for row in segments_table.to_pylist()} == {("1", False), ("2", True), ("10", False)}
    sentences = [row["sentence"] for row in findings.to_pylist() if row["code"] == "replica_left_out"]
    assert len(sentences) == 4
    assert sum("whose log ends at 6010; this one ends at 4808" in sentence for sentence in sentences) == 2


def test_an_archive_by_date(source: SparkSession, log: Path, tmp_path: Path) -> None:
    for day in ("dt=2026-01-01", "dt=2026-01-02"):
        shutil.copytree(log, tmp_path / "archive" / day)
    for path in sorted((tmp_path / "archive" / "dt=2026-01-01" / "__consumer_offsets-3").glob("*.log"))[3:]:
        path.unlink()
    everything = read(source, "offset_commit", str(tmp_path / "archive")).toArrow()
    picked = read(source, "offset_commit", str(tmp_path / "archive"), {"replicas": "pick", "offsets_partitions": 3}).toArrow()

    assert set(everything["replica"].to_pylist()) == {"dt=2026-01-01", "dt=2026-01-02"}
    assert set(picked["replica"].to_pylist()) == {"dt=2026-01-02"}
    assert picked.num_rows == 5 * 1201


def test_a_schema_that_is_given_chooses_columns(source: SparkSession, log: Path) -> None:
    reader = source.read.format("offsets-topic").option("kind", "offset_commit").schema("committed_offset bigint, `group` string")
    assert reader.load(str(log)).toArrow().schema.names == ["committed_offset", "group"]


def test_sql_over_a_view(source: SparkSession, log: Path) -> None:
    read(source, "offset_commit", str(log)).createOrReplaceTempView("commits")
    [row] = source.sql("select `group`, max(committed_offset) as most from commits where `group` = 'g2' group by `group`").collect()
    assert (row["group"], row["most"]) == ("g2", 459)


def test_a_place_without_evidence_fails_with_its_reason(source: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="no partition of __consumer_offsets found"):
        read(source, "records", str(tmp_path)).count()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kind": "nonsense", "path": "x"}, "Choose one of"),
        ({"kind": "offset_commits"}, "the data source needs a path"),
        ({"path": "x", "colour": "red"}, "no option 'colour'"),
        ({"path": "x", "verify": "perhaps"}, "It takes `true` or `false`"),
        ({"path": "x", "from_time": "someday"}, "is not a moment"),
        ({"path": "x", "kind": "batches", "groups": "g"}, "the kind batches takes no groups"),
        ({"path": "x", "kind": "offset_commit", "types": "1"}, "takes no types"),
        ({"path": "x", "replicas": "some"}, "`all` or `pick`"),
        ({"path": "x", "bytes_per_partition": "0"}, "It takes bytes"),
    ],
)
def test_options_that_cannot_be(options: dict[str, str], said: str) -> None:
    with pytest.raises(exhume.RequestError, match=said):
        read_options(options)


def test_options_are_read_in_any_case() -> None:
    options = read_options(
        {"PATH": "x", "Kind": "offset_commits", "GROUPS": '["a,b", "c"]', "fs.Region": "r", "From_Time": "1970-01-01T00:00:01Z"}
    )
    assert options.kind == "offset_commit"
    assert options.wanted.groups == ("a,b", "c")
    assert options.wanted.from_time_ms == 1000
    assert options.filesystem_options == {"region": "r"}
    assert set(OPTIONS) == {name.lower() for name in OPTIONS}


def test_every_schema_is_one_that_spark_has(java17: None) -> None:
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    for schema in kinds().values():
        ready = for_spark(schema)
        assert to_arrow_schema(from_arrow_schema(ready)).equals(ready)
    assert for_spark(schemas.decoded()["group_metadata"]).field("members").type.value_type.field("member_id").type == pa.string()
