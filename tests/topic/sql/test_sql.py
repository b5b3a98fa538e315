"""SQL over the tables of a topic: every table is there, conditions go down to the reader, and nothing else can be reached."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import exhume
from exhume.arrow_times import with_times
from exhume.codecs.columns.record_blocks import RecordBlock
from exhume.codecs.columns.selection import Selection
from exhume.codecs.kernels import records
from exhume.errors import RequestError
from exhume.topic.sql import SqlDatabase
from exhume.topic.sql.database import with_quoted_group
from exhume.topic.sql.questions import QUESTIONS

ROOT = Path(__file__).resolve().parents[3]
DEMO_LOG = ROOT / "src" / "exhume" / "cli" / "demo_log"
#: Tables of docs/tables.md under their names here; None: the situations to practise on are no part of a log.
_NAMES = {"groups summary": "groups_summary", "catalogue": None}


@pytest.fixture(scope="module")
def topic() -> Iterator[exhume.OffsetsTopic]:
    with exhume.open(DEMO_LOG) as opened:
        yield opened


@pytest.fixture(scope="module")
def database(topic: exhume.OffsetsTopic) -> Iterator[SqlDatabase]:
    with topic.to_duckdb() as opened:
        yield opened


@pytest.fixture
def decoded_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of the keys and values of the records that the reader decodes, per record block."""
    counts: list[int] = []
    select = Selection.of

    def counted(selection: Selection, block: RecordBlock) -> RecordBlock:
        chosen = select(selection, block)
        counts.append(int(chosen.records[[records.KEY_SIZE, records.VALUE_SIZE]].clip(0).sum()))
        return chosen

    monkeypatch.setattr(Selection, "of", counted)
    return counts


def _documented_tables() -> dict[str, list[str]]:
    page = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
    found = {}
    for section in page.split("\n### ")[1:]:
        name = section.split("\n", 1)[0].split(" (")[0]
        # Two tables are called `partitions`: the other one has the partitions of the assignments.
        name = "assigned_partitions" if "assignments --table partitions" in section.split("\n", 1)[0] else name
        found[name] = re.findall(r"^\| (\w+) \| ", section, re.MULTILINE)[1:]
    return found


def test_every_documented_table_can_be_asked_for(database: SqlDatabase) -> None:
    documented = _documented_tables()
    assert len(documented) > 60
    for table, columns in documented.items():
        name = _NAMES.get(table, table)
        if name is not None:
            schema = database.views[name].schema if name in database.views else QUESTIONS[name].schema
            assert schema.names == columns, table


def test_every_view_has_the_rows_of_its_method(topic: exhume.OffsetsTopic, database: SqlDatabase) -> None:
    expected = {
        "records": topic.records().read_all(),
        "dump": topic.dump().read_all(),
        "batches": topic.batches().read_all(),
        "offset_commits": topic.offset_commits().read_all(),
        "consumer_group_member_metadata": topic.decoded("consumer_group_member_metadata").read_all(),
        "offsets": topic.state().offsets,
        "owners": topic.owners(),
        "rebalances": topic.rebalances(),
        "segments": topic.segments(),
    }
    for name, table in expected.items():
        answer = database.query(f"from {name}").read_all()
        assert answer.to_pylist() == _as_duckdb_gives_them(table).to_pylist(), name


def _as_duckdb_gives_them(table: pa.Table) -> pa.Table:
    timed = pa.Table.from_batches([with_times(batch) for batch in table.combine_chunks().to_batches()])
    columns = [column.cast(pa.string()) if isinstance(column.type, pa.JsonType) else column for column in timed.columns]
    return pa.table(columns, names=timed.column_names)


_CONDITIONS = st.one_of(
    st.sampled_from(
        [
            "group = 'fraud-scoring'",
            "group in ('fraud-scoring', 'shipping-eta', 'none')",
            "(group = 'fraud-scoring' or group = 'shipping-eta')",
            "(group = 'fraud-scoring' or partition = 1)",
            "group > 'm'",
            "group <> 'fraud-scoring'",
            "group is null",
            "topic is not null",
            "group = 'a\"]}, null_matching_behavior=MATCH}'",
            "topic in ('orders', 'payments')",
            "partition = 3",
            "partition in (0, 5)",
            "partition not in (0, 5)",
            "type = 'offset_commit'",
            "record_type = 8",
            "record_type = 3 and type = 'consumer_group_metadata'",
            "record_type = 3 and type = 'offset_commit'",
            "offsets_partition = 2",
            "offsets_partition <= 1",
            "timestamp_ms >= '2026-11-21 03:14:00'",
            "timestamp_ms < '2026-11-21 03:13:45.2501'",
            "timestamp_ms = '2026-11-21 03:13:40.937Z'",
            "is_tombstone",
            "not is_tombstone",
            "value_version = 1",
        ]
    ),
    st.builds("record_offset {} {}".format, st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]), st.integers(-1, 260)),
    st.builds("record_offset between {} and {}".format, st.integers(0, 260), st.integers(0, 260)),
)


