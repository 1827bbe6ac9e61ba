"""The one act in an arithmetic that every processor shares: the same bits compiled, in numpy, for one row or for many.

BLAS sums in an order that depends on the processor, so its results differ in the last bits between machines. Here each
output is a sum in the order of its inputs, in float32, without fused operations::

    output[j] = bias[j] + x[0] w[j, 0] + x[1] w[j, 1] + …        (one rounding after each × and after each +)

The loop runs over inputs outside and outputs inside, which a compiler can do for several outputs at once without
another order of any sum. For that the weights of each layer lie transposed (`arrange`), in the place of the others.

Four forms give the same bits:

- `arrange_one`, `normalize_one`, `forward_one`, `bound_one`, `observe_one`: one candidate, in machine code;
- `Forward` with Numba: rows of candidates, for engines that step many environments at once;
- `Forward` without Numba: the same in numpy alone;
- all of them on one row, for a trained policy.
"""

from __future__ import annotations

import ctypes
import math
import threading
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clipup.compilation import machine_code
from clipup.compilation.math import tanh
from clipup.compilation.structures import array_structure, array_words, viewer
from clipup.errors import InvalidArgument
from clipup.policies.feedforward import Network
from clipup.policies.normalizer import Statistics

FloatRows = NDArray[np.float32]

WORTH_LOADING = 1e8
"""Machine code is loaded after so much work in numpy (multiplications; `CALL_WORK` more for each call).

By then numpy has cost some 0.2 s more than machine code would have. Loading Numba costs as much, so whatever a process
goes on to do, it loses at most twice what the better choice would have cost."""
CALL_WORK = 5000.0
_work_done: dict[object, float] = {}


def worth_loading(code: object, work: float) -> bool:
    """Return whether machine code pays, after `work` more in numpy. All that act in this process count together."""
    done = _work_done[code] = _work_done.get(code, 0.0) + work
    return done > WORTH_LOADING


def arrange_one(parameters: Any, sizes: Any, bias: bool, arranged: Any) -> None:
    """Copy one candidate's parameters with the weights of each layer transposed: a row for each input."""
    position = 0
    for layer in range(sizes.size - 1):
        inputs, outputs = sizes[layer], sizes[layer + 1]
        for j in range(outputs):
            for i in range(inputs):
                arranged[position + i * outputs + j] = parameters[position + j * inputs + i]
        position += inputs * outputs
        if bias:
            for j in range(outputs):
                arranged[position + j] = parameters[position + j]
            position += outputs


def normalize_one(observation: Any, mean: Any, scale: Any, inputs: Any) -> bool:
    """Write the normalized observation to `inputs` in float32; return whether the observation is finite."""
    finite = True
    for i in range(observation.size):
        value = observation[i]
        finite = finite and np.isfinite(value)
        inputs[i] = np.float32((value - mean[i]) * scale[i])
    return finite


def forward_one(arranged: Any, sizes: Any, bias: bool, relu: bool, values: Any) -> bool:
    """Run the network on ``values[0]``; return whether no output is NaN.

    `values` has a row for each layer's numbers, as long as the widest. The outputs are in its row ``sizes.size - 1``.
    """
    position = 0
    layers = sizes.size - 1
    for layer in range(layers):
        inputs, outputs = sizes[layer], sizes[layer + 1]
        source, target = values[layer], values[layer + 1]
        start = position + inputs * outputs
        for j in range(outputs):
            target[j] = arranged[start + j] if bias else np.float32(0.0)
        for i in range(inputs):
            x = source[i]
            row = arranged[position + i * outputs : position + (i + 1) * outputs]
            for j in range(outputs):
                target[j] += x * row[j]
        position = start + outputs if bias else start
        if layer < layers - 1:
            for j in range(outputs):
                value = target[j]
                if relu:
                    target[j] = np.float32(0.0) if value <= 0.0 else value
                else:
                    target[j] = np.float32(tanh(np.float64(value)))
    good = True
    for j in range(sizes[layers]):
        good = good and not np.isnan(values[layers, j])
    return good


