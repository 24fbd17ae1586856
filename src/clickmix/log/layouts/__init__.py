"""Layouts: the ways a click log can be written, one per file."""
