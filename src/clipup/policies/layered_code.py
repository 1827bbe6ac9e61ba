"""One step of a layered network for one candidate: the Python that Numba compiles.

`clipup.policies.layered` has the same in numpy for rows of candidates, to the same bits. Parameters, observations, the
memory and the outputs are float32. Everything within a step is float64, with sums in the order of their inputs and no
fused operations. An ONNX graph in float64 then gives the same float32 numbers, for whole episodes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from clipup.policies.activations import TANH, activate_one, sigmoid, tanh

KIND, INPUTS, OUTPUTS, ACTIVATION, NORM, STATE, PLACE = range(7)
"""Columns of a program, which has a row for each layer. For the last layer `NORM` says if there is a residual path.

`PLACE` has nothing to do with the layers: its row i says which number of the observation is input i.
"""
DENSE, RNN, GRU, LSTM, OUTPUT = range(5)
"""Kinds of layers."""
NORM_EPSILON = 1e-5
"""Added to the variance of a layer that is normalized, as is usual."""
WORK_ROWS = 5
"""Rows of working memory: the values of two layers in turns, two sums of gates, and the inputs."""


def add_products(weights: Any, position: int, source: Any, inputs: int, target: Any, outputs: int) -> None:
    """Add to each target its weighted sources, one source after the other; weights lie by source."""
    for i in range(inputs):
        x = np.float64(source[i])
        row = weights[position + i * outputs : position + (i + 1) * outputs]
        for j in range(outputs):
            target[j] += x * np.float64(row[j])


def normalize_layer(parameters: Any, position: int, values: Any, size: int) -> None:
    """Bring values to mean 0 and variance 1, then multiply by one plus the gain and add the bias."""
    mean = 0.0
    for j in range(size):
        mean += values[j]
    mean = mean / size
    variance = 0.0
    for j in range(size):
        difference = values[j] - mean
        variance += difference * difference
    variance = variance / size
    scale = 1.0 / math.sqrt(variance + NORM_EPSILON)
    for j in range(size):
        gain = 1.0 + np.float64(parameters[position + j])
        values[j] = (values[j] - mean) * scale * gain + np.float64(parameters[position + size + j])


def rnn_cell(first: Any, second: Any, activation: int, state: Any, size: int) -> None:
    """Make the next state: ``h = f(W x + b + U h)``."""
    for j in range(size):
        state[j] = np.float32(activate_one(first[j] + second[j], activation))


def gru_cell(first: Any, second: Any, state: Any, size: int) -> None:
    """Make the next state.

    ``r, z = σ(W x + b + U h)``, ``n = tanh(W x + b + r (U h))``, ``h = n + z (h - n)``.
    """
    for j in range(size):
        reset = sigmoid(first[j] + second[j])
        update = sigmoid(first[size + j] + second[size + j])
        new = tanh(first[2 * size + j] + reset * second[2 * size + j])
        state[j] = np.float32(new + update * (np.float64(state[j]) - new))


def lstm_cell(first: Any, second: Any, state: Any, size: int) -> None:
    """Make the next state, which is h and then c.

    ``i, f, o = σ(W x + b + U h)``, ``g = tanh(W x + b + U h)``, ``c = f c + i g``, ``h = o tanh(c)``.
    """
    for j in range(size):
        take = sigmoid(first[j] + second[j])
        keep = sigmoid(first[size + j] + second[size + j])
        new = tanh(first[2 * size + j] + second[2 * size + j])
        give = sigmoid(first[3 * size + j] + second[3 * size + j])
        cell = keep * np.float64(state[size + j]) + take * new
        state[size + j] = np.float32(cell)
        state[j] = np.float32(give * tanh(cell))


def step_layered(parameters: Any, program: Any, state: Any, observation: Any, work: Any, outputs: Any) -> None:
    """Run the network on an observation, which changes the state.

    `parameters` are arranged: the matrices transposed, with a row for each input. `work` has `WORK_ROWS` rows.
    """
    position = layer = 0
    first, second, seen = work[2], work[3], work[4]
    for i in range(program[0, INPUTS]):
        seen[i] = np.float64(observation[program[i, PLACE]])
    source = seen
    while program[layer, KIND] != OUTPUT:
        kind, inputs, size = program[layer, KIND], program[layer, INPUTS], program[layer, OUTPUTS]
        activation, target = program[layer, ACTIVATION], work[(layer + 1) % 2]
        gates = 3 * size if kind == GRU else 4 * size if kind == LSTM else size
        recurrent = position + inputs * gates
        bias = recurrent if kind == DENSE else recurrent + size * gates
        for j in range(gates):
            first[j] = np.float64(parameters[bias + j])
        add_products(parameters, position, source, inputs, first, gates)
        position = bias + gates
        if kind == DENSE:
            for j in range(size):
                target[j] = first[j]
        else:
            memory = state[program[layer, STATE] : program[layer, STATE] + 2 * size]
            for j in range(gates):
                second[j] = 0.0
            add_products(parameters, recurrent, memory, size, second, gates)
            if kind == RNN:
                rnn_cell(first, second, activation, memory, size)
            elif kind == GRU:
                gru_cell(first, second, memory, size)
            else:
                lstm_cell(first, second, memory, size)
            for j in range(size):
                target[j] = np.float64(memory[j])
        if program[layer, NORM] != 0:
            normalize_layer(parameters, position, target, size)
            position += 2 * size
        if kind == DENSE:
            if activation == TANH:
                for j in range(size):
                    target[j] = tanh(target[j])
            else:
                for j in range(size):
                    target[j] = activate_one(target[j], activation)
        source = target
        layer += 1
    inputs, size = program[layer, INPUTS], program[layer, OUTPUTS]
    bias = position + inputs * size
    for j in range(size):
        first[j] = np.float64(parameters[bias + j])
    add_products(parameters, position, source, inputs, first, size)
    if program[layer, NORM] != 0:
        add_products(parameters, bias + size, seen, program[0, INPUTS], first, size)
    for j in range(size):
        outputs[j] = np.float32(activate_one(first[j], program[layer, ACTIVATION]))
