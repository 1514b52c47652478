"""The command line: an agent is trained, looked at, and ends as a controller of a few gates."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from difflogic.cli.main import group, main
from difflogic.config.agent_presets import PRESETS
from difflogic.config.policy import PolicyConfig
from difflogic.model import function_json
from difflogic.policies import controllers
from difflogic.runs import checkpoint
from tests.cli.test_gallery import LINK
from tests.house.test_schemas import validator
from tests.policies import worlds
from tests.policies.agents import config

PAGE = Path(__file__).parents[2] / "docs/how-to/policies.md"


def run(*words) -> str:
    done = CliRunner().invoke(group, [str(word) for word in words], catch_exceptions=False, standalone_mode=False)
    assert not done.return_value, done.output
    return done.stdout


def refusal(capsys, *words) -> tuple[int, str]:
    code = main([str(word) for word in words])
    return code, capsys.readouterr().err


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A run of two agents that has learned `worlds.Signs`."""
    folder = tmp_path_factory.mktemp("agents")
    file = folder / "signs.toml"
    file.write_text(config(seed=7).to_toml())
    path = folder / "runs/signs"
    told = run("train-policy", "--config", file, "--population", 2, "--out", path, "--json")
    lines = [json.loads(line) for line in told.splitlines()]
    events = [line["event"] for line in lines if line["event"] not in ("iteration", "checkpoint")]
    assert events == ["begin", *4 * ["evaluation"], "end"]
    assert [each["solved"] for each in lines[-1]["members"]] == [True, True]
    assert "No better than random" not in lines[-1]["summary"]
    return path


def test_presets_are_shown_and_written(tmp_path, capsys):
    shown = json.loads(run("presets", "cartpole", "--json"))
    assert (shown["environment"], shown["gates"], shown["solved_from"]) == ("CartPole-v1", 64, 475)
    assert PolicyConfig.from_dict(shown["config"]) == PRESETS["cartpole"]
    file = tmp_path / "mine.toml"
    assert f"train-policy --config {file}" in run("init", "cartpole", "-o", file, "--set", "ppo.n_steps=64")
    assert PolicyConfig.load(file) == PRESETS["cartpole"].with_(ppo={"n_steps": 64})
    assert refusal(capsys, "init", "cartpole", "--target", "cat.png") == (
        2, "Error: --target is for automata, but this trains agents: omit it.\n"
    )  # fmt: skip


def test_it_is_listed_and_shown(trained):
    assert "signs" in run("runs", trained.parent)
    entry = json.loads(run("runs", trained.parent, "--json"))
    assert (entry["solved"], entry["members"], entry["epoch"], entry["status"]) == (2, 2, 2048, "complete")
    text = run("show", trained)
    assert "test/Signs-v0, 4 copies" in text
    assert "controller.json" in text
    assert json.loads(run("show", trained, "--json"))["score"] == entry["score"]


def test_it_stands_in_the_gallery(trained, tmp_path):
    """Its world draws nothing, so that the curve stands for it."""
    assert "signs: " in run("gallery", trained, "--out", tmp_path / "pages")
    index, page = ((tmp_path / "pages" / file).read_text() for file in ("index.html", "signs/index.html"))
    assert 'src="signs/card.png"' in index
    with Image.open(tmp_path / "pages/signs/card.png") as card:
        assert card.width == card.height, "films are square too: there are no bars beside it"
    linked = {link for link in LINK.findall(page) if not link.startswith(("data:", ".."))}
    there = {path.relative_to(tmp_path / "pages/signs").as_posix() for path in (tmp_path / "pages/signs").rglob("*.*")}
    assert linked == there - {"index.html", "card.png"}
    assert {"live.html", "circuit.svg", "files/signs.v"} <= there
    assert "Proved equal: " in page
    assert "film: test/Signs-v0 cannot render its episodes" in page
    assert all(f"seed {seed}<" in page for seed in checkpoint.read_agents(trained).seeds), "every agent's score"


def test_its_controller_is_the_agent(trained):
    controller = function_json.load(trained / function_json.NAME)
    best = max(json.loads((trained / "evaluation.json").read_text())["members"], key=lambda each: each["mean"])
    saved = checkpoint.read_agents(trained)
    from difflogic.devices.device import Device
    from difflogic.policies.member import Member

    index = saved.seeds.index(best["seed"])
    agent = Member.restored(saved.members[index].config, Device("cpu"), saved.members[index].arrays).agent
    observations = np.linspace(-1, 1, 501, dtype=np.float32)[:, None]
    np.testing.assert_array_equal(controller(observations), agent.decide(observations))
    assert controllers.score(controller, 20, 0).mean >= 0.9 * worlds.STEPS


