"""Measure the returns, speed and controller sizes of agents per seed, compared with Stable-Baselines3.

python -m benchmarks.policies cartpole --seeds 12                 # append lines to results/policies.jsonl
python -m benchmarks.policies CartPole-v1 --seeds 12              # an environment by its name, without a preset
python -m benchmarks.policies cartpole --rival /path/to/python    # Stable-Baselines3, installed in another Python
python -m benchmarks.policies --report --write                    # write the table of docs/how-to/policies.md

The discrete circuit of the last parameters of a run, not of the best ones, is evaluated on 100 episodes that are used
for nothing else. Settings were chosen on seeds that are not in the table.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import time
from typing import Any

from benchmarks.store import CHECKOUT, append, inserted, load
from difflogic.bench.machine import stamp
from difflogic.circuits.synthesis import function as synthesis
from difflogic.circuits.synthesis.convert import gate_count
from difflogic.config.agent_presets import PRESETS
from difflogic.config.choices import ACTORS
from difflogic.config.policy import PolicyConfig
from difflogic.devices.device import Device
from difflogic.policies import controllers
from difflogic.policies.environments import of_name, spaces_of
from difflogic.policies.evaluate import baselines
from difflogic.policies.member import Member
from difflogic.train.trainer import Trainer

FILE, EPISODES = "policies", 100
FIRST = {"cartpole": 56_000, "CartPole-v1": 62_012, "Acrobot-v1": 62_105, "MountainCar-v0": 62_203}
"""First seed with the current settings; 52,000 for other presets and Stable-Baselines3. Settings for environments by
name were chosen on seeds 61000 to 61005 of CartPole, and 61100 to 61104 and 62101 to 62103 of Acrobot."""
QUIET = 2.5
"""Maximum load average, on two cores, at which a time is shown."""
RIVAL = CHECKOUT / "benchmarks/rivals/sb3_policies.py"
PAGE = CHECKOUT / "docs/how-to/policies.md"
BEGIN = "<!-- generated: python -m benchmarks.policies --report --write -->"


def ours(config: PolicyConfig, controller: bool) -> dict[str, Any]:
    """Train one run; return its score and, if `controller`, the gates of its controller after simplification."""
    begin = time.perf_counter()
    run = Trainer(config, Device("cpu")).run()
    if run.interrupted is not None:
        raise KeyboardInterrupt  # an interrupted seed has no result
    member = run.best
    assert member.score is not None
    return {
        "seconds": round(run.elapsed_s, 2),
        "with_evaluations": round(time.perf_counter() - begin, 2),
        "steps_per_s": round(run.epoch / run.elapsed_s),
        "mean": member.score.mean,
        "spread": member.score.spread,
        "reached": member.score.reached(config.evaluation.threshold),
        "baselines": run.baselines,
        **(_controller(config, member) if controller else {}),
    }


def _controller(config: PolicyConfig, member: Member) -> dict[str, Any]:
    """Return gates and thresholds of a controller: trained, simplified with proof, pruned to the codes of episodes."""
    if config.policy != "logic" or member.environments.spaces.continuous:
        return {}
    whole = controllers.of_actor(member.agent.actor, config.environment.id, member.environments.spaces)
    begin = time.perf_counter()
    small = synthesis.simplified(whole)
    pruned = controllers.pruned(small.netlist, EPISODES, config.seed)
    return {
        "gates": [gate_count(each) for each in (whole, small.netlist, pruned.smaller.netlist)],
        "thresholds": [each.inputs for each in (whole, small.netlist, pruned.smaller.netlist)],
        "proved": bool(small.verdict.equal and small.verdict.proves),
        "pruned_mean": pruned.after.mean,
        "pruned_reached": pruned.after.reached(config.evaluation.threshold),
        "simplify_s": round(time.perf_counter() - begin, 2),
    }


def rival(python: str, config: PolicyConfig) -> dict[str, Any]:
    """Train as many steps by Stable-Baselines3 in a separate Python, and evaluate trivial agents."""
    done = subprocess.run(
        [python, RIVAL], input=json.dumps(config.to_dict()), capture_output=True, text=True, check=True
    )
    identifier = config.environment.id
    beside = baselines(identifier, spaces_of(identifier), EPISODES, controllers.FRESH + config.seed)
    return {**json.loads(done.stdout.splitlines()[-1]), "baselines": beside}


def study(options: argparse.Namespace) -> None:
    first = _first(options.preset) if options.first is None else options.first
    for seed in range(first, first + options.seeds):
        config = _config(options.preset).with_(seed=seed, policy=options.policy)
        if options.steps:
            config = config.with_(steps=options.steps)
        if options.algorithm:
            config = config.with_(algorithm=options.algorithm)
        here = stamp()
        # Only presets are simplified, since the many thresholds of other environments take minutes.
        found = rival(options.rival, config) if options.rival else ours(config, options.preset in PRESETS)
        line = {
            "preset": options.preset,
            "policy": "sb3" if options.rival else options.policy,
            "algorithm": config.algorithm,
            "steps": config.steps,
            "seed": seed,
            **found,
            **here,
            "versions": here["versions"] | found.get("versions", {}),
        }
        if not options.dry:
            append(FILE, [line])
        print(f"{line['preset']} {line['policy']} {seed}: mean {line['mean']:.1f}, {line['seconds']} s, "
              f"gates {line.get('gates', '')}, pruned {line.get('pruned_mean', '')}", flush=True)  # fmt: skip


def report() -> str:
    """Return a Markdown table with a row per preset, steps and kind of policy, from the newest line of each seed."""
    heads = ["environment", "steps", "policy", "seeds", "mean return: median, least", "solved", "500 in all episodes",
             "random agent", "seconds", "steps a second", "gates: proved equal, pruned",
             "pruned, mean return"]  # fmt: skip
    rows = [f"| {' | '.join(heads)} |", "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"]
    lines = {
        (line["preset"], line["steps"], line["policy"], line["seed"]): line
        for line in load(FILE)
        if line["seed"] >= _first(line["preset"] if line["policy"] != "sb3" else "")
    }
    named = [name for name in FIRST if name not in PRESETS]
    for preset, kind in itertools.product((*PRESETS, *named), (*ACTORS, "sb3")):
        of = [line for key, line in lines.items() if (key[0], key[2]) == (preset, kind)]
        for steps in sorted({line["steps"] for line in of}):
            rows.append(_row(preset, kind, [line for line in of if line["steps"] == steps]))
    return "\n".join(rows)


def _config(preset: str) -> PolicyConfig:
    """Return the configuration of a preset or an environment, by its name."""
    return PRESETS[preset] if preset in PRESETS else of_name(preset)


def _first(preset: str) -> int:
    return FIRST.get(preset, 52_000)


def _row(preset: str, kind: str, lines: list[dict[str, Any]]) -> str:
    config = _config(preset)
    means = [line["mean"] for line in lines]
    # Only an environment with a maximum return has a number of runs that reach this maximum in all episodes.
    most = 500.0 if config.environment.id == "CartPole-v1" else None
    small = [line for line in lines if "gates" in line]
    gates = " ".join(f"{statistics.median(line['gates'][k] for line in small):g}," for k in (1, 2)) if small else ""
    pruned = f"{statistics.median(line['pruned_mean'] for line in small):.1f}" if small else ""
    random = [line["baselines"]["random"] for line in lines if "baselines" in line]
    # Lines without a time were measured while other programs ran.
    quiet = [line for line in lines if "seconds" in line and line["machine"]["load_1min"] <= QUIET]
    times = [f"{statistics.median(line[of] for line in quiet):.{digits}f}" if quiet else ""
             for of, digits in (("seconds", 1), ("steps_per_s", 0))]  # fmt: skip
    names = {"logic": "gates", "automaton": "automaton", "mlp": "dense", "sb3": "Stable-Baselines3, dense"}
    cells = [
        config.environment.id if preset in PRESETS else f"{preset}, by name", f"{lines[0]['steps']:,}", names[kind],
        str(len(lines)),
        f"{statistics.median(means):.1f}, {min(means):.1f}",
        f"{sum(mean >= config.evaluation.threshold for mean in means)} of {len(lines)}",
        f"{sum(mean == most for mean in means)} of {len(lines)}" if most else "",
        f"{statistics.median(random):.1f}" if random else "", *times,
        gates.rstrip(","), pruned,
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("preset", nargs="?", help="a preset, or the name of an environment")
    parser.add_argument("--policy", choices=ACTORS, default="logic")
    parser.add_argument("--algorithm", choices=("ppo", "sac"))
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--first", type=int, help="the first seed")
    parser.add_argument("--rival", metavar="PYTHON", help="a Python that has Stable-Baselines3")
    parser.add_argument("--dry", action="store_true", help="print, and keep nothing")
    parser.add_argument("--report", action="store_true", help="print the table")
    parser.add_argument("--write", action="store_true", help="with --report: put it into docs/how-to/policies.md")
    options = parser.parse_args()
    if not options.report:
        study(options)
    elif options.write:
        PAGE.write_text(inserted(PAGE.read_text(encoding="utf-8"), BEGIN, f"\n{report()}"), encoding="utf-8")
    else:
        print(report())


if __name__ == "__main__":
    main()
