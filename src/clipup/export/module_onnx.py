# pyright: basic
"""A module of PyTorch as an ONNX graph, by PyTorch's own exporter, with normalization and bounds around it.

The graph takes one observation: ``observation`` (1, size), and with a memory ``state`` (1, state_size), zeros when an
episode starts. It gives ``action`` and ``next_state``.

The exporter takes what torch's own types do not say, so this module is checked loosely.
"""

from __future__ import annotations

import io
import warnings
from typing import Any, cast

import numpy as np

from clipup.errors import InvalidArgument, MissingDependency, one_line
from clipup.policies import Actions, Policy
from clipup.policies.modules import ModuleNetwork

OPSET = 17


def encode_module(policy: Policy, network: ModuleNetwork) -> bytes:
    """Return the bytes of an ONNX model; `InvalidArgument` where PyTorch cannot export the module."""
    try:
        import onnx  # noqa: F401 -- the exporter needs it
        import torch
    except ImportError as error:
        raise MissingDependency.of("onnx", extra="onnx") from error
    whole = _wrapped(torch, policy, network)
    names = ["observation"] + ["state"] * bool(network.state_size)
    given = [torch.zeros(1, size) for size in (network.observation_size, network.state_size) if size]
    file = io.BytesIO()
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # PyTorch's exporter warns about itself
            torch.onnx.export(
                whole,
                tuple(given),
                cast(Any, file),
                input_names=names,
                output_names=["action"] + ["next_state"] * bool(network.state_size),
                opset_version=OPSET,
                dynamo=False,
            )
    except Exception as error:  # the exporter raises errors of any kind
        raise InvalidArgument(
            f"PyTorch cannot export policy {network.name} as ONNX ({one_line(error):.300}); .safetensors can hold it"
        ) from error
    return file.getvalue()


def _wrapped(torch: Any, policy: Policy, network: ModuleNetwork) -> Any:
    """Return a module from an observation, and a state, to an action, and the next state."""
    module, layout = network.loaded(policy.parameters), network.state_layout
    statistics, bounded = policy.statistics, _bounding(torch, policy.actions)

    class Whole(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module
            if statistics is not None:
                self.register_buffer("mean", torch.from_numpy(statistics.mean.copy()))
                self.register_buffer("scale", torch.from_numpy(statistics.scale.copy()))

        def forward(self, observation: Any, state: Any = None) -> Any:
            values = observation
            if statistics is not None:
                values = ((observation.double() - self.mean) * self.scale).float()
            if state is None:
                return bounded(self.module(values).reshape(1, -1))
            parts, place = [], 0
            for shape in layout[1]:
                size = int(np.prod(shape))
                parts.append(state[0, place : place + size].reshape(shape))
                place += size
            # The last number of a state says whether there is one: an episode's first step has none.
            fresh = state[0, -1] == 0
            started, first = self.module(values)
            going, later = self.module(values, tuple(parts) if layout[0] else parts[0])
            pairs = zip(first, later, strict=True) if layout[0] else [(first, later)]
            following = [torch.where(fresh, one, other).reshape(1, -1) for one, other in pairs]
            outputs = torch.where(fresh, started, going).reshape(1, -1)
            return bounded(outputs), torch.cat([*following, torch.ones(1, 1)], dim=1)

    return Whole().eval()


def _bounding(torch: Any, actions: Actions) -> Any:
    """Return a function from outputs to actions, as `Actions.apply` does it."""
    if actions.kind == "discrete":
        return lambda outputs: torch.argmax(outputs, dim=1) + actions.start
    if actions.dtype not in ("float32", "float64"):
        raise InvalidArgument(f"actions of type {actions.dtype} cannot be exported; only float32 and float64")
    kind = getattr(torch, actions.dtype)
    low, high = (torch.tensor(bounds, dtype=kind) for bounds in (actions.low, actions.high))

    def bounded(outputs: Any) -> Any:
        values = outputs.to(kind)
        if actions.rescale:
            values = torch.clamp(values, -1.0, 1.0) * ((high - low) / 2) + (high + low) / 2
        return torch.minimum(torch.maximum(values, low), high).reshape(1, *actions.shape)

    return bounded
