"""What the classic click models share: clicks of one session that belong together, and the fits of their parameters."""
