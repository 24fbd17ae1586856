"""Kinds of mixtures: how click rates of a grade scatter, and how to fit groups. One file each."""
