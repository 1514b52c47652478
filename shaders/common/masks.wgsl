// Fire masks [models, T, H*W]: 0 for a cell that keeps its old state. Needs `shape` and `masks`.

fn keeps_old_state(model: u32, step: u32, cell: u32) -> bool {
    if shape.asynchronous == 0u { return false; }
    let grid = shape.height * shape.width;
    return masks[(model * shape.steps + step) * grid + cell % grid] == 0.0;
}
