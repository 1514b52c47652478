"""Agents with logic circuits as policies: environments, PPO and SAC, runs, and controllers made from agents."""
