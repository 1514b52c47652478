"""Agents whose policies are logic circuits: environments, PPO, SAC, classifiers, runs, and exported controllers."""
