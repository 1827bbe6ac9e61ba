"""Cheaper physics to train on: what is read, what is refused, and that evaluations never see it."""

from typing import Any

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray

import clipup
from clipup.engines import Rollout, Task, make_engine
from clipup.engines.compiled.mujoco_world import load_model, with_physics
from clipup.engines.compiled.task import MujocoTask
from clipup.engines.compiled.tasks import task as built_in
from clipup.engines.physics import TrainingPhysics, parse_physics
from clipup.errors import InvalidArgument
from clipup.policies import Network
from clipup.runs.config import RunConfig

CHEAP = "integrator=Euler, iterations=10, timestep=0.004"


@pytest.mark.parametrize(
    "text", [CHEAP, "solver=Newton", " iterations = 7 ", "integrator=implicitfast,timestep=2e-3", "eulerdamp=disable"]
)
def test_what_is_read_can_be_written_and_read_again(text: str) -> None:
    physics = parse_physics(text)
    assert physics is not None and parse_physics(str(physics)) == physics


def test_no_text_changes_nothing() -> None:
    assert parse_physics(None) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "options of MuJoCo with commas"),
        ("Euler", "options of MuJoCo with commas"),
        ("iterations=3, iterations=4", "each once"),
        ("integrator=euler", "one of Euler, RK4, implicit, implicitfast, got 'euler'; did you mean 'Euler'"),
        ("solver=SOR", "one of PGS, CG, Newton, got 'SOR'"),
        ("eulerdamp=off", "one of enable, disable, got 'off'"),
        ("gravity=3", "no option 'gravity'; there are integrator, solver, iterations, timestep"),
        ("iteration=3", "did you mean 'iterations'"),
        ("iterations=0", "from 1 to 10000, got 0"),
        ("iterations=2.5", "a whole number, got '2.5'"),
        ("iterations=" + "9" * 5000, "a whole number"),
        ("timestep=0", "above 0"),
        ("timestep=nan", "above 0"),
        ("timestep=inf", "at most 1"),
        ("timestep=fast", "a number, got 'fast'"),
    ],
)
def test_what_cannot_be_read_gives_one_short_line(text: str, words: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        RunConfig(env="Hopper-v5", physics=text)
    assert words in str(caught.value) and len(str(caught.value)) < 400


def test_the_model_has_what_was_asked_for_and_a_step_takes_as_long_as_before() -> None:
    own = built_in("Hopper-v5", {})
    assert isinstance(own, MujocoTask)
    before = load_model(own).opt
    changed = with_physics(own, TrainingPhysics("implicitfast", "CG", 7, 0.004))
    now = load_model(changed).opt
    assert (now.integrator, now.solver, now.iterations, now.timestep) == (3, 1, 7, 0.004)
    assert (before.integrator, before.timestep, own.frame_skip) == (1, 0.002, 4)
    assert changed.frame_skip * now.timestep == pytest.approx(own.frame_skip * before.timestep)


def test_the_damping_of_euler_s_method_can_be_switched() -> None:
    own = built_in("Hopper-v5", {})
    assert isinstance(own, MujocoTask)
    flag = int(mujoco.mjtDisableBit.mjDSBL_EULERDAMP)
    off = with_physics(own, TrainingPhysics("Euler", eulerdamp="disable"))
    assert load_model(own).opt.disableflags | flag == load_model(off).opt.disableflags
    on = with_physics(off, TrainingPhysics(eulerdamp="enable"))
    assert load_model(on).opt.disableflags == load_model(own).opt.disableflags


def test_what_is_not_named_stays() -> None:
    own = built_in("Hopper-v5", {})
    assert isinstance(own, MujocoTask)
    before, now = load_model(own).opt, load_model(with_physics(own, TrainingPhysics(iterations=3))).opt
    assert (now.integrator, now.solver, now.timestep) == (before.integrator, before.solver, before.timestep)


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (
            Task("Hopper-v5", physics=TrainingPhysics(timestep=0.003)),
            "divide the 0.008 seconds of a step, like 0.00266",
        ),
        (Task("Hopper-v5", physics=TrainingPhysics(timestep=0.5)), "like 0.008 (1 time steps)"),
        (Task("Hopper-v5", physics=TrainingPhysics(timestep=1e-9)), "at least 8e-06, got 1e-09"),
        (Task("CartPole-v1", physics=TrainingPhysics("Euler")), "CartPole-v1 has no physics of MuJoCo to change"),
        (
            Task("Hopper-v4", physics=TrainingPhysics("Euler"), engine="envpool"),
            "EnvPool cannot train on other physics",
        ),
        (
            Task("Hopper-v4", physics=TrainingPhysics("Euler"), engine="gymnasium"),
            "the compiled engine can, on MuJoCo tasks; or train without it (--physics none)",
        ),
        (Task("LunarLander-v3", physics=TrainingPhysics("Euler")), "(--physics none)"),
    ],
)
def test_a_task_without_such_physics_is_refused(task: Task, words: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        make_engine(task)
    assert words in str(caught.value)


def returns(task: Task, threads: int = 1) -> NDArray[np.float64]:
    engine = make_engine(task, threads=threads)
    network = Network(engine.observation_size, engine.actions.size)
    parameters = 0.1 * np.random.default_rng(3).standard_normal((4, network.parameter_count), dtype=np.float32)
    try:
        return engine.evaluate(Rollout(network, parameters, seed=1, generation=0)).returns
    finally:
        engine.close()


def test_training_runs_on_the_changed_physics_and_evaluation_on_the_own() -> None:
    own, cheap = Task("Hopper-v5"), Task("Hopper-v5", physics=parse_physics(CHEAP))
    assert not np.array_equal(returns(own), returns(cheap))
    assert np.array_equal(returns(own), returns(cheap.for_evaluation()))
    assert np.array_equal(returns(cheap), returns(cheap, threads=2))


def test_a_run_is_trained_on_it_and_says_so() -> None:
    small: dict[str, Any] = {"population": 4, "generations": 1, "evaluation_episodes": 2, "workers": 1, "seed": 3}
    cheap, own = clipup.train("Hopper-v5", physics=CHEAP, **small), clipup.train("Hopper-v5", **small)
    assert cheap.config.physics == CHEAP and own.config.physics is None
    assert cheap.records[0].fitness_mean != own.records[0].fitness_mean
