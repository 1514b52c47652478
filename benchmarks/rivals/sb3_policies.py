"""An agent of Stable-Baselines3 by the configuration on standard input; a line of JSON on standard output.

It runs in a Python of its own, which has stable-baselines3 and gymnasium, and nothing of difflogic.
"""

from __future__ import annotations

import json
import sys
import time

import gymnasium
import numpy as np
import stable_baselines3
import torch
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

EPISODES = 100


def main() -> None:
    config = json.load(sys.stdin)
    identifier, seed = config["environment"]["id"], config["seed"]
    environments = make_vec_env(identifier, n_envs=config["environment"]["n_envs"], seed=seed)
    given = dict(config[config["algorithm"]])
    if config["algorithm"] == "ppo":
        linear = given.pop("linear_schedule")
        rate, clip = given["learning_rate"], given["clip_range"]
        if linear:
            given["learning_rate"], given["clip_range"] = (lambda left: left * rate), (lambda left: left * clip)
        given |= {"target_kl": given["target_kl"] or None, "clip_range_vf": given["clip_range_vf"] or None}
        agent = PPO("MlpPolicy", environments, seed=seed, device="cpu", **given)
    else:
        given["target_entropy"] = given["target_entropy"] or "auto"
        given["policy_kwargs"] = {"net_arch": config["critic"]["widths"]}
        agent = SAC("MlpPolicy", environments, seed=seed, device="cpu", **given)
    begin = time.perf_counter()
    agent.learn(config["steps"])
    seconds = time.perf_counter() - begin
    fresh = make_vec_env(identifier, n_envs=10, seed=seed + (1 << 20))
    returns, _ = evaluate_policy(agent, fresh, EPISODES, deterministic=True, return_episode_rewards=True)
    threshold = config["evaluation"]["threshold"]
    print(json.dumps({
        "seconds": round(seconds, 2),
        "steps_per_s": round(agent.num_timesteps / seconds),
        "mean": float(np.mean(returns)),
        "spread": float(np.std(returns)),
        "reached": sum(each >= threshold for each in returns),
        "versions": {"stable_baselines3": stable_baselines3.__version__, "torch": torch.__version__,
                     "gymnasium": gymnasium.__version__},
    }))  # fmt: skip


if __name__ == "__main__":
    main()
