"""NumPy kernels of tensors, each the reference for the WGSL kernel of the same name in `shaders/tensor/`.

Each function takes the kernel's settings (such as an operation or axis) and inputs, with the same names and order. It
returns the kernel's output; only `adam` works in place. On the CPU, tensors are computed by these kernels.
"""
