"""The kernels of a fold: loops over records and keys, compiled when exhume is installed.

batches         the fold of a run of batches
scanning        scan and fold in one call, as far as it gets
checks          the checks of a batch, and the places of its records
names, keys     byte strings and keys, found by their hash; numbering: their numbers
groups          classic groups; group_values: their values
transactions    commits that wait for a marker
for_loader      records that the fold passes on to the loader
chosen_groups   the same for a few groups: batches of other groups are checked, and leave no row
merging         two folds as one
gathering       columns of a table from a fold
"""
