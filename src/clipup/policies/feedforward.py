"""A feed-forward network whose parameters differ from row to row: one row, one candidate."""

from __future__ import annotations

import importlib
import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from clipup.compilation.math import tanh
from clipup.errors import InvalidArgument
from clipup.policies.protocol import PolicyNetwork

Activation = Literal["tanh", "relu"]
ACTIVATIONS: tuple[Activation, ...] = ("tanh", "relu")

# Below so many rows numpy multiplies all weights at once, above them one input at a time: whichever is quicker.
_FEW_ROWS = 16


@dataclass(frozen=True)
class Layer:
    """Where the weights and the bias of one layer lie in the flat parameter vector."""

    inputs: int
    outputs: int
    weights: slice
    bias: slice | None


@dataclass(frozen=True)
class Network:
    """A linear policy (no hidden layers) or a multilayer perceptron, evaluated for a population at once.

    The flat parameter vector holds the layers from the input to the output; each layer is its weight matrix with
    one row per output (``outputs × inputs``, row-major) followed, where `bias` is set, by its bias. The activation
    follows every hidden layer; the output is linear (`clipup.policies.Actions` bounds it).

    Parameters
    ----------
    observation_size, action_size
        Length of an observation, and number of outputs.
    hidden
        Sizes of the hidden layers; empty for a linear policy.
    bias
        Whether each layer adds a bias.
    activation
        ``"tanh"`` or ``"relu"``, after each hidden layer.

    Examples
    --------
    >>> Network(8, 2, bias=False).parameter_count
    16
    >>> Network.parse("mlp:64", 44, 17).parameter_count
    3985
    """

    observation_size: int
    action_size: int
    hidden: tuple[int, ...] = ()
    bias: bool = True
    activation: Activation = "tanh"

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))
        for name, size in self._named_sizes():
            if isinstance(cast(object, size), bool) or not isinstance(cast(object, size), int) or size < 1:
                raise InvalidArgument(f"{name} must be an integer of at least 1, got {size!r}")
        if self.activation not in ACTIVATIONS:
            raise InvalidArgument(f"activation must be 'tanh' or 'relu', got {self.activation!r}")

    def _named_sizes(self) -> list[tuple[str, int]]:
        sizes = [("observation_size", self.observation_size), ("action_size", self.action_size)]
        return sizes + [("each of hidden", size) for size in self.hidden]

    @classmethod
    def parse(cls, text: str, observation_size: int, action_size: int) -> Network:
        """Return the network that `text` names: see `describe` for the forms.

        `clipup.policies.parse_policy` knows all forms of policies.
        """
        # By name, at the call: the grammar knows this module.
        grammar = importlib.import_module("clipup.policies.grammar")
        network = grammar.parse_policy(text, observation_size, action_size)
        if not isinstance(network, cls):
            raise InvalidArgument(f"{text!r} is not a plain feed-forward network; use clipup.policies.parse_policy")
        return network

    def describe(self) -> str:
        """Return the short form: ``linear`` (no bias), ``linear-bias``, ``mlp:64,64`` or ``mlp:64,64:relu``.

        A multilayer perceptron without bias, which `parse` has no form for, is marked ``(no bias)``.
        """
        if not self.hidden:
            return "linear-bias" if self.bias else "linear"
        suffix = "" if self.activation == "tanh" else f":{self.activation}"
        return "mlp:" + ",".join(str(size) for size in self.hidden) + suffix + ("" if self.bias else " (no bias)")

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """The layers, from the observation to the action, with their places in the flat vector."""
        sizes = (self.observation_size, *self.hidden, self.action_size)
        layers: list[Layer] = []
        position = 0
        for inputs, outputs in itertools.pairwise(sizes):
            weights = slice(position, position + inputs * outputs)
            position = weights.stop + (outputs if self.bias else 0)
            layers.append(Layer(inputs, outputs, weights, slice(weights.stop, position) if self.bias else None))
        return tuple(layers)

    @property
    def parameter_count(self) -> int:
        """Length of the flat parameter vector."""
        sizes = (self.observation_size, *self.hidden, self.action_size)
        return sum((inputs + self.bias) * outputs for inputs, outputs in itertools.pairwise(sizes))

    def check(self, parameters: NDArray[np.float32]) -> None:
        """Raise `InvalidArgument` unless `parameters` has one row per candidate of this network's length."""
        check_rows(self, parameters)

    state_size = 0  # it remembers nothing

    def initial_center(self, seed: int) -> NDArray[np.float32]:
        """Return the parameters that a search starts from: zeros."""
        return np.zeros(self.parameter_count, np.float32)

    def step(
        self, arranged: NDArray[np.float32], state: NDArray[np.float32], inputs: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Return what `forward_arranged` does; there is no state to change."""
        return self.forward_arranged(arranged, inputs)

    def forward(self, parameters: NDArray[np.float32], inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the outputs (n, action_size) of row i's parameters on row i's inputs, in a new array.

        Each output is a sum in the order of its inputs, in float32, as `clipup.policies.compiled` explains. So its bits
        depend neither on the other rows, nor on the processor.
        """
        return self.forward_arranged(self.arrange(parameters), inputs)

    def arrange(self, parameters: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return rows of parameters with the weights of each layer transposed: a row for each input."""
        arranged = np.array(parameters, order="C")
        rows = len(parameters)
        for layer in self.layers:
            matrix = parameters[:, layer.weights].reshape(rows, layer.outputs, layer.inputs)
            arranged[:, layer.weights] = matrix.transpose(0, 2, 1).reshape(rows, -1)
        return arranged

    @np.errstate(over="ignore", invalid="ignore")
    def forward_arranged(self, arranged: NDArray[np.float32], inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return what `forward` does, for parameters from `arrange`: as many rows as inputs, or one for all."""
        rows, values = len(inputs), inputs
        arranged = np.broadcast_to(arranged, (rows, arranged.shape[1]))
        for number, layer in enumerate(self.layers):
            weights = arranged[:, layer.weights].reshape(rows, layer.inputs, layer.outputs)
            first = np.zeros((rows, layer.outputs), np.float32) if layer.bias is None else arranged[:, layer.bias]
            values = sum_in_order(first, values, weights)
            if number < len(self.hidden):
                if self.activation == "relu":
                    values = np.where(values <= 0.0, np.float32(0.0), values)
                else:
                    values = tanh(values.astype(np.float64)).astype(np.float32)
        return np.ascontiguousarray(values)


Floats = TypeVar("Floats", NDArray[np.float32], NDArray[np.float64])


def sum_in_order(first: Floats, values: Floats, weights: Floats) -> Floats:
    """Return ``first + values[:, 0] weights[:, 0] + values[:, 1] weights[:, 1] + …``, added from the left to the right.

    `first` is (n, outputs), `values` (n, inputs) and `weights` (n, inputs, outputs); the result is a new array.
    """
    if len(values) <= _FEW_ROWS:
        # `accumulate` adds one after the other by definition; `sum` may take another order.
        terms = np.concatenate([first[:, np.newaxis], values[:, :, np.newaxis] * weights], axis=1)
        return cast("Floats", np.add.accumulate(terms, axis=1)[:, -1])
    total = first.copy()
    for i in range(values.shape[1]):
        total += values[:, i : i + 1] * weights[:, i]
    return total


def check_rows(network: PolicyNetwork, parameters: NDArray[np.float32]) -> None:
    """Raise `InvalidArgument` unless `parameters` has one row per candidate of the network's length."""
    if parameters.ndim != 2 or parameters.shape[1] != network.parameter_count or parameters.dtype != np.float32:
        raise InvalidArgument(
            f"parameters of a {network.describe()} network ({network.observation_size} observations, "
            f"{network.action_size} outputs) must be float32 of shape (candidates, {network.parameter_count}), "
            f"got {parameters.dtype} of shape {parameters.shape}"
        )
