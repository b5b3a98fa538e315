"""A Spark session for a command, or an error that names the missing part."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from exhume.errors import RequestError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
        # Python workers on this machine use the interpreter of this process.
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


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java") is not None or (home is not None and os.access(Path(home, "bin", "java"), os.X_OK))