def bound_one(outputs: Any, bounds: Any, rescale: bool, action: Any) -> None:
    """Write the action of a box: clipped to its bounds, or clipped to [-1, 1] and stretched over them.

    The rows of `bounds` are the low ends, the high ends, the middles and half the widths, in float32.
    """
    for j in range(action.size):
        value = outputs[j]
        if rescale:
            value = min(max(value, np.float32(-1.0)), np.float32(1.0))
            value = value * bounds[3, j]
            value = value + bounds[2, j]
        value = max(value, bounds[0, j])
        value = min(value, bounds[1, j])
        action[j] = value


def choose_one(outputs: Any, choices: int) -> int:
    """Return the index of the largest output, the first of several equal ones."""
    best = 0
    for j in range(1, choices):
        if outputs[j] > outputs[best]:
            best = j
    return best


def observe_one(observation: Any, count: float, mean: Any, m2: Any) -> None:
    """Take one observation into a candidate's moments (Welford 1962); `count` includes it."""
    for i in range(observation.size):
        delta = observation[i] - mean[i]
        mean[i] += delta / count
        m2[i] += delta * (observation[i] - mean[i])


def observe_rows(
    observations: NDArray[Any], count: NDArray[np.float64], mean: NDArray[np.float64], m2: NDArray[np.float64]
) -> None:
    """Take one observation a row into the moments of as many candidates; `count` is (n, 1) and includes it."""
    delta = np.subtract(observations, mean, dtype=np.float64)
    change = delta / count
    mean += change
    np.subtract(observations, mean, out=change)
    change *= delta
    m2 += change


def layer_sizes(network: Network) -> NDArray[np.int64]:
    """Return the numbers of values from the observation to the outputs."""
    return np.array([network.observation_size, *network.hidden, network.action_size], np.int64)


