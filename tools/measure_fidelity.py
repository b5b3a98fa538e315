"""Writes the figures of docs/fidelity.md anew, from a comparison of every log with every answer of a broker about it.

    python tools/measure_fidelity.py
    EXHUME_CORPUS=/path python tools/measure_fidelity.py

The first measures the logs that come with the tests (half a minute), the second the whole corpus too. Ends with 1 where anything differs.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.judges import corpus, fidelity  # noqa: E402

PAGE = ROOT / "docs" / "fidelity.md"


def main() -> int:
    """Measure, and write the page."""
    roots = {"bundled": corpus.BUNDLED} | ({"corpus": corpus.WHOLE} if corpus.WHOLE else {})
    differences = []
    for name, root in roots.items():
        text = fidelity.with_block(PAGE.read_text(encoding="utf-8"), name, fidelity.block(root))
        PAGE.write_text(text, encoding="utf-8")
        measured = [*fidelity.measured_loads(root), *fidelity.measured_expiry(root)]
        differences += [difference for each in measured for difference in each.comparison.differences]
    for difference in differences:
        sys.stderr.write(f"{difference}\n")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
