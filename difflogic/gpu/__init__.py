"""WGSL compute shaders through wgpu: the only room that knows of adapters, buffers and dispatches."""
