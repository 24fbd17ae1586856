"""Mixtures: documents of each grade are clicked at a rate of their own.   groups -> mixtures -> labels"""
