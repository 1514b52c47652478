"""Eleven kernels in NumPy compute tensors, each the twin of the WGSL file of its name in `shaders/tensor/`.

A twin takes what the kernel reads, by the same names and in the same order, with the operation's name in front; it
returns what the kernel writes, but for `adam`, which works in place. On the processor they are what computes.
"""
