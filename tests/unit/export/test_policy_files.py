import json
import random
import sys

import numpy as np
import pytest

import clipup
from clipup.errors import ClipUpError, FileFault
from clipup.export.policy import PolicyTask, decode_policy, encode_policy, load_policy, read_policy
from clipup.export.safetensors import decode, encode
from clipup.policies import Actions, Network, Policy, Statistics

TASK = PolicyTask("Walker2d-v4", {"a": 1, "b": True, "c": "x", "d": 0.5}, "envpool", False, 12, 3456, 78.5)
BOX = Actions.box(np.full(3, -0.4, np.float32), np.array([0.4, np.inf, 2.0], np.float32))


def make(text: str = "mlp:5,4", actions: Actions = BOX, normalized: bool = True) -> Policy:
    network = Network.parse(text, 6, actions.size)
    generator = np.random.default_rng(1)
    statistics = Statistics(generator.normal(size=6), generator.uniform(0.5, 2, size=6)) if normalized else None
    return Policy(network, generator.normal(size=network.parameter_count), statistics, actions)


@pytest.mark.parametrize("text", ["linear", "linear-bias", "mlp:5", "mlp:5,4:relu"])
@pytest.mark.parametrize("actions", [BOX, Actions.discrete(3, start=-1)], ids=["box", "discrete"])
@pytest.mark.parametrize("normalized", [True, False])
def test_a_policy_acts_the_same_after_saving_and_loading(tmp_path, text, actions, normalized):
    policy = make(text, actions, normalized)
    path = tmp_path / "policy.safetensors"
    path.write_bytes(encode_policy(policy, TASK))
    loaded, task = read_policy(path)
    observations = np.random.default_rng(2).normal(size=(50, 6)) * 3
    assert np.array_equal(loaded(observations), policy(observations))
    assert np.array_equal(clipup.load_policy(path)(observations[0]), policy(observations[0]))
    assert task == TASK
    assert loaded.network == policy.network and loaded.actions == policy.actions
    assert encode_policy(loaded, task) == path.read_bytes()


def test_weights_lie_in_the_file_by_layer():
    policy = make("mlp:5")
    tensors = decode(encode_policy(policy, TASK)).tensors
    hidden = np.tanh(tensors["layers.0.weight"] @ np.ones(6, np.float32) + tensors["layers.0.bias"])
    output = tensors["layers.1.weight"] @ hidden + tensors["layers.1.bias"]
    expected = policy.network.forward(policy.parameters[None], np.ones((1, 6), np.float32))[0]
    assert np.allclose(output, expected, atol=1e-6)


def test_a_run_directory_stands_for_its_newest_policy(tmp_path):
    with pytest.raises(FileFault, match="finished a generation"):
        load_policy(tmp_path)
    (tmp_path / "policy.safetensors").write_bytes(encode_policy(make(), TASK))
    assert load_policy(tmp_path).network == make().network


def corruptions(data: bytes, number: int) -> bytes:
    """A random corruption: bits, runs of bytes, cuts, insertions, repetitions, swaps, a wrong header length."""
    generator = random.Random(number)
    changed = bytearray(data)
    kind = number % 8
    position, length = generator.randrange(len(data)), generator.randrange(1, 60)
    if kind == 0:
        changed[position] ^= 1 << generator.randrange(8)
    elif kind == 1:
        changed[position : position + length] = generator.randbytes(length)
    elif kind == 2:
        del changed[position:]
    elif kind == 3:
        changed[position:position] = generator.randbytes(length)
    elif kind == 4:
        del changed[position : position + length]
    elif kind == 5:
        changed[:8] = generator.choice([0, 1, 2**63, 2**64 - 1, len(data), generator.randrange(2**20)]).to_bytes(
            8, "little"
        )
    elif kind == 6:
        changed += changed[position:]
    else:
        changed[position : position + length] = bytes(length)
    return bytes(changed)


def test_two_hundred_random_corruptions_give_a_clear_error_and_import_nothing():
    data = encode_policy(make(), TASK)
    modules = set(sys.modules)
    for number in range(200):
        damaged = corruptions(data, number)
        if damaged == data:
            continue
        with pytest.raises(FileFault) as caught:
            decode_policy(damaged, "policy.safetensors")
        assert "\n" not in str(caught.value)
    assert set(sys.modules) == modules


HOSTILE = [
    *("", "null", "[]", "{}", "7", "[" * 20_000, '{"kind": "box"}', '{"env": "os:system"}'),
    '{"observation_size": 6, "action_size": 3, "hidden": [-1], "bias": true, "activation": "tanh"}',
    '{"observation_size": 6, "action_size": 3, "hidden": [9999999999999], "bias": true, "activation": "tanh"}',
    '{"observation_size": 1e9, "action_size": 3, "hidden": [], "bias": true, "activation": "tanh"}',
    '{"observation_size": 6, "action_size": 3, "hidden": "ab", "bias": 1, "activation": "__import__"}',
    '{"kind": "box", "size": 3, "shape": [3], "rescale": false, "start": 0, "dtype": "object"}',
    '{"kind": "box", "size": 3, "shape": [1000000000000], "rescale": false, "start": 0, "dtype": "float32"}',
    '{"kind": "discrete", "size": 3, "low": [], "high": [], "shape": [], "rescale": false, "start": 1, "dtype": "V8"}',
]


@pytest.mark.parametrize("name", ["network", "actions", "task", "format", "version"])
def test_hostile_content_behind_a_valid_digest_is_refused(name):
    file = decode(encode_policy(make(), TASK))
    for text in HOSTILE:
        with pytest.raises(FileFault) as caught:
            decode_policy(encode(file.tensors, {**file.metadata, name: text}), "file")
        assert "\n" not in str(caught.value)


def test_tensors_that_do_not_fit_are_refused():
    file = decode(encode_policy(make(), TASK))
    changes = [
        {"layers.0.weight": np.zeros((5, 7), np.float32)},
        {"layers.0.weight": np.zeros((5, 6), np.float64)},
        {"layers.0.weight": np.full((5, 6), np.nan, np.float32)},
        {"observation.stdev": np.zeros(6)},
        {"observation.stdev": np.full(6, np.inf)},
        {"action.low": np.zeros(2)},
        {"extra": np.zeros(2)},
    ]
    for change in changes:
        with pytest.raises(FileFault):
            decode_policy(encode({**file.tensors, **change}, file.metadata), "file")
    for missing in file.tensors:
        rest = {name: value for name, value in file.tensors.items() if name != missing}
        with pytest.raises(FileFault):
            decode_policy(encode(rest, file.metadata), "file")


def test_random_metadata_behind_a_valid_digest_never_raises_anything_else():
    file = decode(encode_policy(make(), TASK))
    generator = random.Random(5)
    values = [None, True, 0, -1, 3, 1.5, "x", [], {}, [1], "float32", 2**70, float("1e308")]
    for _ in range(400):
        name = generator.choice(["network", "actions", "task"])
        fields = json.loads(file.metadata[name])
        fields[generator.choice(list(fields))] = generator.choice(values)
        try:
            policy, _ = decode_policy(encode(file.tensors, {**file.metadata, name: json.dumps(fields)}), "file")
        except FileFault as fault:
            assert "\n" not in str(fault)
        else:
            policy(np.zeros(6))


def test_every_error_is_one_of_ours(tmp_path):
    with pytest.raises(ClipUpError, match="cannot be read"):
        load_policy(tmp_path / "missing.safetensors")
