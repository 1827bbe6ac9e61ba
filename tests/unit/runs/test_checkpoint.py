import math

import numpy as np
import pytest

from clipup.errors import FileFault
from clipup.export.safetensors import decode, encode
from clipup.files import Directory
from clipup.runs.checkpoint import (
    Checkpoint,
    NewerFormat,
    checkpoint_name,
    decode_checkpoint,
    encode_checkpoint,
    list_checkpoints,
    newest_checkpoint,
    write_checkpoint,
)
from clipup.searches import PGPE


@pytest.fixture
def directory(tmp_path):
    with Directory(tmp_path) as found:
        yield found


def make(generation: int = 3) -> Checkpoint:
    search = PGPE(dimension=4, max_speed=0.1, seed=2**64 - 1)
    search.tell(np.arange(len(search.ask()), dtype=float))
    normalizer = {"count": np.array(7), "mean": np.arange(3.0), "m2": np.ones(3)}
    counters = {"total_interactions": 2**60, "best": -math.inf, "score": math.nan, "word": "ß"}
    return Checkpoint(generation, search.state_dict(), normalizer, counters)


def same(first: dict, second: dict) -> bool:
    return set(first) == set(second) and all(
        type(first[key]) is type(second[key]) and np.array_equal(first[key], second[key], equal_nan=key == "score")
        for key in first
    )


def accept(checkpoint: Checkpoint) -> None:
    return None


def test_every_value_comes_back_with_its_type_and_bits():
    saved = make()
    loaded = decode_checkpoint(encode_checkpoint(saved), "memory")
    assert loaded.generation == 3
    assert same(saved.search, loaded.search)
    assert same(saved.normalizer, loaded.normalizer)
    assert same(saved.counters, loaded.counters)
    PGPE(dimension=4, max_speed=0.1, seed=0).load_state_dict(loaded.search)


def test_equal_states_have_equal_bytes():
    assert encode_checkpoint(make()) == encode_checkpoint(make())


def test_the_newest_ones_are_kept(tmp_path, directory):
    for generation in range(1, 8):
        write_checkpoint(directory, make(generation), keep=3)
    assert [generation for generation, _ in list_checkpoints(directory)] == [7, 6, 5]


def test_going_on_from_an_older_one_does_not_throw_away_what_it_writes(tmp_path, directory):
    (tmp_path / checkpoint_name(90)).write_bytes(b"damaged")
    for generation in (4, 5, 6, 7):
        write_checkpoint(directory, make(generation), keep=2)
    assert [generation for generation, _ in list_checkpoints(directory)] == [90, 7, 6]


def test_the_newest_good_one_is_found_and_the_bad_ones_are_named(tmp_path, directory):
    warnings: list[str] = []
    assert newest_checkpoint(directory, accept, warnings.append) is None
    for generation in (1, 2, 3):
        write_checkpoint(directory, make(generation), keep=9)
    (tmp_path / checkpoint_name(4)).write_bytes(
        (tmp_path / checkpoint_name(3)).read_bytes()
    )  # a copy under another name
    path = tmp_path / checkpoint_name(3)
    path.write_bytes(path.read_bytes()[:-1])
    found = newest_checkpoint(directory, accept, warnings.append)
    assert found is not None and found.generation == 2
    assert len(warnings) == 2 and "00000004" in warnings[0] and "00000003" in warnings[1]
    refusing = newest_checkpoint(directory, lambda one: "no" if one.generation > 1 else None, warnings.append)
    assert refusing is not None and refusing.generation == 1


def test_when_all_are_bad_or_one_is_newer_the_search_ends(tmp_path, directory):
    (tmp_path / checkpoint_name(1)).write_bytes(b"")
    with pytest.raises(FileFault, match="nothing was changed"):
        newest_checkpoint(directory, accept, lambda text: None)
    write_checkpoint(directory, make(2), keep=9)
    file = decode(encode_checkpoint(make(3)))
    (tmp_path / checkpoint_name(3)).write_bytes(encode(file.tensors, {**file.metadata, "version": "2"}))
    with pytest.raises(NewerFormat, match="upgrade"):
        newest_checkpoint(directory, accept, lambda text: None)


@pytest.mark.parametrize(
    "metadata",
    [
        {"format": "clipup-policy"}, {"version": "0"}, {"version": "x"}, {"version": "١"}, {"state": "[]"},
        {"state": "{}"}, {"state": "null"}, {"generation": "many"}, {"state": "[" * 50_000},
    ],
)  # fmt: skip
def test_a_file_with_a_good_digest_and_wrong_content_is_refused(metadata):
    file = decode(encode_checkpoint(make()))
    with pytest.raises(FileFault) as caught:
        decode_checkpoint(encode(file.tensors, {**file.metadata, **metadata}), "file")
    assert "\n" not in str(caught.value)


def test_unfinished_files_are_cleaned_up(tmp_path, directory):
    (tmp_path / "generation-00000009.safetensors.partial").write_bytes(b"half")
    write_checkpoint(directory, make(1), keep=1)
    directory.clean_up()
    assert [path.name for path in tmp_path.iterdir()] == ["generation-00000001.safetensors"]


def test_two_hundred_random_corruptions_are_each_refused_in_one_line():
    data = encode_checkpoint(make())
    random = np.random.default_rng(0)
    for _ in range(200):
        damaged = bytearray(data)
        position = int(random.integers(len(data)))
        match int(random.integers(3)):
            case 0:
                damaged[position] ^= int(random.integers(1, 256))
            case 1:
                del damaged[position:]
            case _:
                damaged[position:position] = random.bytes(int(random.integers(1, 9)))
        with pytest.raises(FileFault) as caught:
            decode_checkpoint(bytes(damaged), "checkpoint")
        assert "\n" not in str(caught.value)
