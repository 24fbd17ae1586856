"""Counts: impressions and clicks per query, document, position and context.   log -> counts -> groups"""
