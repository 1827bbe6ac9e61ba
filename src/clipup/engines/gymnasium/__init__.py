"""The Gymnasium engine: any environment, one candidate after the other."""

NAME = "gymnasium"
