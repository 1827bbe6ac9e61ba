"""Machine code from plain Python functions: compiled by Numba, kept on disk, called by address.

`functions` finds what a function calls and gives it a fingerprint, `machine_code` compiles it and loads it, `cache`
keeps the result on disk, `math` has elementary functions whose bits are equal on every processor.
"""
