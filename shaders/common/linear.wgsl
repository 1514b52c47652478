// Number of invocations per workgroup, a constant of nearly every kernel. In a kernel over a plain list of items,
// invocation i processes items i, i + stride, ...

override WG: u32 = 64u;
