"""Elementary functions for tasks, with the same bits on every processor.

Import them by name (``from clipup.engines.compiled.math import sin``), and they are compiled with the task. Python's
own `math` works too, with the bits of the machine's C library.
"""

from clipup.compilation.math import cos, exp, sin, tanh

__all__ = ["cos", "exp", "sin", "tanh"]
