"""Held out: what a log itself says about labels, whatever model made them.   counts, correction -> evidence"""
