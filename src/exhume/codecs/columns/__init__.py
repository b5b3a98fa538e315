"""Logs into Arrow column by column, by kernels: the tables of `records_table` and `decoded_tables` for all that is in good order.

    runs       batches of a segment that nobody has anything to say about, as rows of header fields; the rest batch by batch
    sections   where the records of batches lie: in their segment, or unfolded and side by side
    pieces     their records as columns of numbers and places; batches with something odd in them are passed on to the plain reading
    selection  the records of a piece that a filter means
    …_columns  batches and records as Arrow
    tables     all of that for every segment; side_by_side: on threads, in the order of the log
    typed      commits and classic groups decoded
    json_texts objects of JSON, written by a kernel
    dumped     the dump of commits and of classic groups; dumped_groups: the values of the latter

What comes out is what the plain reading gives, row by row and finding by finding.
"""
