import base64
import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from exhume.cli.options import Output
from exhume.cli.render import render
from exhume.cli.selection import Selection, selecting
from exhume.cli.tables import PLAIN_PAGE_ROWS
from exhume.errors import EvidenceError, RequestError
from exhume.where import Where
from tests.strategies import examples

HOSTILE = "a\x1b]0;title\x07\u202e\u200b\x85\u2028[red]b[/red]"


class FakeTerminal(io.TextIOWrapper):
    """Standard output as a terminal; what was written to it is in `buffer`."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding=encoding, write_through=True)

    def isatty(self) -> bool:
        return True

    def text(self) -> str:
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode(self.encoding)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Renders to a terminal of 100 columns and returns what arrived there, sequences for the terminal included."""

    def render_and_read(tables: Any, *, encoding: str = "utf-8", **options: Any) -> str:
        terminal = FakeTerminal(encoding)
        monkeypatch.setattr(sys, "stdout", terminal)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "100")
        for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
            monkeypatch.delenv(name, raising=False)
        render(tables, **{"output": Output.table, **options})
        return terminal.text()

    return render_and_read


@pytest.fixture
def written(capsys: pytest.CaptureFixture[str]) -> Any:
    """Renders to standard output and returns what arrived there."""

    def render_and_read(tables: Any, output: Output, **options: Any) -> str:
        render(tables, output=output, **options)
        return capsys.readouterr().out

    return render_and_read


def reader(*batches: pa.RecordBatch) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(batches[0].schema, iter(batches))


def table(**columns: Any) -> pa.Table:
    return pa.table(columns)


# JSON and JSON lines


def test_json_of_a_table_is_an_array_of_objects(written: Any) -> None:
    assert json.loads(written(table(group=["a", None], n=[1, 2**62]), Output.json)) == [{"group": "a", "n": 1}, {"group": None, "n": 2**62}]


def test_json_of_several_tables_is_one_document_by_name(written: Any) -> None:
    document = json.loads(written({"groups": table(group=["a"]), "members": table(member_id=pa.array([], pa.string()))}, Output.json))

    assert document == {"groups": [{"group": "a"}], "members": []}


def test_jsonl_is_one_object_a_line(written: Any) -> None:
    lines = written(reader(pa.record_batch({"n": [1, 2]}), pa.record_batch({"n": [3]})), Output.jsonl).splitlines()

    assert [json.loads(line) for line in lines] == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_bytes_are_base64_at_any_depth(written: Any) -> None:
    rows = table(key=[b"\x00\xff", None], headers=[[{"key": "h", "value": b"\xfe"}, {"key": "n", "value": None}], []])

    assert json.loads(written(rows, Output.json)) == [
        {"key": "AP8=", "headers": [{"key": "h", "value": "/g=="}, {"key": "n", "value": None}]},
        {"key": None, "headers": []},
    ]


def test_json_columns_are_embedded_as_values(written: Any) -> None:
    evidence = pa.array(['{"offsets": [1, 18446744073709551616], "x": null}', None, "not JSON"]).cast(pa.json_())

    assert [row["evidence"] for row in json.loads(written(table(evidence=evidence), Output.json))] == [
        {"offsets": [1, 18446744073709551616], "x": None},
        None,
        "not JSON",
    ]


@pytest.mark.parametrize(
    ("text", "expected"), [("[NaN,-Infinity]", ["NaN", "-Infinity"]), ("[1e999]", ["1e999"]), ("[" * 100_000, "[" * 100_000)]
)
def test_a_json_column_that_json_cannot_carry_still_gives_json(written: Any, text: str, expected: object) -> None:
    [row] = json.loads(written(table(evidence=pa.array([text]).cast(pa.json_())), Output.json), parse_constant=pytest.fail)

    assert row == {"evidence": expected}


def test_numbers_that_json_does_not_have_are_text(written: Any) -> None:
    rows = json.loads(written(table(rate=[1.5, float("nan"), float("inf"), float("-inf")]), Output.json), parse_constant=pytest.fail)

    assert [row["rate"] for row in rows] == [1.5, "NaN", "Infinity", "-Infinity"]


def test_maps_and_timestamps_have_a_json_form(written: Any) -> None:
    tags = pa.array([[("zone", b"\x01")]], pa.map_(pa.string(), pa.binary()))
    rows = json.loads(written(table(tags=tags, day=pa.array([0], pa.date32())), Output.json))

    assert rows == [{"tags": [{"key": "zone", "value": "AQ=="}], "day": "1970-01-01"}]


