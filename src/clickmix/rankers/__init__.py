"""Rankers: features and labels in, a Ranker that scores documents out."""