class Forward:
    """A network on rows of observations, each row with its own parameters.

    Parameters
    ----------
    network
        The network.
    statistics
        What observations are normalized by; None leaves them as they are.
    compiled
        Whether to use machine code. None: once it is worth loading, if Numba is installed. The results are equal.

    Examples
    --------
    >>> network = Network(2, 1)
    >>> forward = Forward(network, None, compiled=False)
    >>> weights = forward.arrange(np.array([[1.0, 2.0, 0.5]], np.float32))
    >>> forward(weights, np.array([[3.0, 4.0]])).tolist()
    [[11.5]]
    """

    def __init__(self, network: Network, statistics: Statistics | None, *, compiled: bool | None = None) -> None:
        self.network = network
        self._sizes = layer_sizes(network)
        size = network.observation_size
        self._mean = np.zeros(size) if statistics is None else np.ascontiguousarray(statistics.mean)
        self._scale = np.ones(size) if statistics is None else np.ascontiguousarray(statistics.scale)
        if compiled is None and (machine_code.is_disabled() or not machine_code.is_installed()):
            compiled = False
        self._compiled = compiled
        self._count, self._outputs = network.parameter_count, network.action_size  # asked for in every step
        self._call: Any = None
        self._lock = threading.Lock()

    def arrange(self, parameters: FloatRows) -> FloatRows:
        """Return rows of parameters as this object takes them."""
        return self.network.arrange(parameters)

    def __call__(self, arranged: FloatRows, observations: NDArray[Any]) -> FloatRows:
        """Return the outputs (n, action_size) of row i's arranged parameters, or of the only row, on observation i."""
        return self.checked(arranged, observations)[0]

    def checked(self, arranged: FloatRows, observations: NDArray[Any]) -> tuple[FloatRows, bool]:
        """Return the outputs, and whether none of them is NaN."""
        count = self._count
        if arranged.shape != (len(observations), count) and arranged.shape != (1, count):
            raise InvalidArgument(
                f"arranged parameters must have shape {(len(observations), count)} or one row, got {arranged.shape}"
            )
        if self._call is None:
            use = self._compiled
            if use is None:
                use = worth_loading(Forward, CALL_WORK + len(observations) * count)
            if not use:
                outputs = self._numpy(arranged, observations)
                return outputs, without_nan(outputs)
            self._load()
        return self._machine(arranged, observations)

    def _load(self) -> None:
        network = self.network
        flags = np.array([network.bias, network.activation == "relu"], np.int64)
        values = np.zeros((len(self._sizes), int(self._sizes.max())), np.float32)
        self._kept = (self._mean, self._scale, self._sizes, flags, values)
        rows = (np.zeros((1, network.parameter_count), np.float32), np.zeros((1, network.observation_size)))
        outputs = np.zeros((1, network.action_size), np.float32)
        self._words = array_words(_BATCH, (*rows, outputs, *self._kept))
        self._words_address = self._words.ctypes.data
        self._call = _batch_code()

    def _machine(self, arranged: FloatRows, observations: NDArray[Any]) -> tuple[FloatRows, bool]:
        rows = np.ascontiguousarray(observations, np.float64)
        outputs = np.empty((len(rows), self._outputs), np.float32)
        words, arranged = self._words, np.ascontiguousarray(arranged)
        with self._lock:  # the words and the working memory behind them serve one call at a time
            # The rest of the words stays as it was made; to make all of them anew would take most of the time.
            words[0], words[1] = _address(arranged), len(arranged)
            words[3], words[4] = _address(rows), len(rows)
            words[6], words[7] = _address(outputs), len(outputs)
            good = self._call(self._words_address)
        return outputs, good != 0

    @np.errstate(over="ignore", invalid="ignore")
    def _numpy(self, arranged: FloatRows, observations: NDArray[Any]) -> FloatRows:
        values = (np.asarray(observations, np.float64) - self._mean) * self._scale
        return self.network.forward_arranged(arranged, values.astype(np.float32))


def without_nan(outputs: FloatRows) -> bool:
    """Return whether no number is NaN, which numpy takes for larger than any number."""
    return not math.isnan(np.maximum.reduce(outputs, axis=None, initial=0.0))


def _address(array: NDArray[Any]) -> int:
    return array.__array_interface__["data"][0]  # three times as quick as `array.ctypes.data`


_BATCH = {
    "arranged": ("float32", 2), "observations": ("float64", 2), "outputs": ("float32", 2), "mean": ("float64", 1),
    "scale": ("float64", 1), "sizes": ("int64", 1), "flags": ("int64", 1), "values": ("float32", 2),
}  # fmt: skip
"""What machine code for rows of candidates works with; the flags say whether there are biases, and whether ReLU."""


@cache
def _batch_code() -> Any:
    """Return machine code that runs a network on rows, compiled or loaded once; it takes the address of words."""
    structure = array_structure("Batch", _BATCH)
    batch_at = viewer(structure)

    def run(words: int) -> int:
        good = True
        batch = batch_at(words, 0)
        arranged, outputs, values, flags = batch.arranged, batch.outputs, batch.values, batch.flags
        last = batch.sizes.size - 1
        for r in range(outputs.shape[0]):
            normalize_one(batch.observations[r], batch.mean, batch.scale, values[0])
            # One row of parameters may stand for all rows of observations.
            row = r if arranged.shape[0] > 1 else 0
            good = forward_one(arranged[row], batch.sizes, flags[0] != 0, flags[1] != 0, values) and good
            for j in range(outputs.shape[1]):
                outputs[r, j] = values[last, j]
        return 1 if good else 0

    machine_code.require()
    code = machine_code.load(
        run, lambda types: types.int64(types.int64), label="networks for rows of candidates", facts=(structure,)
    )
    _kept.append(code)
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address)


_kept: list[machine_code.MachineCode] = []
