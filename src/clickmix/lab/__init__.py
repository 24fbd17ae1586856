"""Lab: what research needs and production does not: users, collections, regressions, experiments, the demo."""
