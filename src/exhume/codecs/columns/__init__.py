"""Read logs into Arrow column by column, with kernels: the tables of `records_table` and `decoded_tables`.

    runs       sound batches of a segment that follow one another, as rows of header fields; all other batches one by one
    sections   the records of batches in memory: in their segment, or unfolded and side by side
    pieces     records as columns of numbers and places; a batch that kernels cannot read is passed on to Python code
    selection  the records of a piece that a filter accepts
    …_columns  batches and records as Arrow
    tables     these tables for every segment; side_by_side: on threads, in the order of the log
    typed      commits and classic groups decoded
    json_texts JSON objects, written by a kernel
    dumped     the dump of commits and of classic groups; dumped_groups: the values of classic groups

The result is the same as without kernels: every row and every finding.
"""
