"""The model in JAX and in PyTorch, which differentiate by themselves: to check gradients with, and to measure against.

Both are packages of the extra `bench`; nothing here is imported before it is asked for.
"""
