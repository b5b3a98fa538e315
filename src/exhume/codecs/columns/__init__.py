"""Read logs into Arrow column by column: blocks of batches and of records, and the tables made of them.

blocks           the batches of a segment as columns; kernels scan sound ones, the careful reader finds all others
careful_batches  batches and records of the careful reader, as the same columns
sections         the records of batches in memory: in their segment, or unfolded and side by side
record_blocks    records as columns of numbers and places
selection        the records of a record block that a filter accepts
…_columns        batches and records as Arrow
typed            commits and classic groups decoded
json_texts       JSON objects, written by a kernel
dumped           the dump of commits and of classic groups; dumped_groups: the values of classic groups
tables           these tables for every segment; side_by_side: on threads, in the order of the log
following        one other thread that takes tables in order, while the next ones are made
"""
