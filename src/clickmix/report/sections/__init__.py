"""The sections of the report on a log, one file each."""
