"""The `spark-submit` commands of docs/spark.md, on a cluster whose machines have PySpark and no exhume."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.dataset as ds
import pyspark
import pytest

import exhume
from exhume.replay.spark.wide import plain_schema
from tests.judges import corpus
from tests.patience import PATIENCE_SECONDS
from tests.replay.spark import cluster
from tests.replay.spark.cluster import Cluster

_ROOT = Path(__file__).resolve().parents[3]
_PAGE = (_ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
_SECTION = _PAGE.partition("### On a cluster that has only PySpark\n")[2].partition("\n## ")[0]
_BLOCKS = re.findall(r"^```\n(.*?)^```\n", _SECTION, re.DOTALL | re.MULTILINE)
_LOG = corpus.BUNDLED / "4.3.0-transactions" / "data"
#: What a small machine and small jobs want besides.
_DEFAULTS = """
spark.driver.bindAddress         127.0.0.1
spark.driver.host                127.0.0.1
spark.driver.memory              512m
spark.driver.extraJavaOptions    -XX:TieredStopAtLevel=1
spark.executor.memory            512m
spark.executor.extraJavaOptions  -XX:TieredStopAtLevel=1
spark.sql.shuffle.partitions     2
spark.ui.enabled                 false
spark.log.level                  ERROR
"""


def block(words: str) -> str:
    """The only block of commands of the page that has these words."""
    (found,) = (each for each in _BLOCKS if words in each)
    return str(found)


@pytest.fixture(scope="module")
def machines(java17: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster.running(tmp_path_factory.mktemp("cluster"), workers=1) as running:
        yield running


def environment(directory: Path) -> Path:
    """A Python that has what exhume needs, borrowed from the one that runs the tests, and no exhume: gives where packages go."""
    venv.create(directory, symlinks=True)
    packages = next(directory.glob("lib/python*/site-packages"))
    # Links inside what is borrowed, such as that to a source tree, are not followed.
    (packages / "borrowed.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    return packages


def run(commands: str, machines: Cluster, directory: Path, *, python: Path, driver: Path | None = None) -> None:
    """The commands of the page as they stand, but for where the cluster, the log and the output are."""
    (directory / "spark-defaults.conf").write_text(_DEFAULTS)
    home = Path(pyspark.__file__).parent
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "SPARK"))} | {
        "PATH": os.pathsep.join([str(python.parent), str(home / "bin"), os.environ["PATH"]]),
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(driver or python),
        "SPARK_CONF_DIR": str(directory),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    for there, here in {
        "spark://host:7077": machines.url,
        "s3://backups/kafka": str(_LOG),
        "hdfs:///state": str(directory / "state"),
    }.items():
        commands = commands.replace(there, here)
    done = subprocess.run(
        ["bash", "-euc", commands], cwd=directory, env=variables, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr


def assert_written(directory: Path) -> None:
    """The tables that the commands ask for are those of one machine."""
    with exhume.open(_LOG) as topic:
        state = topic.state()
    for name in ("groups", "offsets"):
        expected = state.tables[name].cast(plain_schema(state.tables[name].schema))
        found = ds.dataset(directory / "state" / name, partitioning="hive").to_table().select(expected.schema.names)
        assert Counter(map(repr, found.cast(expected.schema).to_pylist())) == Counter(map(repr, expected.to_pylist()))
        assert found.num_rows


def test_an_environment_travels_as_an_archive(machines: Cluster, tmp_path: Path) -> None:
    """All but how the environment is made, which wants a package index: what is packed here is a small one."""
    packages = environment(tmp_path / "exhume-env")
    shutil.copytree(Path(exhume.__file__).parent, packages / "exhume", ignore=shutil.ignore_patterns("__pycache__"))
    with tarfile.open(tmp_path / "exhume-env.tar.gz", "w:gz", compresslevel=1) as archive:
        archive.add(tmp_path / "exhume-env", ".")

    run(block("submit.py <<") + block("exhume-env.tar.gz#"), machines, tmp_path, python=tmp_path / "exhume-env" / "bin" / "python")

    assert_written(tmp_path)


def test_the_package_travels_as_a_zip(machines: Cluster, tmp_path: Path) -> None:
    environment(tmp_path / "plain")
    python = tmp_path / "plain" / "bin" / "python"
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    assert subprocess.run([python, "-c", "import pyspark, exhume"], env=alone, capture_output=True, text=True, check=False).stderr.endswith(
        "No module named 'exhume'\n"
    )
    packs, _, submits = block("exhume.zip#packages").partition("\n")
    subprocess.run(
        ["bash", "-euc", packs], cwd=tmp_path, env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}, check=True
    )

    run(block("submit.py <<") + submits, machines, tmp_path, python=python, driver=Path(sys.executable))

    assert_written(tmp_path)
