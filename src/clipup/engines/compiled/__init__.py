"""The compiled engine: whole episodes in machine code, one simulator for each thread."""

NAME = "compiled"
