"""The one act in an arithmetic that every processor shares: the same bits compiled, in numpy, for one row or for many.

BLAS sums in an order that depends on the processor, so its results differ in the last bits between machines. Here each
output is a sum in the order of its inputs, in float32, without fused operations::

    output[j] = bias[j] + x[0] w[j, 0] + x[1] w[j, 1] + …        (one rounding after each × and after each +)

The loop runs over inputs outside and outputs inside, which a compiler can do for several outputs at once without another
order of any sum. For that the weights of each layer lie transposed (`arrange`), as many numbers in the same place.

Four forms give the same bits:

- `arrange_one`, `normalize_one`, `forward_one`, `bound_one`, `observe_one`: one candidate, for machine code (`clipup.engines.compiled`);
- `Forward` with Numba: rows of candidates, for engines that step many environments at once;
- `Forward` without Numba: the same in numpy alone;
- all of them on one row, for a trained policy.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clipup.compilation import machine_code
from clipup.compilation.math import tanh
from clipup.compilation.memory import float32_table, float64_table, float64_vector, int64_vector
from clipup.errors import InvalidArgument
from clipup.policies.network import Network
from clipup.policies.normalizer import Statistics

FloatRows = NDArray[np.float32]

# Below so many rows numpy multiplies all weights at once, above them one input at a time: whichever is quicker.
_FEW_ROWS = 16


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
        if value < bounds[0, j]:
            value = bounds[0, j]
        if value > bounds[1, j]:
            value = bounds[1, j]
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
    mean += delta / count
    delta *= np.subtract(observations, mean, dtype=np.float64)
    m2 += delta


def layer_sizes(network: Network) -> NDArray[np.int64]:
    """Return the numbers of values from the observation to the outputs."""
    return np.array([network.observation_size, *network.hidden, network.action_size], np.int64)


def arrange(network: Network, parameters: FloatRows) -> FloatRows:
    """Return rows of parameters with the weights of each layer transposed."""
    arranged = np.array(parameters, order="C")
    rows = len(parameters)
    for layer in network.layers:
        matrix = parameters[:, layer.weights].reshape(rows, layer.outputs, layer.inputs)
        arranged[:, layer.weights] = matrix.transpose(0, 2, 1).reshape(rows, -1)
    return arranged


class Forward:
    """A network on rows of observations, each row with its own parameters.

    Parameters
    ----------
    network
        The network.
    statistics
        What observations are normalized by; None leaves them as they are.
    compiled
        Whether to use machine code. None: if Numba is installed. The results are equal.

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
        self._layers = network.layers
        self._sizes = layer_sizes(network)
        size = network.observation_size
        self._mean = np.zeros(size) if statistics is None else np.ascontiguousarray(statistics.mean)
        self._scale = np.ones(size) if statistics is None else np.ascontiguousarray(statistics.scale)
        self._values = np.zeros((len(self._sizes), int(self._sizes.max())), np.float32)
        if compiled is None:
            compiled = machine_code.is_installed() and not machine_code.is_disabled()
        self._call: Any = _batch_code() if compiled else None

    def arrange(self, parameters: FloatRows) -> FloatRows:
        """Return rows of parameters as this object takes them."""
        return arrange(self.network, parameters)

    def __call__(self, arranged: FloatRows, observations: NDArray[Any]) -> FloatRows:
        """Return the outputs (n, action_size) of row i's arranged parameters on row i's observation."""
        if arranged.shape != (len(observations), self.network.parameter_count):
            raise InvalidArgument(
                f"arranged parameters must have shape {(len(observations), self.network.parameter_count)}, "
                f"got {arranged.shape}"
            )
        return self._numpy(arranged, observations) if self._call is None else self._machine(arranged, observations)

    def _machine(self, arranged: FloatRows, observations: NDArray[Any]) -> FloatRows:
        rows = np.ascontiguousarray(observations, np.float64)
        # One row of parameters may stand for all rows of observations (a trained policy): its stride is zero.
        stride = arranged.strides[0] if len(arranged) > 1 else 0
        if arranged.strides[1] != 4 or stride % 4:
            arranged = np.ascontiguousarray(arranged)
            stride = arranged.strides[0]
        outputs = np.empty((len(rows), self.network.action_size), np.float32)
        words = (
            len(rows), arranged.ctypes.data, arranged.shape[1], stride, rows.ctypes.data, rows.shape[1],
            self._mean.ctypes.data, self._scale.ctypes.data, self._sizes.ctypes.data, len(self._sizes),
            int(self.network.bias), int(self.network.activation == "relu"), self._values.ctypes.data,
            self._values.shape[1], outputs.ctypes.data, outputs.shape[1],
        )  # fmt: skip
        self._call((ctypes.c_int64 * len(words))(*words))
        return outputs

    @np.errstate(over="ignore", invalid="ignore")
    def _numpy(self, arranged: FloatRows, observations: NDArray[Any]) -> FloatRows:
        rows = len(observations)
        values = ((np.asarray(observations, np.float64) - self._mean) * self._scale).astype(np.float32)
        for number, layer in enumerate(self._layers):
            weights = arranged[:, layer.weights].reshape(rows, layer.inputs, layer.outputs)
            first = np.zeros((rows, layer.outputs), np.float32) if layer.bias is None else arranged[:, layer.bias]
            if rows <= _FEW_ROWS:
                # `accumulate` adds one after the other by definition; `sum` may take another order.
                terms = np.concatenate([first[:, np.newaxis], values[:, :, np.newaxis] * weights], axis=1)
                values = np.add.accumulate(terms, axis=1)[:, -1]
            else:
                total = first.copy()
                for i in range(layer.inputs):
                    total += values[:, i : i + 1] * weights[:, i]
                values = total
            if number < len(self._layers) - 1:
                if self.network.activation == "relu":
                    values = np.where(values <= 0.0, np.float32(0.0), values)
                else:
                    values = tanh(values.astype(np.float64)).astype(np.float32)
        return np.ascontiguousarray(values)


def _batch(words: Any) -> None:
    """Run rows in machine code: `words` holds sizes and addresses, in the order of `Forward._machine`."""
    job = int64_vector(words, 16)
    count, width = job[0], job[2]
    mean, scale = float64_vector(job[6], job[5]), float64_vector(job[7], job[5])
    sizes = int64_vector(job[8], job[9])
    values = float32_table(job[12], job[9], job[13])
    observations = float64_table(job[4], count, job[5])
    outputs = float32_table(job[14], count, job[15])
    last = job[9] - 1
    for r in range(count):
        arranged = float32_table(job[1] + r * job[3], 1, width)[0]
        normalize_one(observations[r], mean, scale, values[0])
        forward_one(arranged, sizes, job[10] != 0, job[11] != 0, values)
        for j in range(job[15]):
            outputs[r, j] = values[last, j]


_BATCH: list[Any] = []


def _batch_code() -> Any:
    """Return the C function of `_batch`, compiled or loaded once."""
    if not _BATCH:
        code = machine_code.load(
            _batch, lambda types: types.void(types.int64), label="the network for rows of candidates"
        )
        _BATCH.extend((ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_int64))(code.address), code))
    return _BATCH[0]
