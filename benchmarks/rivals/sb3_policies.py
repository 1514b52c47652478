"""Train an agent of Stable-Baselines3: read a configuration from standard input, and print the result as JSON.

The settings are those of RL Baselines3 Zoo (hyperparams/ppo.yml and sac.yml, for LunarLander those of version 2), or
the defaults of Stable-Baselines3 if there are none. The script runs in a separate Python with stable-baselines3 and
gymnasium, without difflogic.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import gymnasium
import numpy as np
import stable_baselines3
import torch
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize

EPISODES = 100
NORMALIZED = {("ppo", "Acrobot-v1")}
"""Algorithms and environments for which RL Baselines3 Zoo normalises observations and rewards."""
SETTINGS: dict[tuple[str, str], dict[str, Any]] = {
    ("ppo", "CartPole-v1"): {
        "n_envs": 8, "n_steps": 32, "batch_size": 256, "gae_lambda": 0.8, "gamma": 0.98, "n_epochs": 20,
        "learning_rate": lambda left: left * 1e-3, "clip_range": lambda left: left * 0.2,
    },
    ("ppo", "Acrobot-v1"): {"n_envs": 16, "n_steps": 256, "gae_lambda": 0.94, "gamma": 0.99, "n_epochs": 4},
    ("ppo", "LunarLander-v3"): {
        "n_envs": 16, "n_steps": 1024, "batch_size": 64, "gae_lambda": 0.98, "gamma": 0.999, "n_epochs": 4,
        "ent_coef": 0.01,
    },
    ("sac", "Pendulum-v1"): {"learning_rate": 1e-3},
}  # fmt: skip


def main() -> None:
    config = json.load(sys.stdin)
    identifier, seed, algorithm = config["environment"]["id"], config["seed"], config["algorithm"]
    given = dict(SETTINGS.get((algorithm, identifier), {}))
    environments = make_vec_env(identifier, n_envs=given.pop("n_envs", 1), seed=seed)
    fresh = make_vec_env(identifier, n_envs=10, seed=seed + (1 << 20))
    if (algorithm, identifier) in NORMALIZED:
        environments = VecNormalize(environments, gamma=given["gamma"])
        fresh = VecNormalize(fresh, training=False, norm_reward=False)
        fresh.obs_rms = environments.obs_rms  # shared: the evaluation normalizes as training does
    agent = {"ppo": PPO, "sac": SAC}[algorithm]("MlpPolicy", environments, seed=seed, device="cpu", **given)
    begin = time.perf_counter()
    agent.learn(config["steps"])
    seconds = time.perf_counter() - begin
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
