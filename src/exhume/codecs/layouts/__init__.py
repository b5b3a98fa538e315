"""The layouts of keys and values, a module for each family of records. `record_types` joins them into the one table."""