def test_times_stay_integers_for_programs(written: Any) -> None:
    assert json.loads(written(table(timestamp_ms=[1795238789123]), Output.jsonl)) == {"timestamp_ms": 1795238789123}


def test_hostile_text_is_lossless_and_shows_nothing_to_a_terminal(written: Any) -> None:
    out = written(table(group=[HOSTILE]), Output.jsonl)

    assert json.loads(out) == {"group": HOSTILE}
    assert out.rstrip("\n").isprintable()


def test_letters_of_any_script_are_not_escaped(written: Any) -> None:
    assert "消費者 é" in written(table(group=["消費者 é"]), Output.json)


def test_a_lone_surrogate_in_embedded_json_survives(written: Any) -> None:
    assert json.loads(written(table(evidence=pa.array(['"\\ud800"']).cast(pa.json_())), Output.jsonl)) == {"evidence": "\ud800"}


@examples(50)
@given(st.lists(st.tuples(st.none() | st.text(), st.none() | st.binary(), st.none() | st.integers(-(2**63), 2**63 - 1))))
def test_every_row_comes_back_from_json_lines(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]]) -> None:
    names = ("text", "raw", "number")
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    types = (pa.string(), pa.binary(), pa.int64())
    source = pa.table({name: pa.array(list(column), kind) for name, column, kind in zip(names, columns, types, strict=True)})
    file = tmp_path_factory.mktemp("out") / "rows.jsonl"
    render(source, output=Output.jsonl, output_file=file)

    read = [json.loads(line) for line in file.read_bytes().split(b"\n")[:-1]]
    assert [(row["text"], row["number"]) for row in read] == [(text, number) for text, _, number in rows]
    assert [None if text is None else base64.b64decode(text, validate=True) for text in (row["raw"] for row in read)] == [
        value for _, value, _ in rows
    ]


# CSV


def test_csv_has_a_header_and_keeps_numbers(written: Any) -> None:
    rows = _csv_rows(written(table(group=["a,b", None], n=[-5, None], is_stable=[True, False]), Output.csv))

    assert rows == [["group", "n", "is_stable"], ["a,b", "-5", "true"], ["", "", "false"]]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_a_formula_in_csv_is_disarmed(written: Any, text: str) -> None:
    [_, [cell]] = _csv_rows(written(table(group=[text]), Output.csv))

    assert cell.startswith("'")


def test_a_control_character_in_csv_is_made_visible(written: Any) -> None:
    assert _csv_rows(written(table(group=["a\x1b[31m"]), Output.csv))[1] == [r"a\x1b[31m"]


@pytest.mark.parametrize("text", ["=1+1", "\t=1", "a\x1b[31m", 'say "x"\r\ny', HOSTILE])
def test_raw_csv_is_what_the_evidence_says(written: Any, text: str) -> None:
    assert _csv_rows(written(table(group=[text]), Output.csv, csv_raw=True))[1] == [text]


def test_nested_values_are_compact_json_in_csv(written: Any) -> None:
    [_, cells] = _csv_rows(written(table(topics=[["a", "b"]], raw=[b"\xff"], j=pa.array(['{"a": 1}']).cast(pa.json_())), Output.csv))

    assert cells == ['["a","b"]', "/w==", '{"a":1}']


# Parquet


def test_parquet_keeps_rows_and_types(tmp_path: Path) -> None:
    rows = pa.table({"raw": [b"\xff", None], "n": pa.array([1, None], pa.int16()), "e": pa.array(["1", None]).cast(pa.json_())})
    render(rows, output=Output.parquet, output_file=tmp_path / "rows.parquet")

    assert pq.read_table(tmp_path / "rows.parquet", arrow_extensions_enabled=True).equals(rows)


def test_small_batches_share_a_row_group(tmp_path: Path) -> None:
    render(reader(*(pa.record_batch({"n": [n]}) for n in range(100))), output=Output.parquet, output_file=tmp_path / "rows.parquet")

    assert pq.ParquetFile(tmp_path / "rows.parquet").metadata.num_row_groups == 1
    assert pq.read_table(tmp_path / "rows.parquet")["n"].to_pylist() == list(range(100))


def test_parquet_of_several_tables_fills_a_directory(tmp_path: Path) -> None:
    render({"groups": table(group=["a"]), "members": table(n=[1, 2])}, output=Output.parquet, output_file=tmp_path)

    assert {file.name: pq.read_table(file).num_rows for file in tmp_path.iterdir()} == {"groups.parquet": 1, "members.parquet": 2}


