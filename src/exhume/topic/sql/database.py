"""An embedded DuckDB whose views are the tables of a topic."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypedDict

import pyarrow as pa

from exhume.arrow_times import with_times
from exhume.codecs.uris import PathOrUri
from exhume.errors import RequestError
from exhume.topic.logs import TopicLogs
from exhume.topic.sql.questions import QUESTIONS, Question, macros
from exhume.topic.sql.results import plain
from exhume.topic.sql.scans import Scanned
from exhume.topic.sql.views import Answers, views

if TYPE_CHECKING:
    import duckdb

    from exhume.topic.offsets_topic import OffsetsTopic

#: The memory of DuckDB for one query, beside that of the reader. What needs more goes to temporary files.
DEFAULT_MEMORY_LIMIT = "1GB"
_MEMORY = re.compile(r"[0-9]+(\.[0-9]+)? ?([KMGT](i?B)?)", re.IGNORECASE)


class SqlOptions(TypedDict, total=False):
    """The options of `SqlDatabase` as keywords of a function."""

    release: str | None
    external_access: bool
    memory_limit: str
    temp_dir: PathOrUri | None


class SqlDatabase:
    """A connection to an embedded DuckDB, in memory, whose views read the evidence of a topic.

    Statements reach no file, no network and no extension, unless `external_access`. Close it, or use it in a `with` statement: temporary
    files of large queries are removed then.
    """

    def __init__(
        self,
        topic: OffsetsTopic,
        logs: TopicLogs,
        *,
        release: str | None = None,
        external_access: bool = False,
        memory_limit: str = DEFAULT_MEMORY_LIMIT,
        temp_dir: PathOrUri | None = None,
    ) -> None:
        self._answers = Answers(topic, logs, release)
        self._error: BaseException | None = None
        self.views, self.macros = views(self._answers), macros()
        self._temporary = tempfile.TemporaryDirectory(prefix="exhume-sql-", dir=temp_dir)
        try:
            self.connection = _connect(external_access, memory_limit, self._temporary.name, logs.options.most_threads)
            self._define()
        except BaseException:
            self._temporary.cleanup()
            raise

    def _define(self) -> None:
        for name, view in self.views.items():
            self.connection.register(name, Scanned(view.schema, view.read, view.pushed, self._note))
        for name, question in QUESTIONS.items():
            self._add_function(name, question)
        for statement in self.macros.values():
            self.connection.execute(statement)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection, and remove its temporary files."""
        self.connection.close()
        self._temporary.cleanup()

    def query(self, statement: str) -> pa.RecordBatchReader:
        """Run one statement, or several of which the last one answers. Rows are made while the reader is consumed.

        `group` may be written without quotes: exhume quotes it where it is the name of a column.

        Raises:
            RequestError: DuckDB refuses the statement; has its words. An error of the evidence is raised as it is, also by the reader.
        """
        import duckdb

        self._error = None
        try:
            relation = self.connection.sql(with_quoted_group(statement))
            if relation is None:
                return pa.RecordBatchReader.from_batches(pa.schema([]), [])
            reader = plain(relation.to_arrow_reader())
        except duckdb.Error as error:
            raise self._as_ours(error) from error
        return pa.RecordBatchReader.from_batches(reader.schema, self._rows(reader))

    def _rows(self, reader: pa.RecordBatchReader) -> Any:
        import duckdb

        try:
            yield from reader
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise self._as_ours(error) from error

    def _note(self, error: BaseException) -> None:
        self._error = self._error or error

    def _as_ours(self, error: Exception) -> BaseException:
        """Return the cause of an error of DuckDB: its own words, or the error of a scan, also an interrupt."""
        noted, self._error = self._error, None
        return RequestError(" ".join(str(error).split())) if noted is None else noted

    def _add_function(self, name: str, question: Question) -> None:
        import duckdb

        shape = self.connection.from_arrow(_timed(question.schema.empty_table()))
        rows = duckdb.list_type(duckdb.struct_type(dict(zip(shape.columns, shape.types, strict=True))))
        texts: list[Any] = [duckdb.list_type("VARCHAR")]
        options: Any = {"type": "arrow", "null_handling": "special"}
        self.connection.create_function(f"_{name}", self._function(question), texts, rows, **options)

    def _function(self, question: Question) -> Callable[..., pa.Array]:
        def answer(arguments: pa.ChunkedArray) -> pa.Array:
            made = [self._answered(question, given) for given in arguments.to_pylist()]
            ends = [0]
            for rows in made:
                ends.append(ends[-1] + len(rows))
            return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.concat_arrays(made))

        return answer

    def _answered(self, question: Question, given: list[str | None]) -> pa.StructArray:
        try:
            table = question.answer(self._answers, dict(zip(question.arguments, given, strict=True)))
        except BaseException as error:
            self._note(error)
            raise
        rows = _timed(table.select(question.schema.names)).to_struct_array()
        return rows.combine_chunks() if isinstance(rows, pa.ChunkedArray) else rows


def _timed(table: pa.Table) -> pa.Table:
    """Return this table with times as timestamps."""
    batch = pa.RecordBatch.from_arrays([column.combine_chunks() for column in table.columns], schema=table.schema)
    return pa.Table.from_batches([with_times(batch)])


def _connect(external_access: bool, memory_limit: str, temp_dir: str, threads: int) -> duckdb.DuckDBPyConnection:
    try:
        import duckdb
    except ImportError as error:
        raise RequestError("SQL needs DuckDB, which is not installed", remedy="Run pip install 'exhume[sql]'") from error
    if not _MEMORY.fullmatch(memory_limit):
        raise RequestError(f"{memory_limit!r} is no size of memory", remedy="Write a number with its unit, such as 1GB or 512MB")
    limits: dict[str, str | int | float | bool | list[str]] = {
        # DuckDB needs the last letter of 512M.
        "memory_limit": memory_limit if memory_limit[-1] in "bB" else f"{memory_limit}B",
        "temp_directory": temp_dir,
        "threads": threads,
        "autoinstall_known_extensions": external_access,
        "autoload_known_extensions": external_access,
        "allow_community_extensions": False,
        # A variable of Python is no table.
        "python_enable_replacements": False,
    }
    connection = duckdb.connect(config=limits)
    connection.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
    if not external_access:
        # No statement can switch it on again, and none can change the directory of temporary files.
        connection.execute("SET enable_external_access = false")
    return connection


def with_quoted_group(statement: str) -> str:
    """Return this statement with quotes around each `group` that is not the word of `GROUP BY` or `WITHIN GROUP`."""
    import duckdb

    tokens = [(start, kind) for start, kind in duckdb.tokenize(statement) if kind is not duckdb.token_type.comment]
    words = [re.match(r"\w*", statement[start:]) for start, _ in tokens]
    found = ["" if word is None else word[0].lower() for word in words]
    quoted: list[str] = []
    done = 0
    for number, ((start, kind), word) in enumerate(zip(tokens, found, strict=True)):
        following = found[number + 1 : number + 2]
        before = found[number - 1] if number else ""
        if word == "group" and kind is duckdb.token_type.keyword and following != ["by"] and before != "within":
            quoted += [statement[done:start], '"group"']
            done = start + len("group")
    return "".join([*quoted, statement[done:]])
