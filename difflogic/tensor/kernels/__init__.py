"""Kernels of tensors in NumPy, each the reference of the WGSL file of the same name in `shaders/tensor/`.

A function has the inputs of the kernel as parameters, with the same names and in the same order, after the name of the
operation. It returns the output of the kernel, except `adam`, which works in place. The processor uses these functions.
"""