def test_parquet_goes_through_a_pipe() -> None:
    program = "import pyarrow as pa; from exhume.cli.render import *; render(pa.table({'n': [1, 2]}), output=Output.parquet)"
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)

    assert pq.read_table(pa.BufferReader(done.stdout))["n"].to_pylist() == [1, 2]


def test_parquet_is_refused_on_a_terminal(shown: Callable[..., str]) -> None:
    with pytest.raises(RequestError, match="--output-file"):
        shown(table(n=[1]), output=Output.parquet)


@pytest.mark.parametrize("output", [Output.jsonl, Output.csv, Output.parquet])
def test_several_tables_do_not_fit_where_one_does(output: Output) -> None:
    with pytest.raises(RequestError, match=r"--table.*groups, members"):
        render({"groups": table(n=[1]), "members": table(n=[1])}, output=output)


# Tables for people


def test_a_piped_table_is_never_cut(written: Any) -> None:
    lines = written(table(group=["g" * 300], metadata=["m" * 300]), Output.table).splitlines()

    assert lines[2] == f"{'g' * 300}  {'m' * 300}"


def test_a_piped_table_aligns_numbers_right_and_wide_letters_by_their_cells(written: Any) -> None:
    assert written(table(group=["消費", "abc"], n=[5, 12345]), Output.table).splitlines() == [
        "group      n",
        "-----  -----",
        "消費       5",
        "abc    12345",
    ]


def test_times_are_shown_in_utc_and_timeouts_as_numbers(written: Any) -> None:
    out = written(table(commit_timestamp_ms=[1795238789123, -1], session_timeout_ms=[45000, 1]), Output.table)

    assert "2026-11-21 05:26:29.123Z               45000" in out
    assert "-1                                         1" in out


def test_null_is_a_dash_and_an_empty_name_is_not(written: Any) -> None:
    assert written(table(group=[None, ""]), Output.table).splitlines()[2:] == ["-", '""']


def test_a_table_for_people_cannot_be_painted_by_the_evidence(written: Any) -> None:
    out = written(table(group=[HOSTILE], names=[[HOSTILE]]), Output.table, title=HOSTILE)

    assert all(line.isprintable() for line in out.split("\n"))
    assert r"a\x1b]0;title\x07\u202e\u200b\x85\u2028[red]b[/red]" in out


def test_lists_of_names_are_shown_with_commas(written: Any) -> None:
    assert written(table(topics=[["a", "b"], [], None]), Output.table).splitlines()[2:] == ["a, b", "[]", "-"]


def test_a_long_piped_table_has_one_header_and_all_rows(written: Any) -> None:
    lines = written(reader(*(pa.record_batch({"n": [n]}) for n in range(PLAIN_PAGE_ROWS * 2 + 1))), Output.table).splitlines()

    assert [line.strip() for line in lines if not line.startswith("-")] == ["n", *(str(n) for n in range(PLAIN_PAGE_ROWS * 2 + 1))]


def test_an_empty_table_says_so_under_its_header(written: Any) -> None:
    assert written(table(group=pa.array([], pa.string())), Output.table).splitlines() == ["group", "-----", "(no rows)"]


def test_several_tables_stand_under_their_names(written: Any) -> None:
    out = written({"groups": table(group=["a"]), "members": table(n=[1])}, Output.table, columns={"groups": ["group"]})

    assert out == "groups\ngroup\n-----\na\n\nmembers\nn\n-\n1\n"


def test_chosen_columns_shorten_the_table_and_nothing_else(written: Any) -> None:
    rows = table(a=[1], b=[2], c=[3])

    assert written(rows, Output.table, columns=["c", "a"]).splitlines()[0] == "c  a"
    assert json.loads(written(rows, Output.jsonl, columns=["c", "a"])) == {"a": 1, "b": 2, "c": 3}


def test_bytes_are_hexadecimal_for_people(written: Any) -> None:
    assert written(table(raw_key=[b"\x00\xff", b"", None]), Output.table).splitlines()[2:] == ["00ff", '""', "-"]


def test_a_terminal_folds_long_cells_and_loses_nothing(shown: Callable[..., str]) -> None:
    out = plain(shown(table(group=["abcdefghij" * 20], n=[1])))

    assert max(len(line) for line in out.splitlines()) <= 100
    assert "abcdefghij" * 20 in "".join(out.split()).replace("1", "")


