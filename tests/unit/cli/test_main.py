import json
import subprocess
import sys

import pytest

from clipup.cli.arguments import take_env_options
from clipup.cli.main import main
from clipup.cli.registry import COMMANDS
from clipup.errors import InvalidArgument


def test_help_lists_every_command_and_each_explains_itself_with_examples(capsys):
    assert main(["--help"]) == 0
    overview = capsys.readouterr().out
    for command in COMMANDS:
        assert f"  {command} " in overview
    for name in ("train", "resume", "evaluate", "record", "export", "envs", "runs", "bench"):
        with pytest.raises(SystemExit) as ended:
            main([name, "--help"])
        assert ended.value.code == 0
        text = capsys.readouterr().out
        assert "examples:" in text and f"clipup {name}" in text


def test_train_has_a_flag_for_every_setting(capsys):
    from clipup.runs.config import settings

    with pytest.raises(SystemExit):
        main(["train", "--help"])
    text = capsys.readouterr().out
    for name in settings():
        if name not in ("env", "env_options"):
            assert "--" + name.replace("_", "-") in text
    assert "(default: 0.05)" in text and "--env.KEY" in text


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["trian"], "did you mean 'train'"),
        (["train", "CartPole-v1", "--max-sped", "1"], "did you mean '--max-speed'"),
        (["train", "CartPole-v1", "extra"], "unexpected argument 'extra'"),
        (["train", "CartPole-v1", "--max-speed"], "expected one argument"),
        (["train", "CartPole-v1", "--max-speed", "fast"], "max_speed must be a number, got 'fast'"),
        (["train", "CartPole-v1", "--population", "-4"], "at least 2"),
        (["train", "CartPole-v1", "--max-speed", "inf"], "max_speed must be a finite number, got inf"),
        (["train", "CartPole-v1", "--reward-terms", "1"], "reward_terms name term 1"),
        (["train", "Walker2d-v2"], "Walker2d-v2"),
        (["train", "CartPole-v1", "--optimizer", "sgd"], "one of clipup, adam, noclip"),
        (["train", "CartPole-v1", "--env."], "needs a name"),
        (["train", "CartPole-v1", "--env.x"], "needs a value"),
        (["train", "CartPole-v1", "--policy", "mlp:a"], "sizes of layers"),
        (["train", "CartPole-v1", "--preset", "none", "--config", "missing.toml"], "missing.toml"),
        (["train", "CartPol-v1", "--run", "x"], "did you mean CartPole-v1"),
        (["train", "no_such_module:Env-v0", "--run", "x"], "no_such_module"),
        (["train", ""], "no environment"),
        (["train"], "no environment given"),
        (["resume", "nowhere"], "no such run"),
        (["resume"], "RUN"),
        (["evaluate", "nowhere"], "cannot be read"),
        (["evaluate", "nowhere", "--episodes", "0"], "at least 1"),
        (["evaluate", "nowhere", "--seed", "-1"], "2**63"),
        (["export", "nowhere", "-o", "x.onnx"], "cannot be read"),
        (["record", "nowhere"], "-o"),
        (["envs", "Wlaker2d-v4"], "did you mean Walker2d-v4"),
        (["runs", "nowhere"], "no such directory"),
        (["report", "nowhere", "neither"], "no such directory"),
        (["diagnose", "nowhere"], "no such directory"),
        (["tune", "CartPol-v1"], "did you mean CartPole-v1"),
        (["tune", "CartPole-v1", "--generations", "1"], "at least 2, got 1"),
        (["report", "."], "no run in there"),
        (["diagnose", "."], "no run in there"),
        (["report", __file__], "no such directory"),
        (["reproduce", "--page", "page.md", "--results", "."], "contains no result file"),
    ],
)
def test_whatever_is_wrong_is_one_line_and_exit_code_2(words, expected, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    # A busy machine may say before it that its workers take long to start.
    (line,) = [line for line in captured.err.splitlines() if not line.startswith("no worker is ready after ")]
    assert line.startswith("clipup: ") and expected in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seeds", [[], ["--seeds", "2"]])
def test_what_is_in_the_way_of_runs_is_named_before_the_task_is_looked_at(seeds, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["train", "no_such_module:Env-v0", *seeds]  # the task would be refused next
    (tmp_path / "runs").touch()
    assert main(words) == 2
    (tmp_path / "runs").unlink()
    (tmp_path / "runs").symlink_to("nowhere")
    assert main(words) == 2
    line = "clipup: runs already exists and is not a directory; choose another --run\n"
    assert capsys.readouterr().err == line + line


def test_the_standard_deviations_can_be_kept_and_their_bound_taken_away(capsys):
    words = ["train", "CartPole-v1", "--stdev-learning-rate", "0", "--stdev-max-change", "none", "--dry-run"]
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "stdev_learning_rate = 0.0" in text and 'stdev_max_change = "none"' in text


def test_experiments_are_listed_for_programs_too(capsys):
    assert main(["reproduce", "--json"]) == 0
    listed = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)["experiments"]}
    assert listed["walker2d"]["groups"] == ["clipup", "adam"] and listed["walker2d"]["runs"] == 30


def test_a_malformed_configuration_file_is_one_line(capsys, tmp_path):
    path = tmp_path / "bad.toml"
    for content, expected in (("env = ", "not valid TOML"), ('env = "CartPole-v1"\npopulaton = 3', "'population'")):
        path.write_text(content)
        assert main(["train", "--config", str(path)]) == 2
        captured = capsys.readouterr()
        assert expected in captured.err and "bad.toml" in captured.err and len(captured.err.splitlines()) == 1


