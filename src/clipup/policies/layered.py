"""Networks from layers of several kinds, with memory or without, whose parameters differ from row to row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from clipup.compilation.math import tanh
from clipup.errors import InvalidArgument
from clipup.policies import layered_code
from clipup.policies.activations import ACTIVATIONS, IDENTITY, TANH, Activation, activate, sigmoid
from clipup.policies.feedforward import check_rows, sum_in_order
from clipup.policies.protocol import Piece
from clipup.policies.stepping import Kernel

Kind = Literal["dense", "rnn", "gru", "lstm"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""In the order of their numbers in `layered_code`."""
Start = Literal["zeros", "orthogonal", "random"]
STARTS: tuple[Start, ...] = get_args(Start)
GATES: dict[Kind, int] = {"dense": 1, "rnn": 1, "gru": 3, "lstm": 4}
"""How many sums each unit of a layer needs."""
WIDEST = 2**20
"""Most units in a layer."""

Rows, Wide = NDArray[np.float32], NDArray[np.float64]

_START_TAG = 0x3C6E2A915B07D4F8
"""A random constant that keeps the numbers of a start apart from all others of a run."""


@dataclass(frozen=True)
class LayerKind:
    """One layer.

    Parameters
    ----------
    kind
        ``"dense"``, or with memory ``"rnn"``, ``"gru"`` or ``"lstm"``.
    size
        Number of units.
    activation
        Of a dense layer or an rnn; the gates of the others have their own.
    norm
        Whether the layer is normalized: a dense one before its activation, one with memory in what it gives to the
        next layer. Two more numbers for each unit, a gain and a bias, follow.
    """

    kind: Kind
    size: int
    activation: Activation = "tanh"
    norm: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidArgument(f"kind of a layer must be one of {', '.join(KINDS)}, got {self.kind!r}")
        size = cast(object, self.size)
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= WIDEST:
            raise InvalidArgument(f"size of a layer must be an integer from 1 to {WIDEST}, got {size!r}")
        if self.activation not in ACTIVATIONS:
            raise InvalidArgument(f"activation must be one of {', '.join(ACTIVATIONS)}, got {self.activation!r}")
        if self.activation != "tanh" and self.kind in ("gru", "lstm"):
            raise InvalidArgument(f"a {self.kind} has activations of its own; leave {self.activation!r} out")

    @property
    def gates(self) -> int:
        """Number of sums: each unit of a GRU has three, each of an LSTM four."""
        return GATES[self.kind] * self.size

    @property
    def state_size(self) -> int:
        """How many numbers the layer remembers."""
        return {"dense": 0, "lstm": 2 * self.size}.get(self.kind, self.size)