def test_a_terminal_too_narrow_leaves_out_what_all_rows_share_and_names_it(shown: Callable[..., str]) -> None:
    out = plain(shown(table(group=["a", "b"], **{f"column_number_{n}": [n, n] for n in range(12)}, none=pa.nulls(2, pa.string()))))

    assert max(map(len, out.splitlines())) <= 100
    assert "column_number_11 11" in " ".join(out.split())
    assert "empty: none" in " ".join(out.split())
    assert out.splitlines()[-3:] == ["group", "a", "b"]


def test_a_terminal_too_narrow_names_the_columns_that_it_leaves_out(shown: Callable[..., str]) -> None:
    out = plain(shown(table(**{f"column_number_{n}": [n, n + 1] for n in range(20)})))

    assert max(map(len, out.splitlines())) <= 100
    note, cells = out.split("column_ ")[0].split("record:")[1], out.splitlines()[-1].split()
    assert len(note.split(",")) + len(cells) == 20


def test_names_that_are_cut_stay_different_and_have_a_legend(shown: Callable[..., str]) -> None:
    members = [f"consumer-{n}-be715023-609b-550a-bdd4-e433ad5b7c7{n}-{'x' * 40}" for n in range(3)]
    out = plain(shown(table(member_id=members, client=[name * 2 for name in members], n=[1, 2, 3])))

    assert max(map(len, out.splitlines())) <= 100
    cut = [line.split()[0] for line in out.splitlines() if line.endswith((" 1", " 2", " 3"))]
    assert len({*cut}) == 3
    assert all("…" in name for name in cut)


