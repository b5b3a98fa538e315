"""Write answers: tables or records as text for people, JSON, JSON lines, CSV or Parquet for programs.

All formats stream: at most one batch and one page of a `RecordBatchReader` are in memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.types as pat

from exhume.arrow_times import timed, timed_schema
from exhume.cli.arrow_json import dump, is_json
from exhume.cli.destination import Sink, open_destination, refuse_inside
from exhume.cli.document import HEAD
from exhume.cli.lines import csv_lines, json_lines
from exhume.cli.notes import note
from exhume.cli.options import PEOPLE, Output
from exhume.cli.selection import check, current, selected
from exhume.cli.tables import wants_width
from exhume.errors import RequestError

if TYPE_CHECKING:
    from exhume.topic.table_schemas import Json

Source: TypeAlias = pa.Table | pa.RecordBatchReader

_ROW_GROUP_ROWS = 128 * 1024
_ROW_GROUP_BYTES = 64 * 1024 * 1024


def render(
    tables: Mapping[str, Source] | Source,
    *,
    output: Output,
    output_file: Path | None = None,
    csv_raw: bool = False,
    title: str | None = None,
    columns: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    evidence: Iterable[Path | str] = (),
    head: Callable[[], Mapping[str, Json]] | None = None,
) -> None:
    """Write one table, or several by name, to standard output or to a file.

    Args:
        tables: a table, a reader, or a mapping of names to them. A reader is read once, to its end.
        output: `table`, `record` (a block for each row, with all columns);
            `json` (one table: an array; several: an object of arrays), `jsonl` (an object per line), `csv`, `parquet`.
        output_file: written aside, then renamed into place; None is standard output. For Parquet of several tables: a directory,
            which gets `<name>.parquet` each.
        csv_raw: leave CSV cells as they are. Else a cell that a spreadsheet would run as a formula starts with `'`, and characters
            that do not show come out as escapes.
        title: a line above a single `table`.
        columns: what `table` shows, in this order, by table name where there are several; None is all. The others always get all. The
            options of the user come before it, see `selection`.
        evidence: what must not be written to.
        head: the first value of a `json` document of several tables, made only for one.

    Raises:
        RequestError: this output cannot carry these tables, or the file cannot be written or is inside the evidence.
    """
    several = tables if isinstance(tables, Mapping) else None
    refuse_unfit(several, output=output, output_file=output_file, evidence=evidence)
    if current().is_given:
        check(several if several is not None else {"": tables})
    if output not in PEOPLE:
        tables = _for_programs(tables) if several is None else {name: _for_programs(source) for name, source in several.items()}
        several = tables if isinstance(tables, Mapping) else None
    if several is not None and output is Output.parquet and output_file is not None:
        for name, source in several.items():
            with open_destination(output_file / f"{name}.parquet", evidence=evidence) as sink:
                _write_parquet(source, sink)
        return
    with open_destination(output_file, evidence=evidence) as sink:
        match output:
            case Output.table | Output.record:
                as_records = output is Output.record
                _write_tables(tables, sink, as_records=as_records, title=title, columns=columns, to_stdout=output_file is None)
            case Output.json:
                _write_json(tables, sink, head)
            case Output.jsonl:
                _write_jsonl(tables, sink)
            case Output.csv:
                _write_csv(tables, sink, raw=csv_raw)
            case Output.parquet:
                _write_parquet(tables, sink)


def wants_list(output: Output, output_file: Path | None) -> bool:
    """Return True if a person at a terminal gets the form of this command for people, not rows and columns of a table."""
    is_rows = current().is_given and not current().is_limit
    return output is Output.table and output_file is None and (sys.stdout.isatty() or wants_width()) and not is_rows


def refuse_unfit(several: Collection[str] | None, *, output: Output, output_file: Path | None, evidence: Iterable[Path | str] = ()) -> None:
    """Raise before long work if `render` cannot write there. `several` are the names of the tables, None for one table.

    Raises:
        RequestError: as `render` does before it writes.
    """
    if output_file is not None:
        refuse_inside(output_file, evidence)
    if several is not None and output in {Output.jsonl, Output.csv, Output.parquet}:
        if output is not Output.parquet:
            raise RequestError(
                f"{output.value} holds one table, and this answer has {len(several)}", remedy=f"Choose one with --table: {_names(several)}"
            )
        if output_file is None or not output_file.is_dir():
            raise RequestError(
                f"a Parquet file holds one table, and this answer has {len(several)}",
                remedy=f"Choose one with --table ({_names(several)}), or name an existing directory with --output-file for one file each",
            )
    if output is Output.parquet and output_file is None and sys.stdout.isatty():
        raise RequestError("a terminal cannot show Parquet", remedy="Name a file with --output-file, or write to a pipe")


def _names(tables: Collection[str]) -> str:
    return ", ".join(tables)


def _batches_of(source: Source) -> Iterator[pa.RecordBatch]:
    return iter(source.to_batches() if isinstance(source, pa.Table) else source)


def _write_tables(
    tables: Mapping[str, Source] | Source,
    sink: Sink,
    *,
    as_records: bool,
    title: str | None,
    columns: Sequence[str] | Mapping[str, Sequence[str]] | None,
    to_stdout: bool,
) -> None:
    is_terminal = to_stdout and sys.stdout.isatty()
    format_table = _format_for(as_records=as_records, to_stdout=to_stdout, is_terminal=is_terminal)
    encoding = sys.stdout.encoding if to_stdout else "utf-8"
    named: list[tuple[str | None, Source]] = list(tables.items()) if isinstance(tables, Mapping) else [(title, tables)]
    for number, (name, source) in enumerate(named):
        if number:
            sink.write(b"\n")
        wanted = None if as_records else columns.get(name or "") if isinstance(columns, Mapping) else columns
        chosen = selected(source, wanted, is_for_people=True, is_terminal=is_terminal)
        for text in format_table(chosen.schema, chosen.batches, name):
            sink.write(text.encode(encoding, "backslashreplace"))
        if rest := chosen.rest():
            sink.flush()
            note(f"{name}: {rest}" if name and isinstance(tables, Mapping) else rest)


def _format_for(*, as_records: bool, to_stdout: bool, is_terminal: bool) -> Callable[..., Iterator[str]]:
    # Half of the modules of rich are for terminals alone.
    if as_records:
        from exhume.cli.terminal import record_text

        return partial(record_text, is_terminal=is_terminal)
    if is_terminal or (to_stdout and wants_width()):
        from exhume.cli.terminal import terminal_text

        return partial(terminal_text, is_terminal=is_terminal)
    from exhume.cli.tables import plain_text

    return plain_text


def _for_programs(source: Source) -> Source:
    """The rows and columns that the user wants, as a table or a reader again."""
    if not current().is_given:
        return source
    chosen = selected(source, None, is_for_people=False, is_terminal=False)
    return pa.RecordBatchReader.from_batches(chosen.schema, chosen.batches)


def _write_json(tables: Mapping[str, Source] | Source, sink: Sink, head: Callable[[], Mapping[str, Json]] | None) -> None:
    if not isinstance(tables, Mapping):
        _write_json_array(tables, sink)
        sink.write(b"\n")
        return
    sink.write(b"{")
    if head is not None:
        sink.write(f"\n{dump(HEAD)}:{dump(head())}".encode())
    for number, (name, source) in enumerate(tables.items()):
        sink.write(f"{',' if number or head is not None else ''}\n{dump(name)}:".encode())
        _write_json_array(source, sink)
    sink.write(b"\n}\n")


def _write_json_array(source: Source, sink: Sink) -> None:
    sink.write(b"[")
    is_first = True
    for piece in json_lines(source.schema, _batches_of(source), before=b",\n", after=b""):
        sink.write(piece[1:] if is_first else piece)
        is_first = False
    sink.write(b"]" if is_first else b"\n]")


def _write_jsonl(source: Source, sink: Sink) -> None:
    for piece in json_lines(source.schema, _batches_of(source), before=b"", after=b"\n"):
        sink.write(piece)


def _write_csv(source: Source, sink: Sink, *, raw: bool) -> None:
    for piece in csv_lines(source.schema, _batches_of(source), raw=raw):
        sink.write(piece)


def _write_parquet(source: Source, sink: Sink) -> None:
    from concurrent.futures import Future, ThreadPoolExecutor

    import pyarrow.parquet as pq

    schema = timed_schema(source.schema)
    leaves = list(_leaves(schema))
    # Names repeat; numbers and JSON rarely do. Readers do not use the least and greatest JSON text, so its statistics are left out.
    dictionaries = [name for name, data_type in leaves if pat.is_string(data_type)]
    statistics = [name for name, data_type in leaves if not is_json(data_type)]
    with (
        pq.ParquetWriter(sink, schema, compression="zstd", use_dictionary=dictionaries, write_statistics=statistics) as writer,
        ThreadPoolExecutor(1) as aside,
    ):
        # Write one row group while the next one is read.
        written: Future[None] | None = None
        for row_group in _row_groups(source):
            if written is not None:
                written.result()
            written = aside.submit(writer.write_table, timed(row_group), row_group_size=_ROW_GROUP_ROWS)
        if written is not None:
            written.result()


def _leaves(fields: Iterable[pa.Field], inside: str = "") -> Iterator[tuple[str, pa.DataType]]:
    """The columns of Parquet, by their paths."""
    for field in fields:
        column, data_type = f"{inside}{field.name}", field.type
        if pat.is_list(data_type):
            column, data_type = f"{column}.list.element", data_type.value_type
        if pat.is_struct(data_type):
            yield from _leaves(data_type, f"{column}.")
        else:
            yield column, data_type


def _row_groups(source: Source) -> Iterator[pa.Table]:
    """The batches, joined to one table for each row group; at least one table, so that an empty source keeps its schema."""
    pending: list[pa.RecordBatch] = []
    rows = size_bytes = 0
    for batch in _batches_of(source):
        pending.append(batch)
        rows += batch.num_rows
        size_bytes += batch.nbytes
        if rows >= _ROW_GROUP_ROWS or size_bytes >= _ROW_GROUP_BYTES:
            yield pa.Table.from_batches(pending, source.schema)
            pending, rows, size_bytes = [], 0, 0
    if pending:
        yield pa.Table.from_batches(pending, source.schema)
