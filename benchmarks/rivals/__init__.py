"""Rival implementations of a train step, written from the definition of the model, for comparison with the engines.

`jax_plain` is a direct implementation of the paper with four coefficients per gate (`difflogic.autodiff.jax_model`),
`jax_tuned` an optimized JAX implementation, `torch_compiled` a compiled PyTorch implementation
(`difflogic.autodiff.torch_model`), and `in_c` an implementation in C. Their results are verified before they are timed.
`python -m benchmarks.rivals` compares them with the engines.
"""
