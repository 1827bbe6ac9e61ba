import dataclasses
import os
import typing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clipup.errors import FileFault, InvalidArgument
from clipup.runs.config import CHANGEABLE, RunConfig, check_value, config_values, differences, identity
from clipup.runs.keywords import RunChanges, RunSettings
from clipup.runs.presets import preset_for, presets
from clipup.runs.resolve import make_config, parse_flag, resolve
from clipup.runs.toml import format_config, parse_value, read_toml
from clipup.searches import PGPE
from clipup.training.setup import make_search, make_task


def search_of(config: RunConfig, dimension: int) -> PGPE:
    search = make_search(config, dimension)
    assert isinstance(search, PGPE)
    return search


def test_the_typed_keywords_are_the_fields_of_the_configuration_with_their_types():
    fields = typing.get_type_hints(RunConfig)
    # These take more than a configuration holds: "+3", a path, None for a new seed, and a policy of one's own.
    wider = {"generations": str, "init": os.PathLike[str], "seed": type(None), "policy": object}
    fields |= {name: fields[name] | kind for name, kind in wider.items()}
    assert typing.get_type_hints(RunSettings) == {name: kind for name, kind in fields.items() if name != "env"}
    assert set(typing.get_type_hints(RunChanges)) == CHANGEABLE
    assert {
        *("generations", "total_interactions", "time_limit", "target_score", "stop", "patience"),
        *("workers", "cluster", "episode_timeout", "checkpoint_seconds", "keep_checkpoints"),
        "mixed_arithmetic",
        *("tensorboard", "wandb", "mlflow"),
    } == CHANGEABLE


