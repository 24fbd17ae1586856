"""Engines: what runs the SQL. DuckDB, embedded in this process, is the default."""
