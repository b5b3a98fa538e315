"""What the package gives to callers: names, tables for other libraries, and objects that show themselves."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import exhume
from exhume.cli.app import run
from exhume.findings import Finding, Findings
from exhume.topic.table_schemas import table_schemas

DEMO_LOG = str(Path(exhume.__file__).parent / "cli" / "demo_log")
TIME = pa.timestamp("ms", "UTC")


def test_every_name_of_the_package_is_there() -> None:
    assert {"open", "Inputs", "RecordFilter", "LoadInputs", "to_pandas"} <= set(dir(exhume))
    for name in exhume.__all__:
        assert getattr(exhume, name) is not None


def test_times_are_timestamps_and_no_value_changes() -> None:
    with exhume.open(DEMO_LOG) as topic:
        table = topic.offset_commits().read_all()
        timed = exhume.with_times(topic.offset_commits())

    assert {field.name for field in timed.schema if field.type == TIME} == {"timestamp_ms", "commit_timestamp_ms", "expire_timestamp_ms"}
    assert timed.cast(table.schema) == table


def test_a_time_beyond_all_calendars_stays_as_it_is() -> None:
    most = (1 << 63) - 1
    table = pa.table({"timestamp_ms": pa.array([most, -1, None], pa.int64())})

    assert exhume.with_times(table)["timestamp_ms"].cast(pa.int64()).to_pylist() == [most, -1, None]


def test_integers_with_nulls_stay_integers_in_pandas() -> None:
    large = (1 << 53) + 1
    table = pa.table(
        {
            "committed_offset": pa.array([large, None], pa.int64()),
            "partition": pa.array([None, 3], pa.int32()),
            "is_tombstone": pa.array([True, None], pa.bool_()),
            "group": pa.array(["", None], pa.string()),
            "timestamp_ms": pa.array([1_795_230_840_500, None], pa.int64()),
            "value": pa.array(['{"a":1}', None], pa.string()).cast(pa.json_()),
        }
    )

    frame = exhume.to_pandas(table)

    assert frame["committed_offset"][0] == large
    assert frame["committed_offset"][1] is pd.NA
    assert [str(data_type) for data_type in frame.dtypes[:3]] == ["Int64", "Int32", "boolean"]
    assert frame["timestamp_ms"][0] == pd.Timestamp("2026-11-21 03:14:00.500", tz="UTC")
    assert frame["value"][0] == '{"a":1}'


def test_parquet_files_have_times(tmp_path: Path) -> None:
    file = tmp_path / "dump.parquet"

    assert run(["dump", DEMO_LOG, "--output", "parquet", "--output-file", str(file)]) == 0

    with exhume.open(DEMO_LOG) as topic:
        expected = exhume.with_times(topic.dump())
    found = pq.read_table(file)
    assert found.schema.field("timestamp_ms").type == TIME
    assert found["timestamp_ms"].combine_chunks() == expected["timestamp_ms"].combine_chunks()


def test_objects_show_themselves_with_harmless_names() -> None:
    with exhume.open(DEMO_LOG) as topic:
        state = topic.state()
        assert repr(topic).startswith("<OffsetsTopic ")
        assert "4 partition directories" in topic._repr_html_()
        assert repr(state) == "<CoordinatorState of 4.4.0, strict: 11 groups, 18 members, 33 offsets>"
        assert "<td>fraud-scoring</td>" in state._repr_html_()
    hostile = Finding(code="x", sentence="<script>alert(1)</script>\x1b", group="<b>")
    findings = Findings([hostile, *(Finding(code=f"y{number}", sentence="s", severity="info") for number in range(60))])
    assert repr(findings) == "<Findings: 1 warn, 60 info>"
    shown = findings._repr_html_()
    assert "<script>" not in shown
    assert "<td><b>" not in shown
    assert "\x1b" not in shown
    assert "11 more rows" in shown


_STATE_TABLES = ("groups", "members", "offsets", "loads")


@pytest.mark.parametrize(
    ("table", "command"),
    [
        *((name, ["state", DEMO_LOG, "--table", name]) for name in _STATE_TABLES),
        ("diagnosis", ["diagnose", DEMO_LOG, "--min-severity", "info", "--undecided"]),
        ("dump", ["dump", DEMO_LOG]),
        ("history", ["history", DEMO_LOG, "--group", "fraud-scoring"]),
        ("rebalances", ["rebalances", DEMO_LOG]),
        ("growth", ["growth", DEMO_LOG]),
        ("why", ["why", DEMO_LOG, "--group", "fraud-scoring"]),
        ("partitions", ["inspect", DEMO_LOG, "--table", "partitions"]),
    ],
)
def test_rows_of_json_meet_their_schema(table: str, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", table]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert run([*command, "--output", "jsonl"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    check = jsonschema.Draft202012Validator(schema)
    check.check_schema(schema)
    assert rows
    for row in rows:
        check.validate(row)
    broken = {**rows[0], "unknown": 1}
    assert not check.is_valid(broken)


def test_all_schemas_are_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema"]) == 0
    document = json.loads(capsys.readouterr().out)

    assert set(document["$defs"]) == set(table_schemas())
    jsonschema.Draft202012Validator.check_schema(document)


def test_an_unknown_table_is_refused_with_names_near_by(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "offset"]) == 2

    assert "offsets" in capsys.readouterr().err
