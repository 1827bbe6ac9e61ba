"""How a policy's network stands in a file: a description for the metadata, and its parameters as named tensors.

A feed-forward network is written as version 0.1 wrote it. Reading imports nothing and runs nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import cast

import numpy as np
from numpy.typing import NDArray

from clipup.errors import FileFault, InvalidArgument, printable
from clipup.export.safetensors import Array
from clipup.policies import LayeredNetwork, LayerKind, Network, PolicyNetwork
from clipup.policies.activations import Activation as LayerActivation
from clipup.policies.feedforward import Activation
from clipup.policies.layered import Kind, Start
from clipup.policies.modules import ModuleNetwork
from clipup.policies.named import make_named, make_network, read_name
from clipup.policies.own import OwnNetwork

Floats = NDArray[np.float32]

FEEDFORWARD_VERSION, VERSION = 1, 2
"""Versions of policy files: the first knew feed-forward networks only, and is still written for them."""
LONGEST_NAME = 4096


def describe_network(network: PolicyNetwork) -> tuple[int, dict[str, object]]:
    """Return the version of files that can hold the network, and its description for the metadata."""
    if isinstance(network, Network):
        return FEEDFORWARD_VERSION, dataclasses.asdict(network)
    if isinstance(network, LayeredNetwork):
        described: dict[str, object] = {"kind": "layered", **dataclasses.asdict(network)}
        if network.inputs is None:  # as files were before a policy could choose its inputs
            del described["inputs"]
        return VERSION, described
    if isinstance(network, OwnNetwork | ModuleNetwork):
        sizes = {name: getattr(network, name) for name in ("observation_size", "action_size", "parameter_count")}
        return VERSION, {"kind": "own", "name": network.name, **sizes, "state_size": network.state_size}
    raise InvalidArgument(f"a policy of {network.describe()} cannot be written into a file")


def network_tensors(network: PolicyNetwork, parameters: Floats) -> dict[str, Array]:
    """Return the parameters as named arrays."""
    tensors: dict[str, Array] = {}
    if isinstance(network, Network):
        for number, layer in enumerate(network.layers):
            tensors[f"layers.{number}.weight"] = parameters[layer.weights].reshape(layer.outputs, layer.inputs)
            if layer.bias is not None:
                tensors[f"layers.{number}.bias"] = parameters[layer.bias]
    elif isinstance(network, LayeredNetwork | OwnNetwork | ModuleNetwork):
        for piece in network.pieces:
            tensors[piece.name] = parameters[piece.place].reshape(piece.shape)
        if isinstance(network, ModuleNetwork):
            tensors |= network.buffers()
    return tensors


def read_network(
    described: Mapping[str, object], policy: object = None, imports: Collection[str] = ()
) -> PolicyNetwork:
    """Return the network that a description is of.

    For a policy of one's own that is `policy`, or else what its name names, if `imports` has the name of its module.
    """
    sizes = whole(described, "observation_size"), whole(described, "action_size")
    kind = described.get("kind", "feedforward")
    if kind == "feedforward":
        return Network(
            *sizes,
            hidden=tuple(cast("list[int]", described["hidden"])),
            bias=described["bias"] is True,
            activation=cast(Activation, described["activation"]),  # checked by Network
        )
    if kind == "layered":
        return LayeredNetwork(
            *sizes,
            layers=tuple(_layer(fields) for fields in cast("list[dict[str, object]]", described["layers"])),
            residual=described["residual"] is True,
            squash=described["squash"] is True,
            inputs=_inputs(described.get("inputs")),
            start=cast(Start, described["start"]),  # checked by LayeredNetwork
        )
    if kind == "own":
        return _own(described, *sizes, policy, imports)
    raise FileFault(f"a policy of an unknown kind {kind!r:.40}; a newer clipup may know it")


def _inputs(places: object) -> tuple[int, ...] | None:
    if places is None:
        return None
    if not isinstance(places, list):
        raise FileFault("the inputs of the policy are not a list of places")
    return tuple(cast("list[int]", places))  # checked by LayeredNetwork


def _own(
    described: Mapping[str, object], observation_size: int, action_size: int, policy: object, imports: Collection[str]
) -> PolicyNetwork:
    text = described["name"]
    if not isinstance(text, str) or len(text) > LONGEST_NAME:
        raise FileFault("the policy's name is not a text")
    text = printable(text)
    if policy is not None:
        network = make_network(policy, observation_size, action_size, name=text)
    else:
        name = read_name(text)
        if name is None or name.place not in imports:
            place = "MODULE" if name is None else name.place
            raise FileFault(
                f"its policy is {text!r}, whose code is not in the file; if you trust that code: --import {place}, or "
                f"in Python load_policy(…, imports=[{place!r}]), or load_policy(…, policy=…) with the object"
            )
        network = make_named(name, observation_size, action_size)
    for what in ("parameter_count", "state_size"):
        if getattr(network, what) != whole(described, what):
            raise FileFault(
                f"the file has a {what} of {whole(described, what)}, but policy {text} has {getattr(network, what)} now"
            )
    return network


def _layer(fields: Mapping[str, object]) -> LayerKind:
    kind, activation = cast(Kind, fields["kind"]), cast(LayerActivation, fields["activation"])
    return LayerKind(kind, whole(fields, "size"), activation, fields["norm"] is True)


def take_parameters(network: PolicyNetwork, tensors: dict[str, Array]) -> Floats:
    """Take the network's arrays out of `tensors`, and return its flat parameter vector."""
    pieces: list[Array] = []
    if isinstance(network, Network):
        for number, layer in enumerate(network.layers):
            pieces.append(take(tensors, f"layers.{number}.weight", np.float32, (layer.outputs, layer.inputs)).ravel())
            if layer.bias is not None:
                pieces.append(take(tensors, f"layers.{number}.bias", np.float32, (layer.outputs,)))
    elif isinstance(network, LayeredNetwork | OwnNetwork | ModuleNetwork):
        pieces = [take(tensors, piece.name, np.float32, piece.shape).ravel() for piece in network.pieces]
    return np.concatenate(pieces).astype(np.float32)


def take_buffers(network: PolicyNetwork, tensors: dict[str, Array]) -> PolicyNetwork:
    """Take the buffers of a module out of `tensors`, and return the network that has them."""
    if not isinstance(network, ModuleNetwork):
        return network
    found = {name: tensors.pop(name) for name in list(tensors) if name.startswith("buffer.")}
    return network.with_buffers(found) if found or network.buffers() else network


def whole(fields: Mapping[str, object], name: str) -> int:
    """Return a field that must be a whole number."""
    value = fields[name]
    if not isinstance(value, int) or isinstance(value, bool):
        raise FileFault(f"{name} is not a whole number")
    return value


def take(tensors: dict[str, Array], name: str, dtype: type[np.generic], shape: tuple[int, ...]) -> Array:
    """Take one array of this type and shape out of `tensors`; `FileFault` unless it is there and finite."""
    array = tensors.pop(name, None)
    if array is None or array.dtype != dtype or array.shape != shape:
        got = "nothing" if array is None else f"{array.dtype}{array.shape}"
        raise FileFault(f"tensor {name} must be {np.dtype(dtype).name}{shape}, got {got}")
    values = array.astype(np.float64)
    if np.isnan(values).any() or (np.isinf(values).any() and not name.startswith("action.")):
        raise FileFault(f"tensor {name} holds numbers that are not finite")
    return array