@dataclass(frozen=True)
class LayeredNetwork:
    """Layers one after the other, and a linear output layer; each of them adds a bias.

    The flat parameter vector holds, layer by layer, the arrays that `pieces` lists: the weights of the inputs (a row
    for each sum, row-major), for a layer with memory the weights of its own state (likewise), the biases, and for a
    normalized layer its gains (less one) and biases. The sums of a GRU come in the order reset, update, new; those of
    an LSTM in the order input, forget, new, output; as in PyTorch. Then come the weights and biases of the output
    layer, and last the weights of the residual path.

    Parameters
    ----------
    observation_size, action_size
        Length of an observation, and number of outputs.
    layers
        The hidden layers, from the observation on.
    residual
        Whether a linear function of the inputs is added to the outputs.
    squash
        Whether the outputs go through tanh.
    inputs
        The places of the observation that the policy sees, counted from 0, in rising order; None for all.
    start
        Where a search starts. ``"orthogonal"`` and ``"random"`` give the hidden layers random weights and leave the
        output layer at zero, so a new policy gives zeros, yet every layer can learn. At ``"zeros"`` no change of a
        single layer has any effect, and only the noise of the search leads away.

    Examples
    --------
    >>> network = LayeredNetwork(4, 1, (LayerKind("gru", 32),))
    >>> network.parameter_count, network.state_size, network.describe()
    (3585, 32, 'gru:32')
    """

    observation_size: int
    action_size: int
    layers: tuple[LayerKind, ...] = ()
    residual: bool = False
    squash: bool = False
    inputs: tuple[int, ...] | None = None
    start: Start = field(default="orthogonal", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        for name, size in (("observation_size", self.observation_size), ("action_size", self.action_size)):
            if isinstance(cast(object, size), bool) or not isinstance(cast(object, size), int) or size < 1:
                raise InvalidArgument(f"{name} must be an integer of at least 1, got {size!r}")
        if self.inputs is not None:
            object.__setattr__(self, "inputs", checked_places(self.inputs, self.observation_size))
        if self.start not in STARTS:
            raise InvalidArgument(f"start must be one of {', '.join(STARTS)}, got {self.start!r}")

    @property
    def input_count(self) -> int:
        """How many numbers of the observation the policy sees."""
        return self.observation_size if self.inputs is None else len(self.inputs)

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The arrays in the flat parameter vector, in order."""
        found: list[Piece] = []

        def add(name: str, *shape: int) -> None:
            found.append(Piece(name, shape, found[-1].place.stop if found else 0))

        inputs = self.input_count
        for number, layer in enumerate(self.layers):
            add(f"layers.{number}.weight", layer.gates, inputs)
            if layer.kind != "dense":
                add(f"layers.{number}.recurrent_weight", layer.gates, layer.size)
            add(f"layers.{number}.bias", layer.gates)
            if layer.norm:
                add(f"layers.{number}.norm_gain", layer.size)
                add(f"layers.{number}.norm_bias", layer.size)
            inputs = layer.size
        add("output.weight", self.action_size, inputs)
        add("output.bias", self.action_size)
        if self.residual:
            add("residual.weight", self.action_size, self.input_count)
        return tuple(found)

    @property
    def parameter_count(self) -> int:
        """Length of the flat parameter vector."""
        return self.pieces[-1].place.stop

    @property
    def state_size(self) -> int:
        """How many numbers the network remembers from step to step; they are zero when an episode starts."""
        return sum(layer.state_size for layer in self.layers)

    def describe(self) -> str:
        """Return the short form, such as ``mlp:64+gru:32``; see `clipup.policies.grammar`."""
        groups: list[tuple[tuple[str, str, bool], list[int]]] = []
        for layer in self.layers:
            form = ("mlp" if layer.kind == "dense" else layer.kind, layer.activation, layer.norm)
            if not groups or groups[-1][0] != form:
                groups.append((form, []))
            groups[-1][1].append(layer.size)
        parts = [
            f"{kind}:{','.join(map(str, sizes))}"
            + ("" if activation == "tanh" else f":{activation}")
            + (":norm" if norm else "")
            for (kind, activation, norm), sizes in groups
        ] or ["linear-bias"]
        words = (("residual", self.residual), ("squash", self.squash), (self.start, self.start != "orthogonal"))
        said = [word for word, is_said in words if is_said]
        if self.inputs is not None:
            said.append(f"inputs:{describe_places(self.inputs)}")
        if not said and len(parts) == 1 and all(_is_plain(layer) for layer in self.layers):
            said = ["orthogonal"]  # without this word the older form is meant, which starts at zero
        return "+".join([*parts, *said])

    def check(self, parameters: Rows) -> None:
        """Raise `InvalidArgument` unless `parameters` has one row per candidate of this network's length."""
        check_rows(self, parameters)

    def initial_center(self, seed: int) -> Rows:
        """Return the parameters that a search starts from."""
        center = np.zeros(self.parameter_count, np.float32)
        if self.start == "zeros":
            return center
        random = np.random.Generator(np.random.Philox(key=np.array([seed, _START_TAG], np.uint64)))
        for piece in self.pieces:
            if not piece.name.startswith("layers.") or not piece.name.endswith("weight"):
                continue
            layer = self.layers[int(piece.name.split(".")[1])]
            blocks = [
                _orthogonal(random, layer.size, piece.shape[1])
                if self.start == "orthogonal"
                else random.standard_normal((layer.size, piece.shape[1])) / math.sqrt(piece.shape[1])
                for _ in range(GATES[layer.kind])
            ]
            center[piece.place] = np.concatenate(blocks).astype(np.float32).ravel()
        for number, layer in enumerate(self.layers):
            if layer.kind == "lstm":  # a new LSTM remembers: its forget gates are mostly open
                bias = next(piece for piece in self.pieces if piece.name == f"layers.{number}.bias")
                center[bias.start + layer.size : bias.start + 2 * layer.size] = 1.0
        return center

    def arrange(self, parameters: Rows) -> Rows:
        """Return rows of parameters with every matrix transposed: a row for each input."""
        arranged = np.array(parameters, order="C")
        rows = len(parameters)
        for piece in self.pieces:
            if len(piece.shape) == 2:
                matrix = parameters[:, piece.place].reshape(rows, *piece.shape)
                arranged[:, piece.place] = matrix.transpose(0, 2, 1).reshape(rows, -1)
        return arranged

    @cached_property
    def program(self) -> NDArray[np.int64]:
        """The layers as numbers, for `layered_code.step_layered`."""
        table: list[list[int]] = []
        inputs, place = self.input_count, 0
        for layer in self.layers:
            activation = ACTIVATIONS.index(layer.activation)
            table.append([KINDS.index(layer.kind), inputs, layer.size, activation, int(layer.norm), place])
            inputs, place = layer.size, place + layer.state_size
        squash = TANH if self.squash else IDENTITY
        table.append([layered_code.OUTPUT, inputs, self.action_size, squash, int(self.residual), place])
        program = np.zeros((max(len(table), self.input_count), layered_code.PLACE + 1), np.int64)
        program[: len(table), : layered_code.PLACE] = table
        program[: self.input_count, layered_code.PLACE] = (
            range(self.input_count) if self.inputs is None else self.inputs
        )
        return program

    @property
    def kernel(self) -> Kernel:
        """One step for one candidate, in the Python that Numba compiles."""
        width = max(self.input_count, self.action_size, *(layer.gates for layer in self.layers))
        return Kernel(
            layered_code.step_layered, self.program, (layered_code.WORK_ROWS, width), "policies made of layers"
        )

    @np.errstate(over="ignore", invalid="ignore")
    def step(self, arranged: Rows, state: Rows, inputs: Rows) -> Rows:
        """Return the outputs (n, action_size) of row i's arranged parameters on row i's inputs; change the states."""
        rows, position, place = len(inputs), 0, 0
        arranged = np.broadcast_to(arranged, (rows, arranged.shape[1]))

        def take(count: int) -> Wide:
            nonlocal position
            position += count
            return arranged[:, position - count : position].astype(np.float64)

        def matrix(sources: int, targets: int) -> Wide:
            return take(sources * targets).reshape(rows, sources, targets)

        values = observation = (inputs if self.inputs is None else inputs[:, self.inputs]).astype(np.float64)
        for layer in self.layers:
            weights = matrix(values.shape[1], layer.gates)
            recurrent = None if layer.kind == "dense" else matrix(layer.size, layer.gates)
            values = sum_in_order(take(layer.gates), values, weights)
            if recurrent is not None:
                memory = state[:, place : place + layer.state_size]
                place += layer.state_size
                remembered = memory[:, : layer.size].astype(np.float64)
                second = sum_in_order(np.zeros_like(values), remembered, recurrent)
                _CELLS[layer.kind](layer, values, second, memory)
                values = memory[:, : layer.size].astype(np.float64)
            if layer.norm:
                values = _normalize(values, take(layer.size), take(layer.size))
            if layer.kind == "dense":
                values = activate(values, ACTIVATIONS.index(layer.activation))
        weights = matrix(values.shape[1], self.action_size)
        outputs = sum_in_order(take(self.action_size), values, weights)
        if self.residual:
            outputs = sum_in_order(outputs, observation, matrix(observation.shape[1], self.action_size))
        return activate(outputs, TANH if self.squash else IDENTITY).astype(np.float32)


def checked_places(places: Sequence[int], observation_size: int) -> tuple[int, ...]:
    """Return places of an observation, or raise `InvalidArgument` unless they rise and are within it."""
    found = tuple(places)
    if not found or any(isinstance(cast(object, place), bool) or not isinstance(place, int) for place in found):
        raise InvalidArgument(f"inputs must be places of the observation, got {places!r:.100}")
    if any(after <= before for before, after in pairwise((-1, *found))):
        raise InvalidArgument(f"inputs must be places from 0 on in rising order, got {describe_places(found)}")
    if found[-1] >= observation_size:
        raise InvalidArgument(
            f"inputs go up to place {found[-1]}, but an observation has the places 0 to {observation_size - 1}"
        )
    return found


def describe_places(places: Sequence[int]) -> str:
    """Return places as text.

    >>> describe_places((0, 1, 2, 5, 7, 8))
    '0-2,5,7-8'
    """
    ranges: list[list[int]] = []
    for place in places:
        if ranges and place == ranges[-1][1] + 1:
            ranges[-1][1] = place
        else:
            ranges.append([place, place])
    return ",".join(f"{low}" if low == high else f"{low}-{high}" for low, high in ranges)


def _is_plain(layer: LayerKind) -> bool:
    """Return whether `clipup.policies.Network` has such layers too."""
    return layer.kind == "dense" and layer.activation in ("tanh", "relu") and not layer.norm


def _orthogonal(random: np.random.Generator, rows: int, columns: int) -> NDArray[np.float64]:
    """Return a random matrix whose rows, or columns where there are fewer, are orthogonal and of length 1.

    By Gram and Schmidt, with sums in a fixed order: the last bits of LAPACK differ between processors.
    """
    tall = random.standard_normal((max(rows, columns), min(rows, columns)))
    for number in range(tall.shape[1]):
        vector, earlier = tall[:, number], tall[:, :number]
        for _ in range(2 if number else 0):  # the second time removes what rounding left
            shares = np.add.accumulate(earlier * vector[:, np.newaxis], axis=0)[-1]
            vector -= np.add.accumulate(earlier * shares, axis=1)[:, -1]
        vector /= math.sqrt(np.add.accumulate(vector * vector)[-1])
    return tall if rows >= columns else np.ascontiguousarray(tall.T)


def _normalize(values: Wide, gain: Wide, bias: Wide) -> Wide:
    difference = values - _total(values) / values.shape[1]
    variance = _total(difference * difference) / values.shape[1]
    scale = 1.0 / np.sqrt(variance + layered_code.NORM_EPSILON)
    return difference * scale * (1.0 + gain) + bias


def _total(values: Wide) -> Wide:
    """Return the sum of each row (n, 1), in order and from zero on."""
    start = np.zeros((len(values), 1))
    return np.add.accumulate(np.concatenate([start, values], axis=1), axis=1)[:, -1:]


def _rnn(layer: LayerKind, first: Wide, second: Wide, memory: Rows) -> None:
    memory[:] = activate(first + second, ACTIVATIONS.index(layer.activation))


def _gru(layer: LayerKind, first: Wide, second: Wide, memory: Rows) -> None:
    reset, update, _ = np.split(sigmoid(first + second), 3, axis=1)
    new = tanh(first[:, 2 * layer.size :] + reset * second[:, 2 * layer.size :])
    memory[:] = new + update * (memory.astype(np.float64) - new)


def _lstm(layer: LayerKind, first: Wide, second: Wide, memory: Rows) -> None:
    take, keep, new, give = np.split(first + second, 4, axis=1)
    cell = sigmoid(keep) * memory[:, layer.size :].astype(np.float64) + sigmoid(take) * tanh(new)
    memory[:, layer.size :] = cell
    memory[:, : layer.size] = sigmoid(give) * tanh(cell)


_CELLS: dict[str, Callable[[LayerKind, Wide, Wide, Rows], None]] = {"rnn": _rnn, "gru": _gru, "lstm": _lstm}
