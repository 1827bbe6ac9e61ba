"""Evaluating policies: episodes with the environment's own reward, and what their scores say."""
