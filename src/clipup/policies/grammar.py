"""Policies by their short names: the only place that knows how they are written.

::

    linear | linear-bias                     a linear policy, without and with bias
    mlp:64,64 | rnn:32 | gru:32 | lstm:32    hidden layers, then a linear output layer
    mlp:64:relu | rnn:32:silu                with an activation: tanh (the usual one), relu, silu, gelu, elu, identity
    mlp:64:norm | mlp:64:relu:norm           with layer normalization
    mlp:64+gru:32                            one after the other
    …+residual                               plus a linear function of the observation
    …+squash                                 tanh at the end
    …+inputs:0-44,50                         sees only these places of the observation, counted from 0
    …+zeros | …+random | …+orthogonal        where a search starts

``linear``, ``linear-bias`` and ``mlp:…`` with nothing but tanh or relu start at zero, as they always did. All others
start orthogonal; see `clipup.policies.layered.LayeredNetwork`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from clipup.errors import InvalidArgument
from clipup.policies.activations import ACTIVATIONS, Activation
from clipup.policies.feedforward import Network
from clipup.policies.layered import STARTS, WIDEST, Kind, LayeredNetwork, LayerKind, Start
from clipup.policies.protocol import PolicyNetwork
from clipup.suggestions import did_you_mean

LAYERS: dict[str, Kind] = {"mlp": "dense", "rnn": "rnn", "gru": "gru", "lstm": "lstm"}
LINEAR = ("linear", "linear-bias")
WORDS = ("residual", "squash", *STARTS)
INPUTS = "inputs"
HEADS = (*LAYERS, *LINEAR, *WORDS, INPUTS)
"""What the first part of a short name can begin with."""
MOST_INPUTS = 10**6
"""Largest observation whose places can be chosen: a name must not ask for more memory than a machine has."""
EXAMPLES = "linear, linear-bias, mlp:64,64, gru:32, mlp:64+gru:32 or mlp:64:relu+residual"


@dataclass
class _Found:
    """What the parts of a name said so far."""

    layers: list[LayerKind] = field(default_factory=list[LayerKind])
    linear: str | None = None
    words: list[str] = field(default_factory=list[str])
    inputs: tuple[int, ...] | None = None

    @property
    def start(self) -> Start | None:
        return next((word for word in STARTS if word in self.words), None)


def parse_policy(text: str, observation_size: int, action_size: int) -> PolicyNetwork:
    """Return the policy that `text` names, for observations and outputs of these sizes.

    >>> parse_policy("mlp:64+gru:32", 8, 2).parameter_count
    9954
    """
    found = _read(text)
    plain = all(
        layer.kind == "dense" and layer.activation in ("tanh", "relu") and not layer.norm for layer in found.layers
    )
    kinds = {layer.activation for layer in found.layers}
    if not found.words and found.inputs is None and plain and len(kinds) <= 1:
        hidden = tuple(layer.size for layer in found.layers)
        activation = found.layers[0].activation if found.layers else "tanh"
        return Network(
            observation_size, action_size, hidden, bias=found.linear != "linear",
            activation="relu" if activation == "relu" else "tanh",
        )  # fmt: skip
    if found.linear == "linear":
        other = text.replace("linear", "linear-bias")
        raise InvalidArgument(f"policy {text!r:.100}: 'linear' stands alone; with a bias it need not: {other!r}")
    return LayeredNetwork(
        observation_size,
        action_size,
        tuple(found.layers),
        residual="residual" in found.words,
        squash="squash" in found.words,
        inputs=found.inputs,
        start=found.start or "orthogonal",
    )


def _read(text: str) -> _Found:
    found = _Found()
    for part in text.split("+"):
        head, _, rest = part.strip().partition(":")
        if head in LAYERS:
            if found.linear is not None:
                raise InvalidArgument(f"policy {text!r:.100}: {found.linear!r} has no hidden layers; leave it out")
            found.layers += _layers(text, head, rest)
        elif head == INPUTS:
            if found.inputs is not None:
                raise InvalidArgument(f"policy {text!r:.100}: {head!r} is one word too many")
            found.inputs = _places(text, rest)
        elif rest or ":" in part:
            raise _unknown(text, head, HEADS, bare=head in (*LINEAR, *WORDS))
        elif head in LINEAR:
            if found.linear is not None or found.layers:
                raise InvalidArgument(
                    f"policy {text!r:.100}: {head!r} comes first and has no hidden layers; leave it out"
                )
            found.linear = head
        elif head in WORDS:
            if head in found.words or (head in STARTS and found.start is not None):
                raise InvalidArgument(f"policy {text!r:.100}: {head!r} is one word too many")
            found.words.append(head)
        else:
            raise _unknown(text, head, HEADS)
    if not found.layers and found.linear is None:
        raise InvalidArgument(f"policy {text!r:.100} has no layers; a policy is {EXAMPLES}")
    if "residual" in found.words and not found.layers:
        raise InvalidArgument(f"policy {text!r:.100} is linear already; leave 'residual' out")
    return found


def _layers(text: str, head: str, rest: str) -> list[LayerKind]:
    sizes, *options = (option.strip() for option in rest.split(":"))
    numbers = [number.strip() for number in sizes.split(",")]
    fits = all(number.isascii() and number.isdecimal() and 1 <= int(number[:20]) <= WIDEST for number in numbers)
    if not fits:
        raise InvalidArgument(
            f"policy {text!r:.100}: {head} needs sizes of layers from 1 to {WIDEST}, like {head}:64 or {head}:64,32, "
            f"got {sizes!r}"
        )
    activations = [option for option in options if option in ACTIVATIONS]
    for option in options:
        if option != "norm" and option not in ACTIVATIONS:
            known = ["norm", *ACTIVATIONS]
            raise InvalidArgument(
                f"policy {text!r:.100}: {option!r} is not an activation ({', '.join(ACTIVATIONS)}) or 'norm'"
                f"{did_you_mean(option, known)}"
            )
    if len(activations) > 1 or options.count("norm") > 1:
        raise InvalidArgument(f"policy {text!r:.100}: {head}:{sizes} can have one activation and one 'norm'")
    activation = cast(Activation, activations[0]) if activations else "tanh"
    try:
        return [LayerKind(LAYERS[head], int(number), activation, "norm" in options) for number in numbers]
    except InvalidArgument as error:
        raise InvalidArgument(f"policy {text!r:.100}: {error}") from error


def _places(text: str, rest: str) -> tuple[int, ...]:
    found: list[int] = []
    for part in rest.split(","):
        low, dash, high = (end.strip() for end in part.partition("-"))
        ends = (low, high) if dash else (low, low)
        if not all(end.isascii() and end.isdecimal() and int(end[:20]) < MOST_INPUTS for end in ends):
            raise InvalidArgument(
                f"policy {text!r:.100}: inputs needs places of the observation, counted from 0, like inputs:0-44 or "
                f"inputs:0-12,20, got {rest!r:.40}"
            )
        if int(ends[1]) < int(ends[0]) or int(ends[0]) <= (found[-1] if found else -1):
            raise InvalidArgument(f"policy {text!r:.100}: inputs must rise, like inputs:0-12,20, got {rest!r:.40}")
        found += range(int(ends[0]), int(ends[1]) + 1)
    return tuple(found)


def _unknown(text: str, head: str, known: Sequence[str], *, bare: bool = False) -> InvalidArgument:
    if bare:
        return InvalidArgument(f"policy {text!r:.100}: {head!r} takes nothing after a colon")
    return InvalidArgument(
        f"policy {text!r:.100}: unknown part {head!r}{did_you_mean(head, known)}; a policy is {EXAMPLES}"
    )