def test_it_is_simplified_proved_pruned_and_judged(trained, tmp_path):
    small, task = tmp_path / "small.json", tmp_path / "task.json"
    report = json.loads(run("simplify", trained, "-o", small, "--json"))
    assert report["equal"]
    assert report["gates"]["after"] <= report["gates"]["before"]
    proof = run("prove", trained, small, "--judge", "difflogic")
    assert "Equal: the two have the same action for every observation." in proof
    report = json.loads(run("simplify", small, "--task", "-o", task, "--json"))
    assert report["task_only"]["after"] >= 0.9 * worlds.STEPS
    document = json.loads(run("evaluate", task, "--starts", 30, "--json"))
    validator("evaluation.json").validate(document)
    found = document["measures"][0]
    assert (found["key"], found["values"]["episodes"]) == ("task.json", 30)
    assert found["values"]["mean"] >= 0.9 * worlds.STEPS
    text = run("evaluate", trained, "--starts", 10)
    assert all(word in text for word in ("seed 7", "seed 8", "random", "always"))
    assert "seed 7" not in run("evaluate", trained, "--starts", 10, "--member", 2)
    run("export", task, "--format", "c", "--out", tmp_path)
    assert (tmp_path / "task.h").read_text().startswith("/*")
    run("render", trained, "--what", "loss", "-o", tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes()[1:4] == b"PNG"


def test_pruned_it_loses_no_return_and_does_the_same_at_the_codes_that_are_met_most(trained):
    controller = function_json.load(trained / function_json.NAME)
    codes, shares = controllers.codes_met(controller, 20, controllers.MEETING)
    assert (np.diff(shares) <= 0).all()
    assert shares.sum() == pytest.approx(1)
    pruned = controllers.pruned(controller, 20, 0)
    small = pruned.smaller.netlist
    assert 0 < pruned.codes <= pruned.met == codes.shape[1]
    kept = [controller.input_names.index(name) for name in small.input_names]
    sure = codes[:, : pruned.codes]
    np.testing.assert_array_equal(small.decide(sure[kept]), controller.decide(sure))
    before, after = (controllers.score(each, 60, controllers.TRYING).mean for each in (controller, small))
    assert after >= before


def test_two_that_differ_are_told_by_an_observation(trained, tmp_path, capsys):
    held = function_json.load(trained / function_json.NAME)
    wrong = tmp_path / "wrong.json"
    wrong.write_text(function_json.to_json(held.with_gates([0], [(0, 0)], [held.inputs])))
    assert main(["prove", str(trained), str(wrong), "--judge", "difflogic"]) == 1
    assert "evaluated in both: thresholds that are reached: observation0>=" in capsys.readouterr().out


def test_an_environment_without_a_threshold_leaves_json_that_any_program_reads(tmp_path):
    def strict(text):
        return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))

    file, path = tmp_path / "aim.toml", tmp_path / "run"
    aim = config(environment={"id": "test/Aim-v0"}, evaluation={"threshold": -np.inf}, steps=128, policy="mlp")
    file.write_text(aim.to_toml())
    lines = [strict(line) for line in run("train-policy", "--config", file, "--out", path, "--json").splitlines()]
    assert lines[-1]["solved"] is False
    assert strict((path / "evaluation.json").read_text())["threshold"] is None
    assert strict((path / "manifest.json").read_text())["config"] == aim.to_dict()
    assert json.loads(run("runs", path, "--json"))["solved"] is None
    assert not run("runs", path, "--json", "--unsolved")  # neither: nothing says from where it is solved


FEW = ("--steps", 1, *(word for each in (
    "ppo.n_steps=8", "sac.learning_starts=2000", "logic.random_steps=60", "automaton.random_steps=60",
    "evaluation.episodes=1", "evaluation.final_episodes=1",
) for word in ("--set", each)))  # fmt: skip
"""An iteration, and an episode."""


@pytest.mark.parametrize("actions", [3, 5, 6, 7, 9])
@pytest.mark.parametrize("policy", ["logic", "automaton"])
def test_any_number_of_actions_is_trained_without_a_setting(tmp_path, actions, policy):
    words = "train-policy", f"test/Choose{actions}-v0", "--policy", policy, *FEW, "--set", "automaton.side=4"
    assert "mean return" in run(*words, "--out", tmp_path / "run")
    assert len(function_json.load(tmp_path / "run/controller.json").choices) == actions


