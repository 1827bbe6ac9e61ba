"""Training: configuration, the generation loop, and what a run leaves on disk."""
