"""Load a log in columns: a compiled fold finds the records that a load still depends on; docs/performance.md explains how.

    tables, names    the memory of a fold: keys with their last commits, groups, open transactions; byte strings by their hash
    rules            the settings of a fold, and the reasons for its end
    fold             the fold of a run of batches, compiled
      batch_checks, splitting, numbering, groups, group_values, transactions, passing     its parts
    chosen_groups    the same for a few groups: batches of other groups are checked, and leave no row
    stretches        a log cut for threads, between batches
    fold_ranges      the fold of a range of a segment: in one call (ahead), or block by block where batches must be decompressed first
    run              the fold of a log: on one thread, or stretches side by side
    tries            the fold of a partition: first assume that only the end of its log is damaged, then step over damaged batches
    served           the log that a broker serves of the partition
    careful_batches  the batches that kernels do not take, read by the plain Python reader
    joining          the folds of two stretches as one
    clock_order      the order of a log by its clock; commit_times: the times inside commits
    gathering        columns out of tables, compiled
    outlines         the fields before the members of a group
    settled          the result of a fold, for the loaders
    offset_columns   committed offsets as a table

Only the loaders know the behaviour of a release. A fold settles the records that all loaders treat alike, and passes the other records on.
It stops at each batch that a load refuses, whose checksum fails, or that needs a finding. Without a reader for such batches it gives up.
"""
