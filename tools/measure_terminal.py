"""Measure the lines that each command prints in a pipe and at several widths of a terminal, and keep pictures of five commands.

    python tools/measure_terminal.py            # the table of lines, as Markdown
    python tools/measure_terminal.py --pictures # also docs/screens/*.txt: what tmux shows at 80 and 120 columns

The log is the one that comes with exhume. A picture is the text of a real terminal (tmux), so that it also shows how lines wrap there.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEMO_LOG = ROOT / "src" / "exhume" / "cli" / "demo_log"
SCREENS = ROOT / "docs" / "screens"
WIDTHS = (80, 120, 160)
_GROUP = ("--group", "fraud-scoring")
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("inspect", "demo_log"),
    ("state", "demo_log"),
    ("state", "demo_log", *_GROUP),
    ("dump", "demo_log", "--limit", "0"),
    ("load-check", "demo_log"),
    ("releases",),
    ("diff", "demo_log", "--from-time", "2026-11-21T03:13:45Z", "--limit", "0"),
    ("history", "demo_log", *_GROUP),
    ("rebalances", "demo_log"),
    ("owners", "demo_log", "--topic", "orders"),
    ("expiry", "demo_log"),
    ("growth", "demo_log"),
    ("diagnose", "demo_log", "--min-severity", "info", "--all"),
    ("why", "demo_log", *_GROUP),
    ("explain", "demo_log", *_GROUP),
    ("timeline", "demo_log", *_GROUP),
)
PICTURES: tuple[tuple[str, ...], ...] = (
    ("triage", "demo_log"),
    ("state", "demo_log", *_GROUP),
    ("history", "demo_log", *_GROUP),
    ("diagnose", "demo_log", "--min-severity", "info"),
    ("timeline", "demo_log", *_GROUP),
)
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")


def main() -> None:
    """Print the table; with --pictures write the pictures too."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        (place / "demo_log").symlink_to(DEMO_LOG)
        if "--pictures" in sys.argv[1:]:
            SCREENS.mkdir(exist_ok=True)
            for command in PICTURES:
                for width in (80, 120):
                    target = SCREENS / f"{command[0]}-{width}.txt"
                    target.write_text(picture(command, width, place), encoding="utf-8")
        sys.stdout.write(table(place))


def table(place: Path) -> str:
    """The number of lines of each command: in a pipe, and on terminals of these widths, with their ratio at 80 columns."""
    lines = [f"| command | pipe | {' | '.join(map(str, WIDTHS))} | 80 / pipe |", f"| --- | {' | '.join(['---:'] * (len(WIDTHS) + 2))} |"]
    for command in COMMANDS:
        piped = piped_lines(command, place)
        shown = [len(terminal_lines(command, width, place)) for width in WIDTHS]
        name = " ".join(part for part in command if part != "demo_log")
        lines.append(f"| {name} | {piped} | {' | '.join(map(str, shown))} | {shown[0] / max(piped, 1):.1f} |")
    return "\n".join([*lines, ""])


def piped_lines(command: tuple[str, ...], place: Path) -> int:
    """The number of lines of this command in a pipe."""
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")}
    done = subprocess.run(
        [sys.executable, "-m", "exhume", *command], cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    return len(done.stdout.splitlines())


def terminal_lines(command: tuple[str, ...], width: int, place: Path) -> list[str]:
    """The lines that a terminal of this width gets on standard output, those that wrap counted as the terminal shows them."""
    main_end, terminal_end = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(width), "TERM": "xterm-256color"}
    with subprocess.Popen(
        [sys.executable, "-m", "exhume", *command], cwd=place, env=environment, stdout=terminal_end, stderr=subprocess.DEVNULL
    ) as process:
        os.close(terminal_end)
        pieces = []
        while True:
            try:
                piece = os.read(main_end, 65536)
            except OSError:
                # Linux reports the end of a terminal as an error.
                break
            if not piece:
                break
            pieces.append(piece)
        process.wait()
    os.close(main_end)
    text = _ESCAPES.sub("", b"".join(pieces).decode("utf-8", "replace").replace("\r\n", "\n"))
    lines = text.splitlines()
    return [line[start : start + width] for line in lines for start in range(0, max(len(line), 1), width)]


def picture(command: tuple[str, ...], width: int, place: Path) -> str:
    """The screen of a real terminal, tmux, after this command; with a height for all of its lines."""
    if shutil.which("tmux") is None:
        raise SystemExit("pictures need tmux: apt-get install tmux")
    session = f"exhume-{os.getpid()}-{command[0]}-{width}"
    start = ["tmux", "-L", session, "-f", "/dev/null", "new-session", "-d", "-s", session, "-x", str(width), "-y", "400", "sh"]
    environment = {**os.environ, "PS1": "$ ", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment.pop("COLUMNS", None)
    subprocess.run(start, cwd=place, env=environment, check=True)
    try:
        end = f"{session}-is-done"
        line = f"clear; exhume {' '.join(command)}; tmux -L {session} wait-for -S {end}"
        subprocess.run(["tmux", "-L", session, "send-keys", "-t", session, line, "Enter"], check=True)
        subprocess.run(["tmux", "-L", session, "wait-for", end], check=True, timeout=120)
        time.sleep(0.3)
        shown = subprocess.run(
            ["tmux", "-L", session, "capture-pane", "-p", "-t", session], check=True, capture_output=True, text=True
        ).stdout
    finally:
        subprocess.run(["tmux", "-L", session, "kill-server"], check=False)
    lines = [text.rstrip() for text in shown.rstrip().splitlines()]
    while lines and lines[-1].startswith("$"):
        lines.pop()
    return "\n".join([f"$ exhume {' '.join(command)}", *lines, ""])


if __name__ == "__main__":
    main()