def test_a_long_sentence_keeps_its_words_at_every_width(shown: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = "the committed offset went back from 764 to 44, five seconds after the partition moved to another member of the group"
    out = plain(shown(table(group=["billing-of-the-whole-company"] * 2, code=["IC-02", "IC-03"], sentence=[sentence, sentence + " again"])))

    words = out.split()
    assert all(word in words for word in sentence.split())
    assert max(map(len, out.splitlines())) <= 100


def test_times_of_one_day_lose_their_date(shown: Callable[..., str]) -> None:
    times = {f"number_{n}_timestamp_ms": [1795238789123 + n, 1795238789124 + n] for n in range(5)}
    out = plain(shown(table(**times)))

    assert out.splitlines()[0] == "times of 2026-11-21 in UTC"
    assert out.splitlines()[-1].split()[0] == "05:26:29.124"


def test_a_terminal_gets_the_first_hundred_rows_and_their_number(shown: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    out = plain(shown(reader(*(pa.record_batch({"n": [n, n]}) for n in range(600)))))

    assert len(out.splitlines()) == 101
    assert capsys.readouterr().err == "1,200 rows, 100 shown: --limit 0 for all\n"


def test_records_have_a_line_for_each_column(written: Any) -> None:
    assert written(table(group=["a", None], size_bytes=[1, 2]), Output.record).splitlines() == [
        *("row 1", "group       a", "size_bytes  1", ""),
        *("row 2", "group       -", "size_bytes  2", ""),
    ]


def test_a_pipe_has_no_rule_of_dashes_for_a_long_cell(written: Any) -> None:
    lines = written(table(key=["k" * 5000, "k"], n=[1, 2]), Output.table).splitlines()

    assert (len(lines[1]), len(lines[2]), len(lines[3])) == (83, 5003, 83)


def test_a_pipe_is_as_wide_as_columns_says(written: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")

    out = written(table(**{f"column_number_{n}": [n, n + 1] for n in range(9)}), Output.table)
    assert max(map(len, out.splitlines())) <= 60


def test_a_pipe_has_its_headings_in_one_line(written: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")

    lines = written(table(long_name_of_a_number=[1, 2], long_name_of_a_text=["a", "b"]), Output.table).splitlines()
    assert lines == ["long_name_of_a_number  long_name_of_a_text", "                    1  a", "                    2  b"]


# Rows and columns that the user wants


@pytest.mark.parametrize("output", [Output.table, Output.csv, Output.json, Output.jsonl])
def test_a_selection_holds_for_every_output(written: Any, output: Output) -> None:
    rows = table(group=["a", "b", "c", "d"], n=[4, 3, 2, 1], more=[0, 0, 0, 0])
    with selecting(Selection(Where("n > 1"), (("n", False),), ("n", "group"), 2)):
        out = written(rows, output)

    expected = {
        Output.table: "n  group\n-  -----\n2  c\n3  b\n",
        Output.csv: "n,group\n2,c\n3,b\n",
        Output.json: '[\n{"n":2,"group":"c"},\n{"n":3,"group":"b"}\n]\n',
        Output.jsonl: '{"n":2,"group":"c"}\n{"n":3,"group":"b"}\n',
    }
    assert out == expected[output]


def test_a_selection_reaches_parquet(tmp_path: Path) -> None:
    with selecting(Selection(sort=(("n", True),), columns=("n",), limit=1)):
        render(table(n=[1, 3, 2], more=[0, 0, 0]), output=Output.parquet, output_file=tmp_path / "rows.parquet")

    assert pq.read_table(tmp_path / "rows.parquet").to_pylist() == [{"n": 3}]


def test_a_limit_reads_no_further(written: Any) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": [1, 2]})
        yield pa.record_batch({"n": [3]})
        raise EvidenceError("read too far")

    with selecting(Selection(limit=2)):
        assert written(pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), batches()), Output.jsonl) == '{"n":1}\n{"n":2}\n'


def test_an_unknown_column_is_refused_with_a_similar_one(written: Any) -> None:
    with selecting(Selection(columns=("comitted_offset",))), pytest.raises(RequestError, match=r"Did you mean committed_offset\?"):
        written(table(committed_offset=[1], n=[2]), Output.csv)


def test_a_terminal_gets_colours_only_where_they_are_wanted(shown: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", shown(table(group=["a", None]), title="groups"))


def test_a_pipe_gets_no_terminal_sequences(written: Any) -> None:
    assert "\x1b" not in written(table(group=["a", None]), Output.table, title="groups")


def test_markup_in_data_is_text_on_a_terminal(shown: Callable[..., str]) -> None:
    assert "[bold]x[/bold] :smile:" in plain(shown(table(group=["[bold]x[/bold] :smile:"])))


def test_a_terminal_without_unicode_gets_escapes(shown: Callable[..., str]) -> None:
    assert r"\xe9" in shown(table(group=["é"]), encoding="ascii")


# Streaming and the way out


@pytest.mark.parametrize("output", list(Output))
def test_an_error_while_streaming_arrives_and_leaves_no_file(tmp_path: Path, output: Output) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": [1]})
        raise EvidenceError("cut", path="x.log", byte_position=7)

    source = pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), batches())
    with pytest.raises(EvidenceError, match="byte 7"):
        render(source, output=output, output_file=tmp_path / "out")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("output", list(Output))
def test_the_evidence_is_not_written_over(tmp_path: Path, output: Output) -> None:
    segment = tmp_path / "00000000000000000000.log"
    segment.write_bytes(b"evidence")
    with pytest.raises(RequestError, match="inside the evidence"):
        render(table(n=[1]), output=output, output_file=segment, evidence=[segment])

    assert segment.read_bytes() == b"evidence"


def test_parquet_keeps_a_dictionary_of_texts_only(tmp_path: Path) -> None:
    members = pa.list_(pa.struct([("client_id", pa.string()), ("assignment", pa.binary())]))
    fields = [("group", pa.string()), ("offset", pa.int64()), ("marks", pa.list_(pa.string())), ("members", members)]
    schema = pa.schema([*fields, ("key", pa.json_())])
    row = {"group": "g", "offset": 1, "marks": ["m"], "members": [{"client_id": "c", "assignment": b"a"}], "key": "{}"}
    table = pa.Table.from_pylist([row] * 3, pa.schema([*fields, ("key", pa.string())])).cast(schema)
    render(table, output=Output.parquet, output_file=tmp_path / "answer.parquet")

    group = pq.ParquetFile(tmp_path / "answer.parquet").metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    assert {column.path_in_schema for column in columns if column.has_dictionary_page} == {
        "group",
        "marks.list.element",
        "members.list.element.client_id",
    }
    assert pq.read_table(tmp_path / "answer.parquet").to_pylist() == table.to_pylist()


@pytest.mark.one_of(5)
@pytest.mark.parametrize("output", list(Output))
def test_a_reader_that_leaves_ends_the_program_without_a_word(output: Output) -> None:
    program = """
import sys
import pyarrow as pa
from exhume.cli.destination import quiet_when_reader_leaves
from exhume.cli.options import Output
from exhume.cli.render import render
from exhume.cli.selection import Selection, selecting
batch = pa.record_batch({"n": list(range(1000)), "text": [f"{n * 7919:x}" for n in range(1000)]})
endless = pa.RecordBatchReader.from_batches(batch.schema, iter(lambda: batch, None))
with quiet_when_reader_leaves():
    render(endless, output=Output(sys.argv[1]))
"""
    command = [sys.executable, "-c", program, output.value]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(4)
        process.stdout.close()
        errors = process.stderr.read()

    assert (process.returncode, errors) == (141, b"")


def _csv_rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def plain(out: str) -> str:
    return Text.from_ansi(out).plain
