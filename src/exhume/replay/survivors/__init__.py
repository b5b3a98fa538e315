"""A load in columns: which records of a log a load still hangs on, found by a compiled fold; docs/performance.md says how.

    tables, names    what a fold remembers: keys and their last commits, groups, open transactions; byte strings by their hash
    rules            what a fold goes by, and what it says at its end
    fold             the fold of a run of batches, compiled
      batch_checks, splitting, numbering, groups, group_values, transactions, passing     its parts
    asked            the same for a few groups: what is of others is checked, and leaves no row
    stretches        a log cut for threads, between batches
    fold_pieces      the fold of a piece of a segment: in one go (ahead), or block by block what has to be unfolded first
    run              the fold of a log: in turn, or stretches side by side
    tries            a partition: first as if only the end of its log were damaged, then past whatever is odd
    served           the log that a broker serves of it
    odd_places       what a load makes of the batch at which a fold stopped
    joining          the folds of two stretches as one
    clock_order      how a log is ordered by its clock; commit_times: the times inside commits
    gathering        columns out of tables, compiled
    outlines         what lies in front of the members of a group
    settled          what it came to, for the loaders
    offset_columns   committed offsets as a table

The loaders remain the only ones that know what a release does: a fold settles what they all do alike, passes on the rest, and stops
where a log has anything that a load, a checksum or a reader of findings would object to. What it is not told how to get past, it gives up.
"""