def test_later_sources_win_over_earlier_ones(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text("population = 60\nmax_speed = 0.2\n")
    config, preset = resolve({"env": "LunarLanderContinuous-v3", "max_speed": 0.1}, file=file)
    assert preset is not None and preset.name == "lunar-lander"
    assert config.max_speed == 0.1  # flag
    assert config.population == 60  # file
    assert config.policy == "linear"  # preset
    assert config.momentum == 0.9  # default


def test_the_environment_may_come_from_the_file_and_its_options_are_merged_key_by_key(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text('env = "Ant-v4"\n[env_options]\na = 1\nb = 2\n')
    config, _ = resolve({"env_options": {"b": 3}}, file=file)
    assert config.env == "Ant-v4" and config.env_options == {"a": 1, "b": 3}


def test_a_task_of_a_preset_is_found_without_its_module():
    config, preset = resolve({"env": "HumanoidBulletEnv-v0"})
    assert config.env == "pybullet_envs_gymnasium:HumanoidBulletEnv-v0"
    assert preset is not None and preset.name == "humanoid-bullet"
    assert resolve({"env": "CartPole-v1"})[0].env == "CartPole-v1"


def test_the_papers_hyperparameters_are_the_presets():
    table = {
        "LunarLanderContinuous-v3": (200, None, None, 0.3, 4.5, 0.15, "linear", False, 50),
        "Walker2d-v4": (100, 800, 75_000, 0.015, 0.225, 0.0075, "linear-bias", True, 500),
        "Humanoid-v4": (200, 3200, 150_000, 0.015, 0.27, 0.0075, "linear-bias", True, 1000),
        "pybullet_envs_gymnasium:HumanoidBulletEnv-v0": (
            *(10_000, 80_000, 1_500_000, 0.15, 2.25, 0.075, "mlp:64", True, 1000),
        ),
    }
    for env, expected in table.items():
        config, _ = resolve({"env": env}, preset="humanoid-paper" if env == "Humanoid-v4" else "auto")
        search = search_of(config, 100)
        assert float((search.stdev.astype(float) ** 2).sum() ** 0.5) == pytest.approx(expected[4])
        optimizer = search.optimizer
        assert optimizer.step_size == pytest.approx(expected[5]) and optimizer.momentum == 0.9
        found = (config.population, config.population_max, config.interactions, config.max_speed)
        assert found == expected[:4]
        assert (config.policy, config.normalize, config.generations) == expected[6:]
        assert config.stdev_learning_rate == 0.1 and config.fitness_shaping == "centered-rank"


def test_the_humanoids_preset_is_the_papers_small_population_made_fast():
    names = ("auto", "humanoid-small", "humanoid-paper")
    fast, small, paper = (resolve({"env": "Humanoid-v4"}, preset=name)[0] for name in names)
    assert (small.population, small.population_max, small.interactions) == (80, 400, 60_000)
    assert differences(small, paper) == ["interactions", "population", "population_max"]
    changed = ["evaluate_every", "interactions", "max_speed", "physics", "population_max", "reward_cap"]
    assert differences(fast, small) == changed
    assert make_task(fast).physics is not None and make_task(fast).for_evaluation().physics is None
    assert make_task(fast).reward_cap == 1.0 and make_task(fast).for_evaluation().reward_cap is None


def test_alive_bonuses_are_taken_out_of_training():
    assert resolve({"env": "Walker2d-v4"})[0].reward_offset == -1.0
    assert resolve({"env": "Humanoid-v4"})[0].reward_offset == -5.0
    bullet = resolve({"env": "pybullet_envs_gymnasium:HumanoidBulletEnv-v0"})[0]
    task = make_task(bullet)
    assert task.reward_terms == (1, 2, 3, 4) and task.max_episode_steps == 200
    assert task.for_evaluation().reward_terms is None and task.for_evaluation().max_episode_steps is None


def test_every_preset_is_a_valid_configuration_and_no_task_has_two():
    tasks = [task for preset in presets().values() for task in preset.tasks]
    assert len(tasks) == len(set(tasks))
    for task in tasks:
        assert resolve({"env": task})[1] == preset_for(task)


def test_a_preset_can_be_named_for_another_task_or_switched_off():
    assert resolve({"env": "Hopper-v4"}, preset="walker2d")[0].population == 100
    assert resolve({"env": "Walker2d-v4"}, preset="none")[0].population == 200
    with pytest.raises(InvalidArgument, match="did you mean 'walker2d'"):
        resolve({"env": "Walker2d-v4"}, preset="walker")


def test_max_speed_moves_step_size_and_radius_with_it():
    config, _ = resolve({"env": "Humanoid-v4", "max_speed": 0.1})
    assert search_of(config, 9).optimizer.step_size == 0.05
    assert float(search_of(config, 9).stdev[0]) == pytest.approx(1.8 / 3)


def test_adam_starts_from_the_speed_that_the_paper_tuned_it_to():
    config, _ = resolve({"env": "Humanoid-v4", "optimizer": "adam"}, preset="humanoid-small")
    assert search_of(config, 6409).optimizer.step_size == pytest.approx(6e-4, rel=0.1)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"max_sped": 1.0}, "did you mean 'max_speed'"),
        ({"max_speed": "fast"}, "max_speed must be a number, got 'fast'"),
        ({"max_speed": 0.0}, "above 0"),
        ({"max_speed": 10**400}, "below 2\\*\\*63"),
        ({"population": 10**400}, "below 2\\*\\*63"),
        ({"population": 10**18}, "at most"),
        ({"max_speed": float("nan")}, "finite"),
        ({"max_speed": True}, "number"),
        ({"population": 10.5}, "whole number"),
        ({"population": 7}, "even"),
        ({"population_max": 10, "interactions": 5}, "at least population"),
        ({"population_max": 1000}, "set interactions too"),
        ({"normalize": "yes"}, "true or false"),
        ({"optimizer": "adm"}, "did you mean 'adam'"),
        ({"seed": -1}, "at least 0"),
        ({"env_options": 3}, "table"),
        ({"env_options": {"a": [1]}}, "env_options may hold"),
        ({"time_limit": "5x"}, "90s, 30m, 8h"),
        ({"generations": None}, "nothing would end the run"),
        ({"lanes": 3, "episode_seeds": "pair"}, "even"),
        ({"env": ""}, "no environment"),
    ],
)
def test_wrong_values_are_refused_in_one_line(values, words):
    with pytest.raises(InvalidArgument, match=words) as caught:
        resolve({"env": "CartPole-v1", **values})
    assert "\n" not in str(caught.value)


def test_a_wrong_value_in_a_file_is_told_with_the_files_name(tmp_path):
    (tmp_path / "my.toml").write_text("populaton = 3\n")
    with pytest.raises(InvalidArgument, match=r"my\.toml: unknown setting 'populaton'; did you mean 'population'"):
        resolve({"env": "CartPole-v1"}, file=tmp_path / "my.toml")


def test_a_module_or_a_cluster_that_only_a_file_names_is_refused(tmp_path):
    file = tmp_path / "my.toml"
    file.write_text('env = "evil_module:Env-v0"\n')
    with pytest.raises(InvalidArgument, match="--import evil_module"):
        resolve({}, file=file)
    assert resolve({}, file=file, imports=["evil_module"])[0].env == "evil_module:Env-v0"
    assert resolve({"env": "evil_module:Env-v0"}, file=file)[0].env == "evil_module:Env-v0"
    file.write_text('env = "CartPole-v1"\ncluster = "ray://elsewhere:1"\n')
    with pytest.raises(InvalidArgument, match="--cluster ray://elsewhere:1"):
        resolve({}, file=file)
    assert resolve({"cluster": "ray://elsewhere:1"}, file=file)[0].cluster == "ray://elsewhere:1"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("population", "50", 50),
        ("total_interactions", "2e6", 2_000_000),
        ("total_interactions", "1_000", 1000),
        ("max_speed", "1e-2", 0.01),
        ("population_max", "none", None),
        ("radius", "auto", None),
        ("time_limit", "30m", 1800.0),
        ("time_limit", "12", 12.0),
        ("policy", "mlp:64", "mlp:64"),
    ],
)
def test_words_of_the_command_line_become_values(name, text, value):
    assert getattr(make_config({"env": "A", name: parse_flag(name, text)}), name) == value


