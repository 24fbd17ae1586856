"""Judging: how far to trust the labels of a log.   fit -> verdict"""
