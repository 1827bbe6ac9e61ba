"""ClipUp for PyTorch: a `torch.optim.Optimizer`. It needs ``pip install 'clipup[torch]'``."""

# pyright: basic, reportPrivateImportUsage=false, reportAttributeAccessIssue=false, reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from clipup.errors import InvalidArgument, MissingDependency
from clipup.optimizers import MOMENTUM, STEP_RATIO
from clipup.optimizers.protocol import check_decay, check_positive

try:
    import torch
    from torch import Tensor
except ImportError as error:
    raise MissingDependency.of("torch", extra="torch") from error

__all__ = ["ClipUp"]


class ClipUp(torch.optim.Optimizer):
    """ClipUp in PyTorch: momentum over the normalized gradient of all parameters, with a cap on the step.

    The recursion is that of :class:`clipup.ClipUp`, with the parameters of all groups as one vector::

        v' = m * v - a * g / |g|            (+ with `maximize`)
        v  = v' * min(1, v_max / |v'|)
        p  = p + v

    ========  ========================  ==============================================================
    symbol    key of a group            meaning
    ========  ========================  ==============================================================
    v_max     ``lr``                    longest possible step of all parameters together: the one number to tune
    a         ``step_ratio * lr``       length of the pull of each gradient
    m         ``momentum``              share of the velocity that survives a step
    ========  ========================  ==============================================================

    Parameters
    ----------
    params
        Parameters, or groups of them. A group may have its own `lr`, `step_ratio`, `momentum` and `maximize`.
    lr : float or Tensor
        The longest step. It is called `lr` so that every scheduler finds it. A scheduler that halves it halves the
        pull of a gradient too.
    step_ratio, momentum : float
        As in the paper: 0.5 and 0.9.
    maximize : bool
        Ascend instead of descend.
    foreach : bool or None
        Use torch's grouped kernels. None means: on anything but a CPU.
    per_group : bool
        Normalize and clip each group on its own, instead of all groups together.

    Notes
    -----
    Without `per_group`, groups with different `lr` share one norm in which lengths are measured in units of the group's
    own `lr`. With equal `lr` this is the plain rule. A gradient of zero does not pull. As elsewhere in PyTorch, a
    gradient that is not finite is not refused, and spoils the parameters.

    >>> parameter = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
    >>> optimizer = ClipUp([parameter], lr=1.0)
    >>> parameter.square().sum().backward()
    >>> optimizer.step()
    >>> parameter.data
    tensor([2.7000, 3.6000])
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor,
        step_ratio: float = STEP_RATIO,
        momentum: float = MOMENTUM,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        per_group: bool = False,
    ) -> None:
        self.per_group = bool(per_group)
        defaults = {
            "lr": lr,
            "step_ratio": step_ratio,
            "momentum": momentum,
            "maximize": maximize,
            "foreach": foreach,
        }
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group, or refuse it: its numbers follow the rules of :class:`clipup.ClipUp`."""
        merged = {**self.defaults, **param_group}
        lr = merged["lr"]
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise InvalidArgument(f"lr must be one number, got a tensor of shape {tuple(lr.shape)}")
        check_positive("lr", lr.item() if isinstance(lr, Tensor) else lr)
        check_positive("step_ratio", merged["step_ratio"])
        check_decay("momentum", merged["momentum"])
        super().add_param_group(param_group)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore an optimizer that was copied or pickled by its owner."""
        super().__setstate__(state)
        self.per_group = getattr(self, "per_group", False)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make one step with the gradients that the parameters hold; return the closure's loss, if there is one."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if self.per_group:
            for group in self.param_groups:
                self._step([group])
        else:
            self._step(self.param_groups)
        return loss

    def _step(self, groups: Sequence[dict[str, Any]]) -> None:
        parts = [_Part(group, self.state) for group in groups]
        parts = [part for part in parts if part.gradients]
        if not parts:
            return
        # Divided by the largest entry first, so that no square under- or overflows at extreme scales of the loss.
        largest = _largest(part.largest() for part in parts)
        one = torch.ones_like(largest)
        divisor = torch.where(largest > 0, largest, one)
        pulls = [part.divided(divisor) for part in parts]
        length = _norm(part.length(pull) for part, pull in zip(parts, pulls, strict=True))
        factor = torch.where(length > 0, 1 / torch.where(length > 0, length, one), torch.zeros_like(length))
        for part, pull in zip(parts, pulls, strict=True):
            part.accelerate(pull, factor)
        # In units of each group's own lr: the cap is 1.
        speed = _norm(part.length(part.velocities) / part.lr for part in parts)
        shrink = torch.where(speed > 1, 1 / speed, torch.ones_like(speed))
        for part in parts:
            part.move(shrink)


class _Part:
    """The parameters of one group that have a gradient, with their velocities."""

    def __init__(self, group: dict[str, Any], state: Any) -> None:
        self.lr = group["lr"]
        self._step_size = group["step_ratio"] * self.lr
        self._momentum = group["momentum"]
        self._sign = 1.0 if group["maximize"] else -1.0
        self._parameters: list[Tensor] = []
        self.gradients: list[Tensor] = []
        self.velocities: list[Tensor] = []
        for parameter in group["params"]:
            if parameter.grad is None or not parameter.numel():
                continue
            if parameter.grad.is_sparse or parameter.is_complex():
                raise InvalidArgument("ClipUp takes dense gradients of real parameters, got a sparse or complex one")
            own = state[parameter]
            if "velocity" not in own:
                own["velocity"] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
            self._parameters.append(parameter)
            self.gradients.append(parameter.grad)
            self.velocities.append(own["velocity"])
        foreach = group["foreach"]
        self._foreach = any(p.device.type != "cpu" for p in self._parameters) if foreach is None else foreach

    def largest(self) -> Tensor:
        if self._foreach:
            return torch.stack(list(torch._foreach_norm(self.gradients, torch.inf))).max()
        return torch.stack([gradient.abs().max() for gradient in self.gradients]).max()

    def divided(self, divisor: Tensor) -> list[Tensor]:
        if self._foreach:
            return list(torch._foreach_div(self.gradients, divisor))
        return [gradient / divisor for gradient in self.gradients]

    def length(self, tensors: list[Tensor]) -> Tensor:
        if self._foreach:
            return torch.stack(list(torch._foreach_norm(tensors))).norm()
        return torch.stack([torch.linalg.vector_norm(tensor) for tensor in tensors]).norm()

    def accelerate(self, pulls: list[Tensor], factor: Tensor) -> None:
        scale = self._sign * self._step_size * factor
        if self._foreach:
            torch._foreach_mul_(self.velocities, self._momentum)
            torch._foreach_mul_(pulls, scale)
            torch._foreach_add_(self.velocities, pulls)
            return
        for velocity, pull in zip(self.velocities, pulls, strict=True):
            velocity.mul_(self._momentum).add_(pull * scale)

    def move(self, shrink: Tensor) -> None:
        if self._foreach:
            torch._foreach_mul_(self.velocities, shrink)
            torch._foreach_add_(self._parameters, self.velocities)
            return
        for parameter, velocity in zip(self._parameters, self.velocities, strict=True):
            parameter.add_(velocity.mul_(shrink))


def _largest(values: Iterable[Tensor]) -> Tensor:
    return torch.stack(_together(values)).max()


def _norm(lengths: Iterable[Tensor]) -> Tensor:
    return torch.stack(_together(lengths)).norm()


def _together(values: Iterable[Tensor]) -> list[Tensor]:
    """Return the numbers of all groups on one device, in the widest of their types."""
    found = list(values)
    kind = found[0].dtype
    for value in found[1:]:
        kind = torch.promote_types(kind, value.dtype)
    return [value.to(device=found[0].device, dtype=kind) for value in found]
