"""Fold a log: compiled kernels keep the records that a load still depends on; docs/performance.md explains how.

    kernels          the loops over records, compiled
    tables           the memory of a fold: keys with their last commits, groups, open transactions
    rules            the settings of a fold, and the reasons for its end
    thread_parts     a log cut for threads, between batches; plan: a log cut for executors
    fold_ranges      the fold of a range of a segment: in one call, or block by block where batches must be decompressed first
    run              the fold of a log: on one thread, or its parts side by side
    part_folds       the folds of one part for another process, cut at moments; cuts: the cuts; packing: a fold as bytes
    part_loads       the parts of one log: the load at each moment, from one pass over the folds
    tries            the fold of a partition: first assume that only the end of its log is damaged, then step over damaged batches
    served_log       the log that a broker serves of the partition
    careful_batches  the batches that kernels do not take, read by the plain Python reader
    clock_order      the order of a log by its clock
    outlines         the fields before the members of a group
    settled          the result of a fold, for the loaders
    offset_columns   committed offsets as a table

Only the loaders know the behaviour of a release. A fold settles the records that all loaders treat alike, and passes the other records on.
It stops at each batch that a load refuses, whose checksum fails, or that needs a finding. Without a reader for such batches it gives up.
"""
