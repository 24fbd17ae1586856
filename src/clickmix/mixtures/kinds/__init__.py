"""Kinds of mixtures: how click rates of a grade scatter, and how groups are fitted. One file each."""
