"""Who removed an offset or a group: one judgement, which `why`, `explain` and `diagnose` all give.

A tombstone does not say who wrote it. What was due at that moment, and what else was removed with it, tells the expiry task from a request
and from the deletion of a topic.

    causes      the causes that there are, and the thresholds that tell them apart
    evidence    what the log has to say about tombstones of a group that were written together
    judge       the cause of each of these
"""
