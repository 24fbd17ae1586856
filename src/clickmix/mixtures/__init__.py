"""Mixtures: documents of each grade have their own click rate.   groups -> mixtures -> labels"""
