"""GPU engine: WGSL compute shaders run by wgpu. Only this package handles adapters, buffers and dispatches."""
