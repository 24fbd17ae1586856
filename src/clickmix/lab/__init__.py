"""Lab: what only research needs: users, collections, regressions, experiments, the demo."""