def test_the_resolved_configuration_can_be_looked_at(capsys):
    assert main(["train", "Walker2d-v4", "--dry-run", "--seed", "7", "--env.ctrl_cost_weight", "0.5"]) == 0
    text = capsys.readouterr().out
    assert "max_speed = 0.015" in text and "seed = 7" in text and "ctrl_cost_weight = 0.5" in text


def test_environments_are_listed_with_their_engines(capsys):
    assert main(["envs", "walker2d-v?", "--json"]) == 0
    rows = {row["env"]: row for row in json.loads(capsys.readouterr().out)["envs"]}
    assert rows["Walker2d-v4"] == {
        "env": "Walker2d-v4", "engine": "compiled", "engines": ["compiled", "envpool", "gymnasium"],
        "preset": "walker2d", "observation": "17 numbers", "action": "6 numbers", "refusal": None, "note": None,
    }  # fmt: skip
    assert "Walker2d-v2" not in rows
    assert main(["envs", "humanoid-v4"]) == 0
    assert "note: the last 84 inputs of Humanoid-v4 are contact forces" in capsys.readouterr().out
    assert main(["envs", "bullet"]) == 0
    assert "gymnasium" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("pattern", "listed", "refused"),
    [("walker2d-v?", "Walker2d-v4", "Walker2d-v2"), ("MyoHandAirplaneF*", "MyoHandAirplaneFixed-v0", "")],
)
def test_only_what_can_be_trained_on_is_listed_unless_all_is_asked_for(
    capsys: pytest.CaptureFixture[str], pattern: str, listed: str, refused: str
) -> None:
    assert main(["envs", pattern]) == 0
    short = capsys.readouterr().out
    assert main(["envs", pattern, "--all"]) == 0
    whole = capsys.readouterr().out
    assert listed in short and listed in whole
    assert not refused or (f"{refused} " not in short and f"{refused} " in whole and "--all says why" in short)
    assert ("starts the same whatever the seed" in short) is ("Myo" in listed)


def test_a_file_never_causes_an_import(tmp_path, capsys, monkeypatch):
    (tmp_path / "evil_module.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    config = tmp_path / "config.toml"
    config.write_text('env = "evil_module:Env-v0"\n')
    for words in (["train", "--config", str(config)], ["resume", str(tmp_path)]):
        assert main(words) == 2
        assert "--import evil_module" in capsys.readouterr().err
    assert "evil_module" not in sys.modules
    import numpy as np

    from clipup.export.policy import PolicyTask, encode_policy
    from clipup.policies import Actions, Network, Policy

    policy = Policy(Network(2, 1), np.zeros(3), None, Actions("box", 1, (-1.0,), (1.0,), (1,)))
    path = tmp_path / "policy.safetensors"
    path.write_bytes(encode_policy(policy, PolicyTask("evil_module:Env-v0")))
    for words in (["evaluate", str(path)], ["record", str(path), "-o", str(tmp_path / "x.gif")]):
        assert main(words) == 2
        assert "--import evil_module" in capsys.readouterr().err
    assert "evil_module" not in sys.modules


def test_options_of_the_environment_are_taken_out():
    words = ["A", "--env.x=1", "--seed", "2", "--env.y", "-3"]
    assert take_env_options(words) == (["A", "--seed", "2"], {"x": "1", "y": "-3"})
    with pytest.raises(InvalidArgument):
        take_env_options(["--env.y"])


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from clipup.cli import main; main(['--help']); "
        "heavy = {'envpool', 'gymnasium', 'rich', 'onnx', 'ray', 'mujoco', 'imageio', 'tensorboard', 'optuna', "
        "'matplotlib'} & set(sys.modules); sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["", ".", "/", "..", "a\0b", "missing/page.html"])
@pytest.mark.parametrize("command", ["report", "export", "record"])
def test_an_output_that_cannot_be_one_is_one_line(name, command, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "run"
    assert main(["train", "CartPole-v1", "--population", "4", "--generations", "1", "--run", "run", "--quiet"]) == 0
    capsys.readouterr()
    assert main([command, str(run), "-o", name]) == 2
    error = capsys.readouterr().err
    assert error.startswith("clipup: ") and error.count("\n") == 1


@pytest.mark.parametrize("words", [["runs", "a\0b"], ["resume", "a\0b"], ["evaluate", "a\0b"], ["report", "a\0b"],
                                   ["train", "CartPole-v1", "--run", "a\0b"], ["train", "a\0b"],
                                   ["train", "CartPole-v1", "--config", "a\0b"],
                                   ["tune", "CartPole-v1", "--run", "a\0b"],
                                   ["diagnose", "a\0b"], ["reproduce", "--page", "a\0b"]])  # fmt: skip
def test_a_nul_byte_in_a_name_is_one_line(words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("clipup: ") and error.count("\n") == 1 and "\0" not in error


@pytest.mark.parametrize("redirection", [">&-", "2>&-", ">&- 2>&- <&-", ">/dev/full", "| true"])
@pytest.mark.parametrize("command", ["runs .", "envs CartPole-v1", "--help"])
def test_closed_and_full_outputs_end_without_a_traceback(redirection, command, tmp_path):
    words = f"{sys.executable} -m clipup {command} {redirection}"
    done = subprocess.run(["bash", "-c", words], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
    assert done.returncode in (0, 2)
