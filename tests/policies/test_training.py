"""Agents that learn: what they reach, what they leave, and how they go on."""

import json
import re
import sys
from itertools import product

import numpy as np
import pytest

import difflogic
from difflogic.actions.evaluate import evaluate
from difflogic.config.agent_presets import PRESETS
from difflogic.config.policy import PolicyConfig
from difflogic.config.request import TrainRequest
from difflogic.config.values import Within
from difflogic.devices.device import Device
from difflogic.devices.open import Placement
from difflogic.errors import CheckpointError, ConfigError, FaultyEnvironmentError, RunFolderError, UsageError
from difflogic.policies import actor_file, environments
from difflogic.policies.member import Member
from difflogic.runs import attempts, checkpoint, chosen, jsonl
from difflogic.train import restarts
from difflogic.train.observer import Observer
from difflogic.train.signals import Stop
from difflogic.train.trainer import Trainer
from tests.policies import worlds
from tests.policies.agents import config
from tests.sampled import exhaustive
from tests.train.diary import Diary

CPU = Device("cpu")
POLICIES = ("logic", "mlp")
TIMES = ("elapsed_s", "steps_per_s")


def untimed(path):
    """The rows of a run, without what a clock says."""
    return [{name: value for name, value in row.items() if name not in TIMES}
            for row in jsonl.objects(path / "metrics.jsonl")]  # fmt: skip


def test_fit_takes_an_environment_and_resumes(tmp_path):
    settings = config().to_dict()
    fields = {name: settings[name] for name in ("steps", "logic", "ppo", "evaluation")}
    run = difflogic.fit("test/Signs-v0", out=tmp_path / "run", engine="cpu", set=fields | {"steps": 256})
    more = difflogic.fit(resume=tmp_path / "run", steps=512)
    assert (run.epoch, more.epoch, more.config.environment.id) == (256, 512, "test/Signs-v0")
    with pytest.raises(UsageError, match="is counted in steps: give `steps`"):
        difflogic.fit(resume=run, epochs=1024)


def arrays(path):
    """Return the arrays in the checkpoint of a run, of all members, by name."""
    saved = checkpoint.read_agents(path)
    return {f"{index}.{name}": array for index, each in enumerate(saved.members) for name, array in each.arrays.items()}


def assert_same_run(one, other):
    assert untimed(one) == untimed(other)
    before, after = arrays(one), arrays(other)
    assert before.keys() == after.keys()
    for name, array in before.items():
        np.testing.assert_array_equal(array, after[name], name)


class StopAfter(Observer):
    """Asks to stop after an iteration."""

    def __init__(self, iteration):
        self.stop, self.iteration, self.told = Stop(), iteration, []

    def iterated(self, rows):
        self.told.append(rows)
        if rows[0].iteration == self.iteration:
            self.stop.ask("enough")


@pytest.mark.parametrize("policy", POLICIES)
def test_an_agent_learns_and_leaves_a_whole_folder(tmp_path, policy):
    run = Trainer(config(policy=policy, seed=8), CPU).run(out=tmp_path / "run")
    assert run.complete
    assert run.solved_members == run.members
    assert run.best.score.mean >= 0.9 * worlds.STEPS
    assert len(run.best.score.returns) == 20
    names = {file.name for file in (tmp_path / "run").iterdir()}
    assert names >= {"config.toml", "manifest.json", "metrics.csv", "checkpoint.safetensors", "summary.txt",
                     "evaluation.json", "returns.png"}  # fmt: skip
    assert PolicyConfig.load(tmp_path / "run/config.toml") == run.config
    told = json.loads((tmp_path / "run/evaluation.json").read_text())
    assert (told["solved"], told["members"][0]["mean"]) == (1, run.best.score.mean)
    assert told["baselines"]["random"] == pytest.approx(worlds.STEPS / 2, rel=0.3)
    assert (tmp_path / "run/summary.txt").read_text().startswith("Solved: mean return")
    rows = untimed(tmp_path / "run")
    assert [row["steps"] for row in rows] == list(range(128, 2049, 128))
    assert [row["steps"] for row in rows if row["score"] is not None] == [512, 1024, 1536, 2048]


