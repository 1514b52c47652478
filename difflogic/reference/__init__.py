"""Reference implementation in NumPy of every kernel, in the order of the equations.

`kernels/` has one file per shader in `shaders/`, with the same stem. Its main function takes the arrays that the shader
binds, with the same names in the same order, and writes its outputs in place. Cells are the last axis of arrays here,
so that one NumPy operation covers the complete batch: `states [T+1, C, cells]`, `nodes [N, cells]`,
`coefficients [G, 4]`.
"""
