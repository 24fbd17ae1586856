"""Comparing: every correction that a log allows, side by side.   log, judgments -> Comparison -> rows, page"""
