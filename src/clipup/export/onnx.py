"""Policies as ONNX graphs: observation in, action out, with normalization and clipping inside.

The graph computes what `clipup.policies.Policy` computes, but in float64. So it differs only by the rounding of numpy's
float32: by 3e-7 on a linear policy of Humanoid's size, where a float32 graph would differ by 9e-7.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from clipup.errors import InvalidArgument, MissingDependency
from clipup.export.policy import PolicyTask
from clipup.policies import Actions, Policy

OPSET = 17
IR_VERSION = 8
"""Old versions that the runtimes of recent years can read; the graph needs nothing newer."""

INPUT, OUTPUT = "observation", "action"


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
    graph = _Graph(onnx)
    value = graph.layers(graph.normalized(policy), policy)
    graph.act(value, policy.actions)
    actions = policy.actions
    shape: list[Any] = ["n", *actions.shape] if actions.kind == "box" else ["n"]
    types = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}
    output = types[actions.dtype] if actions.kind == "box" else TensorProto.INT64
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "clipup policy",
            [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["n", policy.network.observation_size])],
            [helper.make_tensor_value_info(OUTPUT, output, shape)],
            graph.constants,
        ),
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

    def layers(self, value: str, policy: Policy) -> str:
        """Add the network."""
        network = policy.network
        last = len(network.layers) - 1
        for number, layer in enumerate(network.layers):
            weights = policy.parameters[layer.weights].reshape(layer.outputs, layer.inputs).T.astype(np.float64)
            value = self.add("MatMul", [value, self.constant(f"weight_{number}", weights)], f"product_{number}")
            if layer.bias is not None:
                bias = self.constant(f"bias_{number}", policy.parameters[layer.bias].astype(np.float64))
                value = self.add("Add", [value, bias], f"sum_{number}")
            if number < last:
                value = self.add(network.activation.capitalize(), [value], f"activation_{number}")
        return value

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
