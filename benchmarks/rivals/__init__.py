"""Others' ways to the same numbers, written here from the model's definition: to measure against, and to check with.

`jax_plain` is what a reader of the paper writes, with four coefficients per gate (`difflogic.autodiff.jax_model`);
`jax_tuned` what a JAX expert makes of it; `torch_compiled` the same in PyTorch (`difflogic.autodiff.torch_model`,
compiled). All compute what the engines compute, and are verified before they are timed. `python -m benchmarks.rivals`
runs them beside the engines.
"""
