"""The time limit for other processes, and a measure of their work."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

#: The time limit for a process that hangs. On a busy machine a process may take minutes instead of seconds.
PATIENCE_SECONDS = 900


def cpu_seconds(process_id: int) -> float:
    """Return the processor time that a process has used. It does not grow with the load of the machine."""
    stat = Path(f"/proc/{process_id}/stat")
    if stat.exists():
        # The name of the program may have spaces. After it, user time and system time are the 12th and the 13th field.
        user, system = stat.read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    # macOS has no /proc.
    shown = subprocess.run(["ps", "-o", "time=", "-p", str(process_id)], capture_output=True, text=True, check=True).stdout
    seconds = 0.0
    for part in shown.replace("-", ":").split(":"):
        seconds = 60 * seconds + float(part)
    return seconds