@given(conditions=st.lists(_CONDITIONS, min_size=1, max_size=4))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_conditions_select_the_same_rows_in_the_reader_and_in_duckdb(database: SqlDatabase, conditions: list[str]) -> None:
    database.connection.execute("create table if not exists whole as from dump")
    where = " and ".join(conditions)
    places = "select replica, offsets_partition, record_offset from {} where {} order by all"

    assert database.query(places.format("dump", where)).read_all() == database.query(places.format("whole", where)).read_all()


@pytest.mark.parametrize(
    ("view", "condition"),
    [
        ("dump", "group = 'fraud-scoring'"),
        ("dump", "group in ('fraud-scoring', 'shipping-eta')"),
        ("dump", "topic = 'orders'"),
        ("dump", "topic = 'orders' and partition = 3"),
        ("dump", "type = 'consumer_group_metadata'"),
        ("dump", "record_type = 8"),
        ("dump", "record_offset between 10 and 20"),
        ("dump", "offsets_partition = 0"),
        ("dump", "timestamp_ms > '2026-11-21 03:14:30'"),
        ("records", "record_type = 8 and record_offset < 50"),
        ("offset_commits", "group = 'fraud-scoring' and partition < 3"),
        ("consumer_group_member_metadata", "group = 'fraud-scoring'"),
    ],
)
def test_a_condition_is_applied_before_records_are_decoded(
    database: SqlDatabase, decoded_bytes: list[int], view: str, condition: str
) -> None:
    every = database.query(f"select count(*) from {view}").read_all()
    all_bytes = sum(decoded_bytes)
    decoded_bytes.clear()
    some = database.query(f"select count(*) from {view} where {condition}").read_all()

    rows, all_rows = some[0][0].as_py(), every[0][0].as_py()
    assert 0 < rows < all_rows
    # A fifth of the rows needs about a fifth of the bytes, and records have different sizes.
    assert 0 < sum(decoded_bytes) < all_bytes * min(0.75, 3 * rows / all_rows + 0.1)


def test_a_condition_that_no_record_meets_reads_nothing(database: SqlDatabase, decoded_bytes: list[int]) -> None:
    answer = database.query("select count(*) from dump where record_offset > 20 and record_offset < 10").read_all()

    assert answer[0][0].as_py() == 0
    assert sum(decoded_bytes) == 0


def test_the_state_at_a_moment_is_that_of_the_library(topic: exhume.OffsetsTopic, database: SqlDatabase) -> None:
    moment_ms = 1_795_230_825_000
    expected = topic.state(release="4.3", at_time_ms=moment_ms)

    offsets = database.query("from state('4.3', at_time => '2026-11-21T03:13:45Z')").read_all()
    members = database.query("from state('4.3', 'members', at_time => timestamptz '2026-11-21 03:13:45+00')").read_all()
    at_offset = database.query("from state(at_offset => map {0: 20, 2: 100})").read_all()
    grades = database.query("from state(name => 'completeness', at_time => '2026-11-21T03:13:45Z')").read_all()

    assert offsets.to_pylist() == _as_duckdb_gives_them(expected.offsets).to_pylist()
    assert members.to_pylist() == _as_duckdb_gives_them(expected.members).to_pylist()
    assert at_offset.to_pylist() == _as_duckdb_gives_them(topic.state(at_offset={0: 20, 2: 100}).offsets).to_pylist()
    assert grades.num_rows == topic.completeness(expected).num_rows


def test_questions_take_their_arguments(database: SqlDatabase, topic: exhume.OffsetsTopic) -> None:
    one_key = database.query("from history('fraud-scoring', topic => 'orders', partition => 3)").read_all()
    why = database.query("from why('fraud-scoring')").read_all()
    changes = database.query("from diff(from_time => '2026-11-21T03:13:45Z')").read_all()

    assert one_key["record_offset"].to_pylist() == [100]
    assert why["sentence"].to_pylist() == topic.why("fraud-scoring")["sentence"].to_pylist()
    assert changes.num_rows == topic.diff(from_time_ms=1_795_230_825_000).num_rows


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("from history('fraud')", "fraud-scoring"),
        ("from state('nope')", "no release 'nope'"),
        ("from state(at_time => 'soon')", "'soon' is not a moment"),
        ("from state(at_offset => 'x')", "'x' is no record offset"),
        ("from history('fraud-scoring', partition => 'x')", "no partition 'x'"),
        ("from reset_plan('fraud-scoring', taken_back => 'x')", "no target 'x'"),
        ("from nowhere", "Table with name nowhere does not exist"),
        ("select from where", "syntax error"),
    ],
)
def test_errors_are_those_of_the_library_or_the_words_of_duckdb(database: SqlDatabase, statement: str, message: str) -> None:
    with pytest.raises(RequestError, match=re.escape(message)):
        database.query(statement).read_all()


