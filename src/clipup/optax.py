"""ClipUp for JAX: a gradient transformation of optax. It needs ``pip install 'clipup[optax]'``."""

# pyright: basic, reportPrivateImportUsage=false, reportAttributeAccessIssue=false, reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from clipup.errors import MissingDependency
from clipup.optimizers import MOMENTUM, STEP_RATIO
from clipup.optimizers.protocol import check_decay, check_positive

try:
    import jax
    import jax.numpy as jnp
    import optax
except ImportError as error:
    raise MissingDependency.of("optax", extra="optax") from error

__all__ = ["ClipUpState", "clipup"]


class ClipUpState(NamedTuple):
    """The state of :func:`clipup`: how many steps were made, and the velocity, a tree like the parameters."""

    count: Any
    velocity: Any


def clipup(
    max_speed: float | Callable[[Any], Any],
    step_ratio: float = STEP_RATIO,
    momentum: float = MOMENTUM,
    *,
    maximize: bool = False,
) -> optax.GradientTransformation:
    """Return ClipUp as a gradient transformation: all leaves of the tree together are one vector.

    The recursion is that of :class:`clipup.ClipUp`::

        v' = m * v - a * g / |g|            (+ with `maximize`)
        v  = v' * min(1, v_max / |v'|)
        return v

    ========  ===========================  ==============================================================
    symbol    argument                     meaning
    ========  ===========================  ==============================================================
    v_max     ``max_speed``                longest possible step; a number, or a schedule of optax
    a         ``step_ratio * max_speed``   length of the pull of each gradient
    m         ``momentum``                 share of the velocity that survives a step
    ========  ===========================  ==============================================================

    As elsewhere in optax, the updates are added to the parameters and descend; with `maximize` they ascend. To
    normalize parts of a tree apart from each other, give each its own `clipup` in ``optax.partition``. A gradient of
    zero does not pull. A gradient that is not finite is not refused, and spoils the parameters.

    >>> transformation = clipup(max_speed=1.0)
    >>> parameters = {"a": jnp.array([3.0]), "b": jnp.array([4.0])}
    >>> state = transformation.init(parameters)
    >>> updates, state = transformation.update(parameters, state)
    >>> [round(float(updates[key][0]), 4) for key in "ab"]
    [-0.3, -0.4]
    """
    if not callable(max_speed):
        check_positive("max_speed", max_speed)
    check_positive("step_ratio", step_ratio)
    check_decay("momentum", momentum)
    sign = 1.0 if maximize else -1.0

    def init(params: Any) -> ClipUpState:
        return ClipUpState(jnp.zeros([], jnp.int32), jax.tree.map(jnp.zeros_like, params))

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, ClipUpState]:
        del params
        speed_limit = max_speed(state.count) if callable(max_speed) else max_speed
        # Divided by the largest entry first, so that no square under- or overflows at extreme scales of the loss.
        largest = _largest(updates)
        pull = jax.tree.map(lambda g: g / jnp.where(largest > 0, largest, 1).astype(g.dtype), updates)
        length = _norm(pull)
        scale = sign * step_ratio * speed_limit * jnp.where(length > 0, 1 / jnp.where(length > 0, length, 1), 0)
        faster = jax.tree.map(lambda v, g: momentum * v + scale.astype(v.dtype) * g, state.velocity, pull)
        speed = _norm(faster)
        shrink = jnp.where(speed > speed_limit, speed_limit / jnp.where(speed > 0, speed, 1), 1)
        velocity = jax.tree.map(lambda v: v * shrink.astype(v.dtype), faster)
        return velocity, ClipUpState(optax.safe_increment(state.count), velocity)

    return optax.GradientTransformation(init, update)


def _largest(tree: Any) -> Any:
    found = [jnp.abs(leaf).max(initial=0) for leaf in jax.tree.leaves(tree)]
    return jnp.stack(found).max() if found else jnp.zeros([])


def _norm(tree: Any) -> Any:
    found = [jnp.square(leaf).sum() for leaf in jax.tree.leaves(tree)]
    return jnp.sqrt(jnp.stack(found).sum()) if found else jnp.zeros([])
