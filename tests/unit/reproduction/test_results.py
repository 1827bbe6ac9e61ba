import contextlib
import re
from pathlib import Path

import pytest

from clipup.errors import FileFault
from clipup.reproduction.page import build_page
from clipup.reproduction.results import decode, encode, read_results
from tests.unit.reproduction.conftest import MakeResults, run_result


def test_results_survive_being_written_and_read(make_results: MakeResults) -> None:
    results = make_results(
        "walker2d", {"clipup": [run_result(1, 250.0, speeds=(0.1, 0.2))]}, changes={"population": "4"}
    )
    assert decode(encode(results)) == results


def test_numbers_are_rounded_once_and_for_all(make_results: MakeResults) -> None:
    once = decode(encode(make_results("walker2d", {"clipup": [run_result(1, 123.456789012)]})))
    assert once.groups[0].runs[0].score == 123.457
    assert decode(encode(once)) == once


def test_a_list_of_numbers_takes_one_line(make_results: MakeResults) -> None:
    text = encode(make_results("walker2d", {"clipup": [run_result(1, 4.0)]})).decode()
    assert '"scores": [ 1.0, 2.0, 4.0 ]' in text


def test_interactions_to_a_threshold_are_those_of_the_first_evaluation_that_reaches_it() -> None:
    run = run_result(1, 100.0)
    assert (run.interactions_to(50.0), run.interactions_to(51.0), run.interactions_to(101.0)) == (2000, 4000, None)


@pytest.mark.parametrize("number", ["10000000000000000000", "-1e999", "1" * 400, "1e308", "-9", "null", "true", "[]"])
def test_any_number_of_a_result_may_be_forged_and_makes_a_page_or_one_line(
    number: str, make_results: MakeResults, tmp_path: Path
) -> None:
    text = encode(make_results("walker2d", {"clipup": [run_result(1, 4.0, speeds=(0.1, 0.2))]})).decode()
    places = [match.span() for match in re.finditer(r"(?<=[ :\[])-?\d[\d.e+-]*(?=[,\s\]}])", text)]
    assert len(places) > 10
    for begin, end in places:
        (tmp_path / "walker2d.json").write_text(text[:begin] + number + text[end:])
        with contextlib.suppress(FileFault):
            build_page(tmp_path, tmp_path / "page.md")


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"nonsense", b'{"format": 1}', b'{"format": 99}', b"\xff\x00"])
def test_a_file_that_is_no_result_is_refused_in_one_line(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "walker2d.json"
    path.write_bytes(data)
    with pytest.raises(FileFault, match=r"walker2d\.json"):
        read_results(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileFault, match="cannot be read"):
        read_results(tmp_path / "nothing.json")
