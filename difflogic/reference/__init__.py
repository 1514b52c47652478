"""Reference implementation in NumPy of every kernel, in the order of the equations.

In `kernels/` one file per shader in `shaders/`, of the same stem, whose function takes the arrays that the shader
binds, by the same names and in the same order, and writes its outputs in place. Layouts here put
cells last, so that one NumPy operation covers a whole batch: `states [T+1, C, cells]`,
`nodes [N, cells]`, `coefficients [G, 4]`.
"""
