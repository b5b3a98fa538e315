"""A directory of Parquet tables that is replaced as a whole: written to another directory, then renamed.

An interrupt waits for the end of each call that writes, so that nothing is written after `abandon`.

Places are those of the session's file systems: a path of a file system that the driver and all executors share, or a URI that Hadoop knows.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from exhume.errors import RequestError
from exhume.replay.spark.whole_calls import run_whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PARTITION = "offsets_partition"
MANIFEST = "manifest.json"


@dataclass(slots=True)
class OutputDirectory:
    """The directory `path` and its new content: `write` each table, then `finish`, or `abandon` it."""

    spark: SparkSession
    path: str
    _aside: str = ""

    def __post_init__(self) -> None:
        name = self.path.rstrip("/")
        self._recover(name)
        if self._exists(name) and not self._exists(f"{name}/{MANIFEST}"):
            raise RequestError(f"{self.path} exists and is not an output of this command", remedy="Choose a directory that does not exist")
        self._aside = f"{name}.{secrets.token_hex(4)}.unfinished"

    def write(self, name: str, frame: DataFrame) -> None:
        """Write a table to `NAME/offsets_partition=N/`, to `NAME/` if it has no such column or no row: then one file has its columns."""
        with self._refused_writes():
            run_whole(self._context(), lambda: self._write(f"{self._aside}/{name}", frame))

    def finish(self, manifest: Mapping[str, Any]) -> None:
        """Write the manifest, and replace the old directory by the new one."""
        content = json.dumps(manifest, indent=2, ensure_ascii=False, default=str) + "\n"
        with self._refused_writes():
            run_whole(self._context(), lambda: self._finish(content))

    def abandon(self) -> None:
        """Delete the files written so far."""
        run_whole(self._context(), lambda: self._delete(self._aside))

    @contextmanager
    def _refused_writes(self) -> Iterator[None]:
        """Raise `RequestError` for a write that a file system refused, such as one on a full disk."""
        from py4j.protocol import Py4JJavaError

        try:
            yield
        except Py4JJavaError as error:
            problem = error.java_exception
            while problem.getCause() is not None:
                problem = problem.getCause()
            kind = problem.getClass().getName()
            # Its subclasses, such as EOFException, also tell of workers that ended.
            if kind == "java.io.IOException" or kind.startswith("java.nio.file."):
                raise RequestError(
                    f"Spark cannot write {self.path}: {problem.getMessage()}",
                    remedy="Make room there and in the directories of spark.local.dir, or choose another directory",
                ) from error
            raise

    def _write(self, path: str, frame: DataFrame) -> None:
        if _PARTITION not in frame.columns:
            frame.write.parquet(path)
            return
        frame.write.partitionBy(_PARTITION).parquet(path)
        if not self._file_system(path).globStatus(self._hadoop_path(f"{path}/{_PARTITION}=*")):
            self.spark.createDataFrame([], frame.schema).write.mode("overwrite").parquet(path)

    def _finish(self, manifest: str) -> None:
        name = self.path.rstrip("/")
        stream = self._file_system(self._aside).create(self._hadoop_path(f"{self._aside}/{MANIFEST}"))
        try:
            stream.write(bytearray(manifest.encode()))
        finally:
            stream.close()
        if self._exists(name):
            self._rename(name, _before(name))
        self._rename(self._aside, name)
        self._delete(_before(name))

    def _recover(self, name: str) -> None:
        """Undo a half-finished exchange of a killed run, and delete its other files."""
        if self._exists(_before(name)):
            if self._exists(name):
                self._delete(_before(name))
            else:
                self._rename(_before(name), name)
        pattern = self._hadoop_path(f"{name}.*.unfinished")
        for status in self._file_system(name).globStatus(pattern) or ():
            self._delete(status.getPath().toString())

    # Hadoop's file systems

    def _hadoop_path(self, path: str) -> Any:
        jvm = self._context()._jvm  # noqa: SLF001  # PySpark has no other way to the file systems of a session
        return jvm.org.apache.hadoop.fs.Path(path)

    def _file_system(self, path: str) -> Any:
        configuration = self._context()._jsc.hadoopConfiguration()  # noqa: SLF001  # as above
        return self._hadoop_path(path).getFileSystem(configuration)

    def _context(self) -> Any:
        try:
            return self.spark.sparkContext
        except Exception as error:
            raise RequestError(
                "this session has no Spark context: a directory cannot be put in its place",
                remedy="Use a session that is not one of Spark Connect, or write the DataFrames of exhume.spark.reconstruct yourself",
            ) from error

    def _exists(self, path: str) -> bool:
        return bool(self._file_system(path).exists(self._hadoop_path(path)))

    def _rename(self, source: str, target: str) -> None:
        if not self._file_system(source).rename(self._hadoop_path(source), self._hadoop_path(target)):
            raise RequestError(f"{source} cannot be renamed to {target}", remedy="Check the files there, and the write permissions")

    def _delete(self, path: str) -> None:
        self._file_system(path).delete(self._hadoop_path(path), True)


def _before(name: str) -> str:
    return f"{name}.before"
