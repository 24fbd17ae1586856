"""Who runs the SQL of the log stage: DuckDB, embedded, by default."""