@pytest.mark.parametrize("solved", [0, 1])
def test_the_last_checkpoint_is_written_once_and_the_one_before_is_kept(tmp_path, solved):
    diary = Diary()
    Trainer(config(seed=8), CPU).run(out=tmp_path / "run", observer=diary, stop_when_solved=solved)
    assert diary.saves == sorted(set(diary.saves))
    earlier = checkpoint.read_agents(tmp_path / "run" / checkpoint.PREVIOUS)
    assert earlier.epoch < diary.saves[-1] == checkpoint.read_agents(tmp_path / "run").epoch


def test_the_last_checkpoint_of_many_agents_names_the_best_on_fresh_episodes(tmp_path):
    settings = config(seed=8, steps=1024, evaluation={"episodes": 1})
    run = Trainer(settings, CPU).run(out=tmp_path / "run", population=3)
    saved = checkpoint.read_agents(tmp_path / "run")
    assert saved.seeds[saved.best] == run.best.seed


@pytest.mark.parametrize(("policy", "environment"), [("logic", "test/Signs-v0"), ("mlp", "CartPole-v1"),
                                                     ("mlp", "test/Aim-v0")])  # fmt: skip
def test_a_run_that_goes_on_is_bit_for_bit_one_that_never_stopped(tmp_path, policy, environment):
    settings = config(policy=policy, environment={"id": environment}, steps=1280)
    Trainer(settings, CPU).run(out=tmp_path / "whole", population=2)
    # Between two evaluations, and after the last step of one: neither leaves a trace.
    halves = StopAfter(5)
    cut = Trainer(settings, CPU).run(out=tmp_path / "cut", population=2, observer=halves)
    assert (cut.interrupted, cut.complete, cut.epoch) == ("enough", False, 640)
    for _ in range(2):
        halves = StopAfter(8)
        Trainer(settings, CPU).run(resume=tmp_path / "cut", observer=halves)
    assert_same_run(tmp_path / "whole", tmp_path / "cut")


class InEvaluation(Observer):
    """Asks to stop in the middle of the evaluation after this iteration, or with `final` of the one at the end."""

    def __init__(self, iteration, final=False):
        self.stop, self.iteration, self.final = Stop(), iteration, final
        self.at, self.judged_at, self.played = 0, 0, 0

    def advanced(self, epoch):
        self.at, self.played = epoch // 128, 0

    def iterated(self, rows):
        if rows[0].score is not None:
            self.judged_at = rows[0].iteration

    def judging(self, epoch):
        self.played = 1

    def working(self):
        if self.at != self.iteration or self.played == 0:
            return
        self.played += 1
        # Five episodes of 12 steps, side by side: what comes later are the fresh ones.
        if (self.played > worlds.STEPS + 1) == self.final:
            assert self.stop.reason is None, "it goes on playing"
            self.stop.ask("enough")


