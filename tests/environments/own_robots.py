"""Tasks of one's own, to be found by name. The file imports its neighbour, as a script can."""

from compiled_slider import random_walk, slider  # pyright: ignore[reportMissingImports]

Slider = slider()
Walk = random_walk()
