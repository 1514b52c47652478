"""Small configurations of agents."""

from difflogic.config.agent_presets import of_environment
from difflogic.config.policy import PolicyConfig
from tests.policies import worlds

SIGNS = {
    "environment": {"id": "test/Signs-v0", "n_envs": 4},
    "steps": 2048,
    "logic": {"bits": 5, "widths": [8, 8], "learning_rate": 0.05, "random_steps": 60},
    "mlp": {"widths": [16]},
    "critic": {"widths": [16]},
    "ppo": {"n_steps": 32, "batch_size": 64, "n_epochs": 4, "learning_rate": 0.01},
    "evaluation": {"interval": 512, "episodes": 5, "final_episodes": 20, "threshold": 0.9 * worlds.STEPS},
    "seed": 3,
}


def config(**fields) -> PolicyConfig:
    """The task of `worlds.Signs`, learned in a second, with fields changed."""
    return of_environment("test/Signs-v0", 0.9 * worlds.STEPS).with_(**SIGNS).with_(**fields)