@pytest.mark.parametrize(
    ("solved", "where"), [*exhaustive((0, (4, False)), (0, (8, False)), (1, (12, True))), (0, (8, True))]
)
def test_an_evaluation_that_is_broken_off_is_played_again(tmp_path, solved, where):
    """The evaluation of the stop rule is played again too, and ends the run at the same iteration."""
    settings = config(seed=8, steps=100_000 if solved else 1024)
    whole = Trainer(settings, CPU).run(out=tmp_path / "whole", stop_when_solved=solved)
    iteration, final = (whole.epoch // 128, True) if solved else where
    asks = InEvaluation(iteration, final)
    cut = Trainer(settings, CPU).run(out=tmp_path / "cut", stop_when_solved=solved, observer=asks)
    assert (cut.interrupted, cut.complete, cut.epoch) == ("enough", False, 128 * iteration)
    run = Trainer(settings, CPU).run(resume=tmp_path / "cut", stop_when_solved=solved)
    assert (run.complete, run.best.score) == (True, whole.best.score)
    assert_same_run(tmp_path / "whole", tmp_path / "cut")


SHORT_SAC = {
    "algorithm": "sac",
    "steps": 2000,
    "environment": {"id": "test/Aim-v0", "n_envs": 8},
    "sac": {"learning_starts": 600, "train_freq": 100, "batch_size": 32, "buffer_size": 700},
    "evaluation": {"interval": 1000, "episodes": 1, "final_episodes": 1, "threshold": 1.0},
}


@pytest.mark.exhaustive
@pytest.mark.parametrize(("policy", "algorithm"), [*product(("logic", "automaton", "mlp"), ("ppo", "sac"))])
def test_on_a_gpu_it_repeats_itself_and_goes_on_bit_for_bit(tmp_path, policy, algorithm):
    """And learns at first what it learns on the processor, but for rounding."""
    gpu, half = Device("gpu:0"), StopAfter(1)
    settings = config(steps=256, ppo={"n_epochs": 2}, evaluation={"final_episodes": 4}, policy=policy)
    settings = settings.with_(automaton={"side": 4, "steps": 2, "channels": 4, "kernels": 1, "widths": [8]})
    if algorithm == "sac":
        settings = settings.with_(**SHORT_SAC)
    Trainer(settings, gpu).run(out=tmp_path / "one")
    Trainer(settings, gpu).run(out=tmp_path / "half", observer=half)
    Trainer(settings, gpu).run(resume=tmp_path / "half")
    assert_same_run(tmp_path / "one", tmp_path / "half")
    Trainer(settings.with_(steps=settings.steps // 2), CPU).run(out=tmp_path / "cpu")
    (here,), (there, _) = untimed(tmp_path / "cpu"), untimed(tmp_path / "one")
    losses = [name for name in here if name.endswith(("_loss", "entropy")) and here[name] is not None]
    assert len(losses) >= 2
    assert [there[name] for name in losses] == pytest.approx([here[name] for name in losses], rel=0.02, abs=1e-3)


def test_transitions_are_kept_over_a_pause(tmp_path):
    """The buffer of SAC has begun to overwrite itself by then, and the run goes on bit for bit."""
    settings = PRESETS["pendulum"].with_(
        steps=2000,
        environment={"n_envs": 8},
        logic={"bits": 4, "widths": [8, 8], "random_steps": 60},
        critic={"widths": [8]},
        sac={"learning_starts": 200, "train_freq": 5, "batch_size": 32, "buffer_size": 700},
        evaluation={"interval": 1000, "episodes": 1, "final_episodes": 1},
    )
    half = StopAfter(1)
    Trainer(settings, CPU).run(out=tmp_path / "one")
    Trainer(settings, CPU).run(out=tmp_path / "half", observer=half)
    Trainer(settings, CPU).run(resume=tmp_path / "half")
    assert_same_run(tmp_path / "one", tmp_path / "half")
    kept = {name: each.shape for name, each in arrays(tmp_path / "half").items() if "buffer.observations" in name}
    assert list(kept.values()) == [(700, 3)], kept


def test_a_member_of_a_population_is_what_it_is_alone(tmp_path):
    settings = config(steps=640)
    Trainer(settings, CPU).run(out=tmp_path / "three", population=3)
    Trainer(settings.with_(seed=settings.seed + 1), CPU).run(out=tmp_path / "one")
    rows = [row for row in untimed(tmp_path / "three") if row.pop("seed") == settings.seed + 1]
    assert rows == untimed(tmp_path / "one")
    three, one = arrays(tmp_path / "three"), arrays(tmp_path / "one")
    for name, array in one.items():
        np.testing.assert_array_equal(three[name.replace("0.", "1.", 1)], array, name)


def test_it_stops_at_the_first_evaluation_that_is_good_enough():
    run = Trainer(config(steps=100_000), CPU).run(stop_when_solved=1)
    assert run.complete
    assert run.epoch <= 8192
    assert run.epoch % 512 == 0
    aim = config(environment={"id": "test/Aim-v0"}, evaluation={"threshold": -np.inf})
    with pytest.raises(UsageError, match="defines no return at which it is solved"):
        Trainer(aim, CPU).run(stop_when_solved=1)


def test_episodes_without_an_end_are_cut_off_which_training_and_evaluation_announce(tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "LONGEST", worlds.STEPS)
    observer, told = Observer(), []
    observer.noticed = told.append
    endless = config(environment={"id": "test/Endless-v0"}, steps=256)
    Trainer(endless, CPU).run(out=tmp_path / "run", observer=observer)
    evaluation = evaluate(tmp_path / "run", starts=2, tell=told.append)
    assert evaluation.measures[0].values["mean_length"] == worlds.STEPS
    sentence = f"does not limit its episodes, so they are truncated after {worlds.STEPS} steps"
    assert [sentence in each for each in told] == [True, True, False]


def test_what_breaks_in_the_middle_leaves_the_last_checkpoint(tmp_path):
    settings = config(environment={"id": "test/Signs-v0"})
    halves = StopAfter(4)

    class Failing(StopAfter):
        def iterated(self, rows):
            if rows[0].iteration == 6:
                raise FaultyEnvironmentError("The environment broke.")

    with pytest.raises(FaultyEnvironmentError):
        Trainer(settings, CPU).run(out=tmp_path / "broken", observer=Failing(0))
    record = json.loads((tmp_path / "broken/manifest.json").read_text())
    assert (record["status"], record["result"]) == ("failed", "FaultyEnvironmentError: The environment broke.")
    Trainer(settings, CPU).run(resume=tmp_path / "broken", observer=halves)
    Trainer(settings, CPU).run(out=tmp_path / "whole")
    assert_same_run(tmp_path / "whole", tmp_path / "broken")


@pytest.mark.parametrize("policy", POLICIES)
def test_an_agent_begins_with_what_another_one_learned(tmp_path, policy):
    """Wires and thresholds too, which are of other seeds; and a run that goes on still has them."""
    lender = Trainer(config(policy=policy, seed=8, steps=512), CPU).run(out=tmp_path / "lender", population=2)
    settings = config(policy=policy, seed=31, steps=640)
    none = StopAfter(0)
    none.stop.ask("at once")
    begun = Trainer(settings, CPU).run(out=tmp_path / "run", population=2, observer=none, init_from=tmp_path / "lender")
    seen = np.linspace(-1, 1, 50, dtype=np.float32)[:, None]
    for member in begun.members:
        np.testing.assert_array_equal(member.agent.decide(seen), lender.best.agent.decide(seen))
    Trainer(settings, CPU).run(resume=tmp_path / "run")
    Trainer(settings, CPU).run(out=tmp_path / "whole", population=2, init_from=tmp_path / "lender")
    assert_same_run(tmp_path / "whole", tmp_path / "run")
    other = settings.with_(logic={"widths": [8]}, mlp={"widths": [8]})
    with pytest.raises(ConfigError, match=r"same shape: expected logic \{'bits': 5, 'widths': \[8\]\}"):
        Trainer(other, CPU).run(init_from=tmp_path / "lender")


def test_only_its_own_run_is_gone_on_with(tmp_path):
    settings = config(steps=256)
    Trainer(settings, CPU).run(out=tmp_path / "run")
    with pytest.raises(ConfigError, match="differs in its configuration: only steps may change"):
        Trainer(settings.with_(seed=9), CPU).run(resume=tmp_path / "run")
    with pytest.raises(RunFolderError, match="is not empty"):
        Trainer(settings, CPU).run(out=tmp_path / "run")
    longer = Trainer(settings.with_(steps=512), CPU).run(resume=tmp_path / "run")
    assert longer.epoch == 512
    (saved,) = checkpoint.read_agents(tmp_path / "run").members
    other = saved.config.with_(environment={"id": "CartPole-v1"})
    with pytest.raises(CheckpointError, match="trained on observations of 1 numbers, but CartPole-v1 has 4"):
        Member.restored(other, CPU, saved.arrays)
    (tmp_path / "run/checkpoint.safetensors").write_bytes(b"no checkpoint")
    with pytest.raises(CheckpointError, match=r"is not a difflogic checkpoint.*continue from step 256 with --resume"):
        checkpoint.read_agents(tmp_path / "run")


@pytest.mark.parametrize(("policy", "environment"), [("automaton", "test/Signs-v0"), ("mlp", "test/Aim-v0")])
def test_an_actor_alone_decides_as_its_agent_did(tmp_path, policy, environment):
    learned = config(
        policy=policy, steps=256, environment={"id": environment, "n_envs": 4},
        automaton={"side": 4, "channels": 4, "widths": [8]}, evaluation={"final_episodes": 2},
    )  # fmt: skip
    agent = Trainer(learned, CPU).run(out=tmp_path / "run").best.agent
    alone = actor_file.load(tmp_path / "run", CPU)
    seen = np.linspace(-2, 2, 101, dtype=np.float32)[:, None]
    np.testing.assert_array_equal(alone.decide(seen), agent.decide(seen))
    file = tmp_path / "run" / actor_file.NAME
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="is corrupt"):
        actor_file.load(file, CPU)
    with pytest.raises(CheckpointError, match="Cannot read the actor"):
        actor_file.load(tmp_path, CPU)


def test_no_module_that_an_actor_names_is_imported(tmp_path):
    agent = Member(config(), CPU).agent
    agent.config = config(environment={"id": "this:Signs-v0"})
    (tmp_path / actor_file.NAME).write_bytes(actor_file.encode(agent))
    with pytest.raises(CheckpointError, match="in the module this: import it first if you trust it"):
        actor_file.load(tmp_path, CPU)
    assert "this" not in sys.modules


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_written_and_read(name):
    preset = PRESETS[name]
    assert PolicyConfig.from_toml(preset.to_toml()) == preset
    assert preset.name == name


def test_configurations_of_automata_and_of_agents_are_told_apart():
    with pytest.raises(ConfigError, match="for automata, use `difflogic train`"):
        PolicyConfig.from_dict({"format": 2, "name": "checkerboard"})


def test_until_solved_tries_other_seeds_and_leaves_the_best_on_top(tmp_path):
    # 512 steps are enough for some seeds, and not for the first.
    short = config(steps=512, seed=4, evaluation={"threshold": 9.0})
    found = restarts.train(TrainRequest(config=short, until_solved=True), Placement(CPU.open()), tmp_path / "run")
    assert found.solved
    assert found.best.solved
    assert re.match(r"Solved, attempt \d+: mean return ", found.summary)
    tried = attempts.read(tmp_path / "run").attempts
    assert [each.status for each in tried] == ["complete"] * (len(tried) - 1) + ["solved"]
    assert len({each.seed for each in tried}) == len(tried) > 1
    assert chosen.run_folder(tmp_path / "run") == tmp_path / "run" / tried[-1].folder
    for name in ("controller.json", "evaluation.json", "returns.png"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "run" / tried[-1].folder / name).read_bytes()


def test_what_nobody_reaches_ends_with_the_limit_and_goes_on(tmp_path):
    impossible = config(steps=512, seed=4, evaluation={"threshold": 2.0 * worlds.STEPS})

    class Third(Observer):
        """Asks for the end in the third attempt."""

        def __init__(self):
            self.stop = Stop()

        def attempted(self, attempt):
            if attempt.number == 3 and attempt.is_open:
                self.stop.ask("enough")

    lost = restarts.train(TrainRequest(config=impossible, until_solved=True), Placement(CPU.open()), tmp_path, Third())
    assert not lost.solved
    assert [each.status for each in lost.record.attempts] == ["complete", "complete", "interrupted"]
    best = max(lost.record.attempts[:2], key=lambda each: each.score)
    assert lost.best.config.seed == best.seed
    assert f"with a mean return of {best.score:.1f}" in lost.summary
    again = restarts.resume(tmp_path, Placement(CPU.open()), within=Within(seconds=1e-6))
    assert again.is_unsolved
    assert again.best.config.seed == best.seed
