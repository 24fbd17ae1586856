"""Engines: who runs the SQL of the log stage. DuckDB, embedded, is the default."""
