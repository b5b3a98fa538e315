"""The commands as a person or a program meets them: what is asked, what comes back, where, and with which exit code."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from exhume.analysis.inspection import INSPECTION_TABLES
from exhume.arrow_times import timed_schema
from exhume.cli.app import command_line, run
from exhume.cli.demo import DEMO_LOG
from exhume.codecs.decoded_tables import DUMP
from exhume.fixtures.log_writer import PartitionWriter, group_metadata, offset_commit, tombstone
from exhume.replay.local import load_state
from exhume.replay.partition_load import LoadOptions
from exhume.replay.state import CoordinatorState
from exhume.replay.state_tables import SCHEMAS
from exhume.replay.topic_names import TopicNames

DEMO = str(DEMO_LOG)
#: 2023-11-14 22:13:20.000Z
TIME_MS = 1_700_000_000_000

#: The columns of the state, which programs rely on.
EVERYWHERE = ("replica", "offsets_partition", "record_offset")
STATE_COLUMNS = {
    "groups": (
        "group, group_type, group_state, protocol_type, protocol, generation, group_epoch, assignment_epoch, leader, metadata_hash, "
        "topology_epoch, validated_topology_epoch, current_state_timestamp_ms, assignment_timestamp_ms"
    ),
    "members": (
        "group, member_id, group_instance_id, client_id, client_host, rack_id, member_state, session_timeout_ms, rebalance_timeout_ms, "
        "subscribed_topics, subscribed_regex, server_assignor, member_epoch, previous_member_epoch, is_classic, topology_epoch, "
        "process_id, user_endpoint, client_tags, subscription_bytes, assignment_bytes, user_data"
    ),
    "assignments": ("group, member_id, kind, topic, topic_id, topic_name_source, partition, subtopology_id, task_role, assignment_epoch"),
    "open_transactions": (
        "producer_id, producer_epoch, first_record_offset, last_record_offset, first_timestamp_ms, last_timestamp_ms, groups, "
        "pending_partitions"
    ),
    "fetched_offsets": (
        "group, topic, partition, committed_offset, leader_epoch, metadata, is_listed, stable_error, stable_offset, stable_leader_epoch, "
        "stable_metadata, is_stable_listed"
    ),
    **dict.fromkeys(
        ("offsets", "pending_offsets"),
        "group, topic, topic_id, partition, committed_offset, leader_epoch, metadata, commit_timestamp_ms, expire_timestamp_ms, "
        "value_version, is_stable, producer_id, producer_epoch",
    ),
}
FINDINGS = (
    "code, severity, confidence, replica, offsets_partition, path, byte_position, size_bytes, group, member_id, topic, partition, "
    "first_record_offset, last_record_offset, first_timestamp_ms, last_timestamp_ms, sentence, not_excluded, "
    "remedy, remedy_commands, evidence"
)


class Answer:
    """What a command said: exit code, standard output, standard error."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    def json(self) -> Any:
        return json.loads(self.out)

    def rows(self) -> list[dict[str, Any]]:
        """The rows of JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


Ask = Callable[..., Answer]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Runs the command line in this process."""

    def answer(*arguments: str | Path) -> Answer:
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return answer


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Partition 3 with commits of three groups, ten milliseconds apart, a classic group, and an open transaction."""
    with PartitionWriter(tmp_path / "data", 3) as partition:
        for number, group in enumerate(("billing", "audit", "billing")):
            commit = offset_commit(group, f"topic-{number}", number, 100 + number, commit_timestamp_ms=TIME_MS + 10 * number)
            partition.append([commit], timestamp_ms=TIME_MS + 10 * number)
        partition.append([group_metadata("billing", {"protocol_type": "consumer", "generation": 7})], timestamp_ms=TIME_MS + 30)
        pending = offset_commit("audit", "topic-1", 1, 200, commit_timestamp_ms=TIME_MS + 40)
        partition.append([pending], timestamp_ms=TIME_MS + 40, producer_id=9, producer_epoch=1, is_transactional=True)
        partition.append([tombstone(offset_commit("gone", "t", 0, 1, commit_timestamp_ms=0))], timestamp_ms=TIME_MS + 50)
    return tmp_path / "data"


@pytest.fixture
def damaged(log: Path) -> Path:
    """The same log with a flipped bit in the value of record offset 1."""
    segment = next(log.glob("*/*.log"))
    content = bytearray(segment.read_bytes())
    second = 12 + struct.unpack_from(">i", content, 8)[0]
    content[second + 12 + struct.unpack_from(">i", content, second + 8)[0] - 3] ^= 1
    segment.write_bytes(content)
    return log


# Exit codes, and which stream says what


@pytest.mark.parametrize(
    "arguments",
    [("inspect",), ("dump",), ("dump", "--annotate"), ("state",), ("state", "--release", "2.8.2"), ("state", "--group", "billing")],
    ids=" ".join,
)
def test_a_good_log_is_exit_0_and_its_answer_is_on_standard_output(ask: Ask, log: Path, arguments: tuple[str, ...]) -> None:
    answer = ask(arguments[0], log, *arguments[1:])

    assert answer.code == 0
    assert answer.out
    assert "partial" not in answer.err


@pytest.mark.parametrize("command", ["inspect", "dump", "state"])
def test_damage_that_makes_an_answer_partial_is_exit_1_and_is_said_on_standard_error(ask: Ask, damaged: Path, command: str) -> None:
    answer = ask(command, damaged, "--output", "json")

    assert answer.code == 1
    assert "crc_mismatch" in answer.err
    assert f"{next(damaged.glob('*/*.log'))}, byte " in answer.err
    assert answer.err.endswith("the answer is partial: see the findings above\n")
    answer.json()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nonsense",), "nonsense"),
        (("dump",), "PATH"),
        (("dump", DEMO, "--banana"), "--banana"),
        (("dump", DEMO, "--type", "banana"), "offset_commit"),
        (("dump", DEMO, "--from-offset", "-1"), "--from-offset"),
        (("dump", DEMO, "--from-offset", "x"), "--from-offset"),
        (("dump", DEMO, "--from-time", "someday"), "ISO 8601"),
        (("dump", DEMO, "--from-offset", "9", "--to-offset", "3"), "Swap the two values"),
        (("dump", DEMO, "--from-time", "2026-11-21", "--to-time", "2026-11-20"), "Swap the two values"),
        (("dump", DEMO, "--output", "yaml"), "'table', 'record', 'json', 'jsonl', 'csv', 'parquet'"),
        (("dump", DEMO, "--include", "everything"), "deleted"),
        (("inspect", DEMO, "--table", "nope"), "record_types"),
        (("inspect", DEMO, "--output", "csv"), "--table"),
        (("state", DEMO, "--table", "nope"), "pending_offsets"),
        (("state", DEMO, "--output", "jsonl"), "--table"),
        (("state", DEMO, "--output", "parquet"), "--output-file"),
        (("state", DEMO, "--release", "0.1"), "4.4.0"),
        (("state", DEMO, "--group", "fraud"), "fraud-scoring"),
        (("state", DEMO, "--topics", "/there/is/nothing"), "Check the path"),
        (("dump", DEMO, "--output-file", "/there/is/no/directory"), "--output-file"),
    ],
    ids=lambda value: " ".join(value[:1] + value[2:]) if isinstance(value, tuple) else "",
)
def test_a_wrong_request_is_exit_2_says_what_could_be_asked_and_answers_nothing(ask: Ask, arguments: tuple[str, ...], said: str) -> None:
    answer = ask(*arguments)

    assert answer.code == 2
    assert said in answer.err
    assert answer.out == ""
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("command", ["inspect", "dump", "state"])
def test_evidence_that_cannot_be_read_is_exit_3_with_one_line_that_names_it(ask: Ask, tmp_path: Path, command: str) -> None:
    answer = ask(command, tmp_path / "nowhere")

    assert (answer.code, answer.out) == (3, "")
    assert answer.err == f"exhume: {tmp_path / 'nowhere'}: cannot be read: no such file or directory. Check the path\n"


@pytest.mark.parametrize("command", ["inspect", "state"])
@pytest.mark.parametrize(
    "options", [("--table", "nope"), ("--output", "csv"), ("--output", "json", "--output-file", f"{DEMO}/answer.json")]
)
def test_what_cannot_be_written_is_refused_before_anything_is_read(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, command: str, options: tuple[str, ...]
) -> None:
    monkeypatch.setattr("exhume.topic.open_topic", lambda *_, **__: pytest.fail("it was read"))

    assert ask(command, DEMO, *options).code == 2


def test_leftovers_and_infos_are_exit_0_and_silent(ask: Ask, log: Path) -> None:
    segment = next(log.glob("*/*.log"))
    shutil.copy(segment, segment.with_name(segment.name + ".deleted"))
    answer = ask("dump", log)

    assert (answer.code, answer.err) == (0, "")


def test_without_arguments_there_is_help(ask: Ask) -> None:
    answer = ask()

    assert "Usage: exhume" in answer.out + answer.err
    assert all(
        command.name in answer.out + answer.err for command in command_line().registered_commands if command.name and not command.hidden
    )


def test_the_version_is_the_package_s(ask: Ask) -> None:
    from exhume import __version__

    assert ask("--version").out == f"exhume {__version__}\n"


def test_help_of_every_command_shows_an_example_and_no_colour(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    for command in command_line().registered_commands:
        answer = ask(str(command.name), "--help")
        assert answer.code == 0
        assert "Example: exhume" in answer.out
        assert "\x1b" not in answer.out


# Outputs


TABLES = [
    ("inspect", "--table", "segments"),
    ("inspect", "--table", "findings"),
    ("dump",),
    ("dump", "--annotate"),
    ("state", "--table", "offsets"),
    ("state", "--table", "loads"),
]


@pytest.mark.parametrize("arguments", TABLES, ids=" ".join)
def test_every_output_of_a_table_has_the_same_rows(ask: Ask, log: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    def output(kind: str) -> Answer:
        answer = ask(arguments[0], log, *arguments[1:], "--output", kind)
        assert (answer.code, answer.err) == (0, "")
        return answer

    parquet = tmp_path / "answer.parquet"
    assert ask(arguments[0], log, *arguments[1:], "--output", "parquet", "--output-file", parquet).out == ""
    rows = output("json").json()

    assert rows
    assert output("jsonl").rows() == rows
    csv_rows = list(csv.DictReader(io.StringIO(output("csv").out)))
    assert [list(row) for row in csv_rows] == [list(row) for row in rows]
    table = pq.read_table(parquet)
    assert table.column_names == list(rows[0])
    assert table.num_rows == len(rows)
    assert len(output("table").out.splitlines()) == len(rows) + 2


@pytest.mark.parametrize("output", ["table", "json", "jsonl", "csv"])
def test_a_file_gets_what_standard_output_would_have(ask: Ask, log: Path, tmp_path: Path, output: str) -> None:
    shown = ask("dump", log, "--output", output).out
    answer = ask("dump", log, "--output", output, "--output-file", tmp_path / "answer")

    assert (answer.out, (tmp_path / "answer").read_text(encoding="utf-8")) == ("", shown)


@pytest.mark.parametrize(("command", "names"), [("inspect", list(INSPECTION_TABLES)), ("state", [*SCHEMAS, "findings"])])
def test_json_without_a_table_is_one_document_with_every_table_by_name(ask: Ask, log: Path, command: str, names: list[str]) -> None:
    document = ask(command, log, "--output", "json").json()

    assert set(names) <= set(document)
    assert all(isinstance(rows, list) for name, rows in document.items() if name != "exhume")


def test_a_state_of_groups_is_loaded_for_these_groups(ask: Ask, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[Any] = []

    def spy(directories: Any, options: LoadOptions, names: TopicNames) -> CoordinatorState:
        loaded.append(options.groups)
        return load_state(directories, options, names)

    monkeypatch.setattr("exhume.topic.logs.load_state", spy)
    ask("state", log, "--group", "billing", "--output", "json").json()
    ask("state", log, "--output", "json").json()
    assert loaded == [["billing"], None]


def test_the_state_document_has_every_table(ask: Ask, log: Path) -> None:
    document = ask("state", log, "--output", "json").json()

    assert set(document) >= {
        "groups",
        "members",
        "assignments",
        "offsets",
        "pending_offsets",
        "open_transactions",
        "share_partitions",
        "regular_expressions",
        "streams_topologies",
        "loads",
        "findings",
    }
    assert [row["group"] for row in document["groups"]] == ["audit", "billing"]
    assert [row["committed_offset"] for row in document["pending_offsets"]] == [200]
    assert [(row["producer_id"], row["groups"]) for row in document["open_transactions"]] == [(9, ["audit"])]


@pytest.mark.parametrize(
    ("options", "outcome", "is_read"),
    [
        (("--release", "2.8.2", "--load-buffer-bytes", "80"), "loaded", True),
        (("--release", "2.0.0", "--load-buffer-bytes", "80"), "stalled", False),
        (("--release", "0.10.2.2", "--high-watermark", "0"), "loaded", False),
    ],
)
def test_a_state_takes_the_broker_s_settings_that_its_load_hangs_on(
    ask: Ask, log: Path, options: tuple[str, ...], outcome: str, is_read: bool
) -> None:
    (row,) = ask("state", log, *options, "--table", "loads", "--output", "json").json()

    assert (row["outcome"], row["records_read"] > 0) == (outcome, is_read)


@pytest.mark.parametrize(("release", "states"), [("2.1.1", ["Stable"]), ("4.3.0", ["PreparingRebalance"])])
def test_a_state_takes_the_largest_size_of_a_group(ask: Ask, tmp_path: Path, release: str, states: list[str]) -> None:
    common = {"client_id": "app", "client_host": "/h", "session_timeout_ms": 9000, "subscription": b"", "assignment": b""}
    value = {"protocol_type": "connect", "generation": 4, "protocol": "p", "leader": "a"}
    with PartitionWriter(tmp_path, 0) as log:
        log.append([group_metadata("g", {**value, "members": [{"member_id": name, **common} for name in "ab"]}, version=1)])

    def shown(*options: str) -> list[str]:
        rows = ask("state", tmp_path, "--release", release, *options, "--table", "groups", "--output", "json").json()
        return [row["group_state"] for row in rows]

    assert (shown("--group-max-size", "1"), shown("--group-max-size", "2"), shown()) == (states, ["Stable"], ["Stable"])


@pytest.mark.parametrize("table", sorted(STATE_COLUMNS))
def test_a_state_table_has_its_columns_in_their_order(table: str) -> None:
    assert SCHEMAS[table].names == [*EVERYWHERE, *STATE_COLUMNS[table].split(", ")]


def test_findings_have_their_columns_in_their_order(ask: Ask) -> None:
    assert ask("inspect", DEMO, "--table", "findings", "--output", "csv").out.splitlines()[0] == FINDINGS.replace(" ", "")


@pytest.mark.parametrize("command", ["inspect", "state"])
def test_parquet_of_everything_fills_a_directory(ask: Ask, log: Path, tmp_path: Path, command: str) -> None:
    (tmp_path / "answer").mkdir()
    assert ask(command, log, "--output", "parquet", "--output-file", tmp_path / "answer").code == 0
    written = {path.stem for path in (tmp_path / "answer").iterdir()}

    assert set(INSPECTION_TABLES if command == "inspect" else SCHEMAS) <= written


def test_parquet_keeps_the_types_of_the_dump(ask: Ask, log: Path, tmp_path: Path) -> None:
    ask("dump", log, "--raw", "--output", "parquet", "--output-file", tmp_path / "dump.parquet")
    table = pq.read_table(tmp_path / "dump.parquet")

    assert [(field.name, field.type) for field in table.schema if field.name not in {"key", "value"}] == [
        (field.name, field.type) for field in timed_schema(DUMP) if field.name not in {"key", "value"}
    ]
    assert json.loads(table["value"].to_pylist()[0])["committed_offset"] == 100


def test_a_csv_cell_that_a_spreadsheet_would_run_is_disarmed_unless_raw(ask: Ask, tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 0) as partition:
        partition.append([offset_commit("=1+1", "@t", 0, 1, commit_timestamp_ms=0)])
    [disarmed] = csv.DictReader(io.StringIO(ask("dump", tmp_path, "--output", "csv").out))
    [raw] = csv.DictReader(io.StringIO(ask("dump", tmp_path, "--output", "csv", "--csv-raw").out))

    assert (disarmed["group"], disarmed["topic"]) == ("'=1+1", "'@t")
    assert (raw["group"], raw["topic"]) == ("=1+1", "@t")


# dump


@pytest.mark.parametrize(
    ("options", "offsets"),
    [
        ((), [0, 1, 2, 3, 4, 5]),
        (("--group", "billing"), [0, 2, 3]),
        (("--group", "billing", "--group", "audit"), [0, 1, 2, 3, 4]),
        (("--topic", "topic-1"), [1, 4]),
        (("--partition", "2"), [2]),
        (("--type", "group_metadata"), [3]),
        (("--type", "2", "--type", "offset_commit"), [0, 1, 2, 3, 4, 5]),
        (("--from-offset", "2", "--to-offset", "3"), [2, 3]),
        (("--from-time", str(TIME_MS + 10), "--to-time", str(TIME_MS + 20)), [1, 2]),
        (("--from-time", "2023-11-14T22:13:20.040"), [4, 5]),
        (("--from-time", "2023-11-14T23:13:20.040+01:00", "--to-time", "2023-11-14 22:13:20.040Z"), [4]),
        (("--to-time", "2023-11-14"), []),
        (("--offsets-partition", "3"), [0, 1, 2, 3, 4, 5]),
        (("--offsets-partition", "4"), []),
        (("--group", "audit", "--from-offset", "2"), [4]),
    ],
    ids=lambda value: " ".join(map(str, value)),
)
def test_filters_leave_what_meets_them_all(ask: Ask, log: Path, options: tuple[str, ...], offsets: list[int]) -> None:
    answer = ask("dump", log, *options, "--output", "jsonl")

    assert (answer.code, [row["record_offset"] for row in answer.rows()]) == (0, offsets)


def test_a_record_is_decoded_to_its_last_field(ask: Ask, log: Path) -> None:
    [row] = ask("dump", log, "--from-offset", "0", "--to-offset", "0", "--output", "json").json()

    assert row["value"] == {"committed_offset": 100, "leader_epoch": -1, "metadata": "", "commit_timestamp_ms": TIME_MS}
    assert row["key"] == {"group": "billing", "topic": "topic-0", "partition": 0}
    assert (row["timestamp_ms"], row["crc_status"], row["path"]) == (TIME_MS, "ok", str(next(log.glob("*/*.log"))))
    assert (row["raw_key"], row["raw_value"]) == (None, None)


def test_raw_shows_key_and_value_in_hexadecimal(ask: Ask, log: Path) -> None:
    shown = ask("dump", log, "--from-offset", "3", "--to-offset", "3", "--raw").out
    key, _ = group_metadata("billing", {})

    assert key is not None
    assert key.hex() in shown
    assert "raw_key" not in ask("dump", log).out


def test_times_are_shown_in_utc_and_the_longest_column_comes_last(ask: Ask, log: Path) -> None:
    head, _, first, *_ = ask("dump", log).out.splitlines()

    assert "2023-11-14 22:13:20.000Z" in first
    assert head.split()[-1] == "value"


def test_annotate_reads_one_record_byte_by_byte(ask: Ask, log: Path) -> None:
    rows = ask("dump", log, "--from-offset", "1", "--to-offset", "1", "--annotate", "--output", "json").json()
    content = next(log.glob("*/*.log")).read_bytes()

    assert [row["field"] for row in rows if row["part"] == "key"] == ["record_type", "group", "topic", "partition"]
    assert all(content[row["byte_position"] :].startswith(bytes.fromhex(row["bytes"])) for row in rows)


def test_several_places_are_replicas_and_one_place_given_twice_is_read_once(ask: Ask, log: Path, tmp_path: Path) -> None:
    shutil.copytree(log, tmp_path / "other")

    assert {row["replica"] for row in ask("dump", log, tmp_path / "other", "--output", "jsonl").rows()} == {"data", "other"}
    assert len(ask("dump", log, log, next(log.glob("*/*.log")), "--output", "jsonl").rows()) == 6


def test_a_segment_file_alone_can_be_dumped(ask: Ask, log: Path) -> None:
    rows = ask("dump", next(log.glob("*/*.log")), "--output", "jsonl").rows()

    assert {row["offsets_partition"] for row in rows} == {3}
    assert len(rows) == 6


# inspect


def test_findings_come_first_for_people(ask: Ask, damaged: Path) -> None:
    out = ask("inspect", damaged).out

    assert out.startswith("findings\nseverity")
    assert out.index("crc_mismatch") < out.index("\npartitions\n") < out.index("\nsegments\n") < out.index("\nrecord_types\n")


def test_people_are_told_which_tables_they_were_not_shown(ask: Ask, log: Path) -> None:
    answer = ask("inspect", log)

    assert answer.err == "more with --table: leader_epochs, indexes\n"
    assert "leader_epoch" not in answer.out
    assert "start_offset" in ask("inspect", log, "--table", "leader_epochs").out


def test_inspect_says_how_many_records_of_which_type_are_here(ask: Ask) -> None:
    out = ask("inspect", DEMO).out

    assert re.search(r"^ +1  offset_commit +1, 4 +107 +7 +0 +0 +4$", out, re.MULTILINE)


def test_the_checksums_are_left_alone_on_request(ask: Ask, damaged: Path) -> None:
    answer = ask("dump", damaged, "--no-verify", "--output", "jsonl")

    assert (answer.code, {row["crc_status"] for row in answer.rows()}) == (0, {"not_checked"})


# state


def test_the_summary_has_a_line_for_each_group(ask: Ask, log: Path) -> None:
    out = ask("state", log, "--release", "4.3").out

    assert re.search(r"^groups after loading with 4\.3\.\d+ \(strict\)$", out, re.MULTILINE)
    assert re.search(r"^audit +classic +Empty +\d+ +0 +0 +1 +1 +2023-11-14 22:13:20\.010Z", out, re.MULTILINE)
    assert re.search(r"^billing +classic +Empty +7 +0 +0 +2 +0 +2023-11-14 22:13:20\.020Z", out, re.MULTILINE)


def test_a_group_is_shown_whole_and_alone(ask: Ask, log: Path) -> None:
    out = ask("state", log, "--group", "audit").out

    assert [line for line in out.splitlines() if re.fullmatch(r"[a-z_]+", line)] == [
        "loads",
        "groups",
        "offsets",
        "pending_offsets",
        "open_transactions",
    ]
    assert "billing" not in out


def test_a_group_filter_holds_for_every_table_of_the_document(ask: Ask, log: Path) -> None:
    document = ask("state", log, "--group", "billing", "--output", "json").json()

    assert {row["group"] for name in ("groups", "offsets", "pending_offsets") for row in document[name]} == {"billing"}
    assert document["open_transactions"] == []
    assert len(document["loads"]) == 1


def test_only_loads_that_matter_are_shown_to_people(ask: Ask, log: Path) -> None:
    with PartitionWriter(log, 4) as partition:
        partition.append([tombstone(offset_commit("gone", "t", 0, 1, commit_timestamp_ms=0))], timestamp_ms=TIME_MS)
    shown, all_of_them = ask("state", log, "--release", "2.8.2").out, ask("state", log, "--release", "2.8.2", "--table", "loads").out

    assert len(shown.partition("\n\n")[0].splitlines()) == 1 + 2 + 1
    assert len(all_of_them.splitlines()) == 2 + 2


def test_strict_tells_of_a_load_that_would_abort_and_lenient_goes_on(ask: Ask, tmp_path: Path) -> None:
    with PartitionWriter(tmp_path, 0) as partition:
        partition.append([offset_commit("before", "t", 0, 1, commit_timestamp_ms=TIME_MS)], timestamp_ms=TIME_MS)
        partition.append([(offset_commit("odd", "t", 0, 1, commit_timestamp_ms=0)[0], b"\x00\x63")], timestamp_ms=TIME_MS)
        partition.append([offset_commit("after", "t", 0, 1, commit_timestamp_ms=TIME_MS)], timestamp_ms=TIME_MS)
    strict = ask("state", tmp_path, "--release", "4.3", "--output", "json")
    lenient = ask("state", tmp_path, "--release", "4.3", "--mode", "lenient", "--output", "json")

    [load] = strict.json()["loads"]
    # Nothing is damaged: that the release holds nothing is the whole answer.
    assert (strict.code, load["outcome"], load["record_offset"]) == (0, "aborted", 1)
    assert "incident: load_aborted: " in strict.err
    assert "--mode lenient" in strict.err
    assert strict.json()["groups"] == []
    assert [row["group"] for row in lenient.json()["offsets"]] == ["after", "before"]
    assert "tolerated_record" in {finding["code"] for finding in lenient.json()["findings"]}


def test_topic_ids_get_the_names_of_a_topics_file(ask: Ask, tmp_path: Path) -> None:
    [unnamed] = [
        row for row in ask("state", DEMO, "--table", "assignments", "--output", "jsonl").rows() if row["group"] == "audit-trail-eu"
    ][:1]
    (tmp_path / "topics.csv").write_text(f"topic,topic_id,partitions\nrenamed,{unnamed['topic_id']},6\n", encoding="utf-8")
    named = ask("state", DEMO, "--topics", tmp_path / "topics.csv", "--table", "assignments", "--output", "jsonl").rows()

    assert {(row["topic"], row["topic_name_source"]) for row in named if row["topic_id"] == unnamed["topic_id"]} == {
        ("renamed", "topics_file")
    }


def test_the_release_is_named_beside_what_it_loaded(ask: Ask) -> None:
    assert {row["release"] for row in ask("state", DEMO, "--release", "2.8", "--table", "loads", "--output", "jsonl").rows()} == {"2.8.2"}


# demo


def test_the_demo_shows_each_command_with_its_answer(ask: Ask) -> None:
    answer = ask("demo")

    assert answer.code == 0
    commands = re.findall(r"^\$ exhume (.*)$", answer.out, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["inspect", "dump", "state", "state"]
    for command in commands:
        name, _, *options = command.split()
        assert ask(name, DEMO, *options).out in answer.out


def test_the_demo_writes_its_log_where_the_commands_shown_find_it(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer = ask("demo", "demo_log")

    assert answer.code == 0
    commands = re.findall(r"^\$ exhume (.*)$", answer.out, re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        assert ask(*command.split()).out in answer.out


def test_the_demo_writes_over_nothing(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("keep")
    answer = ask("demo", str(tmp_path))

    assert (answer.code, [path.name for path in tmp_path.iterdir()]) == (2, ["notes.txt"])
    assert "exists already. Name a new directory" in answer.err


# Terminals


class Terminal(io.TextIOWrapper):
    """Standard output as a terminal."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def isatty(self) -> bool:
        return True

    def text(self) -> str:
        """What a person sees: without the sequences for colours."""
        assert isinstance(self.buffer, io.BytesIO)
        return re.sub(r"\x1b\[[0-9;]*m", "", self.buffer.getvalue().decode())


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Runs the command line with a terminal of so many columns; what a person sees there comes back."""

    def run_and_read(columns: int, *arguments: str) -> str:
        terminal = Terminal()
        monkeypatch.setattr(sys, "stdout", terminal)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", str(columns))
        assert run(list(arguments)) == 0
        return terminal.text()

    return run_and_read


def test_the_summary_fits_a_terminal_of_145_columns_a_line_for_each_group(seen: Callable[..., str]) -> None:
    shown = seen(145, "state", DEMO)

    assert re.search(r"^fraud-scoring +consumer +Reconciling +3 +2 +3 +6 +0 +2026-11-21 03:13:40\.937Z", shown, re.MULTILINE)


def test_a_column_s_name_is_folded_between_its_words_only(seen: Callable[..., str]) -> None:
    words = set(seen(145, "state", DEMO).split())

    assert {"assigned_", "partitions", "pending_", "last_commit_timestamp"} <= words
    assert "row" not in words


def test_a_narrow_terminal_names_the_columns_that_do_not_fit(seen: Callable[..., str]) -> None:
    out = seen(80, "state", DEMO)

    assert max(map(len, out.splitlines())) <= 80
    assert "last_commit_timestamp" in out.partition("record:")[2].split("group_")[0]
