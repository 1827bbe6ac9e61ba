"""Training: the generation loop, and what starts, stops and resumes it."""
