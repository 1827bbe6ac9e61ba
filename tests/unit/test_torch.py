"""`clipup.torch.ClipUp` is our ClipUp, and a good citizen of torch."""

import copy

import numpy as np
import pytest

import clipup
from clipup.errors import InvalidArgument

torch = pytest.importorskip("torch", reason="torch is not installed; install it with: pip install 'clipup[torch]'")
ClipUp = pytest.importorskip("clipup.torch").ClipUp

SHAPES = [(3, 4), (5,), (), (0,), (2, 1, 3)]
each_kernel = pytest.mark.parametrize("foreach", [False, True, None])


def parameters(dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.nn.Parameter(torch.randn(shape, generator=generator, dtype=dtype)) for shape in SHAPES]


def flat(tensors):
    return np.concatenate([tensor.detach().numpy().astype(np.float64).ravel() for tensor in tensors])


def set_gradients(tensors, gradient):
    start = 0
    for tensor in tensors:
        part = np.asarray(gradient[start : start + tensor.numel()]).reshape(tuple(tensor.shape))
        tensor.grad = torch.tensor(part, dtype=tensor.dtype)
        start += tensor.numel()


def random_gradients(seed, steps, size):
    """Gradients of wildly different lengths, some of them zero."""
    random = np.random.default_rng(seed)
    for _ in range(steps):
        yield random.standard_normal(size) * random.choice([0.0, 1e-200, 1e-12, 1e-3, 1.0, 1e6, 1e200])


@each_kernel
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_it_takes_the_steps_of_our_clipup(foreach, maximize, seed):
    random = np.random.default_rng(100 + seed)
    lr, ratio, momentum = random.uniform(0.01, 3.0), random.uniform(0.05, 1.5), random.uniform(0.0, 0.99)
    ours = clipup.ClipUp(step_size=ratio * lr, max_speed=lr, momentum=momentum)
    own = parameters()
    theirs = ClipUp(own, lr, ratio, momentum, maximize=maximize, foreach=foreach)
    expected = flat(own)
    for gradient in random_gradients(seed, 40, expected.size):
        set_gradients(own, gradient)
        theirs.step()
        expected = expected + ours.ascent(gradient if maximize else -gradient)
        np.testing.assert_allclose(flat(own), expected, rtol=1e-12, atol=1e-12)


@each_kernel
def test_in_float32_it_does_so_to_rounding(foreach):
    ours, own = clipup.ClipUp(0.1, 0.2), parameters(torch.float32)
    theirs, expected = ClipUp(own, 0.2, foreach=foreach), flat(own)
    for gradient in np.random.default_rng(1).standard_normal((60, expected.size)):
        set_gradients(own, gradient)
        theirs.step()
        expected = expected + ours.ascent(-gradient)
    np.testing.assert_allclose(flat(own), expected, rtol=1e-5, atol=1e-5)


@each_kernel
def test_groups_are_one_vector_unless_asked_otherwise(foreach):
    together, apart = parameters(), parameters()
    one = ClipUp([{"params": together[:2]}, {"params": together[2:]}], 0.3, foreach=foreach)
    two = ClipUp([{"params": apart[:2]}, {"params": apart[2:]}], 0.3, foreach=foreach, per_group=True)
    ours, first, second = (clipup.ClipUp(0.15, 0.3) for _ in range(3))
    start, edge = flat(together), 17
    whole, parts = start.copy(), start.copy()
    for gradient in random_gradients(3, 30, start.size):
        for tensors, optimizer in ((together, one), (apart, two)):
            set_gradients(tensors, gradient)
            optimizer.step()
        whole += ours.ascent(-gradient)
        parts += np.concatenate([first.ascent(-gradient[:edge]), second.ascent(-gradient[edge:])])
    np.testing.assert_allclose(flat(together), whole, atol=1e-12)
    np.testing.assert_allclose(flat(apart), parts, atol=1e-12)


def test_a_group_with_its_own_lr_measures_lengths_in_it():
    scaled, plain = parameters(), parameters()
    with torch.no_grad():
        for tensor in scaled[2:]:
            tensor.mul_(10)
    one = ClipUp([{"params": scaled[:2]}, {"params": scaled[2:], "lr": 3.0}], 0.3)
    other = ClipUp(plain, 0.3)
    for gradient in random_gradients(3, 30, 24):
        # The same function of the scaled coordinates has a gradient that ClipUp's pull must not depend on.
        set_gradients(plain, gradient)
        set_gradients(scaled, gradient)
        one.step(), other.step()
    np.testing.assert_allclose(flat(scaled[:2]), flat(plain[:2]), atol=1e-12)
    np.testing.assert_allclose(flat(scaled[2:]), 10 * flat(plain[2:]), atol=1e-11)


