"""Loading and reading on Apache Spark: the only room that knows PySpark."""