@pytest.mark.parametrize(
    "line", re.findall(r"^    difflogic (train\S* .*?)(?:  #.*)?$", PAGE.read_text(), re.MULTILINE)
)
def test_the_commands_of_the_page_train(tmp_path, line):
    words = shlex.split(line)
    if "-o" in words:
        del words[words.index("-o") :][:2]
    limit = ("--within", "0.001s") if "--until-solved" in words else ()
    done = CliRunner().invoke(group, [*words, *map(str, FEW), *limit, "--out", str(tmp_path / "run")],
                              catch_exceptions=False, standalone_mode=False)  # fmt: skip
    assert done.return_value == (1 if limit else 0), done.output
    assert "Run folder" in done.output
    assert (tmp_path / "run/summary.txt").is_file()
    if "MountainCar-v0" in words:
        assert "No better than random actions" in done.output, "an episode ends at -200 whatever it does"


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ((), 2, "Name an environment: cartpole, cartpole-automaton, cartpole-memory, acrobot"),
        (("cartpol",), 2, "did you mean cartpole?"),
        (("cartpole", "--set", "ppo.gama=1"), 2, "did you mean gamma?"),
        (("cartpole", "--algorithm", "sac"), 2, "use --algorithm ppo"),
        (("pendulum", "--stop-when-solved", "--set", "evaluation.threshold=-inf"), 2, "defines no return at"),
        (("cartpole", "--set", "logic.widths=[31]"), 2, "expected a multiple of 2"),
        (("pendulum", "--set", "sac.buffer_size=2147483648"), 1, "--set sac.buffer_size="),
        ((worlds.broken("raises"),), 1, "raised an error during an episode"),
        (("cartpole", "--population", "0"), 2, "--population must be an integer"),
        (("cartpole", "--within", "9 epochs"), 2, "must be a time, such as"),
        (("cartpole", "--until-solved", "--init-from", "runs/other"), 2, "attempts sample new wiring"),
        (("cartpole", "--engine", "gpu:0", "--require-hardware"), 1, "software"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(tmp_path, capsys, words, code, sentence):
    returned, told = refusal(capsys, "train-policy", *words, "--out", tmp_path / "run")
    assert (returned, told.count("\n")) == (code, 1), told
    assert sentence in told
    assert not (tmp_path / "run").exists()


def test_train_is_the_same_road(trained, tmp_path, capsys):
    run("train", "--config", trained / "config.toml", "--steps", 256, "--out", tmp_path / "run")
    run("train", "--resume", tmp_path / "run", "--steps", 512)
    assert checkpoint.read_agents(tmp_path / "run").epoch == 512
    assert "CartPole-v1" in run("train", "cartpole", *FEW, "--out", tmp_path / "preset")
    assert "test/Choose3-v0" in run("train", "test/Choose3-v0", *FEW, "--out", tmp_path / "named")
    for words, told in (
        (("train", "cartpole", "--epochs", 3), "--epochs is for automata, but this trains agents"),
        (("train", "cartpole", "--restarts", 2), "--restarts is for automata"),
        (("train", "checkerboard", "--steps", 3), "--steps is for agents, but this trains automata"),
        (("train", "--resume", trained, "--epochs", 3), "is counted in steps: give --steps"),
        (("train-policy", "--resume", tmp_path / "run", "--seed", 4), "omit --seed"),
        (("render", trained, "-o", "x.gif", "--damage", 3), "omit --damage"),
    ):
        code, sentence = refusal(capsys, *words)
        assert (code, told in sentence) == (2, True), sentence


def test_attempts_are_one_run_for_every_command(tmp_path):
    file, out = tmp_path / "signs.toml", tmp_path / "runs/signs"
    file.write_text(config(steps=512, seed=4, evaluation={"threshold": 9.0}).to_toml())
    lines = run("train", "--config", file, "--until-solved", "--out", out, "--json").splitlines()
    told = [json.loads(line) for line in lines]
    assert len(told[-1]["attempts"]) > 1
    assert told[-1]["attempts"][-1]["status"] == "solved"
    entry = json.loads(run("runs", out, "--json"))
    assert (entry["attempts"], entry["solved"], entry["status"]) == (len(told[-1]["attempts"]), 1, "complete")
    assert "attempt 1: complete at step 512 with a mean return of" in run("show", out)
    assert "seed" in run("evaluate", out, "--starts", 2)
    assert "Proved equal" in run("simplify", out, "-o", tmp_path / "small.json")
    assert "signs: " in run("gallery", out, "--out", tmp_path / "pages")
    run("render", out, "--what", "loss", "-o", tmp_path / "curve.png")
