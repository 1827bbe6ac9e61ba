"""The paper, reproduced: its experiments, its published values, and what ours come to beside them."""
