import json
import random

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from clipup.errors import FileFault, InvalidArgument
from clipup.export.safetensors import HEADER_LIMIT, decode, encode

TENSORS = {
    "weights": np.arange(12, dtype=np.float32).reshape(3, 4),
    "count": np.array(7, dtype=np.int64),
    "empty": np.zeros((0, 5), dtype=np.float64),
    "flags": np.array([True, False, True]),
}
METADATA = {"format": "test", "note": 'Grüße "quoted" \n line'}


def with_header(header: object, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def test_what_is_written_is_read_back_with_its_types_and_shapes():
    loaded = decode(encode(TENSORS, METADATA))
    assert loaded.metadata == METADATA
    assert set(loaded.tensors) == set(TENSORS)
    for name, array in TENSORS.items():
        assert loaded.tensors[name].dtype == array.dtype
        assert loaded.tensors[name].shape == array.shape
        assert np.array_equal(loaded.tensors[name], array)


def test_equal_content_gives_equal_bytes_whatever_the_order():
    backwards = dict(reversed(TENSORS.items()))
    assert encode(backwards, dict(reversed(METADATA.items()))) == encode(TENSORS, METADATA)


def test_the_reference_library_reads_our_files(tmp_path):
    path = tmp_path / "ours.safetensors"
    path.write_bytes(encode(TENSORS, METADATA))
    loaded = safetensors.numpy.load_file(path)
    for name, array in TENSORS.items():
        assert np.array_equal(loaded[name], array) and loaded[name].dtype == array.dtype
    with safetensors.safe_open(path, "numpy") as opened:
        metadata = opened.metadata()
    assert metadata["note"] == METADATA["note"]


def test_we_read_the_reference_librarys_files(tmp_path):
    path = tmp_path / "theirs.safetensors"
    safetensors.numpy.save_file(TENSORS, path, metadata=METADATA)
    loaded = decode(path.read_bytes(), require_digest=False)
    assert loaded.metadata == METADATA
    for name, array in TENSORS.items():
        assert np.array_equal(loaded.tensors[name], array) and loaded.tensors[name].dtype == array.dtype
    with pytest.raises(FileFault, match="no digest"):
        decode(path.read_bytes())


def test_a_change_of_any_single_byte_is_noticed():
    data = encode(TENSORS, METADATA)
    generator = random.Random(1)
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1 << generator.randrange(8)
        with pytest.raises(FileFault):
            decode(bytes(damaged))


def test_every_way_of_cutting_a_file_short_is_noticed():
    data = encode(TENSORS, METADATA)
    for length in range(len(data)):
        with pytest.raises(FileFault):
            decode(data[:length])
    with pytest.raises(FileFault):
        decode(data + b"\0")


F32 = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "too few"),
        ((HEADER_LIMIT + 1).to_bytes(8, "little") + b"{}" * HEADER_LIMIT, "claims"),
        (with_header(b"[" * 100_000), "not a JSON object"),
        (with_header(b'{"a": ' + b"[" * 100_000), "not valid JSON"),
        (with_header(b'{"a": ' + b"[" * 90 + b"]" * 90 + b"}"), "nested more than"),
        (with_header(b'{"a": 1' + b"0" * 5000 + b"}"), "needs exactly dtype"),
        (with_header(b"{\xff\xff\xff"), "not valid JSON"),
        (with_header({"a": {"dtype": "F32", "shape": [0, 2**62], "data_offsets": [0, 0]}}), "cannot have the shape"),
        (with_header([1, 2]), "not a JSON object"),
        (with_header(b'{"a":{},"a":{}}'), "occurs twice"),
        (with_header({"__metadata__": {"a": 1}}), "not text"),
        (with_header({"__metadata__": [1]}), "not a JSON object"),
        (with_header({"a": {"dtype": "F32", "shape": [1]}}), "exactly"),
        (with_header({"a": {**F32, "extra": 1}}, b"\0" * 4), "exactly"),
        (with_header({"a": {**F32, "dtype": "object"}}, b"\0" * 4), "dtype"),
        (with_header({"a": {**F32, "dtype": ["F32"]}}, b"\0" * 4), "dtype"),
        (with_header({"a": {**F32, "shape": [-1]}}, b"\0" * 4), "whole number"),
        (with_header({"a": {**F32, "shape": [True]}}, b"\0" * 4), "whole number"),
        (with_header({"a": {**F32, "shape": [1.0]}}, b"\0" * 4), "whole number"),
        (with_header({"a": {**F32, "shape": 1}}, b"\0" * 4), "not a list"),
        (with_header({"a": {**F32, "shape": [1] * 33}}, b"\0" * 4), "dimensions"),
        (with_header({"a": {**F32, "shape": [2**40, 2**40]}}, b"\0" * 4), "does not fit"),
        (with_header({"a": {**F32, "data_offsets": [4, 0]}}, b"\0" * 4), "does not fit"),
        (with_header({"a": {**F32, "data_offsets": [4, 8]}}, b"\0" * 8), "starts at"),
        (with_header({"a": F32, "b": F32}, b"\0" * 4), "starts at"),
        (with_header({"a": F32}, b"\0" * 3), "cut short"),
        (with_header({"a": F32}, b"\0" * 5), "cut short"),
        (with_header({"a": {"dtype": "BOOL", "shape": [1], "data_offsets": [0, 1]}}, b"\7"), "neither"),
    ],
)
def test_malformed_files_are_refused_in_one_line(data, words):
    with pytest.raises(FileFault, match=words) as caught:
        decode(data, require_digest=False)
    assert "\n" not in str(caught.value)


def test_what_the_format_cannot_hold_is_refused_before_anything_is_written():
    with pytest.raises(InvalidArgument, match="dtype"):
        encode({"a": np.array(["text"])}, {})
    with pytest.raises(InvalidArgument, match="digest"):
        encode({}, {"sha256": "mine"})
    with pytest.raises(InvalidArgument, match="text"):
        encode({}, {"a": 1})  # type: ignore[dict-item]


def test_big_endian_and_strided_arrays_keep_their_values():
    array = np.arange(20, dtype=">f4").reshape(4, 5)[::2, ::-1]
    assert np.array_equal(decode(encode({"a": array}, {})).tensors["a"], array)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_never_raise_anything_but_a_file_fault(data):
    for candidate in (data, with_header(data, data)):
        with pytest.raises(FileFault):
            decode(candidate)
