"""Fold a log: compiled kernels keep the records that a load still depends on; docs/performance.md explains how.

    plan             the parts of a log, for threads or executors
    part             the fold of one part: every batch by kernels, or by the careful reader; cut at moments
    cuts             the end of a log at a moment in time
    careful_batches  the batches that kernels do not take, read by the plain Python reader
    result           the result of a fold; it can be pickled for another process
    merge            two results as one; the parts of a log up to each moment
    log              the fold of an offsets partition: plan, fold the parts inline, on threads or in executors, merge
    folded_log       a log with its fold, for the loaders
    served_log       the log that a broker serves of the partition
    offset_columns   committed offsets as a table
    tables           the memory of a fold: keys with their last commits, groups, open transactions
    rules            the rules of a fold for its kernels, and the reasons for its end
    kernels          the loops over records, compiled

Only the loaders know the behaviour of a release. A fold settles the records that all loaders treat alike, and passes the other records on.
It stops at each batch that a load refuses, whose checksum fails, or that needs a finding. Without a reader for such batches it gives up.
"""
