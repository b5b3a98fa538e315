"""A group in plain sentences: its kind, state, members, rebalances, commits, notable changes, missing records, and commands to run next.

    facts           the facts that the log gives about the group up to a moment, gathered for one offsets partition
    kind_and_state  its kind, its first record and its state
    members         its members and their partitions
    rebalances      its rebalances
    commits         its commits, and those that wait for a transaction
    notable         rewinds and findings
    missing         records and offsets that are gone, and those that expire next
    page            all of these in order, as a table

Each section is a function from facts to sentences. A sentence states what records prove, and names their offsets. A sentence without proof
has a confidence, and names other possible causes in `not_excluded`. A section without facts has no sentence.
"""
