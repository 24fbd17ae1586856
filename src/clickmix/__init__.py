"""clickmix."""