def test_a_configuration_written_as_toml_is_read_back_equal(tmp_path):
    config, _ = resolve({"env": 'od"d\\ \t name', "env_options": {"a b": "x\ny", "c": 1.5, "d": True, "e": -3}})
    path = tmp_path / "config.toml"
    path.write_text(format_config(config, comment="two\nlines"), encoding="utf-8")
    assert make_config(read_toml(path)) == config
    again, _ = resolve({}, file=path)
    assert again == config


def test_a_written_configuration_is_not_changed_by_a_preset(tmp_path):
    config, _ = resolve({"env": "Walker2d-v4", "interactions": "none", "population_max": "auto"})
    path = tmp_path / "config.toml"
    path.write_text(format_config(config), encoding="utf-8")
    assert resolve({}, file=path)[0] == config


scalars = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20), st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False), st.booleans(),
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=10), scalars, max_size=4),
    st.floats(min_value=1e-300, max_value=1e300),
    st.integers(0, 2**63 - 1),
)
def test_any_configuration_survives_toml(tmp_path_factory, options, speed, seed):
    config = RunConfig(env="A-v1", env_options=options, max_speed=speed, seed=seed)
    path = tmp_path_factory.mktemp("toml") / "config.toml"
    path.write_text(format_config(config), encoding="utf-8", newline="")
    assert config_values(make_config(read_toml(path))) == config_values(config)


@pytest.mark.parametrize("content", [b"a = ", b"\xff\xfe", b"a = 1\na = 2", b"[" * 5000, b"x" * 2_000_000])
def test_malformed_toml_is_one_line(tmp_path, content):
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(FileFault) as caught:
        read_toml(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(FileFault, match="No such file"):
        read_toml(tmp_path / "missing.toml")


def test_words_after_env_options_are_read_as_toml_where_they_are():
    assert [parse_value(text) for text in ("1", "0.5", "true", '"1"', "hot", "a = 1\nb", "[1]", "")] == [
        *(1, 0.5, True, "1", "hot", "a = 1\nb", "[1]", ""),
    ]


def test_a_configuration_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        RunConfig(env="A").env = "B"  # type: ignore[misc]


def test_auto_unsets_a_number_but_is_an_address_of_ray() -> None:
    assert check_value("workers", "auto") is None
    assert check_value("cluster", "auto") == "auto"
    assert check_value("cluster", "none") is None


def test_the_default_search_is_no_part_of_a_runs_identity():
    assert identity(RunConfig(env="A-v0")) == {"env": "A-v0"}
    assert identity(RunConfig(env="A-v0", search="pgpe")) == {"env": "A-v0"}
    assert identity(RunConfig(env="A-v0", search="ars", top=3)) == {"env": "A-v0", "search": "ars", "top": 3}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"search": "es"}, "search must be one of pgpe, openai-es, "),
        ({"top": 3}, "top is not a setting of search='pgpe'; leave it out"),
        ({"weight_decay": 0.1}, "weight_decay is not a setting of search='pgpe'"),
        ({"search": "snes", "optimizer": "adam"}, "optimizer is not a setting of search='snes'"),
        ({"search": "cma-es", "stdev_learning_rate": 0.2}, "stdev_learning_rate is not a setting of search='cma-es'"),
        ({"search": "ars", "fitness_shaping": "raw"}, "fitness_shaping is not a setting of search='ars'"),
        ({"search": "snes", "schedule": "max_speed: constant 2"}, "schedule: max_speed has no effect on search='snes'"),
        ({"search": "snes", "schedule": "radius: constant 2"}, "schedule: radius has no effect on search='snes'"),
        ({"search": "ars", "schedule": "stdev_learning_rate: constant 2"}, "schedule: stdev_learning_rate has no"),
        ({"schedule": "fast"}, "schedule must name one of max_speed"),
        ({"stdev": 1.0, "radius": 1.0}, "stdev and radius mean the same thing"),
        ({"search": "ars", "top": 101}, r"top must be at most half of population \(100 directions\), got 101"),
    ],
)
def test_a_setting_that_means_nothing_to_the_search_is_refused(settings, message):
    with pytest.raises(InvalidArgument, match=message):
        RunConfig(env="A-v0", **settings)
