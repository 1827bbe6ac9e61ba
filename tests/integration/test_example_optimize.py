import importlib.util
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "optimize.py"


@pytest.fixture
def example():
    specification = importlib.util.spec_from_file_location("example_optimize", EXAMPLE)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize("function", ["sphere", "rosenbrock", "rastrigin"])
def test_it_improves_every_function_and_draws_text_where_matplotlib_is_missing(
    example, function, tmp_path, monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = example.main(
        ["--function", function, "--dimension", "10", "--generations", "30", "--plot", str(tmp_path / "plot.png")]
    )
    assert result.history[-1].mean < result.history[0].mean
    printed = capsys.readouterr().out
    assert "generation   30/30" in printed
    assert "█" in printed
    assert list(tmp_path.iterdir()) == []


def test_it_writes_a_picture_where_matplotlib_is_installed(example, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "plot.png"
    example.main(["--dimension", "4", "--generations", "12", "--plot", str(picture)])
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"plot: {picture}" in capsys.readouterr().out


def test_a_bad_argument_ends_with_one_line_and_code_2(example, capsys):
    with pytest.raises(SystemExit) as caught:
        example.main(["--population-size", "3"])
    assert caught.value.code == 2
    assert "population_size must be an even number of at least 2" in capsys.readouterr().err
