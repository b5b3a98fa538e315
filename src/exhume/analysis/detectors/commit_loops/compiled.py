"""The loops as kernels."""

from __future__ import annotations

from exhume.analysis.detectors.commit_loops import loops
from exhume.codecs.kernels import kernel

look_up, enter = kernel(loops.look_up), kernel(loops.enter)
update_keys, update_groups, judge, keep = kernel(loops.update_keys), kernel(loops.update_groups), kernel(loops.judge), kernel(loops.keep)
