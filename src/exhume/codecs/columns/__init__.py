"""Logs into Arrow column by column, by kernels: the tables of `records_table` and `decoded_tables` for all that is in good order.

    runs       batches of a segment that nobody has anything to say about, as rows of header fields; the rest batch by batch
    pieces     their records as rows of numbers and places; batches with something odd in them are passed on to the plain reading
    …_columns  such rows as Arrow

What comes out is what the plain reading gives, row by row and finding by finding.
"""
