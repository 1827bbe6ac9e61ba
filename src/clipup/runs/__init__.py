"""A run as such: its settings, and what it leaves on disk. Nothing here trains."""
