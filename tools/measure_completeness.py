"""Compares the grades of the past with the truth: of random logs that a cleaner cleaned, with the same logs before.

    python tools/measure_completeness.py            # 420 logs: more than 100,000 pairs of a group and a moment, in some minutes
    python tools/measure_completeness.py 40 1000    # 40 logs, from seed 1000 on

Prints the number of pairs by grade, the share of certain ones, and each pair whose grade is wrong. Ends with 1 if there is one.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.cleaned_logs import Counts, compare_all, write  # noqa: E402


def main(count: int = 420, first_seed: int = 2_000) -> int:
    """Compare so many logs."""
    total = Counts()
    for seed in range(first_seed, first_seed + count):
        with tempfile.TemporaryDirectory() as directory:
            counts = compare_all(write(Path(directory), Random(seed)))  # noqa: S311
        total.add(counts)
        for grade, _, moment, group, then, now in counts.wrong:
            sys.stderr.write(f"seed {seed}, {moment}, group {group}: {grade}, but it had {then}, and not {now}\n")
    answered = sum(number for grade, number in total.pairs.items() if grade != "no answer")
    for grade, number in total.pairs.most_common():
        sys.stdout.write(f"{grade:12} {number:>8} {number / answered:>7.1%}\n")
    sys.stdout.write(f"{'pairs':12} {answered:>8}\n{'wrong':12} {len(total.wrong):>8}\n")
    return 1 if total.wrong else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
