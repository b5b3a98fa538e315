"""Every table of a topic in an embedded DuckDB.

database     `SqlDatabase`: a connection whose views read the evidence; statements in, Arrow out
views        the views: a name, a schema, and the method of the topic that reads it
questions    the tables that need arguments: `state('4.3', at_time => …)`, `history('billing')`
scans        a view as a data set of Arrow: each scan is one pass over the evidence
pushdown     the conditions of a scan as a `RecordFilter`
"""

from exhume.topic.sql.database import SqlDatabase

__all__ = ["SqlDatabase"]