@each_kernel
def test_parameters_without_a_gradient_stay(foreach):
    own = parameters()
    before = own[1].detach().clone()
    optimizer = ClipUp(own, 0.3, foreach=foreach)
    optimizer.step()
    set_gradients(own, np.ones(24))
    own[1].grad = None
    optimizer.step()
    assert torch.equal(own[1], before)
    assert 0.149 < np.linalg.norm(flat(own) - flat(parameters())) < 0.151


@each_kernel
def test_its_state_dict_goes_on_with_the_same_bits(foreach):
    own = parameters()
    optimizer = ClipUp(own, 0.3, foreach=foreach)
    gradients = list(random_gradients(5, 20, 24))
    for gradient in gradients[:10]:
        set_gradients(own, gradient)
        optimizer.step()
    copies = [torch.nn.Parameter(tensor.detach().clone()) for tensor in own]
    restored = ClipUp(copies, 9.9, foreach=foreach)
    restored.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for gradient in gradients[10:]:
        for tensors, each in ((own, optimizer), (copies, restored)):
            set_gradients(tensors, gradient)
            each.step()
    assert all(torch.equal(one, other) for one, other in zip(own, copies, strict=True))


def test_schedulers_change_the_longest_step():
    own = parameters()
    optimizer = ClipUp(own, 1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.1)
    for number in range(40):
        before = flat(own)
        set_gradients(own, np.ones(24))
        optimizer.step()
        scheduler.step()
        assert np.linalg.norm(flat(own) - before) <= 0.1 ** (number // 10) * (1 + 1e-9)
    own = parameters()
    optimizer = ClipUp(own, 1.0)
    cycle = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=8)  # it changes the momentum too
    for _ in range(7):
        set_gradients(own, np.ones(24))
        optimizer.step()
        cycle.step()


def test_a_closure_is_called_with_gradients_and_its_loss_returned():
    own = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
    optimizer = ClipUp([own], 1.0)

    def closure():
        optimizer.zero_grad()
        loss = own.square().sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 25.0
    assert optimizer.step(closure).item() < 25.0


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore")  # torch's own, while it compiles
def test_a_compiled_step_is_the_same(foreach, backend):
    plain, compiled = parameters(torch.float32), parameters(torch.float32)
    one, other = (ClipUp(tensors, torch.tensor(0.3), foreach=foreach) for tensors in (plain, compiled))
    torch.compiler.reset()  # what other tests compiled counts towards a limit
    step = torch.compile(other.step, backend=backend, fullgraph=True)
    for gradient in np.random.default_rng(1).standard_normal((6, 24)):
        set_gradients(plain, gradient)
        set_gradients(compiled, gradient)
        one.step()
        step()
    np.testing.assert_allclose(flat(compiled), flat(plain), rtol=1e-5, atol=1e-6)


def test_it_trains_a_network():
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    inputs = torch.randn(256, 2)
    wanted = (inputs[:, :1] * inputs[:, 1:]).sign()
    optimizer = ClipUp(network.parameters(), 0.1)
    losses = []
    for _ in range(300):
        optimizer.zero_grad()
        loss = (network(inputs) - wanted).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr": 0.0}, "lr must be a positive number, got 0.0"),
        ({"lr": float("nan")}, "lr must be a finite number"),
        ({"lr": torch.ones(2)}, "lr must be one number, got a tensor of shape"),
        ({"lr": 1.0, "step_ratio": -1.0}, "step_ratio must be a positive number"),
        ({"lr": 1.0, "momentum": 1.0}, "momentum must be at least 0 and less than 1"),
    ],
)
def test_numbers_that_break_a_rule_are_refused(settings, message):
    with pytest.raises(InvalidArgument, match=message):
        ClipUp(parameters(), **settings)
    with pytest.raises(InvalidArgument, match=message):
        ClipUp([{"params": parameters(), **settings}], lr=1.0)


def test_sparse_gradients_are_refused():
    embedding = torch.nn.Embedding(4, 2, sparse=True)
    embedding(torch.tensor([1])).sum().backward()
    with pytest.raises(InvalidArgument, match="dense gradients"):
        ClipUp(embedding.parameters(), 0.1).step()
