"""GPU engine: WGSL compute shaders through wgpu. No other package uses adapters, buffers or dispatches."""
