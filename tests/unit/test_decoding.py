"""JSON and TOML from someone else: within bounds, or one line."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clipup.decoding import CONFIG, LINE, STATUS, WORDS, FileLimits, decode_json, decode_object, decode_toml
from clipup.errors import FileFault, printable

BAD_JSON = [
    b"", b"{", b"nonsense", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 100_000, b"[" * 50 + b"]" * 50, b"{}" * 2,
    b" " * (LINE.size + 1), b'"\\ud800', b"[" + b"1," * 5000 + b"1]",
]  # fmt: skip


@pytest.mark.parametrize("data", BAD_JSON, ids=range(len(BAD_JSON)))
def test_what_is_beyond_its_bounds_is_one_line(data: bytes) -> None:
    with pytest.raises(FileFault) as caught:
        decode_json(data, "file", LINE)
    assert str(caught.value).startswith("file: ") and "\n" not in str(caught.value) and len(str(caught.value)) < 200


def test_numbers_of_any_length_become_numbers_that_can_be_computed_with() -> None:
    found = decode_object(
        f'{{"a": 1{"0" * 400}, "b": -{"9" * 5000}, "c": 18446744073709551615, "d": 1e999}}', "x", LINE
    )
    assert found == {"a": math.inf, "b": -math.inf, "c": 2**64 - 1, "d": math.inf}


@given(st.recursive(st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(), st.lists))
def test_what_is_within_its_bounds_is_decoded_as_python_does(value: object) -> None:
    import json

    try:
        assert decode_json(json.dumps(value), "x", FileLimits(size=10**6, depth=8)) == value
    except FileFault as fault:
        assert "deep" in str(fault)


@given(st.binary(max_size=300))
def test_no_bytes_raise_anything_but_a_file_fault(data: bytes) -> None:
    for decode in (lambda: decode_json(data, "x", STATUS), lambda: decode_toml(data, "x")):
        try:
            decode()
        except FileFault as fault:
            assert "\n" not in str(fault)


BAD_TOML = [
    b"a = " + b"[" * 20_000, b"a" + b".a" * 15_000 + b" = 1", b"a = 1" + b"0" * 400, b"x" * (CONFIG.size + 1),
    b"a = [" + b"1," * 5000 + b"]", b"a.b = 1\n" * 100, b"\xff", b"[" + b"a." * 10_000 + b"a]",
    b"".join(b"[a%d.b.c.d.e.f.g]\n" % number for number in range(2000)),
]  # fmt: skip


@pytest.mark.parametrize("data", BAD_TOML, ids=range(len(BAD_TOML)))
def test_a_hostile_configuration_is_refused_in_seconds(data: bytes) -> None:
    begun = time.monotonic()
    with pytest.raises(FileFault) as caught:
        decode_toml(data, "file")
    assert "\n" not in str(caught.value) and time.monotonic() - begun < 30


def test_a_name_that_occurs_twice_is_refused_where_it_matters() -> None:
    assert decode_object('{"a": 1, "a": 2}', "x", WORDS) == {"a": 2}
    with pytest.raises(FileFault, match="occurs twice"):
        decode_object('{"a": 1, "a": 2}', "x", WORDS, repeated_names=False)


@given(st.text())
def test_whatever_is_shown_drives_no_terminal(text: str) -> None:
    shown = printable(text)
    assert not any(ord(sign) < 32 or 127 <= ord(sign) < 160 or sign in "\u202e\u2066\u2028" for sign in shown)
    assert "\x1b" not in str(FileFault(text)) and str(FileFault(text)).count("\n") == 0
    assert printable(text, lines=True).count("\n") == text.count("\n")
    shown.encode("utf-8")
