"""Log: a click log in any layout -> its sources, and which of their columns means what.   files -> log -> counts"""
