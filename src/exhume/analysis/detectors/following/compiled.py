"""The loops as kernels."""

from __future__ import annotations

from exhume.analysis.detectors.following import loops
from exhume.codecs.kernels import kernel

look_up, enter = kernel(loops.look_up), kernel(loops.enter)
follow, follow_groups, judge, keep = kernel(loops.follow), kernel(loops.follow_groups), kernel(loops.judge), kernel(loops.keep)