def test_a_statement_reaches_no_file_and_no_network(database: SqlDatabase, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n", encoding="utf-8")
    variable = pa.table({"a": [1]})
    assert variable.num_rows

    for statement in (
        f"from read_csv('{secret}')",
        f"from '{secret}'",
        f"copy (select 1) to '{tmp_path / 'out.csv'}'",
        f"attach '{tmp_path / 'x.db'}'",
        "install httpfs",
        "load httpfs",
        "from read_parquet('https://example.com/x.parquet')",
        "set enable_external_access = true",
        f"set temp_directory = '{tmp_path}'",
        "from glob('/*')",
        "from variable",
    ):
        with pytest.raises(RequestError):
            database.query(statement).read_all()
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


def test_external_access_can_be_asked_for(topic: exhume.OffsetsTopic, tmp_path: Path) -> None:
    (tmp_path / "owners.csv").write_text("group,team\nfraud-scoring,risk\n", encoding="utf-8")
    statement = f"select distinct team from groups join read_csv('{tmp_path / 'owners.csv'}') using (group)"

    assert topic.sql(statement, external_access=True).to_pylist() == [{"team": "risk"}]


def test_a_query_beyond_the_memory_limit_uses_temporary_files_and_removes_them(topic: exhume.OffsetsTopic, tmp_path: Path) -> None:
    statement = "select count(*) as n from (select i, repeat(i::varchar, 20) as t from range(1500000) r(i) order by hash(i))"
    with topic.to_duckdb(memory_limit="100MB", temp_dir=tmp_path) as database:
        reader = database.query(f"{statement}; from duckdb_temporary_files()")
        del reader
        assert database.query(statement).read_all().to_pylist() == [{"n": 1_500_000}]
        assert len([*tmp_path.iterdir()]) == 1
    assert not [*tmp_path.iterdir()]
    with pytest.raises(RequestError, match="no size of memory"):
        topic.to_duckdb(memory_limit="much")


def test_a_memory_limit_may_be_written_as_for_the_other_commands(topic: exhume.OffsetsTopic) -> None:
    limits = []
    for text in ("512M", "512MB", "512m"):
        with topic.to_duckdb(memory_limit=text) as database:
            limits.append(database.query("select current_setting('memory_limit') as most").read_all().to_pylist())
    assert limits[0] == limits[1] == limits[2]


def test_group_needs_no_quotes() -> None:
    statement = "select group, 'group', x.group -- group\nfrom t where \"group\" = 'a' group by group, 2 order by GROUP"

    assert with_quoted_group(statement) == (
        'select "group", \'group\', x."group" -- group\nfrom t where "group" = \'a\' group by "group", 2 order by "group"'
    )
    assert with_quoted_group("select mode() within group (order by group)") == 'select mode() within group (order by "group")'


def test_nearly_every_column_can_be_named_without_quotes(database: SqlDatabase) -> None:
    for name, view in database.views.items():
        for column in view.schema.names:
            if column in ("left", "overlaps"):
                continue
            assert database.query(f"select {column} from {name} limit 0").schema.names == [column]


def test_times_are_times(topic: exhume.OffsetsTopic) -> None:
    answer = topic.sql("select max(timestamp_ms) as newest, sum(committed_offset) as offsets from offset_commits where not is_tombstone")
    commits = topic.offset_commits().read_all()

    assert answer.schema.types == [pa.timestamp("ms", "UTC"), pa.int64()]
    commits = commits.filter(pc.invert(commits["is_tombstone"]))
    assert answer["newest"].cast(pa.int64())[0] == pc.max(commits["timestamp_ms"])
    assert answer["offsets"][0] == pc.sum(commits["committed_offset"])


def test_a_time_beyond_all_calendars_is_null() -> None:
    schema = pa.schema([("timestamp_ms", pa.int64()), ("session_timeout_ms", pa.int64())])
    most = (1 << 63) - 1
    batch = pa.RecordBatch.from_pydict({"timestamp_ms": [1, most, -most, None, 9223372036854775], "session_timeout_ms": [most] * 5}, schema)

    timed = with_times(batch)

    assert timed.schema.field("timestamp_ms").type == pa.timestamp("ms", "UTC")
    assert timed["timestamp_ms"].cast(pa.int64()).to_pylist() == [1, None, None, None, 9223372036854775]
    assert timed["session_timeout_ms"].to_pylist() == [most] * 5


def test_answers_go_to_polars(topic: exhume.OffsetsTopic) -> None:
    frame = pl.from_arrow(topic.sql("select group, timestamp_ms from dump where group = 'fraud-scoring'"))

    assert isinstance(frame, pl.DataFrame)
    assert frame.schema["timestamp_ms"] == pl.Datetime("ms", "UTC")
    assert frame["group"].unique().to_list() == ["fraud-scoring"]


def test_a_reader_that_stops_early_releases_the_evidence(database: SqlDatabase, decoded_bytes: list[int]) -> None:
    reader = database.query("from dump limit 1")

    assert next(iter(reader)).num_rows == 1
    assert decoded_bytes
