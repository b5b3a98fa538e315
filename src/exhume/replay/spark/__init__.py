"""Loading and reading on Apache Spark: the only folder that imports PySpark."""
