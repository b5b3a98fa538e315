"""A Spark session for a command, and its Python workers; or an error that names the missing part."""

from __future__ import annotations

import os
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from exhume.errors import RequestError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

#: The error of a worker that cannot import a module.
_MISSING = re.compile(r"ModuleNotFoundError: No module named '(\w+)")


def open_session(name: str, master: str | None = None) -> SparkSession:
    """Return the active session, as under `spark-submit`, or a new one with this master.

    Raises:
        RequestError: PySpark or Java is missing, or Spark does not start.
    """
    if find_spec("pyspark") is None:
        raise RequestError("PySpark is not installed", remedy="pip install 'exhume[spark]'")
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not is_submitted and not _has_java():
        raise RequestError("Spark needs Java 17 or later, and no java was found", remedy="Install one, or set JAVA_HOME")
    if not is_submitted:
        # Python workers use the interpreter of this process.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    if not is_submitted:
        builder = (
            builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
        )
    try:
        return builder.getOrCreate()
    except (PySparkException, OSError) as error:
        raise RequestError(f"Spark does not start: {error}", remedy="Spark 4 needs Java 17 or later; docs/spark.md has more") from error


def prepare_workers(spark: SparkSession) -> None:
    """Let Python workers on this machine use the interpreter of this process, if PYSPARK_PYTHON does not name another one.

    It holds for the jobs that begin later.
    """
    try:
        context = spark.sparkContext
    except Exception:  # a session of Spark Connect has no context, and a class of its own for saying so
        return
    master = context.master or ""
    is_local = master.startswith("local") and not master.startswith("local-cluster")
    if is_local and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable


def collect(rows: DataFrame) -> list[Row]:
    """Return these rows, which Python workers make.

    Raises:
        RequestError: the Python of the workers has no exhume, or lacks a package that exhume needs.
    """
    try:
        return rows.collect()
    except Exception as error:  # the classes of errors differ between sessions
        missing = _MISSING.search(str(error))
        if missing is None:
            raise
        raise RequestError(
            f"the Python of the executors has no module {missing[1]}",
            remedy="Set PYSPARK_PYTHON to a Python with exhume before the session starts, or send one with the job: docs/spark.md has more",
        ) from error


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java") is not None or (home is not None and os.access(Path(home, "bin", "java"), os.X_OK))
