"""The paper's experiments: run again, and compared with the published values."""
