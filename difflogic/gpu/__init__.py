"""WGSL compute shaders through wgpu: the only package that uses adapters, buffers and dispatches."""
