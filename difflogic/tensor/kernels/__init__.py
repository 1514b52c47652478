"""NumPy kernels of tensors, each the reference of the WGSL kernel of the same name in `shaders/tensor/`.

The parameters of a function are the name of the operation, then the inputs of the kernel, with the same names and in
the same order. It returns the kernel's output, except `adam`, which works in place. The CPU uses these functions.
"""
