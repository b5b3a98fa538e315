"""The cause of the removal of an offset or a group: one judgement for `why`, `explain` and `diagnose`.

A tombstone does not name its cause. The offsets that were due then, and the other tombstones of that moment, tell the expiry task from a
request and from the deletion of a topic.

    causes      the causes, and the thresholds that tell them apart
    evidence    the facts that the log gives about tombstones of a group that were written together
    judge       the cause of each of these
    tombstones  the tombstones of offsets of all groups, by time
"""
