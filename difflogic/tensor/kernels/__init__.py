"""NumPy kernels of tensors, each the reference for the WGSL kernel of the same name in `shaders/tensor/`.

The parameters of each function are the name of the operation (if there are several), then the inputs of the kernel,
with equal names and order. All return the kernel's output except `adam`, which works in place. The CPU uses them.
"""
