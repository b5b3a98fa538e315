"""A load in columns: which records of a log a load still hangs on, found by a compiled fold; docs/performance.md says how.

    tables           what a fold remembers: keys and their last commits, groups, open transactions
    names            byte strings by their hash
    group_values     which classic group records need no second look
    fold             the fold of a run of batches, compiled
    joining          the folds of two stretches as one
    run              the fold of a log: block by block, unfolding what is compressed; segments side by side
    commit_times     the times inside commits, compiled
    gathering        columns out of tables, compiled
    settled          what it came to, for the loaders
    offset_columns   committed offsets as a table

The loaders remain the only ones that know what a release does: a fold settles what they all do alike, passes on the rest, and gives up
where a log has anything that a load, a checksum or a reader of findings would object to.
"""
