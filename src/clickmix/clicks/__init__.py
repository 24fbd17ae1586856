"""Users with known truth: each model simulates clicks, gives their probabilities, and can be fitted to a log."""
