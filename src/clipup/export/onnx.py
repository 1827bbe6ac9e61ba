"""Policies as ONNX graphs: observation in, action out, with normalization and clipping inside.

A policy with a memory has one more input and one more output: ``state`` (n, state_size), zeros when an episode starts,
and ``next_state``, which is the ``state`` of the next step.

The graph computes what `clipup.policies.Policy` computes, but in float64. So it differs only by the rounding of numpy's
float32: by 3e-7 on a linear policy of Humanoid's size, where a float32 graph would differ by 9e-7.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from clipup.errors import InvalidArgument, MissingDependency
from clipup.export.module_onnx import encode_module
from clipup.export.policy import PolicyTask
from clipup.policies import Actions, LayeredNetwork, LayerKind, Network, Policy
from clipup.policies.activations import GELU_CUBIC, GELU_FACTOR
from clipup.policies.layered_code import NORM_EPSILON
from clipup.policies.modules import ModuleNetwork

OPSET = 17
IR_VERSION = 8
"""Old versions that the runtimes of recent years can read; the graph needs nothing newer."""

INPUT, OUTPUT = "observation", "action"
STATE, NEXT_STATE = "state", "next_state"


def encode_onnx(policy: Policy, task: PolicyTask | None = None) -> bytes:
    """Return the bytes of an ONNX model: ``observation`` (n, size) float32 to ``action`` (n, …)."""
    try:
        import onnx
        from onnx import TensorProto, checker, helper
    except ImportError as error:
        raise MissingDependency.of("onnx", extra="onnx") from error
    if policy.actions.kind not in ("box", "discrete"):
        raise InvalidArgument(
            f"actions of several kinds or choices ({policy.actions.describe()}) cannot be exported to ONNX yet; the "
            "safetensors file holds them"
        )
    network, actions = policy.network, policy.actions
    if isinstance(network, ModuleNetwork):
        return encode_module(policy, network)
    graph = _Graph(onnx)
    if isinstance(network, Network):
        value = graph.feedforward(graph.normalized(policy), network, policy.parameters)
    elif isinstance(network, LayeredNetwork):
        value = graph.layered(graph.normalized(policy), network, policy.parameters)
    else:
        raise InvalidArgument(f"a policy of {network.describe()} cannot be exported as ONNX; .safetensors can hold it")
    graph.act(value, actions)
    shape: list[Any] = ["n", *actions.shape] if actions.kind == "box" else ["n"]
    types = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}
    output = types[actions.dtype] if actions.kind == "box" else TensorProto.INT64
    inputs = [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["n", network.observation_size])]
    outputs = [helper.make_tensor_value_info(OUTPUT, output, shape)]
    if network.state_size:
        inputs.append(helper.make_tensor_value_info(STATE, TensorProto.FLOAT, ["n", network.state_size]))
        outputs.append(helper.make_tensor_value_info(NEXT_STATE, TensorProto.FLOAT, ["n", network.state_size]))
    model = helper.make_model(
        helper.make_graph(graph.nodes, "clipup policy", inputs, outputs, graph.constants),
        producer_name="clipup",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    if task is not None:
        described = {"env": task.env, "policy": policy.network.describe(), "generation": str(task.generation)}
        helper.set_model_props(model, described)
    cast(Any, checker).check_model(model, full_check=True)
    return model.SerializeToString()


class _Graph:
    """Collects nodes and constants."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def normalized(self, policy: Policy) -> str:
        """Subtract the mean and divide by the standard deviation, rounding to float32 as numpy does."""
        proto = self._onnx.TensorProto
        value = self.add("Cast", [INPUT], "observation_double", to=proto.DOUBLE)
        if policy.statistics is None:
            return value
        value = self.add("Sub", [value, self.constant("mean", policy.statistics.mean)], "centered")
        value = self.add("Mul", [value, self.constant("scale", 1.0 / policy.statistics.stdev)], "scaled")
        value = self.add("Cast", [value], "normalized_single", to=proto.FLOAT)
        return self.add("Cast", [value], "normalized", to=proto.DOUBLE)

    def feedforward(self, value: str, network: Network, parameters: NDArray[np.float32]) -> str:
        """Add a feed-forward network."""
        last = len(network.layers) - 1
        for number, layer in enumerate(network.layers):
            weights = parameters[layer.weights].reshape(layer.outputs, layer.inputs).T.astype(np.float64)
            value = self.add("MatMul", [value, self.constant(f"weight_{number}", weights)], f"product_{number}")
            if layer.bias is not None:
                bias = self.constant(f"bias_{number}", parameters[layer.bias].astype(np.float64))
                value = self.add("Add", [value, bias], f"sum_{number}")
            if number < last:
                value = self.add(network.activation.capitalize(), [value], f"activation_{number}")
        return value

    def layered(self, observation: str, network: LayeredNetwork, parameters: NDArray[np.float32]) -> str:
        """Add a network of layers, which reads STATE and ends in NEXT_STATE if it has a memory."""
        arrays = {piece.name: parameters[piece.place].reshape(piece.shape) for piece in network.pieces}
        proto = self._onnx.TensorProto
        if network.inputs is not None:
            places = self.constant("places", np.array(network.inputs, np.int64))
            observation = self.add("Gather", [observation, places], "inputs", axis=1)
        if network.state_size:
            self.add("Cast", [STATE], "state_double", to=proto.DOUBLE)
        value, place, kept = observation, 0, list[str]()
        for number, layer in enumerate(network.layers):
            name = f"layers.{number}"
            first = self.affine(value, arrays[f"{name}.weight"], arrays[f"{name}.bias"], f"{name}.input")
            if layer.kind == "dense":
                value = first
            else:
                memory = self.cut("state_double", place, place + layer.size, f"{name}.memory")
                second = self.affine(memory, arrays[f"{name}.recurrent_weight"], None, f"{name}.recurrent")
                cell = self.cut("state_double", place + layer.size, place + layer.state_size, f"{name}.cell")
                state = self.cell(layer, first, second, memory, cell, name)
                state = [self.rounded(part, f"{part}.rounded") for part in state]
                value, place = state[0], place + layer.state_size
                kept += state
            if layer.norm:
                value = self.normalize(value, arrays[f"{name}.norm_gain"], arrays[f"{name}.norm_bias"], f"{name}.norm")
            if layer.kind == "dense":
                value = self.activation(value, layer.activation, f"{name}.activation")
        value = self.affine(value, arrays["output.weight"], arrays["output.bias"], "output")
        if network.residual:
            linear = self.affine(observation, arrays["residual.weight"], None, "residual")
            value = self.add("Add", [value, linear], "both")
        if network.squash:
            value = self.add("Tanh", [value], "squashed")
        if kept:
            joined = self.add("Concat", kept, "states", axis=1)
            self.add("Cast", [joined], NEXT_STATE, to=proto.FLOAT)
        return self.rounded(value, "outputs_rounded")  # equal ones must be equal for a choice too

    def cell(self, layer: LayerKind, first: str, second: str, memory: str, cell: str, name: str) -> list[str]:
        """Add a cell; return what the layer remembers next: h, and c of an LSTM."""

        def gate(number: int, of: str | None = None) -> str:
            """One sum of each unit: of both, or of the input or the memory alone."""
            whole = of or f"{name}.both"
            return self.cut(whole, number * layer.size, (number + 1) * layer.size, f"{whole}.{number}")

        if layer.kind == "rnn":
            both = self.add("Add", [first, second], f"{name}.both")
            return [self.activation(both, layer.activation, f"{name}.h")]
        self.add("Add", [first, second], f"{name}.both")
        if layer.kind == "gru":
            reset, update = (self.sigmoid(gate(number), f"{name}.gate_{number}") for number in (0, 1))
            chosen = self.add("Mul", [reset, gate(2, second)], f"{name}.chosen")
            new = self.add("Tanh", [self.add("Add", [gate(2, first), chosen], f"{name}.new_sum")], f"{name}.new")
            change = self.add("Sub", [memory, new], f"{name}.change")
            kept = self.add("Mul", [update, change], f"{name}.kept")
            return [self.add("Add", [new, kept], f"{name}.h")]
        take, keep, give = (self.sigmoid(gate(number), f"{name}.gate_{number}") for number in (0, 1, 3))
        new = self.add("Tanh", [gate(2)], f"{name}.new")
        parts = [self.add("Mul", [keep, cell], f"{name}.kept"), self.add("Mul", [take, new], f"{name}.taken")]
        following = self.add("Add", parts, f"{name}.c")
        given = self.add("Mul", [give, self.add("Tanh", [following], f"{name}.bounded")], f"{name}.h")
        return [given, following]

    def affine(self, value: str, weights: NDArray[np.float32], bias: NDArray[np.float32] | None, name: str) -> str:
        """Add a product with a matrix that has a row for each output, and a bias."""
        matrix = self.constant(f"{name}.matrix", weights.T.astype(np.float64))
        product = self.add("MatMul", [value, matrix], f"{name}.product")
        if bias is None:
            return product
        return self.add("Add", [product, self.constant(f"{name}.bias", bias.astype(np.float64))], f"{name}.sum")

    def activation(self, value: str, activation: str, name: str) -> str:
        """Add an activation function."""
        if activation == "identity":
            return value
        if activation in ("tanh", "relu"):
            return self.add(activation.capitalize(), [value], name)
        if activation == "silu":
            return self.add("Mul", [value, self.sigmoid(value, f"{name}.sigmoid")], name)
        if activation == "gelu":
            square = self.add("Mul", [value, value], f"{name}.square")
            cube = self.add("Mul", [square, value], f"{name}.cube")
            part = self.add("Mul", [cube, self.number(GELU_CUBIC, f"{name}.cubic")], f"{name}.part")
            total = self.add("Add", [value, part], f"{name}.total")
            scaled = self.add("Mul", [total, self.number(GELU_FACTOR, f"{name}.factor")], f"{name}.scaled")
            bounded = self.add("Tanh", [scaled], f"{name}.tanh")
            raised = self.add("Add", [bounded, self.number(1.0, f"{name}.one")], f"{name}.raised")
            half = self.add("Mul", [value, self.number(0.5, f"{name}.half")], f"{name}.halved")
            return self.add("Mul", [half, raised], name)
        zero = self.number(0.0, f"{name}.zero")
        below = self.add("Min", [value, zero], f"{name}.below")
        halved = self.add("Mul", [below, self.number(0.5, f"{name}.half")], f"{name}.halved")
        t = self.add("Tanh", [halved], f"{name}.tanh")
        rest = self.add("Sub", [self.number(1.0, f"{name}.one"), t], f"{name}.rest")
        twice = self.add("Mul", [t, self.number(2.0, f"{name}.two")], f"{name}.twice")
        return self.add(
            "Add",
            [self.add("Max", [value, zero], f"{name}.above"), self.add("Div", [twice, rest], f"{name}.low")],
            name,
        )

    def sigmoid(self, value: str, name: str) -> str:
        """Add a logistic function, by a hyperbolic tangent as in numpy."""
        half = self.number(0.5, f"{name}.half")
        bounded = self.add("Tanh", [self.add("Mul", [value, half], f"{name}.halved")], f"{name}.tanh")
        return self.add("Add", [self.add("Mul", [bounded, half], f"{name}.again"), half], name)

    def normalize(self, value: str, gain: NDArray[np.float32], bias: NDArray[np.float32], name: str) -> str:
        """Add a layer normalization."""
        mean = self.add("ReduceMean", [value], f"{name}.mean", axes=[1])
        centered = self.add("Sub", [value, mean], f"{name}.centered")
        square = self.add("Mul", [centered, centered], f"{name}.square")
        variance = self.add("ReduceMean", [square], f"{name}.variance", axes=[1])
        above = self.add("Add", [variance, self.number(NORM_EPSILON, f"{name}.epsilon")], f"{name}.above")
        value = self.add("Div", [centered, self.add("Sqrt", [above], f"{name}.deviation")], f"{name}.scaled")
        value = self.add("Mul", [value, self.constant(f"{name}.gain", 1.0 + gain.astype(np.float64))], f"{name}.gained")
        return self.add("Add", [value, self.constant(f"{name}.bias", bias.astype(np.float64))], name)

    def rounded(self, value: str, name: str) -> str:
        """Round to float32, as what a network remembers is."""
        proto = self._onnx.TensorProto
        return self.add("Cast", [self.add("Cast", [value], f"{name}.single", to=proto.FLOAT)], name, to=proto.DOUBLE)

    def cut(self, value: str, start: int, stop: int, name: str) -> str:
        """Add a range of columns."""
        ends = (("start", start), ("stop", stop), ("axis", 1))
        edges = [self.constant(f"{name}.{word}", np.array([number], np.int64)) for word, number in ends]
        return self.add("Slice", [value, *edges], name)

    def number(self, value: float, name: str) -> str:
        """Add a constant number."""
        return self.constant(name, np.array(value, np.float64))

    def act(self, value: str, actions: Actions) -> None:
        """Turn outputs into actions, which end in OUTPUT."""
        if actions.kind == "discrete":
            value = self.add("ArgMax", [value], "choice", axis=1, keepdims=0)
            self.add("Add", [value, self.constant("start", np.array(actions.start, np.int64))], OUTPUT)
            return
        if actions.dtype not in ("float32", "float64"):
            raise InvalidArgument(f"actions of type {actions.dtype} cannot be exported; only float32 and float64")
        proto = self._onnx.TensorProto
        single = actions.dtype == "float32"
        value = self.add("Cast", [value], "outputs", to=proto.FLOAT if single else proto.DOUBLE)
        low, high = np.asarray(actions.low, actions.dtype), np.asarray(actions.high, actions.dtype)
        if actions.rescale:
            one = np.ones(actions.size, actions.dtype)
            value = self.add("Max", [value, self.constant("minus_one", -one)], "above_minus_one")
            value = self.add("Min", [value, self.constant("one", one)], "within_one")
            value = self.add("Mul", [value, self.constant("half", (high - low) / 2)], "stretched")
            value = self.add("Add", [value, self.constant("middle", (high + low) / 2)], "moved")
        value = self.add("Max", [value, self.constant("low", low)], "above_low")
        value = self.add("Min", [value, self.constant("high", high)], "clipped")
        shape = np.array([-1, *actions.shape], np.int64)
        self.add("Reshape", [value, self.constant("shape", shape)], OUTPUT)

    def constant(self, name: str, values: NDArray[np.generic]) -> str:
        """Add a constant."""
        array = np.ascontiguousarray(values).reshape(values.shape)
        self.constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Add a node."""
        self.nodes.append(self._onnx.helper.make_node(kind, inputs, [output], **attributes))
        return output
