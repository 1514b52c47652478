"""NumPy kernels of tensors, each the reference for the WGSL kernel of the same name in `shaders/tensor/`.

Each function takes the kernel's settings (an operation or axis, if any) and its inputs, with equal names and order.
All return the kernel's output except `adam`, which works in place. On the CPU, tensors are computed by these kernels.
"""
