"""Agents whose policy is a logic circuit: environments, PPO and SAC, runs, and the controllers that they end as."""
